"""Section on the price of each promise in speed, and on the trade-off between error and speed."""

import phrases
import style
from figure import Figure, Series
from section import PROMISES, Section, Table, distinct, frontier, preferred, rows_with_place, starting_with

DATA = {"normal data": "relative_error", "ill-conditioned data": "hard_relative"}
MEANINGS = {"everywhere": "the same bits everywhere", "order_free": "the same bits for any order of the elements"}
LEAST = 1e-3  # in half ulps; smaller errors are plotted here: a logarithmic axis has no place for 0


def section(sources):
    s = Section("price", "The price of a promise", "What does a promise cost?",
                "Error against speed of all methods, timed in turns on the same "
                "elements. The price of a promise is the time of samesum's fastest method with that promise or a "
                "stronger one, divided by the time of its fastest method without a promise and by the time of the "
                "fastest other library.", "build/release/bin/price_of_promise --full --out build/study",
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

def fastest(rows):
    return min(rows, key=lambda r: r["seconds"], default=None)


def prices(rows):
    """Yields (promise, fastest method with it, fastest without a promise, fastest peer) per promise of samesum."""
    ours = [r for r in rows if not phrases.is_peer(r["method"])]
    loose = fastest([r for r in ours if r["promise"] == "none"])
    peer = fastest([r for r in rows if phrases.is_peer(r["method"])])
    for promise in PROMISES[1:]:
        if any(r["promise"] == promise for r in ours):
            yield promise, fastest([r for r in ours if PROMISES.index(r["promise"]) >= PROMISES.index(promise)]), \
                loose, peer


def verdict(cells):
    """The price of each promise in fp32 at the greatest length, on a GPU if there is one, else in the first place."""
    at = preferred(at for at, _, _ in cells)[0]
    format = starting_with([f for a, f, _ in cells if a == at], "fp32")[0]
    n = max(n for a, f, n in cells if (a, f) == (at, format))
    found = [(MEANINGS[promise], ratio(r, loose or peer), loose or peer)
             for promise, r, loose, peer in prices(cells[at, format, n]) if promise in MEANINGS]
    texts = [f"{meaning} take {times} times" for meaning, times, _ in found if times != "-"]
    if not texts:
        return ""
    other = found[0][2]
    what = "the fastest other library" if phrases.is_peer(other["method"]) else "samesum's fastest sum without a promise"
    return phrases.capitalised(f"{' and '.join(texts)} the time of {what}, {other['method']} ({at}, {phrases.count(n)} "
                               f"{format} numbers).")


def ratio(r, other):
    return phrases.number(r["seconds"] / other["seconds"]) if other and other["seconds"] else "-"


def finite_frontier(rows, error):
    """The frontier of the rows with a finite error."""
    return frontier([r for r in rows if r[error] is not None], lambda r: r["seconds"], lambda r: r[error])


def findings(cells):
    for at in distinct(at for at, _, _ in cells):
        format = starting_with([f for a, f, _ in cells if a == at], "fp32")[0]
        n = max(n for a, f, n in cells if (a, f) == (at, format))
        rows = cells[at, format, n]
        costs = [f"the promise “{promise}” ({r['method']}) costs " + " and ".join(
                     f"{ratio(r, other)} times the time of {what} ({other['method']})"
                     for other, what in ((loose, "the fastest method without a promise"),
                                         (peer, "the fastest other library")) if ratio(r, other) != "-")
                 for promise, r, loose, peer in prices(rows) if {ratio(r, loose), ratio(r, peer)} != {"-"}]
        if costs:
            yield phrases.capitalised(f"{at}, n = {phrases.count(n)} in {format}: {'; '.join(costs)}.")
        best = finite_frontier(rows, "hard_relative")
        if best:
            yield (f"{phrases.capitalised(at)}, n = {phrases.count(n)} in {format} with condition number "
                   f"{phrases.number(rows[0]['hard_condition'], 1)}: "
                   f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the "
                   "frontier: " + ", ".join(f"{r['method']} (relative error {phrases.number(r['hard_relative'], 1)})"
                                            for r in best) + ".")


# --- figure and table ---------------------------------------------------------------------------------------------

def figure(cells):
    keys = list(cells)
    menus = [("Machine", preferred(at for at, _, _ in keys)),
             ("Element format", starting_with([f for _, f, _ in keys], "fp32")),
             ("n", [phrases.count(n) for n in sorted({n for _, _, n in keys}, reverse=True)]),
             ("Data", list(reversed(DATA)))]
    peers = style.peers_among(r["method"] for rows in cells.values() for r in rows)
    series, findings_of = [], {}
    for (at, format, n), rows in cells.items():
        for data, error in DATA.items():
            on = (at, format, phrases.count(n), data)
            for r in rows:
                if r[error] is not None:
                    algorithm, result, _ = phrases.parts(r["method"])
                    series.append(Series(algorithm if result == format else f"{algorithm}/{result}", [r["gb_per_s"]],
                                         [plotted_error(r, error)], style.line(r["method"], peers)[0], on,
                                         symbol=style.PROMISES[r["promise"]],
                                         text=[f"{r['method']}, promise: {r['promise']}"]))
            best = finite_frontier(rows, error)
            findings_of[on] = frontier_text(rows, best, error)
            series.append(Series("frontier", [r["gb_per_s"] for r in best], [plotted_error(r, error) for r in best],
                                 style.GREY, on, faint=True))
    found = Figure("price-figure", "Error against speed of all methods", menus, series, "speed, GB/s of input",
                   {None: "relative error"}, points=True, x_kind="log10",
                   description="Each point is a method; its colour shows the accumulator, its symbol the promise "
                               "(cross: none, triangle: run_to_run, circle: everywhere, star: order_free). Horizontal "
                               "axis: speed, faster to the right. Vertical axis: error relative to the exact sum, more "
                               "accurate further down. Dotted: the frontier. Errors below 0.0005 ulps, including 0, "
                               "are plotted at 0.0005 ulps; infinite errors (overflow) are not shown.")
    chosen = found.chosen()
    found.finding = phrases.capitalised(f"{', '.join(chosen[:2])}, n = {', '.join(chosen[2:])}: {findings_of[chosen]}.")
    return found


def frontier_text(rows, best, error):
    """The number of methods on the frontier and its ends."""
    if not best:
        return "every error is infinite"
    ends = [f"{r['method']} ({phrases.number(r['gb_per_s'])} GB/s, relative error {phrases.number(r[error], 2)})"
            for r in (best[0], best[-1])]
    return (f"{phrases.out_of(len(best), len(rows), 'method')} {phrases.verb(len(best), len(rows))} on the frontier, "
            + (f"from {ends[0]} to {ends[1]}" if len(best) > 1 else ends[0]))


def plotted_error(r, error):
    return max(r[error], LEAST * 2.0 ** -phrases.FORMAT_BITS[phrases.parts(r["method"])[1]][0])


def table(cells):
    return Table("Price of each promise: ratios of times",
                 ["machine", "elements", "promise", "fastest method with it", "n", "GB/s",
                  "/ fastest without a promise", "/ fastest other library"],
                 [[at, format, promise, r["method"], phrases.count(n), phrases.number(r["gb_per_s"]), ratio(r, loose),
                   ratio(r, peer)]
                  for (at, format, n), rows in cells.items() for promise, r, loose, peer in prices(rows)],
                 text_columns=4, folded=True)
