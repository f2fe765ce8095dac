"""The section on spreads says what its rows say: made-up rows, altered one at a time. report_test.py has more of it.

Run by ctest, or: build/venv/bin/python tests/notebooks/spread_over_runs_test.py
"""

import unittest

from made_up import source
import power_law
import spread_over_runs


def spread(method, promise, axis, distinct=1, vs=0.0):
    return {"kind": "spread", "method": method, "promise": promise, "input_format": "fp32", "data": "normal", "seed": 1,
            "n": 4096, "axis": axis, "runs": 8, "distinct_bits": distinct, "spread_ulps": float(distinct - 1),
            "lowest": 1.0, "highest": 1.0, "vs_max": vs, "broken": False}


def growth(method, axis, data, exponent):
    return [{"kind": "growth", "method": method, "promise": "none" if axis == "runs" else "everywhere",
             "input_format": "fp64", "data": data, "seed": seed, "n": n, "axis": axis, "runs": 40,
             "vs_max": 1e-15 * n**exponent * (1.1 if seed == 2 else 1 / 1.1)}
            for n in (256, 1024, 4096) for seed in (1, 2)]


class Spreads(unittest.TestCase):
    def setUp(self):
        self.rows = [spread("exact/fp32@cpu", "order_free", "permutation"),
                     spread("tree/plain/fp32@cpu", "everywhere", "permutation", 6, 2e-6),
                     spread("tree/plain/fp32@cpu", "everywhere", "runs"),
                     spread("atomic/plain/fp32@cpu", "none", "runs", 3, 1e-7),
                     *growth("serial/plain/fp64@cpu", "permutation", "uniform", 0.5),
                     *growth("atomic/plain/fp64@cpu", "runs", "normal", 0.9)]

    def section(self):
        return spread_over_runs.section([source("spread_over_runs", self.rows)])

    def assert_found(self, sentence):
        self.assertIn(sentence, self.section().findings)

    def test_only_order_free_speaks_of_other_orders(self):
        self.assert_found("All 2 methods that promise the same bits everywhere gave one bit pattern for each array, in "
                          "16 runs.")
        self.assert_found("This machine, CPU, other orders of the elements: 1 of 1 methods that promise less gave more "
                          "than one result, up to 6 in 8 runs (tree/plain/fp32@cpu) and as far apart as 5 ulps "
                          "(tree/plain/fp32@cpu on normal); the largest |Vs| is 2e-06 (tree/plain/fp32@cpu on normal).")
        self.rows[0].update(distinct_bits=2, broken=True)
        section = self.section()
        self.assertIn("1 of 2 methods that promise the same bits everywhere", section.findings[0])
        self.assertEqual(section.failures, ["this machine, CPU: exact/fp32@cpu promises order_free but gave 2 bit "
                                            "patterns (other orders of the elements)"])

    def test_launch_shapes_are_told_of(self):
        self.rows.append(spread("atomic/plain/fp32@cuda", "none", "launch", 4))
        self.assertIn("This machine, GPU, other launch shapes: 1 of 1 methods", " ".join(self.section().findings))

    def test_tells_the_exponents_and_which_are_the_papers(self):
        self.assert_found("This machine, CPU, other orders of the elements: max |Vs| grows as a power of n, in fp64 "
                          "with an exponent of 0.50 ± 0.04 for serial/plain on uniform data; 1 of 1 fitted exponents "
                          "are within two standard errors of 0.5, the √n of Shanmugavelu et al. 2024.")
        self.assertIn("0.90 ± 0.04 for atomic/plain on normal data; 0 of 1", " ".join(self.section().findings))
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "permutation":
                r["vs_max"] *= r["n"]**0.25
        self.assertIn("0.75 ± 0.04 for serial/plain on uniform data; 0 of 1", " ".join(self.section().findings))

    def test_what_does_not_vary_has_no_exponent(self):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "runs":
                r["vs_max"] = 0.0
        self.assertNotIn("the same call again: max |Vs|", " ".join(self.section().findings))
        self.assertEqual([line[4] for line in self.section().tables[-1].rows], ["0.50", "-"])

    def test_rows_of_before_there_was_vs_are_read(self):
        for r in self.rows[:4]:
            del r["vs_max"]
        self.assertNotIn("the largest |Vs|", " ".join(self.section().findings))

    def test_is_empty_without_rows(self):
        self.assertTrue(spread_over_runs.section([]).empty)


class APowerLaw(unittest.TestCase):
    def test_goes_through_points_that_are_on_one(self):
        law = power_law.fit([(n, 3 * n**0.7) for n in (1, 10, 100)])
        self.assertAlmostEqual(law.exponent, 0.7)
        self.assertAlmostEqual(law.error, 0)
        self.assertAlmostEqual(law.at(1000), 3 * 1000**0.7)

    def test_needs_three_lengths(self):
        self.assertIsNone(power_law.fit([(1, 1), (2, 2), (2, 3), (4, 0)]))


if __name__ == "__main__":
    unittest.main()
