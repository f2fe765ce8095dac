"""Tests of the section on 16-bit accumulators, with made-up rows that are changed one number at a time."""

import unittest

import made_up
from figure import svg

CPU = "This machine, CPU"


def row(case, method, value, truth, input_format="bf16", published=None):
    format = method.split("@")[0].split("/")[-1]
    bits = "0x" + "0" * {"fp16": 4, "bf16": 4, "fp32": 8, "fp64": 16}[format]
    error = None if value is None else abs(value - truth)
    return {"kind": "story", "case": case, "seed": 1, "method": method, "input_format": input_format, "n": 100000,
            "value": value, "bits": bits, "truth": truth, "truth_bits": bits, "error_ulps": error,
            "relative_error": error and error / truth if truth else error, "absolute_error": error, "bound": None,
            "within_bound": True, "condition": 1.0, "promise": "everywhere", "published": published,
            "reproduces": None if published is None else value == published}


class Formats(made_up.SectionTest):
    question = "accumulator_formats"

    def setUp(self):
        self.rows = [row("ones", "serial/plain/bf16@cpu", 256.0, 1e5), row("ones", "serial/kahan/bf16@cpu",
                                                                                   65536.0, 1e5),
                     row("ones", "serial/plain/fp32@cpu", 1e5, 1e5), row("ones", "tree/plain/bf16@cpu", 1e5, 1e5),
                     row("softmax", "serial/plain/bf16@cpu", 7.0, 10.0),
                     row("softmax", "serial/plain/fp32@cpu", 9.999, 10.0),
                     row("overflow", "serial/plain/fp16@cpu", None, 0.0, "fp16"),
                     row("overflow", "exact/fp32@cpu", 1e5, 1e5, "fp16"),
                     row("accuracy", "serial/plain/fp32@cpu", 1000.0009765625, 1000.001, "fp32", 1000.0009765625),
                     row("accuracy", "serial/plain/fp16@cpu", 1000.0, 1000.001, "fp16", 1000.0)]

    def test_sums_of_ones(self):
        expected = (f"{CPU}: … 100,000 ones in bf16 is 256 with serial/plain/bf16, {{}} with serial/kahan/bf16, "
                    "100,000 with")
        self.check(verdict="100,000 ones in bf16 add up to 256 in a loop, and to 100,000 if its accumulator has fp32 "
                           "(this machine, CPU).")
        self.rows[0]["value"] = 128.0
        self.check(verdict="add up to 128 in a loop")
        self.rows[0]["value"] = 256.0
        for value, text in ((65536.0, "65,536"), (512.0, "512"), (None, "not finite")):
            self.rows[1]["value"] = value
            self.check(expected.format(text))

    def test_each_place_has_its_own_sentences_and_equal_ones_are_merged(self):
        self.there = [row("ones", "serial/plain/bf16@cuda", 128.0, 1e5) | {"n": 5}]
        self.check("H200, GPU: … 5 ones in bf16 is 128 with serial/plain/bf16.")
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.check(f"{CPU}; H200, GPU: … 100,000 ones in bf16 is 256 with", f"{CPU}; H200, GPU: the largest finite")
        self.there = [row("accuracy", "serial/plain/fp32@cpu", 1000.0, 1000.001, "fp32", 1000.5)]
        self.check("H200, CPU: 0 of 1 published output … serial/plain/fp32@cpu on accuracy returned 1,000 instead of "
                   "1000.5.")

    def test_the_errors_of_a_loop_in_16_bits_and_in_fp32(self):
        self.check(f"{CPU}: … (serial/plain) is 1 for bf16 (on ones), 0.0001 for bf16 elements added in fp32 (on "
                   "softmax)")
        self.rows[2]["relative_error"] = 0.5
        self.check("0.5 for bf16 elements added in fp32 (on ones)")

    def test_published_outputs_that_are_not_reproduced_are_failures(self):
        self.check(f"{CPU}: both published outputs … 1000.0009765625 (accuracy, fp32), 1000.0 (accuracy, fp16).")
        self.assertEqual(self.s.failures, [])
        self.rows[-1].update(value=1001.0, reproduces=False)
        wrong = "serial/plain/fp16@cpu on accuracy"
        self.check(f"{CPU}: 1 of 2 published … 1000.0009765625 (accuracy, fp32); {wrong} returned 1,001 instead of "
                   "1000.0.")
        self.assertEqual(self.s.failures, [f"this machine, CPU: {wrong}: returned 1,001, but 1000.0 was published"])

    def test_sums_that_overflow_although_the_exact_sum_is_finite(self):
        self.check("1 sum overflowed … serial/plain/fp16@cpu on overflow (this machine, CPU).")
        self.rows.append(self.rows[6])
        self.check("2 sums overflowed")
        self.rows.pop()
        self.rows[6]["truth"] = None  # beyond the range of the format
        self.check()
        self.assert_no_sentences(self.s.findings, "overflowed")

    def test_an_error_beyond_its_bound_is_a_failure(self):
        self.rows[0].update(within_bound=False, bound=1.0)
        wrong = "serial/plain/bf16@cpu on ones"
        self.check(f"Beyond the bound: {wrong} (this machine, CPU).")
        self.assertEqual(self.s.failures, [f"this machine, CPU: {wrong}: the error 99,700 exceeds its bound 1"])

    def test_the_table_has_the_exact_sum_first_and_the_digits_of_each_format(self):
        self.check()
        bf16, fp16, fp32 = self.s.tables
        self.assertEqual(bf16.rows[0], ["exact sum", "100,000", "10"])
        self.assertIn(["serial/plain/fp32@cpu", "100,000", "9.999"], bf16.rows)
        self.assertIn(["serial/plain/fp32@cpu", "1000.00098"], fp32.rows)
        self.assertIn(["serial/plain/fp16@cpu", "not finite", "1,000"], fp16.rows)

    def test_the_figure_shows_digits_and_the_result(self):
        self.check()
        figure = self.s.figures[0]
        self.assertTrue(svg(figure))
        bars = {(s.name, s.on[2]): (s.x[0], s.text[0]) for s in figure.series}
        self.assertEqual(bars["tree/plain/bf16@cpu", "ones"], (2.408, "100,000"), "all digits of bf16")
        self.assertEqual(bars["serial/plain/fp16@cpu", "overflow"], (0.0, "not finite"))
        self.assertEqual(bars["serial/plain/fp32@cpu", "softmax"], (4.0, "9.999"))

    def test_methods_with_one_result_share_a_bar_which_is_not_alone(self):
        self.rows += [row("softmax", f"{order}/{accumulator}/bf16@cpu", 9.9, 10.0)
                      for order, accumulator in (("tree", "kahan"), ("pairwise", "kahan"), ("tree", "plain"))]
        self.rows.append(row("softmax", "exact/bf16@cpu", 9.9, 10.0))
        bars = [(s.y, s.names, s.x) for s in self.check().figures[0].series if s.on[2] == "softmax"]
        self.assertEqual(bars[1], (["exact and 3 more"], ["exact", "tree/kahan", "pairwise/kahan", "tree/plain"],
                                   [2.0]))
        self.assertEqual(len(bars), 3)
        self.assertNotIn("accuracy", {s.on[2] for s in self.s.figures[0].series}, "one method per format")

    def test_an_exact_sum_of_0_has_all_digits(self):
        self.rows += [row("cancelled", f"serial/{accumulator}/bf16@cpu", 0.0, 0.0) | {"relative_error": None}
                      for accumulator in ("plain", "kahan")]
        self.check()
        self.assertEqual(next(s.x for s in self.s.figures[0].series if s.on[2] == "cancelled"), [2.408])

    def test_the_finding_of_the_figure(self):
        for error, digits in ((self.rows[5]["relative_error"], "4"), (1e-6, "6")):
            self.rows[5]["relative_error"] = error
            self.check()
            self.assert_sentences([self.s.figures[0].finding], f"{CPU}, bf16, softmax: … 0.52 correct digits "
                                                               f"(serial/plain) to {digits} correct digits "
                                                               "(serial/plain/fp32).")


if __name__ == "__main__":
    unittest.main()
