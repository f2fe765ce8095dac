"use strict";
// Draws the figures and sorts the tables of the report. Each figure carries its traces as compressed JSON; a trace lists
// the choice of each menu that shows it, null for every choice. A figure is drawn when a reader comes near it; then it has
// the class `scripted`, which hides its static picture on screens.
const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 44rem)"), redraws = [];

// The text in a script element with gzip's format in base64.
function unpacked(script) {
  const bytes = Uint8Array.from(atob(script.textContent), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// Runs plotly, once. Unpacking and running it takes most of the time of the first plot.
let plotly;
function loadPlotly() {
  return plotly ??= unpacked(document.querySelector("#plotly")).then(text => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  });
}

// Keeps those ticks [value, text, digit] that leave room for each other, simple digits first.
function spaced(ticks, apart) {
  const rank = digit => [1, 2, 5].includes(digit) ? 0 : Number.isInteger(digit) ? 1 : 2, kept = [];
  for (const tick of [...ticks].sort((a, b) => rank(a[2]) - rank(b[2]) || a[0] - b[0]))
    if (kept.every(other => Math.abs(Math.log(tick[0] / other[0])) >= apart)) kept.push(tick);
  return kept.sort((a, b) => a[0] - b[0]);
}

// Settings of an axis for plotly: about `most` ticks, at whole powers if the axis is logarithmic and long enough. `zero` is
// where a logarithmic axis shows 0: below all other values.
function scale(kind, values, most) {
  if (kind === "linear") return {type: "linear", nticks: most};
  const base = Number(kind.slice(3)), power = v => Math.log(v) / Math.log(base);
  const positive = values.filter(v => v > 0), low = Math.min(...positive), high = Math.max(...positive);
  const first = Math.floor(power(low)), count = positive.length ? Math.ceil(power(high)) - first + 1 : 0;
  const all = Array.from({length: 91}, (_, i) => 1 + i / 10);
  const text = (d, k, whole) => !whole && k > -3 && k < 6 ? (d * base ** k).toLocaleString("en")
    : `${d === 1 ? "" : `${d}·`}${base}<sup>${k}</sup>`;
  let ticks = [];
  for (const [least, digits] of base === 2 ? [[0, [1]]] : [[3, [1]], [3, [1, 2, 5]], [2, all.filter(Number.isInteger)], [0, all]]) {
    ticks = Array.from({length: count}, (_, i) => digits.filter(d => d < base).map(d => [d, first + i])).flat()
      .filter(([d, k]) => d * base ** k >= low / 1.002 && d * base ** k <= high * 1.002)
      .map(([d, k]) => [d * base ** k, text(d, k, digits.length === 1), d]);
    if (ticks.length >= least) break;
  }
  const step = Math.max(1, Math.ceil((ticks.length - 1) / most)), last = ticks.length - 1;
  ticks = ticks.every(([, , d]) => d === 1) ? ticks.filter((_, i) => (last - i) % step === 0)
    : spaced(ticks, Math.log(high / low) / (most + 1));
  if (ticks.length < 2) ticks = [...new Set(positive.length ? [low, high] : [])].map(v => [v, v.toLocaleString("en")]);
  const zero = !values.includes(0) ? undefined : positive.length ? low / Math.max(2, (high / low) ** 0.12) : 1;
  if (zero) ticks.unshift([zero, "0"]);
  return {type: "log", zero, tickvals: ticks.map(([v]) => v), ticktext: ticks.map(([, text]) => text)};
}

function layout(spec, chosen, traces) {
  const css = getComputedStyle(document.documentElement), colour = name => css.getPropertyValue(name).trim();
  const shown = traces.filter(t => t.showlegend !== false), bars = spec.shape === "bars", under = narrow.matches && !bars;
  const longest = bars ? Math.max(0, ...traces.flatMap(t => t.text).map(text => text.length)) : 0;
  const long = bars && traces.some(t => t.y.some(name => name.length > 24 || name.length + longest > 32));
  const size = !narrow.matches ? 13 : long ? 9 : 11;
  const axis = {gridcolor: colour("--grid"), linecolor: colour("--grid"), zeroline: false, fixedrange: narrow.matches,
                automargin: true, tickangle: 0, title: {font: {size}, standoff: 8}};
  const result = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {color: colour("--ink"), size, family: getComputedStyle(document.body).fontFamily},
    margin: {l: 8, r: bars ? Math.max(50, 16 + 0.65 * size * longest) : 12, t: 8, b: 8},
    hovermode: spec.shape === "lines" ? "x unified" : "closest",
    dragmode: narrow.matches ? false : "zoom",
    hoverlabel: {namelength: -1, bgcolor: colour("--box"), bordercolor: colour("--grid"),
                 font: {color: colour("--ink")}},
    showlegend: !bars, xaxis: {...axis, title: {...axis.title, text: spec.x}},
    yaxis: {...axis, title: {...axis.title, text: spec.y[chosen.at(-1)] ?? spec.y.null}},
    legend: {tracegroupgap: 0, ...under ? {orientation: "h", x: 0, y: -0.2, yanchor: "top", yref: "paper"}
      : {x: 1.02, y: 1, yanchor: "top"}},
    height: bars ? 90 + 22 * shown.length : under ? 380 + 22 * shown.length : Math.max(360, 90 + 20 * shown.length)};
  if (bars) {
    result.xaxis.rangemode = "tozero";
    result.yaxis.title.text = "";
    result.yaxis.showgrid = false;
    if (narrow.matches) {
      result.xaxis.title.text = result.xaxis.title.text.replace(/^(.{24,}?) /, "$1<br>");
      Object.assign(result.xaxis, {showgrid: spec.dots, nticks: 5});  // labels of short bars would lie on the grid
    }
    result.minreducedwidth = 40;  // else a phone has no room for long labels on both sides
    result.bargap = 0.3;
    return result;
  }
  const [across, up] = spec.kinds, counts = across === "log2";
  Object.assign(result.xaxis, scale(across, traces.flatMap(t => t.x).filter(x => x || across === "linear"), narrow.matches ? 5 : 12),
                {hoverformat: counts ? ",d" : ".3g",
                 unifiedhovertitle: {text: `${spec.x.split(",")[0]} = %{x:${counts ? "," : ".3g"}}`}});
  Object.assign(result.yaxis, scale(up, traces.flatMap(t => t.y), 8));
  return result;
}

// The line and the marker of a trace, in the colours that they have on a dark page, if those are others.
function tinted(trace) {
  const css = getComputedStyle(document.documentElement);
  return Object.fromEntries(["line", "marker"].filter(part => trace[part]).map(part => [part, {
    ...trace[part], color: css.getPropertyValue(`--${trace[part].color.slice(1)}`).trim() || trace[part].color}]));
}

// Label of a bar, or hover text of a point.
function labels(shape, trace) {
  if (shape === "bars")
    return {textposition: trace.type === "bar" ? "outside" : "middle right", cliponaxis: false,
            hovertemplate: "%{y}: %{text}<extra></extra>"};
  if (shape === "points" && trace.showlegend === false) return {hoverinfo: "skip"};
  if (trace.hovertext) return {hovertemplate: "%{hovertext}<extra></extra>"};
  return {customdata: trace.y, hovertemplate: shape === "points"
    ? "%{fullData.name}: %{x:.3g}, %{customdata:.3g}<extra></extra>" : "%{customdata:.3g}"};
}

// Draws a line of one point as a ring, which lines through it do not hide.
function lone(trace) {
  const points = trace.y.filter((y, i) => y !== null && trace.x[i] !== null);
  if (trace.mode !== "lines+markers" || points.length !== 1) return trace;
  return {...trace, marker: {...trace.marker, symbol: "circle-open", size: 16}};
}

// The title of the axis across, and the bars: if all labels name the same peer, as in "1.26 × cub/sum", the title does instead.
function beside(spec, traces) {
  const peers = new Set(spec.shape === "bars" ? traces.flatMap(t => t.text).map(text => text.split(" × ")[1]) : []);
  const [peer] = peers;
  if (peers.size !== 1 || !peer) return [spec.x, traces];
  return [spec.x.replace(/the fastest .*/, peer),
          traces.map(t => ({...t, text: t.text.map(text => text.split(" × ")[0])}))];
}

async function interactive(figure) {
  const [text] = await Promise.all([unpacked(figure.querySelector("script")), loadPlotly()]);
  const spec = JSON.parse(text), live = figure.querySelector(".live");
  const menus = document.createElement("div"), plot = document.createElement("div"), chosen = [...spec.start];
  menus.className = "menus";
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", [figure.querySelector("figcaption"), figure.querySelector(".finding")]
    .map(text => text?.textContent ?? "").join(". "));
  live.append(menus, plot);
  const fits = (trace, depth) => trace.on.slice(0, depth).every((v, i) => v === null || v === chosen[i]);
  const selects = spec.menus.map((menu, i) => {
    const label = document.createElement("label"), select = document.createElement("select");
    label.append(menu.label, select);
    if (menu.values.length > 1) menus.append(label);
    select.addEventListener("change", () => { chosen[i] = select.value; draw(); });
    return select;
  });
  const filter = document.createElement("input"), label = document.createElement("label");
  Object.assign(filter, {type: "search", placeholder: "tree kahan …", spellcheck: false, autocomplete: "off"});
  label.append("Filter methods", filter);
  menus.append(label);
  filter.addEventListener("input", () => draw());
  const matches = text => filter.value.toLowerCase().split(/[\s,]+/).every(word => text.toLowerCase().includes(word));
  function filtered(trace) {
    if (spec.shape === "lines") return matches(trace.name) ? [trace] : [];
    if (spec.shape === "bars") return matches(`${trace.name} ${trace.y}`) ? [trace] : [];
    if (!trace.hovertext) return [trace];
    const kept = trace.hovertext.map((text, i) => i).filter(i => matches(`${trace.name} ${trace.hovertext[i]}`));
    const keep = values => kept.map(i => values[i]);
    return kept.length ? [{...trace, x: keep(trace.x), y: keep(trace.y), hovertext: keep(trace.hovertext)}] : [];
  }
  function draw() {
    // The choices of a menu depend on the menus before it; a choice that is no longer offered becomes the first one.
    spec.menus.forEach((menu, i) => {
      const some = new Set(spec.traces.filter(t => fits(t, i)).map(t => t.on[i]));
      const offered = menu.values.filter(v => some.has(v) || some.has(null));
      if (!offered.includes(chosen[i])) chosen[i] = offered[0];
      selects[i].replaceChildren(...offered.map(v => new Option(v, v, false, v === chosen[i])));
    });
    const [across, some] = beside(spec, spec.traces.filter(t => fits(t, chosen.length)).flatMap(filtered));
    const traces = some.map(lone).map(t => (
      {...t, ...labels(spec.shape, t), ...tinted(t), legendgroup: t.name.replace(/^(.*bound|fit) of /, "")}));
    const last = t => t.y.findLast(y => y !== null) ?? 0;
    if (spec.shape === "lines") traces.sort((a, b) => last(b) - last(a));  // legend in the order of the right ends
    // An entry of the legend for all thin lines of a kind, which have none of their own.
    const kinds = new Map(traces.filter(t => t.key).map(t => [t.key, {
      x: [null], y: [null], name: t.key, mode: "lines", hoverinfo: "skip", line: {...t.line, color: "#888888"}}]));
    traces.push(...kinds.values());
    const about = layout({...spec, x: across}, chosen, traces), {zero} = about.yaxis;
    delete about.yaxis.zero;
    Plotly.react(plot, zero ? traces.map(t => ({...t, y: t.y.map(y => y === 0 ? zero : y)})) : traces, about,
                 {responsive: true, displayModeBar: false});
  }
  draw();
  figure.classList.add("scripted");
  redraws.push(draw);
}

const drawn = new Map();
function drawOnce(figure) {
  if (!drawn.has(figure)) drawn.set(figure, interactive(figure));
  return drawn.get(figure);
}
const near = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries)
    if (isIntersecting) drawOnce(target);
}, {rootMargin: "400px"});
document.querySelectorAll("figure:has(.live)").forEach(figure => near.observe(figure));
for (const change of [dark, narrow]) change.addEventListener("change", () => redraws.forEach(draw => draw()));

// Clicking a column head sorts a table of 3 or more rows, by number if the column holds numbers, otherwise as text.
// The number is the first one in the text, as in 1,024, 3.5e-07, 2²⁰, over 10¹³ or 1 to 64.
function value(text) {
  const [, number, power] = text.replaceAll(",", "").match(/(-?[\d.]+(?:e[+-]?\d+)?)([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*)/) ?? [, NaN, ""];
  const exponent = power.replace("⁻", "-").replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, c => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c));
  return number ** (exponent === "" ? 1 : Number(exponent));
}
function compare(a, b, numbers) {
  if (!numbers) return a.localeCompare(b, "en", {numeric: true});
  const [x, y] = [value(a), value(b)];
  return Number.isNaN(x) - Number.isNaN(y) || x - y || a.localeCompare(b);
}
function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 3) return;
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending", numbers = head.classList.contains("n");
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = down ? "descending" : "ascending";
      const text = row => row.cells[i].textContent, filled = row => text(row) !== "" && text(row) !== "-";
      body.append(...[...body.rows].sort((a, b) => filled(b) - filled(a)
                                                    || (down ? -1 : 1) * compare(text(a), text(b), numbers)));
    });
  });
}
document.querySelectorAll("table").forEach(sortable);

// A table that scrolls shows a hint.
const wide = new ResizeObserver(entries => {
  for (const {target} of entries)
    target.parentElement.classList.toggle("scrolls", target.scrollWidth > target.clientWidth);
});
document.querySelectorAll(".wide").forEach(table => wide.observe(table));

// A link to something folded opens it.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  for (let e = target?.closest("details"); e; e = e.parentElement.closest("details")) e.open = true;
}
addEventListener("hashchange", unfold);
unfold();
