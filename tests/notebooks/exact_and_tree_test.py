"""Tests of the picture of what exactness costs.

Run by ctest, or: build/venv/bin/python tests/notebooks/exact_and_tree_test.py
"""

import re
import unittest

import made_up
from made_up import source
import exact_and_tree
import page
import speed_of_reductions
from figure import svg


def row(method, seconds, **more):
    rounds = [[seconds] * 5]
    return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp64", "outer": 4096, "n": 1000,
            "inner": 1, "seed": 1, "threads": 0, "verified": True, "bars": [], "seconds": seconds, "low": seconds,
            "high": seconds, "rounds": rounds, "turns": 1, "gb_per_s": 1.0} | more


EXACT, TREE = "sum/exact/fp64@cuda", "sum/tree/plain/fp64@cuda"
DOT = {"operation": "dot", "outer": 1, "n": 1 << 26}


class ExactAndTree(made_up.SentenceTest):
    def setUp(self):
        self.rows = [row(EXACT, 2e-3), row(TREE, 1e-3), row("sum/pairwise/plain/fp64@cuda", 1e-4),
                     row(EXACT, 5e-3, data="60 binades", turns=2),
                     row("dot/exact/fp64@cuda", 3e-3, **DOT), row("dot/tree/plain/fp64@cuda", 2e-3, **DOT),
                     row("sum/tree/kahan/fp64@cuda", 1e-4)]

    def section(self):
        return speed_of_reductions.section([source("speed_of_reductions", self.rows)])

    def figure(self):
        return next((f for f in self.section().figures if f.id == "exact-and-tree"), None)

    def fields(self, tile=0):
        """(what the pointer shows, the text) of each field of a tile."""
        picture = self.figure().tiles[tile].picture
        return re.findall(r"<title>([^<]+)</title></rect>\n<text [^>]*>([^<]+)</text>", picture)

    def test_each_field_is_the_ratio_to_tree_on_normal_data(self):
        self.assertEqual([t.title for t in self.figure().tiles], ["fp64: sums", "fp64: products and moments"])
        self.assertEqual(self.fields(), [("sum of 4,096 × 1,000 fp64: 2.00 [2.00, 2.00]", "2.00"),
                                         ("sum of 4,096 × 1,000 fp64, 60 binades: 5.00 [5.00, 5.00]", "5.00")])
        self.assertEqual(self.fields(1), [("dot of 2²⁶ fp64: 1.50 [1.50, 1.50]", "1.50")])
        self.rows.append(row(TREE, 1.0, data="60 binades", turns=2))
        self.assertEqual([text for _, text in self.fields()], ["2.00", "5.00"])

    def test_wrong_results_take_no_part(self):
        self.rows[3]["verified"] = False
        self.assertEqual([text for _, text in self.fields()], ["2.00"])

    def test_the_worst_cell_is_named_and_framed(self):
        self.assert_sentences([self.figure().finding],
                              "Exact takes at most 5.00 [5.00, 5.00] times as long as tree: sum of 4,096 × 1,000 fp64, 60 "
                              "binades. In none of 3 cells, it takes at most 1.3 times as long")
        framed = [t.title for t in self.figure().tiles if "stroke-width" in t.picture]
        self.assertEqual(framed, ["fp64: sums"])
        self.assertEqual(self.figure().tiles[0].text, "at most 5 times as long, 60 binades")
        self.rows[4]["seconds"] = self.rows[4]["low"] = self.rows[4]["high"] = 1.0
        self.rows[4]["rounds"] = [[1.0] * 5]
        self.assert_sentences([self.figure().finding], "at most 500 … dot of 2²⁶ fp64")

    def test_a_field_shows_the_slowest_of_its_operations(self):
        mean = {"operation": "mean"}
        self.rows += [row("mean/exact/fp64@cuda", 3e-3, **mean), row("mean/tree/plain/fp64@cuda", 1e-3, **mean)]
        tip, text = self.fields()[0]
        self.assertEqual(text, "3.00")
        self.assertTrue(tip.startswith("mean of") and "; sum of" in tip, tip)

    def test_calls_in_graphs_take_the_place_of_single_ones(self):
        self.rows += [row(EXACT, 1.5e-6, launch="graph"), row(TREE, 1e-6, launch="graph")]
        self.assertEqual([text for _, text in self.fields()], ["1.50", "5.00"])

    def test_moments_are_compared_with_those_in_tree_and_16_bits_in_fp32(self):
        more = {"operation": "moments", "input_format": "bf16"}
        self.rows = [row("moments/exact/fp32@cuda", 3e-3, **more), row("moments/tree/fp32@cuda", 1e-3, **more),
                     row("moments/exact/bf16@cuda", 9e-3, **more), row("moments/tree/bf16@cuda", 1e-3, **more)]
        self.assertEqual([t.title for t in self.figure().tiles], ["bf16: products and moments"])
        self.assertEqual([text for _, text in self.fields()], ["3.00"])

    def test_results_without_such_pairs_have_no_picture(self):
        self.rows = [row(EXACT, 1e-3), row("norm/tree/fp64@cuda", 1e-3, operation="norm")]
        self.assertIsNone(self.figure())
        self.rows = []
        self.assertIsNone(self.figure())

    def test_shades_go_from_light_to_dark(self):
        brightness = [sum(w * int(colour[i:i + 2], 16) for w, i in ((299, 1), (587, 3), (114, 5)))
                      for _, colour in exact_and_tree.SHADES]
        self.assertEqual(brightness, sorted(brightness, reverse=True))
        ratios = [least for least, _ in exact_and_tree.SHADES]
        self.assertEqual(ratios, sorted(ratios))

    def test_its_tiles_are_broad_in_the_page_and_part_of_one_picture_elsewhere(self):
        self.assertIn('class="gallery broad-tiles"', page.figure(self.figure()))
        self.assertIn("60 binades", svg(self.figure()))


if __name__ == "__main__":
    unittest.main()
