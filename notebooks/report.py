"""Makes the report of a study: report.html, and report.md for a pull request.

It uses the results files in RESULTS and those of other machines in the --committed folder, MACHINE.QUESTION.jsonl and
MACHINE.compare.jsonl. Prints the findings. Exit codes: 0; 1 if a method of samesum broke a promise or a bound, or
returned wrong bits; 2 if a file is invalid.
"""

import argparse
import importlib
import os
import pathlib
import sys

import headlines
import markdown
import methods
import page
import phrases
import results
from section import Table

TITLE = "How accurate, how reproducible and how fast are sums?"
# The sections in their order: questions of results files, and modules with the same names.
SECTIONS = ["error_vs_length", "error_vs_condition", "accumulator_formats", "spread_over_runs", "reveal_order",
            "price_of_promise", "speed_vs_length", "speed_of_reductions", "ladder", "consequences", "compare",
            "own_data"]


def section(question, found):
    return importlib.import_module(question).section(found.get(question, []))


def first_figure(sections):
    """The figure at the top: error against speed if price_of_promise or compare has it, otherwise any figure."""
    figures = {question: s.figures[0] for question, s in zip(SECTIONS, sections) if s.figures}
    return next((figures[q] for q in ["price_of_promise", "compare", *SECTIONS] if q in figures), None)


def provenance(sources):
    """Yields a table per machine and build with its properties and its results files."""
    builds = {}
    for s in sources:
        if not s.rows:
            continue
        facts = {key.replace("_", " "): value for key, value in s.header["provenance"].items()}
        date = facts.pop("date")
        builds.setdefault((s.machine, tuple(facts.items())), []).append((s, date))
    for (machine, facts), made in builds.items():
        rows = [[key, "none" if value is None else value] for key, value in facts]
        rows += [[s.path.name, f"{phrases.plural(len(s.rows), 'row')}{skipped(s)}, {mode(s)}{date}"]
                 for s, date in made]
        yield Table(machine, ["property", "value"], rows, text_columns=2)
    without = [[str(s.path), f"no rows{skipped(s)}"] for s in sources if s.skipped and not s.rows]
    if without:
        yield Table("Files without results", ["file", "content"], without, text_columns=2)


def skipped(source):
    return f", {phrases.plural(source.skipped, 'corrupt line')} skipped" if source.skipped else ""


def mode(source):
    h = source.header
    return "".join([f"--{h['mode']} --seed {h['seed']}, " if "mode" in h else "",
                    f"--filter '{h['filter']}', " if h.get("filter") else ""])


def write(path, text):
    """Writes a file completely, or leaves it as it was."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def main(arguments):
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  report.py build/study --committed experiments/results")
    parser.add_argument("results", metavar="RESULTS", type=pathlib.Path,
                        help="folder with results.jsonl and QUESTION.jsonl files")
    parser.add_argument("--committed", metavar="FOLDER", type=pathlib.Path,
                        help="folder with results of other machines")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, help="folder for the report (default: RESULTS)")
    options = parser.parse_args(arguments)
    for folder in (options.results, options.committed, options.out):
        if folder and not folder.is_dir():
            parser.error(f"{folder}: no such folder")
    try:
        found = results.read(options.results, options.committed)
        ignored = results.unread_files(options.committed) if options.committed else []
    except (results.Refused, OSError) as refusal:
        print(f"report.py: {refusal}", file=sys.stderr)
        return 2
    if ignored:
        print(f"report.py: {options.committed}: ignored files whose names have no QUESTION of this report: "
              f"{', '.join(ignored)}", file=sys.stderr)

    sources = [s for some in found.values() for s in some]
    with_rows = {question: [s for s in some if s.rows] for question, some in found.items()}
    sections = [section(question, with_rows) for question in SECTIONS] + [methods.section(with_rows)]
    top = list(headlines.headlines(with_rows)) or [("", "No results yet.")]
    machines = list(provenance(sources))
    out = options.out or options.results
    try:
        write(out / "report.md", markdown.text(TITLE, top, sections, machines))
        write(out / "report.html",
              page.page(TITLE, top, first_figure(sections), sections, machines, [s for s in sources if s.rows]))
    except OSError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    for s in sections:
        for finding in s.findings:
            print(f"- {finding}")
    failures = [failure for s in sections for failure in s.failures]
    if failures:
        print("\n".join(["report.py: failures:"] + failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
