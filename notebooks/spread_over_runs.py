"""How many different answers does each method give for the same elements?"""

import style
import words
from figure import Figure, Series
from section import SAME_EVERYWHERE, Section, Table, distinct, preferred

AXES = {"runs": "the same call again", "threads": "other numbers of threads", "alignment": "other addresses"}


def section(sources):
    s = Section("spread", "Spread over runs", "Different results (bit patterns) of one method for the same elements: "
                "when the same call is repeated, with other numbers of threads, and at other addresses.",
                "build/release/bin/spread_over_runs --full --out build/study")
    if sources:
        rows = [(place(source.machine, r), r) for source in sources for r in source.rows]
        s.findings = list(findings(rows))
        s.figures = [figure(rows)]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} promises {r['promise']} but gave {r['distinct_bits']} bit patterns "
                      f"({AXES[r['axis']]})" for at, r in rows if r["broken"] and not words.is_peer(r["method"])]
    return s


def place(machine, r):
    return f"{machine}, {words.runs_on(r['method'])}"


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    kept = [(at, r) for at, r in rows if r["promise"] in SAME_EVERYWHERE]
    if kept:
        methods = {(at, r["method"]) for at, r in kept}
        several = distinct(r["method"] for _, r in kept if r["distinct_bits"] > 1)
        one = methods - {(at, r["method"]) for at, r in kept if r["distinct_bits"] > 1}
        runs = sum(r["runs"] for _, r in kept)
        yield (f"{words.sentence(words.of(len(one), len(methods)))} methods that promise the same bits everywhere gave "
               f"one bit pattern for each array, in {runs:,} runs"
               + (f"; not {words.names(several)}." if several else "."))
    for at in distinct(at for at, _ in rows):
        for axis in AXES:
            loose = [r for a, r in rows if a == at and r["axis"] == axis and r["promise"] not in SAME_EVERYWHERE]
            if loose:
                yield about_loose(at, axis, loose)
    broken = [r for _, r in rows if r["broken"] and words.is_peer(r["method"])]
    if broken:
        yield f"Of the other libraries' promises these were broken: {words.names(r['method'] for r in broken)}."


def about_loose(at, axis, rows):
    methods = distinct(r["method"] for r in rows)
    several = distinct(r["method"] for r in rows if r["distinct_bits"] > 1)
    text = (f"{at}, {AXES[axis]}: {words.of(len(several), len(methods))} methods that "
            "promise less gave more than one result")
    if several:
        most = max(rows, key=lambda r: r["distinct_bits"])
        text += f", up to {most['distinct_bits']} in {words.plural(most['runs'], 'run')} ({most['method']})"
        widest = max((r for r in rows if r["spread_ulps"] is not None), key=lambda r: r["spread_ulps"], default=None)
        if widest and widest["spread_ulps"]:
            text += (f" and as far apart as {words.number(widest['spread_ulps'], 2)} ulps "
                     f"({widest['method']} on {widest['data']})")
    return words.sentence(text) + "."


# --- the figure and the tables ----------------------------------------------------------------------------------

def figure(rows):
    menus = [("On", distinct(at for at, _ in rows)),
             ("Runs with", [AXES[a] for a in AXES if any(r["axis"] == a for _, r in rows)]),
             ("Elements", preferred([r["input_format"] for _, r in rows], "fp32"))]
    peers = style.peers_among(r["method"] for _, r in rows)
    bars = {}
    for at, r in rows:
        key = (at, AXES[r["axis"]], r["input_format"])
        method, best = r["method"], bars.setdefault(key, {})
        if method not in best or best[method]["distinct_bits"] < r["distinct_bits"]:
            best[method] = r
    series = []
    for on, best in bars.items():
        for method, r in sorted(best.items(), key=lambda item: (item[1]["distinct_bits"], item[0])):
            recipe, format, _ = words.parts(method)
            series.append(Series(method, [r["distinct_bits"]], [recipe if format == on[2] else f"{recipe}/{format}"],
                                 style.line(method, peers)[0], on, text=[f"{r['distinct_bits']} of {r['runs']}"]))
    return Figure("spread-figure", "How many different results each method gives", menus, series,
                  "bit patterns, at most", {None: ""}, bars=True)


def tables(rows):
    for at in distinct(at for at, _ in rows):
        here = {}
        for a, r in rows:
            if a == at:
                recipe, _, backend = words.parts(r["method"])
                here.setdefault((f"{recipe}@{backend}", r["promise"]), []).append(r)
        axes = [a for a in AXES if any(r["axis"] == a for some in here.values() for r in some)]
        lines = sorted((line(*key, some, axes) for key, some in here.items()), key=lambda pair: pair[0], reverse=True)
        yield Table(f"{at}: the most different results of any array, by what changed", ["method", "promise"] + axes +
                    ["widest spread, ulps"], [cells for _, cells in lines], words=2, folded=True)


def line(method, promise, rows, axes):
    by_axis = {a: max((r for r in rows if r["axis"] == a), key=lambda r: r["distinct_bits"], default=None)
               for a in axes}
    spreads = [r["spread_ulps"] for r in rows if r["spread_ulps"] is not None]
    cells = [f"{r['distinct_bits']} of {r['runs']}" if r else "" for r in by_axis.values()]
    most = max(r["distinct_bits"] for r in rows)
    return (most, method), [method, promise + (" (broken)" if any(r["broken"] for r in rows) else "")] + cells + [
        words.number(max(spreads), 2) if spreads else "-"]
