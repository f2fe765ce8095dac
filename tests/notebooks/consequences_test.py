"""What the report says of consequences: made-up rows, altered one at a time.

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


class Said(made_up.Told):
    def section(self, *changes, **more):
        """After changes (kind, method, what is new there)."""
        some = list(rows())
        for kind, method, new in changes:
            for r in some:
                if (r["kind"], r["method"]) == (kind, method) and new.get("quantity") in (None, r.get("quantity")):
                    r.update(new)
        header = {"mode": "quick", "seed": 1, "filter": ""} | more
        return consequences.section([dataclasses.replace(source("consequences", some), header=header)])

    def after(self, kind, method, new, told, *more):
        """It is told after the change, and not without it."""
        self.assert_tells(self.section((kind, method, new), *more).findings, told)
        self.assert_silent(self.section().findings, told)

    def test_before_anything_is_altered(self):
        section = self.section()
        self.assert_tells(section.findings, "All 10 results … same bits … 100.",
                          f"{AT}, conjugate gradients, {GRADED}: {ATOMIC}, … same result in 10 runs",
                          f"{AT}, training: {ATOMIC}, … same result in 10 runs",
                          f"{AT}, {GRADED} in fp32: … 40 iterations with every sum",
                          f"{AT}, after 20 steps … 2,000 km with every sum",
                          f"{AT}, variance … fp32: … 0.0001 with every sum … naive … 1e-07 with every sum in two")
        self.assertEqual((len(section.findings), section.failures), (6, []))
        self.assertEqual([len(f.series) for f in section.figures], [15, 3])
        self.assertEqual([len(t.rows) for t in section.tables], [3, 3, 3])
        self.assertEqual(self.section(left_out=["without the network: it needs Eigen"]).findings,
                         section.findings + ["Measured without the network: it needs Eigen (this machine)."])

    def test_a_second_result_of_a_method_that_promises_one_fails(self):
        broken = ("solver", TREE, {"distinct_bits": 2, "broken": True})
        self.after(*broken, f"9 of 10 results … 100; not {TREE}, conjugate gradients, {GRADED} (this machine, CPU).")
        self.assert_tells(self.section(broken).failures, f"this machine, CPU: {TREE} promises everywhere but gave 2 "
                          f"results of conjugate gradients, {GRADED}")
        self.after("solver", TREE, {"runs": 40, "converged": 40}, "All 10 results … 130.")

    def test_different_results(self):
        told = f"{AT}, conjugate gradients, {GRADED}: {{}}, … 7 different results in 10 runs, after 39 to 42 iterations"
        changed = {"distinct_bits": 7, "least_iterations": 39, "most_iterations": 42}
        self.after("solver", ATOMIC, changed, told.format(ATOMIC))
        self.after("solver", TREE, changed | {"promise": "none"}, told.format(TREE),
                   ("solver", ATOMIC, {"runs": 40, "distinct_bits": 8}))  # of 40 runs 8 are fewer than 7 of 10
        for apart, said in ((0.25, "0.25 apart"), (None, "not finite")):
            self.after("training", ATOMIC, {"distinct_bits": 3, "weights_apart": apart},
                       f"{AT}, training: {ATOMIC}, … 3 different results in 10 runs, … {said}")

    def test_extents(self):
        solver, network = f"{AT}, {GRADED} in fp32: … ", f"{AT}, after 20 steps … "
        naive, passes = "variance, naive", "variance, two passes"
        for kind, method, new, told in [
                ("solver", TREE, {"most_iterations": 80}, f"{solver}40 … ({ATOMIC}) to 80 iterations ({TREE})"),
                ("solver", EXACT, {"least_iterations": 30}, f"{solver}30 … ({EXACT}) to 40 iterations ({ATOMIC})"),
                ("solver", TREE, {"converged": 9}, f"{solver}40 … not always … with {TREE}"),
                ("solver", TREE, {"runs": 100, "converged": 99}, f"{solver}40 … not always … with {TREE}"),
                ("training", ATOMIC, {"most_error": 9000.0}, f"{network}2,000 km ({TREE}) to 9,000 km ({ATOMIC})"),
                ("training", EXACT, {"most_error": 1000.0}, f"{network}1,000 km ({EXACT}) to 2,000 km ({ATOMIC})"),
                ("training", EXACT, {"most_error": None}, f"{AT}: the network was lost to infinities with {EXACT}"),
                ("recording", EXACT, {"quantity": naive, "relative_error": 5e-5},
                 f"{AT}, variance … 5e-05 ({EXACT}) to 0.0001 ({ATOMIC}) … naive … 1e-07 with every sum"),
                ("recording", EXACT, {"quantity": passes, "relative_error": 1e-6},
                 f"{AT}, variance … 0.0001 with every sum … naive … 1e-07 ({ATOMIC}) to 1e-06 ({EXACT}) in two passes"),
                ("recording", EXACT, {"quantity": naive, "value": -1.0}, f"{AT}: … negative with {EXACT}"),
                ("recording", EXACT, {"quantity": passes, "relative_error": None, "value": None},
                 f"{AT}: … overflows fp32 with {EXACT}")]:
            with self.subTest(told):
                self.after(kind, method, new, told)
        without = self.section(("recording", EXACT, {"quantity": passes, "relative_error": None}))
        self.assert_silent(without.findings, "overflows")  # since there is a value
        alone = consequences.section([source("consequences", [r for r in rows() if r["method"] == TREE])])
        self.assert_tells(alone.findings, f"{network}2,000 km ({TREE}).")

    def test_a_second_machine_has_its_own_sentences(self):
        there = [r for r in rows() if r["kind"] == "solver"]
        there[1].update(most_iterations=99)
        two = consequences.section([source("consequences", list(rows())), source("consequences", there, "H200")])
        self.assert_tells(two.findings, f"H200, CPU, {GRADED} in fp32: … 40 iterations ({ATOMIC}) to 99 iterations "
                          f"({TREE})", f"{AT}, {GRADED} in fp32: … 40 iterations with every sum")

    def test_the_figures_say_what_they_show_first(self):
        shown = f"This machine, CPU, conjugate gradients, {GRADED}, fp32: … "
        for changes, told in (((), ("all 3 bars … 1 bit pattern.", "all 3 bars … 40 iterations.")),
                              ([("solver", TREE, {"distinct_bits": 2, "most_iterations": 50})],
                               ("1 bit pattern (atomic/plain, exact) to 2 bit patterns (tree/plain)",
                                "40 iterations (atomic/plain, exact) to 50 iterations (tree/plain)"))):
            for figure, each in zip(self.section(*changes).figures, told):
                self.assert_tells([figure.reading], shown + each)

    def test_systems_are_those_of_the_schema(self):
        matrices = results.SCHEMA["$defs"]["solver"]["properties"]["data"]["enum"]
        self.assertEqual(set(consequences.SYSTEMS), set(matrices))


if __name__ == "__main__":
    unittest.main()
