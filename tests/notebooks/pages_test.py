"""Tests of the tables of results in README.md and other pages: they are those of the committed results.

Run by ctest, or: build/venv/bin/python tests/notebooks/pages_test.py
"""

import copy
import dataclasses
import pathlib
import re
import tempfile
import unittest

import made_up
from made_up import ROOT, at_speed, speed, spread
import pages
import published
import results

README = ROOT / "README.md"


def source(name, rows, commit="0123456789abcdef"):
    machine, question = name.split(".")[:2]
    made = made_up.source(question, rows, machine.upper())
    return dataclasses.replace(made, path=ROOT / "experiments/results" / name,
                               header={"provenance": made_up.PROVENANCE | {"commit": commit}})


class ThePages(unittest.TestCase):
    def test_the_committed_pages_have_the_tables_of_the_committed_results(self):
        """If this fails, run notebooks/make.py."""
        found = made_up.committed()
        self.assertIn(README, pages.paths())
        for path in pages.paths():
            self.assertTrue(pages.text(path, found) == path.read_text(encoding="utf-8"), f"{path} differs")

    def test_each_table_is_in_one_page_and_names_its_files(self):
        named = [mark[2] for path in pages.paths() for mark in pages.MARKED.finditer(path.read_text(encoding="utf-8"))]
        self.assertEqual(sorted(named), sorted(pages.TABLES))
        for path in pages.paths():
            for mark in pages.MARKED.finditer(path.read_text(encoding="utf-8")):
                self.assertRegex(mark[0], r"\nResults: .*\.jsonl\) \([0-9a-f]{7}(-dirty)?, 20\d\d-\d\d-\d\d\)", mark[2])

    def test_a_figure_that_changes_in_the_results_changes_the_page(self):
        for question, kind, fields, new, expected in (
                ("sums_by_key", "repeats", {"method": "cub/sort_reduce_by_key/fp32@peer", "axis": "runs"},
                 {"distinct_bits": 97}, r"\| 97 in 100 calls \| – \|"),
                ("prefix_sums", "reduction", {"method": "cumsum/exact/fp32@cuda", "n": 1 << 24, "outer": 1, "inner": 1},
                 {"seconds": 0.25}, r"\| 1 in \d+ calls \| 250 ms \|"),
                ("speed_vs_length", "speed", {"method": "exact/fp32@cuda", "n": 1 << 28, "caches": "hot", "data": "normal"},
                 {"gb_per_s": 1234.4}, r"\| \d+ \| 1230 \|")):
            with self.subTest(question):
                found = copy.copy(made_up.committed())
                found[question] = [dataclasses.replace(s, rows=[
                    r | new if r["kind"] == kind and fields.items() <= r.items() else r for r in s.rows])
                    for s in found[question]]
                self.assertNotRegex(README.read_text(encoding="utf-8"), expected)
                self.assertRegex(pages.text(README, found), expected)

    def test_the_prose_beside_the_tables_has_no_figure_of_a_result(self):
        for path, heading in ((README, "\n## How fast\n"), (ROOT / "experiments/SPEED.md", "# How fast\n")):
            prose = pages.MARKED.sub("", path.read_text(encoding="utf-8")).partition(heading)[2]
            self.assertTrue(prose, path.name)
            self.assertNotRegex(prose, r"\d (µs|ms|GB/s|times)\b|\d ×", path.name)


class WhatOthersMeasured(unittest.TestCase):
    def cells(self, spreads=(), by_key=(), errors=(), times=(), dots=(), solvers=(), **torch):
        """The last column, on made results."""
        torch = {f"h200.{question}.jsonl": rows for question, rows in torch.items()}
        files = pages.Files({s.question: [s] for s in [
            source(pages.SPREAD, list(spreads)), source(pages.KEYS, list(by_key)), source(pages.ERRORS, list(errors)),
            source(pages.LENGTHS, list(times)), source(pages.REDUCTIONS, list(dots)),
            source(pages.CONSEQUENCES, list(solvers)), *(source(name, list(rows)) for name, rows in torch.items())]})
        return [line.split(" | ")[-1].removesuffix(" |") for line in pages.others_measured(files)[2:]]

    def test_each_figure_here_is_computed_from_the_results(self):
        spreads = [{"kind": "growth", "method": "sum/atomic_element/plain/fp64@cuda", "promise": "none",
                    "input_format": "fp64", "data": "uniform", "seed": seed, "n": n, "axis": axis, "runs": 20,
                    "vs_max": 1e-16 * n**power}
                   for axis, power in (("runs", 0.75), ("permutation", 2.0)) for seed in (1, 2)
                   for n in (256, 1024, 4096)]
        by_key = [{"kind": "repeats", "method": f"scatter_add/{method}/fp32@cuda", "promise": "none", "data": "normal",
                   "seed": 1, "n": 4096, "axis": "runs", "runs": 9, "distinct_bits": distinct,
                   "broken": False} | pages.BY_KEY
                  for method, distinct in (("exact", 1), ("atomic_element/plain", 7))]
        errors = [{"kind": "coverage", "method": f"serial/plain/{format}@cuda", "input_format": format, "data": data,
                   "seed": 1, "n": n, "seeds": 50, "probability": 0.9, "covered": 1.0, "beyond_bound": 0,
                   "marked": marked, "median_share": share}
                  for format, data, n, share, marked in (
                      ("fp32", "uniform", 1024, 0.1, None), ("fp32", "uniform", 16384, 0.2, None),
                      ("fp32", "uniform +-1", 1024, 0.1, None), ("fp32", "uniform +-1", 16384, 0.025, None),
                      ("fp64", "uniform", 1024, 0.1, None), ("fp64", "uniform", 16384, 0.2, "stagnation"))]
        times = [speed(method, 1.0, input_format="fp64", threads=threads) | made_up.took(seconds)
                 for method, threads, seconds in (("loop/fp64@peer", 1, 2.0), ("boost_kahan/fp64@peer", 1, 9.0),
                                                  ("exact/fp64@cpu", 1, 3.0), ("exact/fp64@cpu", 2, 1.0))]
        dots = [{"kind": "reduction", "method": method, "operation": "dot", "input_format": "fp64", "outer": 1,
                 "n": 1 << 20, "inner": 1, "seed": 1, "threads": threads, "gb_per_s": 1.0, "verified": verified,
                 "bars": []} | made_up.took(seconds)
                for method, threads, seconds, verified in (
                    ("dot/exact/fp64@cpu", 1, 6.0, True), ("dot/tree/plain/fp64@cpu", 1, 1.0, True),
                    ("blas/dot/fp64@peer", 1, 4.0, True), ("eigen/dot/fp64@peer", 1, 2.0, True),
                    ("std/dot/fp64@peer", 1, 1.0, False), ("blas/dot/fp64@peer", 2, 1.0, True))]
        solvers = [{"kind": "solver", "method": f"sum/{method}/fp32@cpu", "promise": promise, "input_format": "fp32",
                    "data": "graded", "seed": 1, "n": 64, "condition": 8.0, "tolerance": 1e-5, "runs": 5,
                    "distinct_bits": 2, "bits": "0x0001", "converged": 5, "least_iterations": least,
                    "most_iterations": most, "least_residual": 1e-6, "most_residual": 1e-6, "broken": False}
                   for method, promise, least, most in (("atomic/plain", "none", 90, 120),
                                                        ("exact", "order_free", 100, 100))]
        self.assertEqual(self.cells(spreads, by_key, errors, times, dots, solvers), [
            "`atomic_element/plain` 0.75 ± 0.00 (uniform); n up to 2^12",
            "7 in 9 calls of `scatter_add/atomic_element/plain`, 1 in 9 calls of `scatter_add/exact`, "
            "2^12 fp32 by 256 keys",
            "fp32 0.75 (uniform) and 0.00 (uniform +-1); medians of 50 seeds, n from 2^10 to 2^14",
            "`boost_kahan` 4.50 [4.50, 4.50], `exact` 1.50 [1.50, 1.50]; 2^20 normal numbers",
            "3.00 [3.00, 3.00] times with `dot/exact` as with `eigen/dot`, one thread; 2^20 normal numbers",
            "90 to 120 in 5 runs of conjugate gradients with `atomic/plain` in fp32; in every run 100 (`exact`)"])

    def test_without_results_a_cell_is_absent(self):
        self.assertEqual(self.cells(), [pages.ABSENT] * 6)

    def test_the_variability_of_operators_has_a_line_if_it_was_measured(self):
        def row(method, operation, vermv, vc, **more):
            return {"kind": "repeats", "method": method, "promise": "none", "operation": operation,
                    "input_format": "fp32", "data": "normal", "seed": 1, "n": 4096, "axis": "runs", "runs": 30,
                    "distinct_bits": 9, "broken": False, "vermv_mean": vermv, "vermv_max": 1.0, "vc_mean": vc,
                    "vc_max": 1.0} | more
        by_key = [row("torch/index_add/fp32@peer", "scatter_add", 1.25e-7, 0.5, keys="uniform", bins=256),
                  row("torch/scatter_reduce/fp32@peer", "scatter_add", 0.0, 0.0, keys="uniform", bins=256)]
        scans = [row("torch/cumsum/fp32@peer", "cumsum", 3e-9, 0.0625)]
        self.assertEqual(
            self.cells(torch_sums_by_key=by_key, torch_prefix_sums=scans)[2],
            "against the first result: `torch/index_add` 1.2e-07 and 0.5, `torch/scatter_reduce` 0 and 0, 2^12 fp32 by 256 keys; "
            "`torch/cumsum` 3e-09 and 0.062, 2^12 fp32")
        old = {name: value for name, value in by_key[0].items() if not name.startswith("v")}
        self.assertEqual(self.cells(torch_sums_by_key=[old]), [pages.ABSENT] * 6)

    def test_published_ratios_are_those_of_the_published_times(self):
        self.assertEqual(pages.relative_times(published.EXACT_SUMS_SECONDS), "Kahan 4.03, xsum 3.33, bitrep 10.3")


class Tables(unittest.TestCase):
    def setUp(self):
        self.calls = [spread(f"{name}/fp32@{backend}", promise, axis="alignment", distinct=distinct)
                      for name, backend, promise, distinct in (
                          ("tree/plain", "cuda", "everywhere", 1), ("exact", "cuda", "order_free", 1),
                          ("cub/run_to_run", "peer", "run_to_run", 3))]
        self.times = [speed("exact/fp32@cuda", 10.0, n=4096, threads=0)]

    def files(self):
        made = [source(pages.SPREAD, self.calls), source(pages.LENGTHS, self.times, "89abcdef0123-dirty"),
                source(pages.SCANS, []), source(pages.KEYS, [])]
        return pages.Files({s.question: [s] for s in made})

    def lines(self):
        return pages.different_results(self.files())[2:]

    def test_a_row_is_of_one_length_and_has_no_time_that_the_file_does_not_have(self):
        self.times.append(speed("tree/plain/fp32@cuda", 8.0, n=8192, threads=0))
        self.assertEqual(self.lines(), ["| sum of 2^12 fp32 at 10 addresses | `cub/run_to_run` | 3 in 10 calls | – |",
                                        "| sum of 2^12 fp32 at 10 addresses | `tree/plain` | 1 in 10 calls | – |",
                                        "| sum of 2^12 fp32 at 10 addresses | `exact` | 1 in 10 calls | 1 ms |"])

    def test_each_setting_of_the_other_library_has_a_row(self):
        self.calls.append(spread("cub/not_guaranteed/fp32@peer", "none", axis="alignment", distinct=9))
        self.assertIn("| sum of 2^12 fp32 at 10 addresses | `cub/not_guaranteed` | 9 in 10 calls | – |", self.lines())

    def test_a_result_that_is_known_to_be_wrong_has_no_time(self):
        self.times[0]["verified"] = False
        self.assertIn("| sum of 2^12 fp32 at 10 addresses | `exact` | 1 in 10 calls | – |", self.lines())

    def test_two_results_for_one_cell_and_a_missing_file_are_refused(self):
        self.times.append(self.times[0] | at_speed(4.0) | {"seed": 2})
        with self.assertRaisesRegex(results.Refused, "has 2 rows with"):
            self.lines()
        with self.assertRaisesRegex(results.Refused, f"{pages.TORCH}: is missing"):
            pages.beside_torch(self.files())

    def test_a_call_in_a_graph_is_not_a_second_time_of_a_call(self):
        self.times.append(self.times[0] | at_speed(40.0) | {"launch": "graph"})
        self.assertIn("| sum of 2^12 fp32 at 10 addresses | `exact` | 1 in 10 calls | 1 ms |", self.lines())

    def test_samesum_is_compared_with_torch_in_its_file_alone(self):
        def rows(method, gb_per_s, **more):
            return {"kind": "reduction", "method": method, "operation": "sum", "input_format": "fp32", "outer": 4096, "n": 1000,
                    "inner": 1, "seed": 1, "threads": 0, "verified": True, "bars": []} | at_speed(gb_per_s) | more
        of_torch, ours = rows("torch/sum/fp32@peer", 2.0), rows("sum/exact/fp32@cuda", 3.0)

        def lines(made):
            return pages.beside_torch(pages.Files({"torch_speed": [source(pages.TORCH, made)],
                                                   "speed_of_reductions": [source(pages.REDUCTIONS, [ours])]}))
        self.assertIn("No committed results", lines([of_torch])[0])
        graph = {"launch": "graph"}
        self.assertEqual(lines([of_torch | graph, ours | graph])[2:], ["| sum, fp32 | 4096 × 1000 | – | – | 1.50 | – |"])
        self.assertEqual(lines([of_torch | graph])[2:], [])
        compiled = rows("torch/sum_compiled/fp32@peer", 4.0)
        self.assertEqual(lines([of_torch | graph, compiled | graph])[2:], ["| sum, fp32 | 4096 × 1000 | – | – | – | 2.00 |"])
        moments = [rows(m, s, operation="moments", input_format="fp64", **graph)
                   for m, s in (("torch/var/fp64@peer", 2.0), ("moments/exact/fp64@cuda", 1.0), ("moments/tree/fp64@cuda", 4.0))]
        self.assertEqual(lines(moments)[2:], ["| moments, fp64 | 4096 × 1000 | 2.00 | – | 0.50 | – |"])

    def test_the_sources_are_named_with_machine_commit_and_date(self):
        files = self.files()
        pages.different_results(files)
        text = files.sources(ROOT / "lib")
        self.assertIn("Results: A Processor, 2 hardware threads: [h200.spread_over_runs]"
                      "(../experiments/results/h200.spread_over_runs.jsonl) (0123456, 2026-11-21), ", text)
        self.assertIn("(89abcde-dirty, 2026-11-21)", text)
        self.assertEqual(len(re.findall("A Processor", text)), 1)

    def priced(self, reductions=()):
        """{question: [source]} of all files with prices."""
        rows, found = {pages.LENGTHS: self.times, pages.REDUCTIONS: list(reductions)}, {}
        for s in (source(name, rows.get(name, [])) for name in pages.PRICED):
            found.setdefault(s.question, []).append(s)
        return found

    def test_a_price_is_relative_to_the_fastest_method_that_promises_less_for_the_same_work(self):
        def of(method, seconds, **fields):
            return speed(method, 1.0, threads=0, **fields) | dict.fromkeys(("low", "seconds", "high"), seconds)

        self.times = [of("exact/fp32@cuda", 3.0, n=4096), of("tree/plain/fp32@cuda", 1.5, n=4096),
                      of("exact/fp32@cuda", 9.0, n=8192), of("tree/plain/fp32@cuda", 6.0, n=8192),
                      of("cub/run_to_run/fp32@peer", 1.0, n=8192), of("exact/fp32@cuda", 4.0, n=16384),
                      of("cub/run_to_run/fp32@peer", 1.0, n=16384), of("tree/plain/fp64@cuda", 0.1, n=16384),
                      of("read", 0.1, n=16384), of("exact/fp32@cpu", 7.0, n=16384), of("exact/fp32@cuda", 5.0, n=2)]
        rows = [{"kind": "reduction", "method": method, "operation": method.partition("/")[0], "input_format": "fp32",
                 "outer": 2, "n": 1024, "inner": 1, "seed": 1, "threads": 0, "seconds": seconds, "low": seconds, "high": seconds,
                 "gb_per_s": 1.0, "verified": None, "bars": []}
                for method, seconds in (("dot/exact/fp32@cuda", 2.0), ("dot/tree/plain/fp32@cuda", 1.0),
                                        ("norm/tree/fp32@cuda", 2.0))]
        rows.append(rows[-1] | {"method": "cublas/norm/fp32@peer", "seconds": 1.0, "low": 1.0, "high": 1.0})
        made = pages.Files(self.priced(rows))
        self.assertEqual(pages.prices_by_operation(made)[2:], [
            "| H200, GPU | sum | 5.00 | neither of the two cases | 4.00 | none of 3 cases | 9.00 [9.00, 9.00] (2^13 fp32, beside "
            "cub/run_to_run) |",
            "| H200, GPU | dot | – | – | 2.00 | 0 of 1 case | 2.00 [2.00, 2.00] (2 rows of 1,024 fp32, beside "
            "tree/plain) |",
            "| H200, GPU | norm | 2.00 | 0 of 1 case | – | – | – |"])

    def test_a_table_with_ends_in_brackets_says_what_they_are(self):
        page = "<!-- prices_by_operation, made by notebooks/make.py -->\n<!-- end of prices_by_operation -->\n"
        self.times.append(speed("tree/plain/fp32@cuda", 20.0, n=4096, threads=0))
        found = self.priced()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "README.md"
        path.write_text(page)
        self.assertIn(". Ends in brackets are the widest ratios that", pages.text(path, found))
        for r in self.times:
            r.update(rounds=[[r["seconds"]] * 5], turns=1)
        self.assertIn(". Ends in brackets are 95% intervals.\n", pages.text(path, found))

    def test_each_data_set_has_its_own_slowest_case_relative_to_normal_data_of_the_same_work(self):
        self.times = [speed("exact/fp32@cuda", gb_per_s, n=n, threads=0, data=data) for n, data, gb_per_s in (
            (4096, "normal", 8.0), (4096, "arbitrary bits", 2.0), (4096, "60 binades", 2.0), (8192, "normal", 10.0),
            (8192, "60 binades", 5.0), (8192, "arbitrary bits", 1.0), (16384, "arbitrary bits", 0.1),
            (8192, "log-normal", 10.0))]
        made = pages.Files(self.priced())
        self.assertEqual(pages.exact_by_data(made), [
            "| device | operation | log-normal | 60 binades | arbitrary bits |", "| --- | --- | ---: | ---: | ---: |",
            "| GPU | sum | none | 4.00 [4.00, 4.00], 2^12 fp32 | 10 [10, 10], 2^13 fp32 |"])


if __name__ == "__main__":
    unittest.main()
