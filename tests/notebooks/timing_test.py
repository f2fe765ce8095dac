"""Tests of the rule by which times are compared, with made-up times.

Run by ctest, or: build/venv/bin/python tests/notebooks/timing_test.py
"""

import itertools
import random
import unittest

import made_up
import timing


def row(seconds, low=None, high=None):
    """A row without rounds."""
    return made_up.took(seconds) | {name: value for name, value in (("low", low), ("high", high)) if value is not None}


def timed(*processes, turns=1):
    """A row with the rounds of each process."""
    seconds, low, high = timing.median_interval(processes)
    return {"rounds": [list(p) for p in processes], "turns": turns, "seconds": seconds, "low": low, "high": high}


def verdict(r, other):
    return timing.ratio(r, other).verdict


# 9.54 and 2.18 GB/s: the times of three rounds, and of five rounds in which the slower one varies.
FAST, SLOW = (4.1e-3, 4.22e-3, 4.5e-3), (13.0e-3, 18.5e-3, 24.0e-3)


class Intervals(unittest.TestCase):
    def test_the_ends_are_those_of_the_percentile_bootstrap_of_a_median(self):
        for n, low, high in ((2, 1, 2), (3, 1, 3), (5, 1, 5), (10, 2, 9), (11, 3, 9)):
            self.assertEqual(timing.interval([float(i) for i in range(n, 0, -1)]), (low, high), n)

    def test_resampling_every_possible_way_has_the_same_ends(self):
        for n in (3, 5, 6):
            medians = sorted(sorted(draw)[(n - 1) // 2] for draw in itertools.product(range(1, n + 1), repeat=n))
            low = medians[int(timing.OUTSIDE * len(medians))]
            self.assertEqual(timing.rank_of_end(n), low, n)

    def test_a_sentence_says_that_ends_without_rounds_are_percentiles_of_older_results(self):
        old = made_up.source("price_of_promise", [], "H200")
        new = made_up.source("price_of_promise", [])
        old.rows.append(made_up.took(1.0))
        new.rows.append(timed([1.0, 2.0, 3.0]))
        percentiles = "the widest ratios that the 10th and 90th percentiles of both times allow"
        self.assertEqual(timing.ends([old]), f"Ends in brackets are {percentiles}: these results are older than the code, which "
                                             "measures 95% intervals.")
        self.assertEqual(timing.ends([new]), "Ends in brackets are 95% intervals.")
        self.assertEqual(timing.ends([old, new]), "Ends in brackets are 95% intervals; with results that are older than the code "
                                                  f"(H200) they are {percentiles}.")
        self.assertEqual(timing.ends([made_up.source("price_of_promise", [])]), "")

    def test_a_single_value_decides_nothing(self):
        self.assertIsNone(timing.ratio(timed([1.0]), timed([9.0])))


class Verdicts(unittest.TestCase):
    def test_the_ends_of_the_interval_decide(self):
        for low, high, expected in ((1.001, 1.2, "faster"), (0.5, 0.999, "slower"), (0.98, 1.02, "as fast"),
                                    (1 / 1.03, 1.03, "as fast"), (0.98, 1.04, "no slower"), (0.97, 1.01, "not decided"),
                                    (0.5, 2.0, "not decided"), (1.0, 1.5, "no slower")):
            with self.subTest(low=low, high=high):
                self.assertEqual(timing.Ratio((low + high) / 2, low, high).verdict, expected)

    def test_a_speed_of_9_54_differs_from_2_18_gb_per_s(self):
        old = [row(some[1], some[0], some[2]) for some in (FAST, SLOW)]
        new = [timed(some + some[:2]) for some in (FAST, SLOW)]
        in_other_turns = [new[0], new[1] | {"turns": 2}]
        for fast, slow in (old, new, in_other_turns, (old[0], new[1])):
            self.assertEqual((verdict(fast, slow), verdict(slow, fast)), ("faster", "slower"))
            self.assertTrue(timing.is_faster(fast, slow) and not timing.is_faster(slow, fast))

    def test_one_outlier_in_11_rounds_does_not_undo_a_decision(self):
        noise = random.Random(1)
        fast, slow = ([time * noise.uniform(0.98, 1.02) for _ in range(11)] for time in (1.0, 1.2))
        for disturbed, factor in ((fast, 50), (slow, 0.02)):
            kept, disturbed[4] = disturbed[4], disturbed[4] * factor
            self.assertEqual(verdict(timed(fast), timed(slow)), "faster")
            self.assertEqual(verdict(timed(fast), timed(slow, turns=2)), "faster")
            disturbed[4] = kept

    def test_equivalence_at_3_percent(self):
        times = [1.0, 1.01, 0.99, 1.0, 1.005]
        for ratios, expected in (((1.02, 0.98, 1, 1.01, 0.99), "as fast"), ((1.2, 0.98, 1, 1.01, 0.99), "no slower"),
                                 ((1.2, 0.9, 1, 1.01, 0.99), "not decided")):
            self.assertEqual(verdict(timed(times), timed([t * r for t, r in zip(times, ratios)])), expected)

    def test_a_noisy_row_is_not_decided(self):
        noisy, steady = row(2.08e-3, 1.4e-3, 3.0e-3), row(1.51e-3, 1.45e-3, 1.6e-3)
        self.assertEqual((verdict(noisy, steady), verdict(steady, noisy)), ("not decided", "not decided"))

    def test_a_disturbance_of_a_round_hits_both_rows_of_a_pair(self):
        disturbances = (1.0, 3.0, 1.0, 0.7, 1.5)
        r, other = ([time * d for d in disturbances] for time in (1.0, 1.1))
        self.assertEqual(str(timing.ratio(timed(r), timed(other))), "1.10 [1.10, 1.10]")
        self.assertEqual(verdict(timed(r), timed(other)), "faster")
        self.assertEqual(verdict(timed(r), timed(other, turns=2)), "not decided")
        self.assertEqual(verdict(timed(r), timed(other) | {"turns": None}), "not decided")

    def test_the_values_of_several_processes_are_their_medians(self):
        processes = [[1.0, 1.0, 9.0], [2.0, 2.0, 0.1], [3.0, 3.0, 3.0], [1.5, 1.5, 1.5], [1.0, 1.0, 1.0]]
        faster = [[time / 2 for time in rounds] for rounds in processes]
        self.assertEqual(timing.ratio(timed(*faster), timed(*processes)), timing.Ratio(2, 2, 2))
        faster[2] = [3.3, 3.3, 3.3]  # one process in which it is slower
        self.assertEqual(verdict(timed(*faster), timed(*processes)), "not decided")
        found = timing.ratio(timed(*faster), timed(*processes, turns=2))
        self.assertEqual((found.low, found.high), (1.0 / 3.3, 3.0 / 0.5))

    def test_rounds_that_do_not_match_are_not_paired(self):
        self.assertEqual(timing.ratio(timed([1.0] * 5), timed([2.0] * 4)), timing.Ratio(2, 2, 2))
        self.assertIsNone(timing.paired(timed([1.0] * 5), timed([2.0] * 4)))

    def test_a_time_of_0_has_no_ratio(self):
        for pair in ((row(0.0), row(1.0)), (row(1.0), row(1.0, 0.0, 1.0)), (row(0.0), row(0.0))):
            self.assertIsNone(timing.ratio(*pair))
            self.assertFalse(timing.is_faster(*pair) or timing.is_no_slower(*pair))


class Words(unittest.TestCase):
    def test_pairs_in_words(self):
        slow, quick, loose = row(9.0), row(1.0), row(9.0, 0.5, 9.0)
        for pairs, text in (([(quick, slow)], "faster in the only case"),
                            ([(slow, quick), (slow, slow)], "slower in 1 of 2 cases, as fast in 1"),
                            ([(quick, loose)] * 3, "not decided in all 3 cases"),
                            ([(quick, row(1.0, 1.0, 1.1))], "no slower in the only case"),
                            ([(quick, slow)] * 2 + [(slow, quick), (row(0.0), slow)],
                             "faster in 2 of 4 cases, slower in 1, not decided in 1")):
            self.assertEqual(timing.in_words(pairs, "case"), text)

    def test_a_ratio_has_its_interval_and_a_verdict_that_its_numbers_do_not_show(self):
        found = timing.Ratio(1.09, 1.05, 1.13)
        self.assertEqual([str(found), found.as_fast], ["1.09 [1.05, 1.13]", "1.09 [1.05, 1.13] times as fast"])
        self.assertEqual(timing.Ratio(0.5, 0.4, 0.8).as_long, "2.00 [1.25, 2.50] times as long")
        self.assertEqual(timing.Ratio(1, 0.5, 2).as_long, "1.00 [0.50, 2.00] times as long (not decided)")
        self.assertEqual(str(timing.Ratio(1.01, 1.0021, 1.02)), "1.010 [1.002, 1.020]")
        self.assertEqual(str(timing.Ratio(41.26, 9.9, 1234.5)), "41.3 [9.90, 1,230]")

    def test_cells_of_tables(self):
        self.assertEqual(timing.cell(row(1.0), row(2.0, 1.5, 2.5)), "2.00 [1.50, 2.50]")
        self.assertEqual(timing.cell_of_times(row(2.0, 1.5, 2.5), row(1.0)), "2.00 [1.50, 2.50]")
        self.assertEqual(timing.cell(row(1.0), row(1.0)), "1.00 [1.00, 1.00] (as fast)")
        self.assertEqual([timing.cell(row(1.0), None), timing.cell(None, row(1.0))], ["-", "-"])


if __name__ == "__main__":
    unittest.main()
