"""Tests of the whole report, with made-up results that are changed one number at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/report_test.py
"""

import base64
import contextlib
import copy
import gzip
import html
import io
import json
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import made_up
from made_up import at_speed, header, measured
import compare
import markdown
import page
import phrases
import project
import report
import results
import section

EXACT, TREE, LOOP, ATOMIC, PEER, TBB = (method for method, *_ in made_up.FEW)
ERROR, SPREAD, SPEED = "error_vs_length", "spread_over_runs", "speed_vs_length"
LOST = {name: None for name in ("value", "bound", "error_ulps", "relative_error", "absolute_error")}
LONGEST = {"n": 1 << 26}


def missed(factor, reached, against=PEER):
    return {"bars": [{"against": against, "factor": factor, "reached": reached, "holds": False}]}


class WithFiles(made_up.SentenceTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        # Writing the 4.6 MB of plotly a hundred times would take long.
        script = unittest.mock.patch("page.plotly", lambda: "plotly")
        script.start()
        self.addCleanup(script.stop)
        self.folder, self.committed = (pathlib.Path(temporary.name) / name for name in ("study", "committed"))
        self.folder.mkdir()
        self.committed.mkdir()
        self.reset()

    def reset(self):
        self.rows, self.comparisons = made_up.few(), made_up.few_comparisons()

    def run_report(self, *more):
        made_up.write_study(self.folder, self.rows, self.comparisons)
        return self.run_on_files(*more)

    def run_on_files(self, *more):
        return self.run_main(str(self.folder), *more)

    def run_main(self, *arguments):
        """Runs the report. Returns the findings of all sections, one per line."""
        out, err, self.sections = io.StringIO(), io.StringIO(), []

        def told(sections, failures):
            self.sections = sections
            return TOLD(sections, failures)

        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), unittest.mock.patch("report.told", told):
            self.code = report.main(arguments)
        self.err, self.printed = err.getvalue(), out.getvalue()
        self.findings = "".join(f"- {finding}\n" for s in self.sections for finding in s.findings)
        return self.findings

    def page(self):
        return (self.folder / "report.html").read_text()

    def text(self):
        return (self.folder / "report.md").read_text()

    def pick(self, experiment, method, **fields):
        return [r for r in self.rows[experiment] if r["method"] == method and fields.items() <= r.items()]

    def figures(self):
        """The data of the figures by id."""
        found = re.findall(r'<figure id="([^"]+)">(?:(?!</figure>).)*<script type="application/gzip">(.*?)</script></figure>',
                           self.page(), re.S)
        return {id: json.loads(gzip.decompress(base64.b64decode(packed))) for id, packed in found}


class Findings(WithFiles):
    def after(self, changes, *expected, code=0, err=""):
        """Checks findings, exit code and messages after changes (experiment, method, fields of rows, new values)."""
        with self.subTest(changes):
            self.reset()
            for experiment, method, fields, new in changes:
                rows = self.pick(experiment, method, **fields)
                self.assertTrue(rows)
                for r in rows:
                    r.update(copy.deepcopy(new))
            self.assert_sentences(self.run_report(), *expected)
            self.assertEqual(self.code, code, self.err)
            self.assertEqual(self.err == "", err == "", self.err)
            self.assertIn(err, self.err)

    def test_findings_without_failures(self):
        self.after([],
                   "All 16 errors of samesum's … within",
                   "exact … in all 4 results; … correctly in none of 12",
                   "This machine, CPU: largest errors in fp32 at n = 2¹² over 2 data sets, in ulps, of samesum's 4 "
                   "methods: 0.25 for exact (best), 2 for tree/plain, 160 for serial/plain (worst); of 2 calls of other "
                   "libraries and loops: 4 for tbb (best), 40 for loop (worst).",
                   "This machine, CPU: from n = 2¹⁰ to n = 2¹², … 4-fold for serial/plain, 1-fold for tree/plain.",
                   "All 3 methods with a promise … in 90 runs.",
                   "This machine, CPU, other addresses: none of 3 methods",
                   "This machine, CPU, 1 thread: both speed targets are met.",
                   f"{EXACT} reads 8 GB/s at n = 2²⁶, … 0.80 … of … ({TREE}), 2.00 … of … ({PEER}), 50% of the speed of reading",
                   "All 4 checked results have the correct bits.")

    def test_errors(self):
        one = {"n": 4096, "data": "ones"}
        self.after([(ERROR, TREE, one, {"within_bound": False})],
                   f"15 of 16 errors … Beyond the bound: {TREE} on ones at n = 2¹² (this machine).",
                   code=1, err=f"{TREE} on ones, n = 4,096: the error")
        self.after([(ERROR, LOOP, {}, {"bound": None})], "All 12 errors … within … 4 others")
        self.after([(ERROR, method, {}, {"bound": None}) for method, *_ in made_up.FEW], "no … bound for 16 errors")
        self.after([(ERROR, EXACT, one, {"bits": "0x00000007"})], "exact is the correctly rounded sum in 3 of 4",
                   code=1, err="returned 0x00000007")
        self.after([(ERROR, TBB, one, {"within_bound": False}),
                    (SPREAD, PEER, {"axis": "runs"}, {"distinct_bits": 2, "broken": True})],
                   "7 of 8 errors of other libraries and loops", f"libraries broke: run_to_run by {PEER} (this machine, CPU).")

    def test_ranking_and_growth(self):
        longest = {"n": 4096}
        better = (ERROR, EXACT, longest, {"error_ulps": 5.0})
        self.after([better], "2 for tree/plain (best), 5 for exact, 160 for serial/plain (worst)")
        self.after([better, (ERROR, ATOMIC, longest, {"error_ulps": 500.0})],
                   "160 for serial/plain, 500 for atomic/plain (worst)")
        self.after([(ERROR, TREE, longest, LOST), (ERROR, TBB, {"data": "ones"}, LOST)],
                   "160 for serial/plain, not finite for tree/plain (worst); … 40 for loop (best), not finite for tbb "
                   "(worst)", "to infinity for tree/plain, 4-fold for serial/plain.")
        self.after([(ERROR, TREE, {}, LOST)], "n = 2¹², the largest error on 2 data sets in fp32 grows 4-fold for serial/plain.")

    def test_an_error_that_is_not_finite_on_one_data_set_counts_as_the_largest(self):
        self.rows[ERROR] += [r | {"data": "third"} for r in self.rows[ERROR] if r["data"] == "ones"]
        for method in (TREE, PEER):
            for r in self.pick(ERROR, method, data="ones"):
                r.update(LOST)
        self.assert_sentences(self.run_report(), "3 data sets … 0.25 for exact (best), 2 for tree/plain, 160 for "
                                                 "serial/plain (worst); … 4 for tbb (best), 40 for loop (worst)",
                              "4-fold for serial/plain, 1-fold for tree/plain")
        self.assertEqual(self.code, 0, self.err)

    def test_spreads_and_promises(self):
        self.after([(SPREAD, TBB, {"axis": "threads"}, {"distinct_bits": 7, "spread_ulps": 12.0})],
                   f"This machine, CPU, other thread counts: 1 of 3 methods … 7 in 10 runs ({TBB}) … 12 ulps apart "
                   f"({TBB} on normal)")
        self.after([(SPREAD, TREE, {"axis": "alignment"}, {"distinct_bits": 2, "broken": True})],
                   f"2 of 3 methods with a promise … 90 runs; exceptions: {TREE} (this machine, CPU).",
                   code=1, err=f"{TREE} promises everywhere but returned 2 bit patterns")

    def test_speeds(self):
        self.after([(SPEED, EXACT, LONGEST, missed(1.5, 1.2))],
                   f"This machine, CPU, 1 thread: 1 of 2 speed targets is met. Missed: {EXACT} in DRAM: 1.2 times the speed "
                   "of loop (target: 1.5).")
        self.assertIn("<td>exact/<wbr>fp32@cpu</td><td data-is=miss>MISS</td>", self.page())
        self.after([(SPEED, EXACT, LONGEST, missed(5.0, 10.0, "us") | {"place": "latency"})],
                   f"the only speed target and 0 of 1 latency target are met. Missed: {EXACT} at n = 2²⁶: 10 µs (target: "
                   "at most 5 µs).")
        self.after([(SPEED, TREE, {"n": 1 << 20}, {"verified": False})],
                   f"3 of 4 checked results … exceptions: {TREE} (this machine, CPU, 1 "
                   "thread).", code=1, err=TREE)

    def test_the_five_farthest_missed_targets_are_named(self):
        first = self.pick(SPEED, EXACT, **LONGEST)[0]
        for i, more in enumerate([{"data": "60 binades"}, {"input_format": "fp16"}, {"place": "L2"}, {"place": "GPU"},
                                  {"caches": "cold"}, {"data": "ones"}, {"n": 1 << 25}, {"n": 1 << 27}]):
            self.rows[SPEED].append(first | more | missed(0.5, 0.4999 - i / 100, f"{EXACT}, normal"))
        self.assert_sentences(self.run_report(), "2 of 10 speed targets are met. Missed: … 0.43 times … (target: 0.5, "
                                                 "worst of 2); … on ones in DRAM: 0.45 … cold caches: 0.46 … at n = "
                                                 "2²⁶: 0.47 … in L2: 0.48 times the speed of exact/fp32@cpu, normal "
                                                 "(target: 0.5); and 2 more.")

    def test_says_where_exact_calls_are_slow(self):
        slow = "Exact results take at worst so many times as long: sum 2.00 … (2²⁶ fp32, beside loop)."
        self.run_report()
        self.assert_no_sentences([self.page()], slow)
        for r in self.pick(SPEED, PEER, **LONGEST):
            r.update(at_speed(16.0))
        self.run_report()
        self.assert_sentences([self.page()], slow)

    def test_the_speed_of_exact_in_each_place_and_on_60_binades(self):
        gpu = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_speeds()]
        for r in gpu[::4]:
            r.update(at_speed(15.9))
        self.rows[SPEED] += gpu + made_up.few_speeds(threads=2) + [
            r | {"data": "60 binades"} | at_speed(12.0) for r in gpu[::4]]
        self.assert_sentences(self.run_report(), "GPU: exact/fp32@cuda reads 15.9 GB/s at n = 2²⁶, … 1.59 … of … "
                                                 f"(tree/plain/fp32@cuda), 3.98 … of … ({PEER}), 99.4% of the speed of reading … "
                                                 "on 60 binades 12 GB/s",
                              f"This machine, CPU, 1 thread: {EXACT} reads 8 GB/s",
                              f"This machine, CPU, 2 threads: {EXACT} reads 8")
        verdicts = [s.verdict for s in self.sections]
        self.assert_sentences(verdicts, "15.9 GB/s (this machine, GPU, n = 2²⁶), 1.59 … 8 GB/s (this machine, CPU, 1 "
                                        "thread, n = 2²⁶), 0.80")
        for sentence in filter(None, verdicts):
            self.assertIn(markdown.inline(sentence), self.text())

    def test_data_sets(self):
        self.assert_sentences(self.run_report(), "up.f32 (4,096 elements in fp32, condition number 1): … in fp32 "
                                                 "returns")
        self.comparisons[0]["failures"] = [f"{TREE}: it broke"]
        self.run_report()
        self.assertEqual(self.code, 1)
        self.assert_sentences(self.err, f"up.f32: {TREE}: it broke")

    def test_names_of_sums_are_short_except_in_the_section_on_reductions(self):
        row = {"kind": "speed", "method": "sum/exact/fp32@cpu",
               "bars": [{"against": "sum/tree/plain/fp32@cpu, one thread"}]}
        self.assertEqual(results.with_short_names(row), {"kind": "speed", "method": EXACT,
                                                         "bars": [{"against": f"{TREE}, one thread"}]})
        self.assertEqual(results.with_short_names(row | {"kind": "reduction"}), row | {"kind": "reduction"})
        self.run_report()
        table = self.text().split("## Which sums are there?")[1].split("##")[0]
        for method, *_ in made_up.FEW:
            self.assertEqual(table.count(f"|{method}|"), 1, method)
        self.assertNotIn("|read|", table)

    def test_the_results_of_exact_alone_make_a_report(self):
        self.rows = {experiment: [r for r in rows if r["method"] == EXACT] for experiment, rows in self.rows.items()}
        self.comparisons[0]["methods"] = self.comparisons[0]["methods"][:1]
        self.assert_sentences(self.run_report(), "exact is the correctly rounded sum in all 4 results.")
        self.assertEqual(self.code, 0, self.err)
        self.assertGreater(len(self.figures()), 2)
        for figure in self.figures().values():
            self.assertTrue(all(figure["start"]), figure["start"])

    # --- other machines and missing files -----------------------------------------------------------------------

    def test_other_machines_are_named_and_their_bits_are_compared(self):
        speeds = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_speeds()]
        errors = [r | {"method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_errors()]
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)] + speeds)
        made_up.write(self.committed / f"h200.{ERROR}.jsonl", [header(ERROR)] + errors)
        same, more = " … in more than one place", ["--committed", str(self.committed)]
        self.assert_sentences(self.run_report(*more), "H200, GPU: both speed targets are met.",
                              "This machine, CPU, 1 thread: both speed targets are met.",
                              "All 8 checked results have the correct bits.", f"All 12{same}")
        self.assertEqual(self.code, 0, self.err)
        self.pick(ERROR, TREE, n=1024, data="ones")[0]["bits"] = "0x00000002"
        self.assert_sentences(self.run_report(*more), f"11 of 12{same} … exceptions: {TREE} on ones at n = 2¹⁰ (this "
                                                      "machine), tree/plain/fp32@cuda on ones at n = 2¹⁰ (H200).")
        self.assertEqual(self.code, 1)
        self.assert_no_sentences(self.run_report(), "in more than one place")

    def test_a_folder_without_results_is_refused(self):
        self.run_on_files()
        self.assertEqual(self.code, 2)
        self.assert_sentences(self.err, f"{self.folder}: holds no results.jsonl and no EXPERIMENT.jsonl")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_report_on_own_data_has_only_their_section_and_begins_with_it(self):
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        self.run_on_files()
        self.assertEqual(self.code, 0, self.err)
        headings = re.findall("^#+ (.*)", self.text(), re.M)
        self.assertEqual(headings, [report.OWN_TITLE, "How large are the errors?", "Use samesum", "Terms", "Machines"])
        self.assertEqual([re.sub("<.*?>", "", h) for h in re.findall("<h[12]>(.*?)</h", self.page())],
                         headings + ["Raw data"])
        for text in (self.page(), self.text()):
            for other in ("No results", "Not measured here", "samesum is a", "on my own data"):
                self.assertNotIn(other, text)
        first = "up.f32 (4,096 elements … a plain loop in fp32 returns"
        self.assert_sentences(self.text().splitlines()[4], first)
        self.assert_sentences(self.findings.splitlines()[0], f"- {first}")
        self.assert_sentences(self.printed.splitlines()[0], "How large are the errors? up.f32 (4,096 elements")
        self.assertLess(self.page().index("<td>up.f32</td>"), self.page().index("<figure"), "the table of files is first")

    def test_a_reader_finds_how_to_install_samesum_and_to_run_it_on_own_data(self):
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        self.run_on_files()
        own = "samesum compare FILE --json >results.jsonl && samesum report ."
        self.assertIn(f"own data: `{own}`", self.text())
        self.assertIn(f"<dd><code>{html.escape(own)}</code></dd>", self.page())
        self.assertEqual("Source:" in self.text(), bool(project.citation("repository-code")))
        for text in (self.page(), self.text()):
            self.assertIn("pip install ", text)
            self.assertNotIn("build/release", text)

    def test_the_address_of_the_project_is_shown_where_it_has_one(self):
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        with unittest.mock.patch("project.citation", lambda name: ["https://example.org/samesum"]):
            self.run_on_files()
        self.assertIn("- Source: https://example.org/samesum\n", self.text())
        self.assertIn("`pip install git+https://example.org/samesum`", self.text())
        self.assertIn('<a href="https://example.org/samesum">https://example.org/samesum</a>', self.page())

    def test_results_of_the_files_of_own_data_and_of_compare_are_in_one_section(self):
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        made_up.write(self.folder / "own_data.jsonl", [header("own_data"), made_up.comparison(
            "my/b.f32", self.comparisons[0]["methods"])])
        self.assert_sentences(self.run_on_files(), "exact is the correctly rounded sum in both results on 2 data sets")
        self.assertEqual(self.text().count("\n## How large are the errors?\n"), 1)

    def test_comparisons_of_data_of_the_study_are_not_own_data(self):
        self.comparisons.append(made_up.comparison("data/uniform.f32", self.comparisons[0]["methods"], n=1 << 22))
        self.run_report()
        own, study = self.text().split("\n## How large are the errors?\n")[1].split(f"\n## {compare.question()}\n")
        self.assertTrue("up.f32" in own and "uniform.f32" in study)
        self.assertFalse("uniform.f32" in own or "up.f32" in study.split("\n## ")[0])
        self.assertLess(self.text().index("How large are the errors?"), self.text().index("samesum is a"))

    def test_other_machines_are_beside_the_results_of_this_machine_only_for_its_questions(self):
        made_up.write(self.folder / f"{SPEED}.jsonl", [header(SPEED)] + made_up.few_speeds())
        for name, rows in ((SPEED, made_up.few_speeds()), (ERROR, made_up.few_errors())):
            made_up.write(self.committed / f"h200.{name}.jsonl", [header(name)] + rows)
        there = str(self.committed)
        self.run_on_files("--beside", there)
        headings = re.findall("^## (.*)", self.text(), re.M)
        self.assertEqual(headings, ["How fast is a sum?", "Which sums are there?", "Use samesum", "Terms", "Machines"])
        self.assertIn("H200, CPU, 1 thread: targets", self.text())
        self.assertIn(f"samesum report --committed {there} --out FOLDER shows the results of other machines.", self.page())
        self.run_on_files("--committed", there)
        self.assertIn("How wrong is a sum of n numbers?", re.findall("^## (.*)", self.text(), re.M))
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        (self.folder / f"{SPEED}.jsonl").unlink()
        self.run_on_files("--beside", there)
        self.assertNotIn("H200", self.text())

    def test_a_folder_without_a_usable_row_is_refused(self):
        there = str(self.committed)
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)] + made_up.few_speeds())
        for name, objects, lines in ((f"{SPEED}.jsonl", [header(SPEED)], 1),  # as after an early stop
                                     ("results.jsonl", [], 1), ("results.jsonl", [{"a": 1}], 2)):
            for more in ([], ["--beside", there], ["--committed", there]):
                with self.subTest((name, objects, more)):
                    made_up.write(self.folder / name, objects)
                    self.run_on_files(*more)
                    self.assertEqual((self.code, self.err.count("\n"), self.findings), (2, lines, ""), self.err)
                    self.assertIn(f"report.py: {self.folder}: its results files have no usable row", self.err)
                    self.assertEqual([p.name for p in self.folder.iterdir()], [name])
            (self.folder / name).unlink()
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)])
        self.run_main("--committed", there, "--out", str(self.folder))
        self.assertEqual(self.code, 2)
        self.assertIn(f"{there}: its results files have no usable row", self.err)

    def test_a_report_on_other_operations_begins_with_them_and_leaves_out_sums_of_other_machines(self):
        rows = [made_up.of_operation("dot", r) for r in made_up.few_errors()]
        made_up.write(self.folder / f"{ERROR}.jsonl", [header(ERROR)] + rows)
        made_up.write(self.committed / f"h200.{ERROR}.jsonl", [header(ERROR)] + made_up.few_errors())
        self.assert_sentences(self.run_on_files("--beside", str(self.committed)).splitlines()[0], "All 16 errors")
        self.assertNotIn("H200", self.text() + self.page())
        self.assertEqual(re.findall("^#+ (.*)", self.text(), re.M),
                         [report.OTHER_TITLE, "Do other operations keep the same promises?", "Use samesum", "Terms", "Machines"])
        self.assertEqual(self.figures()["operations-figure"]["menus"][0], {"label": "Operation", "values": ["dot"]})
        measured_or_not = self.text().split("Not measured here: ")[1].split("\n")[0]
        self.assertNotIn("Error against length", measured_or_not)
        self.assertIn("Error against condition number", measured_or_not)

        made_up.write(self.committed / f"h200.{ERROR}.jsonl", [header(ERROR)] + made_up.few_errors() + rows)
        self.assert_sentences(self.run_on_files("--beside", str(self.committed)).splitlines()[0], "All 32 errors")
        self.assertNotIn("## How wrong is a sum", self.text())
        made_up.write(self.folder / f"{ERROR}.jsonl", [header(ERROR)] + made_up.few_errors())
        self.run_on_files("--beside", str(self.committed))
        self.assertIn(f"# {report.TITLE}\n", self.text())
        self.assertNotIn("## Do other operations", self.text())
        self.assertIn("H200, CPU", self.text())

    def test_own_data_are_before_other_operations(self):
        made_up.write(self.folder / f"{ERROR}.jsonl", [header(ERROR)] + [made_up.of_operation("dot", r)
                                                                        for r in made_up.few_errors()])
        made_up.write(self.folder / "results.jsonl", self.comparisons)
        self.run_on_files()
        self.assertEqual(re.findall("^#+ (.*)", self.text(), re.M),
                         [report.OWN_TITLE, "How large are the errors?", "Do other operations keep the same promises?",
                          "Use samesum", "Terms", "Machines"])

    def test_the_results_of_other_machines_alone_make_a_report_in_a_new_folder(self):
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)] + made_up.few_speeds())
        self.folder.rmdir()
        out = self.committed / "some/where"
        self.assert_sentences(self.run_main("--committed", str(self.committed), "--out", str(out)), "H200, CPU, 1 thread:")
        self.assertEqual((self.code, self.err), (0, ""))
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["report.html", "report.md"])

    def test_wrong_usage_is_one_line_with_the_name_of_the_program(self):
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)] + made_up.few_speeds())
        made_up.write(self.folder / f"{SPEED}.jsonl", [header(SPEED)] + made_up.few_speeds())
        there, file = str(self.committed), str(self.folder / f"{SPEED}.jsonl")
        for arguments, why in (([there], f"{there}: these are results of other machines (h200.{SPEED}.jsonl); pass the "
                                         "folder as --committed"),
                               ([], "a folder of results, or --committed, is missing"),
                               (["--committed", there], "--out is missing"),
                               (["/nowhere"], "/nowhere: no such folder"),
                               ([str(self.folder), "--out", "-"], "--out names a folder"),
                               ([str(self.folder), "--out", file], f"--out: {file} is a file")):
            with self.subTest(why):
                self.run_main(*arguments, "--program", "samesum report")
                self.assertEqual((self.code, self.err.count("\n")), (2, 1), self.err)
                self.assertTrue(self.err.startswith("samesum report: "), self.err)
                self.assertIn(why, self.err)

    def test_a_machine_has_one_table_and_files_state_what_differs(self):
        other = made_up.PROVENANCE | {"commit": "b" * 40}
        for name, rows, provenance in ((SPEED, made_up.few_speeds(), other), (ERROR, made_up.few_errors(), {}),
                                       (SPREAD, made_up.few_spreads(), {})):
            made_up.write(self.committed / f"h200.{name}.jsonl",
                          [header(name) | {"provenance": made_up.PROVENANCE | provenance}] + rows)
        self.run_main("--committed", str(self.committed), "--out", str(self.folder))
        machines = self.text().split("## Machines")[1]
        self.assertEqual(machines.count("<summary>H200</summary>"), 1)
        self.assertIn("|commit|unknown (most files)|", machines)
        self.assertIn("|compiler|a compiler|", machines)
        self.assertEqual(machines.count(f", commit {'b' * 40}|"), 1)

    def test_there_is_a_section_for_each_experiment(self):
        programs = {path.stem for path in (results.ROOT / "experiments").glob("*.cpp")}
        in_python = {"data_frames", "databases", "matrix_products", "own_kernels", "python_speed"}
        self.assertEqual(set(results.EXPERIMENTS), programs - {"samesum"} | in_python)


class Studies(WithFiles):
    """Kinds of studies that each make a page without a trace of what they lack."""

    def shown(self):
        """The words of the page outside of tables, pictures, scripts and what is folded."""
        page = re.sub("<(svg|script|style|table).*?</\\1>", "", self.page(), flags=re.S)
        while "<details" in page:
            page = re.sub("<details(?:(?!<details).)*?</details>", "", page, flags=re.S)
        return re.sub("<.*?>", " ", page)

    def test_a_study_without_a_gpu_and_without_other_libraries(self):
        self.rows = {q: [r for r in rows if not r["method"].endswith("@peer") and r["method"] != "read"]
                     for q, rows in self.rows.items()}
        self.comparisons[0]["methods"] = [m for m in self.comparisons[0]["methods"] if not m["method"].endswith("@peer")]
        self.run_report()
        self.assertEqual(self.code, 0, self.err)
        for word in ("GPU", "@cuda", "peer", "other librar", "H200", "None", "nan"):
            self.assertNotIn(word, self.shown(), word)
        self.assertIn("This report compares", self.shown())

    def test_an_interrupted_study(self):
        made_up.write_study(self.folder, {ERROR: self.rows[ERROR][:5], SPEED: []}, [])
        path = self.folder / f"{ERROR}.jsonl"
        path.write_bytes(path.read_bytes()[:-20])  # the last row is incomplete
        self.run_on_files()
        self.assertEqual(self.code, 0, self.err)
        self.assertEqual([s.id for s in self.sections], ["error", "methods"])
        self.assertIn("Not measured here: Error against condition number, ", self.shown())
        self.assertIn("1 corrupt line skipped", self.page())
        self.assertNotIn("id=frontier", self.page())

    def test_failures_are_loud_and_passed_checks_are_badges(self):
        self.run_report()
        self.assertIn('<span class="badge pass" title="All 16 errors of', self.page())
        self.assertIn("✓ 16 errors within their bounds", self.shown())
        self.assertNotIn("class='failed", self.page())
        for r in self.pick(ERROR, TREE, n=4096):
            r["within_bound"] = False
        self.run_report()
        self.assertIn("✗ 14 of 16 errors within their bounds", self.shown())
        self.assertIn("2 checks failed", self.shown())
        self.assertIn("<div class=failed role=alert><b>2 failures</b>", self.page())
        self.assertIn("✗ 14 of 16 errors within their bounds", self.text())
        self.assertIn("**2 failures:**", self.text())

    def test_a_run_prints_at_most_20_lines(self):
        for r in self.rows[ERROR]:
            r["within_bound"] = False
        self.run_report()
        lines = (self.printed + self.err).splitlines()
        self.assertTrue(10 < len(lines) <= 20, lines)
        self.assertIn("and 10 more, which the report has", lines)
        self.assertTrue(lines[0].startswith("How large are the errors? up.f32"), lines)
        self.assertTrue(self.printed.endswith(f"report: {self.folder}/report.html and {self.folder}/report.md\n"))
        self.assertTrue(all(len(line) <= 200 for line in lines), lines)


class Files(WithFiles):
    """Tests of lines that are skipped and of files that are refused."""

    def lines(self, name, change):
        """Applies `change` to the list of lines of a file."""
        path = self.folder / name
        lines = path.read_bytes().splitlines(keepends=True)
        change(lines)
        path.write_bytes(b"".join(lines))

    def test_invalid_lines_are_skipped_and_reported_on_stderr_and_in_the_report(self):
        def put(line, at, until=None):
            return lambda lines: lines.__setitem__(slice(at, until), [line])

        def row(old, new):
            line = json.dumps(made_up.stored(made_up.few_spreads()[1]))
            self.assertIn(old, line)
            return put(line.replace(old, new).encode() + b"\n", 2, 3)

        incomplete, not_json, end = "incomplete line", "not JSON", 1 << 20
        again = json.dumps(made_up.stored(made_up.few_spreads()[2] | {"distinct_bits": 7})).encode() + b"\n"
        error, spread = f"{ERROR}.jsonl", f"{SPREAD}.jsonl"
        cases = [(error, put(b'{"kind":"error","data":"no', end), 26, incomplete, "24 rows", 90),
                 (error, lambda lines: lines.append(lines.pop().rstrip()), 25, incomplete, "23 rows", 90),
                 (error, put(b"[" * 100_000 + b"\n", end), 26, not_json, "24 rows", 90),
                 (spread, row('"runs": 10', '"runs": "ten"'), 3, "$.runs: ", "17 rows", 80),
                 (spread, put(b'{"kind": "weather"}\n', 1, 1), 2, "expected an object of kind ", "18 rows", 90),
                 (spread, put(again, end), 20, "repeats the row of line 4", "18 rows", 90),
                 (spread, put(b'{"kind":"study","schema":2,"exper', 0), 1, incomplete, "no rows", None),
                 (spread, row('"spread_ulps": 0.0', f'"spread_ulps": {10**400}'), 3,
                  f"{not_json}: 10000000000000000000 is not finite", "17 rows", 80)]
        cases += [(spread, row('"lowest": 1.0', f'"lowest": {number}'), 3, f"{not_json}: {number} is not finite",
                   "17 rows", 80) for number in ("NaN", "Infinity", "-Infinity", "1e999")]
        cases += [("results.jsonl", put(line, 0, until), 1, not_json, rows, 90)
                  for line in (b"{\n", b'{"kind": "\xff"}\n') for until, rows in ((0, "1 row"), (None, "no rows"))]
        for name, change, at, why, rows, runs in cases:
            with self.subTest(f"{name}: {why}"):
                self.run_report()
                self.lines(name, change)
                self.run_on_files()
                self.assertEqual((self.code, self.err.count("\n")), (0, 1), self.err)
                self.assertIn(f"{name}:{at}: skipped: {why}", self.err)
                for text in (self.page(), self.text()):
                    self.assertIn(f"{rows}, 1 corrupt line skipped", text)
                self.assertEqual(re.findall("per array in ([0-9]+) runs\\.", self.findings), [str(runs)] if runs else [])
                self.assert_no_sentences(self.findings, "7 in 10 runs")  # the first of two equal rows counts

    def test_rows_with_different_seeds_are_different(self):
        self.rows[SPREAD].append(made_up.few_spreads()[3] | {"seed": 2})
        self.run_report()
        self.assertEqual(self.err, "")
        self.assertIn("19 rows", self.text())

    def test_only_the_first_of_many_invalid_lines_are_reported(self):
        self.run_report()
        self.lines(f"{ERROR}.jsonl", lambda lines: lines.extend([b"garbage\n"] * 100))
        self.run_on_files()
        self.assertEqual(self.err.count("\n"), 6, self.err)
        self.assertIn(f"{ERROR}.jsonl: skipped: 95 more lines", self.err)
        self.assertIn("100 corrupt lines skipped", self.page())

    def assert_refused(self, *reasons):
        with self.subTest(reasons):
            self.run_on_files()
            self.assertEqual((self.code, self.err.count("\n")), (2, 1), self.err)
            self.assert_sentences(self.err, " … ".join(reasons))

    def test_other_files_are_refused_with_one_line(self):
        again = "run experiments/run again"
        error, speed = self.folder / f"{ERROR}.jsonl", self.folder / f"{SPEED}.jsonl"
        made_up.write(error, [header(ERROR) | {"schema": 3}] + made_up.few_errors())
        self.assert_refused(error.name, "schema 3", "schema 2", again)
        made_up.write(error, made_up.few_errors())
        self.assert_refused(f"{error.name}:1: expected an object of kind study, found "
                            "'error'", again, "or delete the file")
        made_up.write(error, [header(SPREAD)] + made_up.few_spreads())
        self.assert_refused(error.name, SPREAD)
        error.unlink()
        made_up.write(self.folder / "results.jsonl", [*self.comparisons, self.comparisons[0] | {"schema": 3}])
        self.assert_refused("results.jsonl", "schema 3", "schema 2", again)
        (self.folder / "results.jsonl").unlink()
        speed.mkdir()
        self.assert_refused(speed.name, "Is a directory", again)
        speed.rmdir()
        speed.symlink_to("nowhere")
        self.assert_refused(speed.name, "No such file or directory")
        speed.unlink()
        made_up.write(error, [header(ERROR)] + made_up.few_errors())
        (self.folder / "report.md").mkdir()
        self.assert_refused("report.md")

    def test_a_report_replaces_the_old_one_only_when_it_is_complete(self):
        self.run_report()
        before = (self.folder / "report.md").stat().st_ino
        self.run_report()
        self.assertNotEqual((self.folder / "report.md").stat().st_ino, before)
        with self.assertRaises(TypeError):
            report.write(self.folder / "report.md", None)
        self.assertGreater((self.folder / "report.md").stat().st_size, 0)
        self.assertEqual([p.name for p in self.folder.glob("*.html*")], ["report.html"])

    def test_without_plotly_and_jsonschema_there_is_the_text_alone(self):
        with unittest.mock.patch.dict("sys.modules", {"plotly": None, "jsonschema": None}):
            self.run_report()
            self.assertEqual((self.code, self.err), (0, ""))
            self.assertTrue(self.printed.endswith("report.md\n") and "report.html" not in self.printed, self.printed)
            self.assertIn("## How wrong", self.text())
            self.assertFalse((self.folder / "report.html").exists())
            with open(self.folder / f"{ERROR}.jsonl", "a") as out:
                out.write('{"kind": "error"}\n')
            self.run_on_files()
            self.assertIn("jsonschema, which says why, is not installed", self.err)

    def test_names_committed_files_that_are_ignored(self):
        for name in ("h200.speed.jsonl", "h200.error_vs_length.json", "h200.compare.jsonl"):
            (self.committed / name).write_text("")
        self.run_report("--committed", str(self.committed))
        self.assertEqual((self.code, self.err.count("\n")), (0, 1), self.err)
        self.assertIn(": h200.error_vs_length.json, h200.speed.jsonl\n", self.err)


class Page(WithFiles):
    def test_loads_nothing_from_elsewhere(self):
        self.assertGreater(len(PLOTLY()), 1_000_000)
        self.run_report()
        self.assertIsNone(re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|fetch\(""", self.page()))

    def test_figures_tables_and_downloads(self):
        self.run_report()
        text, page = self.text(), self.page()
        figures = self.figures().values()
        self.assertEqual(len(figures), 4)
        self.assertEqual(len(re.findall(r"<div class=static>.*?<svg", page)), 4)
        ids = re.findall(r'<(?:section|figure) id="?([^"> ]+)', page)
        self.assertEqual(sorted(ids), sorted(set(ids)))
        self.assertGreater(len(ids), 8)

        tables = re.findall(r'<div class=wide tabindex=0 role=region aria-label="([^"]+)"><table><thead>(.*?)</thead>',
                            page, re.S)
        self.assertEqual(len(tables), page.count("<table>"))
        self.assertEqual(text.count("\n|---"), page.count("<table>") - page.count("every target</summary>"))
        for label, heads in tables:
            self.assertEqual(heads.count("<th scope=col"), heads.count("</th>"), label)
            self.assertNotIn("></th>", heads, label)
        shown = re.sub("</?abbr.*?>", "", page.replace("&#x27;", "'"))
        for s in self.sections:
            for sentence in [*s.findings, s.verdict]:
                self.assertIn(sentence, shown)
            for sentence in [*s.details, s.verdict, *(c.badge for c in s.checks)]:
                self.assertIn(markdown.inline(sentence), text)

        data = re.findall(r'download="([^"]+)\.gz" href="data:application/gzip;base64,([^"]+)"', page)
        self.assertEqual(len(data), 4)
        for name, packed in data:
            self.assertEqual(gzip.decompress(base64.b64decode(packed)), (self.folder / name).read_bytes())

        colours = {}
        for figure in figures:
            self.assertRegex(figure["x"], "elements|bit patterns|GB/s")
            if figure["shape"] != "bars":
                self.assertTrue(all(re.search("ulps|relative|GB/s|µs", t) for t in figure["y"].values()), figure["y"])
            for trace in figure["traces"]:
                self.assertEqual(len(trace["on"]), len(figure["menus"]))
                for choice, menu in zip(trace["on"], figure["menus"]):
                    self.assertTrue(choice is None or choice in menu["values"], (choice, menu))
                name = trace["y"][0] if figure["shape"] == "bars" else trace["name"]
                name = name.removeprefix("bound of ").split("/")[-1]
                colours.setdefault(name, set()).add((trace.get("line") or trace["marker"])["color"])
        self.assertGreater(len(colours), 4)
        self.assertTrue(all(len(some) == 1 for some in colours.values()), colours)

    def test_terms_are_defined_once_in_the_page_and_in_the_text(self):
        self.run_report()
        for term in ("method", "promise", "ulp", "unit roundoff", "bound", "condition number", "frontier", "target"):
            definition = phrases.TERMS[term]
            self.assertEqual(self.page().count(f"<b>{term}</b>: {page.escape(definition)}"), 1, term)
            self.assertEqual(self.text().count(f"**{term}**: {markdown.inline(definition)}"), 1, term)

    def test_the_figure_of_data_sets_has_error_against_speed_of_every_method_and_the_frontier(self):
        methods = {m["method"]: m for m in self.comparisons[0]["methods"]}
        methods[EXACT].update(gb_per_s=2.5, relative_error=0.0)
        methods[PEER].update(gb_per_s=8.0)
        self.run_report()
        frontier = self.figures()["own-data-figure"]
        points = {text.split(",")[0]: (x, y, text) for t in frontier["traces"] if "hovertext" in t
                  for x, y, text in zip(t["x"], t["y"], t["hovertext"])}
        self.assertEqual(points[EXACT], (2.5, 0.0, f"{EXACT}, promise: order_free: 2.5 GB/s, relative error 0"))
        self.assertEqual(points[TREE][:2], (4.0, 2.384e-07))
        traces = {t["name"]: t for t in frontier["traces"]}
        self.assertEqual(list(zip(traces["frontier"]["x"], traces["frontier"]["y"])),
                         [(4.0, 2.384e-07), (2.5, 0.0)], "methods with the same bits everywhere")
        markers = [t["marker"] for t in frontier["traces"] if "marker" in t]
        self.assertEqual(len({(m["color"], m["symbol"]) for m in markers}), len(markers), "each looks different")
        self.assertEqual((traces["tree/plain"]["marker"]["color"], traces["atomic/plain"]["marker"]["symbol"]),
                         (traces["atomic/plain"]["marker"]["color"], "x-open"))

    def test_a_sum_of_0_and_a_quotient_that_overflows_can_be_drawn(self):
        for method, new in ((TREE, {"truth": 1e-300, "bound": 1e300}), (LOOP, {"truth": 0.0, "relative_error": None}),
                            (ATOMIC, LOST)):
            self.pick(ERROR, method, n=1024, data="normal")[0].update(new)
        self.run_report()
        self.assertEqual(self.code, 0, self.err)
        bounds = [t for t in self.figures()["error-figure"]["traces"]
                  if t["name"] == "bound of tree/plain" and t["on"][2] == "normal"]
        self.assertTrue(bounds and all(t["y"][0] is None and t["y"][1] for t in bounds))

    def test_markup_in_names_is_escaped(self):
        self.comparisons[0]["data"]["name"] = "<script>alert(1)</script>.f32"
        for r in self.rows[ERROR]:
            r["data"] = "</script><u>"
        self.run_report()
        for text in (self.page(), self.text()):
            self.assertFalse("<u>" in text or "<script>alert" in text)
        self.comparisons[0]["data"]["name"] = "a|b\n## A heading.f32"
        for r in self.rows[ERROR]:
            r["data"] = "a|b\n"
        self.run_report()
        self.assertIn("\n**a|b ## A heading.f32 (", self.text())
        self.assertNotIn("\n## A heading", self.text())
        self.assertIn("\n|a\\|b|", self.text())

    def test_names_do_not_reach_the_terminal_with_control_characters(self):
        name = "a\x1b[31mred\x07\nb\u202e.f32"
        self.comparisons[0]["data"]["name"] = name
        self.comparisons[0]["failures"] = [f"{name}: {TREE}: it broke"]
        (self.committed / "h\x1b200.speed.jsonl").write_text("")
        self.run_report("--committed", str(self.committed))
        for text in (self.findings, self.err, self.page(), self.text()):
            self.assertEqual([c for c in text if not c.isprintable() and c != "\n"], [])
            self.assertIn("a\\x1b[31mred\\x07 b\\u202e.f32", text.replace("\\[", "[").replace("\\\\", "\\"))
        self.assertEqual(self.err.count("\n"), 3, self.err)  # the file that is ignored, "failures:" and the failure
        self.assertIn("h\\x1b200.speed.jsonl", self.err)
        path = self.folder / "not\x1b\nhere"
        self.run_main(str(path))
        self.assertEqual((self.code, self.err), (2, f"report.py: {self.folder}/not\\x1b here: no such folder\n"))

    def test_a_name_that_is_not_unicode_is_escaped(self):
        self.comparisons[0]["data"]["name"] = "a\udcff.f32"
        self.run_report()
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("a\\udcff.f32, this machine", self.page())

    def test_names_do_not_become_links_or_other_markdown(self):
        for name, escaped in (("[x](javascript:alert(1)).f32", "\\[x](javascript:alert(1)).f32"),
                              ("![x](x.png)", "!\\[x](x.png)"), ("*a* **b**", "\\*a\\* \\*\\*b\\*\\*"),
                              ("_a_ b_c", "\\_a\\_ b_c"), ("`a`", "\\`a\\`"), ("~~a~~", "\\~\\~a\\~\\~"), ("$a$", "\\$a\\$"),
                              ("a\\*", "a\\\\\\*"), ("# a", "\\# a"), ("- a", "\\- a"), ("1. a", "1\\. a"), ("2) a", "2\\) a"),
                              ("=== a", "\\=== a"), ("<b>", "&lt;b&gt;")):
            with self.subTest(name):
                other = made_up.comparison("other.f32", self.comparisons[0]["methods"])
                self.comparisons = [self.comparisons[0], other]  # the sentences on two files are in a list
                self.comparisons[0]["data"]["name"] = name
                self.run_report()
                lines = self.text().splitlines()
                self.assertTrue(any(line.startswith(f"- {escaped} (") for line in lines))

    def test_the_report_of_the_committed_results_has_room_for_more_sections(self):
        text = self.folder / "report.md"
        self.run_main("--committed", str(results.ROOT / "experiments/results"), "--out", str(self.folder))
        folded = sum(map(len, re.findall("<details>.*?</details>\n\n", text.read_text().split("\n## ", 2)[2], re.S)))
        self.assertLess(len(text.read_text()) - folded, markdown.LIMIT / 2)

    def test_report_md_fits_into_a_comment_and_names_what_it_leaves_out(self):
        methods = [measured(f"{a}{b}/plain/fp32@cpu", "none", 2) for a in "abcdefgh" for b in "abcdefgh"]
        self.comparisons = [made_up.comparison(f"data set {i}", methods) for i in range(30)]
        self.comparisons[0]["methods"] = methods + [measured(f"{a}/plain/fp32@cpu", "none", 2) for a in "abcdefgh"]
        with unittest.mock.patch("compare.is_of_study", lambda comparison: True):
            self.run_report()
        text = self.text()
        self.assertTrue(0.9 * markdown.LIMIT < len(text) <= markdown.LIMIT, len(text))
        found = re.findall(r"<summary>(data set \d+), |Only in report.html: (.*)", text)
        elsewhere = " ".join(more for _, more in found)
        self.assertIn("data set ", elsewhere)
        shown = {name for name, _ in found if name} | set(re.findall(r"data set \d+", elsewhere))
        self.assertEqual(shown | {"data set 0"}, {f"data set {i}" for i in range(30)})

        tables = [section.Table(caption, [], []) for caption in ("H200, GPU: a", "b", "This machine: a", "H200, GPU: c: d")]
        self.assertEqual(markdown.shared_captions(tables), ["a (H200, GPU; This machine)", "b", "H200, GPU: c: d"])

        s = section.Section("s", "Long", "How long?", "About it.", "make it",
                            findings=["A sentence of some words. " * 40] * 200)
        text = markdown.text("A report", "", {}, [s], [])
        self.assertTrue(0.9 * markdown.LIMIT < len(text) <= markdown.LIMIT, len(text))
        self.assertTrue(text.endswith("words.\n\nThe rest is in report.html.\n"), text[-200:])


PLOTLY, TOLD = page.plotly, report.told

if __name__ == "__main__":
    unittest.main()
