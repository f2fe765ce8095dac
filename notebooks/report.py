"""Makes the report of a study: build/study/report.html to look at, and report.md for a pull request.

Everything in it comes from the results files in RESULTS, and from those of other machines that --committed names:
MACHINE.QUESTION.jsonl, and MACHINE.compare.jsonl. Prints what was found. Exits with 0; 1 where one of samesum's
methods broke a promise or a bound, or gave wrong bits; 2 where a file is not what it should be.
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
import results
import words
from section import Table

TITLE = "How wrong, how steady and how fast are sums?"
# The sections in their order: the questions of results files, and the modules that answer them.
SECTIONS = ["error_vs_length", "error_vs_condition", "accumulator_formats", "spread_over_runs", "reveal_order",
            "price_of_promise", "speed_vs_length", "speed_of_reductions", "ladder", "consequences", "compare",
            "own_data"]


def section(question, found):
    return importlib.import_module(question).section(found.get(question, []))


def first_figure(sections):
    """Error against speed, of the experiment that is made for it or else of the data sets."""
    figures = {question: s.figures[0] for question, s in zip(SECTIONS, sections) if s.figures}
    return next((figures[q] for q in ["price_of_promise", "compare", *SECTIONS] if q in figures), None)


def provenance(sources):
    """A table a machine and build: what was measured there."""
    builds = {}
    for s in sources:
        if not s.rows:
            continue
        facts = {key.replace("_", " "): value for key, value in s.header["provenance"].items()}
        date = facts.pop("date")
        builds.setdefault((s.machine, tuple(facts.items())), []).append((s, date))
    for (machine, facts), made in builds.items():
        rows = [[key, "none" if value is None else value] for key, value in facts]
        rows += [[s.path.name, f"{words.plural(len(s.rows), 'row')}{skipped(s)}, {mode(s)}{date}"] for s, date in made]
        yield Table(machine, ["what", "value"], rows, words=2)
    without = [[str(s.path), f"no rows{skipped(s)}"] for s in sources if s.skipped and not s.rows]
    if without:
        yield Table("Files without results", ["file", "what it has"], without, words=2)


def skipped(source):
    return f", {words.plural(source.skipped, 'corrupt line')} skipped" if source.skipped else ""


def mode(source):
    h = source.header
    return "".join([f"--{h['mode']} --seed {h['seed']}, " if "mode" in h else "",
                    f"--filter '{h['filter']}', " if h.get("filter") else ""])


def write(path, text):
    """All of it or nothing."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def main(arguments):
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  report.py build/study --committed experiments/results")
    parser.add_argument("results", metavar="RESULTS", type=pathlib.Path,
                        help="folder with results.jsonl and QUESTION.jsonl")
    parser.add_argument("--committed", metavar="FOLDER", type=pathlib.Path,
                        help="folder with results of other machines")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, help="where the report goes (default: RESULTS)")
    options = parser.parse_args(arguments)
    for folder in (options.results, options.committed, options.out):
        if folder and not folder.is_dir():
            parser.error(f"{folder}: there is no such folder")
    try:
        found = results.read(options.results, options.committed)
        passed_over = results.unread(options.committed) if options.committed else []
    except (results.Refused, OSError) as refusal:
        print(f"report.py: {refusal}", file=sys.stderr)
        return 2
    if passed_over:
        print(f"report.py: {options.committed}: not read, since no QUESTION of this report is in their names: "
              f"{', '.join(passed_over)}", file=sys.stderr)

    sources = [s for some in found.values() for s in some]
    with_rows = {question: [s for s in some if s.rows] for question, some in found.items()}
    sections = [section(question, with_rows) for question in SECTIONS] + [methods.section(with_rows)]
    top = list(headlines.headlines(with_rows)) or [("", "Nothing was measured yet.")]
    machines = list(provenance(sources))
    out = options.out or options.results
    try:
        write(out / "report.md", markdown.text(TITLE, top, sections, machines))
        write(out / "report.html",
              page.page(TITLE, top, first_figure(sections), sections, machines, [s for s in sources if s.rows]))
    except OSError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    every = [sentence for s in sections for sentence in s.findings]
    for sentence in every:
        print(f"- {sentence}")
    failures = [failure for s in sections for failure in s.failures]
    if failures:
        print("\n".join(["report.py: this should not be:"] + failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
