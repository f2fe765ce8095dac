"""Tests of the section on speed, with made-up rows that are changed one at a time. report_test.py has more.

Run by ctest, or: build/venv/bin/python tests/notebooks/speed_vs_length_test.py
"""

import unittest

import made_up
from made_up import at_speed, speed

READ = ("This machine, CPU, 1 thread: exact/fp32@cpu reads {} GB/s at n = 2²⁰, which is {} … times the speed of the "
        "fastest plain sum ({}), {} … times the speed of the fastest other library or loop ({}), {} of the speed of reading alone.")


def bar(factor, reached, against="loop/fp32@peer"):
    return {"against": against, "factor": factor, "reached": reached,
            "holds": reached <= factor if against == "us" else reached >= factor}


class Speeds(made_up.SectionTest):
    question = "speed_vs_length"

    def setUp(self):
        self.rows = [speed("exact/fp32@cpu", 8.0), speed("serial/plain/fp32@cpu", 2.0),
                     speed("tree/plain/fp32@cpu", 10.0), speed("std_reduce/fp32@peer", 1.0, verified=None),
                     speed("loop/fp32@peer", 4.0, verified=None), speed("read", 16.0, verified=None),
                     speed("exact/fp32@cpu", 99.0, n=64), speed("tree/plain/fp32@cpu", 1.0, caches="cold"),
                     speed("pairwise/plain/fp32@cpu", 50.0, data="ones")]

    def test_exact_is_compared_with_the_fastest_of_each_kind(self):
        self.check(READ.format(8, "0.80", "tree/plain/fp32@cpu", "2.00", "loop/fp32@peer", "50%"))
        for i, gb_per_s in ((1, 20.0), (3, 16.0), (5, 8.2)):
            self.rows[i].update(at_speed(gb_per_s))
        self.check(READ.format(8, "0.40", "serial/plain/fp32@cpu", "0.50", "std_reduce/fp32@peer", "97.6%"))
        self.rows[0].update(at_speed(4.0))
        self.check(READ.format(4, "0.20", "serial/plain/fp32@cpu", "0.25", "std_reduce/fp32@peer", "49%"))

    def test_the_length_at_which_exact_is_slowest_beside_other_sums(self):
        self.rows.append(speed("tree/plain/fp32@cpu", 300.0, n=64))
        self.check("of 2 lengths it is slowest beside other sums at n = 64, where it takes 3.03 … times as long as "
                   "tree/plain")
        self.assertEqual([row[:2] + row[4:] for row in self.s.tables[0].rows],
                         [["64", "tree/plain/fp32@cpu", "3.03 [3.03, 3.03]"],
                          ["2²⁰", "tree/plain/fp32@cpu", "1.25 [1.25, 1.25]"]])
        self.rows[2].update(at_speed(80.0))
        self.check("slowest beside other sums at n = 2²⁰, where it takes 10 … times as long")

    def test_calls_in_cuda_graphs_are_a_place_of_their_own(self):
        on_gpu = {"threads": 0, "place": "GPU"}
        self.rows = [speed("exact/fp32@cuda", 100.0, **on_gpu), speed("tree/plain/fp32@cuda", 200.0, **on_gpu),
                     speed("exact/fp32@cuda", 300.0, launch="graph", **on_gpu),
                     speed("tree/plain/fp32@cuda", 400.0, launch="graph", **on_gpu),
                     {"kind": "declined", "method": "thrust/reduce/fp32@peer", "operation": "sum", "input_format": "fp32",
                      "outer": 1, "n": 1 << 20, "inner": 1, "seed": 1, "threads": 0, "launch": "graph",
                      "reason": "it allocates memory"}]
        self.check("This machine, GPU: exact/fp32@cuda reads 100 GB/s at n = 2²⁰, which is 0.50 [0.50, 0.50] times the speed of the fastest plain sum",
                   "This machine, GPU, in a CUDA graph: exact/fp32@cuda reads 300 GB/s at n = 2²⁰, which is 0.75 [0.75, 0.75] times",
                   "This machine, GPU, in a CUDA graph: not measured are thrust/reduce in 1 reduction (it allocates memory).",
                   verdict="100 GB/s (this machine, GPU, n = 2²⁰), 0.50 [0.50, 0.50] times the speed of the fastest plain sum")
        source = made_up.source("speed_vs_length", self.rows)
        self.assertEqual([r["gb_per_s"] for r in source.of("speed")], [100.0, 200.0])

    def test_60_binades_at_the_same_length(self):
        self.rows += [speed("exact/fp32@cpu", 99.0, data="60 binades", n=64)]
        self.assert_no_sentences(self.check().findings, "binades")
        self.rows += [speed("exact/fp32@cpu", 6.0, data="60 binades")]
        self.check("reading … on 60 binades 6 GB/s.")

    def test_every_wrong_result_is_named_with_its_place_and_is_a_failure(self):
        self.check("All 6 checked results have the correct bits.")
        self.rows[2]["verified"] = False
        self.check("5 of 6 checked results have the correct bits; exceptions: tree/plain/fp32@cpu (this machine, CPU, 1 "
                   "thread).")
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, verified=False)]
        self.check("5 of 7 checked results have the correct bits; exceptions: tree/plain/fp32@cpu (this machine, CPU, 1 "
                   "thread), exact/fp32@cuda (H200, GPU).")
        self.assertEqual(self.check().failures,
                         ["this machine, CPU, 1 thread: tree/plain/fp32@cpu returned wrong bits for n = 1,048,576 of fp32, "
                          "normal", "H200, GPU: exact/fp32@cuda returned wrong bits for n = 1,048,576 of fp32, normal"])

    def test_the_targets_of_each_place_with_the_farthest_miss_first(self):
        expected = "This machine, CPU, 1 thread: {} and {} are met"
        self.rows[0]["bars"] = [bar(1.0, 2.0)]
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, bars=[bar(1.0, 0.5), bar(1.0, 1.5)])]
        self.check("This machine, CPU, 1 thread: the only speed target is met.",
                   "H200, GPU: 1 of 2 speed targets is met. Missed: exact/fp32@cuda in DRAM: 0.5 times the speed of "
                   "loop (target: 1).")
        self.rows[6].update(place="latency", bars=[bar(5.0, 4.0, "us")])
        self.check(expected.format("the only speed target", "the only latency target"))
        self.rows[6]["bars"] = [bar(5.0, 10.0, "us")]  # half as fast as the target
        late = "exact/fp32@cpu at n = 64: 10 µs (target: at most 5 µs)"
        slow = "tree/plain/fp32@cpu in DRAM: {} times the speed of loop (target: 1)"
        for reached, missed in ((0.75, (late, slow.format(0.75))), (0.25, (slow.format(0.25), late))):
            self.rows[2]["bars"] = [bar(1.0, reached)]
            self.check(expected.format("1 of 2 speed targets", "0 of 1 latency target") + ". Missed: "
                       + "; ".join(missed))

    def test_the_finding_of_the_figure(self):
        expected = ("This machine, CPU, 1 thread, fp32, normal, hot, order tree, … at n = 2²⁰ … {} GB/s ({}) to {} GB/s "
                    "(read)")
        self.assert_sentences([self.check().figures[0].finding], expected.format(8, "exact", 16))
        self.rows[2].update(at_speed(7.0))
        self.rows[5].update(at_speed(20.0))
        self.assert_sentences([self.check().figures[0].finding], expected.format(7, "tree/plain", 20))


if __name__ == "__main__":
    unittest.main()
