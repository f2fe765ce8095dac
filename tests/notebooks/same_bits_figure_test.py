"""Tests of same_bits_figure.py: bars lie where the results do, and the committed figure is that of the committed results.

Run by ctest, or: build/venv/bin/python tests/notebooks/same_bits_figure_test.py
"""

import pathlib
import re
import tempfile
import unittest
import unittest.mock

import made_up
from made_up import spread
import results
import same_bits_figure
from same_bits_figure import EXACT, SHOWN

ULP = 2.0**-23


class SameBitsFigure(unittest.TestCase):
    def setUp(self):
        self.rows = {m: spread(m, "everywhere", axis="alignment") for m in SHOWN}

    def picture(self):
        source = made_up.source("spread_over_runs", list(self.rows.values()))
        return same_bits_figure.figure(same_bits_figure.spreads(source), "a GPU")

    def dots(self):
        """{label: [x of each dot]}"""
        found = {}
        for at, label in re.findall(r'<circle cx="([^"]+)"[^>]*><title>(.*?): ', self.picture()):
            found.setdefault(label, []).append(float(at))
        return found

    def test_a_dot_is_as_many_ulps_from_the_exact_sum_as_its_result(self):
        self.rows["cub/run_to_run/fp32@peer"].update(lowest=1 - 4 * ULP, highest=1 + 8 * ULP)
        dots = self.dots()
        zero, = set(dots["samesum, exact"])
        low, high = dots["CUB, run_to_run (its default)"]
        self.assertLess(low, zero)
        self.assertAlmostEqual(high - zero, 2 * (zero - low), delta=0.3)

    def test_what_lies_beyond_the_axis_is_an_arrow_with_its_distance(self):
        self.rows["cub/not_guaranteed/fp32@peer"].update(lowest=1 - 40 * ULP)
        self.assertEqual(len(self.dots()["CUB, not_guaranteed"]), 1)
        self.assertIn(">-40</text>", self.picture())

    def test_counts_the_different_results(self):
        self.rows["atomic_element/plain/fp32@cuda"].update(distinct_bits=7)
        self.assertEqual(self.picture().count('font-weight="bold">7</text>'), 1)
        self.assertEqual(self.picture().count('font-weight="bold">1</text>'), len(SHOWN) - 1)

    def test_a_missing_method_and_unequal_numbers_of_calls_are_refused(self):
        self.rows[EXACT].update(runs=9)
        with self.assertRaisesRegex(results.Refused, "numbers of calls"):
            self.picture()
        del self.rows[EXACT]
        with self.assertRaisesRegex(results.Refused, EXACT):
            self.picture()

    def test_the_committed_figure_is_that_of_the_committed_results(self):
        committed = same_bits_figure.TARGET.read_text()
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(
                same_bits_figure, "TARGET", pathlib.Path(folder) / "out.svg"):
            same_bits_figure.main()
            self.assertEqual(same_bits_figure.TARGET.read_text(), committed)


if __name__ == "__main__":
    unittest.main()
