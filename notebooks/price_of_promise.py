"""Section on the price of each promise in speed, and on the trade-off between error and speed."""

import glossary
import phrases
import style
import timing
from figure import Figure, Series
from section import (PROMISES, Section, Table, declined_findings, distinct, frontier, group_by_place, place, preferred,
                     rows_with_place, side_by_side, starting_with)
from timing import fastest

DATA = {"normal data": "relative_error", "ill-conditioned data": "hard_relative"}
MEANINGS = {"everywhere": "the same bits everywhere", "order_free": "the same bits for any order"}


def section(sources):
    s = Section("price", "The price of a promise", "What does a promise cost?",
                "Error against speed of all methods, timed in turns on the same elements. The price of a promise is "
                "the time of samesum's fastest call that keeps it, divided by the time of the fastest call that "
                "promises less, of samesum or of another library, for the same operation, elements, format of the "
                "result, length and number of threads. Libraries that use one thread are compared with one thread "
                "only.",
                "build/release/bin/price_of_promise --full --out build/study",
                terms=("method", "order", "accumulator", "promise", "ulp", "condition number", "frontier",
                       "faster, as fast, not decided", "cub"))
    cells = {}
    for at, r in rows_with_place(sources, "price"):
        if r["verified"] is not False or not phrases.is_peer(r["method"]):
            cells.setdefault((at, r["input_format"], r["n"]), []).append(r)
    if cells:
        others = prices_of([(place(source, r), r) for source in sources for r in source.of_operations("price")])
        rows = rows_with_place(sources, "price")
        sums = prices_of(rows)
        s.verdict = verdict(rows, sums, others)
        s.findings = [*price_findings(sums, others), *frontier_findings(cells), *declined_findings(sources)]
        s.figures = [f for f in [figure(cells)] if f.series]
        s.tables = [table({at: sums[at] + others.get(at, []) for at in sums})]
        s.failures = [f"{at}: {r['method']} returned wrong bits for n = {n:,} of {format}"
                      for (at, format, n), rows in cells.items() for r in rows if r["verified"] is False]
    return s


# --- prices -------------------------------------------------------------------------------------------------------

def prices(rows):
    """Yields (promise, samesum's fastest row that keeps it, fastest row that promises less), for the same work."""
    for promise in MEANINGS:
        keeps = [PROMISES.index(r["promise"]) >= PROMISES.index(promise) for r in rows]
        best = fastest([r for r, kept in zip(rows, keeps) if kept and not phrases.is_peer(r["method"])])
        loose = fastest([r for r, kept in zip(rows, keeps) if not kept])
        if best and loose and timing.ratio(best, loose):
            yield promise, best, loose


def prices_of(rows):
    """{place: [(promise, row, row that promises less), …]} for the results in the format of the elements."""
    found = {}
    for at, some in group_by_place(rows).items():
        cells = {}
        for r in some:
            if phrases.parts(r["method"])[1] == r["input_format"]:
                cells.setdefault((r.get("operation"), r["input_format"], r["n"]), []).append(r)
        found[at] = [price for together in cells.values() for price in prices(together)]
    return found


def largest(some, promise):
    """The highest price of a promise; None if it was not measured."""
    return max((price for price in some if price[0] == promise),
               key=lambda price: 1 / timing.ratio(*price[1:]).value, default=None)


def longest(cells, at):
    """(format, n) of the greatest length at a place, in fp32 if it was measured."""
    format = starting_with([f for a, f, _ in cells if a == at], "fp32")[0]
    return format, max(n for a, f, n in cells if (a, f) == (at, format))


def compared(rows):
    """'fp32, fp64; 2¹² to 2²⁴; CUB run_to_run, a loop': formats, lengths and peers of rows of sums in the format of the
    elements."""
    rows = [r for r in rows if phrases.parts(r["method"])[1] == r["input_format"]]
    peers = distinct(phrases.parts(r["method"])[0] for r in rows if phrases.is_peer(r["method"]))
    lengths = distinct(phrases.count(end(r["n"] for r in rows)) for end in (min, max))
    return "; ".join(filter(None, [", ".join(distinct(r["input_format"] for r in rows)), " to ".join(lengths),
                                   ", ".join(map(glossary.in_words, peers))]))


def verdict(rows, sums, others):
    """The highest price of each promise over all formats and lengths, and that of other operations, on this machine and
    beside it on another one."""
    places = group_by_place(rows)
    return " ".join(filter(None, (verdict_at(at, places[at], sums[at], others.get(at, [])) for at in side_by_side(sums))))


def verdict_at(at, rows, some, others):
    if not some:
        return ""
    texts = []
    for promise, meaning in MEANINGS.items():
        price, other = largest(some, promise), largest(others, promise)
        if price:
            sums, more = timing.ratio(*price[1:]), other and timing.ratio(*other[1:])
            texts.append(f"{meaning} take at most {sums.as_long}"
                         + (f" ({other[1]['operation']}: {more.of_times})" if more and more.value < sums.value else ""))
    return f"Beside the fastest call that promises less, {' and '.join(texts)} ({at}; {compared(rows)})."


def price_findings(sums, others):
    """Yields for each place the highest price of each promise, for sums and for other operations, with both calls."""
    for at in sums:
        for some, what in ((sums[at], "sums"), (others.get(at, []), "other operations")):
            texts = [costs(promise, *price[1:]) for promise in MEANINGS for price in [largest(some, promise)] if price]
            if texts:
                yield phrases.capitalised(f"{at}, {what}: {'; '.join(texts)}.")


def costs(promise, r, other):
    return (f"the promise “{promise}” ({r['method']}) takes at most {timing.ratio(r, other).as_long} as "
            f"{other['method']} (promise: {other['promise']}; n = {phrases.count(r['n'])} in {r['input_format']})")


def finite_frontier(rows, error):
    """The frontier of the rows with a finite error."""
    return frontier([r for r in rows if r[error] is not None], lambda r: r["seconds"], lambda r: r[error],
                    timing.is_faster)


def frontier_findings(cells):
    for at in distinct(at for at, _, _ in cells):
        format, n = longest(cells, at)
        rows = cells[at, format, n]
        best = finite_frontier(rows, "hard_relative")
        if best:
            yield (f"{phrases.capitalised(at)}, n = {phrases.count(n)} in {format} with condition number "
                   f"{phrases.number(rows[0]['hard_condition'], 1)}: "
                   f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the "
                   "frontier: " + ", ".join(f"{r['method']} (relative error {phrases.number(r['hard_relative'], 1)})"
                                            for r in best) + ".")


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(cells):
    groups = {}
    for (at, format, n), some in cells.items():
        for r in some:
            groups.setdefault((at, format, phrases.parts(r["method"])[1], n), []).append(r)
    menus = [("Machine", preferred(at for at, *_ in groups)),
             ("Element format", starting_with([format for _, format, _, _ in groups], "fp32")),
             ("Result format", starting_with([result for _, _, result, _ in groups], "fp32")),
             ("n", [phrases.count(n) for n in sorted({n for *_, n in groups}, reverse=True)]),
             ("Data", list(DATA))]
    peers = style.peers_among(r["method"] for rows in cells.values() for r in rows)
    series, findings_of = [], {}
    for data, error in DATA.items():
        for (at, format, result, n), some in groups.items():
            on = (at, format, result, phrases.count(n), data)
            rows = [r for r in some if r[error] is not None]
            for r in rows:
                colour, symbol = style.point(r["method"], r["promise"], peers)
                series.append(Series(phrases.parts(r["method"])[0], [r["gb_per_s"]], [r[error]], colour, on,
                                     symbol=symbol,
                                     text=[f"{r['method']}, promise: {r['promise']}, relative error "
                                           f"{phrases.number(r[error], 2)}"]))
            best = finite_frontier(rows, error)
            findings_of[on] = frontier_text(some, best, error)
            series.append(Series("frontier", [r["gb_per_s"] for r in best], [r[error] for r in best], style.GREY, on,
                                 faint=True, key="frontier"))
    found = Figure("price-figure", "Error against speed of all methods", menus, series, "speed, GB/s of input",
                   {None: "relative error"}, points=True, x_kind="log10",
                   description="Each point is a method; its colour shows the accumulator, its symbol the order. "
                               "Hollow: it promises less than the same bits everywhere. Horizontal "
                               "axis: speed of n numbers, faster to the right. Vertical axis: error relative to the exact "
                               "sum of one array of n such numbers, more accurate further down. "
                               "Dotted: the frontier. Infinite errors (overflow) are not shown.")
    at, format, result, n, data = chosen = found.chosen()
    found.finding = phrases.capitalised(f"{at}, {format}, results in {result}, n = {n}, {data}: {findings_of[chosen]}.")
    return found


def frontier_text(rows, best, error):
    """The number of methods on the frontier and its ends."""
    if not best:
        return "every error is infinite"
    ends = [f"{r['method']} ({phrases.number(r['gb_per_s'])} GB/s, relative error {phrases.number(r[error], 2)})"
            for r in (best[0], best[-1])]
    return (f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the frontier, "
            + (f"from {ends[0]} to {ends[1]}" if len(best) > 1 else ends[0]))


def table(found):
    return Table("Price of each promise",
                 ["machine", "operation", "elements", "promise", "fastest call that keeps it",
                  "fastest call that promises less", "its promise", "n", "GB/s", "times as long"],
                 [[at, r.get("operation", "sum"), r["input_format"], promise, r["method"], other["method"],
                   other["promise"], phrases.count(r["n"]), phrases.number(r["gb_per_s"]),
                   timing.cell_of_times(r, other)]
                  for at, some in found.items() for promise, r, other in some],
                 text_columns=7, folded=True)
