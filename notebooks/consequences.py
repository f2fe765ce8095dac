"""What do nondeterminism and low precision do to what is computed with sums?"""

import style
import telling
import words
from figure import Figure, Series
from section import SAME_EVERYWHERE, Section, Table, distinct, placed, preferred

KINDS = ("solver", "training", "recording")
SYSTEMS = {"graded": "20 graded eigenvalues", "poisson": "Poisson's equation"}


def section(sources):
    s = Section("consequences", "Consequences", "Three computations in which nothing but one kind of sum varies: the "
                "dots of conjugate gradients, the gradients of a small network that learns the Moon's distance, and "
                "the mean and variance of that recording.", "build/release/bin/consequences --full --out build/study")
    rows = [pair for kind in KINDS for pair in placed(sources, kind)]
    if rows:
        s.findings = [words.sentence(f) for f in findings(rows)] + [f"Measured {what} ({source.machine})."
                                             for source in sources for what in source.header.get("left_out", [])]
        s.figures = [f for f in (bits_figure(rows), iterations_figure(rows)) if f.series]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} promises {r['promise']} but gave {r['distinct_bits']} results of {task(r)}"
                      for at, r in rows if r["broken"]]
    return s


def task(r):
    """What was computed, in words."""
    return {"solver": lambda: f"conjugate gradients, {SYSTEMS[r['data']]}", "training": lambda: "training",
            "recording": lambda: r["quantity"]}[r["kind"]]()


def groups(rows, kind, *fields):
    """The rows of a kind by where they ran and by these fields."""
    found = {}
    for at, r in rows:
        if r["kind"] == kind:
            found.setdefault((at, *(r[f] for f in fields)), []).append(r)
    return found.items()


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    kept = [(at, r) for at, r in rows if r["promise"] in SAME_EVERYWHERE]
    if kept:
        several = [f"{r['method']}, {task(r)} ({at})" for at, r in kept if r["distinct_bits"] > 1]
        same = words.of(len(kept) - len(several), len(kept), "result")
        runs = sum(r["runs"] for _, r in kept)
        yield (f"{words.sentence(same)} of methods with a promise of the same bits everywhere had the same bits in all "
               f"runs, of which there were {runs:,}" + (f"; not {words.names(several)}." if several else "."))
    for (at, _), some in groups(rows, "solver", "data"):
        yield from about_loose(at, some, lambda r: f", after {span(r, 'iterations')} iterations")
    for (at,), some in groups(rows, "training"):
        yield from about_loose(at, some, apart)
    for (at, data, format), some in groups(rows, "solver", "data", "input_format"):
        yield about_iterations(at, data, format, some)
    for (at, steps), some in groups(rows, "training", "steps"):
        yield from about_training(at, steps, some)
    for (at, format), some in groups(rows, "recording", "input_format"):
        yield from about_recording(at, format, some)


def span(r, what, digits=5):
    least, most = (words.number(r[f"{end}_{what}"], digits) for end in ("least", "most"))
    return least if least == most else f"{least} to {most}"


def apart(r):
    if r["weights_apart"] is None:
        return ", with weights that are not finite"
    return f", with weights up to {words.number(r['weights_apart'], 2)} apart"


def about_loose(at, rows, more):
    loose = [r for r in rows if r["promise"] not in SAME_EVERYWHERE]
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"] / r["runs"])
        several = most["distinct_bits"] > 1
        yield (f"{at}, {task(most)}: {most['method']}, whose promise is {most['promise']}, gave "
               + (f"{most['distinct_bits']:,} different results" if several else "the same result")
               + f" in {words.plural(most['runs'], 'run')}" + (more(most) if several else "") + ".")


def extent(rows, value, say, worst=None):
    """'5 (of whom) to 9 (of whom)', or what is so with every sum; `worst` where rows have a least and a greatest."""
    few, many = min(rows, key=value), max(rows, key=worst or value)
    least, most = say(value(few)), say((worst or value)(many))
    if least == most:
        return f"{least} with every sum" if len(rows) > 1 else f"{least} ({few['method']})"
    return f"{least} ({few['method']}) to {most} ({many['method']})"


def about_iterations(at, data, format, rows):
    failed = [r["method"] for r in rows if r["converged"] < r["runs"]]
    iterations = extent(rows, lambda r: r["least_iterations"], lambda n: words.plural(n, "iteration"),
                        lambda r: r["most_iterations"])
    return (f"{at}, {SYSTEMS[data]} in {format}: conjugate gradients took {iterations}"
            + (f"; not always to the tolerance with {words.names(failed)}." if failed else "."))


def about_training(at, steps, rows):
    finite = [r for r in rows if r["most_error"] is not None]
    lost = [r["method"] for r in rows if r["most_error"] is None]
    if finite:
        errors = extent(finite, lambda r: r["most_error"], lambda x: f"{words.number(x, 4)} km")
        yield f"{at}, after {words.plural(steps, 'step')} the network is wrong by {errors}."
    if lost:
        yield f"{at}: the network was lost to infinities with {words.names(lost)}."


def about_recording(at, format, rows):
    by = {q: [r for r in rows if r["quantity"] == q] for q in ("variance, naive", "variance, two passes")}
    known = [[r for r in some if r["relative_error"] is not None] for some in by.values()]
    if all(known):
        naive, two = (extent(some, lambda r: r["relative_error"], lambda x: words.number(x, 2)) for some in known)
        yield (f"{at}, variance of the Moon's distance in {format}: relative errors are {naive} by the naive formula, "
               f"and {two} in two passes.")
    lost = [r["method"] for some in by.values() for r in some if r["value"] is None]
    if lost:
        yield f"{at}: a sum of this recording overflows {format} with {words.names(lost)}."
    negative = [r["method"] for some in by.values() for r in some if r["value"] is not None and r["value"] < 0]
    if negative:
        yield f"{at}: a variance in {format} is negative with {words.names(negative)}."


# --- figures and tables -----------------------------------------------------------------------------------------

def bars(id, title, x_title, rows, value, text, say):
    """A bar a method; the menus are where, what and in which format; `say` puts the length of a bar into words."""
    series = []
    for at, r in sorted(rows, key=lambda pair: (value(pair[1]), pair[1]["method"])):
        recipe, format, _ = words.parts(r["method"])
        series.append(Series(r["method"], [value(r)], [recipe], style.colour(r["method"]), (at, task(r), format),
                             text=[text(r)]))
    menus = [("On", distinct(at for at, _ in rows)), ("Of", distinct(task(r) for _, r in rows)),
             ("Format of the sums", preferred([words.parts(r["method"])[1] for _, r in rows], "fp64"))]
    found = Figure(id, title, menus, series, x_title, {None: ""}, bars=True)
    found.reading = telling.reads_bars(found, say)
    return found


def bits_figure(rows):
    return bars("consequences-bits", "How many different results the same computation gives",
                "bit patterns of the result", rows, lambda r: r["distinct_bits"], results,
                lambda patterns: words.plural(patterns, "bit pattern"))


def iterations_figure(rows):
    return bars("consequences-iterations", "How many iterations conjugate gradients take", "iterations, at most",
                [(at, r) for at, r in rows if r["kind"] == "solver"], lambda r: r["most_iterations"],
                lambda r: span(r, "iterations"), lambda most: words.plural(most, "iteration"))


def tables(rows):
    for (at, data), some in groups(rows, "solver", "data"):
        yield Table(f"{at}: conjugate gradients, {SYSTEMS[data]}, condition {words.number(some[0]['condition'], 2)}, "
                    f"n = {words.count(some[0]['n'])}",
                    ["method", "promise", "results", "iterations", "residual, at most"],
                    [[r["method"], r["promise"], results(r), span(r, "iterations"), words.number(r["most_residual"], 2)]
                     for r in some], words=2, folded=True)
    for (at, steps), some in groups(rows, "training", "steps"):
        yield Table(f"{at}: a network of {some[0]['weights']} weights after {words.plural(steps, 'step')}",
                    ["method", "promise", "results", "weights apart", "error, km"],
                    [[r["method"], r["promise"], results(r), words.number(r["weights_apart"], 2), span(r, "error")]
                     for r in some], words=2, folded=True)
    for (at,), some in groups(rows, "recording"):
        methods = {}
        for r in some:
            methods.setdefault(r["method"], {})[r["quantity"]] = words.number(r["relative_error"], 2)
        quantities = distinct(r["quantity"] for r in some)
        yield Table(f"{at}: relative errors of the mean and variance of the Moon's distance, {some[0]['n']:,} samples",
                    ["method", *quantities], [[m, *(by.get(q, "") for q in quantities)] for m, by in methods.items()],
                    folded=True)


def results(r):
    return f"{r['distinct_bits']} of {r['runs']}"
