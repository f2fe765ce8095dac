"""Tests of the section on sums by key, and of what torch_speed.py writes for it, with made-up rows.

Run by ctest, or: build/venv/bin/python tests/notebooks/sums_by_key_test.py
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy

import made_up
import results

LOOP, GRID, EXACT, ATOMIC, CUB, TORCH, SLOW_TORCH = (
    "scatter_add/serial/plain/fp32@cuda", "scatter_add/fixed_point/fp32@cuda", "scatter_add/exact/fp32@cuda",
    "scatter_add/atomic_element/plain/fp32@cuda", "cub/sort_reduce_by_key/fp32@peer", "torch/index_add/fp32@peer",
    "torch/index_add_deterministic/fp32@peer")
PROMISES = {LOOP: "everywhere", GRID: "order_free", EXACT: "order_free", ATOMIC: "none", CUB: "none", TORCH: "none"}
BY_KEY = {"operation": "scatter_add", "input_format": "fp32", "seed": 1, "keys": "uniform", "bins": 1 << 12}


def errors(method, ulps, data="normal", **more):
    return BY_KEY | {"kind": "errors", "method": method, "promise": PROMISES[method], "data": data, "n": 1 << 16,
                     "results": 4000, "correct": 4000 if method == EXACT else 100, "largest_ulps": ulps,
                     "median_ulps": ulps / 2, "largest_relative": ulps * 1e-7, "largest_share": 0.5,
                     "within_bound": True} | more


def repeats(method, axis="runs", distinct=1, **more):
    return BY_KEY | {"kind": "repeats", "method": method, "promise": PROMISES[method], "data": "normal", "n": 1 << 20,
                     "axis": axis, "runs": 10, "distinct_bits": distinct, "broken": False} | more


def speed(method, seconds, **more):
    ours = method.startswith("scatter")
    return BY_KEY | {"kind": "reduction", "method": method, "outer": 1, "n": 1 << 26, "inner": 1, "threads": 0,
                     "seconds": seconds, "low": seconds, "high": seconds, "gb_per_s": (8 << 26) / seconds / 1e9,
                     "verified": True if ours else None, "bars": [], "grid": None} | more


class SumsByKey(made_up.SectionTest):
    question = "sums_by_key"

    def setUp(self):
        self.rows = [errors(LOOP, 40.0), errors(GRID, 0.5), errors(EXACT, 0.5), errors(GRID, 30.0, "60 binades"),
                     repeats(GRID, "permutation"), repeats(EXACT), repeats(LOOP, "permutation", 8), repeats(ATOMIC, "runs", 9),
                     speed(GRID, 2e-4), speed(GRID, 1.6e-4, grid=-30), speed(EXACT, 4e-4), speed(ATOMIC, 1.6e-3),
                     speed(CUB, 8e-4), speed(TORCH, 3.2e-3), speed("read", 1e-4)]

    def test_unchanged_rows(self):
        here, same = "This machine, GPU: beside", "a sum by key with the same bits in every run is faster in the only case:"
        self.check("All 4 calls of samesum's methods keep all errors", "exact is correctly rounded in all 4,000 sums by key.",
                   "largest error of a sum of normal fp32 numbers is 40 ulps with serial/plain, 0.5 ulps with fixed_point, "
                   "0.5 ulps with exact.",
                   "Both methods with a promise … one result in 20 runs (repeated calls, other orders of the elements).",
                   f"In repeated calls the only method without that promise varied, up to 9 results in 10 runs ({ATOMIC}).",
                   f"This machine, GPU: fixed_point (given grid) has 62% (2¹² keys) of the speed of reading elements and uniform keys.",
                   f"This machine, GPU: fixed_point has 50%", f"This machine, GPU: exact has 25%",
                   f"{here} atomic_element/plain, {same} 8 times as fast.",
                   f"{here} cub/sort_reduce_by_key, {same} 4 times as fast", f"{here} torch/index_add, {same} 16 times",
                   failures=[],
                   verdict="With promised bits, sums by key are, beside atomic_element/plain, faster in the only case: "
                           "8 times as fast (exact: 4); beside cub/sort_reduce_by_key, faster in the only case: 4 "
                           "times as fast (exact: 2); … 16 times as fast (exact: 8) (this machine, GPU).")
        self.assertTrue(all(len(f) < 210 for f in self.s.findings), "sentences are short")
        self.rows[11]["low"] = 1e-4  # jumps
        self.check("beside atomic_element/plain, … not decided in the only case: 8 times as fast",
                   verdict="beside atomic_element/plain, not decided in the only case: 8 times as fast")

    def test_cases_are_counted_with_their_range_and_without_given_grids(self):
        self.rows += [speed(method, seconds, bins=16) for method, seconds in ((EXACT, 4e-4), (GRID, 5e-4), (ATOMIC, 1e-4))]
        self.rows.append(speed(GRID, 1e-5, bins=16, grid=-30))
        self.check(verdict="beside atomic_element/plain, faster in 1 of 2 cases, slower in 1: 0.25 to 8 times as fast "
                           "(exact: 0.25 to 4)")
        self.rows = [r for r in self.rows if r["method"] != GRID]
        self.assert_no_sentences([self.check().verdict], "(exact")  # which is then the fastest

    def test_a_changed_time_changes_the_sentences(self):
        self.rows[8].update(made_up.took(1.25e-4))
        self.rows[10].update(made_up.took(1e-3))
        self.check("fixed_point has 80% (2¹² keys)", "exact has 10%", "atomic_element/plain, … 13 times as fast",
                   verdict="atomic_element/plain, faster in the only case: 13 times as fast")
        self.rows += [speed(EXACT, 2e-4, bins=16), speed("read", 1e-4, bins=16)]
        self.check("exact has 10% (2¹² keys) to 50% (16 keys)")

    def test_other_data_are_compared_with_the_same_method_and_grid(self):
        self.rows += [speed(EXACT, 1.2e-3, data="one outlier"), speed(GRID, 3e-4, data="one outlier"),
                      speed("read", 1e-4, data="one outlier"), speed(EXACT, 9e-4, data="60 binades", bins=16)]
        self.check("This machine, GPU: on other data, exact takes 3.00 … times as long as on normal data (2²⁶ fp32 of "
                   "one outlier with 2¹² uniform keys) and fixed_point takes 1.50 … times as long")
        [table] = [t for t in self.s.tables if "on other data" in t.caption]
        self.assertEqual(table.rows, [["2²⁶ fp32 with 2¹² uniform keys", EXACT, "3.00 [3.00, 3.00]"],
                                      ["2²⁶ fp32 with 2¹² uniform keys", GRID, "1.50 [1.50, 1.50]"]])

    def test_targets_relative_to_torch(self):
        for r in self.rows[8:]:
            r["bins"] = 1 << 16
        self.rows[13].update(made_up.took(3e-4))
        self.check("the only target is met")
        self.rows[13].update(made_up.took(2e-4))
        self.check("0 of 1 target is met")
        self.rows += [speed(SLOW_TORCH, 5e-3, bins=1 << 16)]
        self.check("2 of 3 targets are met")  # 31 and 12.5 times, and 1.25 of 1.67

    def test_sums_of_rows_have_targets_too(self):
        rows = {"inner": 128, "n": 1 << 19}
        self.rows = [speed(GRID, 2e-4, **rows), speed(TORCH, 3e-4, **rows), speed(SLOW_TORCH, 1e-4, **rows)]
        self.check("torch/index_add, … faster … 1.5 times as fast", "torch/index_add_deterministic, … slower … 0.5 times")
        self.assert_no_sentences(self.s.findings, "of the speed of reading elements and uniform keys")
        self.check("1 of 2 targets is met")
        self.rows[1].update(low=1e-4)  # whether it is as fast is not decided
        self.check("neither of the two targets is met")

    def test_failures(self):
        self.rows[2].update(correct=3999)
        self.rows[4].update(distinct_bits=3, broken=True)
        self.rows[8].update(verified=False)
        self.check("3,999 of 4,000 sums by key", failures=[
            f"this machine, GPU: {EXACT} on normal at n = 2¹⁶: 3999 of 4000 results are correctly rounded",
            f"this machine, GPU: {GRID} promises order_free but returned 3 results (other orders of the elements)",
            f"this machine, GPU: {GRID} returned wrong bits for 2²⁶ fp32 with 2¹² uniform keys"])

    def test_the_figure_and_the_tables(self):
        self.rows += [speed(EXACT, 4e-4, keys="zipf"), speed("read", 1e-4, keys="zipf")]
        section = self.check()
        figure = section.figures[0]
        self.assertEqual({s.on[2] for s in figure.series}, {"normal data, uniform keys", "normal data, zipf keys",
                                                            "60 binades data, uniform keys"})
        self.assertIn("fixed_point (given grid)", {s.name for s in figure.series})
        self.assert_sentences([figure.finding], "at 2¹² keys the methods range from … (torch/index_add) to … (read)")
        self.assertEqual([t.rows for t in section.tables[:1]],
                         [[["normal", "40", "0.5", "0.5"], ["60 binades", "-", "30", "-"]]])
        self.assertEqual(section.tables[1].rows[0], [
            "scatter_add", "2²⁶ fp32 with 2¹² uniform keys", GRID + " (given grid)", "160", "1.6", CUB,
            "5.00 [5.00, 5.00]"])


def scatter_add(out, keys, x, method, threads):
    """As samesum's, but for fixed_point, which leaves out an element."""
    first, found = method.startswith("fixed_point"), out.copy()
    numpy.add.at(found, keys[first:], x[first:])
    return found


class NumPyBesideThem(unittest.TestCase):
    """torch_speed.py on results of a CPU alone, which need no PyTorch."""

    def run_script(self, experiment, rows, samesum, code=0):
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.dict(sys.modules, samesum=samesum):
            folder = pathlib.Path(name)
            (folder / f"{experiment}.jsonl").write_text("".join(
                json.dumps(o) + "\n" for o in [made_up.header_of_this_host(experiment), *rows]))
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertEqual(made_up.script("torch_speed").main([name]), code)
            self.assertEqual("without samesum" in err.getvalue(), samesum is None)
            return results.read(folder, questions=[experiment])[experiment][1]

    def test_sums_by_key(self):
        method, on_cpu = EXACT.replace("cuda", "cpu"), {"threads": 1, "n": 1 << 12}
        rows = [speed(method, 1.0, **on_cpu, grid=grid, keys=keys, inner=inner)
                for grid in (None, -30) for keys in ("uniform", "skewed", "zipf", "sorted") for inner in (1, 8)]
        samesum = types.SimpleNamespace(scatter_add=scatter_add)
        found = self.run_script("sums_by_key", rows + [speed(method, 1.0, **on_cpu | {"threads": 2})], samesum)
        self.assertEqual((found.question, found.skipped, len(found.rows)), ("torch_sums_by_key", 0, 16))
        self.assertEqual({r["method"] for r in found.rows}, {"numpy/add_at/fp32@peer", method})
        for r in found.rows:
            self.assertEqual((r["grid"], r["verified"]), (None, True))
            self.assertAlmostEqual(r["gb_per_s"] * 1e9 * r["seconds"], r["n"] * (4 * r["inner"] + 4), delta=1e-3)
        self.assertIn("numpy", found.header["options"])

    def test_a_sum_by_key_without_an_element_is_wrong(self):
        method = GRID.replace("cuda", "cpu")
        found = self.run_script("sums_by_key", [speed(method, 1.0, threads=1, n=1 << 12, bins=16)],
                                types.SimpleNamespace(scatter_add=scatter_add), 1)
        self.assertEqual({r["method"]: r["verified"] for r in found.rows}, {"numpy/add_at/fp32@peer": True, method: False})

    def test_prefix_sums(self):
        method = "cumsum/exact/fp32@cpu"
        row = {name: value for name, value in speed(EXACT, 1.0, threads=1, n=1 << 12).items()
               if name not in ("keys", "bins", "grid")} | {"operation": "cumsum", "method": method}
        rows = [row, row | {"method": "copy"}]
        found = self.run_script("prefix_sums", rows, None)
        self.assertEqual([r["method"] for r in found.rows], ["numpy/cumsum/fp32@peer"])
        for wrong in (False, True):
            samesum = types.SimpleNamespace(
                cumsum=lambda x, axis, method, threads: (x * (numpy.arange(x.size) != (7 if wrong else -1))).cumsum(axis, x.dtype))
            found = self.run_script("prefix_sums", rows, samesum, wrong)
            self.assertEqual({r["method"]: r["verified"] for r in found.rows},
                             {"numpy/cumsum/fp32@peer": True, method: not wrong})

    def test_keys_have_the_distributions_of_the_experiment(self):
        n = 200_000
        u, places = numpy.random.default_rng(1).random(n), numpy.arange(n)
        for name, first in (("uniform", 0.01), ("skewed", 0.01 ** (1 / 3)),
                            ("zipf", (1 - 2**-0.1) / (1 - 101**-0.1)), ("sorted", 0.01)):
            keys = made_up.script("torch_speed").keys_of({"bins": 100, "n": n, "keys": name}, u, places).astype(numpy.int64)
            self.assertEqual((keys.min(), keys.max()), (0, 99), name)
            self.assertAlmostEqual((keys == 0).mean(), first, delta=0.005, msg=name)

    def test_repeated_results_are_compared_with_the_first_one(self):
        runs = (numpy.array(x, "float32") for x in ([4, -2, 0, 1], [4, -2, 0, 1], [5, -2, 0, 1], [5, -3, 0, 1]))
        found = made_up.script("torch_speed").repeats(runs, bytes)
        row = repeats(TORCH) | found
        self.assertIsNone(results.problem(row, results.KINDS))
        self.assertEqual((found["runs"], found["distinct_bits"]), (4, 3))
        self.assertAlmostEqual(found["vermv_mean"], (0 + 1/4 + 3/4) / 4 / 3)
        self.assertAlmostEqual(found["vermv_max"], (1/4 + 1/2) / 4)
        self.assertEqual((found["vc_mean"], found["vc_max"]), ((0 + 1/4 + 2/4) / 3, 2/4))


if __name__ == "__main__":
    unittest.main()
