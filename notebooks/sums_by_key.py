"""Section on sums by key: their errors, whether their bits repeat, and their speed against what people use."""

import math

import by_data
import captions
import phrases
import style
import timing
from by_data import data_of
from figure import Figure, Series
from result_arrays import (CEILINGS, algorithm, bounds_finding, by_place, ceiling, cells, error_failures,
                           fastest_promised, is_ours, is_repeatable, largest_errors, number_range, ratio, repeat_failures,
                           repeats_finding, short_name, speed_failures)
from section import (Section, Table, declined_findings, distinct, group_by_place, preferred, rows_with_place,
                     side_by_side, starting_with)
from timing import fastest

SUM = "scatter_add"
NAMED = ["serial/plain", "fixed_point", "exact"]  # methods whose errors a sentence compares
QUANTITIES = {"speed": "GB/s of elements and keys", "error": "largest error, ulps"}
# Targets relative to PyTorch, for the rows of torch_speed.py: (fewest and most keys, elements of a row, method of samesum or
# "" for the fastest, factor) for each of its modes.
TORCH = {"torch/index_add": [(2**15, 2**16, 1, "fixed_point", 1 / 0.6), (2**17, 2**23, 1, "fixed_point", 1 / 0.7),
                             (2**24, 2**26, 1, "fixed_point", 1 / 0.5), (1, 2**20, 128, "", 1)],
         "torch/index_add_deterministic": [(1, 2**20, 1, "fixed_point", 20), (2**24, 2**24, 1, "fixed_point", 18),
                                           (1, 2**24, 1, "exact", 12), (1, 2**20, 128, "", 1)]}


def section(sources):
    s = Section("by-key", "Sums by key", "Can sums by key be repeatable and fast?",
                "Elements with the same key are added: gradients of embeddings, histograms, "
                "group-by. The study measures their errors, whether their bits survive repeats and other orders, and "
                "their speed.",
                "build/release/bin/sums_by_key --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "bound", "target",
                       "faster, as fast, not decided", "reading alone", "cub"))
    errors, repeats, speeds = ([(at, r) for at, r in rows_with_place(sources, kind) if "bins" in r and "keys" in r]
                               for kind in ("errors", "repeats", "reduction"))
    s.verdict = verdict(speeds)
    s.findings = [*bounds_finding(errors, "sum by key", "sums by key"), *error_finding(errors), *repeats_finding(repeats),
                  *speed_finding(speeds),
                  *others_finding(speeds), *by_data.finding(speeds, what), *declined_findings(sources)]
    s.figures = [f for f in [figure(errors, speeds)] if f.series]
    s.tables = [*error_tables(errors), *tables(speeds), *by_data.tables(speeds, what)]
    s.failures = [*error_failures(errors), *repeat_failures(repeats), *speed_failures(speeds, what)]
    return s


def what(r):
    """'2²⁶ fp32 with 2¹² skewed keys', or '2¹⁹ × 128 fp32 with …' for rows."""
    rows = f" × {r['inner']:,}" if r["inner"] > 1 else ""
    data = f" of {data_of(r)}" if data_of(r) != "normal" else ""
    return f"{phrases.count(r['n'])}{rows} {r['input_format']}{data} with {phrases.count(r['bins'])} {r['keys']} keys"


def given(r):
    return " (given grid)" if r.get("grid") is not None else ""


def named(r):
    """'fixed_point (given grid)', 'exact'."""
    return algorithm(r) + given(r)


def in_keys(bins):
    return f"{phrases.count(bins)} key{'s' * (bins != 1)}"


def of_sums(some):
    """The cells of sums of normal numbers in fp32."""
    return [together for together in cells(some) if together[0]["operation"] == SUM
            and together[0]["input_format"] == "fp32" and data_of(together[0]) == "normal"]


# --- sentences ----------------------------------------------------------------------------------------------------

def error_finding(rows):
    """Yields a sentence on the largest errors of sums in fp32, on the data set with the largest."""
    own = [r for _, r in rows if is_named(r)]
    worst = max(own, key=lambda r: math.inf if r["largest_ulps"] is None else r["largest_ulps"], default=None)
    if worst:
        errors = largest_errors([r for r in own if r["data"] == worst["data"]], NAMED)
        yield f"The largest error of a sum of {worst['data']} fp32 numbers is {', '.join(errors)}."


def is_named(r):
    """Whether a row is on a sum in fp32 by one of the methods that the report names."""
    return (is_ours(r) and r["operation"] == SUM and r["input_format"] == "fp32"
            and phrases.parts(r["method"])[1] == "fp32" and algorithm(r) in NAMED)


def speed_finding(rows):
    """Yields sentences on samesum's methods relative to reading, for elements and uniform keys, and on targets."""
    def describe(some):
        groups = [g for g in of_sums(some) if g[0]["inner"] == 1 and g[0]["keys"] == "uniform"]
        for name in ("fixed_point (given grid)", "fixed_point", "exact"):
            shares = []
            for together in groups:
                best = fastest([r for r in together if is_ours(r) and named(r) == name])
                share = ratio(best, ceiling(together))
                if share:
                    shares.append((share, best["bins"]))
            if shares:
                (low, fewest), (high, most) = min(shares), max(shares)
                yield (f"{name} has "
                       + (f"{phrases.share(low)} ({in_keys(fewest)}) to " if low < high else "")
                       + f"{phrases.share(high)} ({in_keys(most)}) of the speed of reading elements and uniform keys")
        bars = judged(some)
        met = sum(holds for _, holds in bars)
        if bars:
            yield f"{phrases.out_of(met, len(bars), 'target')} {phrases.verb(met, len(bars))} met"
    yield from by_place(rows, describe)


def judged(some):
    """Pairs (target, whether it is met) of the cells of a place, with those relative to PyTorch."""
    found = [(bar, bar["holds"]) for r in some for bar in r["bars"]]
    for together in of_sums(some):
        bins, keys, inner = (together[0][name] for name in ("bins", "keys", "inner"))
        for torch in together:
            library = phrases.parts(torch["method"])[0]
            for fewest, most, elements, name, factor in TORCH.get(library, []):
                own = fastest([r for r in together if is_repeatable(r) and name in ("", algorithm(r))])
                reached = ratio(own, torch)
                if inner == elements and keys in ("uniform", "skewed") and fewest <= bins <= most and reached:
                    holds = reached >= factor if factor != 1 else timing.is_no_slower(own, torch)
                    found.append(({"against": torch["method"], "factor": factor, "reached": reached, "holds": holds}, holds))
    return found


def others_of(some, name=""):
    """{name: pairs of samesum's fastest repeatable sum without a given grid, or that of one method, and a sum of a peer
    or of atomic additions}."""
    found = {}
    for together in of_sums(some):
        best = fastest_promised([r for r in together if name in ("", algorithm(r))])
        for other in together:
            if best and (phrases.is_peer(other["method"]) or (is_ours(other) and not is_repeatable(other))):
                found.setdefault(algorithm(other), []).append((best, other))
    return found


def verdict(rows):
    """How often repeatable sums are faster than others, and how much, and how fast exact is, on this machine and beside
    it on another one."""
    places, found = group_by_place(rows), {}
    for at in side_by_side(places):
        exact = others_of(places[at], "exact")
        found[at] = [f"beside {name}, {beside_in_words(pairs)}{of_exact(exact.get(name, []), pairs)}"
                     for name, pairs in others_of(places[at]).items() if ratios(pairs)]
    return " ".join(f"With promised bits, sums by key are, {'; '.join(texts)} ({at})."
                    for at, texts in found.items() if texts)


def of_exact(exact, pairs):
    """' (exact: 0.035 to 2.2)', where other methods are faster than exact."""
    speeds = ratios(exact)
    return (f" (exact: {number_range(speeds, lambda x: phrases.number(x, 2))})"
            if speeds and speeds != ratios(pairs) else "")


def beside_in_words(pairs):
    """'faster in 2 of 3 cases, slower in 1: 0.5 to 2.1 times as fast'."""
    return f"{timing.in_words(pairs, 'case')}: {number_range(ratios(pairs), lambda x: phrases.number(x, 2))} times as fast"


def ratios(pairs):
    """The ratios of speeds of pairs of rows."""
    return [found.value for found in (timing.ratio(r, other) for r, other in pairs) if found]


def others_finding(rows):
    """Yields a sentence per place and other library, or atomic additions, on samesum's fastest repeatable sums."""
    def describe(some):
        for name, pairs in others_of(some).items():
            if ratios(pairs):
                yield f"beside {name}, a sum by key with the same bits in every run is {beside_in_words(pairs)}"
    yield from by_place(rows, describe)


# --- figure and table ---------------------------------------------------------------------------------------------

def elements_in_words(r, data):
    rows = f"rows of {r['inner']:,}, " if r.get("inner", 1) > 1 else ""
    return f"{rows}{data} data, {r['keys']} keys"


def figure(errors, speeds):
    """Speeds of the most elements of each place, and errors, by number of keys."""
    most = {at: max(r["n"] * r["inner"] for r in some) for at, some in group_by_place(speeds).items()}
    drawn = [(at, r, elements_in_words(r, data_of(r)), "speed", r["gb_per_s"]) for at, r in speeds
             if r["operation"] == SUM and r["n"] * r["inner"] == most[at]]
    drawn += [(at, r, elements_in_words(r, r["data"]), "error", r["largest_ulps"])
              for at, r in errors if r["operation"] == SUM]
    peers = style.peers_among(r["method"] for _, r, *_ in drawn)
    places = distinct(at for at, *_ in drawn)
    menus = [("Machine", preferred(places)),
             ("Element format", starting_with([r["input_format"] for _, r, *_ in drawn], "fp32")),
             ("Elements", starting_with([words for *_, words, _, _ in drawn], "normal data, uniform keys")),
             ("Quantity", distinct(quantity for *_, quantity, _ in drawn))]
    lines = {}
    for at, r, words, quantity, y in drawn:
        grid = r.get("grid")
        name = phrases.parts(short_name(r))[0] + given(r)
        lines.setdefault((at, r["input_format"], words, quantity, name, short_name(r), grid is not None), []).append(
            (r["bins"], y))
    series = []
    for (*on, name, method, is_given), points in lines.items():
        colour, dash, symbol = style.line(method, peers)
        series.append(Series(name, *map(list, zip(*sorted(points, key=lambda p: p[0]))), colour, tuple(on),
                             "dot" if is_given else dash, symbol))
    found = Figure("by-key-figure", "Speeds and errors of sums by key, by number of keys", menus, series,
                   "number of keys", {None: QUANTITIES["speed"], **QUANTITIES},
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of keys. "
                               "Vertical axis: GB/s of elements and keys, or the largest error of a sum; read is reading "
                               "alone.")
    found.finding = captions.describe_lines(
        found, in_keys,
        phrases.ulps if found.series and found.chosen()[-1] == "error" else lambda y: f"{phrases.number(y)} GB/s")
    return found


def error_tables(rows):
    """Yields a table per place of the largest errors of sums in fp32, by data set."""
    for at, some in group_by_place([(at, r) for at, r in rows if is_named(r)]).items():
        lines = []
        for data in distinct(r["data"] for r in some):
            largest = {m: [r["largest_ulps"] for r in some if r["data"] == data and algorithm(r) == m] for m in NAMED}
            lines.append([data, *("-" if not errors else phrases.error_in_ulps(max(
                math.inf if e is None else e for e in errors), "fp32") for errors in largest.values())])
        yield Table(f"{at}: largest errors of sums by key in fp32, ulps", ["data", *NAMED], lines, folded=True)


def tables(rows):
    """Yields for each place a table with a row per cell of sums, and a folded one with a row per method."""
    for at, some in group_by_place(rows).items():
        groups = cells(some)
        yield Table(f"{at}: operations by key",
                    ["operation", "elements and keys", "fastest of samesum", "time, µs", "times reading",
                     "fastest other", "times its speed"],
                    [summary(together) for together in groups], text_columns=3, folded=len(groups) > 12)
        yield Table(f"{at}: all methods by key",
                    ["elements and keys", "method", "grid", "time, µs", "GB/s", "times reading", "targets"],
                    [method_row(r, together) for together in groups for r in together], text_columns=3, folded=True,
                    page_only=True)


def times_reading(r, together):
    share = ratio(r, ceiling(together))
    return phrases.number(1 / share) if share else "-"


def summary(together):
    r = together[0]
    best = fastest([r for r in together if is_repeatable(r)])
    other = fastest([r for r in together if r["method"] not in CEILINGS and not is_repeatable(r)])
    method = best["method"] + given(best) if best else "-"
    return [r["operation"], what(r), method, phrases.number(best["seconds"] * 1e6) if best else "-",
            times_reading(best, together), other["method"] if other else "-", timing.cell(best, other)]


def method_row(r, together):
    bars = "; ".join(f"{'pass' if bar['holds'] else 'MISS'} {bar['reached']:.3g} of {bar['factor']:.3g} × {bar['against']}"
                     for bar in r["bars"])
    grid = r.get("grid")
    return [what(r), r["method"], "-" if grid is None else f"2{phrases.superscript(grid)}",
            phrases.number(r["seconds"] * 1e6), phrases.number(r["gb_per_s"]), times_reading(r, together), bars or "-"]
