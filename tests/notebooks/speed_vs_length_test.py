"""The section on speed says what its rows say: made-up rows, altered one at a time. report_test.py has more of it.

Run by ctest, or: build/venv/bin/python tests/notebooks/speed_vs_length_test.py
"""

import unittest

import made_up
from made_up import speed

READ = "This machine, 1 thread: exact/fp32@cpu reads {} GB/s at n = 2²⁰, {} of {}, … {} of {}, … {} of reading"


def bar(factor, reached, against="loop/fp32@peer"):
    return {"against": against, "factor": factor, "reached": reached,
            "holds": reached <= factor if against == "us" else reached >= factor}


class Speeds(made_up.OfSection):
    question = "speed_vs_length"

    def setUp(self):
        self.rows = [speed("exact/fp32@cpu", 8.0), speed("serial/plain/fp32@cpu", 2.0),
                     speed("tree/plain/fp32@cpu", 10.0), speed("std_reduce/fp32@peer", 1.0, verified=None),
                     speed("loop/fp32@peer", 4.0, verified=None), speed("read", 16.0, verified=None),
                     speed("exact/fp32@cpu", 99.0, n=64), speed("tree/plain/fp32@cpu", 1.0, caches="cold"),
                     speed("pairwise/plain/fp32@cpu", 50.0, data="ones")]

    def test_exact_is_compared_with_the_fastest_of_each_kind(self):
        self.tell(READ.format(8, "80%", "tree/plain/fp32@cpu", "200%", "loop/fp32@peer", "50%"))
        for i, gb_per_s in ((1, 20.0), (3, 16.0), (5, 8.2)):
            self.rows[i]["gb_per_s"] = gb_per_s
        self.tell(READ.format(8, "40%", "serial/plain/fp32@cpu", "50%", "std_reduce/fp32@peer", "98%"))
        self.rows[0]["gb_per_s"] = 4.0
        self.tell(READ.format(4, "20%", "serial/plain/fp32@cpu", "25%", "std_reduce/fp32@peer", "49%"))

    def test_60_binades_are_told_of_the_same_length(self):
        self.rows += [speed("exact/fp32@cpu", 99.0, data="60 binades", n=64)]
        self.assert_silent(self.tell().findings, "binades")
        self.rows += [speed("exact/fp32@cpu", 6.0, data="60 binades")]
        self.tell("reading … 60 binades 6 GB/s")

    def test_every_wrong_result_is_named_with_its_place_and_fails(self):
        self.tell("All 6 results … right; 2 were not checked")
        self.rows[2]["verified"] = False
        self.rows[3]["verified"] = True
        self.tell("6 of 7 results … not tree/plain/fp32@cpu (this machine, 1 thread); 1 was not checked")
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, verified=False)]
        self.rows[4]["verified"] = True
        self.tell("7 of 9 results … not tree/plain/fp32@cpu (this machine, 1 thread), exact/fp32@cuda (H200, GPU).")
        self.assertEqual(self.tell().failures,
                         ["this machine, 1 thread: tree/plain/fp32@cpu gave wrong bits for n = 1,048,576 of fp32, "
                          "normal", "H200, GPU: exact/fp32@cuda gave wrong bits for n = 1,048,576 of fp32, normal"])

    def test_the_bars_of_each_place_are_told_with_the_farthest_first(self):
        told = "This machine, 1 thread: {} on speed … {} on latency … "
        self.rows[0]["bars"] = [bar(1.0, 2.0)]
        self.there = [speed("exact/fp32@cuda", 900.0, threads=0, bars=[bar(1.0, 0.5), bar(1.0, 1.5)])]
        self.tell("This machine, 1 thread: 1 of 1 bar on speed",
                  "H200, GPU: 1 of 2 bars on speed … exact/fp32@cuda in DRAM: 0.5 of 1 times loop.")
        self.rows[6].update(place="latency", bars=[bar(5.0, 4.0, "us")])
        self.tell(told.format("1 of 1 bar", "1 of 1 bar"))
        self.rows[6]["bars"] = [bar(5.0, 10.0, "us")]  # half of what was asked for
        late = "exact/fp32@cpu at n = 64: 10 of at most 5 µs"
        for reached, missed in ((0.75, (late, "tree/plain/fp32@cpu in DRAM: 0.75 of 1 times loop")),
                                (0.25, ("tree/plain/fp32@cpu in DRAM: 0.25 of 1 times loop", late))):
            self.rows[2]["bars"] = [bar(1.0, reached)]
            self.tell(told.format("1 of 2 bars", "0 of 1 bar") + "; ".join(missed))

    def test_the_figure_says_what_it_shows_first(self):
        told = "This machine, 1 thread, fp32, normal, hot, order tree, … at n = 2²⁰ … {} GB/s ({}) to {} GB/s (read)"
        self.assert_tells([self.tell().figures[0].reading], told.format(8, "exact", 16))
        self.rows[2]["gb_per_s"] = 7.0
        self.rows[5]["gb_per_s"] = 20.0
        self.assert_tells([self.tell().figures[0].reading], told.format(7, "tree/plain", 20))


if __name__ == "__main__":
    unittest.main()
