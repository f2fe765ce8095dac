"""Section on the price of each promise in speed, and on the trade-off between error and speed."""

import dataclasses

import phrases
import style
import timing
from figure import Figure, Series
from section import PROMISES, Section, Table, distinct, frontier, preferred, rows_with_place, side_by_side, starting_with
from timing import fastest

DATA = {"normal data": "relative_error", "ill-conditioned data": "hard_relative"}
MEANINGS = {"everywhere": "the same bits everywhere", "order_free": "the same bits for any order of the elements"}


def section(sources):
    s = Section("price", "The price of a promise", "What does a promise cost?",
                "Error against speed of all methods, timed in turns on the same "
                "elements. The price of a promise is the time of samesum's fastest sum with it (of the same bits everywhere: "
                "with plain additions, like the sum that it is compared with), divided by the time of its fastest plain sum "
                "without a promise and by that of the fastest other library. All of them return the format of the elements. "
                f"Two times have {timing.NO_DIFFERENCE} if their ranges, from the 10th to the 90th percentile, overlap or "
                "lie closer together than the wider range is wide.",
                "build/release/bin/price_of_promise --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "condition number", "frontier", "cub"))
    cells = {}
    for at, r in rows_with_place(sources, "price"):
        cells.setdefault((at, r["input_format"], r["n"]), []).append(r)
    if cells:
        s.verdict = verdict(cells)
        s.findings = list(findings(cells))
        s.figures = [f for f in [figure(cells)] if f.series]
        s.tables = [table(cells)]
        s.failures = [f"{at}: {r['method']} returned wrong bits for n = {n:,} of {format}"
                      for (at, format, n), rows in cells.items() for r in rows if r["verified"] is False]
    return s


# --- prices -------------------------------------------------------------------------------------------------------

def in_their_format(rows):
    """The rows whose results have the format of their elements."""
    return [r for r in rows if phrases.parts(r["method"])[1] == r["input_format"]]


def prices(rows):
    """Yields (promise, fastest sum with it, fastest without a promise, fastest of other libraries) for the promises of
    samesum. Only plain additions are compared with plain additions; any order of the elements needs others."""
    ours = [r for r in in_their_format(rows) if not phrases.is_peer(r["method"])]
    plain = [r for r in ours if phrases.accumulator(r["method"]) == "plain"]
    loose = fastest([r for r in plain if r["promise"] == "none"])
    peer = fastest([r for r in in_their_format(rows) if phrases.is_peer(r["method"])])
    for promise, some in (("everywhere", plain), ("order_free", ours)):
        best = fastest([r for r in some if r["promise"] == promise])
        if best:
            yield promise, best, loose, peer


def times(r, other):
    """'1.1 times as long' as another row, or that there is no measurable difference."""
    ratio = timing.speed_ratio(other, r)
    return f"{phrases.number(ratio)} times as long" if ratio else f"as long ({timing.NO_DIFFERENCE})"


def longest(cells, at):
    """(format, n) of the greatest length at a place, in fp32 if it was measured."""
    format = starting_with([f for a, f, _ in cells if a == at], "fp32")[0]
    return format, max(n for a, f, n in cells if (a, f) == (at, format))


def verdict(cells):
    """The price of each promise at the greatest length, on this machine and beside it on another one."""
    return " ".join(filter(None, (verdict_at(at, *longest(cells, at), cells)
                                  for at in side_by_side(at for at, _, _ in cells))))


def verdict_at(at, format, n, cells):
    found = [(MEANINGS[promise], times(r, loose or peer), loose or peer)
             for promise, r, loose, peer in prices(cells[at, format, n]) if loose or peer]
    if not found:
        return ""
    other = found[0][2]
    what = "the fastest other library" if phrases.is_peer(other["method"]) else "samesum's fastest plain sum without a promise"
    return (f"Beside {what}, {other['method']}, {' and '.join(f'{meaning} take {ratio}' for meaning, ratio, _ in found)} "
            f"({at}, {phrases.count(n)} {format} numbers).")


def finite_frontier(rows, error):
    """The frontier of the rows with a finite error."""
    return frontier([r for r in rows if r[error] is not None], lambda r: r["seconds"], lambda r: r[error],
                    timing.is_faster)


def findings(cells):
    for at in distinct(at for at, _, _ in cells):
        format, n = longest(cells, at)
        rows = cells[at, format, n]
        costs = [f"the promise “{promise}” ({r['method']}) takes " + " and ".join(
                     f"{times(r, other)} as {what} ({other['method']})"
                     for other, what in ((loose, "the fastest plain sum without a promise"),
                                         (peer, "the fastest other library")) if other)
                 for promise, r, loose, peer in prices(rows) if loose or peer]
        if costs:
            yield phrases.capitalised(f"{at}, n = {phrases.count(n)} in {format}: {'; '.join(costs)}.")
        best = finite_frontier(rows, "hard_relative")
        if best:
            yield (f"{phrases.capitalised(at)}, n = {phrases.count(n)} in {format} with condition number "
                   f"{phrases.number(rows[0]['hard_condition'], 1)}: "
                   f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the "
                   "frontier: " + ", ".join(f"{r['method']} (relative error {phrases.number(r['hard_relative'], 1)})"
                                            for r in best) + ".")


# --- errors over several arrays -------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Errors:
    """The relative errors of a method on several arrays."""

    low: float
    median: float
    high: float
    arrays: int

    def __str__(self):
        return phrases.number(self.median, 2) + (
            f", median of {self.arrays} arrays, {phrases.number(self.low, 2)} to {phrases.number(self.high, 2)}"
            if self.arrays > 1 else ", one array")


def errors_of(values):
    return Errors(min(values), phrases.median(values), max(values), len(values))


def over_lengths(cells, error):
    """{(place, format, method): Errors} over the arrays of each length that have a finite error."""
    values = {}
    for (at, format, _), rows in cells.items():
        for r in rows:
            if r[error] is not None:
                values.setdefault((at, format, r["method"]), []).append(r[error])
    return {key: errors_of(some) for key, some in values.items()}


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(cells):
    keys = list(cells)
    menus = [("Machine", preferred(at for at, _, _ in keys)),
             ("Element format", starting_with([f for _, f, _ in keys], "fp32")),
             ("n", [phrases.count(n) for n in sorted({n for _, _, n in keys}, reverse=True)]),
             ("Data", list(DATA))]
    peers = style.peers_among(r["method"] for rows in cells.values() for r in rows)
    series, findings_of = [], {}
    for data, error in DATA.items():
        errors = over_lengths(cells, error)
        for (at, format, n), some in cells.items():
            on = (at, format, phrases.count(n), data)
            rows = [r | {"errors": errors[at, format, r["method"]], "error": errors[at, format, r["method"]].median}
                    for r in some if (at, format, r["method"]) in errors]
            for r in rows:
                algorithm, result, _ = phrases.parts(r["method"])
                series.append(Series(algorithm if result == format else f"{algorithm}/{result}", [r["gb_per_s"]],
                                     [r["error"]], style.line(r["method"], peers)[0], on,
                                     symbol=style.PROMISES[r["promise"]],
                                     text=[f"{r['method']}, promise: {r['promise']}, error {r['errors']}"]))
            best = finite_frontier(rows, "error")
            findings_of[on] = frontier_text(some, best)
            series.append(Series("frontier", [r["gb_per_s"] for r in best], [r["error"] for r in best], style.GREY, on,
                                 faint=True))
    found = Figure("price-figure", "Error against speed of all methods", menus, series, "speed, GB/s of input",
                   {None: "relative error"}, points=True, x_kind="log10",
                   description="Each point is a method; its colour shows the accumulator, its symbol the promise "
                               "(cross: none, triangle: run_to_run, circle: everywhere, star: order_free). Horizontal "
                               "axis: speed of n numbers, faster to the right. Vertical axis: error relative to the exact "
                               "sum, median over the arrays of all lengths with such data, more accurate further down. "
                               "Dotted: the frontier. Infinite errors (overflow) are not shown.")
    chosen = found.chosen()
    found.finding = phrases.capitalised(f"{', '.join(chosen[:2])}, n = {', '.join(chosen[2:])}: {findings_of[chosen]}.")
    return found


def frontier_text(rows, best):
    """The number of methods on the frontier and its ends."""
    if not best:
        return "every error is infinite"
    ends = [f"{r['method']} ({phrases.number(r['gb_per_s'])} GB/s, relative error {r['errors']})"
            for r in (best[0], best[-1])]
    return (f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the frontier, "
            + (f"from {ends[0]} to {ends[1]}" if len(best) > 1 else ends[0]))


def table(cells):
    return Table("Price of each promise: ratios of times",
                 ["machine", "elements", "promise", "fastest method with it", "n", "GB/s",
                  "/ fastest plain sum without a promise", "/ fastest other library"],
                 [[at, format, promise, r["method"], phrases.count(n), phrases.number(r["gb_per_s"]),
                   *(timing.text(timing.speed_ratio(other, r)) if other else "-" for other in (loose, peer))]
                  for (at, format, n), rows in cells.items() for promise, r, loose, peer in prices(rows)],
                 text_columns=4, folded=True, note=f"≈ 1: {timing.NO_DIFFERENCE}.")
