"""Tests of the paper: it is that of the committed results, and its prose has no number of its own.

Run by ctest, or: build/venv/bin/python tests/notebooks/paper_test.py
"""

import ast
import copy
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import made_up
from made_up import ROOT
import operations
import paper
import report
import results

NAMES = re.compile(r"\b(fp|bf)(16|32|64)\b")


made = {}  # what was made, by name and inputs: most sections are the same in each paper


def remembered(name, make, inputs):
    key = name, *map(id, inputs)
    if key not in made:
        made[key] = make(), inputs  # the inputs stay alive, so that no other one gets their ids
    return made[key][0]


def section(question, found, make=report.section):
    return remembered(question, lambda: make(question, found), found.get(question, []))


def operations_section(found, make=operations.section):
    return remembered("operations", lambda: make(found), [s for q in operations.KINDS.values() for s in found.get(q, [])])


@unittest.mock.patch("report.section", section)
@unittest.mock.patch("operations.section", operations_section)
def text_of(found):
    return paper.as_markdown([block for block in paper.blocks(paper.numbers_of(found)) if block])


class ThePaper(made_up.SentenceTest):
    @classmethod
    def setUpClass(cls):
        cls.found = made_up.committed()
        cls.text = text_of(cls.found)

    def test_the_software_of_a_gpu_makes_no_other_host_and_is_listed_once(self):
        about = {"hardware_threads": 2, "cpu": "A Processor", "kernel": "Linux 6",
                 "gpu": "A GPU, driver for CUDA 13.0, CCCL 3.5.0"}
        other = about | {"gpu": "A GPU", "libraries": {"CUDA": "13.0", "BLAS": "libopenblas-r0.3.21.so"}}
        options = {"numpy": "2.4.6", "cuda": "13.0", "torch_cpu": "2.11.0+cu130", "samesum": "0.1.0", "repeats": True,
                   "runs": 100}
        self.assertEqual(paper.host(about), paper.host(other))
        self.assertNotEqual(paper.host(about), paper.host(about | {"kernel": "Linux 7"}))
        self.assertEqual(paper.software([{"provenance": about}, {"provenance": other, "options": options}]), [
            "driver for CUDA 13.0", "CCCL 3.5.0", "CUDA 13.0", "BLAS libopenblas-r0.3.21.so", "numpy 2.4.6",
            "torch 2.11.0+cu130"])

    def changed(self, question, kind, new, **fields):
        """The paper after a change of the rows of a kind with these fields."""
        found = copy.copy(self.found)
        found[question] = [copy.copy(s) for s in found[question]]
        some = []
        for i, s in enumerate(found[question]):
            rows = [r | new if r["kind"] == kind and fields.items() <= r.items() else r for r in s.rows]
            some += [r for r, old in zip(rows, s.rows) if r is not old]
            found[question][i] = results.dataclasses.replace(s, rows=rows)
        self.assertTrue(some, "no row has these fields")
        return text_of(found)

    def test_the_committed_paper_is_that_of_the_committed_results(self):
        """If this fails, run notebooks/make.py."""
        with tempfile.TemporaryDirectory() as name:
            with unittest.mock.patch("results.read", made_up.read_once):
                self.assertEqual(paper.main(["--out", name]), 0)
            made = {path.relative_to(name): path.read_text() for path in pathlib.Path(name).rglob("paper*.*")}
        committed = {path.relative_to(paper.FOLDER): path.read_text()
                     for pattern in ("paper.md", "paper.html", "figures/paper_*")
                     for path in paper.FOLDER.glob(pattern)}
        self.assertEqual(sorted(made), sorted(committed))
        for name, text in made.items():
            self.assertTrue(text == committed[name], f"{name} differs")

    def test_the_prose_has_no_number_of_its_own(self):
        tree = ast.parse(pathlib.Path(paper.__file__).read_text())
        functions = [f for f in tree.body if isinstance(f, ast.FunctionDef)]
        prose = [f for f in functions if f.name in ("opening", "related", "definitions", "method", "answers", "costs",
                                                    "errors", "effects", "well_behaved", "threats")]
        self.assertEqual(len(prose), 10)
        for f in prose:
            for node in ast.walk(f):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.assertNotRegex(NAMES.sub("", node.value), r"\d", f.name)

    def test_changed_data_change_the_paper(self):
        most = max((r for s in self.found["spread_over_runs"] for r in s.of("spread") if r["axis"] == "runs"
                    and r["data"] == "normal"), key=lambda r: r["distinct_bits"])
        unique = {name: most[name] for name in ("method", "data", "axis", "n")}
        self.assertNotIn("41 answers from one call", self.text)
        for question, kind, new, fields, expected in (
                ("spread_over_runs", "spread", {"distinct_bits": 41}, unique, "41 answers from one call"),
                ("accumulator_formats", "story", {"value": 123.0}, {"case": "ones", "method": "serial/plain/bf16@cpu"},
                 "add up to 123 in a loop"),
                ("consequences", "solver", {"most_iterations": 987}, {"method": "atomic/plain/fp32@cpu", "data": "graded"},
                 "–987 iterations"),
                ("price_of_promise", "price", {"seconds": 5.5e-2}, {"method": "tree/plain/fp32@cuda", "n": 1 << 20}, "| 55 ms |"),
                ("error_vs_length", "error", {"within_bound": False}, {"method": "tree/plain/fp32@cuda", "data": "sine"},
                 "checks passed")):
            with self.subTest(question):
                text = self.changed(question, kind, new, **fields)
                self.assertIn(expected, text)
                self.assertNotEqual(text, self.text)
        self.assertRegex(text, r"[\d,]+ of [\d,]+ checks passed", "an error beyond its bound")

    def test_the_method_of_older_results_is_said_until_results_have_rounds(self):
        old = "results files with times are older than the programs beside this text"
        without = {q: [results.dataclasses.replace(s, rows=[{k: v for k, v in r.items() if k != "rounds"} for r in s.rows])
                       for s in some] for q, some in self.found.items()}
        self.assertRegex(text_of(without), rf"(All \d+|\d+ of \d+) {old}")
        found = {q: [results.dataclasses.replace(s, rows=[
            r | {"rounds": [[r["low"], r["seconds"], r["high"]]]} if {"low", "seconds"} <= r.keys() else r for r in s.rows])
            for s in some] for q, some in self.found.items()}
        text = text_of(found)
        self.assertNotIn("older than the programs", text)
        self.assertIn("stream. Before that, the bits of", text)
        self.assertIn("The ratio of two times is the median of the ratios of the rounds", text)

    def test_the_passed_checks_are_named_by_kind(self):
        found = re.search(r"All ([\d,]+) checks passed: ([^.]*)\.", self.text)
        total, *parts = [int(n.replace(",", "")) for n in re.findall(r"\b\d[\d,]*\b", found[1] + " " + found[2])]
        self.assertEqual(total, sum(parts))
        self.assertIn(" sums by key correctly rounded by exact, ", found[2])
        self.assertIn(" of other kinds", found[2])

    def test_the_abstract_and_the_main_figure_have_the_prices(self):
        abstract = self.text.partition("## Introduction")[0]
        found = re.search(r"in (\d+) of (\d+) cases, exact ones in (\d+) of (\d+) \(H200, GPU\)", abstract)
        self.assertTrue(found, abstract)
        self.assertIn("](figures/paper_price.svg)", self.text)
        text = self.changed("speed_vs_length", "speed", {"seconds": 1e-9, "low": 1e-9, "high": 1e-9, "rounds": [[1e-9] * 5]},
                            n=1 << 20, input_format="fp32", method="cub/run_to_run/fp32@peer", caches="hot", data="normal")
        self.assertRegex(text, r"exact results take \d,\d+ \(H200, GPU\) and \d+ \(\w+[^()]*\) times as long")

    def test_results_without_some_experiments_make_a_paper_without_their_sections(self):
        for question in self.found:
            with self.subTest(question):
                text = text_of({q: [] if q == question else some for q, some in self.found.items()})
                self.assertNotRegex(text, r"\bNone\b(?! of)|\bnan\b|\{\}|: \.|\(\)")
        text = text_of({q: some if q == "error_vs_length" else [] for q, some in self.found.items()})
        self.assertIn("## What the promises do not give", text)
        self.assertNotIn("## Does it matter?", text)

    def test_has_what_a_paper_needs_and_cites_every_reference(self):
        for heading in ("Abstract", "Introduction", "Method", "Threats to validity", "References"):
            self.assertEqual(self.text.count(f"## {heading}\n"), 1, heading)
        self.assertGreaterEqual(self.text.count("*Figure "), 4)
        self.assertGreaterEqual(self.text.count("|---|"), 2)
        for key in paper.REFERENCES:
            self.assertIn(f"{key} {paper.year(key)}", self.text.partition("## References")[0])
        self.assertNotRegex(self.text.partition("## References")[0].replace("![", ""), r"\[[^\]]*[a-z](?:; [^\]]*)?\](?!\()",
                            "every citation has a reference")

    def test_the_authors_and_the_date_are_those_of_the_citation(self):
        citation = (ROOT / "CITATION.cff").read_text()
        front = self.text.split("\n")[2]
        for name in ("name", "version", "date-released"):
            self.assertIn(re.search(rf"^[ -]*{name}: (.+)$", citation, re.M)[1].strip('"'), front)


if __name__ == "__main__":
    unittest.main()
