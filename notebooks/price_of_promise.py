"""What does each promise cost, in speed and in accuracy?"""

import style
import telling
import words
from figure import Figure, Series
from section import PROMISES, Section, Table, distinct, frontier, placed, preferred

DATA = {"normal data": "relative_error", "ill-conditioned data": "hard_relative"}
LEAST = 1e-3  # of half a unit in the last place: errors below it are drawn there, for a logarithm has no place for 0


def section(sources):
    s = Section("price", "The price of a promise", "Error against speed, of all methods, timed in turns on the same "
                "elements. The price of a promise is the time of the fastest of samesum's methods that gives it, or "
                "more, over that of the fastest one that promises nothing, and over that of the fastest of other "
                "libraries.", "build/release/bin/price_of_promise --full --out build/study")
    cells = {}
    for at, r in placed(sources, "price"):
        cells.setdefault((at, r["input_format"], r["n"]), []).append(r)
    if cells:
        s.findings = list(findings(cells))
        s.figures = [f for f in [figure(cells)] if f.series]
        s.tables = [table(cells)]
        s.failures = [f"{at}: {r['method']} gave wrong bits for n = {n:,} of {format}"
                      for (at, format, n), rows in cells.items() for r in rows if r["verified"] is False]
    return s


# --- prices -------------------------------------------------------------------------------------------------------

def fastest(rows):
    return min(rows, key=lambda r: r["seconds"], default=None)


def prices(rows):
    """(promise, fastest that gives it, fastest that promises nothing, fastest peer) for each promise that we give."""
    ours = [r for r in rows if not words.is_peer(r["method"])]
    loose = fastest([r for r in ours if r["promise"] == "none"])
    peer = fastest([r for r in rows if words.is_peer(r["method"])])
    for promise in PROMISES[1:]:
        if any(r["promise"] == promise for r in ours):
            yield promise, fastest([r for r in ours if PROMISES.index(r["promise"]) >= PROMISES.index(promise)]), \
                loose, peer


def ratio(r, other):
    return words.number(r["seconds"] / other["seconds"]) if other and other["seconds"] else "-"


def steps(rows, error):
    """The frontier, among those whose error is finite."""
    return frontier([r for r in rows if r[error] is not None], lambda r: r["seconds"], lambda r: r[error])


def findings(cells):
    for at in distinct(at for at, _, _ in cells):
        format = preferred([f for a, f, _ in cells if a == at], "fp32")[0]
        n = max(n for a, f, n in cells if (a, f) == (at, format))
        rows = cells[at, format, n]
        told = [f"{promise} ({r['method']}) costs " + " and ".join(
                    f"{ratio(r, other)} times the time of the fastest {what} ({other['method']})"
                    for other, what in ((loose, "that promises nothing"), (peer, "of other libraries"))
                    if ratio(r, other) != "-")
                for promise, r, loose, peer in prices(rows) if {ratio(r, loose), ratio(r, peer)} != {"-"}]
        if told:
            yield words.sentence(f"{at}, n = {words.count(n)} of {format}: {'; '.join(told)}.")
        on = steps(rows, "hard_relative")
        if on:
            yield (f"{words.sentence(at)}, n = {words.count(n)} of {format} with condition "
                   f"{words.number(rows[0]['hard_condition'], 1)}: none is both faster and no more wrong than "
                   f"{words.of(len(on), len(rows), 'method')}, the frontier: "
                   + ", ".join(f"{r['method']} ({words.number(r['hard_relative'], 1)})" for r in on) + ".")


# --- the figure and the table -------------------------------------------------------------------------------------

def figure(cells):
    keys = list(cells)
    menus = [("On", distinct(at for at, _, _ in keys)), ("Elements", preferred([f for _, f, _ in keys], "fp32")),
             ("n", [words.count(n) for n in sorted({n for _, _, n in keys}, reverse=True)]),
             ("Errors of", list(reversed(DATA)))]
    peers = style.peers_among(r["method"] for rows in cells.values() for r in rows)
    series, readings = [], {}
    for (at, format, n), rows in cells.items():
        for data, error in DATA.items():
            on = (at, format, words.count(n), data)
            for r in rows:
                if r[error] is not None:
                    recipe, result, _ = words.parts(r["method"])
                    series.append(Series(recipe if result == format else f"{recipe}/{result}", [r["gb_per_s"]],
                                         [drawn(r, error)], style.line(r["method"], peers)[0], on,
                                         symbol=style.PROMISES[r["promise"]],
                                         text=[f"{r['method']}, promises {r['promise']}"]))
            best = steps(rows, error)
            readings[on] = reading(rows, best, error)
            series.append(Series("frontier", [r["gb_per_s"] for r in best], [drawn(r, error) for r in best],
                                 style.GREY, on, faint=True))
    found = Figure("price-figure", "Error against speed: the frontier", menus, series, "GB/s of input",
                   {None: "error, relative to the exact sum"}, points=True, x_kind="log10",
                   note="Colour: accumulator. Symbol: promise (cross: none, triangle: run_to_run, circle: everywhere, "
                        "star: order_free). Fast and accurate is to the lower right; dotted: the frontier. Errors "
                        "below 0.0005 units in the last place, also 0, are drawn as that; infinite ones (overflow) are "
                        "not drawn.")
    chosen = found.chosen()
    found.reading = words.sentence(f"{', '.join(chosen[:2])}, n = {', '.join(chosen[2:])}: {readings[chosen]}.")
    return found


def reading(rows, best, error):
    """What lies on the frontier, from end to end."""
    if not best:
        return "every error is infinite"
    ends = [f"{r['method']} ({words.number(r['gb_per_s'])} GB/s, an error of {words.number(r[error], 2)})"
            for r in (best[0], best[-1])]
    return (f"{words.of(len(best), len(rows), 'method')} {words.verb(len(best), len(rows))} on the frontier, "
            + (f"from {ends[0]} to {ends[1]}" if len(best) > 1 else ends[0]))


def drawn(r, error):
    return max(r[error], LEAST * 2.0 ** -words.FORMAT_BITS[words.parts(r["method"])[1]][0])


def table(cells):
    return Table("The price of each promise: times of the fastest, as a ratio",
                 ["where", "elements", "promise", "fastest that gives it", "n", "GB/s", "/ fastest without a promise",
                  "/ fastest of other libraries"],
                 [[at, format, promise, r["method"], words.count(n), words.number(r["gb_per_s"]), ratio(r, loose),
                   ratio(r, peer)]
                  for (at, format, n), rows in cells.items() for promise, r, loose, peer in prices(rows)],
                 words=4, folded=True)
