"""Section on the errors of every method on the reader's own files, from the results of own_data."""

import dataclasses

import compare
import phrases
from section import Table, distinct

# The columns of the first table; "tree" is an operation without a choice of accumulators.
ALGORITHMS = ["serial/plain", "tree/plain", "tree", "pairwise/kahan", "exact"]


def section(sources):
    files = compare.comparisons(sources)
    s = compare.make_section(files)
    first = list(findings(files)) or list(compare.loop_findings(files))
    return dataclasses.replace(
        s, id="own-data", title="Own data",
        about="Every method on your own files. Errors are relative to the exact result for the elements as given; the "
              "first table has the methods in the format of the data.",
        command="build/release/bin/own_data FILE… --out DIR",
        figures=[dataclasses.replace(f, id="own-data-figure") for f in s.figures],
        findings=distinct(first + s.findings),
        tables=list(overviews(files)) + [dataclasses.replace(t, folded=len(files) > 1) for t in s.tables])


def findings(files):
    for operation, some in compare.by_operation(files):
        loops = [(c, compare.method_in_data_format(c, "serial/plain")) for c in some]
        loops = [(c, loop) for c, loop in loops if loop]
        if len(loops) > 1:  # one file has a sentence of its own
            yield from compare.named(operation, [loop_finding(operation, loops)])


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


def overviews(files):
    """Yields a table per machine and operation."""
    for machine in distinct(c.machine for c in files):
        for operation, some in compare.by_operation([c for c in files if c.machine == machine]):
            yield overview(machine + (f", {operation}" if operation != "sum" else ""), some)


def overview(where, files):
    """Table with one row per file."""
    chosen = {a: [compare.method_in_data_format(c, a) for c in files] for a in ALGORITHMS}
    chosen = {a: methods for a, methods in chosen.items() if any(methods)}
    rows = [[c.title, c.data["format"], phrases.count(c.data["n"]), phrases.number(c.data["condition"])]
            + [compare.error(methods[i]) if methods[i] else "" for methods in chosen.values()]
            + [c.row["recommendation"]["method"]] for i, c in enumerate(files)]
    return Table(f"All files, {where}", ["file", "format", "elements", "condition number",
                                         *(f"error of {a}" for a in chosen), "recommended"], rows, text_columns=2)
