"""What the report says of consequences: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/consequences_test.py
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import consequences  # noqa: E402
import results  # noqa: E402

METHODS = [("atomic/plain/fp32@cpu", "none"), ("tree/plain/fp32@cpu", "everywhere"), ("exact/fp32@cpu", "order_free")]


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
    def section(self, alter=lambda r: None):
        some = list(rows())
        for r in some:
            alter(r)
            self.assertIsNone(results.problem(r, [r["kind"]]))
        header = {"mode": "quick", "seed": 1, "filter": ""}
        return consequences.section([results.Source(results.HERE, "consequences", pathlib.Path("x"), header, some)])

    def assert_says(self, sentence, alter):
        """With the alteration, and not without it."""
        self.assertIn(sentence, self.section(alter).findings)
        self.assertNotIn(sentence, self.section().findings)

    def changed(self, kind, method, **new):
        def alter(r):
            if r["kind"] == kind and r["method"] == method and new.get("quantity", r.get("quantity")) == r.get("quantity"):
                r.update(new)
        return alter

    def test_nothing_where_nothing_was_measured(self):
        section = consequences.section([])
        self.assertTrue(section.empty)
        self.assertEqual(section.failures, [])

    def test_what_is_so_before_anything_is_altered(self):
        self.assertEqual(self.section().findings, [
            "All 10 results of methods that promise the same bits everywhere were the same in each of their runs, 100 in all.",
            "this machine, CPU, conjugate gradients, 20 graded eigenvalues: atomic/plain/fp32@cpu, which promises none, "
            "gave 1 different result in 10 runs.",
            "this machine, CPU, training: atomic/plain/fp32@cpu, which promises none, gave 1 different result in 10 runs.",
            "this machine, CPU, 20 graded eigenvalues in fp32: 40 iterations with every sum.",
            "this machine, CPU, after 20 steps the network is wrong by 2,000 km (atomic/plain/fp32@cpu) to 2,000 km "
            "(atomic/plain/fp32@cpu).",
            "this machine, CPU, variance of the Moon's distance in fp32: at best 0.0001 off by the naive formula "
            "(atomic/plain/fp32@cpu) and 1e-07 in two passes (atomic/plain/fp32@cpu)."])

    def test_a_second_result_of_a_method_that_promises_one(self):
        alter = self.changed("solver", "tree/plain/fp32@cpu", distinct_bits=2, broken=True)
        self.assert_says("9 of 10 results of methods that promise the same bits everywhere were the same in each of their "
                         "runs, 100 in all; not tree/plain/fp32@cpu.", alter)
        self.assertEqual(self.section(alter).failures, ["this machine, CPU: tree/plain/fp32@cpu promises everywhere but "
                                                        "gave 2 results of conjugate gradients, 20 graded eigenvalues"])

    def test_different_solutions(self):
        self.assert_says("this machine, CPU, conjugate gradients, 20 graded eigenvalues: atomic/plain/fp32@cpu, which "
                         "promises none, gave 7 different results in 10 runs, after 39 to 42 iterations.",
                         self.changed("solver", METHODS[0][0], distinct_bits=7, least_iterations=39, most_iterations=42))

    def test_different_weights(self):
        self.assert_says("this machine, CPU, training: atomic/plain/fp32@cpu, which promises none, gave 3 different results "
                         "in 10 runs, with weights up to 0.25 apart.",
                         self.changed("training", METHODS[0][0], distinct_bits=3, weights_apart=0.25))

    def test_iterations(self):
        self.assert_says("this machine, CPU, 20 graded eigenvalues in fp32: from 40 iterations (atomic/plain/fp32@cpu) to 80 "
                         "(tree/plain/fp32@cpu).", self.changed("solver", METHODS[1][0], most_iterations=80))
        self.assert_says("this machine, CPU, 20 graded eigenvalues in fp32: 40 iterations with every sum; not always to the "
                         "tolerance with tree/plain/fp32@cpu.", self.changed("solver", METHODS[1][0], converged=9))

    def test_errors_of_the_network(self):
        self.assert_says("this machine, CPU, after 20 steps the network is wrong by 2,000 km (tree/plain/fp32@cpu) to 9,000 "
                         "km (atomic/plain/fp32@cpu).", self.changed("training", METHODS[0][0], most_error=9000.0))
        self.assert_says("this machine, CPU: the network was lost to infinities with exact/fp32@cpu.",
                         self.changed("training", METHODS[2][0], most_error=None))

    def test_errors_of_the_variance(self):
        at = "this machine, CPU"
        self.assert_says(f"{at}, variance of the Moon's distance in fp32: at best 5e-05 off by the naive formula "
                         "(exact/fp32@cpu) and 1e-07 in two passes (atomic/plain/fp32@cpu).",
                         self.changed("recording", METHODS[2][0], quantity="variance, naive", relative_error=5e-5))
        self.assert_says(f"{at}: a variance in fp32 is negative with exact/fp32@cpu.",
                         self.changed("recording", METHODS[2][0], quantity="variance, naive", value=-1.0))
        self.assert_says(f"{at}: a sum of this recording overflows fp32 with exact/fp32@cpu.",
                         self.changed("recording", METHODS[2][0], quantity="variance, two passes", relative_error=None))

    def test_figures_and_tables_have_every_row(self):
        section = self.section()
        self.assertEqual([len(f.series) for f in section.figures], [15, 3])
        self.assertEqual([len(t.rows) for t in section.tables], [3, 3, 3])


if __name__ == "__main__":
    unittest.main()
