"""Section on the different results of each method for the same elements, and how far apart they are."""

import captions
import phrases
import style
from figure import Figure, Series, with_several_bars
from power_law import fit
from results import HERE
from section import (Check, Section, Table, distinct, group_by_place, promises_one_result, rows_with_place, starting_with)

AXES = {"runs": "repeated calls", "threads": "other thread counts", "launch": "other launch shapes",
        "alignment": "other addresses", "permutation": "other element orders"}
PAPER = 0.5  # exponent of n for |Vs| in Shanmugavelu et al. 2024
KNOWN = 0.1  # exponents with a smaller standard error are compared with PAPER


def section(sources):
    s = Section("spread", "Spread over runs", "How many answers does one call have?",
                "Number of different results (bit patterns) of a method for the same "
                "elements: in repeated calls, and with other thread counts, other launch shapes of a GPU, other "
                "addresses and other element orders. Ulps and the relative spread measure how far apart the results "
                "are.", "build/release/bin/spread_over_runs --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "relative spread", "cub"))
    rows = rows_with_place(sources, "spread")
    grown = growths(rows_with_place(sources, "growth"))
    if rows:
        s.verdict = verdict([(source, r) for source in sources for r in source.of("spread")])
        s.findings = list(findings(rows))
        s.figures = [f for f in [figure(rows)] if f.series]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} promises {r['promise']} but returned {r['distinct_bits']} bit patterns "
                      f"({AXES[r['axis']]})" for at, r in rows if r["broken"] and not phrases.is_peer(r["method"])]
    if grown:
        s.findings += list(growth_findings(grown))
        s.figures += [f for f in [growth_figure(grown)] if f.series]
        s.tables.append(growth_table(grown))
    return s


# --- sentences --------------------------------------------------------------------------------------------------

def verdict(rows):
    """Counts the methods that promise the same bits everywhere and kept that, and the others with several results in
    repeated calls. A method that ran on several machines counts once. `rows` are pairs (source, row)."""
    kept = [r for _, r in rows if promises_one_result(r)]
    loose = [(s, r) for s, r in rows if r["axis"] == "runs" and not promises_one_result(r)]
    clauses = []
    if kept:
        methods = {r["method"] for r in kept}
        one = methods - {r["method"] for r in kept if r["distinct_bits"] > 1}
        at = distinct(s.place_of(r["method"]) for s, r in rows if promises_one_result(r))
        clauses.append(f"{phrases.out_of(len(one), len(methods), 'method')} with a promise of the same bits everywhere "
                       f"returned the same bits in {phrases.plural(sum(r['runs'] for r in kept), 'run')} ({', '.join(at)})")
    if loose:
        varied = [(s, r) for s, r in loose if s.machine == HERE and r["distinct_bits"] > 1] or loose
        source, most = max(varied, key=lambda row: row[1]["distinct_bits"])
        several = {r["method"] for _, r in loose if r["distinct_bits"] > 1}
        clauses.append(f"in repeated calls, {others_in_words(r for _, r in loose)} returned more than one result"
                       + (f", up to {most['distinct_bits']} in {phrases.plural(most['runs'], 'run')} "
                          f"({most['method']} on {most['data']}, {source.place_of(most['method'])})" if several else ""))
    return phrases.capitalised("; ".join(clauses)) + "." if clauses else ""


def others_in_words(rows):
    """'2 of 4 other methods of samesum and 1 of 8 calls of other libraries', which had several results."""
    methods = {}
    for r in rows:
        methods[r["method"]] = max(r["distinct_bits"], methods.get(r["method"], 0))
    texts, peers = [], phrases.peers_in_words(methods, many=True)
    for is_peer, noun, whose in ((False, "other method", "samesum"), (True, "call", peers)):
        counts = [n for m, n in methods.items() if phrases.is_peer(m) == is_peer]
        if counts:
            texts.append(f"{phrases.out_of(sum(n > 1 for n in counts), len(counts), noun)} of {whose}")
    return " and ".join(texts)


def findings(rows):
    kept = [(at, r) for at, r in rows if promises_one_result(r)]
    if kept:
        methods = {r["method"] for _, r in kept}
        several = [(at, r["method"]) for at, r in kept if r["distinct_bits"] > 1]
        one = methods - {method for _, method in several}
        runs = sum(r["runs"] for _, r in kept)
        runs_text = phrases.plural(runs, "run")
        yield Check(f"{phrases.capitalised(phrases.out_of(len(one), len(methods), 'method'))} with a promise of the same "
                    f"bits everywhere returned one bit pattern per array in {runs_text}"
                    + phrases.exceptions(f"{method} ({at})" for at, method in several),
                    len(one), len(methods), f"method with the same bits in {runs_text}",
                    f"methods with the same bits in {runs_text}")
    for at, some in group_by_place(rows).items():
        for axis in AXES:
            loose = [r for r in some if r["axis"] == axis and not promises_one_result(r)]
            if loose:
                yield loose_finding(at, axis, loose)
    broken = [f"{r['promise']} by {r['method']} ({at})" for at, r in rows
              if r["broken"] and phrases.is_peer(r["method"])]
    if broken:
        yield f"Promises that other libraries broke: {phrases.names(broken)}."


def loose_finding(at, axis, rows):
    """A sentence on the methods that may return different bits when the axis varies."""
    methods = distinct(r["method"] for r in rows)
    several = distinct(r["method"] for r in rows if r["distinct_bits"] > 1)
    promise = "order_free" if axis == "permutation" else "everywhere"
    text = (f"{at}, {AXES[axis]}: {phrases.out_of(len(several), len(methods), 'method')} that "
            f"{phrases.verb(2, len(methods), 'does', 'do')} not promise “{promise}” returned more than one result")
    if several:
        most = max(rows, key=lambda r: r["distinct_bits"])
        text += f", up to {most['distinct_bits']} in {phrases.plural(most['runs'], 'run')} ({most['method']})"
        widest = max((r for r in rows if r["spread_ulps"] is not None), key=lambda r: r["spread_ulps"], default=None)
        if widest and widest["spread_ulps"]:
            apart = phrases.ulps(widest["spread_ulps"], phrases.parts(widest["method"])[1])
            which = f"{widest['method']} on {widest['data']}"
            text += (f"; the results of {which} share no digit" if apart == phrases.NO_DIGIT else
                     f" and up to {apart} apart ({which})")
        farthest = max((r for r in rows if r.get("vs_max")), key=lambda r: r["vs_max"], default=None)
        if farthest:
            text += (f"; the largest relative spread is {phrases.number(farthest['vs_max'], 2)} "
                     f"({farthest['method']} on {farthest['data']})")
    return phrases.capitalised(text) + "."


def growths(rows):
    """{(place, axis, format, data, method): (points (n, largest |Vs|), power law fitted to them)}."""
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
        ours = {key: law for key, law in laws.items() if not phrases.is_peer(key[2])}
        format = next(iter(starting_with([format for format, _, _ in ours], "fp64")), None)
        trends = {}
        for (f, data, method), law in ours.items():
            if f == format:
                trends.setdefault(trend(law), []).append(
                    f"{law.exponent:.2f} ± {law.error:.2f} for {phrases.parts(method)[0]} on {data} data")
        known = [law for law in laws.values() if law.error < KNOWN]
        near = sum(abs(law.exponent - PAPER) <= 2 * law.error for law in known)
        yield phrases.capitalised(
            f"{at}, {AXES[axis]}: "
            + "".join(f"the largest relative spread in {format} {how} {', '.join(some)}; "
                      for how, some in trends.items())
            + f"{phrases.out_of(len(known), len(laws), 'fitted exponent')} "
              f"{phrases.verb(len(known), len(laws), 'has', 'have')} a standard error below {KNOWN}"
            + (f", and {near or 'none'} of these {phrases.verb(near, len(known))} within two standard "
               f"errors of {PAPER}, the √n of Shanmugavelu et al. 2024" if known else "") + ".")


def trend(law):
    """Whether an exponent differs from 0 by more than two standard errors, as the start of a sentence."""
    if abs(law.exponent) <= 2 * law.error:
        return "neither grows nor falls significantly with n, with exponent"
    return f"{'grows' if law.exponent > 0 else 'falls'} as a power of n with exponent"


# --- figures and tables -----------------------------------------------------------------------------------------

def figure(rows):
    menus = [("Machine", distinct(at for at, _ in rows)),
             ("Variation", [AXES[a] for a in AXES if any(r["axis"] == a for _, r in rows)]),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32"))]
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
            algorithm, format, _ = phrases.parts(method)
            name = algorithm if format == on[2] else f"{algorithm}/{format}"
            series.append(Series(method, [r["distinct_bits"]], [name],
                                 style.line(method, peers)[0], on,
                                 text=["1" if r["distinct_bits"] == 1 else results_text(r)]))
    found = with_several_bars(Figure(
        "spread-figure", "Number of different results of each method", menus, style.together(series),
        "bit patterns, most of all arrays", {None: ""}, bars=True,
        description="Each bar is a method, or several with one result; its colour shows the accumulator. Length: the "
                    "largest number of bit patterns for one array. Label: that number and, if it is above 1, in how "
                    "many runs."))
    found.finding = captions.describe_bars(found, lambda patterns: phrases.plural(patterns, "bit pattern"))
    return found


def results_text(r):
    return f"{r['distinct_bits']} in {phrases.plural(r['runs'], 'run')}"


def tables(rows):
    for at, found in group_by_place(rows).items():
        here = {}
        for r in found:
            algorithm, _, backend = phrases.parts(r["method"])
            here.setdefault((f"{algorithm}@{backend}", r["promise"]), []).append(r)
        axes = [a for a in AXES if any(r["axis"] == a for some in here.values() for r in some)]
        lines = sorted((table_row(*key, some, axes) for key, some in here.items()), key=lambda pair: pair[0],
                       reverse=True)
        yield Table(f"{at}: largest number of different results for one array, by what varied",
                    ["method", "promise"] + axes + ["largest spread, ulps"], [cells for _, cells in lines],
                    text_columns=2, folded=True)


def table_row(method, promise, rows, axes):
    by_axis = {a: max((r for r in rows if r["axis"] == a), key=lambda r: r["distinct_bits"], default=None)
               for a in axes}
    widest = max((r for r in rows if r["spread_ulps"] is not None), key=lambda r: r["spread_ulps"], default=None)
    cells = [results_text(r) if r else "" for r in by_axis.values()]
    most = max(r["distinct_bits"] for r in rows)
    return (most, method), [method, promise + (" (broken)" if any(r["broken"] for r in rows) else "")] + cells + [
        phrases.error_in_ulps(widest["spread_ulps"], phrases.parts(widest["method"])[1]) if widest else "-"]


def growth_figure(grown):
    menus = [("Machine", distinct(at for at, *_ in grown)),
             ("Variation", [AXES[a] for a in AXES if any(key[1] == a for key in grown)]),
             ("Element format", starting_with([key[2] for key in grown], "fp64")),
             ("Data", starting_with([key[3] for key in grown], "uniform"))]
    peers = style.peers_among(method for *_, method in grown)
    series = []
    for (at, axis, format, data, method), (points, law) in grown.items():
        colour, dash, symbol = style.line(method, peers)
        largest = {n: max(vs for m, vs in points if m == n) for n in sorted({n for n, vs in points if vs})}
        if not largest:
            continue
        on = (at, AXES[axis], format, data)
        name = phrases.parts(method)[0]
        series.append(Series(name, list(largest), list(largest.values()), colour, on, dash, symbol))
        if law:
            series.append(Series(f"fit of {name}", list(largest), [law.at(n) for n in largest], colour, on, faint=True,
                                 key="fitted power law"))
    found = Figure("growth-figure", "Largest relative spread between runs by length", menus, series,
                   "n, number of elements", {None: "largest relative spread"},
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of "
                               "elements. Vertical axis: largest relative spread (|Vs|). Dotted, in the colour of the line: the power "
                               "law fitted to all seeds.")
    found.finding = captions.describe_lines(found, lambda n: f"n = {phrases.count(n)}",
                                            lambda vs: phrases.number(vs, 2))
    return found


def growth_table(grown):
    return Table("Exponents of n for the growth of the largest relative spread (|Vs|), with standard errors (0.5 in "
                 "Shanmugavelu et al. 2024)",
                 ["method", "machine", "variation", "data", "exponent", "±", "largest relative spread"],
                 [[method, at, AXES[axis], data, f"{law.exponent:.2f}" if law else "-",
                   f"{law.error:.2f}" if law else "-", phrases.number(max(vs for _, vs in points), 2)]
                  for (at, axis, _, data, method), (points, law) in grown.items()], text_columns=4, folded=True)
