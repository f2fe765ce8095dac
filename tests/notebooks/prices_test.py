"""Tests of the whole price, with made-up rows.

Run by ctest, or: build/venv/bin/python tests/notebooks/prices_test.py
"""

import re
import unittest

import made_up
from made_up import at_speed, source, speed, took
import page
import price_of_promise
import prices
import story


EXACT, TREE, ATOMIC, LOOP = "exact/fp32@cpu", "tree/plain/fp32@cpu", "atomic/plain/fp32@cpu", "loop/fp32@peer"


def sum_of(method, seconds, n, **more):
    return speed(method, 1.0, n=n) | took(seconds) | more


def reduction(method, gb_per_s, **more):
    return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp32", "outer": 1, "n": 512,
            "inner": 512, "seed": 1, "threads": 1, "verified": None, "bars": []} | at_speed(gb_per_s) | more


class Prices(made_up.SentenceTest):
    def setUp(self):
        """Exact takes 3, 2 and 1 times as long as the loop, on arbitrary bits 6, 4 and 2 times; the tree as long as it."""
        self.speeds = [sum_of(method, times * n * 1e-9, n, data=data) for n, exact in ((256, 3), (4096, 2), (65536, 1))
                       for method, times, data in ((EXACT, exact, "normal"), (EXACT, 2 * exact, "arbitrary bits"),
                                                   (TREE, 1, "normal"), (ATOMIC, 8, "normal"), (LOOP, 1, "normal"))]
        self.reductions = []

    def found(self):
        return {"speed_vs_length": [source("speed_vs_length", self.speeds)],
                "speed_of_reductions": [source("speed_of_reductions", self.reductions)]}

    def cells(self):
        [some] = prices.cells_of(self.found()).values()
        return {prices.work(c.row): c for c in some}

    def test_a_cell_has_the_four_times(self):
        c = self.cells()["2⁸ fp32"]
        self.assertEqual([r["method"] for r in (c.exact, c.everywhere, c.ordered, c.loose, c.peer)],
                         [EXACT, TREE, TREE, ATOMIC, LOOP])
        self.assertEqual((round(prices.times(c.exact_price), 6), prices.times(c.everywhere_price)), (3, 1))

    def test_exact_is_compared_with_trees_too_and_trees_only_with_what_promises_less(self):
        self.speeds = [r | took(r["seconds"] / 2) if "tree" in r["method"] else r for r in self.speeds]
        c = self.cells()["2⁸ fp32"]
        self.assertAlmostEqual(prices.times(c.exact_price), 6)
        self.assertAlmostEqual(prices.times(c.everywhere_price), 0.5)
        self.assertAlmostEqual(prices.times(self.cells()["2⁸ fp32, arbitrary bits"].exact_price), 12)

    def test_other_data_are_compared_with_normal_numbers_if_only_exact_was_measured_on_them(self):
        c = self.cells()["2¹² fp32, arbitrary bits"]
        self.assertAlmostEqual(prices.times(c.exact_price), 4)
        self.assertIsNone(c.everywhere_price)
        self.speeds.append(sum_of(LOOP, 8 * 4096e-9, 4096, data="arbitrary bits"))
        self.speeds.append(sum_of(TREE, 4 * 4096e-9, 4096, data="arbitrary bits"))
        self.assertAlmostEqual(prices.times(self.cells()["2¹² fp32, arbitrary bits"].exact_price), 1)

    def test_of_several_experiments_the_highest_price_of_each_promise_counts(self):
        def of_256():
            [some] = prices.cells_of(self.found()).values()
            return [[round(prices.times(getattr(c, price)), 6) for c in some
                     if prices.work(c.row) == "2⁸ fp32" and getattr(c, price)] for price in prices.PRICES]

        row = {"n": 256, "inner": 1, "operation": "sum"}
        exact, tree, eigen = self.reductions = [reduction(m, 1.0, **row) for m in (
            "sum/exact/fp32@cpu", "sum/tree/plain/fp32@cpu", "eigen/sum/fp32@peer")]
        eigen.update(at_speed(9.0))
        self.assertEqual(of_256(), [[9], [9]])
        eigen.update(at_speed(2.0))
        self.assertEqual(of_256(), [[3], [2]])
        exact.update(at_speed(0.1))
        self.assertEqual(of_256(), [[20], [2]])

    def test_what_has_no_price_is_left_out(self):
        self.speeds = [r for r in self.speeds if r["method"] == EXACT]
        self.assertEqual((prices.cells_of(self.found()), list(prices.sentences(self.found())), prices.answer(self.found()),
                          prices.figure(self.found())), ({}, [], "", None))
        for fields in ({"verified": False}, {"caches": "cold"}, {"threads": 2}):
            with self.subTest(fields):
                self.setUp()
                self.speeds = [r | fields for r in self.speeds]
                self.assertEqual(prices.cells_of(self.found()), {})

    def test_the_text_says_where_the_price_is_zero_where_it_is_not_and_the_worst(self):
        self.assert_sentences(prices.sentences(self.found()),
                              "This machine, CPU, 1 thread: … the same bits everywhere take no longer in all 3 cases, "
                              "exact results take no longer in 1 of 3 cases. The same bits everywhere take in the median "
                              "at most 3% longer for sum. Exact results take in the median 2 times as long for sum. "
                              "Exact results take at worst so many times as long: sum 6.00 [6.00, 6.00] (2⁸ fp32, arbitrary bits, beside ")
        self.assert_sentences([prices.answer(self.found())],
                              "in all 3 cases, exact ones in 1 of 3 (this machine, CPU, 1 thread). At worst, "
                              "exact results take 6 (this machine, CPU) times as long.")
        [some] = prices.cells_of(self.found()).values()
        self.assertEqual(prices.on_each_data([("", some)]), "Over all operations, exact results take in the median "
                         "2 times as long on normal numbers and 4 on arbitrary bits.")
        self.assertEqual(prices.on_each_data([("A", some), ("B", some)]), "Over all operations, exact results take in the "
                         "median 2 times as long on normal numbers and 4 on arbitrary bits (A); 2 and 4 (B).")
        self.assertEqual(prices.longest(some), "1× for 2¹⁶ fp32")
        for r in self.speeds:
            if r["method"] == TREE:
                r.update(took(2 * r["seconds"]))
        self.assert_sentences(list(prices.sentences(self.found())),
                              "The same bits everywhere cost most for sum, times as long: 2.00 …",
                              "everywhere take no longer in 1 of 3 cases,")

    def test_the_figure_has_a_panel_per_operation_with_three_lengths(self):
        row = {"n": 256, "outer": 1, "inner": 1, "operation": "dot"}
        self.reductions = [reduction(m, s, **row | {"n": n}) for n in (256, 512)
                           for m, s in (("dot/exact/fp32@cpu", 1.0), ("eigen/dot/fp32@peer", 2.0))]
        [tile] = prices.figure(self.found()).tiles
        self.assertEqual((tile.title, tile.text), ("sum", "CPU: ≤ 6×"))
        self.assertIn(">elements</text>", tile.picture)
        titles = re.findall("<title>([^<]*)</title>", tile.picture)
        self.assertIn("2⁸ fp32, arbitrary bits: 6.00 [6.00, 6.00]", titles)
        self.assertEqual([t for t in titles if t.startswith("n = 2⁸")], ["n = 2⁸: 1.00", "n = 2⁸: 3.00"])
        self.reductions += [r | {"n": 1024} for r in self.reductions[:2]]
        self.assertEqual([t.title for t in prices.figure(self.found()).tiles], ["sum", "dot"])
        self.assertEqual([t.title for t in prices.tiles("", list(self.cells().values()), 1)], ["sum"])

    def test_prices_beyond_the_axis_stay_in_the_picture(self):
        self.speeds = [r | took(r["seconds"] * (1e4 if "exact" in r["method"] else 1)) for r in self.speeds]
        heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', prices.figure(self.found()).tiles[0].picture)]
        self.assertTrue(heights and all(0 <= y <= prices.HEIGHT for y in heights), heights)

    def test_the_card_shows_the_panels_and_the_section_has_the_figure_and_a_table_of_all_cases(self):
        [card] = story.cards(self.found())
        self.assertEqual((card.section, card.number, len(card.panels)), ("price", "2×", 1))
        self.assertIn('<div class=panels><div class=tile><span><strong>sum</strong> ≤ 6×</span>', page.card(card))
        s = price_of_promise.section([])
        prices.add_to(s, self.found())
        self.assertEqual([f.id for f in s.figures], ["prices"])
        self.assertEqual(len(s.tables[0].rows), 6)
        self.assertEqual(s.tables[0].rows[0][1:7], ["2⁸ fp32", "768 ns", "256 ns, tree/plain", "256 ns, tree/plain",
                                                    "2.05 µs, atomic/plain", "256 ns, loop"])


if __name__ == "__main__":
    unittest.main()
