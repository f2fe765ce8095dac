"""The section on spreads says what its rows say: made-up rows, altered one at a time. report_test.py has more of it.

Run by ctest, or: build/venv/bin/python tests/notebooks/spread_over_runs_test.py
"""

import math
import unittest

from made_up import source, spread
import power_law
import results
import spread_over_runs


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
        self.there = []

    def section(self):
        there = source("spread_over_runs", self.there, "H200")
        return spread_over_runs.section([source("spread_over_runs", self.rows), there])

    def assert_found(self, sentence):
        self.assertIn(sentence, self.section().findings)

    def test_only_order_free_speaks_of_other_orders(self):
        self.assert_found("All 2 methods with a promise of the same bits everywhere gave one bit pattern for each "
                          "array, in 20 runs.")
        self.assert_found("This machine, CPU, other orders of the elements: 1 of 1 method with less of a promise gave "
                          "more than one result, up to 6 in 10 runs (tree/plain/fp32@cpu) and as far apart as 5 ulps "
                          "(tree/plain/fp32@cpu on normal); the largest |Vs| is 2e-06 (tree/plain/fp32@cpu on normal).")
        self.rows[0].update(distinct_bits=2, broken=True)
        section = self.section()
        self.assertEqual("1 of 2 methods with a promise of the same bits everywhere gave one bit pattern for each "
                         "array, in 20 runs; not exact/fp32@cpu (this machine, CPU).", section.findings[0])
        self.assertEqual(section.failures, ["this machine, CPU: exact/fp32@cpu promises order_free but gave 2 bit "
                                            "patterns (other orders of the elements)"])

    def test_a_method_is_counted_once_on_however_many_machines(self):
        self.there = [spread("exact/fp32@cpu", "order_free", "permutation"),
                      spread("tree/plain/fp32@cpu", "everywhere", "runs", 2)]
        self.assert_found("1 of 2 methods with a promise of the same bits everywhere gave one bit pattern for each "
                          "array, in 40 runs; not tree/plain/fp32@cpu (H200, CPU).")

    def test_the_most_and_the_farthest_are_named_wherever_they_stand(self):
        told = ("This machine, CPU, the same call again: {} gave more than one result, up to {} and as far apart as {} "
                "({}); the largest |Vs| is {}.")
        self.assert_found(told.format("1 of 1 method with less of a promise", "3 in 10 runs (atomic/plain/fp32@cpu)",
                                      "2 ulps", "atomic/plain/fp32@cpu on normal",
                                      "1e-07 (atomic/plain/fp32@cpu on normal)"))
        self.rows += [spread("loop/fp32@peer", "run_to_run"), spread("tbb/fp32@peer", "none", "runs",
                                                                                              5, 1e-8, data="uniform"),
                      spread("tbb/fp32@peer", "none", "runs", 2, 1e-6, data="ones"),
                      spread("eigen/fp32@peer", "none", "runs", 2, 1e-9)]
        self.rows[-1]["spread_ulps"] = 40.0
        self.assert_found(told.format("3 of 4 methods with less of a promise", "5 in 10 runs (tbb/fp32@peer)", "40 "
                                                                                                               "ulps",
                                      "eigen/fp32@peer on normal", "1e-06 (tbb/fp32@peer on ones)"))

    def test_the_broken_promises_of_others_are_told_with_their_place(self):
        self.rows.append(spread("loop/fp32@peer", "run_to_run", "runs", 2, broken=True))
        self.assert_found("Broken promises of other libraries: run_to_run by loop/fp32@peer (this machine, CPU).")
        self.assertEqual(self.section().failures, [])

    def test_launch_shapes_are_told_of(self):
        self.rows.append(spread("atomic/plain/fp32@cuda", "none", "launch", 4))
        self.assertIn("This machine, GPU, other launch shapes: 1 of 1 method ", " ".join(self.section().findings))

    def bend(self, by):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "permutation":
                r["vs_max"] *= by(r)

    def test_tells_the_exponents_and_which_are_the_papers(self):
        told = ("This machine, CPU, other orders of the elements: max |Vs| in fp64 {} for serial/plain on uniform "
                "data; 1 of 1 fitted exponent is known to less than ± 0.1, and {} of these is within two standard "
                "errors of 0.5, the √n of Shanmugavelu et al. 2024.")
        grows = "grows as a power of n, with an exponent of "
        self.assert_found(told.format(grows + "0.50 ± 0.04", 1))
        self.assertIn(grows + "0.90 ± 0.04 for atomic/plain on normal data; 1 of 1 fitted exponent is known to less "
                      "than ± 0.1, and none of these", " ".join(self.section().findings))
        self.bend(lambda r: r["n"]**0.25)
        self.assert_found(told.format(grows + "0.75 ± 0.04", "none"))
        self.bend(lambda r: r["n"]**-0.73)
        self.assert_found(told.format("neither grows nor falls for certain, with an exponent of n of 0.02 ± 0.04",
                                      "none"))
        self.bend(lambda r: r["n"]**-0.32)
        self.assert_found(told.format("falls as a power of n, with an exponent of -0.30 ± 0.04", "none"))

    def test_an_exponent_that_nobody_knows_agrees_with_nothing(self):
        self.bend(lambda r: math.exp(2 * (-1)**r["seed"]))
        self.assert_found("This machine, CPU, other orders of the elements: max |Vs| in fp64 neither grows nor falls "
                          "for certain, with an exponent of n of 0.50 ± 0.93 for serial/plain on uniform data; 0 of 1 "
                          "fitted exponent is known to less than ± 0.1.")

    def test_exponents_are_of_both_data_sets_and_counted(self):
        self.rows += growth("tree/plain/fp64@cpu", "permutation", "normal", 0.4)
        self.rows += growth("loop/fp32@peer", "permutation", "normal", 0.52)
        self.assert_found("This machine, CPU, other orders of the elements: max |Vs| in fp64 grows as a power of n, "
                          "with an exponent of 0.50 ± 0.04 for serial/plain on uniform data, 0.40 ± 0.04 for "
                          "tree/plain on normal data; all 3 fitted exponents are known to less than ± 0.1, and 2 of "
                          "these are within two standard errors of 0.5, the √n of Shanmugavelu et al. 2024.")

    def test_the_figures_say_what_they_show_first(self):
        bars, lines = [f.reading for f in self.section().figures]
        self.assertEqual(bars, "This machine, CPU, the same call again, fp32: the bars go from 1 bit pattern "
                               "(tree/plain) to 3 bit patterns (atomic/plain).")
        self.assertEqual(lines, "This machine, CPU, the same call again, fp64, normal: at n = 2¹² the only line is at "
                                "2e-12 (atomic/plain).")
        self.rows[3]["distinct_bits"] = 8
        self.rows[-1]["vs_max"] = 1.0
        bars, lines = [f.reading for f in self.section().figures]
        self.assertIn("to 8 bit patterns (atomic/plain).", bars)
        self.assertIn("the only line is at 1 (atomic/plain)", lines)

    def test_axes_are_those_of_the_schema(self):
        self.assertEqual(list(spread_over_runs.AXES), results.SCHEMA["$defs"]["spread"]["properties"]["axis"]["enum"])

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
