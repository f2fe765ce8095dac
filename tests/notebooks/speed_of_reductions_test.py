"""Tests of the section on the speed of reductions and of torch_speed.py, with made-up rows that are changed one at a
time.

Run by ctest, or: build/venv/bin/python tests/notebooks/speed_of_reductions_test.py
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
from made_up import at_speed, source, took
import results
import speed_of_reductions
import study

AT = "This machine, GPU"
TREE, EXACT, CUB, TORCH = ("sum/tree/plain/fp32@cuda", "sum/exact/fp32@cuda", "cub/segmented/fp32@peer",
                           "torch/sum/fp32@peer")
NORM = "norm/tree/fp32@cuda"


def bar(against, factor, reached):
    return {"against": against, "factor": factor, "reached": reached, "holds": reached >= factor}


def row(method, gb_per_s, bars=(), **more):
    verified = None if method in ("read", "copy") or method.endswith("@peer") else True
    return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp32", "outer": 4096, "n": 1000,
            "inner": 1, "seed": 1, "threads": 0, "verified": verified,
            "bars": list(bars)} | at_speed(gb_per_s) | more


def rows():
    return [row(TREE, 8.0, [bar(CUB, 1.0, 2.0), bar("read", 0.9, 0.8)]), row(EXACT, 5.0), row(CUB, 4.0),
            row("read", 10.0),
            row(NORM, 19.0, [bar("read", 0.97, 0.95)], operation="norm", outer=1, n=1 << 28),
            row("read", 20.0, operation="norm", outer=1, n=1 << 28)]


class SpeedOfReductions(made_up.SentenceTest):
    def setUp(self):
        self.rows, self.torch = rows(), []

    def section(self):
        return speed_of_reductions.section([source("speed_of_reductions", self.rows),
                                            source("torch_speed", self.torch)])

    def after(self, row, new, expected):
        """Checks that a finding appears only after a change; changes are kept."""
        self.assert_no_sentences(self.section().findings, expected)
        self.rows[row].update(new)
        self.assert_sentences(self.section().findings, expected)

    def test_unchanged_rows(self):
        section = self.section()
        self.assert_sentences(
            section.findings,
            f"{AT}: 1 of 3 targets is met. Missed: {TREE} for 4,096 × 1,000 fp32: 0.8 times the speed of read (target: "
            f"0.9); {NORM} for 2²⁸ fp32: 0.95 times the speed of read (target: 0.97).",
            f"{AT}: in 2 reductions … between 80% of the speed of reading (sum of 4,096 × 1,000 fp32, {TREE}) and 95.0% (norm of "
            f"2²⁸ fp32, {NORM}).",
            f"{AT}: beside cub/segmented, samesum is faster in the only reduction: 2 times … sum of 4,096 × 1,000 fp32.",
            "All 3 checked results have the correct bits.", "0 of 1 timed call of other libraries was checked.")
        self.assertEqual((len(section.findings), section.failures), (5, []))

    def test_the_verdict_counts_where_samesum_is_faster(self):
        expected = "With promised bits, samesum is, beside {} (this machine, GPU)."
        self.assert_sentences([self.section().verdict], expected.format("CUB, faster in the only reduction"))
        self.rows.append(row("cublas/norm/fp32@peer", 38.0, operation="norm", outer=1, n=1 << 28))
        self.assert_sentences([self.section().verdict], expected.format("CUB and cuBLAS, faster in 1 of 2 reductions, slower in 1"))
        self.rows[0]["low"] = self.rows[0]["seconds"] / 2
        self.rows[2]["low"] = self.rows[2]["seconds"] / 2
        self.assert_sentences([self.section().verdict], "slower in 1 of 2 reductions, no slower in 1")
        self.rows[0]["low"], self.rows[2]["low"] = self.rows[0]["seconds"], self.rows[2]["seconds"]
        self.rows = self.rows[:2]
        self.assertEqual(self.section().verdict, "")

    def test_atomic_additions_and_given_grids_are_no_rivals_and_loops_are_no_libraries(self):
        faster = at_speed(8 * self.rows[0]["gb_per_s"])
        self.rows += [self.rows[0] | {"method": "sum/atomic/plain/fp32@cuda"} | faster,
                      self.rows[0] | {"method": "sum/fixed_point/fp32@cuda", "grid": -30} | faster]
        self.rows[2]["method"] = "loop/softmax/fp32@peer"
        verdict = self.section().verdict
        self.assert_sentences([verdict], "beside a loop, faster in the only reduction")
        self.rows.append(row("loop/norm/fp32@peer", 38.0, operation="norm", outer=1, n=1 << 28))
        self.assertEqual([s.x for s in self.section().figures[0].series], [[0.5], [2.0]])
        self.assertEqual(self.section().figures[0].title, "Speed relative to the fastest loop")

    def test_the_figure_has_the_ratio_of_each_reduction(self):
        self.rows += [row(TREE, 8.0, n=2000), row(CUB, 2.0, n=2000)]
        figure = self.section().figures[0]
        self.assertEqual([(s.y, s.x, s.text) for s in figure.series],
                         [(["4,096 × 1,000 fp32"], [2.0], ["2.00 × cub/segmented"]),
                          (["4,096 × 2,000 fp32"], [4.0], ["4.00 × cub/segmented"])])
        self.assert_sentences([figure.finding],
                              "This machine, GPU, sum: the reductions range from 2.00 times its speed")
        self.assertNotIn("?", figure.finding)
        self.rows[-1] |= {"low": self.rows[-1]["low"] / 9, "high": self.rows[-1]["high"] * 9}
        figure = self.section().figures[0]
        self.assertEqual(figure.series[1].text, ["4.00? × cub/segmented"])
        self.assert_sentences([figure.finding], "“?”: not decided which is faster.")

    def test_operations_with_one_bar_share_a_choice_of_the_figure_which_has_none_of_one_bar(self):
        self.assertNotIn("reductions-figure", [f.id for f in self.section().figures])
        self.rows.append(row("cublas/norm/fp32@peer", 38.0, operation="norm", outer=1, n=1 << 28))
        figure = self.section().figures[0]
        self.assertEqual(figure.menus[1], ("Operation", ["one reduction each"]))
        self.assertEqual([(s.y, s.x) for s in figure.series],
                         [(["norm, 2²⁸ fp32"], [0.5]), (["sum, 4,096 × 1,000 fp32"], [2.0])])

    def test_targets(self):
        self.after(0, {"bars": [bar(CUB, 1.0, 2.0), bar("read", 0.9, 0.91)]},
                   f"{AT}: 2 of 3 targets are met. Missed: {NORM} for 2²⁸ fp32: 0.95 times the speed of read (target: "
                   "0.97).")
        self.after(4, {"bars": [bar("read", 0.97, 0.98)]}, f"{AT}: all 3 targets are met.")
        self.after(0, {"bars": [bar(CUB, 1.0, 0.5), bar("read", 0.9, 0.91)]},
                   f"{AT}: 2 of 3 targets are met. Missed: {TREE} for 4,096 × 1,000 fp32: 0.5 times the speed of "
                   "cub/segmented (target: 1).")
        self.rows = rows()  # only the farthest of many missed targets are named
        self.rows[0]["bars"] = [bar("read", 0.9, 0.1 * k) for k in range(1, 9)]
        self.assert_sentences(self.section().findings, f"none of 9 targets are met … {TREE} for 4,096 × 1,000 fp32: "
                                                       "0.1 times … (target: 0.9); … 0.2 times … 0.3 … 0.4 … 0.5 "
                                                       "times the speed of read (target: 0.9); and 4 more.")

    def test_a_target_may_be_a_time_on_a_given_grid(self):
        on_grid = "sum/fixed_point/fp32@cuda"
        self.rows[1] = row(on_grid, 5.0, [{"against": "us", "factor": 7.0, "reached": 9.5, "holds": False}], grid=-30)
        section = self.section()
        self.assert_sentences(section.findings, f"{on_grid} (grid 2⁻³⁰) for 4,096 × 1,000 fp32: 9.5 µs (target: at most 7 µs)")
        [row_of_table] = [r for t in section.tables if "all methods" in t.caption for r in t.rows if on_grid in r[3]]
        self.assertEqual((row_of_table[3], row_of_table[-1]), (f"{on_grid} (grid 2⁻³⁰)", "MISS 9.5 of at most 7 µs"))

    def test_ceilings(self):
        self.after(4, at_speed(4.0), f"{AT}: … 20% of the speed of reading (norm of 2²⁸ fp32, {NORM}) and 80% (sum of "
                                         f"4,096 × 1,000 fp32, {TREE}).")
        self.after(1, at_speed(9.0), f"{AT}: … 20% of the speed of reading (norm of 2²⁸ fp32, {NORM}) and 90% (sum of "
                                         f"4,096 × 1,000 fp32, {EXACT}).")
        del self.rows[3]
        self.assert_sentences(self.section().findings, f"{AT}: … reaches 20% of the speed of reading for norm of 2²⁸ fp32 "
                                                       f"({NORM}).")
        more = {"operation": "softmax", "n": 512}  # the ceiling of softmax is a copy
        self.rows = [row("softmax/tree/plain/fp32@cuda", 3.0, **more), row("copy", 12.0, **more)]
        self.assert_sentences(self.section().findings, f"{AT}: … reaches 25% of the speed of reading for softmax of 4,096 × 512 "
                                                       "fp32 (softmax/tree/plain/fp32@cuda).")

    def test_other_data_are_compared_with_normal_data(self):
        before = self.section()
        self.assertFalse(any("on other data" in t.caption for t in before.tables))
        fixed = "sum/fixed_point/fp32@cuda"
        self.rows += [row(fixed, 5.0), row(EXACT, 2.0, data="one outlier", times_normal=2.0, **took(4e-3)),
                      row(EXACT, 1.0, [bar(f"{EXACT}, normal", 0.25, 0.2)], data="arbitrary bits", **took(1e-2)),
                      row(fixed, 99.0, data="arbitrary bits", **took(3e-3)), row("read", 10.0, data="arbitrary bits")]
        section = self.section()
        self.assert_sentences(
            section.findings,
            f"{AT}: on other data, exact takes at most 5.00 … times as long as on normal data (sum of 4,096 × 1,000 "
            "fp32, arbitrary bits) and fixed_point takes 1.50 … times as long … (sum of 4,096 × 1,000 fp32, arbitrary "
            "bits).",
            f"{AT}: 1 of 4 targets is met. Missed: {EXACT} for 4,096 × 1,000 fp32, arbitrary bits: 0.2 times the speed of",
            f"{AT}: in 2 reductions … between 80% of the speed of reading")
        self.assertEqual(section.verdict, before.verdict)
        [table] = [t for t in section.tables if "on other data" in t.caption]
        self.assertEqual(table.columns[2:], ["one outlier", "arbitrary bits"])
        self.assertEqual(table.rows, [["sum of 4,096 × 1,000 fp32", EXACT, "2.00 [2.00, 2.00]", "5.00 [5.00, 5.00]"],
                                      ["sum of 4,096 × 1,000 fp32", fixed, "-", "1.50 [1.50, 1.50]"]])
        [summaries] = [t for t in section.tables if t.caption == "This machine, GPU: reductions" or
                       t.caption.endswith("GPU: reductions")]
        self.assertEqual(len(summaries.rows), 2, "normal data alone")

    def test_compares_the_fastest_method_with_other_libraries(self):
        self.after(2, at_speed(16.0), f"{AT}: beside cub/segmented, … slower in the only reduction: 0.5 times … "
                                     "sum of 4,096 × 1,000 fp32")
        self.after(1, at_speed(24.0), f"{AT}: beside cub/segmented, … faster in the only reduction: 1.5 times … "
                                     "sum of 4,096 × 1,000 fp32")
        self.rows += [row(TREE, 2.0, n=32, input_format="bf16"), row(CUB, 8.0, n=32, input_format="bf16")]
        self.assert_sentences(self.section().findings, f"{AT}: … cub/segmented, … faster in 1 of 2 … 0.25 times … (sum of 4,096 "
                                                       "× 32 bf16) to 1.5 times (sum of 4,096 × 1,000 fp32)")

    def test_methods_beside_torch_in_its_file_have_a_target(self):
        here = f"{AT}, called from Python, in a CUDA graph"
        self.torch = [row(TREE, 8.0, launch="graph"), row(TORCH, 16.0, launch="graph")]
        self.assert_sentences(self.section().findings,
                              f"{AT}: 1 of 3 targets is met.",
                              f"{here}: 0 of 1 target is met. Missed: {TREE} for 4,096 × 1,000 fp32: 0.5 times the "
                              "speed of torch/sum (target: 1).",
                              f"{here}: beside torch/sum, … slower in the only reduction: 0.5 times … 4,096 × 1,000 fp32")
        self.torch[1].update(at_speed(2.0))
        self.assert_sentences(self.section().findings, f"{here}: The only target is met".replace("The", "the"),
                              "torch/sum, samesum is faster in the only reduction: 4 times")
        self.torch[1]["n"] = 7  # no other row has this length
        self.assert_no_sentences(self.section().findings, "torch")

    def test_rows_of_torch_are_not_compared_with_another_file(self):
        self.torch = [row(TORCH, 1.0)]
        self.assert_no_sentences(self.section().findings, "torch/sum")

    def test_wrong_bits(self):
        self.after(1, {"verified": False}, f"2 of 3 checked results have the correct bits; exceptions: {EXACT} (this "
                                           "machine, GPU).")
        self.assertEqual(self.section().failures,
                         [f"this machine, GPU: {EXACT} returned wrong bits for sum of 4,096 × 1,000 fp32"])
        self.after(0, {"verified": None}, "1 of 2 checked results has the correct bits; 1 other was not checked; … "
                                          f"exceptions: {EXACT} (this machine, GPU).")

    def test_a_peer_with_wrong_results_is_an_exception_and_no_rival(self):
        checked = "The only checked call of other libraries has all results within a tolerance"
        self.assert_no_sentences(self.section().findings, checked)
        self.rows[2]["verified"] = True
        self.assert_sentences(self.section().findings, checked, f"{AT}: beside cub/segmented, samesum")
        self.rows[2]["verified"] = False
        section = self.section()
        self.assert_no_sentences(section.findings, "beside cub/segmented")
        self.assert_sentences(section.findings, f"exceptions: {CUB} (this machine, GPU)")
        self.assertEqual(section.failures, [])
        self.assertEqual(section.verdict, "")

    def test_calls_that_peers_decline_are_listed_with_the_reason(self):
        for operation in ("dot", "dot", "norm"):
            self.rows.append({"kind": "declined", "method": f"cublas/{operation}/fp32@peer", "operation": operation,
                              "input_format": "fp32", "outer": 3, "n": 4, "inner": 1, "seed": 1, "threads": 0,
                              "reason": "it reduces one vector per call"})
        self.assert_sentences(self.section().findings,
                              f"{AT}: not measured are cublas/dot in 2 reductions (it reduces one vector per call); "
                              "cublas/norm in 1 reduction (it reduces one vector per call).")

    def test_each_place_has_its_own_sentences(self):
        self.rows[4]["threads"] = self.rows[5]["threads"] = 2
        self.assert_sentences(self.section().findings, "This machine, CPU, 2 threads: … 95.0% of the speed of reading for norm of "
                                                       f"2²⁸ fp32 ({NORM}).", f"{AT}: 1 of 2 targets is met. Missed: "
                                                                              f"{TREE} for 4,096 × 1,000 fp32: 0.8 "
                                                                              "times the speed of read (target: 0.9).")

    def test_tables_have_a_row_per_reduction_and_a_row_per_method(self):
        self.torch = [row(TREE, 8.0), row(TORCH, 16.0)]
        short, whole, short_beside_torch, whole_beside_torch = self.section().tables
        self.assertEqual(short.rows, [
            ["sum", "4,096 × 1,000", "fp32", TREE, "cub/segmented", "8", "80%", "2.00 [2.00, 2.00]", "1 of 2"],
            ["norm", "2²⁸", "fp32", NORM, "-", "19", "95.0%", "-", "0 of 1"]])
        self.assertEqual((short.folded, whole.page_only, len(whole.rows)), (False, True, 6))
        self.assertEqual(whole.rows[0][-3:], ["8", "80%", "pass 2 of 1 × cub/segmented; MISS 0.8 of 0.9 × read"])
        self.assertEqual(short_beside_torch.rows, [
            ["sum", "4,096 × 1,000", "fp32", TREE, "torch/sum", "8", "-", "0.50 [0.50, 0.50]", "0 of 1"]])
        self.assertEqual(whole_beside_torch.rows[0][-3:], ["8", "-", "MISS 0.5 of 1 × torch/sum"])

    def test_only_equal_reductions_are_compared(self):
        def compared():
            return [f for f in self.section().findings if not f.endswith("checked.")]
        findings = compared()
        for more in ({"operation": "mean"}, {"input_format": "bf16"}, {"outer": 8}, {"n": 8}, {"inner": 8}):
            self.rows = rows() + [row(CUB, 80.0, **more), row("read", 80.0, **more)]
            self.assertEqual(compared(), findings, more)
        self.assertEqual([speed_of_reductions.shape(row("read", 1.0, outer=o, n=n, inner=i))
                          for o, n, i in ((1, 1 << 28, 1), (4096, 32, 1), (1, 4096, 131072))],
                         ["2²⁸", "4,096 × 32", "131,072 columns of 4,096"])


# --- torch_speed.py ---------------------------------------------------------------------------------------------

class Tensor(numpy.ndarray):
    """An array with the methods of a tensor that torch_speed.py uses for sums, variances and softmaxes."""

    numel, element_size = (lambda self: self.size), (lambda self: self.itemsize)
    double, clone = (lambda self: self.astype(float)), (lambda self: self.copy())
    abs, amax = (lambda self: numpy.abs(self)), (lambda self, dim: self.max(dim))
    select = (lambda self, dim, at: self.take(at, dim))


class FakeTorch(types.ModuleType):
    """A GPU on which replay k of each graph takes k ms per call."""

    __version__, float32, float16 = "2.0", "float32", "float16"

    def __init__(self):
        super().__init__("torch")
        self.calls, self.milliseconds, self.recording = 0, 0.0, False
        self.compiler = types.SimpleNamespace(reset=lambda: None)
        self.compile = lambda function, dynamic: function
        self.cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "A GPU", Event=self.Event,
                                          CUDAGraph=self.graph, graph=self.record, empty_cache=lambda: None)
        self.Event.torch = self

    class Event:
        torch = None

        def __init__(self, enable_timing):
            assert enable_timing

        record = synchronize = lambda self: None

        def elapsed_time(self, _):
            return self.torch.milliseconds

    def graph(self):
        made = types.SimpleNamespace(replays=0, calls=0)

        def replay():
            made.replays += 1
            self.milliseconds = 1.0 * made.replays * made.calls
        made.replay = replay
        return made

    @contextlib.contextmanager
    def record(self, graph):
        self.calls, self.recording = 0, True
        yield
        graph.calls, self.recording = self.calls, False

    def manual_seed(self, seed):
        self.random = numpy.random.default_rng(seed)

    def randn(self, shape, device, dtype):
        assert device == "cuda"
        return self.random.standard_normal(shape).astype(dtype).view(Tensor)

    def sum(self, x, dim, dtype=None):
        self.calls += self.recording
        return x.sum(dim, dtype=dtype)

    def var(self, x, dim, correction):
        self.calls += self.recording
        return x.astype(float).var(dim, ddof=correction).astype(x.dtype)

    def softmax(self, x, dim):
        self.calls += self.recording
        exponentials = numpy.exp(x.astype(float))
        return (exponentials / exponentials.sum(dim, keepdims=True)).astype(x.dtype)


class FakeSamesum(types.ModuleType):
    """samesum on the fake GPU. Its exact sums leave out an element if `is_wrong`."""

    def __init__(self, torch, is_wrong=False, absent=()):
        super().__init__("samesum")
        self.torch, self.is_wrong, self._core = torch, is_wrong, types.SimpleNamespace(absent=lambda: dict(absent))

    def sum(self, x, axis, method):
        return self.torch.sum(x[:, 1:] if self.is_wrong and method.startswith("exact") else x, axis, dtype="float32")

    def var(self, x, axis, method):
        return self.torch.var(x, axis, 1 if self.is_wrong else 0)

    def softmax(self, x, axis, method):
        raise ValueError("samesum: this call\ncannot be captured")


class TorchSpeed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = unittest.mock.patch.dict(sys.modules)
        patch.start()
        self.addCleanup(patch.stop)
        self.folder = pathlib.Path(folder.name)
        self.provenance = study.provenance({}) | {"gpu": "A GPU, driver for CUDA 13.0"}
        self.rows = rows() + [row("softmax/tree/plain/fp32@cuda", 1.0, operation="softmax", n=8, input_format="fp16"),
                              row("read", 1.0, outer=1, n=5, inner=7), row("read", 1.0, threads=1),
                              row("sum/tree/kahan/fp32@cuda", 1.0)]
        self.rows += [row("read", 1, threads=1, **more) for more in ({"operation": "max"}, {"outer": 5}, {"inner": 5})]

    def run_script(self, torch, samesum=None):
        sys.modules["torch"], sys.modules["samesum"] = torch, samesum  # None cannot be imported
        header = made_up.header("speed_of_reductions") | {"filter": "sum/*", "provenance": self.provenance}
        (self.folder / "speed_of_reductions.jsonl").write_text("".join(
            json.dumps(o) + "\n" for o in [header] + self.rows))
        self.out, self.err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(self.out), contextlib.redirect_stderr(self.err):
            return made_up.script("torch_speed").main([str(self.folder)])

    def written(self):
        beside, found = results.read(self.folder, questions=["speed_of_reductions"])["speed_of_reductions"]
        self.assertEqual((beside.question, found.question, beside.skipped, found.skipped),
                         ("speed_of_reductions", "torch_speed", 0, 0))
        return found

    def assert_refused(self, torch, why):
        self.assertEqual(self.run_script(torch), 2)
        self.assertIn(why, self.err.getvalue())
        self.assertEqual(self.err.getvalue().count("\n"), 1)
        self.assertFalse((self.folder / "torch_speed.jsonl").exists())

    def test_measures_torch_and_samesum_on_the_same_arrays(self):
        torch = FakeTorch()
        self.assertEqual(self.run_script(torch, FakeSamesum(torch)), 0, self.err.getvalue())
        found = self.written()
        self.assertEqual(found.header["options"], {"torch": "2.0"})
        about = found.header["provenance"]
        self.assertEqual((about["gpu"], about["kernel"], about["libraries"]),
                         (self.provenance["gpu"], self.provenance["kernel"], {"torch": "2.0"}))
        by_cell = {}
        for r in found.rows:
            by_cell.setdefault((r["operation"], r["n"], r["kind"]), []).append(r["method"])
        compiled = "torch/sum_compiled/fp32@peer"
        self.assertEqual({cell: set(methods) for cell, methods in by_cell.items()}, {
            ("sum", 1000, "reduction"): {TORCH, compiled, TREE, EXACT},  # without kahan
            ("softmax", 8, "reduction"): {"torch/softmax/fp16@peer", "torch/softmax_compiled/fp16@peer"},
            ("softmax", 8, "declined"): {"softmax/tree/plain/fp32@cuda"}, ("sum", 5, "reduction"): {TORCH, compiled}})
        self.assertEqual([r["reason"] for r in found.rows if r["kind"] == "declined"], ["samesum: this call cannot be captured"])
        for r in (r for r in found.rows if r["kind"] == "reduction"):
            bytes = r["outer"] * r["n"] * r["inner"] * (4 if r["operation"] == "sum" else 2 * 2)
            self.assertEqual((r["launch"], r["verified"]), ("graph", True))
            self.assertEqual([r[time] for time in ("seconds", "low", "high")], [5e-3, 3e-3, 7e-3])  # replays 3 to 7 took 3 to 7 ms
            self.assertAlmostEqual(r["gb_per_s"], bytes / 5e-3 / 1e9)

    def test_variances_are_compared_with_moments_and_columns_with_columns(self):
        more = {"operation": "moments", "outer": 1, "n": 64, "inner": 5}
        ours = ["moments/exact/fp32@cuda", "moments/tree/fp32@cuda"]
        self.rows = [row(method, 1.0, **more) for method in ours] + [row(ours[0], 1.0, data="outliers", **more)]
        torch = FakeTorch()
        self.assertEqual(self.run_script(torch, FakeSamesum(torch)), 0, self.err.getvalue())
        found = self.written().rows
        self.assertEqual({r["method"] for r in found}, {"torch/var/fp32@peer", "torch/var_compiled/fp32@peer", *ours})
        for r in found:
            self.assertEqual((r["operation"], r["n"], r["inner"], r["verified"]), ("moments", 64, 5, True))
            self.assertNotIn("data", r)
        (self.folder / "torch_speed.jsonl").unlink()
        self.assertEqual(self.run_script(torch, FakeSamesum(torch, is_wrong=True)), 1)
        wrong = {r["method"] for r in self.written().rows if r["verified"] is False}
        self.assertEqual(wrong, set(ours), "n - 1 instead of n")

    def test_a_wrong_result_is_marked_and_fails(self):
        torch = FakeTorch()
        self.assertEqual(self.run_script(torch, FakeSamesum(torch, is_wrong=True)), 1)
        self.assertEqual({r["method"] for r in self.written().rows if r.get("verified") is False}, {EXACT})
        self.assertIn("WRONG", self.out.getvalue())

    def test_without_samesum_it_measures_torch_alone(self):
        self.assertEqual(self.run_script(FakeTorch()), 0)
        self.assertIn("without samesum", self.err.getvalue())
        torch = FakeTorch()
        self.assertEqual(self.run_script(torch, FakeSamesum(torch, absent={"cuda": "it has no CUDA"})), 0)
        self.assertIn("without samesum: it has no CUDA", self.err.getvalue())
        self.assertTrue(all(r["method"].startswith("torch/") for r in self.written().rows))

    def test_refuses_results_that_cannot_be_compared(self):
        self.assert_refused(None, "pip install torch")
        torch = FakeTorch()
        torch.cuda.is_available = lambda: False
        self.assert_refused(torch, "PyTorch finds no GPU")
        self.provenance["kernel"] = "Another 6.1"
        self.assert_refused(FakeTorch(), "but speed_of_reductions ran on Another 6.1: run it here")
        self.provenance["gpu"] = "Another GPU, driver"
        self.assert_refused(FakeTorch(), "this GPU is A GPU, but speed_of_reductions ran on Another GPU, driver: run "
                                         "it here")
        self.provenance["gpu"] = None
        self.assert_refused(FakeTorch(), "ran on None")
        self.rows = [r for r in self.rows if r["threads"]]
        self.assert_refused(FakeTorch(), "has no sum, variance or softmax on a GPU")

    def test_refuses_a_folder_without_results(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(made_up.script("torch_speed").main([str(self.folder)]), 2)
        self.assertIn("run speed_of_reductions --out", err.getvalue())


if __name__ == "__main__":
    unittest.main()
