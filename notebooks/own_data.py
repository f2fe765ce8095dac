"""Section on the errors of every method on the reader's own files, from the results of own_data."""

import dataclasses

import compare
import phrases
import project
from section import Table, distinct

# The columns of the first table; "tree" is an operation without a choice of accumulators.
ALGORITHMS = ["serial/plain", "tree/plain", "tree", "pairwise/kahan", "exact"]


def section(sources):
    files = compare.comparisons(sources)
    s = compare.make_section(files)
    tables = list(overviews(files))
    first = list(compare.file_findings(files)) or list(compare.loop_findings(files))
    return dataclasses.replace(
        s, id="own-data", title="Own data", question="How large are the errors?",
        about="Every method on your own files. Errors are relative to the exact result for the elements as given; the "
              "first table has the methods in the format of the data.",
        command=project.OWN,
        figures=[dataclasses.replace(f, id="own-data-figure") for f in s.figures],
        findings=distinct(first + s.findings),
        tables=tables + s.tables, open_tables=len(tables))


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
