"""What the section on errors says of probable bounds: made-up rows, altered one number at a time."""

import dataclasses
import unittest

from made_up import source
import error_vs_length
import results
from figure import svg


def error(method, n, error, bound, probable, data="normal"):
    return {"kind": "error", "data": data, "seed": 1, "method": method, "input_format": "fp32", "n": n,
            "value": 1.0, "bits": "0x3f800000", "truth": 1.0, "truth_bits": "0x3f800000", "error_ulps": error / 2**-23,
            "relative_error": error, "absolute_error": error, "bound": bound, "within_bound": True, "condition": 3.0,
            "promise": "everywhere", "probable_bound": probable, "marked": None}


def coverage(method, probability, covered=1.0, **more):
    return {"kind": "coverage", "data": "uniform", "seed": 1, "method": method, "input_format": "fp32", "n": 1024,
            "seeds": 1000, "probability": probability, "covered": covered, "beyond_bound": 0, "median_share": 0.1,
            "marked": None} | more


class ProbableBounds(unittest.TestCase):
    def setUp(self):
        self.rows = [error("tree/plain/fp32@cpu", n, 1e-7, 8e-7, 4e-7) for n in (1024, 4096)]
        self.rows += [error("tree/kahan/fp32@cpu", n, 1e-8, 6e-8, 6e-8) for n in (1024, 4096)]
        self.rows += [coverage("tree/plain/fp32@cpu", p) for p in (0.9, 0.99)]
        self.rows += [coverage("serial/plain/fp16@cpu", 0.99, 0.25, marked="stagnation")]
        source("error_vs_length", self.rows)

    def section(self):
        self.s = error_vs_length.section([dataclasses.replace(source("error_vs_length", []), rows=self.rows)])
        return "\n".join(self.s.findings)

    def test_says_what_is_within_and_how_far_below_the_rigorous_bound(self):
        self.assertIn("The bound that holds with a probability of 0.99 if roundings have mean 0 covers all 4 errors "
                      "of random elements; it is 0.5 of the rigorous one at the median of the 2 where it is less.",
                      self.section())
        self.rows[1]["probable_bound"] = 2e-7
        self.assertIn("it is 0.38 of the rigorous one at the median of the 2 where it is less.", self.section())
        self.rows[0]["probable_bound"] = 2e-7
        self.assertIn("it is 0.25 of the rigorous one", self.section())
        self.rows[1]["bound"] = None
        self.assertIn("at the median of the 1 where it is less, and is the only one for 1.", self.section())

    def test_names_what_is_beyond_it_and_calls_that_no_failure(self):
        self.rows[1].update(probable_bound=5e-8, data="uniform")
        self.assertIn("covers 3 of 4 errors of random elements", self.section())
        self.assertIn("; beyond it are sums of uniform, as tree/plain/fp32@cpu on uniform at n = 2¹² (this machine).",
                      self.section())
        self.rows.insert(0, self.rows[0] | {"n": 16, "probable_bound": 5e-8})  # of those beyond the longest is named
        self.assertIn("; beyond it are sums of normal, uniform, as tree/plain/fp32@cpu on uniform at n = 2¹² (this "
                      "machine).", self.section())
        self.assertEqual(self.s.failures, [])

    def test_what_is_marked_is_told_apart_with_how_often_the_bound_holds_there(self):
        self.assertNotIn("Marked for", self.section())
        self.rows[0].update(marked="structure", data="ones")
        told = "Marked for structure (elements equal, sorted, in a pattern or made to cancel: ones)"
        text = self.section()
        self.assertIn("covers all 3 errors of random elements", text)
        self.assertIn(told, text)
        self.assertIn("that bound promises nothing: it holds for 1 of 1 error.", text)
        self.rows[0]["probable_bound"] = 5e-8
        self.assertIn("it holds for 0 of 1 error; beyond it are sums of ones, as tree/plain/fp32@cpu on ones at n = "
                      "2¹⁰ (this machine).", self.section())
        self.rows.append(self.rows[0] | {"n": 4096})
        self.assertIn("it holds for none of 2 errors; beyond it are sums of ones, as tree/plain/fp32@cpu on ones at n "
                      "= 2¹² (this machine).", self.section())
        self.assertIn("covers all 3 errors of random elements", self.section())
        self.assertEqual(self.s.failures, [])
        self.rows[1]["marked"] = "stagnation"
        self.assertIn("Marked for stagnation (of one sign", self.section())

    def test_rows_of_before_are_read_without_it(self):
        self.rows = [{k: v for k, v in r.items() if k != "probable_bound"} for r in self.rows[:4]]
        self.assertNotIn("probability", self.section())
        self.assertEqual(len([s for s in self.s.figures[0].series if s.name.startswith("probable")]), 0)

    def test_coverage_is_told_by_probability_with_the_least(self):
        told = ("The bound of probability 0.9 covers at least its 90% of the errors in {} (a method on so many random "
                "arrays); the least is {} of 1,000, of {} on uniform at n = 2¹⁰ (this machine); at the median the "
                "error is {} of the bound.")
        self.assertIn(told.format("1 of 1 case", "100%", "tree/plain/fp32@cpu", "0.1"), self.section())
        self.rows[4].update(covered=0.9996, median_share=0.3)
        self.assertIn(told.format("1 of 1 case", "99.9%", "tree/plain/fp32@cpu", "0.3"), self.section())
        self.rows += [coverage("tree/kahan/fp32@cpu", 0.9, 0.95), coverage("exact/fp32@cpu", 0.9)]
        self.assertIn(told.format("all 3 cases", "95%", "tree/kahan/fp32@cpu", "0.1"), self.section())

    def test_where_no_array_has_a_finite_bound_nothing_is_covered(self):
        told = ("No array had a finite probable bound in {}, as {} on uniform at n = 2¹⁰ (this machine): there is "
                "nothing to cover.")
        self.assertNotIn("No array", self.section())
        self.rows[5].update(covered=None, median_share=None)
        self.assertIn(told.format("1 of 3 cases", "tree/plain/fp32@cpu"), self.section())
        self.assertNotIn("probability 0.99 covers", self.section())
        self.assertEqual(self.s.failures, [])
        self.assertEqual(self.s.tables[-1].rows[0][5:7], ["100%", ""])

    def test_too_low_a_coverage_fails_unless_it_stagnates(self):
        told = ("marked for stagnation, where it promises nothing ({}): of these the least coverage is {}, of {} on "
                "uniform at n = 2¹⁰ (this machine) at probability 0.99.")
        self.assertIn("1 case is " + told.format("serial/plain/fp16 on uniform", "25%", "serial/plain/fp16@cpu"),
                      self.section())
        self.assertEqual(self.s.failures, [])
        self.rows.append(coverage("serial/kahan/fp16@cpu", 0.99, 0.125, marked="stagnation"))
        self.assertIn("2 cases are " + told.format("serial/plain/fp16 on uniform, serial/kahan/fp16 on uniform",
                                                   "12.5%", "serial/kahan/fp16@cpu"), self.section())
        self.rows[5]["covered"] = 0.98
        self.assertIn("The bound of probability 0.99 covers at least its 99% of the errors in 0 of 1 case",
                      self.section())
        self.assertEqual(self.s.failures, ["this machine: tree/plain/fp32@cpu on uniform, n = 1,024: the probable "
                                           "bound at 0.99 covers 98% of the errors"])

    def test_errors_beyond_the_rigorous_bound_fail_everywhere(self):
        self.rows[6]["beyond_bound"] = 3
        self.section()
        self.assertEqual(self.s.failures,
                         ["this machine: serial/plain/fp16@cpu on uniform, n = 1,024: 3 of 1,000 errors exceed their "
                          "bounds"])

    def test_stagnating_data_have_a_line_of_their_own_in_the_table(self):
        self.section()
        table = self.s.tables[-1]
        self.assertEqual(table.columns, ["data", "format", "n", "methods", "arrays", "least at 0.9", "least at 0.99",
                                         "error over bound, median"])
        self.assertEqual([row[0] for row in table.rows], ["uniform", "uniform, marked for stagnation"])
        self.assertEqual(table.rows[1][5:], ["", "25%", "0.1"])

    def test_the_figure_has_a_second_bound_where_it_differs(self):
        self.section()
        faint = {s.name for s in self.s.figures[0].series if s.faint}
        self.assertEqual(faint, {"bound of tree/plain", "probable bound of tree/plain", "bound of tree/kahan"})
        self.assertTrue(svg(self.s.figures[0]))


class Errors(unittest.TestCase):
    """Of two machines, two data sets and two lengths, so that no first row says it all."""

    def setUp(self):
        self.here = [error(f"{recipe}/fp32@cpu", n, factor * e, bound * e, None, data)
                     for data, factor in (("normal", 1), ("ones",
                                                          3)) for n, e in ((64, 1e-9), (1024, 1e-7), (4096, 2e-7))
                     for recipe, bound in (("exact", 4.0), ("tree/plain", 8.0), ("serial/plain", 100.0))]
        self.there = [error("tree/plain/fp32@cuda", 1024, 1e-7, 8e-7, None),
                      error("atomic/plain/fp32@cuda", 1024, 4e-7, 8e-6, None)]
        self.by("serial/plain", n=4096, data="normal")["absolute_error"] *= 10
        for r in self.here:
            r["error_ulps"] *= {"exact": 0.5, "serial/plain": 10 if r["n"] == 4096 else 2}.get(r["method"][:-9], 1)

    def by(self, recipe, **wanted):
        return next(r for r in self.here if r["method"] == f"{recipe}/fp32@cpu" and wanted.items() <= r.items())

    def section(self):
        there = source("error_vs_length", self.there, "H200")
        self.s = error_vs_length.section([source("error_vs_length", self.here), there])
        return self.s.findings

    def test_the_bounds_and_the_closest_of_them(self):
        told = ("The bounds are {} times the error at the median; the closest is {} times, of {}.")
        self.assertIn(told.format("9", "2.67", "tree/plain/fp32@cpu on ones at n = 64 (this machine)"), self.section())
        self.by("serial/plain", n=4096, data="ones")["bound"] = 9e-7
        self.assertIn(told.format("8", "1.5", "serial/plain/fp32@cpu on ones at n = 2¹² (this machine)"),
                      self.section())
        self.there[1]["bound"] = 5e-7
        self.assertIn(told.format("8", "1.25", "atomic/plain/fp32@cuda on normal at n = 2¹⁰ (H200)"), self.section())

    def test_ranking_and_growth_are_told_of_each_place(self):
        ranked = "{}: in fp32 at n = {} the median error over {} is, in ulps, of samesum's {} methods {}."
        grown = ("This machine, CPU: from n = 2¹⁰ to 2¹² the median error in fp32 became {} times as large for "
                 "serial/plain, {} times as large for tree/plain.")
        here = ranked.format("This machine, CPU", "2¹²", "2 data sets", 3,
                             "1.7 for exact (the best), 3.4 for tree/plain, 34 for serial/plain (the worst)")
        there = ranked.format("H200, GPU", "2¹⁰", "1 data set", 2,
                              "0.84 for tree/plain (the best), 3.4 for atomic/plain (the worst)")
        for sentence in (here, there, grown.format("10", "2")):
            self.assertIn(sentence, self.section())
        self.there[1]["error_ulps"] = 99.0
        self.assertIn(here, self.section())
        self.assertIn(there.replace("3.4", "99"), self.section())
        self.by("tree/plain", n=1024, data="ones")["error_ulps"] = 100.0
        self.assertIn(grown.format("10", "0.067"), self.section())

    def test_bits_that_differ_between_places_are_named(self):
        told = ("sum{} with a promise of the same bits everywhere, asked for in more than one place (machines, CPU and "
                "GPU), had the same bits in each")
        self.assertIn("1 of 1 " + told.format("") + ".", self.section())
        self.there += [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.here if r["n"] == 64]
        self.assertIn("All 7 " + told.format("s") + ".", self.section())
        self.there[0]["bits"] = "0x3f800001"
        self.assertIn("6 of 7 " + told.format("s") + "; not tree/plain/fp32@cpu on normal at n = 2¹⁰ (this machine), "
                      "tree/plain/fp32@cuda on normal at n = 2¹⁰ (H200).", self.section())
        self.assertIn("tree/plain/fp32@cpu, tree/plain/fp32@cuda: not the same bits in every place, on normal, n = "
                      "1,024",
                      self.s.failures)

    def test_a_pull_request_gets_the_first_table_alone(self):
        self.section()
        self.assertEqual([(t.folded, t.page_only) for t in self.s.tables], [(False, False), (True, True)])

    def test_what_is_said_of_two_places_is_said_once(self):
        self.there = [r | {"method": r["method"].replace("cpu", "cuda")} for r in self.here]
        self.assertIn("This machine, CPU; H200, GPU: in fp32 at n = 2¹²", "\n".join(self.section()))

    def test_shorter_arrays_than_1024_tell_nothing_of_growth(self):
        self.here = [r for r in self.here if r["n"] <= 1024]
        self.assertNotIn("from n =", "\n".join(self.section()))

    def test_the_figure_says_what_it_shows_first(self):
        reading = ("This machine, CPU, fp32, normal, order tree, in ulps: at n = 2¹² the lines go from {} ulps (exact) "
                   "to {} ulps ({}).")
        self.section()
        self.assertEqual(self.s.figures[0].reading, reading.format(0.84, 1.7, "tree/plain"))
        self.by("tree/plain", n=4096, data="normal")["error_ulps"] = 70.0
        self.section()
        self.assertEqual(self.s.figures[0].reading, reading.format(0.84, 70, "tree/plain"))
        self.by("exact", n=4096, data="normal")["error_ulps"] = 99.0
        self.section()
        self.assertIn("the lines go from 70 ulps (tree/plain) to 99 ulps (exact).", self.s.figures[0].reading)

    def test_marks_are_those_of_the_schema(self):
        self.assertEqual([*error_vs_length.MARKS, None], results.SCHEMA["$defs"]["marked"]["enum"])


if __name__ == "__main__":
    unittest.main()
