"""What the section on errors says: made-up rows, altered one number at a time. report_test.py has more of it."""

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


class ProbableBounds(made_up.Told):
    def setUp(self):
        self.rows = [error(TREE, n, 1e-7, 8e-7, 4e-7) for n in (1024, 4096)]
        self.rows += [error(KAHAN, n, 1e-8, 6e-8, 6e-8) for n in (1024, 4096)]
        self.rows += [coverage(TREE, p) for p in (0.9, 0.99)]
        self.rows += [coverage(FP16, 0.99, 0.25, marked="stagnation")]
        source("error_vs_length", self.rows)

    def tell(self, *told, failures=()):
        self.s = error_vs_length.section([dataclasses.replace(source("error_vs_length", []), rows=self.rows)])
        self.assert_tells(self.s.findings, *told)
        self.assertEqual(self.s.failures, list(failures))

    def test_what_is_within_and_how_far_below_the_rigorous_bound(self):
        self.tell("probability of 0.99 … covers all 4 errors … 0.5 of the rigorous one … of the 2 where")
        for row, new, told in ((1, {"probable_bound": 2e-7}, "it is 0.38 of the rigorous one … of the 2 where"),
                               (0, {"probable_bound": 2e-7}, "it is 0.25 of the rigorous one"),
                               (1, {"bound": None}, "of the 1 where it is less, and is the only one for 1.")):
            self.rows[row].update(new)
            self.tell(told)

    def test_what_is_beyond_it_is_named_and_no_failure(self):
        self.rows[1].update(probable_bound=5e-8, data="uniform")
        at = f"{TREE} on uniform at n = 2¹² (this machine)."
        self.tell(f"covers 3 of 4 errors … beyond … of uniform, … {at}")
        self.rows.insert(0, self.rows[0] | {"n": 16, "probable_bound": 5e-8})  # of those beyond the longest is named
        self.tell(f"beyond … of normal, uniform, … {at}")

    def test_what_is_marked_is_told_apart_with_how_often_the_bound_holds_there(self):
        self.tell()
        self.assert_silent(self.s.findings, "Marked for")
        self.rows[0].update(marked="structure", data="ones")
        self.tell("covers all 3 errors of random elements", "Marked for structure … ones) … 1 of 1 error.")
        self.rows[0]["probable_bound"] = 5e-8
        self.tell(f"0 of 1 error; … of ones, … {TREE} on ones at n = 2¹⁰ (this machine).")
        self.rows.append(self.rows[0] | {"n": 4096})
        self.tell(f"none of 2 errors; … {TREE} on ones at n = 2¹² (this machine).", "covers all 3 errors of random")
        self.rows[1]["marked"] = "stagnation"
        self.tell("Marked for stagnation")

    def test_rows_of_before_are_read_without_it(self):
        self.rows = [{k: v for k, v in r.items() if k != "probable_bound"} for r in self.rows[:4]]
        self.tell()
        self.assert_silent(self.s.findings, "probability")
        self.assertFalse([s for s in self.s.figures[0].series if s.name.startswith("probable")])

    def test_coverage_is_told_by_probability_with_the_least(self):
        told = "probability 0.9 … 90% … in {} … {} of 1,000, of {} on " + HERE + "; … {} of the bound"
        self.tell(told.format("1 of 1 case", "100%", TREE, "0.1"))
        self.rows[4].update(covered=0.9996, median_share=0.3)
        self.tell(told.format("1 of 1 case", "99.9%", TREE, "0.3"))
        self.rows += [coverage(KAHAN, 0.9, 0.95), coverage("exact/fp32@cpu", 0.9)]
        self.tell(told.format("all 3 cases", "95%", KAHAN, "0.1"))

    def test_where_no_array_has_a_finite_bound_nothing_is_covered(self):
        self.tell()
        self.assert_silent(self.s.findings, "No array")
        self.rows[5].update(covered=None, median_share=None)
        self.tell(f"No array … 1 of 3 cases, as {TREE} on {HERE}")
        self.assert_silent(self.s.findings, "probability 0.99 covers")
        self.assertEqual(self.s.tables[-1].rows[0][5:7], ["100%", ""])

    def test_too_low_a_coverage_fails_unless_it_stagnates(self):
        self.tell(f"1 case is marked for stagnation … serial/plain/fp16 on uniform … 25%, of {FP16} on {HERE} … 0.99")
        self.rows.append(coverage("serial/kahan/fp16@cpu", 0.99, 0.125, marked="stagnation"))
        self.tell(f"2 cases are marked … 12.5%, of serial/kahan/fp16@cpu on {HERE} … 0.99")
        self.rows[5]["covered"] = 0.98
        self.rows[6]["beyond_bound"] = 3
        self.tell("probability 0.99 … 99% … 0 of 1 case", failures=[
            f"this machine: {TREE} on uniform, n = 1,024: the probable bound at 0.99 covers 98% of the errors",
            f"this machine: {FP16} on uniform, n = 1,024: 3 of 1,000 errors exceed their bounds"])

    def test_table_and_figure(self):
        self.tell()
        table = self.s.tables[-1]
        self.assertEqual(table.columns[5:7], ["least at 0.9", "least at 0.99"])
        self.assertEqual([row[0] for row in table.rows], ["uniform", "uniform, marked for stagnation"])
        self.assertEqual(table.rows[1][5:], ["", "25%", "0.1"])
        faint = {s.name for s in self.s.figures[0].series if s.faint}
        self.assertEqual(faint, {"bound of tree/plain", "probable bound of tree/plain", "bound of tree/kahan"})
        self.assertTrue(svg(self.s.figures[0]))


class Errors(made_up.OfSection):
    """Of two machines, two data sets and two lengths, so that no first row says it all."""

    question = "error_vs_length"

    def setUp(self):
        self.rows = [error(f"{recipe}/fp32@cpu", n, factor * e, bound * e, None, data)
                     for data, factor in (("normal", 1), ("ones", 3))
                     for n, e in ((64, 1e-9), (1024, 1e-7), (4096, 2e-7))
                     for recipe, bound in (("exact", 4.0), ("tree/plain", 8.0), ("serial/plain", 100.0))]
        self.there = [error("tree/plain/fp32@cuda", 1024, 1e-7, 8e-7, None),
                      error("atomic/plain/fp32@cuda", 1024, 4e-7, 8e-6, None)]
        self.by("serial/plain", n=4096, data="normal")["absolute_error"] *= 10
        for r in self.rows:
            r["error_ulps"] *= {"exact": 0.5, "serial/plain": 10 if r["n"] == 4096 else 2}.get(r["method"][:-9], 1)

    def by(self, recipe, **wanted):
        return next(r for r in self.rows if r["method"] == f"{recipe}/fp32@cpu" and wanted.items() <= r.items())

    def test_the_bounds_and_the_closest_of_them(self):
        told = "bounds are {} times … median; the closest is {} times, of {}"
        self.tell(told.format("9", "2.67", f"{TREE} on ones at n = 64 (this machine)"))
        self.by("serial/plain", n=4096, data="ones")["bound"] = 9e-7
        self.tell(told.format("8", "1.5", "serial/plain/fp32@cpu on ones at n = 2¹² (this machine)"))
        self.there[1]["bound"] = 5e-7
        self.tell(told.format("8", "1.25", "atomic/plain/fp32@cuda on normal at n = 2¹⁰ (H200)"))

    def test_ranking_and_growth_are_told_of_each_place(self):
        here = ("This machine, CPU: in fp32 at n = 2¹² … 2 data sets … 3 methods 1.7 for exact (the best), 3.4 for "
                "tree/plain, 34 for serial/plain (the worst)")
        there = ("H200, GPU: in fp32 at n = 2¹⁰ … 1 data set … 2 methods 0.84 for tree/plain (the best), {} for "
                 "atomic/plain (the worst)")
        grown = "This machine, CPU: from n = 2¹⁰ to 2¹² … 10 times … serial/plain, {} times … tree/plain"
        self.tell(here, there.format("3.4"), grown.format("2"))
        self.there[1]["error_ulps"] = 99.0
        self.tell(here, there.format("99"))
        self.by("tree/plain", n=1024, data="ones")["error_ulps"] = 100.0
        self.tell(grown.format("0.067"))
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows]
        self.tell("This machine, CPU; H200, GPU: in fp32 at n = 2¹²")
        self.rows = [r for r in self.rows if r["n"] <= 1024]  # shorter arrays tell nothing of growth
        self.there = []
        self.tell()
        self.assert_silent(self.s.findings, "from n =")

    def test_bits_that_differ_between_places_are_named_and_fail(self):
        self.tell("1 of 1 sum … in more than one place")
        self.there += [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.rows if r["n"] == 64]
        self.tell("All 7 sums … in more than one place")
        self.there[0]["bits"] = "0x3f800001"
        self.tell(f"6 of 7 sums … not {TREE} on normal at n = 2¹⁰ (this machine), tree/plain/fp32@cuda on normal at n "
                  "= 2¹⁰ (H200).")
        self.assert_tells(self.s.failures, f"{TREE}, tree/plain/fp32@cuda: … normal, n = 1,024")

    def test_a_pull_request_gets_the_first_table_alone(self):
        self.tell()
        self.assertEqual([(t.folded, t.page_only) for t in self.s.tables], [(False, False), (True, True)])

    def test_the_figure_says_what_it_shows_first(self):
        told = "This machine, CPU, fp32, normal, order tree, in ulps: at n = 2¹² … from {} ulps ({}) to {} ulps ({})"
        for recipe, ulps, ends in ((None, 0, (0.84, "exact", 1.7, "tree/plain")),
                                   ("tree/plain", 70.0, (0.84, "exact", 70, "tree/plain")),
                                   ("exact", 99.0, (70, "tree/plain", 99, "exact"))):
            if recipe:
                self.by(recipe, n=4096, data="normal")["error_ulps"] = ulps
            self.tell()
            self.assert_tells([self.s.figures[0].reading], told.format(*ends))

    def test_marks_are_those_of_the_schema(self):
        self.assertEqual([*error_vs_length.MARKS, None], results.SCHEMA["$defs"]["marked"]["enum"])


if __name__ == "__main__":
    unittest.main()
