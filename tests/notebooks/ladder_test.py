"""What the report says of the ladder: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/ladder_test.py
"""

import dataclasses
import unittest

from made_up import source
import ladder
import results

AT = "This machine, GPU"
FIRST, CURED, LOOSE, EXACT = ("interleaved/fp32@cuda", "sequential/fp32@cuda", "coarsened/fp32@cuda", "exact/fp32@cuda")
READ, ADD, FUSED = (f"{which}/fp32@cuda" for which in ("read", "add", "multiply_and_add"))


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
    yield shown("strided_reads/fp32@cuda", "coalescing", 1, 1e-6, 0.0)
    yield shown("strided_reads/fp32@cuda", "coalescing", 32, 5e-6, 0.0)
    yield shown("add_vectors/fp32@cuda", "occupancy", 256, 1e-6, occupancy=1.0, suggested=False)
    yield shown("add_vectors/fp32@cuda", "occupancy", 1024, 2e-6, occupancy=0.5, suggested=True)
    yield shown(READ, "ceilings", 1, 1e-6, 0.0, verified=None, gb_per_s=20.0)
    yield shown(ADD, "ceilings", 16, 1e-6, gflop_per_s=100.0)
    yield shown(FUSED, "ceilings", 16, 1e-6, gflop_per_s=200.0)


class Said(unittest.TestCase):
    def section(self, alter=lambda r: None, **more):
        some = list(rows())
        for r in some:
            alter(r)
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return ladder.section([dataclasses.replace(source("ladder", some), header=header)])

    def assert_says(self, sentence, alter):
        """With the alteration, and not without it."""
        self.assertIn(sentence, self.section(alter).findings)
        self.assertNotIn(sentence, self.section().findings)

    def changed(self, method, at=1, **new):
        def alter(r):
            if r["method"] == method and r["setting"] == at:
                r.update(new)
        return alter

    def test_nothing_where_nothing_was_measured(self):
        section = ladder.section([])
        self.assertTrue(section.empty)
        self.assertEqual(section.failures, [])

    def test_what_is_so_before_anything_is_altered(self):
        self.assertEqual(self.section().findings, [
            "All 11 measured kernels gave what they should, sums within rigorous bounds.",
            f"{AT}, sum of 2¹²: the first kernel of the ladder, interleaved, takes 8 µs, 4 times as long as the "
            "fastest, sequential, which is at 50% of the speed of reading alone; samesum's exact at 25%.",
            f"{AT}, sum of 2¹²: of 2 coarsening factors 8 is the fastest, and 1 takes 2 times as long.",
            f"{AT}, sum of 2¹²: the threads of a warp agree in 75% of the branches with interleaved addressing, and "
            "in 99.0% with sequential addressing (the lecture: 74% and 99%).",
            f"{AT}, sum of 2¹²: none of 5 sums gave more than one result; errors in units in the last place go from "
            "0.25 (exact) to 1 (interleaved).",
            f"{AT}, coalescing: strided_reads (stride 1) is the fastest, in 1 µs; strided_reads (stride 32) takes 5 "
            "times as long.",
            f"{AT}, occupancy: add_vectors (256 threads a block) is the fastest, in 1 µs; add_vectors (1,024 threads "
            "a block) takes 2 times as long; CUDA suggests 1,024 threads a block, which takes 2 µs.",
            f"{AT}: 20 GB/s of reading and 100 GFLOP/s of additions (200 fused with multiplications) meet at 5 "
            "operations a byte; all 7 kernels have fewer, so that memory is their roof, and of sums sequential comes "
            "nearest to it, at 41%."])

    def test_what_was_left_out(self):
        findings = self.section(left_out=["without cache hit rates: no ncu"]).findings
        self.assertEqual(findings, self.section().findings
                         + ["Measured without cache hit rates: no ncu (this machine)."])

    def test_a_kernel_that_is_wrong(self):
        told = "10 of 11 measured kernels gave what they should, sums within rigorous bounds; not {}."
        for method, at, new, who, why in (
                (LOOSE, 8, {"within_bound": False}, "coarsened ×8", "the error exceeds its bound"),
                (CURED, 1, {"as_read": False}, "sequential", "other bits than its order gives"),
                (EXACT, 1, {"broken": True, "distinct_bits": 2}, "exact", "promises order_free but gave 2 results"),
                (ADD, 16, {"verified": False}, "add (16 steps)", "does not give what it should")):
            alter = self.changed(method, at, **new)
            self.assert_says(told.format(who), alter)
            self.assertEqual(self.section(alter).failures, [f"this machine, GPU: {who}, n = 4,096: {why}"])

    def test_speeds(self):
        told = AT + ", sum of 2¹²: the first kernel of the ladder, interleaved, takes "
        self.assert_says(told + "16 µs, 8 times as long as the fastest, sequential, which is at 50% of the speed of "
                         "reading alone; samesum's exact at 25%.", self.changed(FIRST, seconds=1.6e-5))
        self.assert_says(told + "8 µs, 8 times as long as the fastest, exact, which is at 95.0% of the speed of "
                         "reading alone; samesum's exact at 95.0%.",
                         self.changed(EXACT, seconds=1e-6, read_share=0.95))
        self.assert_says(told + "1 µs; samesum's exact at 25%.", self.changed(FIRST, seconds=1e-6))

    def test_coarsening_factors(self):
        self.assert_says(f"{AT}, sum of 2¹²: of 2 coarsening factors 8 is the fastest, and 1 takes 4 times as long.",
                         self.changed(LOOSE, seconds=1.2e-5))
        findings = self.section(self.changed(LOOSE, seconds=2.5e-6)).findings
        self.assertNotIn("coarsening factors", " ".join(findings), "the least is the fastest")

    def test_the_cure_of_divergence(self):
        self.assert_says(f"{AT}, sum of 2¹²: the threads of a warp agree in 50% of the branches with interleaved "
                         "addressing, and in 99.0% with sequential addressing (the lecture: 74% and 99%).",
                         self.changed(FIRST, branch_efficiency=0.5))
        findings = self.section(self.changed(FIRST, branch_efficiency=None)).findings
        self.assertNotIn("the lecture", " ".join(findings), "nothing was profiled")

    def test_bits_and_errors(self):
        told = AT + ", sum of 2¹²: {} gave more than one result{}; errors in units in the last place go from {}."
        self.assert_says(told.format("1 of 5 sums", ", coarsened ×8 7 in 10 runs", "0.25 (exact) to 1 (interleaved)"),
                         self.changed(LOOSE, 8, distinct_bits=7))
        self.assert_says(told.format("none of 5 sums", "", "0.25 (exact) to 500 (sequential)"),
                         self.changed(CURED, error_ulps=500.0))
        self.assert_says(told.format("none of 5 sums", "", "0.2 (exact) to 1 (interleaved)"),
                         self.changed(EXACT, error_ulps=0.2))

    def test_demonstrations(self):
        self.assert_says(f"{AT}, coalescing: strided_reads (stride 1) is the fastest, in 1 µs; strided_reads (stride "
                         "32) takes 9 times as long.", self.changed("strided_reads/fp32@cuda", 32, seconds=9e-6))
        self.assert_says(f"{AT}, occupancy: add_vectors (1,024 threads a block) is the fastest, in 500 ns; add_vectors "
                         "(256 threads a block) takes 2 times as long; CUDA suggests 1,024 threads a block, which is "
                         "the fastest.", self.changed("add_vectors/fp32@cuda", 1024, seconds=5e-7))

    def test_the_roofline(self):
        told = AT + ": {} GB/s of reading and {} GFLOP/s of additions{} meet at {} operations a byte; "
        rest = "{} fewer, so that memory is their roof, and of sums sequential comes nearest to it, at {}."
        self.assert_says(told.format(40, 100, " (200 fused with multiplications)", 2.5)
                         + rest.format("all 7 kernels have", "20%"), self.changed(READ, gb_per_s=40.0))
        self.assert_says(told.format(20, 4, " (200 fused with multiplications)", 0.2)
                         + rest.format("2 of 7 kernels have", "51%"), self.changed(ADD, 16, gflop_per_s=4.0))
        without = self.section(self.changed(FUSED, 16, **{"demonstration": "coalescing", "operations": 0.0}))
        self.assertIn(told.format(20, 100, "", 5) + rest.format("all 7 kernels have", "41%"), without.findings)
        figure = self.section().figures[0]
        self.assertEqual(figure.reading, f"{AT}: 7 kernels, from 0.12 to 0.25 operations a byte; memory is the roof up "
                                         "to 5.")
        self.assertEqual(sum(s.faint for s in figure.series), 2)
        self.assertEqual({s.name for s in figure.series if not s.faint}, {"sums", "occupancy"})
        roof = next(s for s in figure.series if s.faint)
        self.assertEqual(roof.y, [min(x * 20, 100) for x in roof.x])

    def test_a_second_machine_has_its_own_sentences(self):
        there = [row(FIRST, 1e-3)]
        two = ladder.section([source("ladder", list(rows())),
                              dataclasses.replace(source("ladder", there), machine="H200")]).findings
        self.assertIn("H200, GPU, sum of 2¹²: the first kernel of the ladder, interleaved, takes 1 ms.", two)
        self.assertTrue(set(self.section().findings[1:]) <= set(two))

    def test_tables_have_every_row(self):
        section = self.section()
        self.assertEqual([len(t.rows) for t in section.tables], [5, 7])
        self.assertFalse(section.tables[0].folded, "the ladder is what it is about")

    def test_every_demonstration_says_what_is_varied(self):
        known = results.SCHEMA["$defs"]["demonstration"]["properties"]["demonstration"]["enum"]
        self.assertEqual(list(ladder.SETTINGS), known)


if __name__ == "__main__":
    unittest.main()
