"""Tests of the table of all methods, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/methods_test.py
"""

import unittest

from made_up import result, source, speed, spread
import methods


def error(n, ulps, data="normal", method="tree/plain/fp32@cpu"):
    return {"kind": "error", "data": data, "seed": 1} | result(method, n, ulps, "everywhere")


class Methods(unittest.TestCase):
    def setUp(self):
        self.found = {"error_vs_length": [error(1024, 3.0), error(4096, 5.0), error(64, 9.0), error(8192, 7.0, "ones")],
                      "speed_vs_length": [speed("tree/plain/fp32@cpu", 99.0, n=64), speed("tree/plain/fp32@cpu", 10.0),
                                          speed("tree/plain/fp32@cpu", 77.0, n=1 << 22, caches="cold"),
                                          speed("tree/plain/fp32@cpu", 66.0, n=1 << 22, threads=2),
                                          speed("tree/plain/fp32@cpu", 55.0, n=1 << 22, data="ones"),
                                          speed("read", 20.0)],
                      "spread_over_runs": [spread("tree/plain/fp32@cpu", "everywhere"),
                                           spread("tree/plain/fp32@cpu", "everywhere", "threads", 2),
                                           spread("tree/plain/fp32@cpu", "everywhere", "permutation", 9)]}

    def rows(self, *more):
        section = methods.section({q: [source(q, rows), *more] for q, rows in self.found.items()})
        self.assertEqual(section.findings, [])
        return section.tables[0].rows

    def test_uses_the_longest_array_and_the_axis_with_the_most_results_except_permutations(self):
        row = ["tree/plain/fp32@cpu", "everywhere", "2¹²", "5", "11", "10", "2 in 10 runs"]
        self.assertEqual(self.rows(), [row])
        self.found["error_vs_length"][1]["error_ulps"] = 6.0
        self.found["speed_vs_length"][1]["gb_per_s"] = 12.0
        self.found["spread_over_runs"][0]["distinct_bits"] = 4
        self.assertEqual(self.rows(), [row[:3] + ["6", "11", "12", "4 in 10 runs"]])

    def test_the_verdict_counts_methods(self):
        def verdict():
            return methods.section({q: [source(q, rows)] for q, rows in self.found.items()}).verdict

        self.assertEqual(verdict(), "1 sum of samesum was measured; 1 of samesum's promise the same bits everywhere.")
        self.found["error_vs_length"] += [error(64, 1.0, method="atomic/plain/fp32@cpu") | {"promise": "none"},
                                          error(64, 1.0, method="loop/fp32@peer") | {"promise": "run_to_run"}]
        self.assertEqual(verdict(), "2 sums of samesum and 1 of loops were measured; 1 of samesum's promise "
                                    "the same bits everywhere.")

    def test_each_machine_has_a_row(self):
        there = source("error_vs_length", [error(1024, 4.0)], "H200")
        self.assertEqual([line[2:5] for line in self.rows(there)], [["H200", "2¹⁰", "4"], ["this machine", "2¹²", "5"]])

    def test_a_missing_measurement_is_a_dash_and_a_missing_bound_is_none(self):
        self.found["error_vs_length"][1]["bound"] = None
        self.found["speed_vs_length"] = self.found["spread_over_runs"] = []
        self.assertEqual(self.rows(), [["tree/plain/fp32@cpu", "everywhere", "2¹²", "5", "none", "-", "-"]])


if __name__ == "__main__":
    unittest.main()
