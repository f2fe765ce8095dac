"""Tests of the section on sums in one's own kernels with made-up rows, and of what the experiment says without a GPU.

Run by ctest, or: build/venv/bin/python tests/notebooks/own_kernels_test.py
"""

import contextlib
import io
import sys
import types
import unittest
import unittest.mock

import made_up

FLOATS, GRID, EXACT = "triton/fp32@peer", "scatter_add/fixed_point/fp32@cuda", "scatter_add/exact/fp32@cuda"
NUMBA = "numba/fp32@peer"


def kernel(method, bins, seconds, distinct=1, case="triton", keys="uniform", setting="relaxed", **more):
    is_peer = method.endswith("@peer")
    return {"kind": "kernel", "method": method, "promise": "none" if is_peer else "order_free", "setting": setting,
            "case": case, "keys": keys, "data": "normal", "seed": 1, "n": 4000, "bins": bins, "seconds": seconds,
            "low": seconds, "high": seconds, "turns": bins, "rounds": [[seconds] * 5], "runs": 20,
            "distinct_bits": distinct, "verified": None if is_peer else True,
            "cell_bytes": 4 if is_peer else 24 if method == GRID else 104, "broken": False} | more


class OwnKernels(made_up.SectionTest):
    question = "own_kernels"

    def setUp(self):
        self.rows = [kernel(FLOATS, 16, 1e-3, 20), kernel(FLOATS, 16, 2e-3, 19, setting="acquire and release"),
                     kernel(GRID, 16, 1.5e-3), kernel(EXACT, 16, 1.8e-3),
                     kernel(FLOATS, 1024, 1e-3, 20), kernel(GRID, 1024, 5e-4), kernel(EXACT, 1024, 6e-4),
                     kernel(FLOATS, 16, 1e-3, 18, keys="skewed"), kernel(GRID, 16, 1e-3, keys="skewed"),
                     kernel(NUMBA, 64, 1e-3, 7, "numba"), kernel(EXACT, 64, 4e-3, case="numba")]

    def test_unchanged_rows(self):
        self.check("All 6 results of cells have the bits of samesum.scatter_add.",
                   "This machine, GPU: the time of cells on a grid over that of float atomics in Triton, with uniform "
                   "indices, is 1.50 [1.50, 1.50] for 16 cells and 0.50 [0.50, 0.50] for 1,024 cells.",
                   "the time of exact cells over that of float atomics in Numba, with uniform indices, is 4.00 … for "
                   "64 cells",
                   failures=[],
                   verdict="Float atomics gave up to 20 results in 20 launches, cells 1; exact cells, Numba, 64 "
                           "uniform indices, take 4.00 [4.00, 4.00] times as long (this machine, GPU).")
        self.assertEqual(self.s.figures[0].chosen()[1:], ("Numba", "uniform"))
        del self.rows[-2:]
        self.check(verdict="cells on a grid, Triton, 1,024 uniform indices, take 0.50 [0.50, 0.50] times as long; "
                           "exact cells, Triton, 16 uniform indices, take 1.80 [1.80, 1.80] times as long")

    def test_failures_of_samesum(self):
        self.rows[2].update(distinct_bits=3, broken=True)
        self.rows[6]["verified"] = False
        at = "this machine, GPU: samesum: "
        self.check("5 of 6 results", failures=[
            at + "cells on a grid, Triton, 16 uniform indices: promises order_free but returned 3 results",
            at + "exact cells, Triton, 1,024 uniform indices: has other bits than samesum.scatter_add"])

    def test_the_figure_and_the_table(self):
        del self.rows[-2:]
        section = self.check()
        grid, exact = section.figures[0].matching(section.figures[0].chosen())
        self.assertEqual((grid.x, [round(y, 9) for y in grid.y]), ([16, 1024], [1.5, 0.5]))
        self.assertEqual([round(y, 9) for y in exact.y], [1.8, 0.6])
        self.assertEqual(section.figures[0].finding,
                         "This machine, GPU, Triton, uniform: at 1,024 cells the methods range from 0.5 times the time of float "
                         "atomics (cells on a grid) to 0.6 times the time of float atomics (exact cells).")
        self.assertEqual(section.tables[0].rows[1], ["this machine, GPU", "Triton", "uniform", "16",
                                                     "float atomics, acquire and release", "4", "20", "19", "2"])

    def test_a_language_that_is_missing_has_a_row(self):
        source = made_up.source("own_kernels", self.rows[:4])
        source.header["left_out"] = ["cupy: No module named 'cupy'"]
        import own_kernels
        self.assertEqual(own_kernels.section([source]).tables[0].rows[4],
                         ["this machine", "not measured: cupy: No module named 'cupy'", *"-------"])


class TheExperiment(unittest.TestCase):
    """experiments/own_kernels.py with modules that are made up, without a GPU."""

    def run_with(self, modules, *arguments):
        script, err = made_up.script("own_kernels"), io.StringIO()
        script.torch = modules.get("torch")
        with unittest.mock.patch.dict(sys.modules, modules), contextlib.redirect_stderr(err):
            return script.main([*arguments]), err.getvalue()

    def test_what_is_missing_is_said(self):
        found = {name: types.ModuleType(name) for name in ("numpy", "torch", "samesum")}
        found["torch"].cuda = types.SimpleNamespace(is_available=lambda: False)
        code, printed = self.run_with(found | {"samesum": None})
        self.assertEqual(code, 2)
        self.assertIn("pip install numpy torch .", printed)
        self.assertEqual(self.run_with(found), (2, "own_kernels.py: PyTorch finds no GPU\n"))
        found["torch"].cuda = types.SimpleNamespace(is_available=lambda: True)
        code, printed = self.run_with(found, "--filter", "fortran")
        self.assertEqual(code, 2)
        self.assertEqual(printed, "own_kernels.py: nothing can be measured: no language is named 'fortran'\n")
        code, printed = self.run_with(found | {"cupy": None}, "--filter", "cupy")
        self.assertEqual(code, 2)
        self.assertIn("without cupy: ", printed)
        self.assertIn("pip install cupy-cuda13x", printed)

    def run_with_languages(self, languages, rows):
        """Runs it with functions in place of languages, and `rows` for each that can be measured."""
        script, made = made_up.script("own_kernels"), unittest.mock.MagicMock(__version__="1.0.0")
        script.torch, script.samesum, script.LANGUAGES = made, made, languages
        script.measured = lambda found, options, turns: [r for r in rows if r["case"] in found]
        with unittest.mock.patch.dict(sys.modules, dict.fromkeys(["torch", "samesum", *languages], made)):
            return made_up.run_script(script, "own_kernels")

    def test_a_language_that_cannot_compile_its_kernels_is_left_out_with_the_reason(self):
        def cannot_be_imported():
            raise AttributeError("module 'numpy' has no attribute 'row_stack'")

        def cannot_compile():
            error = RuntimeError("in line 1:\n  error" + 99 * " words")
            return {(EXACT, "relaxed"): unittest.mock.Mock(side_effect=error)}

        adds = {call: unittest.mock.Mock() for call in ((FLOATS, "relaxed"), (EXACT, "relaxed"))}
        rows = [kernel(EXACT, 16, 1e-3, case=case) for case in ("triton", "numba", "cupy")]
        code, printed, source = self.run_with_languages(
            {"numba": cannot_be_imported, "cupy": cannot_compile, "triton": lambda: adds}, rows)
        self.assertEqual((code, [r["case"] for r in source.rows]), (0, ["triton"]))
        for add in adds.values():
            add.assert_called_once()
        of_numba, of_cupy = source.header["left_out"]
        self.assertEqual(of_numba, "numba: AttributeError: module 'numpy' has no attribute 'row_stack'")
        self.assertIn("cupy: RuntimeError: in line 1: error words", of_cupy)
        self.assertLess(len(of_cupy), 220)
        self.assertIn(f"without {of_numba}\nwithout {of_cupy}\n", printed)
        self.assertEqual(set(source.header["options"]), {"triton", "torch", "samesum"})

    def test_samesum_must_keep_its_promise_and_have_the_bits_of_scatter_add_and_others_need_not(self):
        for changed, expected in (({}, 0), ({"distinct_bits": 2, "broken": True}, 1), ({"verified": False}, 1)):
            rows = [kernel(FLOATS, 16, 1e-3, 20), kernel(EXACT, 16, 1e-3, **changed)]
            with self.subTest(changed):
                self.assertEqual(self.run_with_languages({"triton": dict}, rows)[0], expected)


if __name__ == "__main__":
    unittest.main()
