"""The report says what the results say: made-up results, altered one number at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/report_test.py
"""

import base64
import contextlib
import copy
import gzip
import io
import json
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import made_up
from made_up import header, measured
import markdown
import page
import report
import results
import section

EXACT, TREE, LOOP, ATOMIC, PEER, TBB = (method for method, *_ in made_up.FEW)
ERROR, SPREAD, SPEED = "error_vs_length", "spread_over_runs", "speed_vs_length"
LOST = {name: None for name in ("value", "bound", "error_ulps", "relative_error", "absolute_error")}
LONGEST = {"n": 1 << 26}


def missed(factor, reached, against=PEER):
    return {"bars": [{"against": against, "factor": factor, "reached": reached, "holds": False}]}


class WithFiles(made_up.Told):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        # plotly's 4.6 MB need not be written a hundred times.
        script = unittest.mock.patch("page.plotly", lambda: "/** plotly */")
        script.start()
        self.addCleanup(script.stop)
        self.folder, self.committed = (pathlib.Path(temporary.name) / name for name in ("study", "committed"))
        self.folder.mkdir()
        self.committed.mkdir()
        self.begin()

    def begin(self):
        self.rows, self.comparisons = made_up.few(), made_up.few_comparisons()

    def run_report(self, *more):
        made_up.write_study(self.folder, self.rows, self.comparisons)
        return self.run_as_it_is(*more)

    def run_as_it_is(self, *more):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.code = report.main([str(self.folder), *more])
        self.err, self.findings = err.getvalue(), out.getvalue()
        return self.findings

    def page(self):
        return (self.folder / "report.html").read_text()

    def text(self):
        return (self.folder / "report.md").read_text()

    def pick(self, experiment, method, **wanted):
        return [r for r in self.rows[experiment] if r["method"] == method and wanted.items() <= r.items()]

    def figures(self):
        return [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script></figure>',
                                                        self.page(), re.S)]


class Findings(WithFiles):
    def after(self, changes, *told, code=0, err=""):
        """What is told after changes (experiment, method, which rows, what is new there)."""
        with self.subTest(changes):
            self.begin()
            for experiment, method, wanted, new in changes:
                rows = self.pick(experiment, method, **wanted)
                self.assertTrue(rows)
                for r in rows:
                    r.update(copy.deepcopy(new))
            self.assert_tells(self.run_report(), *told)
            self.assertEqual(self.code, code, self.err)
            self.assertEqual(self.err == "", err == "", self.err)
            self.assertIn(err, self.err)

    def test_where_all_is_well(self):
        self.after([],
                   "All 16 errors of samesum's … within",
                   "exact … in all 4 results; … in none of 12",
                   "This machine, CPU: in fp32 at n = 2¹² … 2 data sets … 4 methods 0.25 for exact (the best), 2 for "
                   "tree/plain, 160 for serial/plain (the worst); of 2 other libraries 4 for tbb (the best), 40 for "
                   "loop (the worst)",
                   "This machine, CPU: from n = 2¹⁰ to 2¹² … 4 times … serial/plain, 1 times … tree/plain",
                   "All 3 methods with a promise … in 90 runs.",
                   "This machine, CPU, other addresses: none of 3 methods",
                   "This machine, 1 thread: all 2 bars",
                   f"{EXACT} reads 8 GB/s at n = 2²⁶, 80% of {TREE}, … 200% of {PEER}, … 50% of reading",
                   "All 4 results … right; 2 were not checked")

    def test_errors(self):
        one = {"n": 4096, "data": "ones"}
        self.after([(ERROR, TREE, one, {"within_bound": False})],
                   f"15 of 16 errors … Beyond: {TREE} on ones at n = 2¹² (this machine).",
                   code=1, err=f"{TREE} on ones, n = 4,096: the error")
        self.after([(ERROR, LOOP, {}, {"bound": None})], "All 12 errors … within … 4 others")
        self.after([(ERROR, method, {}, {"bound": None}) for method, *_ in made_up.FEW], "no … bound for 16 errors")
        self.after([(ERROR, EXACT, one, {"bits": "0x00000007"})], "exact is the correctly rounded sum in 3 of 4",
                   code=1, err="gave 0x00000007")
        self.after([(ERROR, TBB, one, {"within_bound": False}),
                    (SPREAD, PEER, {"axis": "runs"}, {"distinct_bits": 2, "broken": True})],
                   "7 of 8 errors of other libraries", f"run_to_run by {PEER} (this machine, CPU)")

    def test_ranking_and_growth(self):
        longest = {"n": 4096}
        better = (ERROR, EXACT, longest, {"error_ulps": 5.0})
        self.after([better], "2 for tree/plain (the best), 5 for exact, 160 for serial/plain (the worst)")
        self.after([better, (ERROR, ATOMIC, longest, {"error_ulps": 500.0})],
                   "160 for serial/plain, 500 for atomic/plain (the worst)")
        self.after([(ERROR, TREE, longest, LOST), (ERROR, TBB, {"data": "ones"}, LOST)],
                   "160 for serial/plain, not finite for tree/plain (the worst); … 40 for loop (the best), not finite "
                   "for tbb (the worst)", "not finite for tree/plain, 4 times … serial/plain")
        self.after([(ERROR, TREE, {}, LOST)], "2¹² the median error in fp32 became 4 times as large for serial/plain.")

    def test_an_error_that_is_not_finite_on_one_data_set_counts_as_the_largest(self):
        self.rows[ERROR] += [r | {"data": "third"} for r in self.rows[ERROR] if r["data"] == "ones"]
        for method in (TREE, PEER):
            for r in self.pick(ERROR, method, data="ones"):
                r.update(LOST)
        self.assert_tells(self.run_report(), "3 data sets … 0.25 for exact (the best), 2 for tree/plain, 160 for "
                          "serial/plain (the worst); … 4 for tbb (the best), 40 for loop (the worst)",
                          "4 times … serial/plain, 1 times … tree/plain")
        self.assertEqual(self.code, 0, self.err)

    def test_spreads_and_promises(self):
        self.after([(SPREAD, TBB, {"axis": "threads"}, {"distinct_bits": 7, "spread_ulps": 12.0})],
                   f"This machine, CPU, other numbers of threads: 1 of 3 methods … 7 in 10 runs ({TBB}) … 12 ulps "
                   f"({TBB} on normal)")
        self.after([(SPREAD, TREE, {"axis": "alignment"}, {"distinct_bits": 2, "broken": True})],
                   f"2 of 3 methods with a promise … 90 runs; not {TREE} (this machine, CPU).",
                   code=1, err=f"{TREE} promises everywhere but gave 2 bit patterns")

    def test_speeds(self):
        self.after([(SPEED, EXACT, LONGEST, missed(1.5, 1.2))],
                   f"This machine, 1 thread: 1 of 2 bars on speed … {EXACT} in DRAM: 1.2 of 1.5 times loop.")
        self.assertIn("<td>exact/<wbr>fp32@cpu</td><td data-is=miss>MISS</td>", self.page())
        self.after([(SPEED, EXACT, LONGEST, missed(5.0, 10.0, "us") | {"place": "latency"})],
                   f"1 of 1 bar on speed … 0 of 1 bar on latency … {EXACT} at n = 2²⁶: 10 of at most 5 µs")
        self.after([(SPEED, TREE, {"n": 1 << 20}, {"verified": False})],
                   f"3 of 4 results … not {TREE} (this machine, 1 thread); 2 were not checked", code=1, err=TREE)

    def test_of_many_missed_bars_five_are_named_the_farthest_first(self):
        first = self.pick(SPEED, EXACT, **LONGEST)[0]
        for i, more in enumerate([{"data": "60 binades"}, {"input_format": "fp16"}, {"place": "L2"}, {"place": "GPU"},
                                  {"caches": "cold"}, {"data": "ones"}, {"n": 1 << 25}, {"n": 1 << 27}]):
            self.rows[SPEED].append(first | more | missed(0.5, 0.4999 - i / 100, f"{EXACT}, normal"))
        self.assert_tells(self.run_report(), "2 of 10 bars on speed held. Missed: … 0.43 of 0.5 … the worst of 2 … "
                          "on ones in DRAM: 0.45 … cold caches: 0.46 … at n = 2²⁶: 0.47 … in L2: 0.48 … 2 more.")

    def test_the_price_of_exactness_has_each_place_and_60_binades(self):
        gpu = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_speeds()]
        for r in gpu[::4]:
            r["gb_per_s"] = 15.9
        self.rows[SPEED] += gpu + made_up.few_speeds(threads=2) + [
            r | {"data": "60 binades", "gb_per_s": 12.0} for r in gpu[::4]]
        self.assert_tells(self.run_report(), "GPU: exact/fp32@cuda reads 15.9 GB/s at n = 2²⁶, 159% of "
                          f"tree/plain/fp32@cuda, … 398% of {PEER}, … 99% of reading … 60 binades 12 GB/s",
                          f"This machine, 1 thread: {EXACT} reads 8 GB/s", f"This machine, 2 threads: {EXACT} reads 8")
        top = self.text().split("##")[0]
        told = re.findall(r"\*\*(How [a-z]+\?)\*\* (.*)", top)
        self.assertEqual([question for question, _ in told], ["How wrong?", "How steady?", "How fast?"])
        for _, sentence in told:
            self.assertIn(sentence, self.page())
        self.assert_tells(top, "How fast? … 15.9 GB/s (this machine, GPU, n = 2²⁶), 159% … 8 GB/s (this machine, one "
                          "thread, n = 2²⁶), 80%")

    def test_data_sets(self):
        self.assert_tells(self.run_report(), "up.f32 (4,096 elements in fp32, condition number 1): … in fp32 gives")
        self.comparisons[0]["failures"] = [f"{TREE}: it broke"]
        self.run_report()
        self.assertEqual(self.code, 1)
        self.assert_tells(self.err, f"up.f32: {TREE}: it broke")

    def test_sums_are_named_without_their_operation_but_beside_other_operations_with_it(self):
        row = {"kind": "speed", "method": "sum/exact/fp32@cpu",
               "bars": [{"against": "sum/tree/plain/fp32@cpu, one thread"}]}
        self.assertEqual(results.in_short(row), {"kind": "speed", "method": EXACT,
                                                 "bars": [{"against": f"{TREE}, one thread"}]})
        self.assertEqual(results.in_short(row | {"kind": "reduction"}), row | {"kind": "reduction"})
        self.run_report()
        table = self.text().split("## All methods")[1].split("##")[0]
        for method, *_ in made_up.FEW:
            self.assertEqual(table.count(f"| {method} |"), 1, method)
        self.assertNotIn("| read |", table)

    def test_the_results_of_exact_alone_make_a_report(self):
        self.rows = {experiment: [r for r in rows if r["method"] == EXACT] for experiment, rows in self.rows.items()}
        self.comparisons[0]["methods"] = self.comparisons[0]["methods"][:1]
        self.assert_tells(self.run_report(), "exact is the correctly rounded sum in all 4 results.")
        self.assertEqual(self.code, 0, self.err)
        self.assertGreater(len(self.figures()), 2)
        for figure in self.figures():
            self.assertTrue(all(figure["start"]), figure["start"])

    # --- other machines, and files that are not there -----------------------------------------------------------

    def test_other_machines_are_named_and_their_bits_compared(self):
        speeds = [r | {"threads": 0, "method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_speeds()]
        errors = [r | {"method": r["method"].replace("@cpu", "@cuda")} for r in made_up.few_errors()]
        made_up.write(self.committed / f"h200.{SPEED}.jsonl", [header(SPEED)] + speeds)
        made_up.write(self.committed / f"h200.{ERROR}.jsonl", [header(ERROR)] + errors)
        told, more = " … in more than one place", ["--committed", str(self.committed)]
        self.assert_tells(self.run_report(*more), "H200, GPU: all 2 bars", "This machine, 1 thread: all 2 bars",
                          "All 8 results … checked … right; 4 were not", f"All 12{told}")
        self.assertEqual(self.code, 0, self.err)
        self.pick(ERROR, TREE, n=1024, data="ones")[0]["bits"] = "0x00000002"
        self.assert_tells(self.run_report(*more), f"11 of 12{told} … not {TREE} on ones at n = 2¹⁰ (this machine), "
                          "tree/plain/fp32@cuda on ones at n = 2¹⁰ (H200).")
        self.assertEqual(self.code, 1)
        self.assert_silent(self.run_report(), "in more than one place")

    def test_a_section_without_results_names_the_command_that_makes_them(self):
        self.run_as_it_is()
        self.assertEqual(self.code, 0, self.err)
        for text in (self.page(), self.text()):
            for command in (ERROR, SPREAD, SPEED):
                self.assertIn(f"build/release/bin/{command} --full --out build/study", text)
        made_up.write(self.folder / f"{SPEED}.jsonl", [header(SPEED)])  # it was stopped early
        self.run_as_it_is()
        self.assertEqual(self.code, 0, self.err)
        self.assertIn("No results yet.", self.page())

    def test_there_is_a_section_for_each_experiment(self):
        self.assertEqual(sorted(set(report.SECTIONS) - {"compare"}), results.EXPERIMENTS)


class Files(WithFiles):
    """What is skipped, and what is refused."""

    def lines(self, name, change):
        """Changes a list of the lines of a file."""
        path = self.folder / name
        lines = path.read_bytes().splitlines(keepends=True)
        change(lines)
        path.write_bytes(b"".join(lines))

    def test_lines_that_are_no_results_are_skipped_with_a_word_in_both_places(self):
        def put(line, at, until=None):
            return lambda lines: lines.__setitem__(slice(at, until), [line])

        def row(old, new):
            line = json.dumps(made_up.stored(made_up.few_spreads()[1]))
            self.assertIn(old, line)
            return put(line.replace(old, new).encode() + b"\n", 2, 3)

        torn, not_json, end = "was not written completely", "this is not JSON", 1 << 20
        again = json.dumps(made_up.stored(made_up.few_spreads()[2] | {"distinct_bits": 7})).encode() + b"\n"
        error, spread = f"{ERROR}.jsonl", f"{SPREAD}.jsonl"
        cases = [(error, put(b'{"kind":"error","data":"no', end), 26, torn, "24 rows", 90),
                 (error, lambda lines: lines.append(lines.pop().rstrip()), 25, torn, "23 rows", 90),
                 (error, put(b"[" * 100_000 + b"\n", end), 26, not_json, "24 rows", 90),
                 (spread, row('"runs": 10', '"runs": "ten"'), 3, "$.runs: ", "17 rows", 80),
                 (spread, put(b'{"kind": "weather"}\n', 1, 1), 2, "expected an object of kind ", "18 rows", 90),
                 (spread, put(again, end), 20, "line 4 is the same row", "18 rows", 90),
                 (spread, put(b'{"kind":"study","schema":2,"exper', 0), 1, torn, "no rows", None),
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
                self.run_as_it_is()
                self.assertEqual((self.code, self.err.count("\n")), (0, 1), self.err)
                self.assertIn(f"{name}:{at}: skipped: {why}", self.err)
                for text in (self.page(), self.text()):
                    self.assertIn(f"{rows}, 1 corrupt line skipped", text)
                self.assertEqual(re.findall("in ([0-9]+) runs\\.", self.findings), [str(runs)] if runs else [])
                self.assert_silent(self.findings, "7 in 10 runs")  # of two rows that are the same the first counts

    def test_a_row_of_another_seed_is_another_row(self):
        self.rows[SPREAD].append(made_up.few_spreads()[3] | {"seed": 2})
        self.run_report()
        self.assertEqual(self.err, "")
        self.assertIn("19 rows", self.text())

    def test_of_many_such_lines_the_first_are_named(self):
        self.run_report()
        self.lines(f"{ERROR}.jsonl", lambda lines: lines.extend([b"garbage\n"] * 100))
        self.run_as_it_is()
        self.assertEqual(self.err.count("\n"), 6, self.err)
        self.assertIn(f"{ERROR}.jsonl: skipped: 95 more lines", self.err)
        self.assertIn("100 corrupt lines skipped", self.page())

    def refused(self, *reasons):
        with self.subTest(reasons):
            self.run_as_it_is()
            self.assertEqual((self.code, self.err.count("\n")), (2, 1), self.err)
            self.assert_tells(self.err, " … ".join(reasons))

    def test_files_that_are_something_else_are_refused_with_one_line(self):
        again = "run experiments/run again"
        error, speed = self.folder / f"{ERROR}.jsonl", self.folder / f"{SPEED}.jsonl"
        made_up.write(error, [header(ERROR) | {"schema": 3}] + made_up.few_errors())
        self.refused(error.name, "schema 3", "schema 2", again)
        made_up.write(error, made_up.few_errors())
        self.refused(f"{error.name}:1: expected an object of kind study, not 'error'", again, "or delete the file")
        made_up.write(error, [header(SPREAD)] + made_up.few_spreads())
        self.refused(error.name, SPREAD)
        error.unlink()
        made_up.write(self.folder / "results.jsonl", [*self.comparisons, self.comparisons[0] | {"schema": 3}])
        self.refused("results.jsonl", "schema 3", "schema 2", again)
        (self.folder / "results.jsonl").unlink()
        speed.mkdir()
        self.refused(speed.name, "Is a directory", again)
        speed.rmdir()
        speed.symlink_to("nowhere")
        self.refused(speed.name, "No such file or directory")
        speed.unlink()
        (self.folder / "report.md").mkdir()
        self.refused("report.md")

    def test_a_report_takes_its_place_when_it_is_complete(self):
        self.run_report()
        before = (self.folder / "report.md").stat().st_ino
        self.run_report()
        self.assertNotEqual((self.folder / "report.md").stat().st_ino, before)
        with self.assertRaises(TypeError):
            report.write(self.folder / "report.md", None)
        self.assertGreater((self.folder / "report.md").stat().st_size, 0)
        self.assertEqual([p.name for p in self.folder.glob("*.html*")], ["report.html"])

    def test_names_the_committed_files_that_it_does_not_read(self):
        for name in ("h200.speed.jsonl", "h200.error_vs_length.json", "h200.compare.jsonl"):
            (self.committed / name).write_text("")
        self.run_report("--committed", str(self.committed))
        self.assertEqual((self.code, self.err.count("\n")), (0, 1), self.err)
        self.assertIn(": h200.error_vs_length.json, h200.speed.jsonl\n", self.err)


class Page(WithFiles):
    def without_plotly(self):
        return re.sub(r"<script>/\*\*.*?</script>", "", self.page(), flags=re.S)

    def test_needs_nothing_from_elsewhere(self):
        with unittest.mock.patch("page.plotly", PLOTLY):
            self.run_report()
        self.assertLess(len(self.without_plotly()), len(self.page()) - 1_000_000)
        self.assertIsNone(re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|fetch\(""",
                                    self.without_plotly()))

    def test_figures_tables_and_downloads(self):
        findings, text, page = self.run_report(), self.text(), self.page()
        figures = self.figures()
        self.assertEqual(len(figures), 4)
        self.assertEqual(len(re.findall(r"<div class=static>.*?<svg", page)), 4)
        ids = re.findall(r'<(?:section|figure) id="?([^">]+)', page)
        self.assertEqual(sorted(ids), sorted(set(ids)))
        self.assertGreater(len(ids), 8)

        tables = re.findall(r'<div class=wide tabindex=0 role=region aria-label="([^"]+)"><table><thead>(.*?)</thead>',
                            page, re.S)
        self.assertEqual(len(tables), page.count("<table>"))
        self.assertEqual(text.count("\n| ---"), page.count("<table>") - page.count("every bar</summary>"))
        for label, heads in tables:
            self.assertEqual(heads.count("<th scope=col"), heads.count("</th>"), label)
            self.assertNotIn("></th>", heads, label)
        for sentence in findings.splitlines():
            self.assertIn(sentence, text)
            self.assertIn(sentence.removeprefix("- "), page.replace("&#x27;", "'"))

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

    def test_the_first_figure_has_error_against_speed_of_every_method_and_what_nothing_is_better_than(self):
        methods = {m["method"]: m for m in self.comparisons[0]["methods"]}
        methods[EXACT].update(gb_per_s=2.5, relative_error=0.0)
        methods[PEER].update(gb_per_s=8.0)
        self.run_report()
        frontier = self.figures()[0]
        points = {text.split(":")[0]: (x, y, text) for t in frontier["traces"] if "hovertext" in t
                  for x, y, text in zip(t["x"], t["y"], t["hovertext"])}
        self.assertEqual(points[EXACT], (2.5, 8.674e-19, f"{EXACT}: 2.5 GB/s, relative error 0"))
        self.assertEqual(points[TREE][:2], (4.0, 2.384e-07))
        traces = {t["name"]: t for t in frontier["traces"]}
        self.assertEqual(list(zip(traces["frontier"]["x"], traces["frontier"]["y"])),
                         [(8.0, 4.768e-06), (4.0, 2.384e-07), (2.5, 8.674e-19)])
        none, everywhere, exact = (traces[name]["marker"] for name in ("plain, none", "plain, everywhere",
                                                                      "exact, order_free"))
        self.assertEqual(none["color"], everywhere["color"])
        self.assertEqual(len({none["symbol"], everywhere["symbol"], exact["symbol"]}), 3)

    def test_a_sum_of_0_and_a_quotient_that_overflows_are_drawn_all_the_same(self):
        for method, new in ((TREE, {"truth": 1e-300, "bound": 1e300}), (LOOP, {"truth": 0.0, "relative_error": None}),
                            (ATOMIC, LOST)):
            self.pick(ERROR, method, n=1024, data="normal")[0].update(new)
        self.run_report()
        self.assertEqual(self.code, 0, self.err)
        bounds = [t for t in self.figures()[1]["traces"]
                  if t["name"] == "bound of tree/plain" and t["on"][2] == "normal"]
        self.assertTrue(bounds and all(t["y"][0] is None and t["y"][1] for t in bounds))

    def test_hostile_names_stay_text_in_their_cell(self):
        self.comparisons[0]["data"]["name"] = "<script>alert(1)</script>.f32"
        for r in self.rows[ERROR]:
            r["data"] = "</script><u>"
        self.run_report()
        for text in (self.without_plotly(), self.text()):
            self.assertFalse("<u>" in text or "<script>alert" in text)
        self.comparisons[0]["data"]["name"] = "a|b\n## A heading.f32"
        for r in self.rows[ERROR]:
            r["data"] = "a|b\n"
        self.run_report()
        self.assertIn("\na|b ## A heading.f32, this machine\n", self.text())
        self.assertNotIn("\n## A heading", self.text())
        self.assertIn("\n| a\\|b |", self.text())

    def test_the_text_fits_into_a_comment_and_tells_what_it_leaves_out(self):
        methods = [measured(f"{a}{b}/plain/fp32@cpu", "none", 2) for a in "abcdefgh" for b in "abcdefgh"]
        self.comparisons = [made_up.comparison(f"data set {i}", methods) for i in range(30)]
        self.comparisons[0]["methods"] = methods + [measured(f"{a}/plain/fp32@cpu", "none", 2) for a in "abcdefgh"]
        self.run_report()
        text = self.text()
        self.assertTrue(40_000 < len(text) < 65_536, len(text))
        told = re.findall(r"<summary>(data set \d+), |Only in report.html: (.*)", text)
        elsewhere = " ".join(more for _, more in told)
        self.assertIn("data set ", elsewhere)
        shown = {name for name, _ in told if name} | set(re.findall(r"data set \d+", elsewhere))
        self.assertEqual(shown | {"data set 0"}, {f"data set {i}" for i in range(30)})
        self.assertIn("data set 0, this machine\n\n| method", text)  # what is not folded goes last

        s = section.Section("s", "Long", "About it.", "make it", findings=["A sentence of some words. " * 40] * 200)
        text = markdown.text("A report", [], [s], [])
        self.assertTrue(60_000 < len(text) < 65_536, len(text))
        self.assertTrue(text.endswith("words.\n\nMore does not fit here; it is in report.html.\n"), text[-200:])


PLOTLY = page.plotly

if __name__ == "__main__":
    unittest.main()
