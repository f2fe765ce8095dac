"""Tests of the section on the price of promises, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/price_of_promise_test.py
"""

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

    def costs(self, promise, times, of_peers, method=EXACT):
        return f"the promise “{promise}” ({method}) takes {times} times … ({ATOMIC}) and {of_peers} times … ({PEER})"

    def test_the_price_of_each_promise(self):
        self.check(f"{AT}: {self.costs('everywhere', 2, 0.5, TREE)}; {self.costs('order_free', 3, 0.75)}.")
        verdict = ("Beside {}, the same bits everywhere take {} times as long and the same bits for any order of the elements "
                   "take {} times as long (this machine, CPU, 1 thread, 2²⁰ fp32 numbers).")
        loose = f"samesum's fastest plain sum without a promise, {ATOMIC}"
        self.check(verdict=verdict.format(loose, 2, 3))
        self.rows[0].update(took(1.5e-3))  # plain additions are compared with plain additions
        self.check(f"“everywhere” ({TREE}) takes 2 times", verdict=verdict.format(loose, 2, 1.5))
        for i, seconds in ((0, 3e-3), (3, 2e-3), (4, 1e-3)):
            self.rows[i].update(took(seconds))
        self.check(self.costs("order_free", 1.5, 3))
        del self.rows[3]
        self.check(verdict=verdict.format(f"the fastest other library, {PEER}", 2, 3))
        del self.rows[3:]  # without anything to compare with there is no price
        self.assert_no_sentences(self.check().findings, "takes")

    def test_times_that_overlap_or_jump_have_no_price(self):
        for low, high, times in ((0.8e-3, 2.5e-3, "as long (no measurable difference) and … as long (no"),  # overlaps
                                 (0.3e-3, 1.9e-3, "as long (no measurable difference) and … as long (no"),  # jumps
                                 (1.0e-3, 1.6e-3, "as long (no measurable difference) and … 3 times as long"),
                                 (0.9e-3, 1.2e-3, "2 times as long and … 3 times as long")):
            self.rows[3].update(low=low, high=high)
            self.check(verdict=f"the same bits everywhere take {times}")

    def test_another_machine_stands_beside_this_one(self):
        self.there = [r | {"method": r["method"].replace("@cpu", "@cuda"), "threads": 0} | took(r["seconds"] ** 2)
                      for r in self.rows]
        self.check(verdict="2 times as long … (this machine, CPU, 1 thread, 2²⁰ fp32 numbers). Beside … 4 times as long … "
                           "(H200, GPU, 2²⁰ fp32 numbers).")

    def test_names_the_frontier(self):
        self.check(f"{AT} with condition number 1e+08: 3 of 5 methods are on the frontier: {ATOMIC} (relative error "
                   f"0.0008), {TREE} (relative error 0.0004), {EXACT} (relative error 3e-05).")
        self.rows[1]["hard_relative"] = 1.0
        self.check("2 of 5 methods")
        self.rows[0].update(took(1e-4))
        self.check(f"1 of 5 methods is on the frontier: {EXACT}")

    def test_an_infinite_error_is_neither_on_the_frontier_nor_plotted(self):
        self.rows[3].update(hard_relative=None, hard_error_ulps=None)
        self.check("2 of 5 methods")
        self.assertEqual(sum(s.name == "atomic/plain" for s in self.check().figures[0].series), 1)  # for normal data

    def test_prefers_the_longest_arrays_and_fp32(self):
        self.rows += [row(TREE, "everywhere", 4e-2, 4, n=1 << 24), row(ATOMIC, "none", 1e-2, 4, n=1 << 24),
                      row("tree/plain/fp64@cpu", "everywhere", 1e-2, 4, n=1 << 24, format="fp64")]
        self.check(f"n = 2²⁴ in fp32: the promise “everywhere” ({TREE}) takes 4 times")
        self.assertEqual(len(self.check().tables[0].rows), 4)

    def test_each_place_has_its_own_sentences(self):
        self.there = [r | {"threads": 0, "method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.there[0].update(took(6e-3))
        self.check(f"{AT}: the promise “everywhere” ({TREE}) takes 2 times",
                   "H200, GPU, n = 2²⁰ in fp32: the promise “everywhere” (tree/plain/fp32@cuda) takes 2 times … "
                   "“order_free” (exact/fp32@cuda) takes 6 times … (atomic/plain/fp32@cuda)")

    def test_the_finding_of_the_figure(self):
        shown = "This machine, CPU, 1 thread, fp32, n = 2²⁰, normal data: "
        best = f"{EXACT} ({{}} GB/s, relative error 2.5e-08, one array)"

        def check(expected):
            self.assert_sentences([self.check().figures[0].finding], shown + expected)

        check(f"3 of 5 methods are on … {ATOMIC} (4.19 GB/s, relative error 8e-07, one array) to {best.format('1.4')}.")
        self.rows[0].update(took(1e-4), gb_per_s=42.0)
        check(f"1 of 5 methods is on … {best.format('42')}.")
        for r in self.rows:
            r["hard_relative"] = r["relative_error"] = None
        check("every error is infinite")

    def test_wrong_bits_are_a_failure(self):
        self.rows[1]["verified"] = False
        self.assertEqual(self.check().failures,
                         ["this machine, CPU, 1 thread: tree/plain/fp32@cpu returned wrong bits for n = 1,048,576 of fp32"])


if __name__ == "__main__":
    unittest.main()
