"""The first screen of the report: what samesum is, three findings as small figures, and answers to first questions."""

import dataclasses

import accumulator_formats
import consequences
import frontier
import glossary
import phrases
import prices
import style
import timing
from figure import Drawing
from section import PROMISES, SAME_EVERYWHERE, distinct, is_gpu, is_here, rows_with_place
from timing import fastest

WIDTH, HEIGHT = 320, 84
MOST = 3  # cards of the first screen
MOST_PANELS = 6  # of a card
SLOW = 1.5  # exact is recommended if it takes at most this many times the time of the fastest repeatable method


@dataclasses.dataclass
class Card:
    """A finding: a number, what it counts, a small figure, and a sentence."""

    section: str  # id of the section with the details
    number: str
    what: str
    picture: str  # with panels their legend
    text: str
    panels: tuple = ()  # figure.Tiles, in place of the picture


def about(found):
    """What samesum is, and what the report measured where."""
    sources = [s for some in found.values() for s in some if s.rows]
    rows = [r for s in sources for r in s.rows if "method" in r]
    names = {r["method"] for r in rows}
    libraries = glossary.libraries(names)
    ours = {m.split("@")[0] for m in names if "@" in m and not phrases.is_peer(m)}
    places = sorted(distinct(s.machine for s in sources), key=lambda machine: not is_here(machine))
    return ("samesum is a C++20, CUDA and Python library of sums and other reductions that return the same bits on "
            "every machine and know a bound on their error. This report compares "
            f"{phrases.plural(len(ours), 'method')} of samesum"
            + (f" with {phrases.plural(len(libraries), 'other library', 'other libraries')}" if libraries else "")
            + f" in {phrases.plural(sum(len(s.rows) for s in sources), 'result')} ({', '.join(places)}).")


# --- cards --------------------------------------------------------------------------------------------------------

def cards(found):
    """The findings whose results were measured; the first MOST are on the first screen."""
    return [card for card in (one_call(found), ones(found), price(found), iterations(found)) if card]


def here_and_there(rows, best, shows):
    """The best row of this machine and the best one of the others, as far as there are any. This machine's comes first
    if shows(row), or if no other does. best(rows) returns a pair (place, row), or None."""
    pairs = [best([(at, r) for at, r in rows if is_here(at) == here]) for here in (True, False)]
    return sorted(filter(None, pairs), key=lambda pair: not shows(pair[1]))


def measured_at(at, found):
    """'H200, GPU', or 'on another machine: H200, GPU' in a report that has results of this one."""
    has_here = any(is_here(s.machine) and s.rows for some in found.values() for s in some)
    return f"on another machine: {at}" if has_here and not is_here(at) else at


def one_call(found):
    """The call with most results: of another library if one varied, else of any method, and on ordinary data if possible."""
    rows = [(at, r) for at, r in rows_with_place(found.get("spread_over_runs", []), "spread") if r["axis"] == "runs"]

    def best(some):
        loose = [(at, r) for at, r in some if r["promise"] not in SAME_EVERYWHERE]
        return max(loose, default=None, key=lambda pair: (phrases.is_peer(pair[1]["method"]) and pair[1]["distinct_bits"] > 1,
                                                          pair[1]["data"] in frontier.ORDINARY, pair[1]["distinct_bits"]))
    chosen = here_and_there(rows, best, lambda r: r["distinct_bits"] > 1)
    if not chosen:
        return None
    at, r = chosen[0]
    same = [s for _, s in rows if (s["n"], s["input_format"], s["data"]) == (r["n"], r["input_format"], r["data"])
            and s["promise"] in SAME_EVERYWHERE and s["distinct_bits"] == 1]
    text = (f"{calls(r)}" + (f", up to {phrases.ulps(r['spread_ulps'], r['input_format'])} apart" if r["spread_ulps"] else "")
            + (f"; {phrases.plural(len(same), 'method')} of samesum returned one" if same else "")
            + f" ({measured_at(at, found)})."
            + "".join(f" {phrases.capitalised(at)}: {caller(r)}, {calls(r)}." for at, r in chosen[1:]))
    return Card("spread", f"{r['distinct_bits']:,}", f"answer{'s' * (r['distinct_bits'] != 1)} from one call of {caller(r)}",
                calls_picture(r), text)


def caller(r):
    name = phrases.parts(r["method"])[0]
    return glossary.in_words(name) if phrases.is_peer(r["method"]) else f"samesum {name}"


def calls(r):
    """'56 calls on the same 2²² normal fp64 numbers returned 34 different sums'."""
    data = f"{r['data']} {r['input_format']} numbers" if r["data"] in frontier.ORDINARY else (
        f"{r['input_format']} numbers ({r['data']})")
    return (f"{phrases.plural(r['runs'], 'call')} on the same {phrases.count(r['n'])} {data} returned "
            f"{phrases.plural(r['distinct_bits'], 'different sum')}")


def calls_picture(r):
    """A square per call; as many are filled as there are different results."""
    across, step = 25, 12
    shown = min(r["runs"], across * 6)
    bottom = 4 + step * -(-shown // across)
    drawing = Drawing(WIDTH, bottom + 17, f"{r['distinct_bits']} different results in {r['runs']} calls")
    filled = round(r["distinct_bits"] * shown / r["runs"]) if r["runs"] > shown else r["distinct_bits"]
    for i in range(shown):
        colour = style.COLOURS["plain"] if i < filled else "none"
        drawing.add(f'<rect x="{2 + step * (i % across)}" y="{4 + step * (i // across)}" width="9" height="9" '
                    f'fill="{colour}" stroke="{style.COLOURS["plain"]}"/>')
    drawing.text(2, bottom + 14, "a square: a call; filled: another result", size=12, fill=drawing.faint)
    return drawing.done()


def ones(found):
    """What a loop returns for ones in 16 bits."""
    rows = rows_with_place(found.get("accumulator_formats", []), "story")
    pair = accumulator_formats.stagnated(rows)
    if not pair or pair[0]["value"] is None:
        return None
    loop, wide = pair
    value = accumulator_formats.value
    text = (f"A loop over {phrases.plural(loop['n'], 'one')} in {loop['input_format']} stops at {value(loop)}: "
            f"{value(loop)} + 1 rounds back to {value(loop)}" if loop["value"] < loop["n"] else
            f"A loop over {phrases.plural(loop['n'], 'one')} in {loop['input_format']} returns {value(loop)}")
    text += f"; with an fp32 accumulator it returns {value(wide)}" if wide else ""
    places = distinct(at for at, r in rows if all(r[field] == loop[field] for field in ("case", "input_format", "value", "n"))
                      and phrases.parts(r["method"])[:2] == phrases.parts(loop["method"])[:2])
    text += f" ({', '.join(places)})."
    bars = [(f"{loop['input_format']} loop", loop["value"], value(loop), style.COLOURS["plain"])]
    bars += [("fp32 accumulator", wide["value"], value(wide), style.COLOURS["exact"])] if wide and wide["value"] else []
    return Card("formats", value(loop), f"is the sum of {phrases.plural(loop['n'], 'one')} in {loop['input_format']}",
                bars_picture(bars, max(loop["n"], *(length for _, length, _, _ in bars))), text)


def bars_picture(bars, most):
    step = 34
    drawing = Drawing(WIDTH, step * len(bars), "; ".join(f"{name}: {text}" for name, _, text, _ in bars))
    for i, (name, length, text, colour) in enumerate(bars):
        y = step * i
        drawing.text(2, y + 12, f"{name}: {text}", size=12)
        drawing.add(f'<rect x="2" y="{y + 18}" width="{max((WIDTH - 6) * abs(length) / most, 1.5):.1f}" height="14" '
                    f'fill="{colour}"/>')
    return drawing.done()


def price(found):
    """What exact results and the same bits everywhere cost: panels of the first place of prices.figure."""
    cells = prices.cells_of(found)
    first = next((at for at in (prices.shown(cells) if cells else []) if prices.panels(cells[at])), None)
    if not first:
        return None
    name, some = next(iter(prices.panels(cells[first]).items()))
    exact, same = prices.median(some), prices.median(some, "everywhere_price")
    what = (f"the time of the fastest call that promises less, for an exact {prices.name_of(name)}"
            + (f"; {phrases.number(same, 2)}× for the same bits everywhere" if same else ""))
    legend = " ".join(f'<i style="color:{colour}">{mark}</i> {text};' for mark, colour, text in prices.LEGEND)[:-1]
    where = "; ".join(filter(None, ["medians", prices.longest(some), measured_at(first, found)]))
    return Card("price", f"{phrases.number(exact, 2)}×", f"{what} ({where})", legend,
                " ".join(filter(None, [prices.in_how_many(found), prices.on_each_data(prices.answered(found))
                                       or prices.on_slowest_data(found)])),
                prices.tiles(first, cells[first], MOST_PANELS))


def iterations(found):
    """How the number of iterations of conjugate gradients depends on the run."""
    rows = rows_with_place(found.get("consequences", []), "solver")
    def varies(r):
        return r["most_iterations"] > r["least_iterations"]
    chosen = [(at, r) for at, r in here_and_there(rows, consequences.widest, varies) if varies(r)]
    if not chosen:
        return None
    at, r = chosen[0]
    fixed = consequences.steady(rows, at, r)
    others = [s for a, s in rows if a == at and (s["data"], s["input_format"]) == (r["data"], r["input_format"])
              and s["promise"] in SAME_EVERYWHERE and s["converged"] == s["runs"]]
    steady = [s for a, s in rows if a == at and s["data"] != r["data"] and s["input_format"] == r["input_format"]]
    counts = {s[f"{end}_iterations"] for s in steady for end in ("least", "most")}
    name = phrases.parts(r["method"])[0]
    text = (f"Conjugate gradients on a matrix with {consequences.SYSTEMS[r['data']]} (condition number "
            f"{consequences.condition(r)}), with samesum's sum {name}, in {phrases.plural(r['runs'], 'run')} of the same "
            f"program: {phrases.plural(r['distinct_bits'], 'different solution')}"
            + (f"; {phrases.plural(len(others), 'method')} with a promise returned one each" if others else "")
            + (f", after {' to '.join(map(str, distinct([min(fixed), max(fixed)])))} iterations" if others and fixed else "")
            + f" ({measured_at(at, found)})."
            + (f" On {consequences.SYSTEMS[steady[0]['data']]} every sum needs {counts.pop()}." if len(counts) == 1 else "")
            + "".join(f" {phrases.capitalised(at)}: {consequences.span(r, 'iterations')} iterations." for at, r in chosen[1:]))
    return Card("consequences", f"{r['least_iterations']}–{r['most_iterations']}", "iterations, depending on the run",
                iterations_picture(name, r, others), text)


def iterations_picture(name, r, others):
    """A bar from the least to the greatest number of iterations, and a dot per repeatable method."""
    found = {phrases.parts(s["method"])[0]: s["most_iterations"] for s in others}
    near = {m: n for m, n in found.items() if n <= 2 * r["most_iterations"] - r["least_iterations"] + 8}
    low, high = min([r["least_iterations"], *near.values()]), max([r["most_iterations"], *near.values()])
    drawing = Drawing(WIDTH, HEIGHT, f"{name}: {r['least_iterations']} to {r['most_iterations']} iterations")

    def x(n):
        return 12 + (WIDTH - 24) * (n - low) / max(high - low, 1)

    left, right = x(r["least_iterations"]), x(r["most_iterations"])
    drawing.text(2, 13, f"{name}, {phrases.plural(r['runs'], 'run')}", size=12)
    drawing.add(f'<rect x="{left:.1f}" y="18" width="{right - left:.1f}" height="14" rx="3" '
                f'fill="{style.COLOURS["plain"]}"/>')
    drawing.line(12, 54, WIDTH - 12, 54)
    for i, n in enumerate(sorted(set(near.values()))):
        same = [method for method in near if near[method] == n]
        label = f"{', '.join(same)}: {n}"
        half = 3.2 * len(label)
        drawing.circle(x(n), 54, 4.5, style.COLOURS.get(same[0].split("/")[-1], style.GREY), label)
        drawing.text(min(max(x(n), half), WIDTH - half), 46 if i % 2 else 70, label, "middle", 10.5)
    return drawing.done()


# --- answers ------------------------------------------------------------------------------------------------------

def answers(found):
    """Pairs (question, answer) of the questions that the results answer, and how to measure one's own data."""
    pairs = [("Which method for a million fp32 numbers?", which_method(found)),
             ("Do other libraries keep their promises?", other_promises(found))]
    return [(question, answer) for question, answer in pairs if answer]


def which_method(found):
    """The recommended methods of the first place and of the first GPU or, if that is the same, of the next machine."""
    places = frontier.measured(found)
    first, *others = places or [""]
    second = [at for at in others if is_gpu(at) != is_gpu(first)][:1]
    return " ".join(filter(None, (recommendation(at, places[at]) for at in [first, *second] if at)))


def recommendation(at, rows):
    ours = [r for r in rows if not phrases.is_peer(r["method"]) and r["promise"] in SAME_EVERYWHERE]
    exact = fastest([r for r in ours if phrases.accumulator(r["method"]) == "exact"])
    if not ours:
        return ""

    def facts(r):
        error = "correctly rounded" if r is exact else f"relative error {phrases.number(r['relative_error'], 2)}"
        return f"{phrases.parts(r['method'])[0]} ({phrases.duration(r['seconds'], 2)}, {error})"

    if not exact:
        return f"{phrases.capitalised(at)}: {facts(fastest(ours))}."
    faster = fastest([r for r in ours if timing.is_faster(r, exact)])
    if faster and timing.ratio(faster, exact).value > SLOW:
        return f"{phrases.capitalised(at)}: {facts(faster)}, or if every bit counts {facts(exact)}."
    return f"{phrases.capitalised(at)}: {facts(exact)}" + (
        f", or faster with the same bits everywhere, {facts(faster)}." if faster else undecided(exact, ours))


def undecided(exact, ours):
    """End of the sentence on exact if no other method is faster: which others may be."""
    may_be = [phrases.parts(r["method"])[0] for r in sorted(ours, key=lambda r: r["seconds"])
              if r is not exact and not timing.is_no_slower(exact, r)]
    return (f"; whether {phrases.names(may_be)} {phrases.verb(2, len(may_be), 'is', 'are')} faster is not decided."
            if may_be else "; no other with the same bits everywhere is faster.")


def other_promises(found):
    """Whether settings of other libraries that promise something kept it, and what the others did."""
    rows = [r for _, r in rows_with_place(found.get("spread_over_runs", []), "spread") if phrases.is_peer(r["method"])]
    promised = distinct(r["method"] for r in rows if r["promise"] != PROMISES[0])
    broken = distinct(r["method"] for r in rows if r["broken"])
    loose = distinct(r["method"] for r in rows if r["promise"] == PROMISES[0] and r["axis"] == "runs")
    varied = distinct(r["method"] for r in rows if r["promise"] == PROMISES[0] and r["axis"] == "runs"
                      and r["distinct_bits"] > 1)
    moved = distinct(r["method"] for r in rows if r["method"] in promised and r["axis"] in ("alignment", "threads")
                     and r["distinct_bits"] > 1)
    texts = []
    if promised:
        kept = len(promised) - len(broken)
        texts.append(f"{'Yes' if not broken else 'No'}: {phrases.out_of(kept, len(promised), 'sum')} that "
                     f"{phrases.verb(2, len(promised), 'promises', 'promise')} the same bits in each run kept it"
                     + (f" (broken by {phrases.names(map(short_name, broken))})." if broken else "."))
    if moved:
        texts.append(f"But at another address or thread count, which they exclude, "
                     f"{phrases.out_of(len(moved), len(promised))} returned other bits ({short_name(moved[0])}).")
    if loose:
        texts.append(f"{phrases.capitalised(phrases.out_of(len(varied), len(loose), 'sum'))} without a promise "
                     "varied from call to call.")
    return " ".join(texts)


def short_name(method):
    """'CUB run_to_run fp32' for a peer."""
    name, format, _ = phrases.parts(method)
    return f"{glossary.in_words(name)} {format}"
