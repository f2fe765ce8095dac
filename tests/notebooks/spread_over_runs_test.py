"""Tests of the section on spreads, with made-up rows that are changed one at a time. report_test.py has more.

Run by ctest, or: build/venv/bin/python tests/notebooks/spread_over_runs_test.py
"""

import math
import unittest

import made_up
from made_up import spread
import power_law
import results
import spread_over_runs

ORDERS = "This machine, CPU, other element orders:"
CPU, EXACT, TREE, ATOMIC = "This machine, CPU", "exact/fp32@cpu", "tree/plain/fp32@cpu", "atomic/plain/fp32@cpu"


def growth(method, axis, data, exponent):
    return [{"kind": "growth", "method": method, "promise": "none" if axis == "runs" else "everywhere",
             "input_format": "fp64", "data": data, "seed": seed, "n": n, "axis": axis, "runs": 40,
             "vs_max": 1e-15 * n**exponent * (1.1 if seed == 2 else 1 / 1.1)}
            for n in (256, 1024, 4096) for seed in (1, 2)]


class Spreads(made_up.SectionTest):
    question = "spread_over_runs"

    def setUp(self):
        self.rows = [spread("exact/fp32@cpu", "order_free", "permutation"),
                     spread("tree/plain/fp32@cpu", "everywhere", "permutation", 6, 2e-6),
                     spread("tree/plain/fp32@cpu", "everywhere", "runs"),
                     spread("atomic/plain/fp32@cpu", "none", "runs", 3, 1e-7),
                     *growth("serial/plain/fp64@cpu", "permutation", "uniform", 0.5),
                     *growth("atomic/plain/fp64@cpu", "runs", "normal", 0.9)]

    def test_only_order_free_promises_the_same_bits_for_other_orders(self):
        self.check("Both methods with a promise … in 20 runs.",
                   f"{ORDERS} the only method … 6 in 10 runs ({TREE}) … 5 ulps apart ({TREE} on normal); … 2e-06 ({TREE} "
                   "on normal)")
        self.rows[0].update(distinct_bits=2, broken=True)
        self.check(f"1 of 2 methods with a promise … in 20 runs; exceptions: {EXACT} (this machine, CPU).")
        self.assertEqual(self.check().failures, [f"this machine, CPU: {EXACT} promises order_free but returned 2 bit "
                                                 "patterns (other element orders)"])

    def test_a_method_on_several_machines_counts_once(self):
        self.there = [spread(EXACT, "order_free", "permutation"), spread(TREE, "everywhere", "runs", 2)]
        self.check(f"1 of 2 methods with a promise … in 40 runs; exceptions: {TREE} (H200, CPU).")

    def test_names_the_most_results_and_the_largest_spread_in_any_row(self):
        expected = (f"{CPU}, repeated calls: {{}} … {{}} in 10 runs ({{}}) … {{}} ulps apart ({{}} on normal); … {{}} "
                    "({})")
        self.check(expected.format("the only method", 3, ATOMIC, 2, ATOMIC, "1e-07", f"{ATOMIC} on normal"))
        self.rows += [spread("loop/fp32@peer", "run_to_run"),
                      spread("tbb/fp32@peer", "none", "runs", 5, 1e-8, data="uniform"),
                      spread("tbb/fp32@peer", "none", "runs", 2, 1e-6, data="ones"),
                      spread("eigen/fp32@peer", "none", "runs", 2, 1e-9) | {"spread_ulps": 40.0}]
        self.check(expected.format("3 of 4 methods", 5, "tbb/fp32@peer", 40, "eigen/fp32@peer", "1e-06",
                                   "tbb/fp32@peer on ones"))
        self.rows[-1]["spread_ulps"] = 4.2e42
        self.check(f"{CPU}, repeated calls: … 5 in 10 runs (tbb/fp32@peer); the results of eigen/fp32@peer on normal share "
                   "no digit; …")

    def test_names_broken_promises_of_other_libraries_with_their_place(self):
        self.rows += [spread("loop/fp32@peer", "run_to_run", "runs", 2, broken=True),
                      spread("atomic/plain/fp32@cuda", "none", "launch", 4)]
        self.check("other libraries broke: run_to_run by loop/fp32@peer (this machine, CPU).",
                   "This machine, GPU, other launch shapes: the only method")
        self.assertEqual(self.check().failures, [])

    def test_exponents_and_their_agreement_with_the_paper(self):
        expected = f"{ORDERS} the largest relative spread in fp64 {{}} for serial/plain on uniform data; the only fitted … {{}}"
        known = "has a standard error below 0.1, and {} of these … 0.5, the √n of Shanmugavelu et al. 2024".format
        self.check(f"{CPU}, repeated calls: … grows … 0.90 ± 0.04 for atomic/plain on normal data; the only fitted … "
                   + known("none"))
        for by, text, agree in ((lambda r: 1, "grows … exponent 0.50 ± 0.04", 1),
                                (lambda r: r["n"]**0.25, "grows … 0.75 ± 0.04", 0),
                                (lambda r: r["n"]**-0.73, "neither grows nor falls … 0.02 ± 0.04", 0),
                                (lambda r: r["n"]**-0.32, "falls … -0.30 ± 0.04", 0)):
            self.bend(by)
            self.check(expected.format(text, known(agree or "none")))

    def bend(self, by):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "permutation":
                r["vs_max"] *= by(r)

    def test_an_exponent_with_a_large_standard_error_is_not_compared(self):
        self.bend(lambda r: math.exp(2 * (-1)**r["seed"]))
        self.check(f"{ORDERS} … neither grows nor falls … 0.50 ± 0.93 for serial/plain on uniform data; 0 of 1 fitted "
                   "exponent has a standard error below 0.1.")

    def test_exponents_of_all_data_sets_are_listed_and_counted(self):
        self.rows += growth("tree/plain/fp64@cpu", "permutation", "normal", 0.4)
        self.rows += growth("loop/fp32@peer", "permutation", "normal", 0.52)
        self.check(f"{ORDERS} … in fp64 grows … 0.50 ± 0.04 for serial/plain on uniform data, 0.40 ± 0.04 for "
                   "tree/plain on normal data; all 3 fitted exponents … 2 of these")

    def test_the_findings_of_the_figures(self):
        bars, lines = f"{CPU}, repeated calls, fp32: … ", f"{CPU}, repeated calls, fp64, normal: … 2¹² … "
        for most, last, highest in ((3, None, "2e-12"), (8, 1.0, "1")):
            self.rows[3]["distinct_bits"] = most
            self.rows[-1]["vs_max"] = last or self.rows[-1]["vs_max"]
            found = [f.finding for f in self.check().figures]
            self.assert_sentences(found[:1], f"{bars}1 bit pattern (tree/plain) to {most} bit patterns (atomic/plain)")
            self.assert_sentences(found[1:], f"{lines}{highest} (atomic/plain)")

    def test_axes_are_those_of_the_schema(self):
        self.assertEqual(list(spread_over_runs.AXES), results.SCHEMA["$defs"]["spread"]["properties"]["axis"]["enum"])

    def test_missing_measurements_and_results_that_do_not_vary(self):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "runs":
                r["vs_max"] = 0.0
        for r in self.rows[:4]:
            del r["vs_max"]  # as in older files
        self.assert_no_sentences(self.check().findings, "repeated calls: the largest relative", "the largest relative spread is")
        self.assertEqual([line[4] for line in self.check().tables[-1].rows], ["0.50", "-"])


class PowerLaw(unittest.TestCase):
    def test_fits_exact_points(self):
        law = power_law.fit([(n, 3 * n**0.7) for n in (1, 10, 100)])
        self.assertAlmostEqual(law.exponent, 0.7)
        self.assertAlmostEqual(law.error, 0)
        self.assertAlmostEqual(law.at(1000), 3 * 1000**0.7)

    def test_needs_three_different_lengths(self):
        self.assertIsNone(power_law.fit([(1, 1), (2, 2), (2, 3), (4, 0)]))


if __name__ == "__main__":
    unittest.main()
