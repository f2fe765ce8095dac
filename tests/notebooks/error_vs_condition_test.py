"""Tests of the section on condition numbers, with made-up rows that are changed one number at a time."""

import unittest

import made_up
from figure import svg

LOST = "This machine, CPU: in fp32 … lost at condition number"


def row(method, exponent, digits, machine="cpu"):
    return {"kind": "condition", "data": "gensum", "seed": 1, "method": f"{method}/fp32@{machine}",
            "input_format": "fp32", "n": 1024, "target_condition": 10.0**exponent, "value": 1.0, "bits": "0x3f800000",
            "truth": 1.0, "truth_bits": "0x3f800000", "error_ulps": 0.5, "relative_error": 10.0**-digits,
            "absolute_error": 1e-3, "bound": 1.0, "within_bound": True, "condition": 1.1 * 10.0**exponent,
            "promise": "everywhere", "digits": digits}


class Conditions(made_up.SectionTest):
    question = "error_vs_condition"

    def setUp(self):
        self.rows = [row("tree/plain", e, max(0.0, 7.0 - e)) for e in range(13)]
        self.rows += [row("tree/kahan", e, max(0.0, 9.0 - e)) for e in range(13)]
        self.rows += [row("exact", e, 7.2) for e in range(13)]

    def test_where_each_method_loses_its_last_digit(self):
        self.check("All 39 errors of samesum's", "exact … in all 13 results … up to 10¹².",
                   f"{LOST} 10⁷ by tree/plain; 10⁹ by tree/kahan; not up to 10¹² by exact.")
        self.assertEqual(self.s.failures, [])
        self.assertEqual(self.s.tables[0].rows, [["exact", "over 10¹²"], ["tree/kahan", "10⁹"], ["tree/plain", "10⁷"]])
        verdict = "In fp32 the last correct digit is lost at condition number {}; not up to 10¹² by exact (this machine, CPU)."
        self.check(verdict=verdict.format("10⁷ by tree/plain, 10⁹ by tree/kahan"))
        self.rows[9]["digits"] = 1.0
        self.check(f"{LOST} 10⁹ by tree/kahan; 10¹⁰ by tree/plain; not up",
                   verdict=verdict.format("10⁹ by tree/kahan, 10¹⁰ by tree/plain"))

    def test_the_largest_condition_number_that_was_tried(self):
        self.rows.append(row("exact", 40, 7.2))
        self.check("; not up to 10⁴⁰ by exact.", "exact … in all 14 results … up to 10⁴⁰.")
        self.assertIn(["exact", "over 10⁴⁰"], self.s.tables[0].rows)
        self.rows.append(row("tree/plain", 41, 0.0))
        self.check("exact … in all 14 results … up to 10⁴⁰.")

    def test_each_place_has_its_own_sentence_and_equal_ones_are_merged(self):
        self.there = [row("tree/plain", e, 8.0 - e, "cuda") for e in range(9)]
        self.check(f"{LOST} 10⁷ by tree/plain; 10⁹ by",
                   "H200, GPU: in fp32 … lost at condition number 10⁸ by tree/plain.")
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.check("This machine, CPU; H200, GPU: in fp32 … condition number 10⁷")

    def test_the_finding_of_the_figure(self):
        for digits in (7.2, 3.0):
            self.rows[-1]["digits"] = digits
            self.check()
            self.assert_sentences([self.s.figures[0].finding], "This machine, CPU, fp32, order tree: … 10¹² … 0 "
                                                               f"correct digits (tree/kahan, tree/plain) to {digits:g} "
                                                               "correct digits (exact).")

    def test_methods_that_never_or_always_lose_their_last_digit(self):
        for digits, expected in ((2.0, "This machine, CPU: in fp32 no method … up to condition number 10¹²."),
                                 (0.0, f"{LOST} 1 by tree/plain, tree/kahan, exact.")):
            for r in self.rows:
                r["digits"] = digits
            self.check(expected)

    def test_an_error_beyond_its_bound_and_wrong_bits_are_failures(self):
        self.rows[3]["within_bound"] = False
        self.rows[-1]["bits"] = "0x3f800001"
        at = "tree/plain/fp32@cpu at condition number 10³"
        self.check(f"38 of 39 errors … {at} (this machine, CPU).", "exact … in 12 of 13 results")
        self.assertEqual(self.s.failures, [f"this machine, CPU: {at}: the error 0.001 exceeds its bound 1",
                                           "this machine, CPU: exact/fp32@cpu at condition number 10¹²: returned "
                                           "0x3f800001, but the exact result rounds to 0x3f800000"])

    def test_a_peer_is_drawn_without_a_sentence_or_a_failure(self):
        self.rows += [row("loop", e, 0.0, "peer") | {"within_bound": False} for e in range(13)]
        self.check()
        self.assert_no_sentences(self.s.findings, "loop")
        self.assertEqual(self.s.failures, [])
        self.assertIn(["loop", "1"], self.s.tables[0].rows)
        self.assertIn("loop", {s.name for s in self.s.figures[0].series})

    def test_a_gpu_has_its_own_menu_entry(self):
        self.rows += [row("tree/plain", e, 1.0, "cuda") for e in range(13)]
        self.check()
        self.assertEqual(self.s.figures[0].menus[0], ("Machine", ["this machine, CPU", "this machine, GPU"]))
        self.assertEqual(len(self.s.tables), 2)

    def test_an_infinite_condition_number_is_not_drawn(self):
        self.rows[0]["condition"] = None
        self.check()
        figure = self.s.figures[0]
        self.assertTrue(svg(figure))
        self.assertEqual(min(len(s.x) for s in figure.series if s.name == "tree/plain"), 12)


if __name__ == "__main__":
    unittest.main()
