"""Tests of the section on operations other than sums, with made-up rows that are changed one at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/operations_test.py
"""

import unittest

import made_up
from made_up import of_operation, result, source
import operations
import phrases

EXACT, TREE, PEER, SOFTMAX = "dot/exact/fp32@cpu", "dot/tree/plain/fp32@cpu", "eigen/dot/fp32@peer", "softmax/exact/fp32@cpu"


def error(operation, method, promise, ulps, n=1024, data="normal", **more):
    row = {"kind": "error", "data": data, "seed": 1} | result(method, n, ulps, promise) | more
    return of_operation(operation, row)


def condition(method, promise, target, digits):
    row = {"kind": "condition", "data": "gendot", "seed": 1, "target_condition": target, "digits": digits}
    return of_operation("dot", row | result(method, 1024, 0.25, promise))


def tree(method, matches):
    return of_operation("dot", {
        "kind": "tree", "method": method, "promise": "everywhere", "input_format": "fp32", "n": 4, "seed": 0,
        "masks": "units", "sampled": 0, "tree": "((0+1)+(2+3))", "height": 2, "matches": matches, "blind": None,
        "difference": None, "asked": 6})


def price(operation, method, promise, gb_per_s, ulps=1.0, **more):
    return of_operation(operation, {
        "kind": "price", "method": method, "promise": promise, "input_format": "fp32", "n": 4096, "threads": 1, "seed": 1,
        "seconds": 1e-3, "low": 1e-3, "high": 1e-3, "gb_per_s": gb_per_s, "verified": None, "error_ulps": ulps,
        "relative_error": 1e-7} | more)


def errors():
    return [error("dot", method, promise, ulps, n) for n in (1024, 4096)
            for method, promise, ulps in (("exact/fp32@cpu", "order_free", 0.25), ("tree/plain/fp32@cpu", "everywhere", 2),
                                          (PEER, "none", 8))] + [
        error("softmax", "exact/fp32@cpu", "order_free", 2, result="first element")]


class Operations(made_up.SentenceTest):
    def setUp(self):
        self.rows = {
            "error": errors(),
            "condition": [condition("exact/fp32@cpu", "order_free", 1, 7.2), condition("exact/fp32@cpu", "order_free", 1e4, 7),
                          condition("tree/plain/fp32@cpu", "everywhere", 1e4, 3.1)],
            "spread": [of_operation(operation, made_up.spread(f"tree/plain/{f}@cpu", "everywhere", axis))
                       for operation, f, axis in (("dot", "fp32", "runs"), ("norm", "fp32", "threads"))],
            "tree": [tree("tree/plain/fp32@cpu", True), tree("tree/plain/fp64@cpu", True)],
            "price": [price("dot", "tree/plain/fp32@cpu", "everywhere", 8.0), price("norm", "exact/fp32@cpu", "order_free", 4)]}
        self.there = []

    def check(self, *expected, failures=()):
        sources = {question: [source(question, self.rows[kind])] for kind, question in operations.KINDS.items()}
        sources["error_vs_length"].append(source("error_vs_length", self.there, "H200"))
        self.s = operations.section(sources)
        self.assert_sentences(self.s.findings, *expected)
        self.assertEqual(self.s.failures, list(failures))
        return self.s

    def pick(self, kind, method, **fields):
        return next(r for r in self.rows[kind] if r["method"] == method and fields.items() <= r.items())

    # --- sentences ------------------------------------------------------------------------------------------------

    def test_the_verdict_counts_the_checks_of_all_operations(self):
        total = sum(c.total for c in self.check().checks)
        self.assert_sentences([self.s.verdict], f"3 other operations passed all {total} checks: dot, softmax, norm.")
        self.rows["tree"][1]["matches"] = False
        broken = "this machine, CPU: dot/tree/plain/fp64@cpu, n = 4: not the declared order"
        self.assert_sentences([self.check(failures=[broken]).verdict], f"passed {total - 1} of {total} checks")

    def test_rows_of_sums_are_left_out(self):
        self.rows = {kind: [] for kind in self.rows} | {"error": made_up.few_errors()}
        s = self.check()
        self.assertTrue(s.empty)

    def test_counts_errors_within_bounds_of_both_experiments_without_peers(self):
        self.check("All 8 errors of samesum's methods for dot, softmax are within their rigorous bounds.")
        self.pick("error", PEER)["within_bound"] = False
        self.pick("error", TREE, n=4096)["within_bound"] = False
        self.check(f"7 of 8 errors … Beyond the bound: {TREE} on normal at n = 2¹².", failures=[
            f"this machine, CPU: {TREE} on normal, n = 4,096: the error 0.000977 exceeds its bound 0.00244"])
        self.rows["condition"].clear()
        self.check("4 of 5 errors", failures=self.s.failures)
        for r in self.rows["error"]:
            r.update(bound=None, within_bound=True)
        self.check("Theory gives no finite bound for 5 errors")

    def test_counts_correctly_rounded_results_of_exact_except_of_softmax(self):
        self.check("exact is the correctly rounded result in all 4 results (dot).")
        self.rows["error"].append(error("mean", "exact/fp32@cpu", "order_free", 0.25))
        self.check("all 5 results (dot, mean)")
        self.rows["error"][-1]["bits"] = "0x00000007"
        self.check("in 4 of 5 results (dot, mean)", failures=[
            "this machine, CPU: mean/exact/fp32@cpu on normal, n = 1,024: returned 0x00000007, but the exact result rounds to "
            "0x00000000"])
        self.rows["error"] = [r for r in self.rows["error"] if r["method"] == SOFTMAX]
        self.assertNotEqual(self.rows["error"][0]["bits"], self.rows["error"][0]["truth_bits"])
        self.rows["condition"].clear()
        self.assert_no_sentences(self.check().findings, "correctly rounded")

    def test_is_exact_if_the_operation_has_one_result(self):
        for method, more, expected in ((EXACT, {}, True), (TREE, {}, False),
                                       ("moments/exact/fp32@cpu", {"result": "variance"}, True),
                                       ("log_softmax/exact/fp32@cpu", {"result": "first element"}, False)):
            self.assertEqual(operations.is_exact({"method": method} | more), expected, method)

    def test_counts_cases_in_which_a_promise_was_kept(self):
        self.check("Methods with a promise of the same bits returned one bit pattern in both cases (dot, norm). A case is …")
        self.rows["spread"] += [of_operation("prod", made_up.spread("tree/fp32@cpu", "everywhere", "threads", 7, broken=True)),
                                of_operation("mean", made_up.spread("atomic/plain/fp32@cpu", "none", "runs", 5)),
                                of_operation("mean", made_up.spread("tree/plain/fp32@cpu", "everywhere", "permutation", 4))]
        self.check("in 2 of 3 cases (dot, norm, prod)", failures=[
            "this machine, CPU: prod/tree/fp32@cpu on normal: 7 results over threads"])

    def test_counts_declared_orders(self):
        self.check("Both orders of dot are as declared.")
        self.rows["tree"] += [tree("pairwise/plain/fp32@cpu", None), tree("pairwise/plain/fp64@cpu", False)]
        self.check("2 of 3 orders of dot are as declared.", failures=[
            "this machine, CPU: dot/pairwise/plain/fp64@cpu, n = 4: not the declared order"])

    def test_wrong_bits_of_a_timed_result_are_a_failure(self):
        self.rows["price"][0]["verified"] = True
        self.check()
        self.rows["price"][0]["verified"] = False
        self.check(failures=[f"this machine, CPU, 1 thread: {TREE} returned wrong bits for n = 4,096"])

    def test_different_bits_in_two_places_are_a_failure(self):
        self.there = [r | {"method": r["method"].replace("@cpu", "@cuda")} for r in self.rows["error"]]
        self.check("All 13 errors")
        there = next(r for r in self.there if r["method"] == "dot/tree/plain/fp32@cuda" and r["n"] == 4096)
        there["bits"] = "0x00000009"
        self.check(failures=[f"{TREE}, dot/tree/plain/fp32@cuda: different bits in different places on normal, n = 4,096"])
        for change in ({"promise": "run_to_run"}, {"seed": 2}, {"data": "uniform"}):
            self.there = [r | change for r in [there]]
            self.check()

    # --- the figure and the tables --------------------------------------------------------------------------------

    def test_a_bound_in_ulps(self):
        row = error("dot", "tree/plain/fp32@cpu", "everywhere", 2)
        for change, expected in (({}, 5), ({"bound": None}, None), ({"truth": 0.0}, None), ({"truth": None}, None),
                                 ({"bound": 0.0}, 0), ({"bound": 1e300, "truth": 1e-300}, None),
                                 ({"method": "dot/tree/plain/fp64@cpu"}, 5 * 2**29),
                                 ({"method": "softmax/tree/plain/fp16@cpu", "result": "first element"}, 5),
                                 ({"input_format": "bf16"}, 5)):
            self.assertEqual(operations.bound_in_ulps(row | change), expected, change)

    def test_the_figure_has_a_line_per_method_and_bounds_of_samesums(self):
        f = self.check().figures[0]
        self.assertEqual(dict(f.menus), {"Operation": ["dot", "softmax"], "Machine": ["this machine, CPU"],
                                         "Element format": ["fp32"], "Data": ["normal"]})
        lines = {s.name: s for s in f.matching(f.chosen())}
        self.assertEqual(list(lines), ["exact", "bound of exact", "tree/plain", "bound of tree/plain", "eigen/dot"])
        self.assertEqual((lines["tree/plain"].x, lines["tree/plain"].y), ([1024, 4096], [2, 2]))
        self.assertEqual(lines["bound of tree/plain"].y, [5, 5])
        self.assertEqual(f.finding, "Dot, this machine, CPU, fp32, normal: at n = 2¹² the methods range from 0.25 ulps "
                                    "(exact) to 8 ulps (eigen/dot).")
        self.pick("error", TREE, n=4096)["error_ulps"] = 99
        self.pick("error", EXACT, n=4096)["error_ulps"] = 0
        self.assertIn("range from 0 ulps (exact) to 99 ulps (tree/plain)", self.check().figures[0].finding)

    def test_lines_of_different_orders_differ(self):
        self.rows["error"].append(error("dot", "serial/plain/fp32@cpu", "everywhere", 3))
        f = self.check().figures[0]
        looks = {s.name: (s.dash, s.symbol) for s in f.matching(f.chosen()) if not s.faint}
        self.assertNotEqual(looks["tree/plain"], looks["serial/plain"])

    def test_the_table_of_errors_has_the_longest_array_of_each_operation(self):
        table = self.check().tables[0]
        self.assertEqual(table.caption, "this machine, CPU: error in fp32")
        self.assertEqual(table.rows, [["dot", "exact", "normal", "2¹²", "1", "0.25", "1.5"],
                                      ["dot", "tree/plain", "normal", "2¹²", "1", "2", "5"],
                                      ["dot", "eigen/dot", "normal", "2¹²", "1", "8", "-"],
                                      ["softmax", "exact", "normal", "2¹⁰", "1", "2", "5"]])
        self.rows["error"].append(error("prod", "tree/fp32@cpu", "everywhere", 3, data="near 1"))
        self.rows["error"].append(error("dot", "tree/plain/fp32@cpu", "everywhere", 3, n=1 << 14, data="uniform"))
        self.rows["error"].append(error("dot", "tree/plain/fp64@cpu", "everywhere", 3, n=1 << 14))
        rows = self.check().tables[0].rows
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows[-1], ["prod", "tree", "near 1", "2¹⁰", "1", "3", "7"])

    def test_the_table_of_errors_needs_neither_normal_data_nor_fp32(self):
        self.rows["error"] = [r | {"data": "uniform", "input_format": "fp64", "method": r["method"].replace("fp32", "fp64")}
                              for r in self.rows["error"]]
        table = self.check().tables[0]
        self.assertEqual((table.caption, len(table.rows)), ("this machine, CPU: error in fp64", 4))
        self.assertEqual(table.rows[1][:4], ["dot", "tree/plain", "uniform", "2¹²"])

    def test_each_place_has_a_table_of_errors(self):
        self.there = self.rows["error"][:2]
        tables = self.check().tables
        self.assertEqual([(t.caption, len(t.rows), t.page_only) for t in tables[:2]],
                         [("this machine, CPU: error in fp32", 4, False), ("H200, CPU: error in fp32", 2, True)])

    def test_the_table_of_digits_has_a_column_per_condition_number(self):
        table = self.check().tables[1]
        self.assertEqual(table.columns[:5], ["operation", "method", "1", "10²", "10⁴"])
        self.assertEqual([row[:5] for row in table.rows],
                         [["dot", "exact", "7.2", "-", "7"], ["dot", "tree/plain", "-", "-", "3.1"]])

    def test_the_table_of_prices_has_one_thread_and_the_gpu(self):
        self.rows["price"] += [price("dot", "tree/plain/fp32@cuda", "everywhere", 3000, None, threads=0),
                               price("dot", "tree/plain/fp32@cpu", "everywhere", 9, threads=2)]
        table = self.check().tables[-1]
        self.assertEqual(table.rows, [["dot", "tree/plain", "this machine, CPU, 1 thread", "everywhere", "2¹²", "8", "1"],
                                      ["norm", "exact", "this machine, CPU, 1 thread", "order_free", "2¹²", "4", "1"],
                                      ["dot", "tree/plain", "this machine, GPU", "everywhere", "2¹²", "3,000", "-"]])

    def test_a_section_of_one_experiment_has_its_tables_only(self):
        for kind, captions in (("error", ["error in fp32"]), ("condition", ["correct decimal"]), ("price", ["Speed and"]),
                               ("spread", []), ("tree", [])):
            self.setUp()
            self.rows = {k: rows if k == kind else [] for k, rows in self.rows.items()}
            s = self.check()
            self.assertEqual(len(s.tables), len(captions), kind)
            for t, caption in zip(s.tables, captions):
                self.assertIn(caption, t.caption)
            self.assertEqual(len(s.figures), kind == "error")

    def test_terms_hold_for_every_operation(self):
        self.assertIn("result", phrases.TERMS["condition number"])
        self.assertIn("dot product", phrases.TERMS["condition number"])
        self.assertIn("dot/tree/kahan/fp32@cpu", phrases.TERMS["method"])
        for term in operations.section({}).terms:
            self.assertNotIn("rounded sum", phrases.TERMS[term])


if __name__ == "__main__":
    unittest.main()
