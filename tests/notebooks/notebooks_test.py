"""Tests that every notebook is committed without outputs and runs on the committed results.

Run by ctest, or: build/venv/bin/python tests/notebooks/notebooks_test.py, with the packages of tests/requirements.txt.
A kernel takes seconds to start, so only one notebook runs in its own kernel; the others run in this process, each with
an empty namespace.
"""

import functools
import html
import os
import pathlib
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
IN_A_KERNEL = "consequences"  # has few results, figures and tables


def in_a_kernel(book):
    """The output of each code cell, as text."""
    done = nbclient.NotebookClient(book, timeout=120, kernel_name="python3",
                                   resources={"metadata": {"path": str(FOLDER)}}).execute()
    return [text_of(output.get("text") or output.get("data", {}) for output in cell.outputs)
            for cell in done.cells if cell.cell_type == "code"]


def here(shell, book):
    shell.reset()
    for cell in book.cells:
        if cell.cell_type == "code":
            with capture_output() as captured:
                done = shell.run_cell(cell.source)
                done.raise_error()
            shown = [] if done.result is None else [shell.display_formatter.format(done.result)[0]]
            yield text_of([captured.stdout, captured.stderr, *(output.data for output in captured.outputs), *shown])


def text_of(outputs):
    return "\n".join(text for output in outputs for text in (output.values() if isinstance(output, dict) else [output])
                     if text)


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

    def test_notebooks_are_valid_and_have_ids_and_no_outputs(self):
        for path in FOLDER.glob("*.ipynb"):
            book = nbformat.read(path, as_version=nbformat.NO_CONVERT)
            nbformat.validate(book)
            self.assertEqual((book.nbformat, book.nbformat_minor), (4, 5), path.name)
            for cell in book.cells:
                if cell.cell_type == "code":
                    self.assertEqual((cell.outputs, cell.execution_count), ([], None), path.name)

    def test_notebooks_show_findings_and_figures(self):
        found = {question: results.of(question) for question in report.SECTIONS}
        start = "\n".join(self.outputs["start_here"])
        for question in report.SECTIONS:
            section = report.section(question, found)
            text = html.unescape("\n".join(self.outputs[question][:-1]))  # the last cell is for the reader to change
            with self.subTest(question):
                # There are no committed results of own data.
                self.assertEqual(section.empty, question == "own_data", "there are no committed results")
                for sentence in [*section.findings, *(f.finding for f in section.figures)]:
                    self.assertIn(sentence, text)
                self.assertGreaterEqual(text.count("<svg"), len(section.figures))
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
                self.assertTrue(self.outputs[name][-1].strip())
                if TOOL.exists():
                    self.assertNotIn("is not built yet", self.outputs[name][-1])

    @unittest.skipUnless(TOOL.exists(), f"{TOOL} is not built")
    def test_the_notebook_on_data_sets_runs_the_tool(self):
        self.assertIn("\nUse ", self.outputs["compare"][-1])


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # nbclient does not close its event loop
