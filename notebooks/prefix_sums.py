"""Section on prefix sums: their errors, whether their bits repeat and are those of sums, and their speed."""

import by_data
import captions
import phrases
import style
import timing
from figure import Figure, Series
from result_arrays import (CEILINGS, algorithm, bounds_finding, by_place, ceiling, cells, error_failures,
                           fastest_promised, is_ours, largest_errors, of_format, ratio, repeat_failures,
                           repeats_finding, short_name, speed_failures, targets)
from section import (Check, Section, Table, declined_findings, distinct, group_by_place, preferred, rows_with_place,
                     starting_with)
from timing import fastest

NAMED = ["serial/plain", "prefix/plain", "exact"]  # methods whose errors a sentence compares
QUANTITIES = {"error": "largest error, ulps", "speed": "GB/s read and written"}


def section(sources):
    s = Section("prefix", "Prefix sums", "Are prefix sums as exact and as repeatable as sums?",
                "Result i is the sum of the first i + 1 elements. How wrong are the prefixes of "
                "an array, do they have the same bits in every run and as a sum on its own, and how fast are they, "
                "compared with a copy and with other libraries?",
                "build/release/bin/prefix_sums --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "bound", "target",
                       "faster, as fast, not decided", "cub"))
    errors, repeats, speeds = (rows_with_place(sources, kind) for kind in ("errors", "repeats", "reduction"))
    s.verdict = next(error_finding(errors), "")
    s.findings = [*bounds_finding(errors, "prefix", "prefixes"), *error_finding(errors), *consistency_finding(errors),
                  *repeats_finding(repeats), *speed_finding(speeds), *by_data.finding(speeds, what),
                  *declined_findings(sources)]
    normal = by_data.of_normal(speeds)
    s.figures = [f for f in [figure(errors, normal)] if f.series]
    s.tables = [*tables(normal), *by_data.tables(speeds, what)]
    s.failures = [*error_failures(errors), *repeat_failures(repeats), *speed_failures(speeds, what)]
    return s


def what(r):
    return f"n = {phrases.count(r['n'])} of {r['input_format']}{by_data.other_data(r)}"


# --- sentences ----------------------------------------------------------------------------------------------------

def error_finding(rows):
    """Yields a sentence on the largest errors in fp32, at the greatest length of each place."""
    def describe(some):
        for data in starting_with([r["data"] for r in some], "uniform")[:1]:
            named = [r for r in some if r["data"] == data and algorithm(r) in NAMED and is_ours(r)]
            lengths = [{r["n"] for r in named if algorithm(r) == m} for m in distinct(map(algorithm, named))]
            common = set.intersection(*lengths) if lengths else set()
            if common:
                n = max(common)
                yield (f"the largest error of a prefix of {phrases.count(n)} {data} numbers is "
                       + ", ".join(largest_errors([r for r in named if r["n"] == n], NAMED)))
    yield from by_place(of_format(rows), describe)


def consistency_finding(rows):
    summed = [r for _, r in rows if r.get("sums") and "same_as_sums" in r and is_ours(r)]
    same, sums = sum(r["same_as_sums"] for r in summed), sum(r["sums"] for r in summed)
    if summed:
        yield Check(f"{phrases.capitalised(phrases.out_of(same, sums, 'prefix', 'prefixes'))} that "
                    f"{phrases.verb(2, sums, 'was', 'were')} also summed on their own "
                    f"{phrases.verb(same, sums, 'has', 'have')} the bits of that sum.",
                    same, sums, "prefix with the bits of its sum", "prefixes with the bits of their sums")


def speed_finding(rows):
    """Yields a sentence per place on the speeds of the longest arrays of fp32, with one thread or on a GPU."""
    def describe(some):
        longest = max(cells([r for r in some if by_data.is_normal(r)]), key=lambda together: together[0]["n"])
        best = fastest_promised(longest)
        if not best:
            return
        exact = fastest([r for r in longest if algorithm(r) == "exact" and is_ours(r)])
        ratios = [f"{phrases.share(share, ' of the speed of a copy')}"
                  for share in [ratio(best, ceiling(longest))] if share]
        for peer in longest:
            if phrases.is_peer(peer["method"]):
                ratios.append(timing.speed_of(best, peer, phrases.parts(peer["method"])[0]))
        text = f"{best['method']} of {phrases.count(best['n'])} elements reaches {phrases.number(best['gb_per_s'])} GB/s"
        yield text + (f", {', '.join(ratios)}" if ratios else "")
        if exact and exact is not best:
            yield f"exact has {timing.speed_of(exact, best, short_name(best))}"
        if targets(some):
            yield targets(some)
    yield from by_place(of_format_or_ceiling(rows), describe)


def of_format_or_ceiling(rows):
    return of_format(rows) + [(at, r) for at, r in rows if r["method"] in CEILINGS and r["input_format"] == "fp32"]


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(errors, speeds):
    drawn = [(at, r, r["data"], "error", r["largest_ulps"]) for at, r in errors]
    drawn += [(at, r, None, "speed", r["gb_per_s"]) for at, r in speeds if r.get("grid") is None]
    peers = style.peers_among(r["method"] for _, r, *_ in drawn)
    places = distinct(at for at, *_ in drawn)
    menus = [("Machine", preferred(places)),
             ("Element format", starting_with([r["input_format"] for _, r, *_ in drawn], "fp32")),
             ("Data", starting_with([data for *_, data, _, _ in drawn if data], "uniform") or ["normal"]),
             ("Quantity", distinct(quantity for *_, quantity, _ in drawn))]
    lines = {}
    for at, r, data, quantity, y in drawn:
        if r["n"]:
            lines.setdefault((at, r["input_format"], data, quantity, short_name(r)), []).append((r["n"], y))
    series = []
    for (*on, method), points in lines.items():
        name = phrases.parts(method)[0]
        series.append(Series(name, *map(list, zip(*sorted(points, key=lambda p: p[0]))),
                             style.line(method, peers)[0], tuple(on), *style.line(method, peers)[1:]))
    found = Figure("prefix-figure", "Errors and speeds of prefix sums by length", menus, series,
                   "n, number of elements", {None: QUANTITIES["error"], **QUANTITIES},
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of "
                               "elements. Vertical axis: the largest error of a prefix, or GB/s read and written; copy is "
                               "a copy alone.")
    found.finding = captions.describe_lines(
        found, lambda n: f"n = {phrases.count(n)}",
        phrases.ulps if found.series and found.chosen()[-1] == "error" else lambda y: f"{phrases.number(y)} GB/s")
    return found


def tables(rows):
    for at, some in group_by_place(rows).items():
        lines = []
        for together in cells(some):
            for r in together:
                share = ratio(r, ceiling(together))
                peer = fastest([p for p in together if phrases.is_peer(p["method"])])
                lines.append([by_data.method_and_grid(r), r["input_format"], phrases.count(r["n"]),
                              phrases.number(r["seconds"] * 1e6), phrases.number(r["gb_per_s"]), f"{share:.1%}" if share else "-",
                              timing.cell(r, peer)])
        peers = phrases.peers_in_words(r["method"] for r in some)
        yield Table(f"{at}: speeds of prefix sums",
                    ["method", "elements", "n", "time, µs", "GB/s", "of a copy", f"times the fastest {peers}"],
                    lines, text_columns=3, folded=True)
