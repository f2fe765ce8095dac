"""How many different answers does each method give for the same elements, and how far apart are they?"""

import style
import telling
import words
from figure import Figure, Series
from power_law import fit
from section import Section, Table, by_place, distinct, placed, preferred, promises_one_result

AXES = {"runs": "the same call again", "threads": "other numbers of threads", "launch": "other launch shapes",
        "alignment": "other addresses", "permutation": "other orders of the elements"}
PAPER = 0.5  # the exponent of n that Shanmugavelu et al. 2024 find for |Vs|
KNOWN = 0.1  # an exponent with a standard error below this can be compared with theirs


def section(sources):
    s = Section("spread", "Spread over runs", "Different results (bit patterns) of one method for the same elements: "
                "when the same call is repeated, with other numbers of threads, other launch shapes of a GPU, at other "
                "addresses, and with the elements in other orders. |Vs| = |1 - |S / S₁||, S₁ the first run's result "
                "(Shanmugavelu et al. 2024), tells how far apart they are.",
                "build/release/bin/spread_over_runs --full --out build/study")
    rows = placed(sources, "spread")
    grown = growths(placed(sources, "growth"))
    if rows:
        s.findings = list(findings(rows))
        s.figures = [figure(rows)]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} promises {r['promise']} but gave {r['distinct_bits']} bit patterns "
                      f"({AXES[r['axis']]})" for at, r in rows if r["broken"] and not words.is_peer(r["method"])]
    if grown:
        s.findings += list(growth_findings(grown))
        s.figures += [f for f in [growth_figure(grown)] if f.series]
        s.tables.append(growth_table(grown))
    return s


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    kept = [(at, r) for at, r in rows if promises_one_result(r)]
    if kept:
        methods = {r["method"] for _, r in kept}
        several = [(at, r["method"]) for at, r in kept if r["distinct_bits"] > 1]
        one = methods - {method for _, method in several}
        runs = sum(r["runs"] for _, r in kept)
        yield (f"{words.sentence(words.of(len(one), len(methods), 'method'))} with a promise of the same bits "
               f"everywhere gave one bit pattern for each array, in {words.plural(runs, 'run')}"
               + (f"; not {words.names(f'{method} ({at})' for at, method in several)}." if several else "."))
    for at, some in by_place(rows).items():
        for axis in AXES:
            loose = [r for r in some if r["axis"] == axis and not promises_one_result(r)]
            if loose:
                yield about_loose(at, axis, loose)
    broken = [f"{r['promise']} by {r['method']} ({at})" for at, r in rows
              if r["broken"] and words.is_peer(r["method"])]
    if broken:
        yield f"Broken promises of other libraries: {words.names(broken)}."


def about_loose(at, axis, rows):
    methods = distinct(r["method"] for r in rows)
    several = distinct(r["method"] for r in rows if r["distinct_bits"] > 1)
    text = (f"{at}, {AXES[axis]}: {words.of(len(several), len(methods), 'method')} with less of a promise gave "
            "more than one result")
    if several:
        most = max(rows, key=lambda r: r["distinct_bits"])
        text += f", up to {most['distinct_bits']} in {words.plural(most['runs'], 'run')} ({most['method']})"
        widest = max((r for r in rows if r["spread_ulps"] is not None), key=lambda r: r["spread_ulps"], default=None)
        if widest and widest["spread_ulps"]:
            text += (f" and as far apart as {words.number(widest['spread_ulps'], 2)} ulps "
                     f"({widest['method']} on {widest['data']})")
        farthest = max((r for r in rows if r.get("vs_max")), key=lambda r: r["vs_max"], default=None)
        if farthest:
            text += (f"; the largest |Vs| is {words.number(farthest['vs_max'], 2)} "
                     f"({farthest['method']} on {farthest['data']})")
    return words.sentence(text) + "."


def growths(rows):
    """Points (n, largest |Vs|) and the power law through them, by (place, axis, format, data, method)."""
    points = {}
    for at, r in rows:
        if r["n"] and r["vs_max"] is not None:
            key = (at, r["axis"], r["input_format"], r["data"], r["method"])
            points.setdefault(key, []).append((r["n"], r["vs_max"]))
    return {key: (some, fit(some)) for key, some in points.items()}


def growth_findings(grown):
    for at, axis in distinct((at, axis) for at, axis, *_ in grown):
        laws = {key[2:]: law for key, (_, law) in grown.items() if key[:2] == (at, axis) and law}
        if not laws:
            continue
        ours = {key: law for key, law in laws.items() if not words.is_peer(key[2])}
        format = next(iter(preferred([format for format, _, _ in ours], "fp64")), None)
        told = {}
        for (f, data, method), law in ours.items():
            if f == format:
                told.setdefault(course(law), []).append(
                    f"{law.exponent:.2f} ± {law.error:.2f} for {words.parts(method)[0]} on {data} data")
        known = [law for law in laws.values() if law.error < KNOWN]
        near = sum(abs(law.exponent - PAPER) <= 2 * law.error for law in known)
        yield words.sentence(
            f"{at}, {AXES[axis]}: "
            + "".join(f"max |Vs| in {format} {how} {', '.join(some)}; " for how, some in told.items())
            + f"{words.of(len(known), len(laws), 'fitted exponent')} {words.verb(len(known), len(laws))} known to "
              f"less than ± {KNOWN}"
            + (f", and {near or 'none'} of these {words.verb(near, len(known))} within two standard "
               f"errors of {PAPER}, the √n of Shanmugavelu et al. 2024" if known else "") + ".")


def course(law):
    """What an exponent says for certain, if it is more than two standard errors away from 0."""
    if abs(law.exponent) <= 2 * law.error:
        return "neither grows nor falls for certain, with an exponent of n of"
    return f"{'grows' if law.exponent > 0 else 'falls'} as a power of n, with an exponent of"


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
    found = Figure("spread-figure", "How many different results each method gives", menus, series,
                   "bit patterns, at most", {None: ""}, bars=True)
    found.reading = telling.reads_bars(found, lambda patterns: words.plural(patterns, "bit pattern"))
    return found


def tables(rows):
    for at, found in by_place(rows).items():
        here = {}
        for r in found:
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


def growth_figure(grown):
    menus = [("On", distinct(at for at, *_ in grown)),
             ("Runs with", [AXES[a] for a in AXES if any(key[1] == a for key in grown)]),
             ("Elements", preferred([key[2] for key in grown], "fp64")),
             ("Data", preferred([key[3] for key in grown], "uniform"))]
    peers = style.peers_among(method for *_, method in grown)
    series = []
    for (at, axis, format, data, method), (points, law) in grown.items():
        colour, dash, symbol = style.line(method, peers)
        largest = {n: max(vs for m, vs in points if m == n) for n in sorted({n for n, vs in points if vs})}
        if not largest:
            continue
        on = (at, AXES[axis], format, data)
        name = words.parts(method)[0]
        series.append(Series(name, list(largest), list(largest.values()), colour, on, dash, symbol))
        if law:
            series.append(Series(f"fit of {name}", list(largest), [law.at(n) for n in largest], colour, on, faint=True))
    found = Figure("growth-figure", "How far runs go apart, by length", menus, series, "n, elements",
                   {None: "max |Vs|, without a unit"},
                   note="Dotted: the power law fitted to the line of its colour, from all seeds.")
    found.reading = telling.reads_lines(found, lambda n: f"n = {words.count(n)}", lambda vs: words.number(vs, 2))
    return found


def growth_table(grown):
    return Table("Exponents of n with which max |Vs| grows (0.5 in Shanmugavelu et al. 2024), with standard errors",
                 ["method", "where", "runs with", "data", "exponent", "±", "largest |Vs|"],
                 [[method, at, AXES[axis], data, f"{law.exponent:.2f}" if law else "-",
                   f"{law.error:.2f}" if law else "-", words.number(max(vs for _, vs in points), 2)]
                  for (at, axis, _, data, method), (points, law) in grown.items()], words=4, folded=True)
