"""Section on the errors of every method on the reader's own files, from the results of own_data."""

import dataclasses

import compare
import phrases
from section import Table


def section(sources):
    files = compare.comparisons(sources)
    s = compare.make_section(files)
    by_machine = {}
    for c in files:
        by_machine.setdefault(c.machine, []).append(c)
    return dataclasses.replace(
        s, id="own-data", title="Own data",
        about="Every method on the reader's own files. Errors are relative to the exact sum of the elements as given; "
              "the first table has the methods in the format of the data.",
        command="build/release/bin/own_data FILE… --out DIR",
        figures=[dataclasses.replace(f, id="own-data-figure") for f in s.figures],
        findings=list(findings(files)) + s.findings,
        tables=[overview(machine, some) for machine, some in by_machine.items()]
        + [dataclasses.replace(t, folded=True) for t in s.tables])


def findings(files):
    loops = [(c, compare.method_in_data_format(c, "serial/plain")) for c in files]
    loops = [(c, loop) for c, loop in loops if loop]
    if not loops:
        return
    right = sum(loop["bits"] == loop["truth_bits"] for _, loop in loops)
    lost = [c.title for c, loop in loops if loop["bits"] != loop["truth_bits"]
            and (loop["relative_error"] is None or loop["relative_error"] >= 0.1)]
    yield (f"A plain loop in the format of the data is correct to the last bit on "
           f"{phrases.out_of(right, len(loops), 'file')}"
           + (f" and has no correct digit on {phrases.out_of(len(lost), len(loops))}: {phrases.names(lost)}."
              if lost else "."))


def overview(machine, files):
    """Table with one row per file."""
    algorithms = ["serial/plain", "tree/plain", "pairwise/kahan", "exact"]
    rows = []
    for c in files:
        chosen = [compare.method_in_data_format(c, algorithm) for algorithm in algorithms]
        rows.append([c.title, c.data["format"], phrases.count(c.data["n"]), phrases.number(c.data["condition"])]
                    + [compare.error(m) if m else "" for m in chosen] + [c.row["recommendation"]["method"]])
    return Table(f"All files, {machine}",
                 ["file", "format", "elements", "condition number", *algorithms, "recommended"], rows, text_columns=2)
