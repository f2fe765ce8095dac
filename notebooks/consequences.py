"""Section on the consequences of nondeterministic and low-precision sums in three computations."""

import captions
import phrases
import style
from figure import Figure, Series
from section import SAME_EVERYWHERE, Check, Section, Table, distinct, rows_with_place, starting_with

KINDS = ("solver", "training", "recording")
SYSTEMS = {"graded": "20 graded eigenvalues", "poisson": "Poisson's equation"}


def section(sources):
    s = Section("consequences", "Consequences", "Does it matter?",
                "Three computations in which only the summation method varies: the dot "
                "products of conjugate gradients, the gradients of a small network that learns the Moon's distance, "
                "and the mean and variance of that recording.",
                "build/release/bin/consequences --full --out build/study",
                terms=("method", "promise", "condition number"))
    rows = [pair for kind in KINDS for pair in rows_with_place(sources, kind)]
    if rows:
        s.verdict = verdict(rows)
        s.findings = list(promise_findings(rows)) + [phrases.capitalised(f) for f in findings(rows)] + [
            f"Measured {what} ({source.machine})." for source in sources for what in source.header.get("left_out", [])]
        s.figures = [f for f in (iterations_figure(rows), bits_figure(rows)) if f.series]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} promises {r['promise']} but returned {r['distinct_bits']} results for "
                      f"{task(r)}" for at, r in rows if r["broken"]]
    return s


def task(r):
    """Name of the computation of a row."""
    return {"solver": lambda: f"conjugate gradients, {SYSTEMS[r['data']]}", "training": lambda: "training",
            "recording": lambda: r["quantity"]}[r["kind"]]()


def groups(rows, kind, *fields):
    """The rows of a kind, grouped by place and by the given fields."""
    found = {}
    for at, r in rows:
        if r["kind"] == kind:
            found.setdefault((at, *(r[f] for f in fields)), []).append(r)
    return found.items()


# --- sentences --------------------------------------------------------------------------------------------------

def widest(rows):
    """(place, row) of the solver whose number of iterations varied most from run to run; None if none was measured."""
    solvers = [(at, r) for at, r in rows if r["kind"] == "solver"]
    return max(solvers, key=lambda pair: (pair[1]["most_iterations"] - pair[1]["least_iterations"],
                                          pair[1]["distinct_bits"]), default=None)


def steady(rows, at, r):
    """The methods with promised bits that solved the system of a row in the same number of iterations in every run:
    {iterations: [order and accumulator, …]}."""
    found = {}
    for place, s in rows:
        if (s["kind"] == "solver" and place == at and (s["data"], s["input_format"]) == (r["data"], r["input_format"])
                and s["promise"] in SAME_EVERYWHERE and s["least_iterations"] == s["most_iterations"]):
            found.setdefault(s["most_iterations"], []).append(phrases.parts(s["method"])[0])
    return dict(sorted(found.items()))


def condition(r):
    """The condition number of a system: '524,288', '8,200'."""
    return f"{r['condition']:,.0f}" if r["condition"] == int(r["condition"]) else phrases.number(r["condition"], 2)


def verdict(rows):
    at, r = widest(rows) or (None, None)
    if not r:
        return ""
    same = f"{phrases.plural(r['most_iterations'], 'iteration')} in each of {phrases.plural(r['runs'], 'run')}"
    varied = r["least_iterations"] < r["most_iterations"]
    return (f"With {r['method']}, conjugate gradients needed "
            + (f"{span(r, 'iterations')} iterations, depending on the run" if varied else same)
            + f", and gave {phrases.plural(r['distinct_bits'], 'different solution' if r['distinct_bits'] > 1 else 'solution')}"
            + (f" in {phrases.plural(r['runs'], 'run')}" if varied else "")
            + (promised_iterations(rows, at, r) if varied else "") + f" ({at}).")


def promised_iterations(rows, at, r):
    """'; with promised bits, in every run 109 (tree/plain) and 115 (exact)'; '' without such methods."""
    found = phrases.listed(f"{n} ({', '.join(methods)})" for n, methods in steady(rows, at, r).items())
    return f"; with promised bits, in every run {found}" if found else ""


def promise_findings(rows):
    kept = [(at, r) for at, r in rows if r["promise"] in SAME_EVERYWHERE]
    if kept:
        several = [f"{r['method']}, {task(r)} ({at})" for at, r in kept if r["distinct_bits"] > 1]
        same = len(kept) - len(several)
        runs = phrases.plural(sum(r["runs"] for _, r in kept), "run")
        yield Check(f"{phrases.capitalised(phrases.out_of(same, len(kept), 'result'))} of methods with a promise of the "
                    f"same bits everywhere {phrases.verb(same, len(kept), 'has', 'have')} the same bits in all {runs}"
                    + phrases.exceptions(several),
                    same, len(kept), f"result with the same bits in {runs}", f"results with the same bits in {runs}")


def findings(rows):
    for (at, _), some in groups(rows, "solver", "data"):
        yield from loose_findings(at, some, lambda r: f", after {span(r, 'iterations')} iterations")
    for (at,), some in groups(rows, "training"):
        yield from loose_findings(at, some, weights_text)
    for (at, data, format), some in groups(rows, "solver", "data", "input_format"):
        yield iterations_finding(at, data, format, some)
    for (at, steps), some in groups(rows, "training", "steps"):
        yield from training_findings(at, steps, some)
    for (at, format), some in groups(rows, "recording", "input_format"):
        yield from recording_findings(at, format, some)


def span(r, what, digits=5):
    least, most = (phrases.number(r[f"{end}_{what}"], digits) for end in ("least", "most"))
    return least if least == most else f"{least} to {most}"


def weights_text(r):
    if r["weights_apart"] is None:
        return ", with weights that are not finite"
    return f", with weights up to {phrases.number(r['weights_apart'], 2)} apart"


def loose_findings(at, rows, more):
    """Yields a sentence on the method without a promise of the same bits everywhere that varied most per run."""
    loose = [r for r in rows if r["promise"] not in SAME_EVERYWHERE]
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"] / r["runs"])
        several = most["distinct_bits"] > 1
        yield (f"{at}, {task(most)}: {most['method']} (promise: {most['promise']}) returned "
               + (f"{most['distinct_bits']:,} different results" if several else "the same result")
               + f" in {phrases.plural(most['runs'], 'run')}" + (more(most) if several else "") + ".")


def value_range(rows, value, value_text, worst=None):
    """'5 (method) to 9 (method)', or one value if it is the same with every method.

    `worst` is the upper value of rows that have a range of their own.
    """
    few, many = min(rows, key=value), max(rows, key=worst or value)
    least, most = value_text(value(few)), value_text((worst or value)(many))
    if least == most:
        return f"{least} with every method" if len(rows) > 1 else f"{least} ({few['method']})"
    return f"{least} ({few['method']}) to {most} ({many['method']})"


def iterations_finding(at, data, format, rows):
    failed = [r["method"] for r in rows if r["converged"] < r["runs"]]
    iterations = value_range(rows, lambda r: r["least_iterations"], lambda n: phrases.plural(n, "iteration"),
                             lambda r: r["most_iterations"])
    return (f"{at}, {SYSTEMS[data]} in {format}: conjugate gradients needed {iterations}"
            + (f"; some runs did not reach the tolerance with {phrases.names(failed)}." if failed else "."))


def training_findings(at, steps, rows):
    finite = [r for r in rows if r["most_error"] is not None]
    lost = [r["method"] for r in rows if r["most_error"] is None]
    if finite:
        errors = value_range(finite, lambda r: r["most_error"], lambda x: f"{phrases.number(x, 4)} km")
        yield f"{at}, after {phrases.plural(steps, 'step')} the error of the network is {errors}."
    if lost:
        yield f"{at}: the error of the network is not finite with {phrases.names(lost)}."


def recording_findings(at, format, rows):
    by = {q: [r for r in rows if r["quantity"] == q] for q in ("variance, naive", "variance, two passes")}
    known = [[r for r in some if r["relative_error"] is not None] for some in by.values()]
    if all(known):
        naive, two = (value_range(some, lambda r: r["relative_error"], lambda x: phrases.number(x, 2))
                      for some in known)
        yield (f"{at}, variance of the Moon's distance in {format}: the relative error is {naive} by the naive "
               f"formula, and {two} in two passes.")
    lost = [r["method"] for some in by.values() for r in some if r["value"] is None]
    if lost:
        yield f"{at}: sums of the Moon's distance overflow {format} with {phrases.names(lost)}."
    negative = [r["method"] for some in by.values() for r in some if r["value"] is not None and r["value"] < 0]
    if negative:
        yield f"{at}: a variance in {format} is negative with {phrases.names(negative)}."


# --- figures and tables -----------------------------------------------------------------------------------------

def bars(id, title, x_title, length, label, rows, value, text, value_text, first=None):
    """A figure with one bar per method. `length` and `label` describe the bars, `value_text` formats lengths, and `first`
    has initial choices."""
    series = []
    for at, r in sorted(rows, key=lambda pair: (value(pair[1]), pair[1]["method"])):
        algorithm, format, _ = phrases.parts(r["method"])
        series.append(Series(r["method"], [value(r)], [algorithm], style.colour(r["method"]), (at, task(r), format),
                             text=[text(r)]))
    menus = [("Machine", distinct(at for at, _ in rows)), ("Computation", distinct(task(r) for _, r in rows)),
             ("Format of the sums", starting_with([phrases.parts(r["method"])[1] for _, r in rows], "fp64"))]
    found = Figure(id, title, menus, series, x_title, {None: ""}, bars=True,
                   description="Each bar is a method; its colour shows the accumulator. "
                               f"Length: {length}. Label: {label}.", initial=first or {})
    found.finding = captions.describe_bars(found, value_text)
    return found


def bits_figure(rows):
    return bars("consequences-bits", "Number of different results of the same computation", "bit patterns",
                "bit patterns of the result", "that number, and in how many runs", rows,
                lambda r: r["distinct_bits"], results, lambda patterns: phrases.plural(patterns, "bit pattern"))


def iterations_figure(rows):
    at, r = widest(rows) or (None, None)
    first = {"Machine": at, "Computation": task(r), "Format of the sums": phrases.parts(r["method"])[1]} if r else {}
    return bars("consequences-iterations", "Number of iterations of conjugate gradients", "iterations, maximum",
                "largest number of iterations over the runs", "range over the runs",
                [(at, r) for at, r in rows if r["kind"] == "solver"], lambda r: r["most_iterations"],
                lambda r: span(r, "iterations"), lambda most: phrases.plural(most, "iteration"), first)


def tables(rows):
    for (at, data), some in groups(rows, "solver", "data"):
        yield Table(f"{at}: conjugate gradients, {SYSTEMS[data]}, condition number "
                    f"{condition(some[0])}, n = {phrases.count(some[0]['n'])}",
                    ["method", "promise", "results", "iterations", "largest residual"],
                    [[r["method"], r["promise"], results(r), span(r, "iterations"),
                      phrases.number(r["most_residual"], 2)] for r in some], text_columns=2, folded=True)
    for (at, steps), some in groups(rows, "training", "steps"):
        yield Table(f"{at}: a network of {some[0]['weights']} weights after {phrases.plural(steps, 'step')}",
                    ["method", "promise", "results", "weights apart", "error, km"],
                    [[r["method"], r["promise"], results(r), phrases.number(r["weights_apart"], 2), span(r, "error")]
                     for r in some], text_columns=2, folded=True)
    for (at,), some in groups(rows, "recording"):
        methods = {}
        for r in some:
            methods.setdefault(r["method"], {})[r["quantity"]] = phrases.number(r["relative_error"], 2)
        quantities = distinct(r["quantity"] for r in some)
        yield Table(f"{at}: relative errors of the mean and variance of the Moon's distance, {some[0]['n']:,} samples",
                    ["method", *quantities], [[m, *(by.get(q, "") for q in quantities)] for m, by in methods.items()],
                    folded=True)


def results(r):
    """Number of different results, and in how many runs."""
    return f"{r['distinct_bits']} in {phrases.plural(r['runs'], 'run')}"
