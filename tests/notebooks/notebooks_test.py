"""Every notebook is committed without outputs, and runs over the committed results.

Run by ctest, or: build/venv/bin/python tests/notebooks/notebooks_test.py, with the packages of tests/requirements.txt.
"""

import concurrent.futures
import html
import importlib
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import nbclient
    import nbformat
    import ipykernel  # noqa: F401
except ImportError as missing:
    print(f"notebooks: {missing}: tests/requirements.txt has it")
    sys.exit(77)

from made_up import ROOT
import report
import results

FOLDER = ROOT / "notebooks"
TOOL = pathlib.Path(os.environ.get("SAMESUM_TOOL", ROOT / "build/release/bin/samesum"))
BOOKS = {path.stem: nbformat.read(path, as_version=nbformat.NO_CONVERT) for path in sorted(FOLDER.glob("*.ipynb"))}


def run(book):
    """What each of its cells of code puts out, as text."""
    done = nbclient.NotebookClient(book, timeout=120, kernel_name="python3",
                                   resources={"metadata": {"path": str(FOLDER)}}).execute()
    return ["\n".join(text for output in cell.outputs
                      for text in (output.get("text"), *output.get("data", {}).values()) if text)
            for cell in done.cells if cell.cell_type == "code"]


class Notebooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # Of this machine there are no results, and nothing is written outside.
        os.environ.update({name: folder.name for name in ("SAMESUM_STUDY", "IPYTHONDIR", "JUPYTER_CONFIG_DIR",
                                                          "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")})
        os.environ.update({"PYTHONDONTWRITEBYTECODE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cls.outputs = dict(zip(BOOKS, pool.map(run, BOOKS.values())))

    def test_there_is_one_for_each_section_and_one_to_start_with(self):
        self.assertEqual(sorted(BOOKS), sorted(["start_here", *report.SECTIONS]))

    def test_are_valid_and_have_ids(self):
        for name, book in BOOKS.items():
            nbformat.validate(book)
            self.assertEqual((book.nbformat, book.nbformat_minor), (4, 5), name)

    def test_say_what_was_found_and_show_it(self):
        for question in report.SECTIONS:
            section = importlib.import_module(question).section(results.of(question))
            text = html.unescape("\n".join(self.outputs[question]))
            with self.subTest(question):
                # Of own data there are none but the reader's.
                self.assertEqual(section.empty, question == "own_data", "there are no committed results")
                for sentence in [*section.findings, *(f.reading for f in section.figures)]:
                    self.assertIn(sentence, text)
                self.assertGreaterEqual(text.count("<svg"), len(section.figures))
                if section.empty:
                    self.assertIn(section.command, text)

    def test_of_the_start_has_the_findings_and_leads_to_all_others(self):
        text = "\n".join(self.outputs["start_here"])
        for question in ("How wrong?", "How steady?", "How fast?", *(f"({q}.ipynb)" for q in report.SECTIONS)):
            self.assertIn(question, text)

    @unittest.skipUnless(TOOL.exists(), f"{TOOL} is not built")
    def test_on_data_of_ones_own_asks_the_tool(self):
        self.assertIn("\nUse ", self.outputs["compare"][-1])

    def test_end_with_a_cell_to_change_that_shows_something(self):
        for name, book in BOOKS.items():
            with self.subTest(name):
                self.assertIn("## Your turn", book.cells[-2].source)
                self.assertEqual(book.cells[-1].cell_type, "code")
                self.assertTrue(self.outputs[name][-1].strip())
                if TOOL.exists():
                    self.assertNotIn("is not built yet", self.outputs[name][-1])


class WithoutOutputs(unittest.TestCase):
    def test_are_committed(self):
        for path in sorted(FOLDER.glob("*.ipynb")):
            for cell in nbformat.read(path, as_version=nbformat.NO_CONVERT).cells:
                if cell.cell_type == "code":
                    self.assertEqual((cell.outputs, cell.execution_count), ([], None), path.name)


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # nbclient leaves its event loop open
