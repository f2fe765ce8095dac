"""Tests that every notebook runs on the committed results, and is committed with the outputs that it then has.

Run by ctest, or: build/venv/bin/python tests/notebooks/notebooks_test.py, with the packages of tests/requirements.txt.
A kernel takes seconds to start, so only one notebook runs in its own kernel; the others run in this process, each with
an empty namespace.
"""

import functools
import html
import os
import pathlib
import re
import sys
import tempfile
import unittest

try:
    import nbclient
    import nbformat
    import ipykernel  # noqa: F401
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
except ImportError as missing:
    print(f"notebooks: {missing}; install tests/requirements.txt")
    sys.exit(77)

from made_up import ROOT
import phrases
import report
import results

FOLDER = ROOT / "notebooks"
TOOL = pathlib.Path(os.environ.get("SAMESUM_TOOL", ROOT / "build/release/bin/samesum"))
BOOKS = {path.stem: nbformat.read(path, as_version=nbformat.NO_CONVERT) for path in sorted(FOLDER.glob("*.ipynb"))}
SHOWN = ("image/svg+xml", "text/html", "text/markdown")
IN_A_KERNEL = "consequences"  # has few results, figures and tables


def in_a_kernel(book):
    """The outputs of each code cell, as texts by type."""
    done = nbclient.NotebookClient(book, timeout=120, kernel_name="python3",
                                   resources={"metadata": {"path": str(FOLDER)}}).execute()
    return [outputs_of(cell) for cell in done.cells if cell.cell_type == "code"]


def outputs_of(cell):
    """The stored outputs of a cell, as texts by type; what the cell printed is of type "text/plain"."""
    return [dict(o["data"]) if "data" in o else {"text/plain": o["text"]} for o in cell.outputs]


def here(shell, book):
    shell.reset()
    for cell in book.cells:
        if cell.cell_type == "code":
            with capture_output() as captured:
                done = shell.run_cell(cell.source)
                done.raise_error()
            printed = [{"text/plain": text} for text in (captured.stdout, captured.stderr) if text]
            # The value of the last line is printed too, without its other types.
            shown = [] if done.result is None else [shell.display_formatter.format(done.result)[0]]
            yield [*printed, *(o.data for o in captured.outputs), *filter(None, shown)]


def text_of(outputs):
    return "\n".join(text for output in outputs for text in output.values() if text)


def pictures_and_pages(outputs):
    """What a repository page shows of outputs: pictures, and texts without their surroundings."""
    return [{kind: data[kind].strip() for kind in SHOWN if kind in data} for data in outputs
            if any(kind in data for kind in SHOWN)]


# Before they are executed: (tags, outputs) of each code cell.
COMMITTED = {name: [(cell.metadata.get("tags", []), outputs_of(cell)) for cell in book.cells if cell.cell_type == "code"]
             for name, book in BOOKS.items()}


class Notebooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # An empty study, and no files outside the temporary folder.
        os.environ.update({name: folder.name for name in ("SAMESUM_STUDY", "IPYTHONDIR", "JUPYTER_CONFIG_DIR",
                                                          "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")})
        os.environ.update({"PYTHONDONTWRITEBYTECODE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
        results.of = functools.cache(results.of)
        os.chdir(FOLDER)
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.display_formatter.active_types = shell.display_formatter.format_types  # HTML too
        cls.outputs = {name: in_a_kernel(book) if name == IN_A_KERNEL else list(here(shell, book))
                       for name, book in BOOKS.items()}

    def test_there_is_one_for_each_section_and_one_to_start_with(self):
        self.assertEqual(sorted(BOOKS), sorted(["start_here", *report.SECTIONS]))

    def test_notebooks_are_valid_and_small_and_have_ids_and_outputs_without_errors(self):
        for path in FOLDER.glob("*.ipynb"):
            book = nbformat.read(path, as_version=nbformat.NO_CONVERT)
            nbformat.validate(book)
            self.assertEqual((book.nbformat, book.nbformat_minor), (4, 5), path.name)
            self.assertLess(path.stat().st_size, 250_000, path.name)
            cells = [cell for cell in book.cells if cell.cell_type == "code"]
            self.assertEqual([cell.execution_count for cell in cells], list(range(1, len(cells) + 1)), path.name)
            self.assertFalse([o for cell in cells for o in cell.outputs if o.output_type == "error"], path.name)

    def test_the_committed_outputs_are_those_of_the_committed_results(self):
        """If this fails, run notebooks/make.py. Cells with the tag "varies" depend on the machine, those with the tag "tool"
        on the program."""
        left_out = {"varies"} if TOOL.exists() else {"varies", "tool"}
        for name, cells in COMMITTED.items():
            with self.subTest(name):
                for (tags, committed), outputs in zip(cells, self.outputs[name], strict=True):
                    if left_out & set(tags):
                        continue
                    self.assertEqual(pictures_and_pages(committed), pictures_and_pages(outputs))
                    if not pictures_and_pages(committed):  # a cell that only prints
                        self.assertEqual(text_of(committed), text_of(outputs))

    def test_the_first_cell_of_each_shows_samesum_at_work(self):
        for name, cells in COMMITTED.items():
            with self.subTest(name):
                tags, committed = cells[0]
                first = next(cell for cell in BOOKS[name].cells if cell.cell_type == "code")
                self.assertIn("samesum(", first.source)
                self.assertEqual(tags, ["tool"])
                self.assertRegex(text_of(committed), r"\d")
                self.assertNotRegex(text_of(committed), "is not built yet|samesum:")

    def test_the_ladder_asks_before_it_shows_a_kernel_beside_its_time(self):
        cells = BOOKS["ladder"].cells
        steps = [i for i, cell in enumerate(cells) if "ladder.step(" in cell.source]
        kernels = sorted(path.stem.partition("_")[2] for path in (ROOT / "experiments/ladder").glob("0*.cuh"))
        self.assertEqual(sorted(cells[i].source.split('"')[1] for i in steps), kernels)
        outputs = self.outputs["ladder"]
        for i in steps:
            self.assertIn("?", cells[i - 1].source)
            kernel = cells[i].source.split('"')[1]
            shown = html.unescape(text_of(outputs[sum(cell.cell_type == "code" for cell in cells[:i])]))
            self.assertIn(f" {kernel}(", shown)
            self.assertRegex(shown, r"<td>[\d.]+ (µs|ms)</td>")

    def test_notebooks_show_findings_and_figures(self):
        found = {question: results.of(question) for question in report.SECTIONS}
        start = "\n".join(map(text_of, self.outputs["start_here"]))
        for question in report.SECTIONS:
            section = report.section(question, found)
            text = html.unescape("\n".join(map(text_of, self.outputs[question][:-1])))  # the last cell is the reader's
            text = re.sub("</?abbr.*?>", "", text)
            with self.subTest(question):
                committed = [*ROOT.glob(f"experiments/results/*.{question}.jsonl")]
                self.assertEqual(section.empty, not committed, "there are no committed results")
                for sentence in [*section.findings, *(f.finding for f in section.figures)]:
                    self.assertIn(sentence, text)
                self.assertGreaterEqual(text.count("<svg"), len(section.figures[:1]))
                if section.empty:
                    self.assertIn(section.command, text)
                self.assertIn(f"({question}.ipynb)", start)
                for term in [] if section.empty else section.terms:
                    self.assertIn(f"{term}</b>: {phrases.TERMS[term]}", text)

    def test_notebooks_end_with_a_cell_to_change_that_shows_something(self):
        for name, book in BOOKS.items():
            with self.subTest(name):
                self.assertIn("## Your turn", book.cells[-2].source)
                self.assertEqual(book.cells[-1].cell_type, "code")
                self.assertTrue(text_of(self.outputs[name][-1]).strip())
                if TOOL.exists():
                    self.assertNotIn("is not built yet", text_of(self.outputs[name][-1]))

    @unittest.skipUnless(TOOL.exists(), f"{TOOL} is not built")
    def test_the_notebook_on_data_sets_runs_the_tool(self):
        self.assertIn("\nUse ", text_of(self.outputs["compare"][-1]))


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # nbclient does not close its event loop
