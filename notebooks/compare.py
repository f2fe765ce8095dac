"""Section on the errors of every method on each data set, from the results of `samesum compare`."""

import ast
import dataclasses
import functools
import pathlib
import re

import phrases
import style
import timing
from figure import Figure, Series
from results import FORMATS
from section import (SAME_EVERYWHERE, Check, Section, Table, bound_findings, distinct, exactness_findings, frontier,
                     place, preferred, starting_with)

@dataclasses.dataclass(frozen=True)
class Comparison:
    """A row with its source and the title of its data, which no other data of that source have."""

    source: object
    title: str
    row: dict

    @property
    def machine(self):
        return self.source.machine

    @property
    def operation(self):
        return self.row.get("operation", "sum")

    @property
    def data(self):
        return self.row["data"]

    @property
    def methods(self):
        return self.row["methods"]


def section(sources):
    return make_section(comparisons(sources), about_data_sets())


def make_section(found, notes=()):
    """The section on these comparisons. `notes` describe data sets, by base name and length."""
    s = Section("data-sets", "Data sets", question(),
                f"Every method on data sets. Made by a program are {', '.join(made_data_sets())}. Errors are relative "
                "to the exact "
                "sum of the elements as given. Columns are the formats in which a method adds and returns; if that "
                "format is narrower than the data, each element is first rounded to it.", "experiments/run",
                terms=("method", "order", "accumulator", "promise", "bound", "condition number", "frontier"))
    if found:
        s.verdict = next(iter([*file_findings(found), *loop_findings(found)]), "")
        s.findings = list(findings(found))
        s.figures = [figure(found)]
        s.tables = [table(c, dict(notes).get(name_and_length(c.row), ""), folded=i > 0)
                    for i, c in enumerate(found)]
        s.failures = [f"{c.machine}, {c.title}: {failure}" for c in found for failure in c.row["failures"]]
    return s


def comparisons(sources):
    """The latest comparison of each file in each source; a file that changed was measured again."""
    found = []
    for source in sources:
        latest = {(files(c), c["data"]["format"], c.get("operation", "sum")): c for c in source.of("comparison")}
        data = [paths for paths, _ in distinct((paths, format) for paths, format, _ in latest)]
        title_of = titles(path for paths in data for path in paths)
        found += [Comparison(source, ", ".join(title_of[path] for path in paths)
                             + (f" as {format}" if data.count(paths) > 1 else "")
                             + (f", {operation}" if operation != "sum" else ""), c)
                  for (paths, format, operation), c in latest.items()]
    return found


def files(comparison):
    """The files of a comparison, each with the column of a table. Older rows have only a name, which joins the files."""
    data = comparison["data"]
    separator = ", | and " if comparison.get("operation") == "dot" else ", "
    return tuple(data.get("files") or re.split(separator, data["name"]))


def parts(path):
    """Parts of a path. The column of a table belongs to the last one, even if its name has a slash."""
    file, colon, column = path.partition(":")
    pure = pathlib.PurePath(file)
    return (*pure.parts[:-1], pure.name + colon + column)


def titles(paths):
    """{path: title}, where a title is the shortest end of the path that no other path has."""
    parts_of = {path: parts(path) for path in paths}
    return {path: next(("/".join(mine[-k:]) for k in range(1, len(mine))
                        if sum(other[-k:] == mine[-k:] for other in parts_of.values()) == 1), path)
            for path, mine in parts_of.items()}


def name_and_length(comparison):
    """Base names and length of the data, as in the keys of about_data_sets()."""
    return ", ".join(pathlib.PurePath(path).name for path in files(comparison)), comparison["data"]["n"]


@functools.cache
def about_data_sets():
    """First lines of the docstrings in experiments/datasets.py, by the name and the length of the data."""
    source = pathlib.Path(__file__).parents[1] / "experiments/datasets.py"
    body = ast.parse(source.read_text()).body
    first_lines = {node.name: ast.get_docstring(node).splitlines()[0] for node in body
                   if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}
    table = next(node.value for node in body if isinstance(node, ast.Assign) and node.targets[0].id == "DATASETS")
    return {(ast.literal_eval(name), ast.literal_eval(n)): first_lines[make.id] for name, make, n, _ in
            (row.elts for row in table.elts)}


def made_data_sets():
    """The names of the data sets of the study that are not from a package."""
    return [name for (name, _), note in about_data_sets().items() if " from the package " not in note]


def question():
    made = len(made_data_sets())
    return (f"How wrong are sums of {phrases.plural(made, 'made data set')} and of "
            f"{phrases.plural(len(about_data_sets()) - made, 'real one')}?")


def is_of_study(comparison):
    """Whether a row is on data of the study, and not on the reader's own."""
    return name_and_length(comparison) in about_data_sets()


# --- sentences --------------------------------------------------------------------------------------------------

def method_in_data_format(c, algorithm):
    """The CPU method with this order and accumulator in the format of the data; None if it was not measured."""
    key = (algorithm if c.operation == "sum" else f"{c.operation}/{algorithm}", c.data["format"], "cpu")
    return next((m for m in c.methods if phrases.parts(m["method"]) == key), None)


def data_facts(c):
    facts = [f"{phrases.plural(c.data['n'], 'element')} in {c.data['format']}"]
    facts += [f"{c.data['nans']:,} NaN"] * bool(c.data["nans"])
    facts += [phrases.plural(c.data["infinities"], "infinity", "infinities")] * bool(c.data["infinities"])
    if c.data["condition"] is not None:
        facts.append(f"condition number {phrases.number(c.data['condition'])}")
    return ", ".join(facts)


def by_operation(found):
    """[(operation, comparisons), …], sums first: results of different operations are never counted together."""
    operations = distinct(c.operation for c in found)
    return [(operation, [c for c in found if c.operation == operation])
            for operation in starting_with(operations, "sum")]


def named(operation, sentences):
    """The sentences, with the operation in front if it is not the sum."""
    return sentences if operation == "sum" else [f"{operation}: {sentence[0].lower()}{sentence[1:]}" for sentence in sentences]


def findings(found):
    for operation, some in by_operation(found):
        yield from named(operation, count_findings(operation, some))
    yield from loop_findings(found)


def count_findings(operation, found):
    methods = [m | {"on": f"{m['method']} on {c.title} ({c.source.place_of(m['method'])})"}
               for c in found for m in c.methods if not phrases.is_peer(m["method"])]
    yield from exactness_findings(methods, f" on {phrases.plural(len(data_sets(found)), 'data set')}", operation)
    yield from bound_findings(methods, "samesum's methods", "their rigorous bounds",
                              lambda rows: phrases.names(m["on"] for m in rows))
    kept = [m for m in methods if m["promise"] in SAME_EVERYWHERE]
    changed = [m["on"] for m in kept if m["distinct_bits"] > 1]
    if kept:
        same = len(kept) - len(changed)
        yield Check(f"{phrases.capitalised(phrases.out_of(same, len(kept), 'result'))} of methods with a promise of the "
                    f"same bits everywhere {phrases.verb(same, len(kept), 'has', 'have')} one bit pattern in all runs"
                    + phrases.exceptions(changed),
                    same, len(kept), "result with the same bits in all runs", "results with the same bits in all runs")


def data_sets(found):
    """{(title, facts): comparison} with each data set once, even if several machines have it."""
    first = {}
    for c in found:
        first.setdefault((c.title, data_facts(c)), c)
    return first


def file_findings(found):
    """Yields a sentence per operation on the results of the loop over all files; one file has a sentence of its own."""
    for operation, some in by_operation(list(data_sets(found).values())):
        loops = [(c, method_in_data_format(c, "serial/plain")) for c in some]
        loops = [(c, loop) for c, loop in loops if loop]
        if len(loops) > 1:
            yield from named(operation, [loop_finding(operation, loops)])


def loop_finding(operation, loops):
    """A sentence on the files whose exact result is a finite number, and on the others."""
    result = "sum" if operation == "sum" else "result"
    finite = [(c, loop) for c, loop in loops if loop["truth"] is not None]
    without = [c.title for c, loop in loops if loop["truth"] is None]
    right = sum(loop["bits"] == loop["truth_bits"] for _, loop in finite)
    lost = [c.title for c, loop in finite if loop["bits"] != loop["truth_bits"]
            and (loop["relative_error"] is None or loop["relative_error"] >= 0.1)]
    clauses = []
    if finite:
        clauses.append(f"a plain loop in the format of the data is correct to the last bit on "
                       f"{phrases.out_of(right, len(finite), 'file')}" + (f" with a finite {result}" if without else "")
                       + (f" and has no correct digit on {phrases.out_of(len(lost), len(finite))}: {phrases.names(lost)}"
                          if lost else ""))
    if without:
        clauses.append(f"{phrases.plural(len(without), 'file')} {phrases.verb(2, len(without), 'has', 'have')} no finite "
                       f"{result} in {phrases.verb(2, len(without), 'its', 'their')} format: {phrases.names(without)}")
    return phrases.capitalised("; ".join(clauses)) + "."


def loop_findings(found):
    for (title, facts), c in data_sets(found).items():
        loop = method_in_data_format(c, "serial/plain")
        if loop:
            yield f"{title} ({facts}): a plain loop in {c.data['format']} {loop_result(loop)}."


def loop_result(loop):
    if loop["value"] is None:
        return "returns no finite number" + ("; there is no finite result in that format" * (loop["truth"] is None))
    if loop["bits"] == loop["truth_bits"]:
        return "is correct to the last bit"
    if loop["truth"] is None:
        return f"returns {loop['value']:.6g}, but there is no finite result in that format"
    wrong = "returns {} instead of {}".format(*phrases.number_pair(loop["value"], loop["truth"]))
    return wrong + (f", a relative error of {phrases.number(loop['relative_error'], 2)}"
                    if loop["relative_error"] is not None else "")


# --- figure -----------------------------------------------------------------------------------------------------

def figure(found):
    """Error against speed. A point is a method, with the colour of its accumulator and the symbol of its order."""
    points = {}
    for c in found:
        for m in c.methods:
            if m["relative_error"] is not None and m["gb_per_s"]:
                on = (c.title, place(c.source, m), phrases.parts(m["method"])[1])
                points.setdefault(on, []).append(m)
    series = []
    for on, methods in points.items():
        best = frontier_methods(methods)
        series.append(Series("frontier", [m["gb_per_s"] for m in best], [m["relative_error"] for m in best], style.GREY,
                             on, faint=True, key="frontier"))
        peers = style.peers_among(m["method"] for m in methods)
        for m in methods:
            colour, symbol = style.point(m["method"], m["promise"], peers)
            series.append(Series(phrases.parts(m["method"])[0], [m["gb_per_s"]], [m["relative_error"]], colour, on,
                                 symbol=symbol, text=[f"{m['method']}, promise: {m['promise']}: {speed_and_error(m)}"]))
    menus = [("Data", distinct(data for data, _, _ in points)),
             ("Machine", preferred(at for _, at, _ in points)),
             ("Result format", starting_with([format for _, _, format in points], found[0].data["format"]))]
    f = Figure("frontier-figure", "Error against speed on each data set", menus, series,
               "speed, GB/s of input", {None: "relative error"}, points=True, x_kind="log10",
               description="Each point is a method; its colour shows the accumulator, its symbol the order. Hollow: it "
                           "promises less than the same bits everywhere. "
                           "Horizontal axis: speed, faster to the right. Vertical axis: error relative to the exact "
                           "result, more accurate further down. Dotted: the frontier of the methods that promise the "
                           f"same bits everywhere; medians within {timing.WITHIN} count as equal.")
    return dataclasses.replace(f, finding=frontier_finding(f.chosen(), points[f.chosen()])) if points else f


def frontier_finding(chosen, methods):
    """The ends of the frontier, what lies between them, and why other methods are not named."""
    best, others = frontier_methods(methods), [m["method"] for m in methods if m["promise"] not in SAME_EVERYWHERE]
    title, at, format = chosen
    kept = phrases.plural(len(methods) - len(others), "method")
    text = f"{title} ({at}, results in {format}): of {kept} that promise the same bits everywhere, "
    if not best:
        text = f"{title} ({at}, results in {format}): no method promises the same bits everywhere"
    elif len(best) == 1:
        text += (f"{best[0]['method']} is the most accurate, and no other is more than {timing.WITHIN} faster "
                 f"({speed_and_error(best[0])})")
    else:
        text += (f"the fastest is {best[0]['method']} ({speed_and_error(best[0])}) and the most accurate is "
                 f"{best[-1]['method']} ({speed_and_error(best[-1])})")
        between = [m["method"] for m in best[1:-1]]
        text += f"; between them on the frontier: {phrases.names(between)}" if between else ""
    return text + (". Not ranked, because they promise less: another run or machine may return other bits "
                   f"({phrases.names(others)})."
                   if others else ".")


def frontier_methods(methods):
    """The frontier of the methods that promise the same bits everywhere. Comparisons have no rounds, so a method is
    faster if the medians differ by more than those that count as equal."""
    return frontier([m for m in methods if m["promise"] in SAME_EVERYWHERE], lambda m: -m["gb_per_s"],
                    lambda m: m["relative_error"], lambda m, other: m["gb_per_s"] > timing.EQUAL * other["gb_per_s"])


def error(method):
    return phrases.number(method["relative_error"], 2) if method["value"] is not None else "not finite"


def speed_and_error(m):
    return f"{phrases.number(m['gb_per_s'])} GB/s, relative error {error(m)}"


# --- tables -----------------------------------------------------------------------------------------------------

def table(c, description, folded):
    rows = {}
    for m in c.methods:
        algorithm, format, backend = phrases.parts(m["method"])
        rows.setdefault((algorithm, backend), {})[format] = m
    formats = [f for f in FORMATS if any(f in row for row in rows.values())]
    mine = c.data["format"]
    lines = []
    for (algorithm, backend), row in rows.items():
        patterns = [m["distinct_bits"] for m in row.values()]
        low, high = min(patterns), max(patterns)
        lines.append([f"{algorithm}@{backend}"] + [error(row[f]) if f in row else "" for f in formats]
                     + [str(low) if low == high else f"{low} to {high}",
                        phrases.number(row[mine]["gb_per_s"], 2) if mine in row else ""])
    advice = c.row["recommendation"]
    note = " ".join(filter(None, [phrases.capitalised(data_facts(c)) + ".", description,
                                  f"Use {advice['method']}: {advice['reason']}."]))
    return Table(f"{c.title}, {c.machine}", ["method"] + formats + ["bit patterns", f"GB/s in {mine}"], lines,
                 folded=folded, note=note)
