"""What do nondeterminism and low precision do to what is computed with sums?"""

import style
import words
from figure import Figure, Series
from section import SAME_EVERYWHERE, Section, Table, distinct, preferred

SYSTEMS = {"graded": "20 graded eigenvalues", "poisson": "Poisson's equation"}


def section(sources):
    s = Section("consequences", "Consequences", "Three computations in which nothing but one kind of sum varies: the "
                "dots of conjugate gradients, the gradients of a small network that learns the Moon's distance, and "
                "the mean and variance of that recording.", "build/release/bin/consequences --full --out build/study")
    rows = [(f"{source.machine}, {words.runs_on(r['method'])}", r) for source in sources for r in source.rows]
    if rows:
        s.findings = list(findings(rows)) + [f"Measured {what} ({source.machine})."
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
    kept = [r for _, r in rows if r["promise"] in SAME_EVERYWHERE]
    if kept:
        several = [r for r in kept if r["distinct_bits"] > 1]
        same = words.sentence(words.of(len(kept) - len(several), len(kept)))
        yield (f"{same} results of methods that promise the same bits everywhere were the same in each of their runs, "
               f"{sum(r['runs'] for r in kept):,} in all"
               + (f"; not {words.names(r['method'] for r in several)}." if several else "."))
    for (at, _), some in groups(rows, "solver", "data"):
        yield from about_loose(at, some, lambda r: f", after {span(r, 'iterations')} iterations")
    for (at,), some in groups(rows, "training"):
        yield from about_loose(at, some, lambda r: f", with weights up to {words.number(r['weights_apart'], 2)} apart")
    for (at, data, format), some in groups(rows, "solver", "data", "input_format"):
        yield about_iterations(at, data, format, some)
    for (at, steps), some in groups(rows, "training", "steps"):
        yield from about_training(at, steps, some)
    for (at, format), some in groups(rows, "recording", "input_format"):
        yield from about_recording(at, format, some)


def span(r, what, digits=5):
    least, most = (words.number(r[f"{end}_{what}"], digits) for end in ("least", "most"))
    return least if least == most else f"{least} to {most}"


def about_loose(at, rows, more):
    loose = [r for r in rows if r["promise"] not in SAME_EVERYWHERE]
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"] / r["runs"])
        yield (f"{at}, {task(most)}: {most['method']}, which promises {most['promise']}, gave "
               f"{words.plural(most['distinct_bits'], 'different result')} in {words.plural(most['runs'], 'run')}"
               + (more(most) if most["distinct_bits"] > 1 else "") + ".")


def about_iterations(at, data, format, rows):
    few, many = min(rows, key=lambda r: r["least_iterations"]), max(rows, key=lambda r: r["most_iterations"])
    text = f"{at}, {SYSTEMS[data]} in {format}: "
    if few["least_iterations"] == many["most_iterations"]:
        text += f"{many['most_iterations']:,} iterations with every sum"
    else:
        text += (f"from {few['least_iterations']:,} iterations ({few['method']}) to {many['most_iterations']:,} "
                 f"({many['method']})")
    failed = [r["method"] for r in rows if r["converged"] < r["runs"]]
    return text + (f"; not always to the tolerance with {words.names(failed)}." if failed else ".")


def about_training(at, steps, rows):
    finite = [r for r in rows if r["most_error"] is not None]
    lost = [r["method"] for r in rows if r["most_error"] is None]
    if finite:
        best, worst = (pick(finite, key=lambda r: r["most_error"]) for pick in (min, max))
        least, most = (f"{words.number(r['most_error'], 4)} km ({r['method']})" for r in (best, worst))
        yield f"{at}, after {words.plural(steps, 'step')} the network is wrong by {least} to {most}."
    if lost:
        yield f"{at}: the network was lost to infinities with {words.names(lost)}."


def about_recording(at, format, rows):
    by = {q: [r for r in rows if r["quantity"] == q] for q in ("variance, naive", "variance, two passes")}
    finite = {q: [r for r in some if r["relative_error"] is not None] for q, some in by.items()}
    if all(finite.values()):
        naive, two = (" to ".join(f"{words.number(r['relative_error'], 2)} ({r['method']})" for r in ends(some))
                      for some in finite.values())
        yield (f"{at}, variance of the Moon's distance in {format}: relative errors of {naive} by the naive formula, "
               f"of {two} in two passes.")
    lost = [r["method"] for some in by.values() for r in some if r["relative_error"] is None]
    if lost:
        yield f"{at}: a sum of this recording overflows {format} with {words.names(lost)}."
    negative = [r["method"] for some in by.values() for r in some if r["value"] is not None and r["value"] < 0]
    if negative:
        yield f"{at}: a variance in {format} is negative with {words.names(negative)}."


def ends(rows):
    """The best and the worst of them."""
    return [pick(rows, key=lambda r: r["relative_error"]) for pick in (min, max)]


# --- figures and tables -----------------------------------------------------------------------------------------

def bars(id, title, x_title, rows, value, text):
    """A bar a method; the menus are where, what and in which format."""
    series = []
    for at, r in sorted(rows, key=lambda pair: (value(pair[1]), pair[1]["method"])):
        recipe, format, _ = words.parts(r["method"])
        series.append(Series(r["method"], [value(r)], [recipe], style.colour(r["method"]), (at, task(r), format),
                             text=[text(r)]))
    menus = [("On", distinct(at for at, _ in rows)), ("Of", distinct(task(r) for _, r in rows)),
             ("Format of the sums", preferred([words.parts(r["method"])[1] for _, r in rows], "fp64"))]
    return Figure(id, title, menus, series, x_title, {None: ""}, bars=True)


def bits_figure(rows):
    return bars("consequences-bits", "How many different results the same computation gives",
                "bit patterns of the result", rows, lambda r: r["distinct_bits"], results)


def iterations_figure(rows):
    return bars("consequences-iterations", "How many iterations conjugate gradients take", "iterations, at most",
                [(at, r) for at, r in rows if r["kind"] == "solver"], lambda r: r["most_iterations"],
                lambda r: span(r, "iterations"))


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
