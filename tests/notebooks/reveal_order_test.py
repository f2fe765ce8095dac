"""The section on revealed orders says what its rows say: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/reveal_order_test.py
"""

import functools
import math
import operator
import re
import unittest

from made_up import source
import reveal_order

LOOP, PAIRS = "(((0+1)+2)+3)", "((0+2)+(1+3))"


def row(method, tree, promise="everywhere", masks="units", matches=True, n=32, sampled=0, blind=None):
    return {"kind": "tree", "method": method, "promise": promise, "input_format": "fp32", "n": n, "seed": 1,
            "masks": masks, "sampled": sampled, "tree": tree,
            "height": None if tree is None else 3 if tree == LOOP else 2,
            "matches": matches, "blind": blind, "difference": None, "asked": 7}


class RevealedOrders(unittest.TestCase):
    def setUp(self):
        self.rows = [row("serial/plain/fp32@cpu", LOOP), row("tree/plain/fp32@cpu", PAIRS),
                     row("tree/kahan/fp32@cpu", PAIRS, masks="overflow", blind="kept"),
                     row("tree/plain/fp32@cpu", None, n=12293, sampled=64),
                     row("exact/fp32@cpu", None, "order_free", None, None, blind="kept"),
                     row("loop/fp32@peer", LOOP, "run_to_run", matches=None),
                     row("eigen/fp32@peer", "((0+1)+(2+3))", "run_to_run", matches=None)]

        self.there = []

    def section(self):
        there = source("reveal_order", self.there, "H200")
        return reveal_order.section([source("reveal_order", self.rows), there])

    def assert_found(self, sentence):
        self.assertIn(sentence, self.section().findings)

    def test_says_all_where_all_is_well(self):
        self.assert_found("The declared tree was found in all 4 sums of samesum's methods: all 3 revealed whole, for "
                          "sums of 32 elements; 1 of 1 at sampled places, for sums of 12,293 elements.")
        self.assert_found("To M and -M among ones 2 of 6 methods are blind (tree/kahan, exact), since kept; overflow "
                          "gives away the order of 1 of 2.")
        self.assert_found("This machine: of 32 elements all 2 sums of other libraries showed 2 different trees, from 2 "
                          "(eigen/fp32@peer) to 3 (loop/fp32@peer) additions high; 1 of 2 sums adds in a tree of "
                          "samesum's: loop/fp32@peer as serial/plain.")
        self.assertEqual(self.section().failures, [])

    def test_names_a_tree_that_is_not_as_declared_and_fails(self):
        self.rows[3].update(matches=False, difference="0 and 1 meet before they meet 2")
        section = self.section()
        self.assertIn("found in 3 of 4 sums", section.findings[0])
        self.assertIn(". Not in tree/plain/fp32@cpu (this machine).", section.findings[0])
        self.assertEqual(section.failures, ["this machine: tree/plain/fp32@cpu, n = 12,293: not the declared tree: "
                                            "0 and 1 meet before they meet 2"])

    def test_says_which_are_blind(self):
        self.rows[1].update(blind="kept", masks="overflow")
        self.assert_found("To M and -M among ones 3 of 6 methods are blind (tree/plain, tree/kahan, exact), since "
                          "kept; overflow gives away the order of 2 of 3.")

    def test_says_why_in_the_words_of_the_rows(self):
        self.rows[4]["blind"] = "it never rounds"
        self.assert_found("To M and -M among ones 1 of 6 methods is blind (tree/kahan), since kept; overflow gives "
                          "away the order of 1 of 1.")
        self.assert_found("To M and -M among ones 1 of 6 methods is blind (exact), since it never rounds; overflow "
                          "gives away the order of 0 of 1.")

    def test_says_whose_tree_changes(self):
        self.rows[6].update(tree=None, height=None, difference="an ancestor of 0 has 3 leaves, of which 2 were found")
        self.assert_found("This machine: the answers of eigen/fp32@peer contradict each other: the tree changes from "
                          "sum to sum.")

    def test_compares_peers_with_the_trees_that_are_declared(self):
        self.rows[6].update(tree=PAIRS)
        self.assertIn("all 2 sums add in a tree of samesum's", self.section().findings[2])

    def test_compares_peers_on_each_machine(self):
        self.there = [self.rows[-2] | {"tree": PAIRS, "height": 2}, self.rows[1], self.rows[-2] | {"n": 16}]
        self.assert_found("H200: of 32 elements 1 of 1 sum of other libraries showed one tree, 2 additions high; 1 of "
                          "1 sum adds in a tree of samesum's: loop/fp32@peer as tree/plain.")
        self.there = self.rows
        self.assertIn("This machine; H200: of 32 elements", self.section().findings[2])

    def test_names_the_lowest_and_the_highest_tree_wherever_they_stand(self):
        self.rows.append(row("tbb/fp32@peer", "(((0+2)+1)+3)", "none", matches=None) | {"height": 31})
        self.rows.append(row("cub/fp32@peer", "((0+3)+(1+2))", "none", matches=None) | {"height": 1})
        self.assertIn("4 different trees, from 1 (cub/fp32@peer) to 31 (tbb/fp32@peer) additions high",
                      self.section().findings[2])

    def test_says_how_high_each_picture_is(self):
        readings = [f.reading for f in self.section().figures]
        self.assertEqual(readings[:2], ["The longest path from an element to the sum has 3 additions; 4 elements "
                                        "could do with 2.",
                                        "The longest path from an element to the sum has 2 additions, the fewest that "
                                        "4 elements can do with."])
        self.assertIn("3 additions, the fewest that 5 elements", reveal_order.reading("(((0+1)+2)+(3+4))"))
        self.assertEqual(reveal_order.reading("(0+1)"), "The longest path from an element to the sum has 1 addition, "
                                                        "the fewest that 2 elements can do with.")

    def test_draws_each_tree_once(self):
        figures = self.section().figures
        self.assertEqual([f.title for f in figures],
                         ["32 elements, 3 additions high: serial/plain, loop/fp32",
                          "32 elements, 2 additions high: tree/plain, tree/kahan",
                          "32 elements, 2 additions high: eigen/fp32"])
        self.assertEqual(len(re.findall(r"H\d", figures[0].picture)), 3)  # a bar for each of three additions
        self.assertIn(">3</text>", figures[0].picture)

    def test_reads_long_trees(self):
        text = "0"
        for i in range(1, 5000):
            text = f"({text}+{i})"
        self.assertEqual(reveal_order.parsed(text)[1], 4999)
        self.assertTrue(reveal_order.picture(text, "a loop", "#000"))

    def test_reveals_sums_of_python(self):
        def halves(x):
            return x[0] if len(x) == 1 else halves(x[:len(x) // 2]) + halves(x[len(x) // 2:])

        def loop(x):
            return functools.reduce(operator.add, x)

        self.assertEqual(reveal_order.reveal(loop, 4), LOOP)
        self.assertEqual(reveal_order.reveal(halves, 5), "((0+1)+(2+(3+4)))")
        self.assertIsNone(reveal_order.reveal(math.fsum, 4), "it keeps the ones beside M")

    def test_is_empty_without_rows(self):
        self.assertTrue(reveal_order.section([]).empty)


if __name__ == "__main__":
    unittest.main()
