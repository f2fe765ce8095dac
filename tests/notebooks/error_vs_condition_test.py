"""What the section on conditions says: made-up rows, altered one number at a time."""

import unittest

from made_up import source
import error_vs_condition
from figure import svg


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
        self.there = []

    def section(self):
        there = source("error_vs_condition", self.there, "H200")
        self.s = error_vs_condition.section([source("error_vs_condition", self.rows), there])
        return "\n".join(self.s.findings)

    def test_says_where_each_method_ends(self):
        text = self.section()
        self.assertIn("All 39 errors of samesum's methods are within their rigorous bounds.", text)
        self.assertIn("This machine, CPU: in fp32 the last right digit is lost at 10⁷ by tree/plain; at 10⁹ by "
                      "tree/kahan; up to 10¹² never by exact.", text)
        self.assertIn("exact is the correctly rounded sum in all 13 results, of conditions up to 10¹².", text)
        self.assertEqual(self.s.failures, [])
        self.assertEqual(self.s.tables[0].rows, [["exact", "over 10¹²"], ["tree/kahan", "10⁹"], ["tree/plain", "10⁷"]])

    def test_one_digit_more_ends_later(self):
        self.rows[9]["digits"] = 1.0
        self.assertIn("at 10⁹ by tree/kahan; at 10¹⁰ by tree/plain", self.section())

    def test_says_how_far_was_tried(self):
        self.rows.append(row("exact", 40, 7.2))
        self.assertIn("; up to 10⁴⁰ never by exact.", self.section())
        self.assertIn("exact is the correctly rounded sum in all 14 results, of conditions up to 10⁴⁰.",
                      self.s.findings)
        self.assertIn(["exact", "over 10⁴⁰"], self.s.tables[0].rows)
        self.rows.append(row("tree/plain", 41, 0.0))
        self.assertIn("exact is the correctly rounded sum in all 14 results, of conditions up to 10⁴⁰.", self.section())

    def test_each_place_has_its_own_sentence_and_equal_ones_are_one(self):
        self.there = [row("tree/plain", e, 8.0 - e, "cuda") for e in range(9)]
        text = self.section()
        self.assertIn("This machine, CPU: in fp32 the last right digit is lost at 10⁷ by tree/plain; at 10⁹ by", text)
        self.assertIn("H200, GPU: in fp32 the last right digit is lost at 10⁸ by tree/plain.", text)
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.assertIn("This machine, CPU; H200, GPU: in fp32 the last right digit is lost at 10⁷ by", self.section())

    def test_the_figure_says_what_it_shows_first(self):
        reading = ("This machine, CPU, fp32, order tree: at a condition of about 10¹² the lines go from 0 right digits "
                   "(tree/kahan, tree/plain) to {} right digits (exact).")
        self.section()
        self.assertEqual(self.s.figures[0].reading, reading.format("7.2"))
        self.rows[-1]["digits"] = 3.0
        self.section()
        self.assertEqual(self.s.figures[0].reading, reading.format("3"))

    def test_a_method_that_never_ends_is_told_apart(self):
        for r in self.rows:
            r["digits"] = 2.0
        self.assertIn("This machine, CPU: in fp32 no method loses its last right digit up to 10¹².", self.section())
        for r in self.rows:
            r["digits"] = 0.0
        self.assertIn("This machine, CPU: in fp32 the last right digit is lost at 1 by tree/plain, tree/kahan, exact.",
                      self.section())

    def test_an_error_beyond_its_bound_and_wrong_bits_fail(self):
        self.rows[3]["within_bound"] = False
        self.rows[-1]["bits"] = "0x3f800001"
        text = self.section()
        self.assertIn("38 of 39 errors of samesum's methods are within their rigorous bounds. Beyond: "
                      "tree/plain/fp32@cpu at condition 10³ (this machine, CPU).", text)
        self.assertIn("exact is the correctly rounded sum in 12 of 13 results", text)
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
