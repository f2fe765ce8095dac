"""How wrong is each method on my own data? What `own_data` found on several files."""

import dataclasses

import compare
import words
from section import Table, distinct


def section(sources):
    sources = [dataclasses.replace(source, rows=latest(source.rows)) for source in sources]
    files = [(source.machine, c) for source in sources for c in source.rows]
    s = compare.section(sources)
    return dataclasses.replace(
        s, id="own-data", title="Own data",
        about="Every method on files of the reader's. Errors are relative to the exact sum of the elements as given, "
              "and those of the first table are of methods in the data's own format.",
        command="own_data FILE… --out DIR",
        figures=[dataclasses.replace(f, id="own-data-figure") for f in s.figures],
        findings=list(findings([c for _, c in files])) + s.findings,
        tables=([overview(machine, [c for m, c in files if m == machine]) for machine in distinct(m for m, _ in files)]
                + [dataclasses.replace(t, folded=True) for t in s.tables]))


def latest(comparisons):
    """A file that changed was measured again."""
    return list({(c["data"]["name"], c["data"]["format"]): c for c in comparisons}.values())


def findings(comparisons):
    loops = [(c, compare.own(c, "serial/plain")) for c in comparisons]
    loops = [(c, loop) for c, loop in loops if loop]
    if not loops:
        return
    right = [c for c, loop in loops if loop["bits"] == loop["truth_bits"]]
    lost = [c for c, loop in loops if loop["relative_error"] is None or loop["relative_error"] >= 0.1]
    yield (f"A plain loop in the data's own format is right to the last bit on {words.of(len(right), len(loops))} "
           f"files, and has not one right digit on {words.of(len(lost), len(loops))}"
           + (f": {words.names(compare.title(c) for c in lost)}." if lost else "."))


def overview(machine, comparisons):
    """All files at a glance."""
    recipes = ["serial/plain", "tree/plain", "pairwise/kahan", "exact"]
    rows = []
    for c in comparisons:
        chosen = [compare.own(c, recipe) for recipe in recipes]
        rows.append([compare.title(c), c["data"]["format"], words.count(c["data"]["n"]),
                     words.number(c["data"]["condition"])]
                    + [compare.error(m) if m else "" for m in chosen] + [c["recommendation"]["method"]])
    return Table(f"All files, {machine}", ["file", "format", "elements", "condition number", *recipes, "use"], rows,
                 words=2)
