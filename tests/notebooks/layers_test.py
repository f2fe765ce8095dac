"""Tests that the Python files of the notebooks lie in layers: each imports only files below it, also inside functions.

Run by ctest, or: build/venv/bin/python tests/notebooks/layers_test.py
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/python"))
import import_circles  # noqa: E402


class Layers(unittest.TestCase):
    def test_no_file_of_the_notebooks_imports_one_that_imports_it(self):
        self.assertGreater(len(import_circles.modules_in(ROOT / "notebooks")), 20)
        self.assertEqual(import_circles.circle_in(ROOT / "notebooks"), [])


if __name__ == "__main__":
    unittest.main()
