"""Section on the error of each sum against length, with rigorous and probable bounds."""

import math

import captions
import phrases
import style
from figure import Figure, Series
from results import HERE
from section import (SAME_EVERYWHERE, Check, Section, Table, bound_findings, distinct, exactness_findings, group_by_place,
                     place, result_failures, starting_with)

PROBABILITY = 0.99  # of `probable_bound` in the rows
PROBABLE = f"bound with probability {PROBABILITY}"
LOOP, TREE, EXACT = "serial/plain", "tree/plain", "exact"
THREE = "a loop, a tree and exact"  # the group of the methods of the verdict
RANKED = ["exact", "tree/kahan", "tree/plain", "pairwise/plain", "serial/plain"]
# The beginning of a sentence on data with a mark, and what the mark means.
MARKS = {"structure": ("structured data", "elements that are equal, sorted, in a pattern or made to cancel"),
         "stagnation": ("data whose sum may stagnate",
                        "elements of one sign, so many that an average element is at most u times the sum")}
COLUMNS = ["exact", "tree/double_word", "tree/neumaier", "tree/kahan", "tree/plain", "pairwise/plain", "serial/plain",
           "atomic/plain"]


def section(sources):
    s = Section("error", "Error against length", "How wrong is a sum of n numbers?",
                "Error of each method on synthetic data, by number of elements.",
                "build/release/bin/error_vs_length --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "unit roundoff", "bound", "probable bound",
                       "condition number"))
    rows, counted = ([(place(source, r), r | {"machine": source.place_of(r["method"])}) for source in sources
                      for r in source.of(kind)] for kind in ("error", "coverage"))
    of_verdict = cited([(source, r) for source in sources for r in source.of("error")])
    s.verdict = verdict(*of_verdict) if of_verdict else ""
    s.findings = list(findings(rows)) + list(probable_bound_findings([r for _, r in rows], [r for _, r in counted]))
    s.figures = [f for f in [figure(*first_view(rows, *of_verdict) if of_verdict else (rows, {}))] if f.series]
    s.tables = list(tables(rows)) + list(coverage_tables(counted))
    s.failures = list(bit_failures(rows)) + [
        f"{r['machine']}: {r['method']} on {r['data']}, n = {r['n']:,}: {why}"
        for some, failures in ((rows, result_failures), (counted, coverage_failures)) for _, r in some
        if not phrases.is_peer(r["method"]) for why in failures(r)]
    return s


def bit_failures(rows):
    for (_, _, data, _, n, _), some in results_in_several_places(r for _, r in rows).items():
        if different(some):
            yield f"{phrases.names(different(some))}: different bits in different places on {data}, n = {n:,}"


def coverage_failures(r):
    if r["beyond_bound"]:
        yield f"{phrases.out_of(r['beyond_bound'], r['seeds'])} errors exceed their bounds"
    if r["covered"] is not None and r["covered"] < r["probability"] and r["marked"] is None:
        yield f"the probable bound at {r['probability']} covers {percent(r['covered'])} of the errors"


# --- sentences --------------------------------------------------------------------------------------------------

def cited(rows):
    """The length, the rows and the data of the verdict: the loop, the tree and exact in fp32, at the greatest length at
    which a machine, this one if possible, measured all three on the same data; None if none did. `rows` are pairs
    (source, row)."""
    by_place = {}
    for source, r in rows:
        algorithm, format, _ = phrases.parts(r["method"])
        if algorithm in (LOOP, TREE, EXACT) and format == r["input_format"] == "fp32":
            at = by_place.setdefault((r["n"], source.machine), {})
            at.setdefault(algorithm, {}).setdefault(r["data"], []).append((source, r))
    common = {at: set.intersection(*map(set, errors.values())) for at, errors in by_place.items() if len(errors) == 3}
    common = {at: data for at, data in common.items() if data}
    if not common:
        return None
    n, machine = max(common, key=lambda at: (at[1] == HERE, at[0]))
    return n, by_place[n, machine], sorted(common[n, machine])


def verdict(n, found, data):
    """Errors of the loop, the tree and exact. `found` has pairs (source, row) by algorithm and data."""
    loop, tree, exact = (phrases.middle([max(math.inf if r["error_ulps"] is None else r["error_ulps"]
                                             for _, r in found[algorithm][d]) for d in data], error_text)
                         for algorithm in (LOOP, TREE, EXACT))
    places = distinct(source.place_of(r["method"]) for some in found.values() for d in data for source, r in some[d])
    stagnates = [d for d in data if any(r.get("marked") == "stagnation" for _, r in found[LOOP][d])]
    which = (f"medians over {phrases.plural(len(data), 'data set')}" if len(data) >= phrases.FEWEST else
             f"data: {phrases.listed(data)}" + f"; the loop may stagnate on {phrases.listed(stagnates)}" * bool(stagnates))
    return (f"For {phrases.count(n)} fp32 number{'s' * (n != 1)}, the error in ulps is {loop} with a plain loop, {tree} "
            f"with a tree of plain additions and {exact} with the exact sum ({' and '.join(places)}, {which}).")


def error_text(error):
    return phrases.error_in_ulps(error, "fp32") if math.isfinite(error) else "infinite"


def row_names(rows):
    return phrases.names(f"{r['method']} on {r['data']} at n = {phrases.count(r['n'])} ({r['machine']})" for r in rows)


def results_in_several_places(rows):
    """Groups of results for the same elements on several machines or on CPU and GPU that must have the same bits."""
    same = {}
    for r in rows:
        if r["promise"] in SAME_EVERYWHERE:
            key = (r["method"].split("@")[0], r["input_format"], r["data"], r["seed"], r["n"], r["truth_bits"])
            same.setdefault(key, []).append(r)
    return {key: some for key, some in same.items() if len(some) > 1}


def different(some):
    """The methods of a group, if their bits differ."""
    return [r["method"] for r in some] if len({r["bits"] for r in some}) > 1 else []


def findings(all_rows):
    rows = [r for _, r in all_rows]
    ours, peers = [[r for r in rows if phrases.is_peer(r["method"]) == which] for which in (False, True)]
    yield from bound_findings(ours, "samesum's methods", "their rigorous bounds", row_names)
    for describe in (ranking, growth):
        yield from captions.sentences_by_place(all_rows, describe)
    yield from exactness_findings(rows)
    groups = results_in_several_places(rows)
    if groups:
        unlike = [r for some in groups.values() if different(some) for r in some]
        equal = sum(not different(some) for some in groups.values())
        yield Check(f"{phrases.capitalised(phrases.out_of(equal, len(groups), 'sum'))} with a promise of the same bits "
                    "everywhere that ran in more than one place (machine, CPU or GPU) had the same bits in each"
                    + (f"; exceptions: {row_names(unlike)}." if unlike else "."),
                    equal, len(groups), "sum with the same bits in each place", "sums with the same bits in each place")
    yield from ratio_finding(ours)
    # Other libraries promise no bound, so this is no check of samesum.
    whose = phrases.peers_in_words((r["method"] for r in peers), many=True)
    yield from map(str, bound_findings(peers, whose, "the bound that holds for every order of additions", row_names))


def ratio_finding(rows):
    """Yields a sentence on bounds over errors: of TREE by data set, at the length with most of them, and the smallest of
    all methods."""
    bounded = [(r["bound"] / r["absolute_error"], r) for r in rows
               if phrases.accumulator(r["method"]) != "exact" and r["bound"] and r["absolute_error"]]
    if not bounded:
        return
    by_length = {}
    for ratio, r in bounded:
        algorithm, format, _ = phrases.parts(r["method"])
        if algorithm == TREE and format == r["input_format"] == "fp32":
            by_length.setdefault(r["n"], {}).setdefault(r["data"], ratio)
    text = ""
    if by_length:
        n = max(by_length, key=lambda n: (len(by_length[n]), n))
        ends = distinct(pick((ratio, data) for data, ratio in by_length[n].items()) for pick in (min, max))
        text = (f"The bound of {TREE} in fp32 at n = {phrases.count(n)} is "
                + " to ".join(f"{phrases.number(ratio, 2)} ({data})" for ratio, data in ends) + " times the error; ")
    least = min(ratio for ratio, _ in bounded)
    yield phrases.capitalised(f"{text}the smallest ratio of bound to error is {phrases.number_pair(least, 1, 3)[0]}, for "
                              f"{row_names([r for ratio, r in bounded if ratio == least])}.")


def has_bound(counted):
    """Whether theory gives a finite probable bound for at least one of the arrays."""
    return counted["covered"] is not None and counted["median_share"] is not None


def percent(share):
    """A percentage that is rounded down, so that only a share of 1 is 100%."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g}%"


def probable_bound_findings(rows, counted):
    known = [r for r in rows if r.get("probable_bound") is not None and not phrases.is_peer(r["method"])]
    bounded = [r for r in known if r.get("marked") is None]
    if bounded:
        beyond = [r for r in bounded if beyond_probable(r)]
        smaller = [r["probable_bound"] / r["bound"] for r in bounded if r["bound"] and r["probable_bound"] < r["bound"]]
        alone = sum(r["bound"] is None for r in bounded)
        yield (f"The probable bound, which holds with probability {PROBABILITY} if rounding errors have mean 0, covers "
               f"{phrases.out_of(len(bounded) - len(beyond), len(bounded), 'error')} on random elements"
               + (f"; where it is smaller than the rigorous bound ({phrases.plural(len(smaller), 'error')}), the "
                  f"median ratio of the two is {phrases.number(phrases.median(smaller), 2)}" if smaller else "")
               + (f"; it is the only finite bound for {phrases.plural(alone, 'error')}" if alone else "")
               + beyond_text(beyond))
    yield from marked_findings([r for r in known if r.get("marked")])
    none = [r for r in counted if not has_bound(r)]
    if none:
        yield (f"In {phrases.out_of(len(none), len(counted), 'case')} the probable bound is infinite for every array, "
               f"for example {row_names(none[:1])}. A case is one method on many random arrays.")
    counted = [r for r in counted if has_bound(r)]
    ordinary = [r for r in counted if r["marked"] is None]
    for p in sorted({r["probability"] for r in ordinary}):
        some = [r for r in ordinary if r["probability"] == p]
        kept = sum(r["covered"] >= p for r in some)
        worst = min(some, key=lambda r: r["covered"])
        share = phrases.median([r["median_share"] for r in some])
        all_covered = worst["covered"] == 1
        yield (f"The bound for probability {p} covers "
               + ("all errors" if all_covered else f"at least {percent(p)} of the errors")
               + f" in {phrases.out_of(kept, len(some), 'case')} (a case is one method on many random arrays); "
               + ("" if all_covered else f"the lowest coverage is {percent(worst['covered'])} of {worst['seeds']:,} "
                  f"arrays, for {row_names([worst])}; ")
               + f"the median ratio of error to bound is {phrases.number(share, 2)}.")
    for mark, (data, _) in MARKS.items():
        some = [r for r in counted if r["marked"] == mark]
        if some:
            worst = min(some, key=lambda r: r["covered"])
            yield (f"In {phrases.plural(len(some), 'case')} with {data} "
                   f"({phrases.names(r['method'].split('@')[0] + ' on ' + r['data'] for r in some)}), the assumption of "
                   f"the probable bound may fail; the lowest coverage is {percent(worst['covered'])}, for "
                   f"{row_names([worst])} at probability {worst['probability']}.")


def beyond_text(beyond):
    """End of a sentence on a probable bound: names the data of errors beyond it and the longest such sum."""
    if not beyond:
        return "."
    return (f"; the errors beyond it are on {phrases.names(r['data'] for r in beyond)}, for example "
            f"{row_names([max(beyond, key=lambda r: r['n'])])}.")


def beyond_probable(r):
    return r["absolute_error"] is None or r["absolute_error"] > r["probable_bound"]


def marked_findings(rows):
    """Sentences on data for which the assumption of the probable bound may fail, by mark."""
    for mark, (data, meaning) in MARKS.items():
        some = [r for r in rows if r["marked"] == mark]
        if not some:
            continue
        beyond = [r for r in some if beyond_probable(r)]
        yield (f"On {data} ({meaning}: {phrases.names(r['data'] for r in some)}) the assumption of the probable bound "
               f"may fail. It covers {phrases.out_of(len(some) - len(beyond), len(some), 'error')}"
               + beyond_text(beyond))


def medians(rows, n):
    """Median error in ulps over all data sets of length n, by (order and accumulator, whether it is a peer); of fewer than
    phrases.FEWEST data sets the largest error. The second result is the number of data sets.

    Only methods that were measured on every data set are included. An error of null counts as infinite, so the median
    is finite if fewer than half of the errors are null.
    """
    data = {r["data"] for r in rows if r["n"] == n}
    by_algorithm = {}
    for r in rows:
        if r["n"] == n:
            key = (phrases.parts(r["method"])[0], phrases.is_peer(r["method"]))
            by_algorithm.setdefault(key, {})[r["data"]] = math.inf if r["error_ulps"] is None else r["error_ulps"]
    complete = {key: errors.values() for key, errors in by_algorithm.items() if len(errors) == len(data)}
    middle = max if len(data) < phrases.FEWEST else phrases.median
    return {key: middle(errors) for key, errors in complete.items()}, len(data)


def word(data):
    """What medians(rows, n) are, of so many data sets."""
    return "largest" if data < phrases.FEWEST else "median"


def common_lengths(rows):
    """The lengths at which the largest number of algorithms was measured."""
    algorithms = {}
    for r in rows:
        algorithms.setdefault(r["n"], set()).add(phrases.parts(r["method"])[0])
    most = max(map(len, algorithms.values()), default=0)
    return sorted(n for n, found in algorithms.items() if len(found) == most)


def in_one_format(rows):
    """The format of the findings, and the rows whose method and elements have it."""
    format = next(iter(starting_with([r["input_format"] for r in rows], "fp32")), "fp32")
    return format, [r for r in rows if r["input_format"] == phrases.parts(r["method"])[1] == format]


def ranking(rows):
    """Median errors of the best and the worst methods, and of those of samesum's in RANKED."""
    format, rows = in_one_format(rows)
    for n in common_lengths(rows)[-1:]:
        errors, data = medians(rows, n)
        ours, others = [sorted((error, algorithm) for (algorithm, peer), error in errors.items() if peer == which)
                        for which in (False, True)]
        if len(ours) > 1:
            peers = phrases.peers_in_words((r["method"] for r in rows), many=True)
            shown = [pair for pair in ours if pair[1] in RANKED or pair in (ours[0], ours[-1])]
            yield (f"{word(data)} errors in {format} at n = {phrases.count(n)} over {phrases.plural(data, 'data set')}, in "
                   f"ulps, of samesum's {len(ours)} methods: {best_to_worst(shown)}"
                   + (f"; of {len(others)} calls of {peers}: {best_to_worst([others[0], others[-1]])}."
                      if len(others) > 1 else "."))


def best_to_worst(pairs):
    items = [f"{ulps(error)} for {method}" for error, method in pairs]
    return ", ".join([f"{items[0]} (best)", *items[1:-1], f"{items[-1]} (worst)"])


def ulps(error):
    return phrases.number(error, 2) if math.isfinite(error) else "not finite"


def growth(rows):
    """Growth of the errors with n on the data sets of both lengths, except for exact, whose error is at most half an ulp for
    every n."""
    format, rows = in_one_format(rows)
    lengths = [n for n in common_lengths(rows) if n >= 1024]
    if len(lengths) < 2:
        return
    both = set.intersection(*({r["data"] for r in rows if r["n"] == n} for n in (lengths[0], lengths[-1])))
    rows = [r for r in rows if r["data"] in both]
    (before, _), (after, data) = medians(rows, lengths[0]), medians(rows, lengths[-1])
    grown = sorted(((after[algorithm, False] / before[algorithm, False], algorithm) for algorithm in RANKED
                    if algorithm != "exact" and 0 < before.get((algorithm, False), 0) < math.inf
                    and (algorithm, False) in after),
                   reverse=True)
    if grown:
        yield (f"from n = {phrases.count(lengths[0])} to n = {phrases.count(lengths[-1])}, the {word(data)} error on "
               f"{phrases.plural(data, 'data set')} in {format} grows "
               + ", ".join(f"{phrases.number(factor, 2)}-fold for {algorithm}" if math.isfinite(factor) else
                           f"to infinity for {algorithm}" for factor, algorithm in grown) + ".")


# --- figure and tables ------------------------------------------------------------------------------------------

def first_view(rows, n, found, data):
    """The rows of the figure, and its initial choices, which show the methods of the verdict on one of its data sets.

    If a machine measured these in several places, such as its CPU and its GPU, these are one more choice together."""
    of_method = {}  # the places that have the method on these data, by algorithm
    for algorithm in (LOOP, TREE, EXACT):
        pairs = [pair for d in data for pair in found[algorithm][d]]
        of_method[algorithm] = distinct((place(source, r), r["method"]) for source, r in pairs)
    alone = [at for at, _ in of_method[LOOP] if all(at in dict(some) for some in of_method.values())]
    chosen = {"Machine": alone[0] if alone else "", "Methods": THREE, "Data": starting_with(data, "normal")[0]}
    if not alone:
        lines = [some[0] for some in of_method.values()]
        chosen["Machine"] = " and ".join(distinct(at for at, _ in lines))
        rows = rows + [(chosen["Machine"], r) for at, r in rows
                       if (at, r["method"]) in lines and r["input_format"] == "fp32"]
    return rows, chosen


def figure(rows, initial):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("Machine", distinct(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32")),
             ("Data", starting_with([r["data"] for _, r in rows], "normal")),
             ("Methods", [THREE] * (THREE in initial.values()) + style.all_groups(methods)),
             ("Error", ["in ulps", "relative"])]
    lines = {}
    for at, r in rows:
        if r["n"]:
            lines.setdefault((at, r["input_format"], r["data"], r["method"]), []).append(r)
    series = []
    for (at, input, data, method), points in lines.items():
        algorithm, format, _ = phrases.parts(method)
        name = algorithm if format == input else f"{algorithm}/{format}"
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["n"])
        for group in style.groups(method) + [THREE] * (THREE in initial.values() and algorithm in (LOOP, TREE)):
            for measure, errors, in_measure in (
                    ("in ulps", [r["error_ulps"] for r in points], bound_ulps),
                    ("relative", [r["relative_error"] for r in points], bound_relative)):
                on = (at, input, data, group, measure)
                x = [r["n"] for r in points]
                series.append(Series(name, x, errors, colour, on, dash, symbol))
                for which, what, dash_of_bound, key in (
                        ("bound", "bound", "dot", "rigorous bound"),
                        ("probable_bound", "probable bound", "dash", PROBABLE)):
                    bounds = [in_measure(r, which) for r in points]
                    if not phrases.is_peer(method) and any(bounds) and (which == "bound" or differs(points)):
                        series.append(Series(f"{what} of {name}", x, bounds, colour, on, dash_of_bound, faint=True,
                                             key=key))
    found = Figure("error-figure", "Error of each method by length", menus, series, "n, number of elements",
                   {None: "error, ulps", "relative": "relative error"}, initial=initial,
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of "
                               "elements. Vertical axis: error against the exact sum. Dotted, in the colour of the "
                               "line: the rigorous bound. Dashed, where theory gives one: the bound that holds "
                               f"with probability {PROBABILITY} if rounding errors have mean 0, which equal or "
                               "structured elements violate.")
    found.finding = captions.describe_lines(found, lambda n: f"n = {phrases.count(n)}", phrases.ulps)
    return found


def bound_ulps(r, which):
    """The bound in ulps; None if the sum is 0, whose ulp is that of the subnormal numbers."""
    if r.get(which) is None or not r["truth"]:
        return None
    return finite(r[which] / phrases.ulp(phrases.parts(r["method"])[1], r["truth"]))


def bound_relative(r, which):
    return finite(r[which] / abs(r["truth"])) if r.get(which) is not None and r["truth"] else None


def differs(points):
    """Whether the probable bound differs from the rigorous one at a point."""
    return any(r.get("probable_bound") != r["bound"] for r in points)


def finite(x):
    return x if math.isfinite(x) else None


def tables(rows):
    """Yields a table per place and format; report.md has only the first."""
    first = rows[0][0] if rows else None
    several = False
    for at, format in starting_with([(at, r["input_format"]) for at, r in rows], (first, "fp32")):
        same = [r for a, r in rows if a == at and r["input_format"] == phrases.parts(r["method"])[1] == format]
        if not same:
            continue
        n = common_lengths(same)[-1]
        at_n = [r for r in same if r["n"] == n]
        methods = [r["method"] for r in at_n]
        columns = [c for c in COLUMNS if any(phrases.parts(m)[0] == c for m in methods)] + style.peers_among(methods)
        cells = {(r["data"], phrases.parts(r["method"])[0]): r for r in at_n}
        lines = []
        for data in distinct(r["data"] for r in at_n):
            condition = next(r["condition"] for r in at_n if r["data"] == data)
            lines.append([data, phrases.number(condition, 2)] + [cell(cells.get((data, c))) for c in columns])
        yield Table(f"{at}: errors in ulps of {format} at n = {phrases.count(n)}",
                    ["data", "condition number"] + columns, lines, folded=several, page_only=several)
        several = True


def coverage_tables(counted):
    """Yields a table per place with a row per data set, format, length and mark."""
    for at, rows in group_by_place(counted).items():
        here = {}
        for r in rows:
            here.setdefault((r["data"], r["input_format"], r["n"], r["marked"]), []).append(r)
        levels = sorted({r["probability"] for some in here.values() for r in some})
        lines = []
        for (data, format, n, mark), some in here.items():
            at_level = {p: [r["covered"] for r in some if r["probability"] == p and r["covered"] is not None]
                        for p in levels}
            shares = [r["median_share"] for r in some if r["median_share"] is not None]
            lines.append([data + (f" ({MARKS[mark][0]})" if mark else ""), format, phrases.count(n),
                          str(len({r["method"] for r in some})), f"{some[0]['seeds']:,}"]
                         + [percent(min(covered)) if covered else "" for covered in at_level.values()]
                         + [phrases.number(phrases.median(shares), 2) if shares else "-"])
        yield Table(f"{at}: how often the probable bound holds", ["data", "format", "n", "methods", "arrays"]
                    + [f"lowest coverage at {p}" for p in levels] + ["median error / bound"], lines,
                    text_columns=2, folded=True)


def cell(r):
    if r is None:
        return ""
    if r["error_ulps"] is None:
        return "not finite"
    return phrases.error_in_ulps(r["error_ulps"], phrases.parts(r["method"])[1])
