"""How wrong is each sum, for arrays of every length?"""

import math

import style
import telling
import words
from figure import Figure, Series
from section import (SAME_EVERYWHERE, Section, Table, broken, by_place, distinct, exactness, place, preferred,
                     within)

PROBABILITY = 0.99  # of `probable_bound` in the rows
LEAST_ULPS = 1e-3  # errors below this are drawn here: a logarithm has no place for 0
RANKED = ["exact", "tree/kahan", "tree/plain", "pairwise/plain", "serial/plain"]
MARKS = {"structure": "elements equal, sorted, in a pattern or made to cancel",
         "stagnation": "of one sign, so long that an average element adds at most a unit roundoff of the sum"}
COLUMNS = ["exact", "tree/double_word", "tree/neumaier", "tree/kahan", "tree/plain", "pairwise/plain", "serial/plain",
           "atomic/plain"]


def section(sources):
    s = Section("error", "Error against length", "The error of each sum on made data of every length.",
                "build/release/bin/error_vs_length --full --out build/study")
    rows, counted = ([(place(source.machine, r), r | {"machine": source.machine}) for source in sources
                      for r in source.of(kind)] for kind in ("error", "coverage"))
    s.findings = list(findings(rows)) + list(of_probable_bounds([r for _, r in rows], [r for _, r in counted]))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows)) + list(coverage_tables(counted))
    s.failures = list(unlike_elsewhere(rows)) + [
        f"{r['machine']}: {r['method']} on {r['data']}, n = {r['n']:,}: {why}"
        for some, wrong in ((rows, broken), (counted, not_covered)) for _, r in some
        if not words.is_peer(r["method"]) for why in wrong(r)]
    return s


def unlike_elsewhere(rows):
    for (_, _, data, _, n, _), some in told_twice(r for _, r in rows).items():
        if different(some):
            yield f"{words.names(different(some))}: not the same bits in every place, on {data}, n = {n:,}"


def not_covered(r):
    if r["beyond_bound"]:
        yield f"{words.of(r['beyond_bound'], r['seeds'])} errors exceed their bounds"
    if r["covered"] is not None and r["covered"] < r["probability"] and r["marked"] is None:
        yield f"the probable bound at {r['probability']} covers {percent(r['covered'])} of the errors"


# --- sentences --------------------------------------------------------------------------------------------------

def where(rows):
    return words.names([f"{r['method']} on {r['data']} at n = {words.count(r['n'])} ({r['machine']})" for r in rows])


def told_twice(rows):
    """Sums that ought to have the same bits, of the same elements in more than one place: machines, CPU and GPU."""
    same = {}
    for r in rows:
        if r["promise"] in SAME_EVERYWHERE:
            key = (r["method"].split("@")[0], r["input_format"], r["data"], r["seed"], r["n"], r["truth_bits"])
            same.setdefault(key, []).append(r)
    return {key: some for key, some in same.items() if len(some) > 1}


def different(some):
    return [r["method"] for r in some] if len({r["bits"] for r in some}) > 1 else []


def findings(all_rows):
    rows = [r for _, r in all_rows]
    ours, peers = [[r for r in rows if words.is_peer(r["method"]) == which] for which in (False, True)]
    yield from within(ours, "samesum's methods", "their rigorous bounds", where)
    for about in (ranking, growth):
        yield from telling.of_each_place(all_rows, about)
    yield from exactness(rows)
    twice = told_twice(rows)
    if twice:
        unlike = [r for some in twice.values() if different(some) for r in some]
        equal = sum(not different(some) for some in twice.values())
        yield (f"{words.sentence(words.of(equal, len(twice), 'sum'))} with a promise of the same bits everywhere, "
               "asked for in more than one place (machines, CPU and GPU), had the same bits in each"
               + (f"; not {where(unlike)}." if unlike else "."))
    bounded = [(r["bound"] / r["absolute_error"], r) for r in ours
               if words.accumulator(r["method"]) != "exact" and r["bound"] and r["absolute_error"]]
    if bounded:
        least, closest = min(bounded, key=lambda pair: pair[0])
        yield (f"The bounds are {words.number(words.median([b for b, _ in bounded]))} times the error at the median; "
               f"the closest is {words.number(least)} times, of {where([closest])}.")
    yield from within(peers, "other libraries", "the bound of a sum in any order", where)


def has_bound(counted):
    """Whether theory gives a finite probable bound for any of the arrays."""
    return counted["covered"] is not None and counted["median_share"] is not None


def percent(share):
    """Never 100% for less than all."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g}%"


def of_probable_bounds(rows, counted):
    known = [r for r in rows if r.get("probable_bound") is not None and not words.is_peer(r["method"])]
    bounded = [r for r in known if r.get("marked") is None]
    if bounded:
        beyond = [r for r in bounded if beyond_probable(r)]
        smaller = [r["probable_bound"] / r["bound"] for r in bounded if r["bound"] and r["probable_bound"] < r["bound"]]
        alone = sum(r["bound"] is None for r in bounded)
        yield (f"The bound that holds with a probability of {PROBABILITY} if roundings have mean 0 covers "
               f"{words.of(len(bounded) - len(beyond), len(bounded), 'error')} of random elements"
               + (f"; it is {words.number(words.median(smaller), 2)} of the rigorous one at the median of the "
                  f"{len(smaller):,} where it is less" if smaller else "")
               + (f", and is the only one for {alone:,}" if alone else "")
               + (f"; beyond it are sums of {words.names(r['data'] for r in beyond)}, "
                  f"as {where([max(beyond, key=lambda r: r['n'])])}." if beyond else "."))
    yield from of_marked([r for r in known if r.get("marked")])
    none = [r for r in counted if not has_bound(r)]
    if none:
        yield (f"No array had a finite probable bound in {words.of(len(none), len(counted), 'case')}, "
               f"as {where(none[:1])}: there is nothing to cover.")
    counted = [r for r in counted if has_bound(r)]
    ordinary = [r for r in counted if r["marked"] is None]
    for p in sorted({r["probability"] for r in ordinary}):
        some = [r for r in ordinary if r["probability"] == p]
        kept = sum(r["covered"] >= p for r in some)
        worst = min(some, key=lambda r: r["covered"])
        share = words.median([r["median_share"] for r in some])
        yield (f"The bound of probability {p} covers at least its {percent(p)} of the errors in "
               f"{words.of(kept, len(some), 'case')} (a method on so many random arrays); the least is "
               f"{percent(worst['covered'])} of {worst['seeds']:,}, of {where([worst])}; at the median the error is "
               f"{words.number(share, 2)} of the bound.")
    for mark in MARKS:
        some = [r for r in counted if r["marked"] == mark]
        if some:
            worst = min(some, key=lambda r: r["covered"])
            yield (f"{words.plural(len(some), 'case')} {'is' if len(some) == 1 else 'are'} marked for {mark}, where it "
                   f"promises nothing ({words.names(r['method'].split('@')[0] + ' on ' + r['data'] for r in some)}): "
                   f"of these the least coverage is {percent(worst['covered'])}, of {where([worst])} at probability "
                   f"{worst['probability']}.")


def beyond_probable(r):
    return r["absolute_error"] is None or r["absolute_error"] > r["probable_bound"]


def of_marked(rows):
    """Where the premise of the probable bound fails, by how the data are made."""
    for mark, what in MARKS.items():
        some = [r for r in rows if r["marked"] == mark]
        if not some:
            continue
        beyond = [r for r in some if beyond_probable(r)]
        yield (f"Marked for {mark} ({what}: {words.names(r['data'] for r in some)}) before anything was summed, where "
               f"roundings need not have mean 0 and that bound promises nothing: it holds for "
               f"{words.of(len(some) - len(beyond), len(some), 'error')}"
               + (f"; beyond it are sums of {words.names(r['data'] for r in beyond)}, "
                  f"as {where([max(beyond, key=lambda r: r['n'])])}." if beyond else "."))


def medians(rows, n):
    """The median over the data sets of the error in ulps, by method, of those that were tried on all of them; whether
    it is a peer goes with it. An error that is no number (null) is as large as can be: the median is a number all
    the same where less than half of them are."""
    data = {r["data"] for r in rows if r["n"] == n}
    by_recipe = {}
    for r in rows:
        if r["n"] == n:
            key = (words.parts(r["method"])[0], words.is_peer(r["method"]))
            by_recipe.setdefault(key, {})[r["data"]] = math.inf if r["error_ulps"] is None else r["error_ulps"]
    complete = {key: errors.values() for key, errors in by_recipe.items() if len(errors) == len(data)}
    return {key: words.median(errors) for key, errors in complete.items()}, len(data)


def common_lengths(rows):
    """The lengths that most recipes were asked for."""
    recipes = {}
    for r in rows:
        recipes.setdefault(r["n"], set()).add(words.parts(r["method"])[0])
    most = max(map(len, recipes.values()), default=0)
    return sorted(n for n, found in recipes.items() if len(found) == most)


def in_one_format(rows):
    """The format that is spoken of, and the rows of methods that have it and get elements of it."""
    format = preferred([r["input_format"] for r in rows], "fp32")[0]
    return format, [r for r in rows if r["input_format"] == words.parts(r["method"])[1] == format]


def ranking(rows):
    """The best and the worst of all methods, and of samesum's those that a reader asks for first."""
    format, rows = in_one_format(rows)
    for n in common_lengths(rows)[-1:]:
        errors, data = medians(rows, n)
        ours, others = [sorted((error, recipe) for (recipe, peer), error in errors.items() if peer == which)
                        for which in (False, True)]
        if len(ours) > 1:
            told = [pair for pair in ours if pair[1] in RANKED or pair in (ours[0], ours[-1])]
            yield (f"in {format} at n = {words.count(n)} the median error over {words.plural(data, 'data set')} is, in "
                   f"ulps, of samesum's {len(ours)} methods {best_to_worst(told)}"
                   + (f"; of {len(others)} other libraries {best_to_worst([others[0], others[-1]])}."
                      if len(others) > 1 else "."))


def best_to_worst(pairs):
    told = [f"{ulps(error)} for {method}" for error, method in pairs]
    return ", ".join([f"{told[0]} (the best)", *told[1:-1], f"{told[-1]} (the worst)"])


def ulps(error):
    return words.number(error, 2) if math.isfinite(error) else "not finite"


def growth(rows):
    """How the errors grow; that of exact is below half a unit for any n."""
    format, rows = in_one_format(rows)
    lengths = [n for n in common_lengths(rows) if n >= 1024]
    if len(lengths) < 2:
        return
    (before, _), (after, _) = medians(rows, lengths[0]), medians(rows, lengths[-1])
    grown = sorted(((after[recipe, False] / before[recipe, False], recipe) for recipe in RANKED
                    if recipe != "exact" and 0 < before.get((recipe, False), 0) < math.inf
                    and (recipe, False) in after),
                   reverse=True)
    if grown:
        yield (f"from n = {words.count(lengths[0])} to {words.count(lengths[-1])} the median error in {format} became "
               + ", ".join(f"{words.number(factor, 2)} times as large for {recipe}" if math.isfinite(factor) else
                           f"not finite for {recipe}" for factor, recipe in grown) + ".")


# --- the figure and the tables ----------------------------------------------------------------------------------

def figure(rows):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("On", distinct(at for at, _ in rows)),
             ("Elements", preferred([r["input_format"] for _, r in rows], "fp32")),
             ("Data", preferred([r["data"] for _, r in rows], "normal")),
             ("Show", style.all_groups(methods)),
             ("Error", ["in ulps", "relative"])]
    lines = {}
    for at, r in rows:
        if r["n"]:
            lines.setdefault((at, r["input_format"], r["data"], r["method"]), []).append(r)
    series = []
    for (at, input, data, method), points in lines.items():
        recipe, format, _ = words.parts(method)
        name = recipe if format == input else f"{recipe}/{format}"
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["n"])
        least_relative = LEAST_ULPS * 2.0 ** -words.FORMAT_BITS[format][0]
        for group in style.groups(method):
            for measure, errors, in_measure in (
                    ("in ulps", [at_least(r["error_ulps"], LEAST_ULPS) for r in points], bound_ulps),
                    ("relative", [at_least(r["relative_error"], least_relative) for r in points], bound_relative)):
                on = (at, input, data, group, measure)
                x = [r["n"] for r in points]
                series.append(Series(name, x, errors, colour, on, dash, symbol))
                for which, what in (("bound", "bound"), ("probable_bound", "probable bound")):
                    bounds = [in_measure(r, which) for r in points]
                    if not words.is_peer(method) and any(bounds) and (which == "bound" or differs(points)):
                        series.append(Series(f"{what} of {name}", x, bounds, colour, on, faint=True))
    found = Figure("error-figure", "The error of each sum, by length", menus, series, "n, elements",
                   {None: "error, ulps of the sum", "relative": "error, relative to the exact sum"},
                   note="Dotted: the rigorous bound of the line of its colour, and below it, where theory gives one, "
                        f"the bound that holds with a probability of {PROBABILITY} if roundings have mean 0; equal or "
                        f"structured elements break that. Errors below {LEAST_ULPS} ulps, also 0, are drawn as that.")
    found.reading = telling.reads_lines(found, lambda n: f"n = {words.count(n)}", drawn_error)
    return found


def drawn_error(error):
    return f"{words.number(error, 2)} ulps" if error > LEAST_ULPS else f"{LEAST_ULPS} ulps or less"


def at_least(error, least):
    return None if error is None else max(error, least)


def bound_ulps(r, which):
    """Nothing where the sum is 0, the unit of which is that of the subnormal numbers."""
    if r.get(which) is None or not r["truth"]:
        return None
    return finite(r[which] / words.ulp(words.parts(r["method"])[1], r["truth"]))


def bound_relative(r, which):
    return finite(r[which] / abs(r["truth"])) if r.get(which) is not None and r["truth"] else None


def differs(points):
    """Whether the probable bound is another line."""
    return any(r.get("probable_bound") != r["bound"] for r in points)


def finite(x):
    return x if math.isfinite(x) else None


def tables(rows):
    """A table a place and format; a pull request has room for the first alone."""
    first = rows[0][0] if rows else None
    several = False
    for at, format in preferred([(at, r["input_format"]) for at, r in rows], (first, "fp32")):
        same = [r for a, r in rows if a == at and r["input_format"] == words.parts(r["method"])[1] == format]
        if not same:
            continue
        n = common_lengths(same)[-1]
        at_n = [r for r in same if r["n"] == n]
        methods = [r["method"] for r in at_n]
        columns = [c for c in COLUMNS if any(words.parts(m)[0] == c for m in methods)] + style.peers_among(methods)
        cells = {(r["data"], words.parts(r["method"])[0]): r for r in at_n}
        lines = []
        for data in distinct(r["data"] for r in at_n):
            condition = next(r["condition"] for r in at_n if r["data"] == data)
            lines.append([data, words.number(condition, 2)] + [cell(cells.get((data, c))) for c in columns])
        yield Table(f"{at}: errors in ulps of {format} at n = {words.count(n)}", ["data", "condition"] + columns, lines,
                    folded=several, page_only=several)
        several = True


def coverage_tables(counted):
    """A line a data set, format and length, and what was marked apart."""
    for at, rows in by_place(counted).items():
        here = {}
        for r in rows:
            here.setdefault((r["data"], r["input_format"], r["n"], r["marked"]), []).append(r)
        levels = sorted({r["probability"] for some in here.values() for r in some})
        lines = []
        for (data, format, n, mark), some in here.items():
            at_level = {p: [r["covered"] for r in some if r["probability"] == p and r["covered"] is not None]
                        for p in levels}
            shares = [r["median_share"] for r in some if r["median_share"] is not None]
            lines.append([data + (f", marked for {mark}" if mark else ""), format, words.count(n),
                          str(len({r["method"] for r in some})), f"{some[0]['seeds']:,}"]
                         + [percent(min(covered)) if covered else "" for covered in at_level.values()]
                         + [words.number(words.median(shares), 2) if shares else "-"])
        yield Table(f"{at}: how often the probable bound holds", ["data", "format", "n", "methods", "arrays"]
                    + [f"least at {p}" for p in levels] + ["error over bound, median"], lines, words=2, folded=True)


def cell(r):
    if r is None:
        return ""
    if r["error_ulps"] is None:
        return "not finite"
    return words.number(r["error_ulps"], 2)
