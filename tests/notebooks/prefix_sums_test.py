"""Tests of the section on prefix sums, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/prefix_sums_test.py
"""

import unittest

import made_up

LOOP, PREFIX, EXACT, STD = ("cumsum/serial/plain/fp32@cpu", "cumsum/prefix/plain/fp32@cpu", "cumsum/exact/fp32@cpu",
                            "std/inclusive_scan/fp32@peer")
PROMISES = {LOOP: "everywhere", PREFIX: "everywhere", EXACT: "order_free", STD: "none"}


def errors(method, ulps, n=1 << 20, data="uniform", **more):
    sums = {} if method == STD else {"sums": 16, "same_as_sums": 16}
    return {"kind": "errors", "method": method, "promise": PROMISES[method], "operation": "cumsum", "input_format": "fp32",
            "data": data, "seed": 1, "n": n, "results": 1000, "correct": 1000 if method == EXACT else 10,
            "largest_ulps": ulps, "median_ulps": ulps / 2, "largest_relative": ulps * 1e-7,
            "largest_share": None if method == STD else 0.5, "within_bound": True} | sums | more


def repeats(method, axis="runs", distinct=1, **more):
    return {"kind": "repeats", "method": method, "promise": PROMISES[method], "operation": "cumsum", "input_format": "fp32",
            "data": "normal", "seed": 1, "n": 1 << 20, "axis": axis, "runs": 10, "distinct_bits": distinct,
            "broken": False} | more


def speed(method, seconds, n=1 << 20, **more):
    return {"kind": "reduction", "method": method, "operation": "cumsum", "input_format": "fp32", "outer": 1, "n": n,
            "inner": 1, "seed": 1, "threads": 1, "seconds": seconds, "low": seconds, "high": seconds,
            "gb_per_s": 8 * n / seconds / 1e9, "verified": None if method in (STD, "copy") else True, "bars": []} | more


class PrefixSums(made_up.SectionTest):
    question = "prefix_sums"

    def setUp(self):
        self.rows = [errors(LOOP, 40.0), errors(PREFIX, 2.0), errors(EXACT, 0.5), errors(STD, 40.0),
                     repeats(LOOP), repeats(PREFIX), repeats(EXACT), repeats(STD), repeats(EXACT, "threads"),
                     speed(LOOP, 4e-3), speed(PREFIX, 2e-3), speed(EXACT, 8e-3), speed(STD, 3e-3), speed("copy", 1e-3)]

    def test_unchanged_rows(self):
        first = ("This machine, CPU: the largest error of a prefix of 2²⁰ uniform numbers is 40 ulps with serial/plain, "
                   "2 ulps with prefix/plain, 0.5 ulps with exact.")
        self.check("All 3 calls of samesum's methods keep all errors within their bounds.",
                   "exact is correctly rounded in all 1,000 prefixes.", first,
                   "All 48 prefixes … were also summed on their own have the bits of that sum.",
                   "All 3 methods with a promise of the same bits returned one result in 40 runs (repeated calls, other "
                   "thread counts).", "In repeated calls 0 of 1 method without that promise varied.",
                   f"This machine, CPU, 1 thread: {PREFIX} of 2²⁰ elements reaches 4.19 GB/s, 50% of the speed of a copy, "
                   "1.50 … times the speed of std/inclusive_scan.",
                   "This machine, CPU, 1 thread: exact has 0.25 … times the speed of prefix/plain/fp32@cpu.",
                   failures=[], verdict=first)

    def test_other_data_change_only_their_own_sentence(self):
        before = self.check().findings
        figure = [(s.name, s.x, s.y) for s in self.s.figures[0].series]
        self.rows += [speed(EXACT, 32e-3, data="arbitrary bits"), speed("copy", 1e-3, data="arbitrary bits")]
        after = self.check("This machine, CPU, 1 thread: on other data, exact takes 4.00 … times as long as on normal "
                           "data (n = 2²⁰ of fp32, arbitrary bits).").findings
        self.assertEqual(len(after), len(before) + 1)
        self.assertEqual([(s.name, s.x, s.y) for s in self.s.figures[0].series], figure)
        self.assertEqual(self.s.tables[-1].rows, [["n = 2²⁰ of fp32", EXACT, "4.00 [4.00, 4.00]"]])

    def test_errors(self):
        self.rows[1].update(largest_ulps=3.0)
        self.rows += [errors(PREFIX, 9.0, n=1 << 24)]  # at a length that the others lack
        self.check("2²⁰ uniform numbers … 3 ulps with prefix/plain")
        self.rows[1].update(within_bound=False)
        self.check(f"3 of 4 calls … exceptions: {PREFIX} on uniform at n = 2²⁰.",
                   failures=[f"this machine, CPU: {PREFIX} on uniform at n = 2²⁰: an error exceeds its bound"])
        self.rows[1].update(within_bound=True)
        self.rows[2].update(correct=999)
        self.check("correctly rounded in 999 of 1,000 prefixes",
                   failures=[f"this machine, CPU: {EXACT} on uniform at n = 2²⁰: 999 of 1000 results are correctly rounded"])

    def test_prefixes_that_differ_from_their_sums_are_a_failure(self):
        self.rows[1].update(same_as_sums=15)
        self.check("47 of 48 prefixes", failures=[
            f"this machine, CPU: {PREFIX} on uniform at n = 2²⁰: 15 of 16 prefixes have the bits of their sum"])

    def test_repeats(self):
        self.rows[7].update(distinct_bits=4)
        self.check("In repeated calls the only method without that promise varied, up to 4 results in 10 runs "
                   f"({STD}).", failures=[])
        self.rows[5].update(distinct_bits=2, broken=True)
        self.check(f"2 of 3 methods with a promise … exceptions: {PREFIX} (this machine, CPU)", failures=[
            f"this machine, CPU: {PREFIX} promises everywhere but returned 2 results (repeated calls)"])

    def test_speeds(self):
        self.rows[-1].update(made_up.took(1.6e-3))
        self.check("80% of the speed of a copy")
        self.rows[-2].update(made_up.took(1e-3))
        self.check("0.50 … times the speed of std/inclusive_scan")
        self.rows[10].update(bars=[{"against": "copy", "factor": 0.85, "reached": 0.8, "holds": False}])
        self.check("0 of 1 target is met")
        self.rows[10].update(verified=False)
        self.check(failures=[f"this machine, CPU, 1 thread: {PREFIX} returned wrong bits for n = 2²⁰ of fp32"])

    def test_the_longest_arrays_and_other_places(self):
        self.rows += [speed(PREFIX, 5e-2, n=1 << 24), speed("copy", 2e-2, n=1 << 24)]
        self.there = [speed(PREFIX.replace("cpu", "cuda"), 1e-5, threads=0), speed("torch/cumsum/fp32@peer", 2e-5, threads=0)]
        self.there[1]["verified"] = None
        self.check("of 2²⁴ elements … 40% of the speed of a copy", "H200, GPU: … 2.00 … times the speed of "
                                                                   "torch/cumsum.")

    def test_the_figure_has_errors_and_speeds(self):
        figure = self.check().figures[0]
        self.assertEqual({s.on[-1] for s in figure.series}, {"error", "speed"})
        self.assert_sentences([figure.finding], "n = 2²⁰ the methods range from 0.5 ulps (exact) to 40 ulps (serial/plain")
        self.rows[0].update(largest_ulps=80.0)
        self.assert_sentences([self.check().figures[0].finding], "to 80 ulps (serial/plain)")

    def test_a_given_grid_is_in_the_table_but_not_in_the_figure(self):
        drawn = [(s.name, s.x, s.y) for s in self.check().figures[0].series]
        self.rows.append(speed(EXACT.replace("exact", "fixed_point"), 5e-3, grid=-30))
        section = self.check()
        self.assertEqual([(s.name, s.x, s.y) for s in section.figures[0].series], drawn)
        self.assertIn("cumsum/fixed_point/fp32@cpu (grid 2⁻³⁰)", [row[0] for t in section.tables for row in t.rows])


if __name__ == "__main__":
    unittest.main()
