"""The section on speed says what its rows say: made-up rows, altered one at a time. report_test.py has more of it.

Run by ctest, or: build/venv/bin/python tests/notebooks/speed_vs_length_test.py
"""

import unittest

from made_up import source, speed
import speed_vs_length

READ = "This machine, 1 thread: exact/fp32@cpu reads {} GB/s at n = 2²⁰, {} of {}, the fastest plain sum, {} of {}, " \
       "the fastest of other libraries, {} of reading and nothing else."


def bar(factor, reached, against="loop/fp32@peer"):
    return {"against": against, "factor": factor, "reached": reached,
            "holds": reached <= factor if against == "us" else reached >= factor}


class Speeds(unittest.TestCase):
    def setUp(self):
        self.rows = [speed("exact/fp32@cpu", 8.0), speed("serial/plain/fp32@cpu", 2.0),
                     speed("tree/plain/fp32@cpu", 10.0), speed("std_reduce/fp32@peer", 1.0, verified=None),
                     speed("loop/fp32@peer", 4.0, verified=None), speed("read", 16.0, verified=None),
                     speed("exact/fp32@cpu", 99.0, n=64), speed("tree/plain/fp32@cpu", 1.0, caches="cold"),
                     speed("pairwise/plain/fp32@cpu", 50.0, data="ones")]
        self.there = []

    def section(self):
        return speed_vs_length.section([source("speed_vs_length", self.rows),
                                        source("speed_vs_length", self.there, "H200")])

    def assert_found(self, sentence):
        self.assertIn(sentence, self.section().findings)

    def test_exact_is_compared_with_the_fastest_of_each_kind(self):
        self.assert_found(READ.format(8, "80%", "tree/plain/fp32@cpu", "200%", "loop/fp32@peer", "50%"))
        self.rows[1]["gb_per_s"] = 20.0
        self.rows[3]["gb_per_s"] = 16.0
        self.rows[5]["gb_per_s"] = 8.2
        self.assert_found(READ.format(8, "40%", "serial/plain/fp32@cpu", "50%", "std_reduce/fp32@peer", "98%"))
        self.rows[0]["gb_per_s"] = 4.0
        self.assert_found(READ.format(4, "20%", "serial/plain/fp32@cpu", "25%", "std_reduce/fp32@peer", "49%"))

    def test_60_binades_are_told_of_the_same_length(self):
        self.rows += [speed("exact/fp32@cpu", 99.0, data="60 binades", n=64)]
        self.assertNotIn("binades", self.section().findings[0])
        self.rows += [speed("exact/fp32@cpu", 6.0, data="60 binades")]
        self.assertIn("nothing else; on 60 binades 6 GB/s.", self.section().findings[0])

    def test_every_wrong_result_is_named_with_its_place(self):
        self.assert_found("All 6 results whose bits were checked are right; 2 were not checked.")
        self.rows[2]["verified"] = False
        self.rows[3]["verified"] = True
        self.assert_found("6 of 7 results whose bits were checked are right; not tree/plain/fp32@cpu (this machine, 1 "
                          "thread); 1 was not checked.")
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, verified=False)]
        self.rows[4]["verified"] = True
        self.assert_found("7 of 9 results whose bits were checked are right; not tree/plain/fp32@cpu (this machine, 1 "
                          "thread), exact/fp32@cuda (H200, GPU).")
        self.assertEqual(self.section().failures,
                         ["this machine, 1 thread: tree/plain/fp32@cpu gave wrong bits for n = 1,048,576 of fp32, "
                          "normal", "H200, GPU: exact/fp32@cuda gave wrong bits for n = 1,048,576 of fp32, normal"])

    def test_the_bars_are_told_with_the_farthest_first(self):
        told = "This machine, 1 thread: {} on speed and {} on latency held"
        self.rows[0]["bars"] = [bar(1.0, 2.0)]
        self.rows[6].update(place="latency", bars=[bar(5.0, 4.0, "us")])
        self.assert_found(told.format("1 of 1 bar", "1 of 1 bar") + ".")
        self.rows[6]["bars"] = [bar(5.0, 10.0, "us")]  # half of what was asked for
        self.rows[2]["bars"] = [bar(1.0, 0.75)]
        self.assert_found(told.format("1 of 2 bars", "0 of 1 bar") + ". Missed: exact/fp32@cpu at n = 64: 10 of at "
                                                                     "most 5 µs; tree/plain/fp32@cpu in DRAM: 0.75 of "
                                                                     "1 times loop.")
        self.rows[2]["bars"] = [bar(1.0, 0.25)]
        self.assert_found(told.format("1 of 2 bars", "0 of 1 bar") + ". Missed: tree/plain/fp32@cpu in DRAM: 0.25 of 1 "
                          "times loop; exact/fp32@cpu at n = 64: 10 of at most 5 µs.")

    def test_bars_of_two_machines_are_told_apart(self):
        self.rows[0]["bars"] = [bar(1.0, 2.0)]
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, bars=[bar(1.0, 0.5), bar(1.0, 1.5)])]
        self.assert_found("This machine, 1 thread: 1 of 1 bar on speed held.")
        self.assert_found("H200, GPU: 1 of 2 bars on speed held. Missed: exact/fp32@cuda in DRAM: 0.5 of 1 times loop.")

    def test_the_figure_says_what_it_shows_first(self):
        reading = "This machine, 1 thread, fp32, normal, hot, order tree, speed: at n = 2²⁰ the lines go from {} to " \
                  "{} GB/s (read)."
        self.assertEqual(self.section().figures[0].reading, reading.format("8 GB/s (exact)", 16))
        self.rows[2]["gb_per_s"] = 7.0
        self.rows[5]["gb_per_s"] = 20.0
        self.assertEqual(self.section().figures[0].reading, reading.format("7 GB/s (tree/plain)", 20))


if __name__ == "__main__":
    unittest.main()
