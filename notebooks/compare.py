"""How wrong is each method on a data set? What `samesum compare` found."""

import ast
import dataclasses
import functools
import pathlib

import style
import words
from figure import Figure, Series
from results import FORMATS
from section import PROMISES, SAME_EVERYWHERE, Section, Table, distinct, exactness, frontier, preferred, within

LEAST = 2.0**-60  # relative errors below this are drawn here: a logarithm has no place for 0


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A row, where it was measured, and what its data are called: on that machine no other data are called so."""

    machine: str
    title: str
    row: dict

    @property
    def data(self):
        return self.row["data"]

    @property
    def methods(self):
        return self.row["methods"]


def section(sources):
    return about(comparisons(sources), about_data_sets())


def about(found, notes=()):
    """The section on these comparisons; `notes` say more about data, by their name and length."""
    s = Section("data-sets", "Data sets", "Every method on real and made data. Errors are relative to the exact sum "
                "of the elements as given; columns are the format in which a method adds and answers. Where that is "
                "narrower than the data, elements are rounded to it first.", "experiments/run")
    if found:
        s.findings = list(findings(found))
        s.figures = [figure(found)]
        s.tables = [table(c, dict(notes).get((base_name(c.data["name"]), c.data["n"]), ""), folded=i > 0)
                    for i, c in enumerate(found)]
        s.failures = [f"{c.machine}, {c.title}: {failure}" for c in found for failure in c.row["failures"]]
    return s


def comparisons(sources):
    """Of every source the latest comparison of each file: one that changed was measured again."""
    found = []
    for source in sources:
        latest = {(c["data"]["name"], c["data"]["format"]): c for c in source.of("comparison")}
        names = [name for name, _ in latest]
        called = titles(distinct(names))
        found += [Comparison(source.machine, called[name] + (f" as {format}" if names.count(name) > 1 else ""), c)
                  for (name, format), c in latest.items()]
    return found


def titles(names):
    """What each of these files is called: the shortest end of its path that is the end of no other."""
    parts = {name: pathlib.PurePath(name).parts for name in names}
    return {name: next((str(pathlib.PurePath(*mine[-k:])) for k in range(1, len(mine))
                        if sum(other[-k:] == mine[-k:] for other in parts.values()) == 1), name)
            for name, mine in parts.items()}


def base_name(path):
    return pathlib.PurePath(path).name


@functools.cache
def about_data_sets():
    """What the generators of experiments/datasets.py say of themselves, by the name and the length of their data."""
    source = pathlib.Path(__file__).parents[1] / "experiments/datasets.py"
    body = ast.parse(source.read_text()).body
    told = {node.name: ast.get_docstring(node).splitlines()[0] for node in body
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}
    table = next(node.value for node in body if isinstance(node, ast.Assign) and node.targets[0].id == "DATASETS")
    return {(ast.literal_eval(name), ast.literal_eval(n)): told[make.id] for name, make, n, _ in
            (row.elts for row in table.elts)}


# --- sentences --------------------------------------------------------------------------------------------------

def own(c, recipe):
    """The method of that order and accumulator in the data's own format, if it was measured."""
    wanted = (recipe, c.data["format"], "cpu")
    return next((m for m in c.methods if words.parts(m["method"]) == wanted), None)


def facts(c):
    return (f"{words.plural(c.data['n'], 'element')} in {c.data['format']}, "
            f"condition number {words.number(c.data['condition'])}")


def findings(found):
    methods = [m | {"on": f"{m['method']} on {c.title} ({c.machine})"} for c in found for m in c.methods
               if not words.is_peer(m["method"])]
    data = {}  # each once, though several machines have it
    for c in found:
        data.setdefault((c.title, facts(c)), c)
    yield from exactness(methods, f" on {words.plural(len(data), 'data set')}")
    yield from within(methods, "samesum's methods", "their rigorous bounds",
                      lambda rows: words.names(m["on"] for m in rows))
    kept = [m for m in methods if m["promise"] in SAME_EVERYWHERE]
    changed = [m["on"] for m in kept if m["distinct_bits"] > 1]
    if kept:
        same = len(kept) - len(changed)
        yield (f"{words.sentence(words.of(same, len(kept), 'result'))} of methods that promise the same bits "
               f"everywhere {words.verb(same, len(kept), 'was', 'were')} one bit pattern in all runs"
               + (f"; not {words.names(changed)}." if changed else "."))
    for (title, about_it), c in data.items():
        loop = own(c, "serial/plain")
        if loop:
            yield f"{title} ({about_it}): a plain loop in {c.data['format']} {how_wrong(loop)}."


def how_wrong(loop):
    if loop["value"] is None:
        return "gives no finite number"
    if loop["bits"] == loop["truth_bits"]:
        return "is right to the last bit"
    if loop["truth"] is None:
        return f"gives {loop['value']:.6g}, where the sum is no finite number of that format"
    wrong = "gives {} for {}".format(*words.apart(loop["value"], loop["truth"]))
    return wrong + (f", a relative error of {words.number(loop['relative_error'], 2)}"
                    if loop["relative_error"] is not None else "")


# --- the figure -------------------------------------------------------------------------------------------------

def figure(found):
    """What a digit costs: a point is a method, in the colour of its accumulator and the symbol of its promise."""
    points = {}
    for c in found:
        for m in c.methods:
            if m["relative_error"] is not None and m["gb_per_s"]:
                on = (c.title, f"{c.machine}, {words.runs_on(m['method'])}", words.parts(m["method"])[1])
                points.setdefault(on, []).append(m)
    series = []
    for on, methods in points.items():
        best = fastest_and_closest(methods)
        series.append(Series("frontier", [m["gb_per_s"] for m in best], [at_least(m) for m in best], style.GREY, on,
                             faint=True))
        groups = {}
        for m in methods:
            groups.setdefault((words.accumulator(m["method"]), m["promise"]), []).append(m)
        for (accumulator, promise), some in sorted(groups.items(), key=lambda g: (g[0][0], PROMISES.index(g[0][1]))):
            series.append(Series(f"{accumulator}, {promise}", [m["gb_per_s"] for m in some],
                                 [at_least(m) for m in some], style.colour(some[0]["method"]), on,
                                 symbol=style.PROMISES[promise], text=[f"{m['method']}: {speed_and_error(m)}"
                                                                       for m in some]))
    menus = [("Data", distinct(data for data, _, _ in points)),
             ("On", sorted(distinct(at for _, at, _ in points), key=lambda at: not at.endswith("GPU"))),
             ("Answer in", preferred([format for _, _, format in points], "fp32"))]
    f = Figure("frontier-figure", "What a right digit costs: error against speed", menus, series,
               "GB/s of input", {None: "error, relative to the exact sum"}, points=True, x_kind="log10",
               note="Colour: the accumulator; symbol: the promise. Right and low is better; on the dotted line "
                    "nothing is both faster and closer. Errors below 10⁻¹⁸, also 0, are drawn as 10⁻¹⁸.")
    return dataclasses.replace(f, reading=reading(f.chosen(), points[f.chosen()])) if points else f


def reading(on, methods):
    """What the figure shows at first."""
    best = fastest_and_closest(methods)
    title, at, format = on
    where = f"{title} ({at}, answers in {format})"
    if len(best) == 1:
        return (f"{where}: of {words.plural(len(methods), 'method')} {best[0]['method']} is both the fastest and the "
                f"closest, {speed_and_error(best[0])}.")
    between = [m["method"] for m in best[1:-1]]
    return (f"{where}: of {words.plural(len(methods), 'method')} the fastest is {best[0]['method']}, "
            f"{speed_and_error(best[0])}; the closest is {best[-1]['method']}, {speed_and_error(best[-1])}"
            + (f"; between them nothing is both faster and closer than {words.names(between)}." if between else "."))


def at_least(method):
    return max(method["relative_error"], LEAST)


def fastest_and_closest(methods):
    return frontier(methods, lambda m: -m["gb_per_s"], at_least)


def error(method):
    return words.number(method["relative_error"], 2) if method["value"] is not None else "not finite"


def speed_and_error(m):
    return f"{words.number(m['gb_per_s'])} GB/s, relative error {error(m)}"


# --- the tables -------------------------------------------------------------------------------------------------

def table(c, what, folded):
    rows = {}
    for m in c.methods:
        recipe, format, backend = words.parts(m["method"])
        rows.setdefault((recipe, backend), {})[format] = m
    formats = [f for f in FORMATS if any(f in row for row in rows.values())]
    mine = c.data["format"]
    lines = []
    for (recipe, backend), row in rows.items():
        patterns = [m["distinct_bits"] for m in row.values()]
        low, high = min(patterns), max(patterns)
        lines.append([f"{recipe}@{backend}"] + [error(row[f]) if f in row else "" for f in formats]
                     + [str(low) if low == high else f"{low} to {high}",
                        words.number(row[mine]["gb_per_s"], 2) if mine in row else ""])
    advice = c.row["recommendation"]
    note = " ".join(filter(None, [words.sentence(facts(c)) + ".", what,
                                  f"Use {advice['method']}: {advice['reason']}."]))
    return Table(f"{c.title}, {c.machine}", ["method"] + formats + ["bit patterns", f"GB/s in {mine}"], lines,
                 folded=folded, note=note)
