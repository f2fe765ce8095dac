"""Tests of the section on the ladder, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/ladder_test.py
"""

import dataclasses
import unittest

import made_up
from made_up import source
import ladder
import results

AT = "This machine, GPU"
SUM = AT + ", sum of 2¹²: …"
FIRST, CURED, LOOSE, EXACT = ("interleaved/fp32@cuda", "sequential/fp32@cuda", "coarsened/fp32@cuda", "exact/fp32@cuda")
READ, ADD, FUSED = (f"{which}/fp32@cuda" for which in ("read", "add", "multiply_and_add"))
STRIDED, VECTORS = "strided_reads/fp32@cuda", "add_vectors/fp32@cuda"


def row(method, seconds, **more):
    return {"kind": "ladder", "method": method, "promise": "none", "input_format": "fp32", "data": "uniform", "seed": 1,
            "n": 4096, "setting": 1, "lesson": "a lesson", "seconds": seconds, "low": seconds, "high": seconds,
            "gb_per_s": 4096 * 4 / seconds / 1e9, "read_share": 1e-6 / seconds, "bytes": 4096.0 * 4,
            "operations": 4096.0, "branch_efficiency": None, "l1_hit_rate": None, "runs": 10, "distinct_bits": 1,
            "bits": "0x01234567", "error_ulps": 1.0, "bound": 2.0, "within_bound": True, "as_read": True,
            "broken": False} | more


def shown(method, what, setting, seconds, operations=4096.0, **more):
    return {"kind": "demonstration", "method": method, "input_format": "fp32", "data": "uniform", "seed": 1, "n": 4096,
            "setting": setting, "demonstration": what, "lesson": "a lesson", "seconds": seconds, "low": seconds,
            "high": seconds, "gb_per_s": 32768 / seconds / 1e9, "gflop_per_s": operations / seconds / 1e9,
            "bytes": 32768.0, "operations": operations, "occupancy": None, "suggested": None, "branch_efficiency": None,
            "l1_hit_rate": None, "verified": True} | more


def rows():
    yield row(FIRST, 8e-6, branch_efficiency=0.75, promise="everywhere")
    yield row(CURED, 2e-6, branch_efficiency=0.99, promise="everywhere")
    yield row(LOOSE, 6e-6, setting=1, as_read=None)
    yield row(LOOSE, 3e-6, setting=8, as_read=None)
    yield row(EXACT, 4e-6, promise="order_free", error_ulps=0.25)
    yield shown(STRIDED, "coalescing", 1, 1e-6, 0.0)
    yield shown(STRIDED, "coalescing", 32, 5e-6, 0.0)
    yield shown(VECTORS, "occupancy", 256, 1e-6, occupancy=1.0, suggested=False)
    yield shown(VECTORS, "occupancy", 1024, 2e-6, occupancy=0.5, suggested=True)
    yield shown(READ, "ceilings", 1, 1e-6, 0.0, verified=None, gb_per_s=20.0)
    yield shown(ADD, "ceilings", 16, 1e-6, gflop_per_s=100.0)
    yield shown(FUSED, "ceilings", 16, 1e-6, gflop_per_s=200.0)


class Ladder(made_up.SentenceTest):
    def section(self, *changes, **more):
        """The section after changes (method, setting, new values)."""
        some = list(rows())
        for method, setting, new in changes:
            for r in some:
                if (r["method"], r["setting"]) == (method, setting):
                    r.update(new)
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return ladder.section([dataclasses.replace(source("ladder", some), header=header)])

    def test_unchanged_rows(self):
        section = self.section()
        self.assert_sentences(
            section.findings, "All 11 measured kernels returned correct results",
            f"{SUM} interleaved, takes 8 µs, 4.00 … times … sequential, … 50% … exact reaches 25%.",
            f"{SUM} 2 coarsening factors is 8; factor 1 takes 2.00 … times",
            f"{SUM} 75% … interleaved … 99.0% … sequential … 74% and 99%",
            f"{SUM} none of 5 kernels … 0.25 ulps (exact) to 1 ulp (interleaved).",
            f"{AT}, coalescing: strided_reads (stride 1) … 1 µs; strided_reads (stride 32) takes 5.00 … times",
            f"{AT}, occupancy: add_vectors (256 threads … 1 µs; add_vectors (1,024 threads per block) takes 2.00 … "
            "times … suggests 1,024 … 2 µs",
            f"{AT}: … 20 GB/s … 100 GFLOP/s … (200 for fused … 5 operations per byte; all 7 kernels have … sequential, "
            "at 50%.")
        self.assertEqual((len(section.findings), section.failures), (8, []))
        self.assertEqual([len(t.rows) for t in section.tables], [5, 2, 7])
        self.assertFalse(section.tables[0].folded, "the ladder is shown unfolded")
        self.assertEqual(self.section(left_out=["without cache hit rates: no ncu"]).findings,
                         section.findings + ["Measured without cache hit rates: no ncu (this machine)."])

    def test_the_verdict_is_the_speed_up_of_the_longest_sums(self):
        expected = "From interleaved to sequential, a sum of 2¹² became {} … times as fast and reached {} of the speed of"
        self.assert_sentences([self.section().verdict], expected.format("4.00", "50%"))
        self.assert_sentences([self.section((CURED, 1, {"seconds": 1e-6, "read_share": 0.7})).verdict],
                              expected.format("8.00", "70%"))
        self.assert_sentences([self.section((FIRST, 1, {"seconds": 1e-6})).verdict], "From interleaved to interleaved … no faster")

    def test_the_topics_of_the_lectures_have_the_ratio_of_their_kernels(self):
        self.assertEqual(self.section().tables[1].rows,
                         [["8", "coalesced accesses to global memory", "strided_reads (stride 32)", "strided_reads (stride 1)",
                           "2¹²", "5.00 [5.00, 5.00]"],
                          ["8", "occupancy", "add_vectors (1,024 threads per block)", "add_vectors (256 threads per block)",
                           "2¹²", "2.00 [2.00, 2.00]"]])
        more = self.section((STRIDED, 32, {"seconds": 7e-6}), (EXACT, 1, {"method": "strided_index/fp32@cuda"}))
        self.assertEqual([row[5] for row in more.tables[1].rows], ["7.00 [5.00, 5.00]", *["2.00 [2.00, 2.00]"] * 3])

    def test_a_step_has_the_lines_of_a_kernel_beside_its_times(self):
        sources = [source("ladder", list(rows()))]
        step = ladder.step(sources, "sequential", "interleaved")
        self.assertTrue(step.lines.startswith("__global__ void sequential(") and step.lines.endswith("}"), step.lines)
        self.assertEqual((step.rows, step.lesson), ([("2¹²", "2 µs", "4.00 [4.00, 4.00]")], "A lesson."))
        self.assertIn("<td>2 µs</td><td>4.00 [4.00, 4.00]</td>", step._repr_html_())
        self.assertEqual(ladder.step(sources, "coarsened").rows, [("2¹²", "3 µs", "-")], "its fastest setting")
        self.assertEqual(ladder.step([], "shared").rows, [])

    def test_a_wrong_kernel_is_a_failure(self):
        for method, at, new, kernel, why in (
                (LOOSE, 8, {"within_bound": False}, "coarsened ×8", "the error exceeds its bound"),
                (CURED, 1, {"as_read": False}, "sequential", "the bits differ"),
                (EXACT, 1, {"broken": True, "distinct_bits": 2}, "exact", "promises order_free but returned 2 results"),
                (ADD, 16, {"verified": False}, "add (16 steps)", "returned a wrong result")):
            section = self.section((method, at, new))
            self.assert_sentences(section.findings, f"10 of 11 measured kernels … exceptions: {kernel}.")
            self.assertEqual(len(section.failures), 1)
            self.assert_sentences(section.failures, f"this machine, GPU: {kernel}, n = 4,096: {why}")

    def test_one_number_at_a_time(self):
        for method, at, new, expected in [
                (FIRST, 1, {"seconds": 1.6e-5}, f"{SUM} interleaved, takes 16 µs, 8.00 … times … sequential, … 50% … "
                                                "25%."),
                (EXACT, 1, {"seconds": 1e-6, "read_share": 0.95},
                 f"{SUM} interleaved, takes 8 µs, 8.00 … times … exact, … 95.0% … exact reaches 95.0%."),
                (FIRST, 1, {"seconds": 1e-6}, f"{SUM} interleaved, takes 1 µs and is the fastest; … exact reaches "
                                              "25%."),
                (LOOSE, 1, {"seconds": 1.2e-5}, f"{SUM} 2 coarsening factors is 8; factor 1 takes 4.00 … times"),
                (FIRST, 1, {"branch_efficiency": 0.5}, f"{SUM} 50% … interleaved … 99.0% … sequential"),
                (LOOSE, 8, {"distinct_bits": 7}, f"{SUM} 1 of 5 kernels … 7 in 10 runs (coarsened ×8); … 0.25 ulps "
                                                 "(exact) to 1"),
                (CURED, 1, {"error_ulps": 500.0}, f"{SUM} none of 5 kernels … 0.25 ulps (exact) to 500 ulps "
                                                  "(sequential)."),
                (EXACT, 1, {"error_ulps": 0.2}, f"{SUM} none of 5 kernels … 0.2 ulps (exact) to 1 ulp (interleaved)."),
                (STRIDED, 32, {"seconds": 9e-6}, f"{AT}, coalescing: … strided_reads (stride 32) takes 9.00 … times"),
                (VECTORS, 1024, made_up.took(5e-7),
                 f"{AT}, occupancy: add_vectors (1,024 threads … 500 ns; add_vectors (256 threads per block) takes "
                 "2.00 … times … suggests 1,024 … which is the fastest"),
                (READ, 1, {"gb_per_s": 40.0}, f"{AT}: … 40 GB/s … 100 GFLOP/s … 2.5 operations per byte; all 7 … 50%."),
                (ADD, 16, {"gflop_per_s": 4.0}, f"{AT}: … 20 GB/s … 4 GFLOP/s … 0.2 operations per byte; 2 of 7 … "
                                                "51%."),
                (FUSED, 16, {"demonstration": "coalescing", "operations": 0.0},
                 f"{AT}: … 20 GB/s for reading and 100 GFLOP/s for additions, intersect at 5 operations per byte; all "
                 "7 … 50%.")]:
            with self.subTest(expected):
                self.assert_sentences(self.section((method, at, new)).findings, expected)
                self.assert_no_sentences(self.section().findings, expected)
        for method, new, unexpected in ((LOOSE, {"seconds": 2.5e-6}, "coarsening factors"),  # 1 is the fastest
                                        (FIRST, {"branch_efficiency": None}, "the lecture")):  # nothing was profiled
            self.assert_no_sentences(self.section((method, 1, new)).findings, unexpected)

    def test_sums_from_a_cache_are_compared_with_reading_from_that_cache(self):
        near = "the one nearest to its ceiling is sequential, at"
        self.assert_sentences(self.section((READ, 1, {"gb_per_s": 0.1})).findings, f"of the sums of 2¹², {near} 50%.")
        longer = row(EXACT, 1e-3) | {"n": 1 << 20, "read_share": 0.9}
        two = ladder.section([source("ladder", [*rows(), longer])]).findings
        self.assert_sentences(two, "of the sums of 2²⁰, the one nearest to its ceiling is exact, at 90%.")

    def test_a_sum_that_is_much_faster_than_reading_reads_from_a_cache(self):
        findings = self.section((CURED, 1, {"read_share": 1.42})).findings
        self.assert_sentences(findings, "142% of the speed of reading alone (the data came from a cache)",
                              "nearest to its ceiling is sequential, at 142% (the data came from a cache).")
        self.assertFalse(any("(more than 100%" in f for f in self.section().findings))

    def test_the_roofline(self):
        figure = self.section().figures[0]
        self.assert_sentences([figure.finding],
                              f"{AT}: 6 kernels with 0.12 to 0.25 operations per byte; … 5; not shown is 1 above")
        self.assertEqual(sum(s.faint for s in figure.series), 2)
        self.assertEqual({s.name for s in figure.series if not s.faint}, {"sums", "occupancy"})
        roof = next(s for s in figure.series if s.faint)
        self.assertEqual(roof.y, [min(x * 20, 100) for x in roof.x])

    def test_no_point_of_the_roofline_is_above_its_ceiling(self):
        short = row(EXACT, 1e-9) | {"n": 1024}
        figure = ladder.section([source("ladder", [*rows(), short])]).figures[0]
        self.assert_sentences([figure.finding], "6 kernels")  # those of the longest sums, as without the short one
        self.assert_sentences([self.section((CURED, 1, {"seconds": 1e-9})).figures[0].finding],
                              "5 kernels … not shown are 2 above the ceiling, whose bytes came from a cache.")
        figure = ladder.section(made_up.committed()["ladder"]).figures[0]
        for on in {s.on for s in figure.series}:
            roof = [s for s in figure.matching(on) if s.faint]
            slope, most = roof[0].y[0] / roof[0].x[0], max(y for s in roof for y in s.y)
            for s in (s for s in figure.matching(on) if not s.faint):
                self.assertTrue(all(y <= 1.03 * min(x * slope, most) for x, y in zip(s.x, s.y)), (on, s.name))

    def test_a_second_machine_has_its_own_sentences(self):
        two = ladder.section([source("ladder", list(rows())), source("ladder", [row(FIRST, 1e-3)], "H200")]).findings
        self.assert_sentences(two, "H200, GPU, sum of 2¹²: … interleaved, takes 1 ms and is the fastest.")
        self.assertTrue(set(self.section().findings[1:]) <= set(two))

    def test_every_demonstration_has_a_name_for_its_settings(self):
        known = results.SCHEMA["$defs"]["demonstration"]["properties"]["demonstration"]["enum"]
        self.assertEqual(list(ladder.SETTINGS), known)


if __name__ == "__main__":
    unittest.main()
