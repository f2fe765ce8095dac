"""Tests of the section on revealed orders, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/reveal_order_test.py
"""

import contextlib
import functools
import io
import math
import operator
import pathlib
import re
import sys
import tempfile
import types
import unittest
import unittest.mock

import made_up
import results
import reveal_order

LOOP, PAIRS = "(((0+1)+2)+3)", "((0+2)+(1+3))"
MASKS = "M and -M among ones reveal nothing about"


def row(method, tree, promise="everywhere", masks="units", matches=True, n=32, sampled=0, blind=None):
    return {"kind": "tree", "method": method, "promise": promise, "input_format": "fp32", "n": n, "seed": 1,
            "masks": masks, "sampled": sampled, "tree": tree,
            "height": None if tree is None else 3 if tree == LOOP else 2,
            "matches": matches, "blind": blind, "difference": None, "asked": 7}


class RevealedOrders(made_up.SectionTest):
    question = "reveal_order"

    def setUp(self):
        self.rows = [row("serial/plain/fp32@cpu", LOOP), row("tree/plain/fp32@cpu", PAIRS),
                     row("tree/kahan/fp32@cpu", PAIRS, masks="overflow", blind="kept"),
                     row("tree/plain/fp32@cpu", None, n=12293, sampled=64),
                     row("exact/fp32@cpu", None, "order_free", None, None, blind="kept"),
                     row("loop/fp32@peer", LOOP, "run_to_run", matches=None),
                     row("eigen/fp32@peer", "((0+1)+(2+3))", "run_to_run", matches=None)]

    def test_findings_without_failures(self):
        self.check("All 4 checked sums add … order defines: 3 were … completely (32 elements), 1 was … sampled places "
                   "(12,293 elements).",
                   f"{MASKS} 2 of 6 methods (tree/kahan, exact), because kept. The inputs that overflow … 1 of 2.",
                   "1 of 2 of these adds … loop/fp32@peer as serial/plain.",
                   verdict="Both sums … 2 different trees with heights of 2 (eigen/fp32@peer) to 3 (loop/fp32@peer) additions "
                           "for 32 elements (this machine).")
        self.assertEqual(self.check().failures, [])

    def test_names_a_tree_that_is_not_as_declared_and_fails(self):
        self.rows[3].update(matches=False, difference="0 and 1 meet before they meet 2")
        self.check("3 of 4 checked sums … order defines … exceptions: tree/plain/fp32@cpu (this machine).")
        self.assertEqual(self.check().failures, ["this machine: tree/plain/fp32@cpu, n = 12,293: not the declared "
                                                 "tree: 0 and 1 meet before they meet 2"])

    def test_one_row_at_a_time(self):
        for i, new, *expected in (
                (1, {"blind": "kept", "masks": "overflow"},
                 f"{MASKS} 3 of 6 methods (tree/plain, tree/kahan, exact) … 2 of 3."),
                (4, {"blind": "it never rounds"}, f"{MASKS} 1 of 6 methods (tree/kahan), because kept. … the only one.",
                 f"{MASKS} 1 of 6 methods (exact), because it never rounds. The order of this method stays unknown."),
                (6, {"tree": None, "height": None, "difference": "an ancestor of 0 has 3 leaves, 2 were found"},
                 "The results of eigen/fp32@peer contradict each other"),
                (6, {"tree": PAIRS}, "Both of these add in the tree of a samesum method")):
            self.setUp()
            self.rows[i].update(new)
            self.check(*expected)

    def test_the_lowest_and_the_highest_tree_in_any_row(self):
        self.there = [self.rows[-2] | {"tree": PAIRS, "height": 2}, self.rows[1], self.rows[-2] | {"n": 16}]
        self.rows = self.rows[:-2]
        self.check("The only one of these adds … loop/fp32@peer as tree/plain.",
                   verdict="The only sum … one tree with a height of 2 additions for 32 elements (H200).")
        self.setUp()
        self.rows.append(row("tbb/fp32@peer", "(((0+2)+1)+3)", "none", matches=None) | {"height": 31})
        self.rows.append(row("cub/fp32@peer", "((0+3)+(1+2))", "none", matches=None) | {"height": 1})
        self.check(verdict="5 different trees with heights of 1 (cub/fp32@peer) to 31 (tbb/fp32@peer) … (this "
                           "machine, H200).")
        self.rows, self.there = self.rows[:1], ()
        self.assertEqual(self.check().verdict, "")

    def test_each_picture_states_its_height_and_the_minimum(self):
        for tree, expected in ((LOOP, "3 additions; the minimum for 4 elements is 2."),
                               (PAIRS, "2 additions, the minimum for 4 elements."),
                               ("(((0+1)+2)+(3+4))", "3 additions, the minimum for 5 elements."),
                               ("(0+1)", "1 addition, the minimum for 2 elements.")):
            self.assert_sentences([reveal_order.height_finding(tree)], expected)

    def test_the_gallery_has_each_tree_of_a_library_once_with_a_link(self):
        self.rows += [row("eigen/fp64@peer", LOOP, "run_to_run", matches=None) | {"input_format": "fp64"},
                      row("numpy/fp32@peer", "((0+1)+(2+3))", "none", matches=None)]
        tiles = self.check().figures[0].tiles
        self.assertEqual([(t.id, t.title, t.text) for t in tiles],
                         [("tree-eigen-fp32", "Eigen fp32", "height 2; this machine"),
                          ("tree-eigen-fp64", "Eigen fp64", "height 3, as samesum serial; this machine"),
                          ("tree-numpy", "NumPy", "height 2; this machine"),
                          ("tree-loop", "a loop", "height 3, as samesum serial; this machine"),
                          ("tree-serial", "samesum serial", "height 3"), ("tree-tree", "samesum tree", "height 2")])
        self.there = [self.rows[-1]]
        tiles = {t.id: t.text for t in self.check().figures[0].tiles}
        self.assertEqual((tiles["tree-numpy"], tiles["tree-tree"]), ("height 2; this machine, H200", "height 2"))
        tiles = self.check().figures[0].tiles
        self.assertEqual(len(re.findall(r"H\d", tiles[0].picture)), 3)  # a horizontal line for each addition
        self.assertIn(">3</text>", tiles[0].picture)

    def test_parses_and_draws_long_trees(self):
        text = "0"
        for i in range(1, 5000):
            text = f"({text}+{i})"
        self.assertEqual(reveal_order.parsed(text)[1], 4999)
        self.assertTrue(reveal_order.picture(text, "a loop", "#000"))

    def test_reveals_the_order_of_python_functions(self):
        def halves(x):
            return x[0] if len(x) == 1 else halves(x[:len(x) // 2]) + halves(x[len(x) // 2:])

        def loop(x):
            return functools.reduce(operator.add, x)

        self.assertEqual(reveal_order.reveal(loop, 4), LOOP)
        self.assertEqual(reveal_order.reveal(halves, 5), "((0+1)+(2+(3+4)))")
        self.assertIsNone(reveal_order.reveal(math.fsum, 4), "fsum keeps the ones beside M")


class PythonOrders(unittest.TestCase):
    """experiments/python_orders.py, with NumPy and with a PyTorch that is made up."""

    def setUp(self):
        self.script = made_up.script("python_orders")

    def run_on(self, folder):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertIn(self.script.main([str(folder)]), (0, 2))
        return err.getvalue()

    def test_writes_rows_of_each_library_and_format_that_the_report_reads(self):
        def loop(x):
            return functools.reduce(operator.add, x)

        torch = types.SimpleNamespace(
            __version__="1.0", float32="float32", float64="float64", sum=loop, tensor=lambda x, dtype, device: x,
            cuda=types.SimpleNamespace(is_available=lambda: True))
        import numpy  # before sys.modules is patched, so that it stays imported
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.dict(sys.modules, torch=torch):
            folder = pathlib.Path(name)
            self.assertEqual(self.run_on(folder), "")
            [source] = results.read(folder, questions=["reveal_order"])["reveal_order"]
        self.assertEqual((source.skipped, len(source.rows), source.header["experiment"]), (0, 6, "python_orders"))
        self.assertEqual(source.header["provenance"]["libraries"],
                         {"numpy": numpy.__version__, "torch_cpu": "1.0", "torch": "1.0"})
        trees = {r["method"]: r["tree"] for r in source.rows}
        text = "0"
        for i in range(1, reveal_order.DRAWN):
            text = f"({text}+{i})"
        for method in ("torch_cpu/fp32@peer", "torch_cpu/fp64@peer", "torch/fp32@peer", "torch/fp64@peer"):
            self.assertEqual(trees[method], text)
        self.assertEqual(trees["numpy/fp32@peer"].count("+"), reveal_order.DRAWN - 1)
        titles = [t.title for t in reveal_order.section([source]).figures[0].tiles]
        self.assertEqual(titles, ["NumPy", "PyTorch", "PyTorch on a CPU"])


if __name__ == "__main__":
    unittest.main()
