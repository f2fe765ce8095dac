"""Tests of the section on data frames with made-up rows, and of the experiment, which is in Python.

Run by ctest, or: build/venv/bin/python tests/notebooks/data_frames_test.py
"""

import contextlib
import fractions
import io
import math
import os
import pathlib
import random
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy

import made_up

DUCKDB, POLARS, NUMPY = "duckdb/fp64@peer", "polars/streaming/fp64@peer", "numpy/fp64@peer"
SUM, BY_KEY = "exact/fp64@cpu", "scatter_add/exact/fp64@cpu"


def frame(method, distinct=1, axis="runs", operation="sum", **more):
    groups = 1 if operation == "sum" else 100
    ours = method in (SUM, BY_KEY)
    return {"kind": "frame", "method": method, "promise": "order_free" if ours else "none", "operation": operation,
            "input_format": "fp64", "data": "normal", "seed": 1, "n": 2000, "bins": groups, "axis": axis, "runs": 20,
            "distinct_bits": distinct, "results": groups, "correct": groups if ours else 0,
            "largest_ulps": 0.5 if ours else 40.0, "broken": False} | made_up.took(2e-3) | more


class DataFrames(made_up.SectionTest):
    question = "data_frames"

    def setUp(self):
        self.rows = [frame(SUM), frame(BY_KEY, operation="group_sum"), frame(SUM, axis="threads"),
                     frame(DUCKDB, 17), frame(DUCKDB, 3, "threads"), frame(POLARS, largest_ulps=2.0),
                     frame(POLARS, 8, operation="group_sum"), frame(NUMPY, largest_ulps=7.0, **made_up.took(1e-3)),
                     frame(NUMPY, 5, "permutation", largest_ulps=7.0)]

    def test_unchanged_rows(self):
        self.check("All 102 results of samesum are correctly rounded.",
                   "All 3 series of calls of samesum (60 calls: repeated calls, other numbers of threads) returned one result.",
                   "This machine, CPU: with repeated calls, 2 of 3 libraries returned different results: DuckDB 17 in 20 calls "
                   "(sum), polars streaming 8 in 20 calls (group sums).",
                   "with other numbers of threads, the only library returned different results: DuckDB 3 in 20 calls (sum).",
                   "with other orders of the rows, the only library returned different results: NumPy 5 in 20 calls (sum).",
                   "the largest error of a sum is 40 ulps with DuckDB, 7 ulps with NumPy, 2 ulps with polars streaming, 0.5 ulps "
                   "with samesum.",
                   "the largest error of the sum of a group is 40 ulps with polars streaming, 0.5 ulps with samesum.",
                   "samesum's sum has 0.5 times the speed of NumPy, slower in the only data set; 1 times the speed of "
                   "DuckDB, as fast in the only data set; 1 times the speed of polars streaming, as fast",
                   "samesum's group sums have 1 times the speed of polars streaming, as fast in the only data set",
                   failures=[], verdict="DuckDB returned 17 different results in 20 calls for the sum of 2,000 normal numbers "
                                        "(this machine, CPU).")
        self.assertTrue(all(len(f) < 300 for f in [*self.s.findings, self.s.verdict]), "sentences are short")

    def test_changed_counts_and_errors_change_the_sentences(self):
        self.rows[3]["distinct_bits"] = 1
        self.check("1 of 3 libraries returned different results: polars streaming 8",
                   verdict="polars streaming returned 8 different results in 20 calls for the group sums of 2,000 normal numbers")
        self.rows[6]["distinct_bits"] = 1
        self.check("with repeated calls, none of 3 libraries returned different results.",
                   verdict="Repeated calls returned one result with 3 libraries (this machine, CPU).")
        self.rows[7].update(made_up.took(8e-3))
        self.check("samesum's sum has … 4 times the speed of NumPy")

    def test_failures_of_samesum(self):
        self.rows[0].update(distinct_bits=2, broken=True)
        self.rows[1].update(correct=99)
        self.check("101 of 102 results of samesum are correctly rounded", "2 of 3 series of calls", failures=[
            "this machine, CPU: samesum: sum of 2,000 normal numbers, repeated calls: promises order_free but returned 2 results",
            "this machine, CPU: samesum: group sums of 2,000 normal numbers, repeated calls: 1 of 100 results are not correctly "
            "rounded"])

    def test_the_figure_and_the_table(self):
        section = self.check()
        figure = section.figures[0]
        shown = figure.choose({"Result": "sum", "Variation": "repeated calls"})
        self.assertEqual([(s.y[0], s.x[0]) for s in shown.matching(shown.chosen())],
                         [("NumPy", 1), ("polars streaming", 1), ("samesum", 1), ("DuckDB", 17)])
        self.assert_sentences([figure.finding], "… the methods range from 1 result (samesum) to 8 results (polars streaming).")
        self.assertEqual(section.tables[0].rows[3], ["DuckDB", "sum of 2,000 normal numbers", "repeated calls", "17 of 20", "40",
                                                     "2"])

    def test_results_without_samesum(self):
        self.rows = self.rows[3:]
        self.check("with repeated calls, 2 of 3 libraries")
        self.assert_no_sentences(self.s.findings, "samesum")


class TheExperiment(unittest.TestCase):
    """experiments/data_frames.py, with NumPy and with libraries that are made up."""

    def setUp(self):
        self.script = made_up.script("data_frames")
        self.script.SIZES = {"quick": (3000, 10, 4, 3, 2)}
        absent = {name: None for name in ("duckdb", "polars", "pandas", "pyarrow", "pyarrow.compute", "samesum")}
        patch = unittest.mock.patch.dict(sys.modules, absent)
        patch.start()
        self.addCleanup(patch.stop)

    def run_with(self, *arguments):
        return made_up.run_script(self.script, "data_frames", *arguments)

    def test_rows_of_numpy_that_the_report_reads_and_a_line_for_each_library_that_is_left_out(self):
        code, printed, source = self.run_with()
        self.assertEqual((code, source.skipped, len(source.rows)), (0, 0, 8))
        for name in ("duckdb", "polars", "pandas", "pyarrow", "samesum"):
            self.assertRegex(printed, rf"without {name}: .*; pip install")
        self.assertEqual(len(source.header["left_out"]), 6)  # both engines of polars
        self.assertEqual({(r["method"], r["axis"]) for r in source.rows}, {(NUMPY, "runs"), (NUMPY, "permutation")})
        self.assertEqual([r["distinct_bits"] for r in source.rows if r["axis"] == "runs"], [1] * 4)
        self.assertGreater(max(r["largest_ulps"] for r in source.rows), 0.5)

    def test_a_library_that_errs_and_one_that_varies_are_found_out(self):
        def total(x):
            return float(numpy.sum(x)) + random.random()

        self.script.NumPy.calls = lambda _, k, x, groups, chunks: {
            "sum": lambda: total(x), "group_sum": lambda: numpy.bincount(k, x, groups)}
        code, _, source = self.run_with("--filter", "numpy")
        runs = [r for r in source.rows if r["axis"] == "runs" and r["operation"] == "sum"]
        self.assertEqual((code, [r["distinct_bits"] for r in runs]), (0, [4, 4]))
        self.assertGreater(min(r["largest_ulps"] for r in runs), 1000)

    def test_samesum_must_round_correctly_and_keep_its_promise(self):
        def by_key(k, x):
            return None, numpy.array([math.fsum(x[k == group]) for group in range(10)])

        more = iter(range(1000))
        for total, expected, is_broken in ((math.fsum, 0, False), (lambda x: math.fsum(x) + 1e-9, 1, False),
                                           (lambda x: math.fsum(x) + next(more), 1, True)):
            samesum = types.SimpleNamespace(__version__="0.1.0", groupby_sum=by_key,
                                            sum=lambda x, threads, total=total: total(x))
            with unittest.mock.patch.dict(sys.modules, samesum=samesum):
                code, _, source = self.run_with("--filter", "samesum")
            self.assertEqual((code, any(r["broken"] for r in source.rows)), (expected, is_broken))
            self.assertEqual({r["axis"] for r in source.rows}, {"runs", "threads", "permutation"})

    def test_exact_sums_are_those_of_fractions(self):
        rng = numpy.random.default_rng(7)
        x = numpy.ldexp(rng.standard_normal(500), rng.integers(-1070, 900, 500))
        x[:3] = (5e-324, -0.0, 1.7e308)
        k = rng.integers(0, 7, 500)
        wanted = [sum((fractions.Fraction(v) for v in x[k == group].tolist()), fractions.Fraction(0)) for group in range(7)]
        self.assertEqual(self.script.exact_sums(k, x, 7), wanted)
        self.assertEqual(self.script.errors_of([1.0, 2.5], [fractions.Fraction(1), fractions.Fraction(2)]),
                         (1, 0.5 / 2.0**-51))

    def test_the_commit_of_a_clone_is_unknown_where_git_is_missing(self):
        study = self.script.study
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=folder), \
                unittest.mock.patch.object(study, "ROOT", pathlib.Path(folder)):
            pathlib.Path(folder, ".git").mkdir()
            self.assertEqual(study.provenance({"numpy": "2.0"})["commit"], "unknown")

    def test_wrong_usage(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(self.script.main(["--filter", "polars"]), 2)
            with self.assertRaises(SystemExit) as left:
                self.script.main(["--seed", "-1"])
        self.assertEqual(left.exception.code, 2)
        self.assertIn("pip install -r experiments/requirements-frames.txt", err.getvalue())


if __name__ == "__main__":
    unittest.main()
