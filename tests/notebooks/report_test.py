"""The report says what the results say: made-up results, altered one number at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/report_test.py
"""

import contextlib
import copy
import io
import json
import pathlib
import re
import tempfile
import unittest

import made_up
from made_up import PROVENANCE, measured, result
import markdown
import report
import results
import section

def header(experiment):
    return {"kind": "study", "schema": 2, "experiment": experiment, "question": "?", "mode": "quick", "seed": 1,
            "filter": "", "provenance": PROVENANCE}


METHODS = [("exact/fp32@cpu", "order_free", 0.25), ("tree/plain/fp32@cpu", "everywhere", 2),
           ("serial/plain/fp32@cpu", "everywhere", 40), ("atomic/plain/fp32@cpu", "none", 8),
           ("loop/fp32@peer", "run_to_run", 40), ("tbb/fp32@peer", "none", 4)]


def errors():
    return [{"kind": "error", "data": data, "seed": 1} | result(method, n,
                                                                ulps * (n // 1024 if "serial" in method else 1),
                                                                promise)
            for data in ("normal", "ones") for n in (1024, 4096) for method, promise, ulps in METHODS]


def spreads():
    return [{"kind": "spread", "method": method, "promise": promise, "input_format": "fp32", "data": "normal",
             "seed": 1,
             "n": 4096, "axis": axis, "runs": 10, "distinct_bits": 1, "spread_ulps": 0.0, "lowest": 1.0, "highest": 1.0,
             "broken": False}
            for axis in ("runs", "threads", "alignment") for method, promise, _ in METHODS]


def speeds(threads=1):
    rows = [{"kind": "speed", "method": method, "input_format": "fp32", "data": "normal", "seed": 1, "n": n,
             "threads": threads,
             "caches": "hot", "place": "DRAM", "seconds": 1e-3, "low": 1e-3, "high": 2e-3, "gb_per_s": speed,
             "verified": verified, "bars": []}
            for n in (1 << 20, 1 << 26)
            for method, speed, verified in [("exact/fp32@cpu", 8.0, True), ("tree/plain/fp32@cpu", 10.0, True),
                                            ("loop/fp32@peer", 4.0, None), ("read", 16.0, None)]]
    for r in rows[::4]:
        r["bars"] = [{"against": "loop/fp32@peer", "factor": 1.5, "reached": 2.0, "holds": True}]
    return rows


def comparison():
    return made_up.comparison("made/up.f32", [measured(*m) for m in METHODS])


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "study"
        self.committed = pathlib.Path(temporary.name) / "committed"
        self.folder.mkdir()
        self.committed.mkdir()
        self.rows = {"error_vs_length": errors(), "spread_over_runs": spreads(), "speed_vs_length": speeds()}
        self.comparisons = [comparison()]

    def write(self, path, objects):
        path.write_text("".join(json.dumps(made_up.stored(o)) + "\n" for o in objects))

    def run_report(self, *more):
        for experiment, rows in self.rows.items():
            self.write(self.folder / f"{experiment}.jsonl", [header(experiment)] + rows)
        self.write(self.folder / "results.jsonl", self.comparisons)
        return self.run_as_it_is(*more)

    def run_as_it_is(self, *more):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.code = report.main([str(self.folder), *more])
        self.err, self.findings = err.getvalue(), out.getvalue()
        return self.findings

    def page(self):
        return (self.folder / "report.html").read_text()

    def pick(self, experiment, method, **wanted):
        return [r for r in self.rows[experiment] if r["method"] == method and all(r[k] == v for k, v in wanted.items())]

    # --- sentences --------------------------------------------------------------------------------------------

    def test_says_all_where_all_is_well(self):
        findings = self.run_report()
        self.assertEqual(self.code, 0, self.err)
        for sentence in ["All 16 errors of samesum's methods are within their rigorous bounds.",
                         "exact is the correctly rounded sum in all 4 results; samesum's other methods are in none of "
                         "12.",
                         "This machine, CPU: in fp32 at n = 2¹² the median error over 2 data sets is, in ulps, of "
                         "samesum's 4 methods 0.25 for exact (the best), 2 for tree/plain, 160 for serial/plain (the "
                         "worst); of 2 other libraries 4 for tbb (the best), 40 for loop (the worst).",
                         "This machine, CPU: from n = 2¹⁰ to 2¹² the median error in fp32 became 4 times as large for "
                         "serial/plain, 1 times as large for tree/plain.",
                         "All 3 methods with a promise of the same bits everywhere gave one bit pattern for each "
                         "array, in 90 runs.",
                         "This machine, CPU, other addresses: none of 3 methods with less of a promise gave more than "
                         "one result.",
                         "This machine, 1 thread: all 2 bars on speed held.",
                         "exact/fp32@cpu reads 8 GB/s at n = 2²⁶, 80% of tree/plain/fp32@cpu, the fastest plain sum, "
                         "200% of "
                         "loop/fp32@peer, the fastest of other libraries, 50% of reading and nothing else.",
                         "All 4 results whose bits were checked are right; 2 were not checked."]:
            self.assertIn(sentence, findings)

    def test_names_an_error_beyond_its_bound_and_fails(self):
        self.pick("error_vs_length", "tree/plain/fp32@cpu", n=4096, data="ones")[0]["within_bound"] = False
        findings = self.run_report()
        self.assertIn("15 of 16 errors of samesum's methods are within their rigorous bounds. Beyond: "
                      "tree/plain/fp32@cpu on ones at n = 2¹² (this machine).", findings)
        self.assertEqual(self.code, 1)
        self.assertIn("tree/plain/fp32@cpu on ones, n = 4,096: the error", self.err)

    def test_counts_bounds_that_there_are_not(self):
        for r in self.pick("error_vs_length", "serial/plain/fp32@cpu"):
            r["bound"] = None
        self.assertIn("All 12 errors of samesum's methods that have a finite bound are within their rigorous bounds; "
                      "for 4 others theory gives none.", self.run_report())
        for r in self.rows["error_vs_length"]:
            r["bound"] = None
        self.assertIn("Theory gives no finite bound for 16 errors of samesum's methods.", self.run_report())

    def test_sees_that_exact_is_not(self):
        self.pick("error_vs_length", "exact/fp32@cpu", n=1024, data="ones")[0]["bits"] = "0x00000007"
        self.assertIn("exact is the correctly rounded sum in 3 of 4 results", self.run_report())
        self.assertEqual(self.code, 1)
        self.assertIn("gave 0x00000007", self.err)

    def test_what_a_peer_breaks_is_told_and_is_no_failure(self):
        self.pick("error_vs_length", "tbb/fp32@peer")[0]["within_bound"] = False
        self.pick("spread_over_runs", "loop/fp32@peer", axis="runs")[0].update(distinct_bits=2, broken=True)
        findings = self.run_report()
        self.assertIn("7 of 8 errors of other libraries are within", findings)
        self.assertIn("Broken promises of other libraries: run_to_run by loop/fp32@peer (this machine, CPU).", findings)
        self.assertEqual(self.code, 0, self.err)

    def test_the_ranking_follows_the_numbers(self):
        for r in self.pick("error_vs_length", "exact/fp32@cpu", n=4096):
            r["error_ulps"] = 5.0
        self.assertIn("2 for tree/plain (the best), 5 for exact, 160 for serial/plain (the worst)", self.run_report())
        for r in self.pick("error_vs_length", "atomic/plain/fp32@cpu", n=4096):
            r["error_ulps"] = 500.0
        self.assertIn("160 for serial/plain, 500 for atomic/plain (the worst)", self.run_report())

    def lose(self, method, **wanted):
        for r in self.pick("error_vs_length", method, **wanted):
            r.update(value=None, bound=None, error_ulps=None, relative_error=None, absolute_error=None)

    def test_an_error_that_is_not_finite_on_one_data_set_counts_as_the_largest(self):
        self.rows["error_vs_length"] += [r | {"data": "third"} for r in errors() if r["data"] == "ones"]
        self.lose("tree/plain/fp32@cpu", data="ones")
        self.lose("loop/fp32@peer", data="ones")
        findings = self.run_report()
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("over 3 data sets is, in ulps, of samesum's 4 methods 0.25 for exact (the best), 2 for "
                      "tree/plain, 160 for "
                      "serial/plain (the worst); of 2 other libraries 4 for tbb (the best), 40 for loop (the worst).",
                      findings)
        self.assertIn("4 times as large for serial/plain, 1 times as large for tree/plain.", findings)

    def test_a_median_that_is_not_finite_is_told(self):
        self.lose("tree/plain/fp32@cpu", n=4096)
        self.lose("tbb/fp32@peer", data="ones")
        findings = self.run_report()
        self.assertIn("160 for serial/plain, not finite for tree/plain (the worst); of 2 other libraries 40 for loop "
                      "(the best), "
                      "not finite for tbb (the worst).", findings)
        self.assertIn("became not finite for tree/plain, 4 times as large for serial/plain.", findings)
        self.lose("tree/plain/fp32@cpu", n=1024)
        self.assertIn("became 4 times as large for serial/plain.", self.run_report())

    def test_tells_who_gave_several_results_and_how_far_apart(self):
        self.pick("spread_over_runs", "tbb/fp32@peer", axis="threads")[0].update(distinct_bits=7, spread_ulps=12.0)
        self.assertIn("This machine, CPU, other numbers of threads: 1 of 3 methods with less of a promise gave more "
                      "than one result, up to 7 in 10 runs (tbb/fp32@peer) and as far apart as 12 ulps (tbb/fp32@peer "
                      "on normal).",
                      self.run_report())

    def test_a_broken_promise_is_told_and_fails(self):
        self.pick("spread_over_runs", "tree/plain/fp32@cpu", axis="alignment")[0].update(distinct_bits=2, broken=True)
        self.assertIn("2 of 3 methods with a promise of the same bits everywhere gave one bit pattern for each array, "
                      "in 90 runs; not tree/plain/fp32@cpu (this machine, CPU).", self.run_report())
        self.assertEqual(self.code, 1)
        self.assertIn("tree/plain/fp32@cpu promises everywhere but gave 2 bit patterns", self.err)

    def test_a_missed_bar_is_told_with_what_was_reached_and_is_no_failure(self):
        self.pick("speed_vs_length", "exact/fp32@cpu", n=1 << 26)[0]["bars"][0].update(reached=1.2, holds=False)
        self.assertIn("This machine, 1 thread: 1 of 2 bars on speed held. Missed: exact/fp32@cpu in DRAM: 1.2 of 1.5 "
                      "times loop.",
                      self.run_report())
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("<td>exact/<wbr>fp32@cpu</td><td data-is=miss>MISS</td>", self.page())

    def test_a_bar_in_microseconds_is_reached_from_below(self):
        self.pick("speed_vs_length", "exact/fp32@cpu", n=1 << 26)[0]["bars"] = [
            {"against": "us", "factor": 5.0, "reached": 10.0, "holds": False}]
        self.pick("speed_vs_length", "exact/fp32@cpu", n=1 << 26)[0]["place"] = "latency"
        self.assertIn("This machine, 1 thread: 1 of 1 bar on speed and 0 of 1 bar on latency held. "
                      "Missed: exact/fp32@cpu at n = 2²⁶: 10 of at most 5 µs.", self.run_report())

    def test_of_many_missed_bars_five_are_named_the_farthest_first(self):
        first = self.pick("speed_vs_length", "exact/fp32@cpu", n=1 << 26)[0]
        for i, more in enumerate([{"data": "60 binades"}, {"input_format": "fp16"}, {"place": "L2"}, {"place": "GPU"},
                                  {"caches": "cold"}, {"data": "ones"}, {"n": 1 << 25}, {"n": 1 << 27}]):
            self.rows["speed_vs_length"].append(first | more | {"bars": [
                {"against": "exact/fp32@cpu, normal", "factor": 0.5, "reached": 0.4999 - i / 100, "holds": False}]})
        self.assertIn("2 of 10 bars on speed held. Missed: exact/fp32@cpu in DRAM: 0.43 of 0.5 times exact/fp32@cpu, "
                      "normal (the worst "
                      "of 2); exact/fp32@cpu on ones in DRAM: 0.45 of 0.5 times exact/fp32@cpu, normal; "
                      "exact/fp32@cpu in DRAM, cold caches: "
                      "0.46 of 0.5 times exact/fp32@cpu, normal; exact/fp32@cpu at n = 2²⁶: 0.47 of 0.5 times "
                      "exact/fp32@cpu, normal; "
                      "exact/fp32@cpu in L2: 0.48 of 0.5 times exact/fp32@cpu, normal; and 2 more.", self.run_report())

    def on_gpu(self):
        gpu = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in speeds()]
        for r in gpu:
            r["gb_per_s"] = 15.9 if "exact" in r["method"] else r["gb_per_s"]
        self.rows["speed_vs_length"] += gpu
        return gpu

    def test_the_price_of_exactness_is_told_of_each_place_and_of_60_binades(self):
        gpu = self.on_gpu()
        self.rows["speed_vs_length"] += speeds(threads=2) + [
            r | {"data": "60 binades", "gb_per_s": 12.0} for r in gpu if "exact" in r["method"]]
        findings = self.run_report()
        self.assertIn("GPU: exact/fp32@cuda reads 15.9 GB/s at n = 2²⁶, 159% of tree/plain/fp32@cuda, the fastest "
                      "plain sum, 398% of "
                      "loop/fp32@peer, the fastest of other libraries, 99% of reading and nothing else; "
                      "on 60 binades 12 GB/s.\n"
                      "- This machine, 1 thread: exact", findings)
        self.assertIn("This machine, 2 threads: exact/fp32@cpu reads 8 GB/s", findings)

    # --- the three findings on the first screen -----------------------------------------------------------------

    def top(self):
        self.run_report()
        text = (self.folder / "report.md").read_text().split("##")[0]
        for sentence in re.findall(r"\*\* (.*)", text):
            self.assertIn(sentence, self.page())
        return text

    def test_the_first_finding_has_the_errors_of_a_loop_a_tree_and_exact(self):
        told = ("**How wrong?** The sum of 2¹² fp32 numbers by a plain loop is {} units in the last place off, by a "
                "tree of plain additions {}, and by exact {} (this machine, medians over {}).")
        self.assertIn(told.format("160", "2", "0.25", "2 data sets"), self.top())
        for r in self.pick("error_vs_length", "tree/plain/fp32@cpu", n=4096):
            r["error_ulps"] = 3.5
        self.lose("serial/plain/fp32@cpu", n=4096)
        self.pick("error_vs_length", "exact/fp32@cpu", n=4096)[0].update(data="alone", error_ulps=9.0)
        self.assertIn(told.format("infinitely many", "3.5", "0.25", "1 data set"), self.top())
        self.rows["error_vs_length"] = [r for r in errors() if "serial" not in r["method"]]
        self.assertNotIn("How wrong?", self.top())

    def test_the_second_finding_counts_results(self):
        self.assertIn("**How steady?** All 3 methods with a promise of the same bits everywhere gave them in 90 runs; "
                      "none of 3 methods with less of a promise gave more than one result for the same elements.\n",
                      self.top())
        self.pick("spread_over_runs", "tbb/fp32@peer", axis="threads")[0]["distinct_bits"] = 7
        self.pick("spread_over_runs", "exact/fp32@cpu", axis="threads")[0]["distinct_bits"] = 2
        self.assertIn("2 of 3 methods with a promise of the same bits everywhere gave them in 90 runs; 1 of 3 methods "
                      "with less of a promise gave more than one result for the same elements, up to 7 in 10 runs "
                      "(tbb/fp32@peer, this machine).\n",
                      self.top())

    def test_the_third_finding_is_of_gpus_and_one_thread(self):
        self.on_gpu()
        self.rows["speed_vs_length"] += speeds(threads=2)
        self.assertIn("**How fast?** Exact reads 15.9 GB/s (this machine, GPU, n = 2²⁶), 159% of the fastest plain "
                      "sum; exact reads 8 GB/s (this machine, one thread, n = 2²⁶), 80% of the fastest plain sum.\n",
                      self.top())

    def test_every_method_is_in_the_table_of_all_with_its_promise_error_bound_speed_and_bit_patterns(self):
        first = self.pick("spread_over_runs", "atomic/plain/fp32@cpu", axis="threads")[0]
        first["distinct_bits"] = 7
        self.rows["spread_over_runs"].append(first | {"axis": "permutation", "distinct_bits": 9})
        self.run_report()
        table = (self.folder / "report.md").read_text().split("## All methods")[1].split("##")[0]
        for cells in ("exact/fp32@cpu | order_free | this machine | 2¹² | 0.25 | 1.5 | 8 | 1 of 10",
                      "atomic/plain/fp32@cpu | none | this machine | 2¹² | 8 | 17 | - | 7 of 10",
                      "tbb/fp32@peer | none | this machine | 2¹² | 4 | 9 | - | 1 of 10"):
            self.assertIn(f"| {cells} |", table)
        for method, *_ in METHODS:
            self.assertEqual(table.count(f"| {method} |"), 1, "which is a sum, so its name is short")
        self.assertNotIn("| read |", table)

    def test_sums_are_named_without_their_operation_but_beside_other_operations_with_it(self):
        row = {"kind": "speed", "method": "sum/exact/fp32@cpu",
               "bars": [{"against": "sum/tree/plain/fp32@cpu, one thread"}]}
        self.assertEqual(results.in_short(row), {"kind": "speed", "method": "exact/fp32@cpu",
                                                 "bars": [{"against": "tree/plain/fp32@cpu, one thread"}]})
        self.assertEqual(results.in_short(row | {"kind": "reduction"}), row | {"kind": "reduction"})

    def test_wrong_bits_are_told_and_fail(self):
        self.pick("speed_vs_length", "tree/plain/fp32@cpu", n=1 << 20)[0]["verified"] = False
        self.assertIn("3 of 4 results whose bits were checked are right; not tree/plain/fp32@cpu (this machine, 1 "
                      "thread); 2 were not checked.",
                      self.run_report())
        self.assertEqual(self.code, 1)

    def test_data_sets_are_told_as_they_were_measured(self):
        self.assertIn("up.f32 (4,096 elements in fp32, condition number 1): a plain loop in fp32 gives",
                      self.run_report())
        loop = next(m for m in self.comparisons[0]["methods"] if m["method"] == "serial/plain/fp32@cpu")
        loop["bits"] = loop["truth_bits"]
        self.assertIn("a plain loop in fp32 is right to the last bit.", self.run_report())
        loop["value"] = None
        loop["bits"] = "0x7f800000"
        self.assertIn("a plain loop in fp32 gives no finite number.", self.run_report())
        self.comparisons[0]["failures"] = ["tree/plain/fp32@cpu: it broke"]
        self.run_report()
        self.assertEqual(self.code, 1)
        self.assertIn("up.f32: tree/plain/fp32@cpu: it broke", self.err)

    def point(self, method):
        """Where the first figure has it, and what it says."""
        frontier = self.figures()[0]
        self.assertEqual(frontier["y"]["null"], "error, relative to the exact sum")
        return next((x, y, text) for t in frontier["traces"] if "hovertext" in t
                    for x, y, text in zip(t["x"], t["y"], t["hovertext"]) if text.startswith(method + ":"))

    def test_the_first_figure_has_error_against_speed_of_every_method_and_what_nothing_is_better_than(self):
        methods = {m["method"]: m for m in self.comparisons[0]["methods"]}
        methods["exact/fp32@cpu"].update(gb_per_s=2.5, relative_error=0.0)
        methods["loop/fp32@peer"].update(gb_per_s=8.0)
        self.run_report()
        self.assertEqual(self.point("exact/fp32@cpu"), (2.5, 8.674e-19, "exact/fp32@cpu: 2.5 GB/s, relative error 0"))
        self.assertEqual(self.point("tree/plain/fp32@cpu")[:2], (4.0, 2.384e-07))
        best = next(t for t in self.figures()[0]["traces"] if t["name"] == "frontier")
        self.assertEqual(list(zip(best["x"], best["y"])), [(8.0, 4.768e-06), (4.0, 2.384e-07), (2.5, 8.674e-19)])
        traces = {t["name"]: t for t in self.figures()[0]["traces"]}
        self.assertEqual(traces["exact, order_free"]["marker"]["symbol"], "star")
        self.assertEqual(traces["plain, none"]["marker"]["color"], traces["plain, everywhere"]["marker"]["color"])
        self.assertNotEqual(traces["plain, none"]["marker"]["symbol"], traces["plain, everywhere"]["marker"]["symbol"])

    def test_the_results_of_exact_alone_make_a_report(self):
        for experiment, rows in self.rows.items():
            self.rows[experiment] = [r for r in rows if r["method"] == "exact/fp32@cpu"]
        self.comparisons[0]["methods"] = self.comparisons[0]["methods"][:1]
        findings = self.run_report()
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("exact is the correctly rounded sum in all 4 results.", findings)
        self.assertGreater(len(self.figures()), 2)
        for figure in self.figures():
            self.assertTrue(all(figure["start"]), figure["start"])

    # --- other machines, and files that are not there -----------------------------------------------------------

    def test_results_of_other_machines_are_labelled(self):
        rows = copy.deepcopy(speeds(threads=0))
        for r in rows:
            r["method"] = r["method"].replace("@cpu", "@cuda")
        self.write(self.committed / "h200.speed_vs_length.jsonl", [header("speed_vs_length")] + rows)
        findings = self.run_report("--committed", str(self.committed))
        self.assertIn("H200, GPU: all 2 bars on speed held.", findings)
        self.assertIn("This machine, 1 thread: all 2 bars on speed held.", findings)
        self.assertIn("All 8 results whose bits were checked are right; 4 were not checked.", findings)

    def test_bits_are_compared_between_machines(self):
        rows = [r | {"method": r["method"].replace("@cpu", "@cuda")} for r in errors()]
        self.write(self.committed / "h200.error_vs_length.jsonl", [header("error_vs_length")] + rows)
        told = ("sums with a promise of the same bits everywhere, asked for in more than one place (machines, CPU and "
                "GPU), had the same bits in each")
        self.assertIn(f"All 12 {told}.", self.run_report("--committed", str(self.committed)))
        self.assertEqual(self.code, 0, self.err)
        self.pick("error_vs_length", "tree/plain/fp32@cpu", n=1024, data="ones")[0]["bits"] = "0x00000002"
        self.assertIn(f"11 of 12 {told}; not tree/plain/fp32@cpu on ones at n = 2¹⁰ (this machine), "
                      "tree/plain/fp32@cuda on ones at n = 2¹⁰ (H200).",
                      self.run_report("--committed", str(self.committed)))
        self.assertEqual(self.code, 1)
        self.assertNotIn("in more than one place", self.run_report())

    def test_a_section_without_results_names_the_command_that_makes_them(self):
        self.run_as_it_is()
        self.assertEqual(self.code, 0, self.err)
        for text in (self.page(), (self.folder / "report.md").read_text()):
            for command in ("error_vs_length", "spread_over_runs", "speed_vs_length"):
                self.assertIn(f"build/release/bin/{command} --full --out build/study", text)
        self.write(self.folder / "speed_vs_length.jsonl", [header("speed_vs_length")])  # it was stopped early
        self.run_as_it_is()
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("No results yet.", self.page())

    # --- what is skipped ----------------------------------------------------------------------------------------

    def skipped(self, reason, told):
        """The report goes on without that line, and says so in both places."""
        findings = self.run_as_it_is()
        self.assertEqual(self.code, 0, self.err)
        self.assertEqual(self.err.count("\n"), 1, self.err)
        self.assertIn(reason, self.err)
        for text in (self.page(), (self.folder / "report.md").read_text()):
            self.assertIn(told, text)
        return findings

    def test_a_line_that_was_not_written_completely_is_skipped(self):
        self.run_report()
        with open(self.folder / "error_vs_length.jsonl", "a") as file:
            file.write('{"kind":"error","data":"no')
        findings = self.skipped("error_vs_length.jsonl:26: skipped: was not written completely",
                                "24 rows, 1 corrupt line skipped, --quick")
        self.assertIn("All 16 errors", findings)

    def test_of_many_such_lines_the_first_are_named(self):
        self.run_report()
        with open(self.folder / "error_vs_length.jsonl", "a") as file:
            file.write("garbage\n" * 100)
        self.run_as_it_is()
        self.assertEqual(self.err.count("\n"), 6, self.err)
        self.assertIn("error_vs_length.jsonl: skipped: 95 more lines", self.err)
        self.assertIn("100 corrupt lines skipped", self.page())

    def test_even_if_nothing_but_its_end_is_missing(self):
        self.run_report()
        path = self.folder / "error_vs_length.jsonl"
        path.write_text(path.read_text().removesuffix("\n"))
        self.skipped("error_vs_length.jsonl:25: skipped: was not written completely", "23 rows, 1 corrupt line skipped")

    def test_a_row_that_does_not_fit_the_schema_is_skipped(self):
        self.run_report()
        rows = spreads()
        rows[1]["runs"] = "ten"
        self.write(self.folder / "spread_over_runs.jsonl", [header("spread_over_runs")] + rows)
        findings = self.skipped("spread_over_runs.jsonl:3: skipped: $.runs: ", "17 rows, 1 corrupt line skipped")
        self.assertIn("in 80 runs", findings)

    def test_a_row_of_no_known_kind_is_skipped(self):
        self.run_report()
        self.write(self.folder / "spread_over_runs.jsonl",
                   [header("spread_over_runs"), {"kind": "weather"}] + spreads())
        self.skipped("spread_over_runs.jsonl:2: skipped: expected an object of kind ", "1 corrupt line skipped")

    def test_what_is_no_json_and_what_is_no_text_is_skipped(self):
        for line in (b"{", b'{"kind": "\xff"}'):
            self.run_report()
            path = self.folder / "results.jsonl"
            path.write_bytes(line + b"\n" + path.read_bytes())
            self.skipped("results.jsonl:1: skipped: this is not JSON", "1 row, 1 corrupt line skipped")
            path.write_bytes(line + b"\n")
            self.skipped("results.jsonl:1: skipped: this is not JSON", "no rows, 1 corrupt line skipped")

    def test_nests_without_an_end_are_skipped(self):
        self.run_report()
        with open(self.folder / "error_vs_length.jsonl", "a") as file:
            file.write("[" * 100_000 + "\n")
        self.skipped("error_vs_length.jsonl:26: skipped: this is not JSON", "24 rows, 1 corrupt line skipped")

    def test_a_row_that_is_there_twice_counts_once(self):
        self.rows["spread_over_runs"].append(spreads()[2] | {"distinct_bits": 7})
        self.rows["spread_over_runs"].append(spreads()[3] | {"seed": 2})
        self.run_report()
        findings = self.skipped("spread_over_runs.jsonl:20: skipped: line 4 is the same row",
                                "19 rows, 1 corrupt line skipped")
        self.assertIn("none of 3 methods with less of a promise gave more than one result", findings)

    def test_a_file_that_was_stopped_in_its_first_line_is_skipped(self):
        self.run_report()
        (self.folder / "spread_over_runs.jsonl").write_text('{"kind":"study","schema":2,"exper')
        findings = self.skipped("spread_over_runs.jsonl:1: skipped: was not written completely",
                                "no rows, 1 corrupt line skipped")
        self.assertIn("All 16 errors", findings)
        self.assertNotIn("90 runs", findings)

    def test_numbers_that_are_not_finite_are_skipped(self):
        self.run_report()
        for number in ("NaN", "Infinity", "-Infinity", "1e999"):
            rows = [json.dumps(made_up.stored(o)) for o in [header("spread_over_runs")] + spreads()]
            rows[2] = rows[2].replace('"lowest": 1.0', f'"lowest": {number}')
            (self.folder / "spread_over_runs.jsonl").write_text("\n".join(rows) + "\n")
            self.skipped(f"spread_over_runs.jsonl:3: skipped: this is not JSON: {number} is not finite",
                         "1 corrupt line skipped")

    def test_so_are_integers_without_an_end(self):
        self.run_report()
        rows = [json.dumps(made_up.stored(o)) for o in [header("spread_over_runs")] + spreads()]
        rows[2] = rows[2].replace('"spread_ulps": 0.0', f'"spread_ulps": {10**400}')
        (self.folder / "spread_over_runs.jsonl").write_text("\n".join(rows) + "\n")
        self.skipped("spread_over_runs.jsonl:3: skipped: this is not JSON: 10000000000000000000 is not finite",
                     "1 corrupt line skipped")

    # --- what is refused ----------------------------------------------------------------------------------------

    def refused(self, reason):
        self.run_as_it_is()
        self.assertEqual(self.code, 2)
        self.assertEqual(self.err.count("\n"), 1, self.err)
        self.assertIn(reason, self.err)

    def test_another_schema_is_refused_with_one_line(self):
        self.write(self.folder / "error_vs_length.jsonl", [header("error_vs_length") | {"schema": 3}] + errors())
        self.refused("error_vs_length.jsonl: is of schema 3, and this report reads schema 2: run experiments/run again")

    def test_so_is_a_comparison_of_another_schema(self):
        self.write(self.folder / "results.jsonl", [comparison(), comparison() | {"schema": 3}])
        self.refused("results.jsonl: is of schema 3, and this report reads schema 2: run experiments/run again")

    def test_a_file_without_the_line_that_it_begins_with_is_refused(self):
        self.write(self.folder / "error_vs_length.jsonl", errors())
        self.refused("error_vs_length.jsonl:1: expected an object of kind study, not 'error': run experiments/run")
        self.assertTrue(self.err.endswith(": run experiments/run again, or delete the file\n"), self.err)

    def test_the_results_of_another_experiment_are_refused(self):
        self.write(self.folder / "error_vs_length.jsonl", [header("spread_over_runs")] + spreads())
        self.refused("error_vs_length.jsonl: has the results of spread_over_runs")

    def test_what_cannot_be_read_is_refused(self):
        (self.folder / "speed_vs_length.jsonl").mkdir()
        self.refused("speed_vs_length.jsonl: Is a directory: run experiments/run again, or delete the file")
        (self.folder / "speed_vs_length.jsonl").rmdir()
        (self.folder / "speed_vs_length.jsonl").symlink_to("nowhere")
        self.refused("speed_vs_length.jsonl: No such file or directory")

    def test_a_report_takes_its_place_when_it_is_complete(self):
        self.run_report()
        before = (self.folder / "report.md").stat().st_ino
        self.run_report()
        self.assertNotEqual((self.folder / "report.md").stat().st_ino, before)
        with self.assertRaises(TypeError):
            report.write(self.folder / "report.md", None)
        self.assertGreater((self.folder / "report.md").stat().st_size, 0)
        self.assertEqual([p.name for p in self.folder.glob("*.html*")], ["report.html"])

    def test_a_report_that_cannot_be_written_is_told_in_one_line(self):
        (self.folder / "report.md").mkdir()
        self.refused("report.md")

    def test_names_the_committed_files_that_it_does_not_read(self):
        for name in ("h200.speed.jsonl", "h200.error_vs_length.json", "h200.compare.jsonl"):
            (self.committed / name).write_text("")
        self.run_report("--committed", str(self.committed))
        self.assertEqual(self.code, 0, self.err)
        self.assertEqual(self.err.count("\n"), 1, self.err)
        self.assertIn(": h200.error_vs_length.json, h200.speed.jsonl\n", self.err)

    # --- the sections -------------------------------------------------------------------------------------------

    def test_there_is_a_section_for_each_experiment(self):
        self.assertEqual(sorted(set(report.SECTIONS) - {"compare"}), results.EXPERIMENTS)

    # --- the page -----------------------------------------------------------------------------------------------

    def figures(self):
        return [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script></figure>',
                                                        self.page(), re.S)]

    def test_needs_nothing_from_elsewhere(self):
        self.run_report()
        without_plotly = re.sub(r"<script>/\*\*.*?</script>", "", self.page(), flags=re.S)
        self.assertLess(len(without_plotly), len(self.page()) - 1_000_000)
        self.assertIsNone(re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|fetch\(""", without_plotly))

    def test_has_each_figure_twice_for_screens_and_for_paper(self):
        self.run_report()
        self.assertEqual(len(self.figures()), 4)
        self.assertEqual(len(re.findall(r"<div class=static>.*?<svg", self.page())), 4)

    def test_tables_say_what_they_are_of_and_every_column_has_a_head(self):
        self.run_report()
        tables = re.findall(r'<div class=wide tabindex=0 role=region aria-label="([^"]+)"><table><thead>(.*?)</thead>',
                            self.page(), re.S)
        self.assertEqual(len(tables), self.page().count("<table>"))
        for label, heads in tables:
            self.assertEqual(heads.count("<th scope=col"), heads.count("</th>"), label)
            self.assertNotIn("></th>", heads, label)

    def test_every_id_is_there_once(self):
        self.run_report()
        ids = re.findall(r'<(?:section|figure) id="?([^">]+)', self.page())
        self.assertEqual(sorted(ids), sorted(set(ids)))
        self.assertGreater(len(ids), 8)

    def test_every_line_can_be_chosen_and_every_method_has_the_colour_of_its_accumulator(self):
        self.run_report()
        colours = {}
        for figure in self.figures():
            for trace in figure["traces"]:
                self.assertEqual(len(trace["on"]), len(figure["menus"]))
                for choice, menu in zip(trace["on"], figure["menus"]):
                    self.assertTrue(choice is None or choice in menu["values"], (choice, menu))
                name = trace["y"][0] if figure["shape"] == "bars" else trace["name"]
                name = name.removeprefix("bound of ").split("/")[-1]
                colours.setdefault(name, set()).add((trace.get("line") or trace["marker"])["color"])
        self.assertGreater(len(colours), 4)
        for name, some in colours.items():
            self.assertEqual(len(some), 1, name)

    def test_a_sum_of_0_and_a_quotient_that_overflows_are_drawn_all_the_same(self):
        small = self.pick("error_vs_length", "tree/plain/fp32@cpu", n=1024, data="normal")[0]
        small.update(truth=1e-300, bound=1e300)
        self.pick("error_vs_length", "serial/plain/fp32@cpu", n=1024, data="normal")[0].update(truth=0.0,
                                                                                               relative_error=None)
        self.pick("error_vs_length", "atomic/plain/fp32@cpu", n=1024, data="normal")[0].update(
            value=None, bound=None, error_ulps=None, relative_error=None, absolute_error=None)
        self.run_report()
        self.assertEqual(self.code, 0, self.err)
        bounds = [t for t in self.figures()[1]["traces"]
                  if t["name"] == "bound of tree/plain" and t["on"][2] == "normal"]
        self.assertTrue(bounds and all(t["y"][0] is None and t["y"][1] for t in bounds))

    def test_axes_have_titles_with_units(self):
        self.run_report()
        for figure in self.figures():
            self.assertRegex(figure["x"], "elements|bit patterns|GB/s")
            if figure["shape"] != "bars":
                self.assertTrue(all(re.search("ulps|relative|GB/s|µs", t) for t in figure["y"].values()), figure["y"])

    def test_carries_the_raw_data(self):
        import base64
        import gzip
        self.run_report()
        data = re.findall(r'download="([^"]+)\.gz" href="data:application/gzip;base64,([^"]+)"', self.page())
        self.assertEqual(len(data), 4)
        for name, text in data:
            self.assertEqual(gzip.decompress(base64.b64decode(text)), (self.folder / name).read_bytes())

    def test_page_and_text_have_the_same_findings_and_tables(self):
        findings = self.run_report()
        text = (self.folder / "report.md").read_text()
        page = self.page().replace("&#x27;", "'")
        for sentence in findings.splitlines():
            self.assertIn(sentence, text)
            self.assertIn(sentence.removeprefix("- "), page)
        self.assertEqual(text.count("\n| ---"), page.count("<table>") - page.count("every bar</summary>"))

    def test_hostile_names_stay_text(self):
        self.comparisons[0]["data"]["name"] = "<script>alert(1)</script>.f32"
        for r in self.rows["error_vs_length"]:
            r["data"] = "</script><u>"
        self.run_report()
        without_plotly = re.sub(r"<script>/\*\*.*?</script>", "", self.page(), flags=re.S)
        for text in (without_plotly, (self.folder / "report.md").read_text()):
            self.assertFalse("<u>" in text or "<script>alert" in text)

    def test_hostile_names_stay_in_their_cell(self):
        self.comparisons[0]["data"]["name"] = "a|b\n## A heading.f32"
        self.run_report()
        text = (self.folder / "report.md").read_text()
        self.assertIn("\na|b ## A heading.f32, this machine\n", text)
        self.assertNotIn("\n## A heading", text)
        for r in self.rows["error_vs_length"]:
            r["data"] = "a|b\n"
        self.run_report()
        self.assertIn("\n| a\\|b |", (self.folder / "report.md").read_text())

    def test_the_text_fits_into_a_comment_and_tells_what_it_leaves_out(self):
        methods = [measured(f"{a}{b}/plain/fp32@cpu", "none", 2) for a in "abcdefgh" for b in "abcdefgh"]
        self.comparisons = [made_up.comparison(f"data set {i}", methods) for i in range(30)]
        self.comparisons[0]["methods"] = methods + [measured(f"{a}/plain/fp32@cpu", "none", 2) for a in "abcdefgh"]
        self.run_report()
        text = (self.folder / "report.md").read_text()
        self.assertTrue(40_000 < len(text) < 65_536, len(text))
        self.assertIn("Only in report.html: data set ", text)
        told = re.findall(r"<summary>(data set \d+), |Only in report.html: (.*)", text)
        elsewhere = " ".join(more for _, more in told)
        shown = {name for name, _ in told if name} | set(re.findall(r"data set \d+", elsewhere))
        self.assertEqual(shown | {"data set 0"}, {f"data set {i}" for i in range(30)})
        self.assertIn("data set 0, this machine\n\n| method", text)  # what is not folded goes last

    def test_a_text_of_nothing_but_sentences_is_cut_at_the_end_of_a_line(self):
        s = section.Section("s", "Long", "About it.", "make it", findings=["A sentence of some words. " * 40] * 200)
        text = markdown.text("A report", [], [s], [])
        self.assertTrue(60_000 < len(text) < 65_536, len(text))
        self.assertTrue(text.endswith("words.\n\nMore does not fit here; it is in report.html.\n"), text[-200:])


if __name__ == "__main__":
    unittest.main()
