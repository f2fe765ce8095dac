"""The section on spreads says what its rows say: made-up rows, altered one at a time. report_test.py has more of it.

Run by ctest, or: build/venv/bin/python tests/notebooks/spread_over_runs_test.py
"""

import math
import unittest

import made_up
from made_up import spread
import power_law
import results
import spread_over_runs

ORDERS = "This machine, CPU, other orders of the elements:"
CPU, EXACT, TREE, ATOMIC = "This machine, CPU", "exact/fp32@cpu", "tree/plain/fp32@cpu", "atomic/plain/fp32@cpu"


def growth(method, axis, data, exponent):
    return [{"kind": "growth", "method": method, "promise": "none" if axis == "runs" else "everywhere",
             "input_format": "fp64", "data": data, "seed": seed, "n": n, "axis": axis, "runs": 40,
             "vs_max": 1e-15 * n**exponent * (1.1 if seed == 2 else 1 / 1.1)}
            for n in (256, 1024, 4096) for seed in (1, 2)]


class Spreads(made_up.OfSection):
    question = "spread_over_runs"

    def setUp(self):
        self.rows = [spread("exact/fp32@cpu", "order_free", "permutation"),
                     spread("tree/plain/fp32@cpu", "everywhere", "permutation", 6, 2e-6),
                     spread("tree/plain/fp32@cpu", "everywhere", "runs"),
                     spread("atomic/plain/fp32@cpu", "none", "runs", 3, 1e-7),
                     *growth("serial/plain/fp64@cpu", "permutation", "uniform", 0.5),
                     *growth("atomic/plain/fp64@cpu", "runs", "normal", 0.9)]

    def test_only_order_free_speaks_of_other_orders(self):
        self.tell("All 2 methods with a promise … in 20 runs.",
                  f"{ORDERS} 1 of 1 method … 6 in 10 runs ({TREE}) … 5 ulps ({TREE} on normal); "
                  f"… 2e-06 ({TREE} on normal)")
        self.rows[0].update(distinct_bits=2, broken=True)
        self.tell(f"1 of 2 methods with a promise … in 20 runs; not {EXACT} (this machine, CPU).")
        self.assertEqual(self.tell().failures, [f"this machine, CPU: {EXACT} promises order_free but gave 2 bit "
                                                   "patterns (other orders of the elements)"])

    def test_a_method_is_counted_once_on_however_many_machines(self):
        self.there = [spread(EXACT, "order_free", "permutation"), spread(TREE, "everywhere", "runs", 2)]
        self.tell(f"1 of 2 methods with a promise … in 40 runs; not {TREE} (H200, CPU).")

    def test_the_most_and_the_farthest_are_named_wherever_they_stand(self):
        told = f"{CPU}, the same call again: {{}} … {{}} in 10 runs ({{}}) … {{}} ulps ({{}} on normal); … {{}} ({{}})"
        self.tell(told.format("1 of 1 method", 3, ATOMIC, 2, ATOMIC, "1e-07", f"{ATOMIC} on normal"))
        self.rows += [spread("loop/fp32@peer", "run_to_run"),
                      spread("tbb/fp32@peer", "none", "runs", 5, 1e-8, data="uniform"),
                      spread("tbb/fp32@peer", "none", "runs", 2, 1e-6, data="ones"),
                      spread("eigen/fp32@peer", "none", "runs", 2, 1e-9) | {"spread_ulps": 40.0}]
        self.tell(told.format("3 of 4 methods", 5, "tbb/fp32@peer", 40, "eigen/fp32@peer", "1e-06",
                              "tbb/fp32@peer on ones"))

    def test_the_broken_promises_of_others_are_told_with_their_place(self):
        self.rows += [spread("loop/fp32@peer", "run_to_run", "runs", 2, broken=True),
                      spread("atomic/plain/fp32@cuda", "none", "launch", 4)]
        self.tell("other libraries: run_to_run by loop/fp32@peer (this machine, CPU).",
                  "This machine, GPU, other launch shapes: 1 of 1 method")
        self.assertEqual(self.tell().failures, [])

    def test_tells_the_exponents_and_which_are_the_papers(self):
        told = f"{ORDERS} max |Vs| in fp64 {{}} for serial/plain on uniform data; 1 of 1 … {{}}"
        known = "± 0.1, and {} of these … 0.5, the √n of Shanmugavelu et al. 2024".format
        self.tell(f"{CPU}, the same call again: … grows … 0.90 ± 0.04 for atomic/plain on normal data; 1 of 1 … "
                  + known("none"))
        for by, says, agree in ((lambda r: 1, "grows … 0.50 ± 0.04", 1),
                                (lambda r: r["n"]**0.25, "grows … 0.75 ± 0.04", 0),
                                (lambda r: r["n"]**-0.73, "neither grows nor falls … 0.02 ± 0.04", 0),
                                (lambda r: r["n"]**-0.32, "falls … -0.30 ± 0.04", 0)):
            self.bend(by)
            self.tell(told.format(says, known(agree or "none")))

    def bend(self, by):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "permutation":
                r["vs_max"] *= by(r)

    def test_an_exponent_that_is_not_known_agrees_with_nothing(self):
        self.bend(lambda r: math.exp(2 * (-1)**r["seed"]))
        self.tell(f"{ORDERS} … neither grows nor falls … 0.50 ± 0.93 for serial/plain on uniform "
                  "data; 0 of 1 fitted exponent is known to less than ± 0.1.")

    def test_exponents_are_of_both_data_sets_and_counted(self):
        self.rows += growth("tree/plain/fp64@cpu", "permutation", "normal", 0.4)
        self.rows += growth("loop/fp32@peer", "permutation", "normal", 0.52)
        self.tell(f"{ORDERS} … in fp64 grows … 0.50 ± 0.04 for serial/plain on uniform data, "
                  "0.40 ± 0.04 for tree/plain on normal data; all 3 fitted exponents … 2 of these")

    def test_the_figures_say_what_they_show_first(self):
        bars, lines = f"{CPU}, the same call again, fp32: … ", f"{CPU}, … again, fp64, normal: … 2¹² … "
        for most, last, highest in ((3, None, "2e-12"), (8, 1.0, "1")):
            self.rows[3]["distinct_bits"] = most
            self.rows[-1]["vs_max"] = last or self.rows[-1]["vs_max"]
            readings = [f.reading for f in self.tell().figures]
            self.assert_tells(readings[:1], f"{bars}1 bit pattern (tree/plain) to {most} bit patterns (atomic/plain)")
            self.assert_tells(readings[1:], f"{lines}{highest} (atomic/plain)")

    def test_axes_are_those_of_the_schema(self):
        self.assertEqual(list(spread_over_runs.AXES), results.SCHEMA["$defs"]["spread"]["properties"]["axis"]["enum"])

    def test_what_was_not_measured_or_does_not_vary(self):
        for r in self.rows:
            if r["kind"] == "growth" and r["axis"] == "runs":
                r["vs_max"] = 0.0
        for r in self.rows[:4]:
            del r["vs_max"]  # before there was Vs
        self.assert_silent(self.tell().findings, "the same call again: max |Vs|", "the largest |Vs|")
        self.assertEqual([line[4] for line in self.tell().tables[-1].rows], ["0.50", "-"])


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
