"""The section on prices says what its rows say: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/price_of_promise_test.py
"""

import unittest

from made_up import source
import price_of_promise
from figure import svg


def row(method, promise, seconds, error, n=1 << 20, format="fp32"):
    return {"kind": "price", "method": method, "promise": promise, "input_format": format, "n": n, "threads": 1,
            "seed": 1, "seconds": seconds, "low": seconds, "high": seconds, "gb_per_s": 4 * n / seconds / 1e9,
            "verified": None,
            "error_ulps": error, "relative_error": error * 1e-7, "hard_data": "kappa 1e8", "hard_condition": 1e8,
            "hard_error_ulps": error, "hard_relative": error * 1e-4}


class ThePrice(unittest.TestCase):
    def setUp(self):
        self.rows = [row("exact/fp32@cpu", "order_free", 3e-3, 0.25), row("tree/plain/fp32@cpu", "everywhere", 2e-3, 4),
                     row("serial/plain/fp32@cpu", "everywhere", 9e-3, 40),
                     row("atomic/plain/fp32@cpu", "none", 1e-3, 8),
                     row("loop/fp32@peer", "run_to_run", 4e-3, 40)]

        self.there = []

    def section(self):
        there = source("price_of_promise", self.there, "H200")
        return price_of_promise.section([source("price_of_promise", self.rows), there])

    def test_says_what_each_promise_costs(self):
        self.assertEqual(self.section().findings[0],
                         "This machine, 1 thread, n = 2²⁰ of fp32: everywhere (tree/plain/fp32@cpu) costs 2 times the "
                         "time of the fastest that promises nothing (atomic/plain/fp32@cpu) and 0.5 times the time "
                         "of the "
                         "fastest of other libraries (loop/fp32@peer); order_free (exact/fp32@cpu) costs 3 times the "
                         "time of the fastest that promises nothing (atomic/plain/fp32@cpu) and 0.75 times the time "
                         "of the fastest of other libraries (loop/fp32@peer).")

    def test_a_stronger_promise_gives_the_weaker_one_too(self):
        self.rows[0]["seconds"] = 1.5e-3
        self.assertIn("everywhere (exact/fp32@cpu) costs 1.5 times", self.section().findings[0])

    def test_other_times_are_other_prices(self):
        self.rows[3]["seconds"] = 2e-3
        self.rows[4]["seconds"] = 1e-3
        self.assertIn("order_free (exact/fp32@cpu) costs 1.5 times the time of the fastest that promises nothing "
                      "(atomic/plain/fp32@cpu) and 3 times the time of the fastest of other libraries",
                      self.section().findings[0])

    def test_without_others_there_is_no_price(self):
        del self.rows[3:]
        self.assertNotIn("costs", " ".join(self.section().findings))

    def test_names_the_frontier(self):
        self.assertEqual(self.section().findings[1],
                         "This machine, 1 thread, n = 2²⁰ of fp32 with condition 1e+08: none is both faster and no "
                         "more wrong than 3 of 5 methods, the frontier: atomic/plain/fp32@cpu (0.0008), "
                         "tree/plain/fp32@cpu "
                         "(0.0004), exact/fp32@cpu (3e-05).")
        self.rows[1]["hard_relative"] = 1.0
        self.assertIn("2 of 5 methods", self.section().findings[1])
        self.rows[0]["seconds"] = 1e-4
        self.assertIn("1 of 5 methods, the frontier: exact/fp32@cpu", self.section().findings[1])

    def test_an_infinite_error_is_on_no_frontier_and_not_drawn(self):
        self.rows[3].update(hard_relative=None, hard_error_ulps=None)
        section = self.section()
        self.assertIn("2 of 5 methods", section.findings[1])
        self.assertEqual(sum(s.name == "atomic/plain" for s in section.figures[0].series), 1)  # of normal data

    def test_speaks_of_the_longest_arrays_and_of_fp32_first(self):
        self.rows += [row("tree/plain/fp32@cpu", "everywhere", 4e-2, 4, n=1 << 24),
                      row("atomic/plain/fp32@cpu", "none", 1e-2, 4, n=1 << 24),
                      row("tree/plain/fp64@cpu", "everywhere", 1e-2, 4, n=1 << 24, format="fp64")]
        self.assertIn("n = 2²⁴ of fp32: everywhere (tree/plain/fp32@cpu) costs 4 times", self.section().findings[0])
        self.assertEqual(len(self.section().tables[0].rows), 4)

    def test_each_place_has_its_own_sentences(self):
        self.there = [r | {"threads": 0, "method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.there[0]["seconds"] = 6e-3
        findings = self.section().findings
        self.assertIn("This machine, 1 thread, n = 2²⁰ of fp32: everywhere (tree/plain/fp32@cpu) costs 2 times",
                      findings[0])
        self.assertIn("H200, GPU, n = 2²⁰ of fp32: everywhere (tree/plain/fp32@cuda) costs 2 times", findings[2])
        self.assertIn("order_free (exact/fp32@cuda) costs 6 times the time of the fastest that promises nothing "
                      "(atomic/plain/fp32@cuda)", findings[2])

    def test_the_figure_says_what_it_shows_first(self):
        reading = "This machine, 1 thread, fp32, n = 2²⁰, ill-conditioned data: {}."
        self.assertEqual(self.section().figures[0].reading,
                         reading.format("3 of 5 methods are on the frontier, from atomic/plain/fp32@cpu (4.19 GB/s, an "
                                        "error of 0.0008) to exact/fp32@cpu (1.4 GB/s, an error of 2.5e-05)"))
        self.rows[0].update(seconds=1e-4, gb_per_s=42.0)
        self.assertEqual(self.section().figures[0].reading,
                         reading.format("1 of 5 methods is on the frontier, exact/fp32@cpu (42 GB/s, an error of "
                                        "2.5e-05)"))
        for r in self.rows:
            r["hard_relative"] = r["relative_error"] = None
        self.assertEqual(self.section().figures[0].reading, reading.format("every error is infinite"))

    def test_wrong_bits_are_a_failure(self):
        self.rows[1]["verified"] = False
        self.assertEqual(self.section().failures,
                         ["this machine, 1 thread: tree/plain/fp32@cpu gave wrong bits for n = 1,048,576 of fp32"])

    def test_is_empty_without_rows(self):
        self.assertTrue(price_of_promise.section([]).empty)


if __name__ == "__main__":
    unittest.main()
