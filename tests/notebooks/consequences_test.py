"""What the report says of consequences: made-up rows, altered one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/consequences_test.py
"""

import dataclasses
import unittest

from made_up import source
import consequences
import results

AT = "This machine, CPU"
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
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return consequences.section([dataclasses.replace(source("consequences", some), header=header)])

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
            "All 10 results of methods with a promise of the same bits everywhere had the same bits in all runs, of "
            "which there were 100.",
            f"{AT}, conjugate gradients, {GRADED}: {ATOMIC}, whose promise is none, gave the same result in 10 runs.",
            f"{AT}, training: {ATOMIC}, whose promise is none, gave the same result in 10 runs.",
            f"{AT}, {GRADED} in fp32: conjugate gradients took 40 iterations with every sum.",
            f"{AT}, after 20 steps the network is wrong by 2,000 km with every sum.",
            f"{AT}, variance of the Moon's distance in fp32: relative errors are 0.0001 with every sum by the naive "
            "formula, and 1e-07 with every sum in two passes."])

    def test_a_second_result_of_a_method_that_promises_one(self):
        alter = self.changed("solver", TREE, distinct_bits=2, broken=True)
        self.assert_says("9 of 10 results of methods with a promise of the same bits everywhere had the same bits in "
                         f"all runs, of which there were 100; not {TREE}, conjugate gradients, {GRADED} (this machine, "
                         "CPU).", alter)
        self.assertEqual(self.section(alter).failures, [f"this machine, CPU: {TREE} promises everywhere but gave 2 "
                                                        f"results of conjugate gradients, {GRADED}"])

    def test_runs_are_counted(self):
        self.assert_says("All 10 results of methods with a promise of the same bits everywhere had the same bits in "
                         "all runs, of which there were 130.", self.changed("solver", TREE, runs=40, converged=40))

    def test_different_solutions(self):
        told = (AT + ", conjugate gradients, " + GRADED + ": {}, whose promise is none, gave {} different results in "
                "{} runs, after 39 to 42 iterations.")
        changed = {"distinct_bits": 7, "least_iterations": 39, "most_iterations": 42}
        self.assert_says(told.format(ATOMIC, 7, 10), self.changed("solver", ATOMIC, **changed))

        def alter(r):  # of 40 runs 8 are fewer than 7 of 10
            self.changed("solver", ATOMIC, runs=40, distinct_bits=8)(r)
            self.changed("solver", TREE, promise="none", **changed)(r)
        self.assert_says(told.format(TREE, 7, 10), alter)

    def test_different_weights(self):
        told = f"{AT}, training: {ATOMIC}, whose promise is none, gave 3 different results in 10 runs, with weights "
        self.assert_says(told + "up to 0.25 apart.",
                         self.changed("training", ATOMIC, distinct_bits=3, weights_apart=0.25))
        self.assert_says(told + "that are not finite.",
                         self.changed("training", ATOMIC, distinct_bits=3, weights_apart=None))

    def test_iterations(self):
        told = f"{AT}, {GRADED} in fp32: conjugate gradients took "
        self.assert_says(f"{told}40 iterations ({ATOMIC}) to 80 iterations ({TREE}).",
                         self.changed("solver", TREE, most_iterations=80))
        self.assert_says(f"{told}30 iterations ({EXACT}) to 40 iterations ({ATOMIC}).",
                         self.changed("solver", EXACT, least_iterations=30))
        self.assert_says(f"{told}40 iterations with every sum; not always to the tolerance with {TREE}.",
                         self.changed("solver", TREE, converged=9))

        def hundred(r):
            self.changed("solver", TREE, runs=100, converged=99)(r)
        self.assert_says(f"{told}40 iterations with every sum; not always to the tolerance with {TREE}.", hundred)

    def test_errors_of_the_network(self):
        told = f"{AT}, after 20 steps the network is wrong by "
        self.assert_says(f"{told}2,000 km ({TREE}) to 9,000 km ({ATOMIC}).",
                         self.changed("training", ATOMIC, most_error=9000.0))
        self.assert_says(f"{told}1,000 km ({EXACT}) to 2,000 km ({ATOMIC}).",
                         self.changed("training", EXACT, most_error=1000.0))
        self.assert_says(f"{AT}: the network was lost to infinities with {EXACT}.",
                         self.changed("training", EXACT, most_error=None))

    def test_one_sum_alone_is_named(self):
        alone = [r for r in rows() if r["method"] == TREE]
        self.assertIn(f"{AT}, after 20 steps the network is wrong by 2,000 km ({TREE}).",
                      consequences.section([source("consequences", alone)]).findings)

    def test_errors_of_the_variance(self):
        told = f"{AT}, variance of the Moon's distance in fp32: relative errors are "
        self.assert_says(f"{told}5e-05 ({EXACT}) to 0.0001 ({ATOMIC}) by the naive formula, and 1e-07 with every sum "
                         "in two passes.",
                         self.changed("recording", EXACT, quantity="variance, naive", relative_error=5e-5))
        self.assert_says(f"{told}0.0001 with every sum by the naive formula, and 1e-07 ({ATOMIC}) to 1e-06 ({EXACT}) "
                         "in two passes.",
                         self.changed("recording", EXACT, quantity="variance, two passes", relative_error=1e-6))
        self.assert_says(f"{AT}: a variance in fp32 is negative with {EXACT}.",
                         self.changed("recording", EXACT, quantity="variance, naive", value=-1.0))

    def test_a_sum_overflows_only_where_there_is_no_value(self):
        told = f"{AT}: a sum of this recording overflows fp32 with {EXACT}."
        self.assert_says(told, self.changed("recording", EXACT, quantity="variance, two passes", relative_error=None,
                                            value=None))
        section = self.section(self.changed("recording", EXACT, quantity="variance, two passes", relative_error=None))
        self.assertNotIn("overflows", " ".join(section.findings))

    def test_a_second_machine_has_its_own_sentences(self):
        there = [r for r in rows() if r["kind"] == "solver"]
        there[1].update(most_iterations=99)
        two = consequences.section([source("consequences", list(rows())),
                                    dataclasses.replace(source("consequences", there), machine="H200")]).findings
        self.assertIn(f"H200, CPU, {GRADED} in fp32: conjugate gradients took 40 iterations ({ATOMIC}) to 99 "
                      f"iterations ({TREE}).", two)
        self.assertIn(f"{AT}, {GRADED} in fp32: conjugate gradients took 40 iterations with every sum.", two)

    def test_the_figures_say_what_they_show_first(self):
        bits, iterations = [f.reading for f in self.section().figures]
        shown = f"This machine, CPU, conjugate gradients, {GRADED}, fp32: "
        self.assertEqual(bits, shown + "all 3 bars are at 1 bit pattern.")
        self.assertEqual(iterations, shown + "all 3 bars are at 40 iterations.")
        altered = self.section(self.changed("solver", TREE, distinct_bits=2, most_iterations=50)).figures
        self.assertEqual(altered[0].reading, shown + "the bars go from 1 bit pattern (atomic/plain, exact) to 2 bit "
                                                     "patterns (tree/plain).")
        self.assertEqual(altered[1].reading, shown + "the bars go from 40 iterations (atomic/plain, exact) to 50 "
                                                     "iterations (tree/plain).")

    def test_systems_are_those_of_the_schema(self):
        matrices = results.SCHEMA["$defs"]["solver"]["properties"]["data"]["enum"]
        self.assertEqual(set(consequences.SYSTEMS), set(matrices))

    def test_figures_and_tables_have_every_row(self):
        section = self.section()
        self.assertEqual([len(f.series) for f in section.figures], [15, 3])
        self.assertEqual([len(t.rows) for t in section.tables], [3, 3, 3])


if __name__ == "__main__":
    unittest.main()
