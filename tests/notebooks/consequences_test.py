"""What the report says of consequences: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/consequences_test.py
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import consequences  # noqa: E402
import results  # noqa: E402

AT = "this machine, CPU"
GRADED = "20 graded eigenvalues"
ATOMIC, TREE, EXACT = "atomic/plain/fp32@cpu", "tree/plain/fp32@cpu", "exact/fp32@cpu"
METHODS = [(ATOMIC, "none"), (TREE, "everywhere"), (EXACT, "order_free")]


def row(kind, method, promise, **more):
    return {"kind": kind, "method": method, "promise": promise, "input_format": "fp32", "n": 4096, "data": "moon",
            "runs": 10, "distinct_bits": 1, "bits": "0x0123456789abcdef", "broken": False} | more


def rows():
    for method, promise in METHODS:
        yield row("solver", method, promise, data="graded", seed=1, condition=1024.0, tolerance=1e-5, converged=10,
                  least_iterations=40, most_iterations=40, least_residual=1e-6, most_residual=1e-6)
    for method, promise in METHODS:
        yield row("training", method, promise, seed=1, steps=20, weights=81, weights_apart=0.0, least_error=2000.0,
                  most_error=2000.0)
    for method, promise in METHODS:
        for quantity, error in (("mean", 1e-8), ("variance, naive", 1e-4), ("variance, two passes", 1e-7)):
            yield row("recording", method, promise, quantity=quantity, value=1.0, truth=1.0, relative_error=error)


class Said(unittest.TestCase):
    def section(self, alter=lambda r: None, **more):
        some = list(rows())
        for r in some:
            alter(r)
            self.assertIsNone(results.problem(r, [r["kind"]]))
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return consequences.section([results.Source(results.HERE, "consequences", pathlib.Path("x"), header, some)])

    def assert_says(self, sentence, alter):
        """With the alteration, and not without it."""
        self.assertIn(sentence, self.section(alter).findings)
        self.assertNotIn(sentence, self.section().findings)

    def changed(self, kind, method, **new):
        def alter(r):
            same_quantity = new.get("quantity", r.get("quantity")) == r.get("quantity")
            if r["kind"] == kind and r["method"] == method and same_quantity:
                r.update(new)
        return alter

    def test_what_was_left_out(self):
        findings = self.section(left_out=["without the network: it needs Eigen"]).findings
        self.assertEqual(findings, self.section().findings
                         + ["Measured without the network: it needs Eigen (this machine)."])

    def test_nothing_where_nothing_was_measured(self):
        section = consequences.section([])
        self.assertTrue(section.empty)
        self.assertEqual(section.failures, [])

    def test_what_is_so_before_anything_is_altered(self):
        self.assertEqual(self.section().findings, [
            "All 10 results of methods that promise the same bits everywhere were the same in each of their runs, "
            "100 in all.",
            f"{AT}, conjugate gradients, {GRADED}: {ATOMIC}, which promises none, gave 1 different result in 10 runs.",
            f"{AT}, training: {ATOMIC}, which promises none, gave 1 different result in 10 runs.",
            f"{AT}, {GRADED} in fp32: 40 iterations with every sum.",
            f"{AT}, after 20 steps the network is wrong by 2,000 km ({ATOMIC}) to 2,000 km ({ATOMIC}).",
            f"{AT}, variance of the Moon's distance in fp32: relative errors of 0.0001 ({ATOMIC}) to 0.0001 ({ATOMIC}) "
            f"by the naive formula, of 1e-07 ({ATOMIC}) to 1e-07 ({ATOMIC}) in two passes."])

    def test_a_second_result_of_a_method_that_promises_one(self):
        alter = self.changed("solver", TREE, distinct_bits=2, broken=True)
        self.assert_says("9 of 10 results of methods that promise the same bits everywhere were the same in each of "
                         f"their runs, 100 in all; not {TREE}.", alter)
        self.assertEqual(self.section(alter).failures,
                         [f"{AT}: {TREE} promises everywhere but gave 2 results of conjugate gradients, {GRADED}"])

    def test_different_solutions(self):
        self.assert_says(f"{AT}, conjugate gradients, {GRADED}: {ATOMIC}, which promises none, gave 7 different "
                         "results in 10 runs, after 39 to 42 iterations.",
                         self.changed("solver", ATOMIC, distinct_bits=7, least_iterations=39, most_iterations=42))

    def test_different_weights(self):
        self.assert_says(f"{AT}, training: {ATOMIC}, which promises none, gave 3 different results in 10 runs, with "
                         "weights up to 0.25 apart.",
                         self.changed("training", ATOMIC, distinct_bits=3, weights_apart=0.25))

    def test_iterations(self):
        self.assert_says(f"{AT}, {GRADED} in fp32: from 40 iterations ({ATOMIC}) to 80 ({TREE}).",
                         self.changed("solver", TREE, most_iterations=80))
        self.assert_says(f"{AT}, {GRADED} in fp32: 40 iterations with every sum; not always to the tolerance with "
                         f"{TREE}.",
                         self.changed("solver", TREE, converged=9))

    def test_errors_of_the_network(self):
        self.assert_says(f"{AT}, after 20 steps the network is wrong by 2,000 km ({TREE}) to 9,000 km ({ATOMIC}).",
                         self.changed("training", ATOMIC, most_error=9000.0))
        self.assert_says(f"{AT}: the network was lost to infinities with {EXACT}.",
                         self.changed("training", EXACT, most_error=None))

    def test_errors_of_the_variance(self):
        self.assert_says(f"{AT}, variance of the Moon's distance in fp32: relative errors of 5e-05 ({EXACT}) to 0.0001 "
                         f"({ATOMIC}) by the naive formula, of 1e-07 ({ATOMIC}) to 1e-07 ({ATOMIC}) in two passes.",
                         self.changed("recording", EXACT, quantity="variance, naive", relative_error=5e-5))
        self.assert_says(f"{AT}: a variance in fp32 is negative with {EXACT}.",
                         self.changed("recording", EXACT, quantity="variance, naive", value=-1.0))
        self.assert_says(f"{AT}: a sum of this recording overflows fp32 with {EXACT}.",
                         self.changed("recording", EXACT, quantity="variance, two passes", relative_error=None))

    def test_figures_and_tables_have_every_row(self):
        section = self.section()
        self.assertEqual([len(f.series) for f in section.figures], [15, 3])
        self.assertEqual([len(t.rows) for t in section.tables], [3, 3, 3])


if __name__ == "__main__":
    unittest.main()
