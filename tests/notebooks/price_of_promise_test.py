"""Tests of the section on the price of promises, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/price_of_promise_test.py
"""

import importlib
import unittest

import made_up
from made_up import took

EXACT, TREE, ATOMIC, PEER = "exact/fp32@cpu", "tree/plain/fp32@cpu", "atomic/plain/fp32@cpu", "loop/fp32@peer"
AT = "This machine, CPU, 1 thread, n = 2²⁰ in fp32"


def row(method, promise, seconds, error, n=1 << 20, format="fp32"):
    return {"kind": "price", "method": method, "promise": promise, "input_format": format, "n": n, "threads": 1,
            "seed": 1} | took(seconds) | {"gb_per_s": 4 * n / seconds / 1e9,
            "verified": None,
            "error_ulps": error, "relative_error": error * 1e-7, "hard_data": "kappa 1e8", "hard_condition": 1e8,
            "hard_error_ulps": error, "hard_relative": error * 1e-4}


class ThePrice(made_up.SectionTest):
    question = "price_of_promise"

    def setUp(self):
        self.rows = [row("exact/fp32@cpu", "order_free", 3e-3, 0.25), row("tree/plain/fp32@cpu", "everywhere", 2e-3, 4),
                     row("serial/plain/fp32@cpu", "everywhere", 9e-3, 40),
                     row("atomic/plain/fp32@cpu", "none", 1e-3, 8),
                     row("loop/fp32@peer", "run_to_run", 4e-3, 40)]

    def costs(self, promise, times, other=ATOMIC, method=EXACT, promised="none"):
        return (f"the promise “{promise}” ({method}) takes at most {times:.2f} … times as long as {other} (promise: "
                f"{promised}; n = 2²⁰ in fp32)")

    def test_the_price_is_relative_to_the_fastest_call_that_promises_less(self):
        at = "This machine, CPU, 1 thread, sums: "
        self.check(f"{at}{self.costs('everywhere', 2, method=TREE)}; {self.costs('order_free', 3)}.")
        verdict = ("Beside the fastest call that promises less, the same bits everywhere take at most {:.2f} … times "
                   "as long and the same bits for any order take at most {:.2f} … times as long (this machine, CPU, 1 "
                   "thread; fp32; 2²⁰; a loop).")
        self.check(verdict=verdict.format(2, 3))
        self.rows[4].update(took(0.5e-3))  # the fastest of all calls, also of other libraries
        self.check(self.costs("everywhere", 4, PEER, TREE, "run_to_run"),
                   self.costs("order_free", 6, PEER, promised="run_to_run"),
                   verdict=verdict.format(4, 6))
        self.rows[4]["verified"] = False  # a wrong result has no price
        self.check(verdict=verdict.format(2, 3))
        self.rows[4].update(took(4e-3), verified=True)
        self.rows[1].update(took(0.5e-3))  # a call that promises more than nothing, and less than any order
        self.check(self.costs("everywhere", 0.5, method=TREE), self.costs("order_free", 6, TREE, promised="everywhere"))
        self.rows[0].update(took(0.1e-3))  # a stronger promise keeps the weaker one
        self.check(self.costs("everywhere", 0.1), self.costs("order_free", 0.2, TREE, promised="everywhere"))
        del self.rows[1:]  # without anything to compare with there is no price
        self.assert_no_sentences(self.check().findings, "takes")

    def test_noise_has_no_price(self):
        for low, high, times in ((0.8e-3, 2.5e-3, "2.00 [0.80, 2.50] times as long (not decided)"),
                                 (1.0e-3, 1.6e-3, "2.00 [1.25, 2.00] times as long and"),
                                 (1.95e-3, 2.05e-3, "2.00 [0.98, 1.03] times as long (as fast)")):
            self.rows[3].update(low=low, high=high)
            self.check(verdict=f"the same bits everywhere take at most {times}")

    def test_the_length_with_the_highest_price(self):
        self.rows += [row(TREE, "everywhere", 4e-2, 4, n=1 << 24), row(ATOMIC, "none", 1e-2, 4, n=1 << 24),
                      row("tree/plain/fp64@cpu", "everywhere", 9e-2, 4, n=1 << 24, format="fp64"),
                      row("atomic/plain/fp64@cpu", "none", 1e-2, 4, n=1 << 24, format="fp64")]
        s = self.check("the promise “everywhere” (tree/plain/fp64@cpu) takes at most 9.00 … in fp64",
                       verdict="everywhere take at most 9.00 … times as long and … any order take at most 3.00 … "
                               "(this machine, CPU, 1 thread; fp32, fp64; 2²⁰ to 2²⁴; a loop)")
        self.assertEqual([r[1:6] + r[7:8] + r[9:] for r in s.tables[0].rows[:3]],
                         [["sum", "fp32", "everywhere", TREE, ATOMIC, "2²⁰", "2.00 [2.00, 2.00]"],
                          ["sum", "fp32", "order_free", EXACT, ATOMIC, "2²⁰", "3.00 [3.00, 3.00]"],
                          ["sum", "fp32", "everywhere", TREE, ATOMIC, "2²⁴", "4.00 [4.00, 4.00]"]])

    def test_other_operations_are_named_where_their_price_is_higher(self):
        def of_moments(method, promise, seconds):
            r = row(method, promise, seconds, 1) | {"operation": "moments"}
            return {name: value for name, value in r.items() if not name.startswith("hard")}
        self.rows += [of_moments("moments/exact/fp32@cpu", "order_free", 8e-3),
                      of_moments("moments/tree/fp32@cpu", "everywhere", 2e-3)]
        self.check("other operations: the promise “order_free” (moments/exact/fp32@cpu) takes at most 4.00 … as "
                   "moments/tree/fp32@cpu (promise: everywhere", verdict="any order take at most 3.00 … (moments: "
                                                                         "4.00 [")
        self.rows[-2].update(took(4e-3))
        self.assert_no_sentences([self.check().verdict], "moments")

    def test_the_verdict_names_the_formats_lengths_and_peers_that_were_compared(self):
        self.rows += [row("cub/run_to_run/fp32@peer", "run_to_run", 9e-3, 4), row("tree/plain/fp64@cpu", "everywhere", 1, 4,
                                                                                 format="fp16", n=1 << 24)]
        self.check(verdict="(this machine, CPU, 1 thread; fp32; 2²⁰; a loop, CUB run_to_run).")  # not results in another format

    def test_another_machine_stands_beside_this_one(self):
        self.there = [r | {"method": r["method"].replace("@cpu", "@cuda"), "threads": 0} | took(r["seconds"] ** 2)
                      for r in self.rows]
        self.check(verdict="2.00 … times as long … (this machine, CPU, 1 thread; fp32; 2²⁰; a loop). Beside … 4.00 … "
                           "times as long … (H200, GPU; fp32; 2²⁰; a loop).")

    def test_names_the_frontier(self):
        self.check(f"{AT} with condition number 1e+08: 3 of 5 methods are on the frontier: {ATOMIC} (relative error "
                   f"0.0008), {TREE} (relative error 0.0004), {EXACT} (relative error 3e-05).")
        self.rows[1]["hard_relative"] = 1.0
        self.check("2 of 5 methods")
        self.rows[0].update(took(1e-4))
        self.check(f"1 of 5 methods is on the frontier: {EXACT}")

    def test_no_two_points_of_the_figure_look_the_same(self):
        for question in ("price_of_promise", "compare"):
            figure = importlib.import_module(question).section(made_up.committed()[question]).figures[0]
            for on in {s.on for s in figure.series}:
                shown = [s for s in figure.matching(on) if not s.faint]
                self.assertEqual(len({(s.colour, s.symbol) for s in shown}), len({s.name for s in shown}), on)

    def test_an_infinite_error_is_neither_on_the_frontier_nor_plotted(self):
        self.rows[3].update(hard_relative=None, hard_error_ulps=None)
        self.check("2 of 5 methods")
        self.assertEqual(sum(s.name == "atomic/plain" for s in self.check().figures[0].series), 1)  # for normal data

    def test_the_finding_of_the_figure(self):
        shown = "This machine, CPU, 1 thread, fp32, results in fp32, n = 2²⁰, normal data: "
        best = f"{EXACT} ({{}} GB/s, relative error 2.5e-08)"

        def check(expected):
            self.assert_sentences([self.check().figures[0].finding], shown + expected)

        check(f"3 of 5 methods are on … {ATOMIC} (4.19 GB/s, relative error 8e-07) to {best.format('1.4')}.")
        self.rows[0].update(took(1e-4), gb_per_s=42.0)
        check(f"1 of 5 methods is on … {best.format('42')}.")
        for r in self.rows:
            r["hard_relative"] = r["relative_error"] = None
        check("every error is infinite")

    def test_the_errors_of_a_figure_are_those_of_its_length(self):
        self.rows += [row(TREE, "everywhere", 4e-2, 400, n=1 << 24), row(TREE, "everywhere", 4e-5, 0.1, n=1 << 12)]
        errors = {s.on[3]: s.y for s in self.check().figures[0].series
                  if s.name == "tree/plain" and s.on[4] == "normal data"}
        self.assertEqual(errors, {"2²⁰": [4e-7], "2²⁴": [400 * 1e-7], "2¹²": [0.1 * 1e-7]})

    def test_wrong_bits_are_a_failure(self):
        self.rows[1]["verified"] = False
        self.assertEqual(self.check().failures,
                         ["this machine, CPU, 1 thread: tree/plain/fp32@cpu returned wrong bits for n = 1,048,576 of fp32"])


if __name__ == "__main__":
    unittest.main()
