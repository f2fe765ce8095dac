"""Tests of the section on the speed in Python with made-up rows, of the experiment, and of the tables in the page of the
package.

Run by ctest, or: build/venv/bin/python tests/notebooks/python_speed_test.py
"""

import contextlib
import importlib.metadata
import io
import math
import sys
import types
import unittest
import unittest.mock

import numpy

import made_up
import python_speed
import results

EXACT, TREE, NUMPY = "sum/exact/fp32@cpu", "sum/tree/plain/fp32@cpu", "numpy/sum/fp32@peer"


def bar(against, factor, reached):
    return {"against": against, "factor": factor, "reached": reached, "holds": reached >= factor}


def call(method, speed=None, factor=None, peer=NUMPY, **more):
    """A row with that speed relative to a peer, and a target relative to it if there is a factor."""
    relative = {"peer": peer, "times_peer": 1 / speed} if speed else {}
    return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp32", "outer": 1, "n": 1000,
            "inner": 32, "seed": 1, "threads": 1, "gb_per_s": 4.0, "verified": None,
            "bars": [bar(peer, factor, speed)] if factor else []} | made_up.took(1e-3) | relative | more


class PythonSpeed(made_up.SectionTest):
    question = "python_speed"

    def setUp(self):
        rows, var = {"outer": 1000, "n": 32, "inner": 1}, {"operation": "var", "peer": "numpy/var/fp32@peer"}
        few = {"n": 8, "inner": 1}
        self.rows = [call(EXACT, 0.5, 0.7), call(TREE, 4), call(NUMPY), call(EXACT, 2, 0.7, **rows), call(NUMPY, **rows),
                     call("moments/exact/fp32@cpu", 3, 1, **var), call("numpy/var/fp32@peer", operation="var"),
                     call(EXACT, 2.5, **few, **made_up.took(8e-7)), call(NUMPY, **few),
                     call("sum/exact/fp64@cpu", 9, 1, "math/fsum/fp64@peer", input_format="fp64", inner=1, given="list"),
                     call(EXACT, threads=2, bars=[bar(f"{EXACT}, one thread", 1.6, 1.9)])]

    def test_unchanged_rows(self):
        at = "This machine, CPU, 1 thread"
        self.check(f"{at}: 3 of 4 targets are met. Missed: sum/exact/fp32@cpu for 32 columns of 1,000 fp32: 0.5 times the "
                   "speed of numpy/sum (target: 0.7).",
                   f"{at}: sum, exact has 0.5 (fp32, 1,000 × 32, columns) to 2.5 (fp32, vector of 8) times the speed of "
                   "NumPy: faster in 1 of 3 arrays, as fast in 2.",
                   f"{at}: sum, tree/plain has 4 (fp32, 1,000 × 32, columns) times the speed of NumPy: as fast in the "
                   "only array.",
                   f"{at}: the speed is 9 times that of math/fsum (sum, exact; fp64, list of 1,000).",
                   "This machine, CPU, 2 threads: the only target is met.",
                   failures=[], verdict="Relative to NumPy's, the speed is: exact sums 0.5 to 2.5 times, sums in a tree 4 "
                                        "times (this machine, CPU, 1 thread).")

    def test_changed_speeds_change_the_sentences_the_table_and_the_figure(self):
        self.assertEqual([line[:2] for line in self.check().tables[0].rows],
                         [["fp32, 1,000 × 32, columns", "0.5 < 0.7"], ["fp32, 1,000 × 32, rows", "2"],
                          ["fp32, vector of 8", "2.5"]])
        self.rows[0].update(times_peer=1 / 0.8, bars=[bar(NUMPY, 0.7, 0.8)])
        section = self.check("all 4 targets are met", "sum, exact has 0.8 (fp32, 1,000 × 32, columns)",
                             verdict="exact sums 0.8 to 2.5")
        self.assertEqual(section.tables[0].rows[0], ["fp32, 1,000 × 32, columns", "0.8", "4", "3"])
        figure = section.figures[0]
        self.assertEqual([(s.y[0], round(s.x[0], 3)) for s in figure.matching(figure.chosen())],
                         [("fp32, 1,000 × 32, columns", 0.8), ("fp32, 1,000 × 32, rows", 2), ("fp32, vector of 8", 2.5)])
        self.assert_sentences([figure.finding], "the arrays range from 0.8 times its speed … to 2.5 times its speed")

    def test_a_cell_that_is_not_decided_has_a_mark(self):
        self.rows[2].update(low=0.5e-3, high=2e-3)
        self.check("sum, exact has … faster in 1 of 3 arrays, as fast in 1, not decided in 1")
        self.assertEqual(self.s.tables[0].rows[0][:3], ["fp32, 1,000 × 32, columns", "0.5? < 0.7", "4?"])

    def test_a_table_for_each_machine(self):
        self.there = [call(EXACT, 0.9)]
        section = self.check("H200, CPU, 1 thread: sum, exact has 0.9", verdict="exact sums 0.9 times (H200, CPU, 1 thread)")
        self.assertEqual([t.caption for t in section.tables if "beside" in t.caption],
                         ["this machine, CPU, 1 thread: samesum beside NumPy", "H200, CPU, 1 thread: samesum beside NumPy"])

    def test_the_verdict_names_every_machine_once(self):
        rows = self.rows + [r | {"threads": 2} for r in self.rows]
        verdict = python_speed.section([made_up.source("python_speed", rows, name) for name in ("EPYC", "XEON")]).verdict
        self.assertEqual([verdict.count(f"({name}, CPU, 1 thread)") for name in ("EPYC", "XEON")], [1, 1])
        self.assertNotIn("2 threads", verdict)

    def test_the_tables_of_the_page(self):
        source = results.dataclasses.replace(made_up.source("python_speed", self.rows, "EPYC"),
                                             header={"provenance": made_up.PROVENANCE, "options": {"numpy": "2.4"}})
        made = python_speed.page_tables([source])
        for line in ("A Processor, NumPy 2.4, 2026-11-21:\n", "|  | sum `exact` | sum `tree/plain` | var `exact` |\n",
                     "| fp32, 1,000 × 32, columns | 0.5 < 0.7 | 4 | 3 |\n", "| fp32, 1,000 × 32, rows | 2 |  |  |\n",
                     "A call for 8 fp32 takes 800 ns, NumPy's 2 µs.\n"):
            self.assertIn(line, made)


class TheExperiment(made_up.SentenceTest):
    """experiments/python_speed.py with NumPy and with a package that is made up, on small arrays."""

    def setUp(self):
        self.script = made_up.script("python_speed")
        self.script.LEAST = 0
        self.script.SHAPES = [((8, 4), 1), ((4, 8), 1), ((4, 8), 0), ((8, 2), 0), ((16,), 0)]
        self.script.ROWS, self.script.LONG = self.script.SHAPES[1], ((32,), 0)
        self.script.LIST = 10
        self.given = []

        def function(name):
            def same(x, *more, axis=None, method=None, threads=None):
                self.given.append((name, method, threads, numpy.shape(x), axis))
                if name == "sum" and method is None:
                    return numpy.apply_along_axis(math.fsum, -1, x)
                return getattr(numpy, name)(x, *more, axis=axis)
            return same
        made = types.SimpleNamespace(__version__="0.1.0", fsum=math.fsum, **{name: function(name) for name in self.script.FUNCTIONS})
        patch = unittest.mock.patch.dict(sys.modules, samesum=made, torch=None, xsum=None, bitrep=None, accupy=None)
        patch.start()
        self.addCleanup(patch.stop)

    def run_with(self, *arguments):
        return made_up.run_script(self.script, "python_speed", *arguments)

    @unittest.mock.patch("os.sched_getaffinity", lambda _: {0, 1})
    def test_each_function_is_timed_on_each_array_with_its_targets(self):
        code, printed, source = self.run_with()
        self.assertEqual((code, source.skipped, source.header["mode"]), (0, 0, "quick"))
        self.assertRegex(printed, "without a GPU: .*torch")
        self.assertRegex(printed, "without xsum: .*; pip install -r experiments/requirements-exact.txt")
        self.assertEqual({r["verified"] for r in source.rows if r["operation"] == "cumsum" or r["method"].startswith("math/")},
                         {True})
        calls = {(r["operation"], r["input_format"], r["outer"], r["n"], r["inner"]) for r in source.rows}
        for name in self.script.FUNCTIONS:
            for format in ("fp32", "fp64"):
                for shape in ((8, 4, 1), (4, 8, 1), (1, 4, 8), (1, 8, 2), (1, 16, 1)):
                    self.assertIn((name, format, *shape), calls)
        self.assertIn(("vecdot", "exact", 1, (4, 8), 0), self.given)
        self.assertIn(("sum", "tree/plain", 2, (32,), 0), self.given)
        wanted = {(r["method"], *(r[name] for name in ("outer", "n", "inner", "threads"))):
                  [(b["against"], b["factor"]) for b in r["bars"]]
                  for r in source.rows if r["operation"] == "sum" and "given" not in r}
        self.assertEqual(wanted[EXACT, 8, 4, 1, 1], [(NUMPY, 0.7)])
        self.assertEqual(wanted[TREE, 1, 4, 8, 1], [(NUMPY, 0.5)])
        self.assertEqual([against for against, _ in wanted[EXACT, 4, 8, 1, 2]], [f"{EXACT}, one thread"])
        self.assertEqual([r["given"] for r in source.rows if "given" in r], ["list"] * 4)
        section = python_speed.section([source])
        self.assertEqual(len(section.tables[0].rows), 12)

    def with_exact_sums(self, of_bitrep):
        """Runs with the exact sums of other libraries, made up but for that of bitrep."""
        class Large(list):
            pass

        class Fast:
            def extend(self, x):
                self.sum = of_bitrep(x)

            def finish(self):
                return types.SimpleNamespace(value=lambda: self.sum)
        xsum = types.SimpleNamespace(xsum_large_accumulator=Large, xsum_add=Large.extend, xsum_round=math.fsum)
        accupy = types.SimpleNamespace(fsum=lambda x: numpy.apply_along_axis(math.fsum, 0, x))
        self.script.OF_EXACT_SUMS = (3, 4)
        with (unittest.mock.patch.dict(sys.modules, xsum=xsum, bitrep=types.SimpleNamespace(FastSumF64=Fast), accupy=accupy),
              unittest.mock.patch("importlib.metadata.version", lambda name: "1.2")):
            code, printed, source = self.run_with()
        self.assertEqual(source.skipped, 0)
        self.assertEqual(source.header["options"]["xsum"], "1.2")
        return code, printed, source

    def test_exact_sums_of_other_libraries_are_verified_or_declined(self):
        code, _, source = self.with_exact_sums(math.fsum)
        self.assertEqual(code, 0)
        found = {(r["method"], r["kind"], r["outer"], r.get("given")): r.get("verified") for r in source.rows
                 if r["method"].startswith(("xsum/", "bitrep/", "accupy/"))}
        xsum, bitrep, accupy = (f"{name}/fp64@peer" for name in ("xsum/large", "bitrep/fast_sum", "accupy/fsum"))
        self.assertEqual(found, {(xsum, "reduction", 1, None): True, (bitrep, "reduction", 1, None): True,
                                 (accupy, "reduction", 1, None): True, (bitrep, "reduction", 1, "list"): True,
                                 (xsum, "declined", 3, None): None, (bitrep, "declined", 3, None): None,
                                 (accupy, "reduction", 3, None): True})
        self.assert_sentences(python_speed.section([source]).findings, "the speed of exact is … times that of xsum/large",
                              "not measured are xsum/large in 1 reduction (it sums one vector per call)")

    def test_a_wrong_sum_of_another_library_is_marked(self):
        code, printed, source = self.with_exact_sums(lambda x: math.fsum(x[1:]))
        self.assertEqual(code, 1)
        self.assertIn("bitrep/fast_sum/fp64@peer  WRONG", printed)
        self.assert_no_sentences(python_speed.section([source]).findings, "times that of bitrep")

    def test_results_of_every_function_are_verified(self):
        x, y = (numpy.random.default_rng(seed).standard_normal((30, 40)).astype(numpy.float32) for seed in (1, 2))

        def is_right(function, axis, found):
            return self.script.is_right(numpy, function, found, axis,
                                        *self.script.expected(numpy, function, (x, y), axis, "fp32"))
        for function in self.script.FUNCTIONS:
            inputs = (x, y) if function == "vecdot" else (x,)
            for axis in (0, 1):
                found = getattr(numpy, function)(*inputs, axis=axis)
                shorter = [a[1:] if axis == 0 else a[:, 1:] for a in inputs]  # an element is missing
                wrong = found * 1 if function == "cumsum" else getattr(numpy, function)(*shorter, axis=axis)
                if function == "cumsum":
                    wrong[0, 0] += 0.001
                self.assertEqual([is_right(function, axis, r) for r in (found, wrong)], [True, False], (function, axis))

    @unittest.mock.patch("os.sched_getaffinity", lambda _: {0})
    def test_a_filter_chooses_functions_and_one_processor_has_one_thread(self):
        _, printed, source = self.run_with("--filter", "cum*")
        self.assertEqual(({r["operation"] for r in source.rows}, {r["threads"] for r in source.rows}), ({"cumsum"}, {1}))
        self.assertIn("without two threads", printed)

    def test_a_package_that_was_copied_has_the_version_of_the_sources(self):
        class Copied:
            def __getattr__(self, name):
                raise importlib.metadata.PackageNotFoundError("samesum")
        self.assertRegex(self.script.version_of(Copied()), r"^\d+\.\d+\.\d+$")

    def test_a_ratio_is_the_median_of_the_rounds_and_a_ceiling_counts_by_its_best_round(self):
        ours, peer, ceiling = ("sum/exact/fp32@cpu", 1), (NUMPY, 1), ("read", 1)
        found = {ours: [[1, 4, 1]], peer: [[2, 8, 3]], ceiling: [[9, 1, 9]]}
        target = self.script.Target(ours, peer, 3)
        self.assertEqual(self.script.verdict(found, target), bar(NUMPY, 3, 2))
        self.assertEqual(self.script.verdict(found, target._replace(ceiling=ceiling, share=0.5)), bar(NUMPY, 1.5, 2))

    def test_wrong_usage_and_no_package(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            for arguments, why in (["--seed", "-1"], "--seed"), (["--filter", "product"], "none of sum, mean"):
                with self.assertRaises(SystemExit) as left:
                    self.script.main(arguments)
                self.assertEqual(left.exception.code, 2)
                self.assertIn(why, err.getvalue())
            with unittest.mock.patch.dict(sys.modules, samesum=None):
                self.assertEqual(self.script.main([]), 2)
        self.assertIn("pip install .", err.getvalue())


if __name__ == "__main__":
    unittest.main()
