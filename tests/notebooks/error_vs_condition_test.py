"""What the section on conditions says: made-up rows, altered one number at a time."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import error_vs_condition  # noqa: E402
import results  # noqa: E402
from figure import svg  # noqa: E402


def row(method, exponent, digits, machine="cpu"):
    return {"kind": "condition", "data": "gensum", "seed": 1, "method": f"{method}/fp32@{machine}",
            "input_format": "fp32", "n": 1024, "target_condition": 10.0**exponent, "value": 1.0, "bits": "0x3f800000",
            "truth": 1.0, "truth_bits": "0x3f800000", "error_ulps": 0.5, "relative_error": 10.0**-digits,
            "absolute_error": 1e-3, "bound": 1.0, "within_bound": True, "condition": 1.1 * 10.0**exponent,
            "promise": "everywhere", "digits": digits}


class Conditions(unittest.TestCase):
    def setUp(self):
        self.rows = [row("tree/plain", e, max(0.0, 7.0 - e)) for e in range(13)]
        self.rows += [row("tree/kahan", e, max(0.0, 9.0 - e)) for e in range(13)]
        self.rows += [row("exact", e, 7.2) for e in range(13)]
        for r in self.rows:
            self.assertIsNone(results.problem(r, ["condition"]))

    def section(self):
        self.s = error_vs_condition.section([results.Source("this machine", "error_vs_condition", pathlib.Path(), {},
                                                            self.rows)])
        return "\n".join(self.s.findings)

    def test_says_where_each_method_ends(self):
        text = self.section()
        self.assertIn("All 39 errors of samesum's methods are within their rigorous bounds.", text)
        self.assertIn("In fp32 the last right digit is lost at 10⁷ by tree/plain; at 10⁹ by tree/kahan; up to 10¹² "
                      "never by exact.", text)
        self.assertIn("exact is correctly rounded in all 13 results, whatever the condition.", text)
        self.assertEqual(self.s.failures, [])
        self.assertEqual(self.s.tables[0].rows, [["exact", "over 10¹²"], ["tree/kahan", "10⁹"], ["tree/plain", "10⁷"]])

    def test_one_digit_more_ends_later(self):
        self.rows[9]["digits"] = 1.0
        self.assertIn("at 10⁹ by tree/kahan; at 10¹⁰ by tree/plain", self.section())

    def test_a_method_that_never_ends_is_told_apart(self):
        for r in self.rows:
            r["digits"] = 2.0
        self.assertIn("In fp32 no method loses its last right digit up to 10¹².", self.section())
        for r in self.rows:
            r["digits"] = 0.0
        self.assertIn("In fp32 the last right digit is lost at 1 by tree/plain, tree/kahan, exact.", self.section())

    def test_an_error_beyond_its_bound_and_wrong_bits_fail(self):
        self.rows[3]["within_bound"] = False
        self.rows[-1]["bits"] = "0x3f800001"
        text = self.section()
        self.assertIn("38 of 39 errors of samesum's methods are within their rigorous bounds. Beyond: "
                      "tree/plain/fp32@cpu at condition 10³.", text)
        self.assertIn("exact is correctly rounded in 12 of 13 results", text)
        self.assertEqual(self.s.failures, ["this machine, CPU: tree/plain/fp32@cpu at condition 10³: the error 0.001 "
                                           "exceeds its bound 1",
                                           "this machine, CPU: exact/fp32@cpu at condition 10¹²: gave 0x3f800001, but "
                                           "the exact sum rounds to 0x3f800000"])

    def test_a_peer_is_drawn_but_no_sentence_and_no_failure(self):
        self.rows += [row("loop", e, 0.0, "peer") | {"within_bound": False} for e in range(13)]
        self.assertNotIn("loop", self.section())
        self.assertEqual(self.s.failures, [])
        self.assertIn(["loop", "1"], self.s.tables[0].rows)
        self.assertIn("loop", {s.name for s in self.s.figures[0].series})

    def test_a_gpu_has_its_own_column_of_the_menu(self):
        self.rows += [row("tree/plain", e, 1.0, "cuda") for e in range(13)]
        self.section()
        self.assertEqual(self.s.figures[0].menus[0], ("On", ["this machine, CPU", "this machine, GPU"]))
        self.assertEqual(len(self.s.tables), 2)

    def test_the_figure_is_drawn_and_an_infinite_condition_is_not(self):
        self.rows[0]["condition"] = None
        self.section()
        figure = self.s.figures[0]
        self.assertTrue(svg(figure))
        self.assertEqual(min(len(s.x) for s in figure.series if s.name == "tree/plain"), 12)

    def test_without_rows_it_is_empty(self):
        self.assertTrue(error_vs_condition.section([]).empty)


if __name__ == "__main__":
    unittest.main()
