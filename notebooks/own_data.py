"""How wrong is each method on my own data? What `own_data` found on several files."""

import dataclasses

import compare
import words
from section import Table


def section(sources):
    files = compare.comparisons(sources)
    s = compare.about(files)
    by_machine = {}
    for c in files:
        by_machine.setdefault(c.machine, []).append(c)
    return dataclasses.replace(
        s, id="own-data", title="Own data",
        about="Every method on files of the reader's. Errors are relative to the exact sum of the elements as given, "
              "and those of the first table are of methods in the data's own format.",
        command="own_data FILE… --out DIR",
        figures=[dataclasses.replace(f, id="own-data-figure") for f in s.figures],
        findings=list(findings(files)) + s.findings,
        tables=[overview(machine, some) for machine, some in by_machine.items()]
        + [dataclasses.replace(t, folded=True) for t in s.tables])


def findings(files):
    loops = [(c, compare.own(c, "serial/plain")) for c in files]
    loops = [(c, loop) for c, loop in loops if loop]
    if not loops:
        return
    right = sum(loop["bits"] == loop["truth_bits"] for _, loop in loops)
    lost = [c.title for c, loop in loops if loop["bits"] != loop["truth_bits"]
            and (loop["relative_error"] is None or loop["relative_error"] >= 0.1)]
    yield (f"A plain loop in the data's own format is right to the last bit on {words.of(right, len(loops), 'file')}"
           + (f", and has not one right digit on {words.of(len(lost), len(loops))}: {words.names(lost)}."
              if lost else "."))


def overview(machine, files):
    """All files at a glance."""
    recipes = ["serial/plain", "tree/plain", "pairwise/kahan", "exact"]
    rows = []
    for c in files:
        chosen = [compare.own(c, recipe) for recipe in recipes]
        rows.append([c.title, c.data["format"], words.count(c.data["n"]), words.number(c.data["condition"])]
                    + [compare.error(m) if m else "" for m in chosen] + [c.row["recommendation"]["method"]])
    return Table(f"All files, {machine}", ["file", "format", "elements", "condition number", *recipes, "use"], rows,
                 words=2)
