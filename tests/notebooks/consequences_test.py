"""Tests of the section on consequences, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/consequences_test.py
"""

import dataclasses
import unittest

import made_up
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


class Consequences(made_up.SentenceTest):
    def section(self, *changes, **more):
        """The section after changes (kind, method, new values)."""
        some = list(rows())
        for kind, method, new in changes:
            for r in some:
                if (r["kind"], r["method"]) == (kind, method) and new.get("quantity") in (None, r.get("quantity")):
                    r.update(new)
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return consequences.section([dataclasses.replace(source("consequences", some), header=header)])

    def after(self, kind, method, new, expected, *more):
        """Checks that a finding appears only after a change."""
        self.assert_sentences(self.section((kind, method, new), *more).findings, expected)
        self.assert_no_sentences(self.section().findings, expected)

    def test_the_verdict_is_on_the_solver_that_varied_most(self):
        self.assert_sentences([self.section().verdict], f"With {ATOMIC}, conjugate gradients needed 40 iterations in each of 10 "
                                                        f"runs, and gave 1 solution ({AT.lower().replace('cpu', 'CPU')}).")
        varied = ("solver", ATOMIC, {"most_iterations": 46, "distinct_bits": 7})
        self.assert_sentences([self.section(varied).verdict], "needed 40 to 46 iterations, depending on the run, and gave 7 "
                                                              "different solutions in 10 runs")

    def test_the_verdict_has_the_iterations_of_each_method_with_promised_bits_too(self):
        changes = [("solver", ATOMIC, {"most_iterations": 46}), ("solver", TREE, {"least_iterations": 71, "most_iterations": 71})]
        self.assert_sentences([self.section(*changes).verdict],
                              "needed 40 to 46 iterations … with promised bits, in every run 40 (exact) and 71 (tree/plain) (this")
        steady = next(r for r in rows() if (r["kind"], r["method"]) == ("solver", TREE))
        other = steady | {"method": "tbb/fp32@peer", "promise": "none", "least_iterations": 33, "most_iterations": 33}
        self.assertEqual(consequences.steady([("here", steady), ("here", other)], "here", steady), {40: ["tree/plain"]})

    def test_unchanged_rows(self):
        section = self.section()
        self.assert_sentences(section.findings, "All 10 results … same bits in all 100 runs.",
                              f"{AT}, conjugate gradients, {GRADED}: {ATOMIC} (promise: none) returned the same result "
                              "in 10 runs.",
                              f"{AT}, training: {ATOMIC} (promise: none) returned the same result in 10 runs.",
                              f"{AT}, {GRADED} in fp32: … 40 iterations with every method.",
                              f"{AT}, after 20 steps … 2,000 km with every method.",
                              f"{AT}, variance … fp32: … 0.0001 with every method … naive … 1e-07 with every method "
                              "in two")
        self.assertEqual((len(section.findings), section.failures), (6, []))
        self.assertEqual([len(f.series) for f in section.figures], [3, 15])
        self.assertEqual([len(t.rows) for t in section.tables], [3, 3, 3])
        self.assertEqual(self.section(left_out=["without the network: it needs Eigen"]).findings,
                         section.findings + ["Measured without the network: it needs Eigen (this machine)."])

    def test_a_second_result_of_a_method_that_promises_one_is_a_failure(self):
        broken = ("solver", TREE, {"distinct_bits": 2, "broken": True})
        self.after(*broken, f"9 of 10 results … 100 runs; exceptions: {TREE}, conjugate gradients, {GRADED} (this "
                            "machine, CPU).")
        self.assert_sentences(self.section(broken).failures, f"this machine, CPU: {TREE} promises everywhere but "
                                                             f"returned 2 results for conjugate gradients, {GRADED}")
        self.after("solver", TREE, {"runs": 40, "converged": 40}, "All 10 results … 130 runs.")

    def test_different_results(self):
        expected = (f"{AT}, conjugate gradients, {GRADED}: {{}} … 7 different results in 10 runs, after 39 to 42 "
                    "iterations")
        changed = {"distinct_bits": 7, "least_iterations": 39, "most_iterations": 42}
        self.after("solver", ATOMIC, changed, expected.format(ATOMIC))
        self.after("solver", TREE, changed | {"promise": "none"}, expected.format(TREE),
                   ("solver", ATOMIC, {"runs": 40, "distinct_bits": 8}))  # a smaller share than 7 of 10
        for apart, text in ((0.25, "0.25 apart"), (None, "not finite")):
            self.after("training", ATOMIC, {"distinct_bits": 3, "weights_apart": apart},
                       f"{AT}, training: {ATOMIC} … 3 different results in 10 runs, … {text}")

    def test_ranges(self):
        solver, network = f"{AT}, {GRADED} in fp32: … ", f"{AT}, after 20 steps … "
        naive, passes = "variance, naive", "variance, two passes"
        for kind, method, new, expected in [
                ("solver", TREE, {"most_iterations": 80}, f"{solver}40 … ({ATOMIC}) to 80 iterations ({TREE})"),
                ("solver", EXACT, {"least_iterations": 30}, f"{solver}30 … ({EXACT}) to 40 iterations ({ATOMIC})"),
                ("solver", TREE, {"converged": 9}, f"{solver}40 … did not reach the tolerance with {TREE}"),
                ("solver", TREE, {"runs": 100, "converged": 99}, f"{solver}40 … did not reach the tolerance with "
                                                                 f"{TREE}"),
                ("training", ATOMIC, {"most_error": 9000.0}, f"{network}2,000 km ({TREE}) to 9,000 km ({ATOMIC})"),
                ("training", EXACT, {"most_error": 1000.0}, f"{network}1,000 km ({EXACT}) to 2,000 km ({ATOMIC})"),
                ("training", EXACT, {"most_error": None}, f"{AT}: the error of the network is not finite with {EXACT}"),
                ("recording", EXACT, {"quantity": naive, "relative_error": 5e-5},
                 f"{AT}, variance … 5e-05 ({EXACT}) to 0.0001 ({ATOMIC}) … naive … 1e-07 with every method"),
                ("recording", EXACT, {"quantity": passes, "relative_error": 1e-6},
                 f"{AT}, variance … 0.0001 with every method … naive … 1e-07 ({ATOMIC}) to 1e-06 ({EXACT}) in two "
                 "passes"),
                ("recording", EXACT, {"quantity": naive, "value": -1.0}, f"{AT}: … negative with {EXACT}"),
                ("recording", EXACT, {"quantity": passes, "relative_error": None, "value": None},
                 f"{AT}: … overflow fp32 with {EXACT}")]:
            with self.subTest(expected):
                self.after(kind, method, new, expected)
        without = self.section(("recording", EXACT, {"quantity": passes, "relative_error": None}))
        self.assert_no_sentences(without.findings, "overflows")  # because there is a value
        alone = consequences.section([source("consequences", [r for r in rows() if r["method"] == TREE])])
        self.assert_sentences(alone.findings, f"{network}2,000 km ({TREE}).")

    def test_a_second_machine_has_its_own_sentences(self):
        there = [r for r in rows() if r["kind"] == "solver"]
        there[1].update(most_iterations=99)
        two = consequences.section([source("consequences", list(rows())), source("consequences", there, "H200")])
        self.assert_sentences(two.findings, f"H200, CPU, {GRADED} in fp32: … 40 iterations ({ATOMIC}) to 99 iterations "
                                            f"({TREE})", f"{AT}, {GRADED} in fp32: … 40 iterations with every method")

    def test_the_findings_of_the_figures(self):
        shown = f"This machine, CPU, conjugate gradients, {GRADED}, fp32: … "
        for changes, expected in (((), ("all 3 methods have 40 iterations.", "all 3 methods have 1 bit pattern.")),
                                  ([("solver", TREE, {"distinct_bits": 2, "most_iterations": 50})],
                                   ("40 iterations (atomic/plain, exact) to 50 iterations (tree/plain)",
                                    "1 bit pattern (atomic/plain, exact) to 2 bit patterns (tree/plain)"))):
            for figure, each in zip(self.section(*changes).figures, expected):
                self.assert_sentences([figure.finding], shown + each)

    def test_systems_are_those_of_the_schema(self):
        matrices = results.SCHEMA["$defs"]["solver"]["properties"]["data"]["enum"]
        self.assertEqual(set(consequences.SYSTEMS), set(matrices))


if __name__ == "__main__":
    unittest.main()
