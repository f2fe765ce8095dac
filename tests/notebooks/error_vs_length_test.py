"""What the section on errors says of probable bounds: made-up rows, altered one number at a time."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import error_vs_length  # noqa: E402
import results  # noqa: E402
from figure import svg  # noqa: E402


def error(method, n, error, bound, probable):
    return {"kind": "error", "data": "normal", "seed": 1, "method": method, "input_format": "fp32", "n": n,
            "value": 1.0, "bits": "0x3f800000", "truth": 1.0, "truth_bits": "0x3f800000", "error_ulps": error / 2**-23,
            "relative_error": error, "absolute_error": error, "bound": bound, "within_bound": True, "condition": 3.0,
            "promise": "everywhere", "probable_bound": probable, "marked": None}


def coverage(method, probability, covered=1.0, **more):
    return {"kind": "coverage", "data": "uniform", "seed": 1, "method": method, "input_format": "fp32", "n": 1024,
            "seeds": 1000, "probability": probability, "covered": covered, "beyond_bound": 0, "median_share": 0.1,
            "marked": None} | more


class ProbableBounds(unittest.TestCase):
    def setUp(self):
        self.rows = [error("tree/plain/fp32@cpu", n, 1e-7, 8e-7, 4e-7) for n in (1024, 4096)]
        self.rows += [error("tree/kahan/fp32@cpu", n, 1e-8, 6e-8, 6e-8) for n in (1024, 4096)]
        self.rows += [coverage("tree/plain/fp32@cpu", p) for p in (0.9, 0.99)]
        self.rows += [coverage("serial/plain/fp16@cpu", 0.99, 0.25, marked="stagnation")]
        for r in self.rows:
            self.assertIsNone(results.problem(r, ["error", "coverage"]))

    def section(self):
        self.s = error_vs_length.section([results.Source("this machine", "error_vs_length", pathlib.Path(), {},
                                                         self.rows)])
        return "\n".join(self.s.findings)

    def test_says_what_is_within_and_how_far_below_the_rigorous_bound(self):
        self.assertIn("All 4 errors of random elements are also within the bound that holds with a probability of 0.99 "
                      "if roundings have mean 0; it is 0.5 of the rigorous one at the median of the 2 where it is less.", self.section())
        self.rows[0]["probable_bound"] = self.rows[1]["probable_bound"] = 2e-7
        self.assertIn("it is 0.25 of the rigorous one", self.section())
        self.rows[1]["bound"] = None
        self.assertIn("at the median of the 1 where it is less, and is the only one for 1.", self.section())

    def test_names_what_is_beyond_it_and_calls_that_no_failure(self):
        self.rows[1].update(probable_bound=5e-8, data="uniform")
        self.assertIn("3 of 4 errors of random elements are also within", self.section())
        self.assertIn("; beyond it are sums of uniform, as tree/plain/fp32@cpu on uniform at n = 2¹².", self.section())
        self.assertEqual(self.s.failures, [])

    def test_what_is_marked_is_told_apart_with_how_often_the_bound_holds_there(self):
        self.assertNotIn("Marked for", self.section())
        self.rows[0].update(marked="structure", data="ones")
        told = "Marked for structure (elements equal, sorted, in a pattern or made to cancel: ones)"
        text = self.section()
        self.assertIn("All 3 errors of random elements are also within", text)
        self.assertIn(told, text)
        self.assertIn("that bound promises nothing: it holds for 1 of 1 errors.", text)
        self.rows[0]["probable_bound"] = 5e-8
        self.assertIn("it holds for 0 of 1 errors; beyond it are sums of ones, as tree/plain/fp32@cpu on ones at n = "
                      "2¹⁰.", self.section())
        self.assertIn("All 3 errors of random elements are also within", self.section())
        self.assertEqual(self.s.failures, [])
        self.rows[1]["marked"] = "stagnation"
        self.assertIn("Marked for stagnation (of one sign", self.section())

    def test_rows_of_before_are_read_without_it(self):
        self.rows = [{k: v for k, v in r.items() if k != "probable_bound"} for r in self.rows[:4]]
        self.assertNotIn("probability", self.section())
        self.assertEqual(len([s for s in self.s.figures[0].series if s.name.startswith("probable")]), 0)

    def test_coverage_is_told_by_probability_with_the_least(self):
        text = self.section()
        self.assertIn("The bound of probability 0.9 covers at least its 90% of the errors in 1 of 1 cases (a method on "
                      "so many random arrays); the least is 100% of 1,000, of tree/plain/fp32@cpu on uniform at n = "
                      "2¹⁰; at the median the error is 0.1 of the bound.", text)
        self.rows[4].update(covered=0.9996, median_share=0.3)
        self.assertIn("the least is 99.9% of 1,000", self.section())
        self.assertIn("the error is 0.3 of the bound", self.section())

    def test_too_low_a_coverage_fails_unless_it_stagnates(self):
        self.assertIn("1 case is marked as stagnating, where it promises nothing (serial/plain/fp16 on uniform): of "
                      "these the least coverage is 25%, of serial/plain/fp16@cpu on uniform at n = 2¹⁰ at probability "
                      "0.99.", self.section())
        self.assertEqual(self.s.failures, [])
        self.rows[5]["covered"] = 0.98
        self.assertIn("The bound of probability 0.99 covers at least its 99% of the errors in 0 of 1 cases",
                      self.section())
        self.assertEqual(self.s.failures, ["this machine: tree/plain/fp32@cpu on uniform, n = 1,024: the probable bound "
                                           "at 0.99 covers 98% of the errors"])

    def test_errors_beyond_the_rigorous_bound_fail_everywhere(self):
        self.rows[6]["beyond_bound"] = 3
        self.section()
        self.assertEqual(self.s.failures,
                         ["this machine: serial/plain/fp16@cpu on uniform, n = 1,024: 3 of 1,000 errors exceed their "
                          "bounds"])

    def test_where_there_is_no_bound_nothing_is_covered(self):
        self.rows[6]["median_share"] = None
        self.assertNotIn("stagnating", self.section())

    def test_stagnating_data_have_a_line_of_their_own_in_the_table(self):
        self.section()
        table = self.s.tables[-1]
        self.assertEqual(table.columns, ["data", "format", "n", "methods", "arrays", "least at 0.9", "least at 0.99",
                                         "error over bound, median"])
        self.assertEqual([row[0] for row in table.rows], ["uniform", "uniform, marked for stagnation"])
        self.assertEqual(table.rows[1][5:], ["", "25%", "0.1"])

    def test_the_figure_has_a_second_bound_where_it_differs(self):
        self.section()
        faint = {s.name for s in self.s.figures[0].series if s.faint}
        self.assertEqual(faint, {"bound of tree/plain", "probable bound of tree/plain", "bound of tree/kahan"})
        self.assertTrue(svg(self.s.figures[0]))


if __name__ == "__main__":
    unittest.main()
