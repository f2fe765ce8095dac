"""Tests of error_figure.py: the figure has a dot for every method at its error.

Run by ctest, or: build/venv/bin/python tests/notebooks/error_figure_test.py
"""

import contextlib
import io
import json
import pathlib
import re
import tempfile
import unittest

import made_up
from made_up import ROOT, comparison, measured
import error_figure


class ErrorFigure(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.methods = [measured("serial/plain/fp32@cpu", "everywhere", 40),
                        measured("exact/fp32@cpu", "order_free", 0),
                        measured("tree/plain/fp32@cpu", "everywhere", 2),
                        measured("tree/plain/fp16@cpu", "everywhere", 200),
                        measured("tree/plain/fp32@cuda", "everywhere", 3), measured("loop/fp32@peer", "none", 5)]

    def run_on(self, data="up.f32"):
        rows = [comparison("made/other.f32", self.methods[:1]), comparison("made/up.f32", self.methods)]
        (self.folder / "results.jsonl").write_text("".join(json.dumps(made_up.stored(r)) + "\n" for r in rows))
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.code = error_figure.main([str(self.folder / "results.jsonl"), data, str(self.folder / "out.svg")])
        self.err = err.getvalue()
        return (self.folder / "out.svg").read_text() if self.code == 0 else ""

    def dots(self, picture):
        """{method: (x, y, colour, error)} from the dots and their hover texts."""
        found = re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"[^>]*fill="([^"]+)"[^>]*><title>([^<]*)', picture)
        return {text.split(":")[0]: (float(x), float(y), colour, text.split(": ")[1]) for x, y, colour, text in found}

    def test_has_a_dot_per_cpu_method_with_smaller_errors_further_left_and_above(self):
        dots = self.dots(self.run_on())
        self.assertEqual(list(dots), ["exact/fp32@cpu", "tree/plain/fp32@cpu", "tree/plain/fp16@cpu",
                                      "serial/plain/fp32@cpu"])
        (x0, y0, *_), (x1, y1, c1, _), (x2, y2, c2, _), (x3, y3, c3, _) = dots.values()
        self.assertTrue(x0 < x1 < x3 < x2 and y0 < y1 == y2 < y3, dots)
        self.assertEqual(c1, c3)
        self.assertNotEqual(c1, c2)
        self.assertEqual(dots["tree/plain/fp32@cpu"][3], str(2 * 2.0**-23))

    def test_a_result_that_is_not_finite_is_at_the_right_and_one_without_relative_error_is_missing(self):
        self.methods[0].update(relative_error=None)
        self.methods[2].update(value=None, relative_error=None)
        dots = self.dots(self.run_on())
        self.assertEqual(list(dots), ["exact/fp32@cpu", "tree/plain/fp32@cpu", "tree/plain/fp16@cpu"])
        self.assertEqual(dots["tree/plain/fp32@cpu"][::3], (820.0, "not finite"))

    def test_says_which_methods_round_the_elements_first(self):
        self.assertIn(">Every method in fp16 or bf16 first rounds each element to its format, except exact, which rounds only "
                      "its result.</text>", self.run_on())
        self.assertIn("Every method in fp16, bf16 or fp32 first", error_figure.input_text("fp64"))
        self.assertIn("Every method in fp16 first", error_figure.input_text("bf16"))
        self.assertIn("Every method in bf16 first", error_figure.input_text("fp16"))

    def test_a_missing_data_set_is_an_error_message_of_one_line(self):
        self.run_on("third.f32")
        self.assertEqual((self.code, self.err.count("\n")), (2, 1))
        self.assertIn("results.jsonl: no comparison for third.f32", self.err)

    def test_the_command_in_the_help_makes_the_committed_figure(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaises(SystemExit):
            error_figure.main(["--help"])
        results, data, picture = re.search(r"error_figure\.py (\S+) (\S+) (notebooks/\S+)", out.getvalue()).groups()
        error_figure.main([str(ROOT / results), data, str(self.folder / "out.svg")])
        self.assertEqual((self.folder / "out.svg").read_text(), (ROOT / picture).read_text())


if __name__ == "__main__":
    unittest.main()
