"""Tests of the verdicts on error, spread and speed, which a run prints, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/headlines_test.py
"""

import importlib
import unittest

import made_up
from made_up import at_speed, result, source, speed, spread
import headlines
from section import Section


def errors(scale=1.0, n=1024):
    return [{"kind": "error", "data": data, "seed": 1}
            | result(f"{algorithm}/fp32@cpu", n, ulps * scale * factor, promise)
            for data, factor in (("normal", 1), ("uniform", 2), ("ones", 8))
            for algorithm, ulps, promise in (("serial/plain", 40, "everywhere"), ("tree/plain", 2, "everywhere"),
                                             ("exact", 0.25, "order_free"))]


class Headlines(made_up.SentenceTest):
    def assert_finding(self, question, expected, *sources):
        """Checks the verdict of a section; None stands for none. Each source has the rows of one machine."""
        self.section = importlib.import_module(question).section([
            source(question, rows, machine) for rows, machine in zip(sources, ("this machine", "H200", "H200"))])
        if expected:
            self.assert_sentences([self.section.verdict], expected)
        else:
            self.assertEqual(self.section.verdict, "")

    def test_the_first_three_verdicts_are_on_own_data_errors_spreads_and_speeds(self):
        names = ["order", "speed", "spread", "error", "own-data"]
        sections = [Section(name, name, f"{name}?", "", "", verdict=f"So {name}.") for name in names]
        self.assertEqual([question for question, _ in headlines.headlines(sections)], ["own-data?", "error?", "spread?"])
        sections[3].verdict = ""
        self.assertEqual(headlines.headlines(sections)[1:], [("spread?", "So spread."), ("speed?", "So speed.")])
        self.assertEqual(headlines.headlines(sections[:1]), [("order?", "So order.")])
        self.assertEqual(headlines.headlines([]), [])

    def test_how_accurate(self):
        def check(expected, *sources):
            self.assert_finding("error_vs_length", expected, *sources)

        expected = ("For {} fp32 numbers, … {} with a plain loop, {} with a tree … and {} with the exact sum ({}, "
                    "{})")
        at, all_of_them = "this machine", "medians over 3 data sets"
        here = errors()
        check(expected.format("2¹⁰", 80, 4, 0.5, at, all_of_them), here)
        check(expected.format("2¹⁰", 80, 4, 0.5, at, all_of_them), here, errors(3, 4096))
        check(expected.format("2¹²", 240, 12, 1.5, "H200", all_of_them), [], here, errors(3, 4096))
        here[1]["error_ulps"] = here[4]["error_ulps"] = 7.0
        check(expected.format("2¹⁰", 80, 7, 0.5, at, all_of_them), here)
        check(expected.format("2¹⁰", 40, 7, 0.25, at, "data: normal"), here[:3])
        # Two values have no median: the sentence gives their range, and names the data on which the loop may stagnate.
        two = [r | ({"marked": "stagnation"} if r["data"] == "uniform" else {}) for r in here[:6]]
        check(expected.format("2¹⁰", "40 to 80", 7, "0.25 to 0.5", at,
                              "data: normal and uniform; the loop may stagnate on uniform"), two)
        check(None, here[:2])
        # The largest error for the same elements counts, on CPU or GPU.
        worse = here[3] | {"method": "serial/plain/fp32@cuda", "error_ulps": 99.0}
        check(expected.format("2¹⁰", 99, 7, 0.5, at, all_of_them), here + [worse])
        lost = [r | {"error_ulps": None} for r in here if "serial" in r["method"]]
        check(expected.format("2¹⁰", "infinite", 7, 0.5, at, all_of_them),
              lost + [r for r in here if "serial" not in r["method"]])
        # Elements of another format, and a length at which not all three were measured, are ignored.
        more = [here[0] | {"input_format": "fp16", "error_ulps": 1e6}, here[0] | {"n": 1 << 20}]
        check(expected.format("2¹⁰", 80, 7, 0.5, at, all_of_them), here + more)

    def test_how_reproducible(self):
        def check(expected, *sources):
            self.assert_finding("spread_over_runs", expected, *sources)

        expected = "{} with a promise … the same bits in {} runs (this machine{}); in repeated calls, {} returned more than one result"
        none = "0 of 1 other method of samesum and 0 of 1 call of other libraries"
        both = "the only other method of samesum and the only call of other libraries"
        one = "0 of 1 other method of samesum and the only call of other libraries"
        here = [spread("exact/fp32@cpu", "order_free"), spread("tree/plain/fp32@cpu", "everywhere"),
                spread("atomic/plain/fp32@cpu", "none"), spread("tbb/fp32@peer", "none"),
                spread("tree/plain/fp32@cpu", "everywhere", "permutation", 9)]
        there = [r | {"runs": 20} for r in here]
        here.append(spread("atomic/plain/fp32@cpu", "none", "threads", 9))  # calls with other threads are not repeated calls
        check(expected.format("Both methods", 20, "", none), here)
        check(expected.format("Both methods", 60, ", H200", none), here, there)
        there[3]["distinct_bits"] = 7
        here[2]["distinct_bits"] = 3
        check(expected.format("Both methods", 60, ", H200", both) + " … 3 in 10 runs (atomic/plain/fp32@cpu on normal, this machine)",
              here, there)
        here[2]["distinct_bits"] = 1
        most = " … 7 in 20 runs (tbb/fp32@peer on normal, H200)"
        check(expected.format("Both methods", 60, ", H200", one) + most, here, there)
        there[1]["distinct_bits"] = 2
        check(expected.format("1 of 2 methods", 60, ", H200", one) + most, here, there)
        here[2]["distinct_bits"] = 3
        check("In repeated calls, the only other method of samesum returned more … 3 in 10 runs (atomic/plain/fp32@cpu on normal, this "
              "machine)", here[2:3])

    def test_how_fast(self):
        def check(expected, *sources):
            self.assert_finding("speed_vs_length", expected, *sources)

        expected = ("he exact sum reads {} GB/s (this machine, CPU, 1 thread, n = 2²⁰), {} … times the speed of the "
                    "fastest plain sum")
        rows = [speed("exact/fp32@cpu", 8.0), speed("tree/plain/fp32@cpu", 10.0), speed("serial/plain/fp32@cpu", 2.0),
                speed("tree/kahan/fp32@cpu", 80.0), speed("serial/plain/fp32@cpu", 99.0, n=64)]
        check(expected.format(8, "0.80"), rows)
        # Cold caches, other data, more threads and other formats are ignored.
        others = [speed(method, 50.0, **more) for method in ("exact/fp32@cpu", "pairwise/plain/fp32@cpu")
                  for more in ({"caches": "cold"}, {"data": "60 binades"}, {"threads": 2}, {"input_format": "fp16"})]
        check(expected.format(8, "0.80"), others + rows)
        rows[2].update(at_speed(16.0))
        check(expected.format(8, "0.50"), rows)
        rows[0].update(at_speed(4.0))
        check(expected.format(4, "0.25"), rows)
        gpu = [speed("exact/fp32@cuda", 900.0, threads=0)]
        check(expected.format(4, "0.25") + " … 900 GB/s (H200, GPU, n = 2²⁰)", rows, gpu)


if __name__ == "__main__":
    unittest.main()
