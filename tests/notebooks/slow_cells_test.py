"""Tests of the sentences on slow exact calls, with made-up rows.

Run by ctest, or: build/venv/bin/python tests/notebooks/slow_cells_test.py
"""

import unittest

import made_up
from made_up import at_speed, source, speed
import slow_cells


def reduction(method, gb_per_s, **more):
    return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp32", "outer": 1, "n": 512,
            "inner": 512, "seed": 1, "threads": 1, "verified": None, "bars": []} | at_speed(gb_per_s) | more


EXACT = "sum/exact/fp32@cpu"


class SlowCells(made_up.SentenceTest):
    def setUp(self):
        self.reductions = [reduction(EXACT, 8.0), reduction("eigen/sum/fp32@peer", 4.0),
                           reduction(EXACT, 0.5, data="arbitrary bits"), reduction(EXACT, 2.0, data="60 binades"),
                           reduction("eigen/sum/fp32@peer", 1.0, data="arbitrary bits")]
        self.speeds = [speed("exact/fp32@cpu", 8.0), speed("loop/fp32@peer", 12.0, verified=None),
                       speed("loop/fp32@peer", 99.0, verified=None, caches="cold"),
                       speed("exact/fp32@cpu", 1.0, caches="cold")]

    def found(self):
        return {"speed_of_reductions": [source("speed_of_reductions", self.reductions)],
                "speed_vs_length": [source("speed_vs_length", self.speeds)]}

    def test_the_worst_cell_of_each_operation_beside_others_and_beside_normal_numbers(self):
        self.assertEqual(list(slow_cells.sentences(self.found())), [
            "On a CPU, exact calls take at most so many times as long beside the fastest other library or loop: sum 2.00 "
            "[2.00, 2.00] (512 columns of 512 fp32, arbitrary bits; eigen/sum).",
            "On a CPU, exact calls take at most so many times as long beside the same call on normal numbers: sum 16 "
            "[16, 16] (512 columns of 512 fp32, arbitrary bits)."])
        self.speeds[1].update(at_speed(24.0))
        self.reductions[2].update(at_speed(1.0))
        self.assert_sentences(slow_cells.sentences(self.found()), "other library or loop: sum 3.00 [3.00, 3.00] (2²⁰ fp32; "
                                                                  "loop)",
                              "normal numbers: sum 8.00")
        self.assert_sentences([slow_cells.answer(self.found())],
                              "on a CPU beside the fastest other library or loop: sum 3.00 … (2²⁰ fp32; loop); on a CPU beside the same "
                              "call on normal numbers: sum 8.00 … (512 columns")

    def test_experiments_are_not_mixed(self):
        self.speeds = [speed("exact/fp32@cpu", 8.0)]
        self.reductions = [reduction("eigen/sum/fp32@peer", 99.0, n=1 << 20, inner=1)]
        self.assertEqual((list(slow_cells.sentences(self.found())), slow_cells.answer(self.found())), ([], ""))

    def test_what_is_not_slower_is_not_named(self):
        self.speeds[1].update(at_speed(4.0))
        self.reductions = [self.reductions[0], self.reductions[1]]
        self.assertEqual(list(slow_cells.sentences(self.found())), [])


if __name__ == "__main__":
    unittest.main()
