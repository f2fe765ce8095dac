"""Tests of the rule by which times are compared, with made-up times.

Run by ctest, or: build/venv/bin/python tests/notebooks/timing_test.py
"""

import unittest

import made_up
import timing


def row(seconds, low=None, high=None):
    return made_up.took(seconds) | {name: value for name, value in (("low", low), ("high", high)) if value is not None}


class Times(unittest.TestCase):
    def test_times_differ_if_the_gap_between_their_ranges_is_as_wide_as_either(self):
        for other, ratio in ((row(3.0), 3), (row(1.0), None), (row(2.0, 1.0, 2.2), None), (row(2.0, 0.9, 3.0), None),
                             (row(2.0, 1.5, 2.1), 2), (row(2.0, 1.4, 2.1), None), (row(0.5, 0.4, 0.6), 0.5),
                             (row(2.0, 1.1, 2.0), None), (row(30.0, 20.0, 40.0), 30)):
            with self.subTest(other):
                self.assertEqual(timing.speed_ratio(row(1.0), other), ratio)
                self.assertEqual(timing.speed_ratio(other, row(1.0)), ratio and 1 / ratio)
                self.assertEqual(timing.is_faster(row(1.0), other), (ratio or 1) > 1)

    def test_a_time_of_0_differs_from_none(self):
        for pair in ((row(0.0), row(1.0)), (row(1.0), row(1.0, 0.0, 1.0)), (row(0.0), row(0.0))):
            self.assertIsNone(timing.speed_ratio(*pair))

    def test_pairs_in_words(self):
        slow, quick, loose = row(9.0), row(1.0), row(9.0, 1.0, 9.0)
        for pairs, text in (([(quick, slow)], "faster in the only case"),
                            ([(slow, quick), (slow, slow)], "slower in 1 of 2 cases, not measurably different in 1"),
                            ([(quick, loose)] * 3, "not measurably different in all 3 cases"),
                            ([(quick, slow)] * 2 + [(slow, quick), (loose, slow)],
                             "faster in 2 of 4 cases, slower in 1, not measurably different in 1")):
            self.assertEqual(timing.in_words(pairs, "case"), text)
        self.assertEqual([timing.text(None), timing.text(1.234, 2)], ["≈ 1", "1.2"])


if __name__ == "__main__":
    unittest.main()
