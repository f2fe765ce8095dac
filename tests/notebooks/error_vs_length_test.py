"""Tests of the section on errors, with made-up rows that are changed one number at a time. report_test.py has more."""

import dataclasses
import unittest

import made_up
from made_up import source
import error_vs_length
import results
from figure import svg

TREE, KAHAN, FP16 = "tree/plain/fp32@cpu", "tree/kahan/fp32@cpu", "serial/plain/fp16@cpu"
HERE = "uniform at n = 2¹⁰ (this machine)"


def error(method, n, error, bound, probable, data="normal"):
    return {"kind": "error", "data": data, "seed": 1, "method": method, "input_format": "fp32", "n": n,
            "value": 1.0, "bits": "0x3f800000", "truth": 1.0, "truth_bits": "0x3f800000", "error_ulps": error / 2**-23,
            "relative_error": error, "absolute_error": error, "bound": bound, "within_bound": True, "condition": 3.0,
            "promise": "everywhere", "probable_bound": probable, "marked": None}


def coverage(method, probability, covered=1.0, **more):
    return {"kind": "coverage", "data": "uniform", "seed": 1, "method": method, "input_format": "fp32", "n": 1024,
            "seeds": 1000, "probability": probability, "covered": covered, "beyond_bound": 0, "median_share": 0.1,
            "marked": None} | more


class ProbableBounds(made_up.SentenceTest):
    def setUp(self):
        self.rows = [error(TREE, n, 1e-7, 8e-7, 4e-7) for n in (1024, 4096)]
        self.rows += [error(KAHAN, n, 1e-8, 6e-8, 6e-8) for n in (1024, 4096)]
        self.rows += [coverage(TREE, p) for p in (0.9, 0.99)]
        self.rows += [coverage(FP16, 0.99, 0.25, marked="stagnation")]
        source("error_vs_length", self.rows)

    def check(self, *expected, failures=()):
        self.s = error_vs_length.section([dataclasses.replace(source("error_vs_length", []), rows=self.rows)])
        self.assert_sentences(self.s.findings, *expected)
        self.assertEqual(self.s.failures, list(failures))

    def test_counts_errors_within_the_bound_and_its_ratio_to_the_rigorous_bound(self):
        self.check("probability 0.99 … covers all 4 errors … rigorous bound (2 errors), the median ratio of the two "
                   "is 0.5.")
        for row, new, expected in ((1, {"probable_bound": 2e-7}, "rigorous bound (2 errors), … is 0.38."),
                                   (0, {"probable_bound": 2e-7}, "… is 0.25."),
                                   (1, {"bound": None}, "(1 error), … is 0.25; it is the only finite bound for 1 "
                                                        "error.")):
            self.rows[row].update(new)
            self.check(f"The probable bound … {expected}")

    def test_errors_beyond_it_are_named_but_are_no_failures(self):
        self.rows[1].update(probable_bound=5e-8, data="uniform")
        at = f"{TREE} on uniform at n = 2¹² (this machine)."
        self.check(f"covers 3 of 4 errors … beyond it are on uniform, … {at}")
        self.rows.insert(0, self.rows[0] | {"n": 16, "probable_bound": 5e-8})  # the longest of them is named
        self.check(f"beyond it are on normal, uniform, … {at}")

    def test_marked_data_have_sentences_of_their_own(self):
        self.check()
        self.assert_no_sentences(self.s.findings, "On structured data", "On data whose sum may")
        self.rows[0].update(marked="structure", data="ones")
        self.check("covers all 3 errors on random elements", "On structured data … ones) … the only error.")
        self.rows[0]["probable_bound"] = 5e-8
        self.check(f"0 of 1 error; … on ones, … {TREE} on ones at n = 2¹⁰ (this machine).")
        self.rows.append(self.rows[0] | {"n": 4096})
        self.check(f"neither of the two errors; … {TREE} on ones at n = 2¹² (this machine).", "covers all 3 errors on random")
        self.rows[1]["marked"] = "stagnation"
        self.check("On data whose sum may stagnate (… normal) … may fail.")

    def test_rows_without_a_probable_bound_are_accepted(self):
        self.rows = [{k: v for k, v in r.items() if k != "probable_bound"} for r in self.rows[:4]]
        self.check()
        self.assert_no_sentences(self.s.findings, "probability")
        self.assertFalse([s for s in self.s.figures[0].series if s.name.startswith("probable")])

    def test_coverage_per_probability_with_the_lowest(self):
        expected = "probability 0.9 … 90% … in {} … {} of 1,000 arrays, for {} on " + HERE + "; … bound is {}."
        self.check("probability 0.9 covers all errors in the only case (… arrays); the median … bound is 0.1.")
        self.rows[4].update(covered=0.9996, median_share=0.3)
        self.check(expected.format("the only case", "99.9%", TREE, "0.3"))
        self.rows += [coverage(KAHAN, 0.9, 0.95), coverage("exact/fp32@cpu", 0.9)]
        self.check(expected.format("all 3 cases", "95%", KAHAN, "0.1"))

    def test_cases_without_a_finite_bound_are_left_out(self):
        self.check()
        self.assert_no_sentences(self.s.findings, "is infinite for every array")
        self.rows[5].update(covered=None, median_share=None)
        self.check(f"In 1 of 3 cases … infinite for every array, for example {TREE} on {HERE}.")
        self.assert_no_sentences(self.s.findings, "probability 0.99 covers")
        self.assertEqual(self.s.tables[-1].rows[0][5:7], ["100%", ""])

    def test_low_coverage_is_a_failure_unless_the_data_are_marked(self):
        self.check(f"In 1 case with data whose sum may stagnate (serial/plain/fp16 on uniform), … 25%, for {FP16} on "
                   f"{HERE} … 0.99")
        self.rows.append(coverage("serial/kahan/fp16@cpu", 0.99, 0.125, marked="stagnation"))
        self.check(f"In 2 cases with data whose sum may stagnate … 12.5%, for serial/kahan/fp16@cpu on {HERE} … 0.99")
        self.rows[5]["covered"] = 0.98
        self.rows[6]["beyond_bound"] = 3
        self.check("probability 0.99 … 99% … 0 of 1 case", failures=[
            f"this machine: {TREE} on uniform, n = 1,024: the probable bound at 0.99 covers 98% of the errors",
            f"this machine: {FP16} on uniform, n = 1,024: 3 of 1,000 errors exceed their bounds"])

    def test_table_and_figure(self):
        self.check()
        table = self.s.tables[-1]
        self.assertEqual(table.columns[5:7], ["lowest coverage at 0.9", "lowest coverage at 0.99"])
        self.assertEqual([row[0] for row in table.rows], ["uniform", "uniform (data whose sum may stagnate)"])
        self.assertEqual(table.rows[1][5:], ["", "25%", "0.1"])
        faint = {s.name for s in self.s.figures[0].series if s.faint}
        self.assertEqual(faint, {"bound of tree/plain", "probable bound of tree/plain", "bound of tree/kahan"})
        self.assertTrue(svg(self.s.figures[0]))


class Errors(made_up.SectionTest):
    """Rows of two machines, two data sets and three lengths, so that findings depend on more than the first row."""

    question = "error_vs_length"

    def setUp(self):
        self.rows = [error(f"{algorithm}/fp32@cpu", n, factor * e, bound * e, None, data)
                     for data, factor in (("normal", 1), ("ones", 3))
                     for n, e in ((64, 1e-9), (1024, 1e-7), (4096, 2e-7))
                     for algorithm, bound in (("exact", 4.0), ("tree/plain", 8.0), ("serial/plain", 100.0))]
        self.there = [error("tree/plain/fp32@cuda", 1024, 1e-7, 8e-7, None),
                      error("atomic/plain/fp32@cuda", 1024, 4e-7, 8e-6, None)]
        self.by("serial/plain", n=4096, data="normal")["absolute_error"] *= 10
        for r in self.rows:
            r["error_ulps"] *= {"exact": 0.5, "serial/plain": 10 if r["n"] == 4096 else 2}.get(r["method"][:-9], 1)

    def by(self, algorithm, **fields):
        return next(r for r in self.rows if r["method"] == f"{algorithm}/fp32@cpu" and fields.items() <= r.items())

    def test_the_ratio_of_bounds_to_errors_and_the_smallest(self):
        tree = "The bound of tree/plain in fp32 at n = 2¹² is 2.7 (ones) to 8 (normal) times the error"
        smallest = "the smallest ratio of bound to error is {}, for {}"
        self.check(tree, smallest.format("2.67", f"{TREE} on ones at n = 64 (this machine), … on ones at n = 2¹² (this machine)."))
        self.by("serial/plain", n=4096, data="ones")["bound"] = 9e-7
        self.check(tree, smallest.format("1.5", "serial/plain/fp32@cpu on ones at n = 2¹² (this machine)."))
        self.there[1]["bound"] = 4.008e-7
        self.check(smallest.format("1.002", "atomic/plain/fp32@cuda on normal at n = 2¹⁰ (H200)."))

    def test_ranking_and_growth_per_place(self):
        here = ("This machine, CPU: largest errors in fp32 at n = 2¹² over 2 data sets, in ulps, of samesum's 3 "
                "methods: 2.5 for exact (best), 5 for tree/plain, 50 for serial/plain (worst).")
        there = ("H200, GPU: largest errors in fp32 at n = 2¹⁰ over 1 data set, in ulps, of samesum's 2 methods: 0.84 "
                 "for tree/plain (best), {} for atomic/plain (worst).")
        grown = "This machine, CPU: from n = 2¹⁰ to n = 2¹², … 10-fold for serial/plain, {}-fold for tree/plain."
        self.check(here, there.format("3.4"), grown.format("2"))
        self.there[1]["error_ulps"] = 99.0
        self.check(here, there.format("99"))
        self.by("tree/plain", n=1024, data="ones")["error_ulps"] = 100.0
        self.check(grown.format("0.05"))
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.check("This machine, CPU; H200, GPU: largest errors in fp32 at n = 2¹²")
        self.rows = [r for r in self.rows if r["n"] <= 1024]  # growth needs longer arrays
        self.there = []
        self.check()
        self.assert_no_sentences(self.s.findings, "from n =")

    def test_growth_is_on_the_data_sets_of_both_lengths(self):
        self.rows += [r | {"data": "third", "error_ulps": 1e-6} for r in self.rows if (r["n"], r["data"]) == (1024, "ones")]
        self.check("the largest error on 2 data sets in fp32 grows 10-fold for serial/plain, 2-fold for tree/plain.")

    def test_different_bits_in_different_places_are_failures(self):
        self.check("The only sum … in more than one place")
        self.there += [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows if r["n"] == 64]
        self.check("All 7 sums … in more than one place")
        self.there[0]["bits"] = "0x3f800001"
        self.check(f"6 of 7 sums … exceptions: {TREE} on normal at n = 2¹⁰ (this machine), tree/plain/fp32@cuda on "
                   "normal at n = 2¹⁰ (H200).")
        self.assert_sentences(self.s.failures, f"{TREE}, tree/plain/fp32@cuda: different bits … normal, n = 1,024")

    def test_report_md_has_only_the_first_table(self):
        self.check()
        self.assertEqual([(t.folded, t.page_only) for t in self.s.tables], [(False, False), (True, True)])

    def test_the_finding_of_the_figure(self):
        expected = ("This machine, CPU, fp32, normal, a loop, a tree and exact, in ulps: at n = 2¹² … from {} ulps "
                    "({}) to {} ulps ({}).")
        for algorithm, ulps, ends in ((None, 0, (0.84, "exact", 17, "serial/plain")),
                                      ("tree/plain", 70.0, (0.84, "exact", 70, "tree/plain")),
                                      ("exact", 99.0, (17, "serial/plain", 99, "exact"))):
            if algorithm:
                self.by(algorithm, n=4096, data="normal")["error_ulps"] = ulps
            self.check()
            self.assert_sentences([self.s.figures[0].finding], expected.format(*ends))

    def test_the_figure_first_shows_the_methods_of_the_verdict_together_even_if_no_place_has_all(self):
        self.rows = [r | ({} if "serial" in r["method"] else {"method": r["method"].replace("cpu", "cuda")})
                     for r in self.rows]
        self.check()
        figure = self.s.figures[0]
        self.assertEqual(figure.chosen()[:3], ("this machine, CPU and this machine, GPU", "fp32", "normal"))
        shown = figure.matching(figure.chosen())
        self.assertEqual({s.name for s in shown if not s.faint}, {"serial/plain", "tree/plain", "exact"})
        self.assertEqual({4096}, {max(s.x) for s in shown})
        self.assertNotIn(" and ", figure.choose({"Data": "ones"}).chosen()[0])

    def test_marks_are_those_of_the_schema(self):
        self.assertEqual([*error_vs_length.MARKS, None], results.SCHEMA["$defs"]["marked"]["enum"])


if __name__ == "__main__":
    unittest.main()
