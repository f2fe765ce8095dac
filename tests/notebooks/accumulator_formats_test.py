"""What the section on 16-bit accumulators says: made-up rows, altered one number at a time."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import accumulator_formats  # noqa: E402
import results  # noqa: E402
from figure import svg  # noqa: E402


def row(case, method, value, truth, input_format="bf16", published=None):
    format = method.split("@")[0].split("/")[-1]
    bits = "0x" + "0" * {"fp16": 4, "bf16": 4, "fp32": 8, "fp64": 16}[format]
    error = None if value is None else abs(value - truth)
    return {"kind": "story", "case": case, "seed": 1, "method": method, "input_format": input_format, "n": 100000,
            "value": value, "bits": bits, "truth": truth, "truth_bits": bits, "error_ulps": error,
            "relative_error": error and error / truth if truth else error, "absolute_error": error, "bound": None,
            "within_bound": True, "condition": 1.0, "promise": "everywhere", "published": published,
            "reproduces": None if published is None else value == published}


class Formats(unittest.TestCase):
    def setUp(self):
        self.rows = [row("ones", "serial/plain/bf16@cpu", 256.0, 1e5), row("ones", "serial/kahan/bf16@cpu", 65536.0, 1e5),
                     row("ones", "serial/plain/fp32@cpu", 1e5, 1e5), row("ones", "tree/plain/bf16@cpu", 1e5, 1e5),
                     row("softmax", "serial/plain/bf16@cpu", 7.0, 10.0),
                     row("softmax", "serial/plain/fp32@cpu", 9.999, 10.0),
                     row("overflow", "serial/plain/fp16@cpu", None, 0.0, "fp16"),
                     row("accuracy", "serial/plain/fp32@cpu", 1000.0009765625, 1000.001, "fp32", 1000.0009765625),
                     row("accuracy", "serial/plain/fp16@cpu", 1000.0, 1000.001, "fp16", 1000.0)]
        for r in self.rows:
            self.assertIsNone(results.problem(r, ["story"]))

    def section(self):
        self.s = accumulator_formats.section([results.Source("this machine", "accumulator_formats", pathlib.Path(), {},
                                                             self.rows)])
        return "\n".join(self.s.findings)

    def test_tells_where_ones_stagnate(self):
        self.assertIn("The sum of 100,000 ones in bf16 is 256 with serial/plain/bf16, 65,536 with serial/kahan/bf16, "
                      "100,000 with serial/plain/fp32.", self.section())
        self.rows[1]["value"] = 512.0
        self.assertIn("512 with serial/kahan/bf16", self.section())
        self.rows[1]["value"] = None
        self.assertIn("not finite with serial/kahan/bf16", self.section())

    def test_tells_what_cures_it(self):
        self.assertIn("The worst finite relative error of a loop, serial/plain, is 1 for bf16 (of ones), 0.0001 for "
                      "bf16 elements in fp32 (of softmax)", self.section())
        self.rows[2]["relative_error"] = 0.5
        self.assertIn("0.5 for bf16 elements in fp32 (of ones)", self.section())

    def test_tells_what_is_reproduced_and_fails_where_it_is_not(self):
        self.assertIn("All 2 published outputs are reproduced: 1000.0009765625 (accuracy, fp32), 1000.0 (accuracy, "
                      "fp16).", self.section())
        self.assertEqual(self.s.failures, [])
        self.rows[-1].update(value=1001.0, reproduces=False)
        self.assertIn("1 of 2 published outputs are reproduced: 1000.0009765625 (accuracy, fp32); "
                      "serial/plain/fp16@cpu of accuracy gave 1,001, not 1000.0.", self.section())
        self.assertEqual(self.s.failures, ["this machine, CPU: serial/plain/fp16@cpu of accuracy: gave 1,001, but "
                                           "1000.0 was published"])

    def test_tells_what_overflows_without_need(self):
        self.assertIn("1 sum overflowed though the true sum is finite: serial/plain/fp16@cpu of overflow.",
                      self.section())
        self.rows[6]["truth"] = None  # it is beyond the format's range
        self.assertNotIn("overflowed", self.section())

    def test_an_error_beyond_its_bound_fails(self):
        self.rows[0].update(within_bound=False, bound=1.0)
        self.assertIn("8 of 9 errors of samesum's methods are within their rigorous bounds", self.section())
        self.assertEqual(self.s.failures, ["this machine, CPU: serial/plain/bf16@cpu of ones: the error 99,700 exceeds "
                                           "its bound 1"])

    def test_the_table_has_the_exact_sum_first_and_the_digits_of_each_format(self):
        self.section()
        bf16, fp16, fp32 = self.s.tables
        self.assertEqual(bf16.rows[0], ["the exact sum", "100,000", "10"])
        self.assertIn(["serial/plain/fp32@cpu", "100,000", "9.999"], bf16.rows)
        self.assertIn(["serial/plain/fp32@cpu", "1000.00098"], fp32.rows)
        self.assertIn(["serial/plain/fp16@cpu", "not finite", "1,000"], fp16.rows)

    def test_the_figure_shows_digits_and_the_result_beside_them(self):
        self.section()
        figure = self.s.figures[0]
        self.assertTrue(svg(figure))
        bars = {(s.name, s.on[2]): (s.x[0], s.text[0]) for s in figure.series}
        self.assertEqual(bars["tree/plain/bf16@cpu", "ones"], (2.408, "100,000"), "all digits of bf16")
        self.assertEqual(bars["serial/plain/fp16@cpu", "overflow"], (0.0, "not finite"))
        self.assertEqual(bars["serial/plain/fp32@cpu", "softmax"], (4.0, "9.999"))

    def test_without_rows_it_is_empty(self):
        self.assertTrue(accumulator_formats.section([]).empty)


if __name__ == "__main__":
    unittest.main()
