"""How wrong is each method on a data set? What `samesum compare` found."""

import ast
import pathlib

import style
import words
from figure import Figure, Series
from results import FORMATS
from section import SAME_EVERYWHERE, Section, Table, distinct, preferred, within

LEAST = 2.0**-60  # relative errors below this are drawn here: a logarithm has no place for 0

def section(sources):
    s = Section("data-sets", "Data sets", "Every method on real and made data. Errors are relative to the exact sum "
                "of the elements as given; columns are the format in which a method adds and answers. Where that is "
                "narrower than the data, elements are rounded to it first.", "experiments/run")
    if sources:
        comparisons = [(source.machine, c) for source in sources for c in source.rows]
        s.findings = list(findings([c for _, c in comparisons]))
        s.figures = [figure(comparisons)]
        s.tables = [table(machine, c, folded=i > 0) for i, (machine, c) in enumerate(comparisons)]
        s.failures = [f"{machine}, {title(c)}: {failure}" for machine, c in comparisons for failure in c["failures"]]
    return s


def title(comparison):
    return pathlib.PurePath(comparison["data"]["name"]).name


def about_data_sets():
    """What the generators of experiments/datasets.py say of themselves, by the data's name without its extension."""
    source = pathlib.Path(__file__).parents[1] / "experiments/datasets.py"
    return {node.name: ast.get_docstring(node).splitlines()[0] for node in ast.parse(source.read_text()).body
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}


# --- sentences --------------------------------------------------------------------------------------------------

def own(comparison, recipe):
    """The method of that order and accumulator in the data's own format, if it was measured."""
    wanted = (recipe, comparison["data"]["format"], "cpu")
    return next((m for m in comparison["methods"] if words.parts(m["method"]) == wanted), None)


def about(c):
    condition = c["data"]["condition"]
    return (f"{words.plural(c['data']['n'], 'element')} in {c['data']['format']}, "
            f"condition number {words.number(condition)}")


def findings(comparisons):
    methods = [m for c in comparisons for m in c["methods"] if not words.is_peer(m["method"])]
    exact = [m for m in methods if words.accumulator(m["method"]) == "exact"]
    if exact:
        others = [m for m in methods if words.accumulator(m["method"]) != "exact"]
        right = sum(m["bits"] == m["truth_bits"] for m in exact)
        yield (f"exact is the correctly rounded sum in {words.of(right, len(exact))} results on "
               f"{words.plural(len({title(c) for c in comparisons}), 'data set')}"
               + (f"; the other methods in {words.of(sum(m['bits'] == m['truth_bits'] for m in others), len(others))}."
                  if others else "."))
    yield from within(methods, "samesum's methods", "their rigorous bounds",
                      lambda rows: words.names(m["method"] for m in rows))
    kept = [m for m in methods if m["promise"] in SAME_EVERYWHERE]
    changed = [m["method"] for m in kept if m["distinct_bits"] > 1]
    if kept:
        yield (f"{words.sentence(words.of(len(kept) - len(changed), len(kept)))} results of methods that promise the "
               "same bits everywhere were one bit pattern in all runs"
               + (f"; not {words.names(changed)}." if changed else "."))
    told = set()
    for c in comparisons:
        loop = own(c, "serial/plain")
        if loop and title(c) not in told:
            told.add(title(c))
            yield f"{title(c)} ({about(c)}): a plain loop in {c['data']['format']} {how_wrong(loop)}."


def how_wrong(loop):
    if loop["value"] is None:
        return "gives no finite number"
    if loop["bits"] == loop["truth_bits"]:
        return "is right to the last bit"
    wrong = "gives {} for {}".format(*words.apart(loop["value"], loop["truth"]))
    return wrong + (f", a relative error of {words.number(loop['relative_error'], 2)}"
                    if loop["relative_error"] is not None else "")


# --- the figure -------------------------------------------------------------------------------------------------

def figure(comparisons):
    """What a digit costs: a point is a method, in the colour of its accumulator and the symbol of its promise."""
    points = {}
    for machine, c in comparisons:
        for m in c["methods"]:
            if m["relative_error"] is not None and m["gb_per_s"]:
                on = (title(c), f"{machine}, {words.runs_on(m['method'])}", words.parts(m["method"])[1])
                points.setdefault(on, []).append(m)
    series = []
    for on, methods in points.items():
        best = frontier(methods)
        series.append(Series("frontier", [m["gb_per_s"] for m in best], [at_least(m) for m in best], "#888888", on,
                             faint=True))
        for accumulator in style.COLOURS:
            for promise, symbol in style.PROMISES.items():
                some = [m for m in methods
                        if words.accumulator(m["method"]) == accumulator and m["promise"] == promise]
                if some:
                    series.append(Series(f"{accumulator}, {promise}", [m["gb_per_s"] for m in some],
                                         [at_least(m) for m in some], style.COLOURS[accumulator], on, symbol=symbol,
                                         text=[f"{m['method']}: {words.number(m['gb_per_s'])} GB/s, relative error "
                                               f"{error(m)}" for m in some]))
    menus = [("Data", distinct(data for data, _, _ in points)),
             ("On", sorted(distinct(at for _, at, _ in points), key=lambda at: not at.endswith("GPU"))),
             ("Answer in", preferred([format for _, _, format in points], "fp32"))]
    return Figure("frontier-figure", "What a right digit costs: error against speed", menus, series,
                  "GB/s of input", {None: "error, relative to the exact sum"}, points=True, x_kind="log10",
                  note="Colour: the accumulator; symbol: the promise. Right and low is better; on the dotted line "
                       "nothing is both faster and closer. An error below 10⁻¹⁸, none included, is drawn there.")


def at_least(method):
    return max(method["relative_error"], LEAST)


def frontier(methods):
    """Those that none of the faster ones is as close as."""
    best = []
    for m in sorted(methods, key=lambda m: (-m["gb_per_s"], at_least(m))):
        if not best or at_least(m) < at_least(best[-1]):
            best.append(m)
    return best


# --- the tables -------------------------------------------------------------------------------------------------

def error(method):
    return words.number(method["relative_error"], 2) if method["value"] is not None else "not finite"


def table(machine, c, folded):
    rows = {}
    for m in c["methods"]:
        recipe, format, backend = words.parts(m["method"])
        rows.setdefault((recipe, backend), {})[format] = m
    formats = [f for f in FORMATS if any(f in row for row in rows.values())]
    mine = c["data"]["format"]
    lines = []
    for (recipe, backend), row in rows.items():
        patterns = [m["distinct_bits"] for m in row.values()]
        low, high = min(patterns), max(patterns)
        lines.append([f"{recipe}@{backend}"] + [error(row[f]) if f in row else "" for f in formats]
                     + [str(low) if low == high else f"{low} to {high}",
                        words.number(row[mine]["gb_per_s"], 2) if mine in row else ""])
    what = about_data_sets().get(pathlib.PurePath(title(c)).stem, "")
    advice = c["recommendation"]
    note = " ".join(filter(None, [words.sentence(about(c)) + ".", what,
                                  f"Use {advice['method']}: {advice['reason']}."]))
    return Table(f"{title(c)}, {machine}", ["method"] + formats + ["bit patterns", f"GB/s in {mine}"], lines,
                 folded=folded, note=note)
