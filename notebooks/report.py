"""Makes the report of a study: report.html, for which it needs plotly, and report.md for a pull request.

It uses the results files in RESULTS and those of other machines in the --committed folder, MACHINE.QUESTION.jsonl and
MACHINE.compare.jsonl. Either folder may be left out. A question without results has no section. Results of the reader's
own data come first, and alone if there are no others. Prints at most 20 lines: three verdicts, failures, and where the
report is. Exit codes: 0; 1 if a method of samesum broke a promise or a bound, or returned wrong bits; 2 for wrong usage,
an invalid file or a folder without a usable row.
"""

import argparse
import collections
import dataclasses
import importlib
import importlib.util
import os
import pathlib
import sys
import textwrap

import compare
import glossary
import headlines
import markdown
import methods
import operations
import page
import phrases
import prices
import results
import staleness
import story
import timing
from results import SECTIONS
from section import Table, distinct

TITLE = "How accurate, how reproducible and how fast are sums?"
OTHER_TITLE = "How accurate, how reproducible and how fast are reductions?"
OWN_TITLE = "How accurate and how fast are reductions of your data?"
COMPARES = "faster, as fast, not decided"  # the term of sections with ratios of times
COLUMNS, MOST_FAILURES = 100, 6  # of what is printed


def section(question, found):
    made = importlib.import_module(question).section(found.get(question, []))
    if question == "price_of_promise":
        prices.add_to(made, found)
    if COMPARES in made.terms:
        made.about = f"{made.about} {timing.ends(found.get(question, []))}".strip()
    return made


def with_own_data_apart(found):
    """Moves this machine's comparisons of other data than the study's to the results of own data."""
    moved = {**found, "compare": [], "own_data": list(found["own_data"])}
    for s in found["compare"]:
        own = [r for r in s.rows if s.machine == results.HERE and not compare.is_of_study(r)]
        others = [r for r in s.rows if r not in own]
        if others or not own:
            moved["compare"].append(dataclasses.replace(s, rows=others))
        if own:
            moved["own_data"].append(dataclasses.replace(s, question="own_data", rows=own,
                                                         skipped=0 if others else s.skipped))
    return moved


def without_other_questions(found):
    """Leaves out the rows of other machines on sums, or on other operations, if this machine has none for the same
    question."""
    kept = {}
    for question, some in found.items():
        here = {results.is_of_sum(r) for s in some if s.machine == results.HERE for r in s.rows}
        kept[question] = [s if s.machine == results.HERE else
                          dataclasses.replace(s, rows=[r for r in s.rows if results.is_of_sum(r) in here]) for s in some]
    return kept


def title_of(sections):
    own, *sums, every, _ = sections
    if not own.empty:
        return OWN_TITLE
    return TITLE if not all(s.empty for s in sums) or every.empty else OTHER_TITLE


def only_own(with_rows):
    """Whether all results are on the reader's own data: then the report has nothing else."""
    return not any(some for question, some in with_rows.items() if question != "own_data")


def remark(sections, with_rows, beside):
    """A sentence on the questions without a row of any operation: how to get results, and where those of other
    machines are."""
    missing = [s.title for question, s in zip(SECTIONS, sections) if not with_rows[question] and question != "own_data"]
    if not missing or only_own(with_rows):
        return ""
    return (f"Not measured here: {', '.join(missing)}. experiments/run measures them"
            + (f"; samesum report --committed {beside} --out FOLDER shows the results of other machines." if beside else "."))


def in_words(name, value):
    """A property of a machine or a build as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {in_words(key, each)}" for key, each in value.items())
    return str(value) if value is not None else "none" if name == "gpu" else "unknown"


def provenance(sources):
    """Yields a table per machine with its properties and its results files. If files differ in a property, such as the
    commit, the table has the most frequent value, and files with another one state it."""
    files = {}
    for s in sources:
        if s.rows:
            facts = collections.defaultdict(lambda: "not recorded", {
                key.replace("_", " "): in_words(key, value) for key, value in s.header["provenance"].items()})
            files.setdefault(s.machine, []).append((s, facts.pop("date"), facts))
    for machine, made in files.items():
        keys = distinct(key for _, _, facts in made for key in facts)
        usual = {key: collections.Counter(facts[key] for _, _, facts in made).most_common(1)[0][0] for key in keys}
        differing = {key for key in usual if any(facts[key] != usual[key] for _, _, facts in made)}
        rows = [[key, value + (" (most files)" if key in differing else "")] for key, value in usual.items()]
        rows += [[phrases.printable(s.path.name), f"{phrases.plural(len(s.rows), 'row')}{s.other_host}{skipped(s)}, "
                                                  f"{mode(s)}{date}"
                  + "".join(f", {key} {facts[key]}" for key in usual if facts[key] != usual[key])
                  + "".join(f"; {why}" for why in filter(None, [staleness.stale(s)]))]
                 for s, date, facts in made]
        yield Table(machine, ["property", "value"], rows, text_columns=2, folded=True)
    without = [[phrases.printable(s.path), f"no rows{skipped(s)}"] for s in sources if s.skipped and not s.rows]
    if without:
        yield Table("Files without results", ["file", "content"], without, text_columns=2)


def skipped(source):
    return (f", {phrases.plural(source.skipped, 'corrupt line')} skipped" if source.skipped else "") + (
        f", {source.left_out:,} left out that cannot be compared" if source.left_out else "")


def mode(source):
    h = source.header
    return "".join([f"--{h['mode']} --seed {h['seed']}, " if "mode" in h else "",
                    f"--filter '{h['filter']}', " if h.get("filter") else ""])


def write(path, text):
    """Writes a file completely, or leaves it as it was."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def complain(program, why):
    """Prints one line on standard error. Returns the exit code for wrong usage or an invalid file."""
    print(phrases.printable(f"{program}: {why}"), file=sys.stderr)
    return 2


def check_folders(options):
    """Raises Refused if a folder is missing, or if the report cannot be written to --out."""
    for folder in (options.results, options.committed, options.beside):
        if folder and not folder.is_dir():
            raise results.Refused(f"{folder}: no such folder")
    if not options.results and not options.committed:
        raise results.Refused("a folder of results, or --committed, is missing")
    if not options.results and not options.out:
        raise results.Refused("--out is missing; it has no default without a folder of results")
    if str(options.out) == "-":
        raise results.Refused("--out names a folder; the two files of a report cannot go to standard output (-)")
    if options.out and options.out.exists() and not options.out.is_dir():
        raise results.Refused(f"--out: {options.out} is a file; name a folder for the two files of a report")


def check_rows(folder, sources):
    """Raises Refused if no file of the folder has a usable row."""
    if not any(s.rows for s in sources):
        raise results.Refused(f"{folder}: its results files have no usable row; run the experiment again")


def main(arguments):
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="examples:\n  report.py build/study --committed experiments/results\n"
                                            "  report.py --committed experiments/results --out /tmp")
    parser.add_argument("results", metavar="RESULTS", type=pathlib.Path, nargs="?",
                        help="folder with results.jsonl and QUESTION.jsonl files")
    parser.add_argument("--committed", metavar="FOLDER", type=pathlib.Path,
                        help="folder with results of other machines")
    parser.add_argument("--beside", metavar="FOLDER", type=pathlib.Path,
                        help="the same, for the questions that RESULTS answers")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path,
                        help="folder for the report (default: RESULTS); created if it does not exist")
    parser.add_argument("--program", default="report.py", help=argparse.SUPPRESS)  # the name in messages
    options = parser.parse_args(arguments)
    out = options.out or options.results
    try:
        check_folders(options)
        if options.results:
            results.refuse_without_results(options.results)
        found = with_own_data_apart(results.read(options.results, options.committed or options.beside))
        check_rows(options.results or options.committed, [s for some in found.values() for s in some
                                                          if s.machine == results.HERE or not options.results])
        if not options.committed:
            found = without_other_questions(found)
        ignored = results.unread_files(options.committed) if options.committed else []
        out.mkdir(parents=True, exist_ok=True)
    except (results.Refused, OSError) as refusal:
        return complain(options.program, refusal)
    if ignored:
        complain(options.program, f"{options.committed}: ignored files whose names have no QUESTION of this report: "
                                  f"{', '.join(ignored)}")

    sources = [s for some in found.values() for s in some]
    with_rows = {question: [s for s in some if s.rows] for question, some in found.items()}
    sections = [section(question, with_rows) for question in SECTIONS] + [
        operations.section(with_rows), methods.section(with_rows)]
    own, end = only_own(with_rows), phrases.printable(remark(sections, with_rows, options.beside))
    title, about = title_of(sections), "" if own else phrases.printable(story.about(with_rows))
    shown, failures = [s for s in sections if not s.empty], [failure for s in sections for failure in s.failures]
    machines, names = list(provenance(sources)), list(glossary.tables(with_rows))
    made = ["report.md"]
    try:
        write(out / "report.md", markdown.text(title, about, with_rows, shown, machines, names, end))
        if importlib.util.find_spec("plotly"):
            made.insert(0, "report.html")
            write(out / "report.html", page.page(title, about, {} if own else with_rows, shown, machines,
                                                 [s for s in sources if s.rows], names, end))
    except OSError as error:
        return complain(options.program, error)
    for line in told(shown, failures):
        print(line)
    for line in failed(options.program, failures):
        print(line, file=sys.stderr)
    print(f"report: {' and '.join(str(out / name) for name in made)}".replace(str(results.ROOT) + "/", ""))
    return 1 if failures else 0


def told(sections, failures):
    """The lines of a run: the first three verdicts, and how many checks passed."""
    checks = [c for s in sections for c in s.checks]
    for question, verdict in headlines.headlines(sections):
        yield from textwrap.wrap(f"{question} {verdict}", COLUMNS, subsequent_indent="    ", break_on_hyphens=False,
                                 break_long_words=False)
    if checks:
        passed, total = sum(c.passed for c in checks), sum(c.total for c in checks)
        yield f"{phrases.capitalised(phrases.out_of(passed, total, 'check'))} passed." + (
            f" {phrases.plural(len(failures), 'failure')}:" if failures else "")


def failed(program, failures):
    """The lines on failures: the first few, and the number of the others."""
    if failures:
        yield f"{program}: failures:"
        yield from (textwrap.shorten(failure, 2 * COLUMNS, placeholder=" …") for failure in failures[:MOST_FAILURES])
        if failures[MOST_FAILURES:]:
            yield f"and {len(failures) - MOST_FAILURES:,} more, which the report has"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
