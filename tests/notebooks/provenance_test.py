"""Tests of where results come from: their commits, their hosts, and what shows that they are older than the code that
they time. Repositories are made up.

Run by ctest, or: build/venv/bin/python tests/notebooks/provenance_test.py
"""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import made_up
import results
import schema
import staleness
import study

sys.path.append(str(made_up.ROOT / "tests"))
import committed_results  # noqa: E402

RESULTS = "experiments/results/epyc.speed_vs_length.jsonl"


class MadeRepository(unittest.TestCase):
    """A clone in a temporary folder whose results file names its first commit."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patches = (unittest.mock.patch.object(staleness, "ROOT", self.root),
                   unittest.mock.patch.dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.git("init", "--quiet")
        self.change("lib/samesum/backend/cpu/sums/sums.cpp")
        self.first = self.git("rev-parse", "HEAD")
        (self.root / "experiments/results").mkdir(parents=True)
        self.write(RESULTS, self.first)
        self.write("experiments/shipped_costs.jsonl", self.first)

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=made up", "-c", "user.email=", *arguments],
                              capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def change(self, name, text="changed\n"):
        """Commits a file with that text at its end."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
        self.git("add", name)
        self.git("commit", "--quiet", "--message", f"Changes {name}")

    def write(self, name, commit, gpu=None):
        experiment = name.split(".")[-2] if "results/" in name else "speed_vs_length"
        header = made_up.header(experiment) | {"provenance": made_up.PROVENANCE | {"commit": commit, "gpu": gpu}}
        (self.root / name).write_text(json.dumps(header, separators=(",", ":")) + "\n", encoding="utf-8")

    def listed(self):
        """(exit code, what the check before a release prints)"""
        staleness.changed_since.cache_clear()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = staleness.main()
        return code, out.getvalue() + err.getvalue()


class ResultsOfAnOlderKernel(MadeRepository):
    def test_are_listed_with_a_file_that_changed_since(self):
        self.assertEqual(self.listed(), (0, ""))
        self.change("README.md")
        self.assertEqual(self.listed(), (0, ""), "it is no kernel")
        self.change("lib/samesum/window/window.hpp")
        self.assertEqual(self.listed(), (1, f"epyc.speed_vs_length.jsonl: measured at {self.first[:7]}; code that it "
                                            "times has changed since, for example lib/samesum/window/window.hpp\n"))

    def test_are_not_stale_if_only_kernels_of_another_device_changed(self):
        self.change("lib/samesum/backend/cuda/tree/sums.cu")
        self.assertEqual(self.listed(), (0, ""))
        self.write(RESULTS, self.first, gpu="NVIDIA H200")
        self.assertEqual(self.listed()[0], 1)

    def test_are_not_stale_if_only_comments_changed(self):
        for name, text, comment, code in (
                ("lib/samesum/order/tree.hpp", 'auto s = "// no comment", r = R"(/*)";\n', "  /// why\n/* more */\n", "int i;\n"),
                ("lib/python/samesum/_calls/call.py", "def f():\n    return '#'\n", "# why\n", "x = 1\n")):
            with self.subTest(name):
                self.change(name, text)
                self.write("experiments/results/epyc.python_speed.jsonl", self.git("rev-parse", "HEAD"))
                self.change(name, comment)
                self.assertEqual(self.listed()[1].count("python_speed"), 0)
                self.change(name, code)
                self.assertEqual(self.listed()[1].count("python_speed"), 1)

    def test_are_not_stale_if_they_time_nothing(self):
        os.rename(self.root / RESULTS, self.root / "experiments/results/epyc.error_vs_length.jsonl")
        self.change("lib/samesum/window/window.hpp")
        self.assertEqual(self.listed(), (0, ""))

    def test_of_python_are_stale_if_the_package_changed(self):
        self.write("experiments/results/epyc.python_speed.jsonl", self.first)
        self.change("lib/python/samesum/_arrays/numpy.py")
        self.assertEqual(self.listed()[0], 1)
        self.assertTrue(self.listed()[1].startswith("epyc.python_speed.jsonl: "))

    def test_are_marked_in_the_report(self):
        header = made_up.header("speed_vs_length") | {"provenance": made_up.PROVENANCE | {"commit": self.first}}
        source = results.Source("EPYC", "speed_vs_length", pathlib.Path("epyc.speed_vs_length.jsonl"), header,
                                made_up.few_speeds())
        report = importlib.import_module("report")

        def shown():
            staleness.changed_since.cache_clear()
            [table] = report.provenance([source])
            return table.rows[-1][1]

        self.assertNotIn("changed", shown())
        self.change("lib/samesum/order/tree.hpp")
        self.assertIn(f"; measured at {self.first[:7]}; code that it times has changed since", shown())

    def test_are_unknown_without_git_or_history(self):
        self.change("lib/samesum/order/tree.hpp")
        with tempfile.TemporaryDirectory() as folder:
            self.git("clone", "--quiet", "--depth=1", f"file://{self.root}", folder)
            with unittest.mock.patch.object(staleness, "ROOT", pathlib.Path(folder)):
                self.assertEqual(self.listed()[0], 2)
        with unittest.mock.patch.dict(os.environ, PATH=str(self.root)):
            self.assertEqual(self.listed(), (2, "staleness.py: needs git and a clone with its history\n"))
        os.rename(self.root / ".git", self.root / "other")
        self.assertEqual(self.listed()[0], 2)

    def test_are_those_of_every_experiment_that_times_something(self):
        timed = {name for name in results.QUESTIONS for kind in made_up.kinds_of(name)
                 if any("seconds" in field for field in schema.properties(schema.DEFINED[kind]))}
        parts = {part for name in timed for part in results.PARTS.get(name, [])}
        self.assertLessEqual(timed | parts | {"compare"}, staleness.TIMED.keys())
        self.assertLessEqual(staleness.TIMED.keys(), {name for _, name in results.with_parts(results.QUESTIONS)})
        for path in {path for paths in staleness.TIMED.values() for path in paths} | {staleness.ON_A_GPU}:
            self.assertTrue((made_up.ROOT / path).exists(), path)


class ACommittedResultsFile(MadeRepository):
    def violations(self, **exceptions):
        named = {f"epyc.{name}.jsonl": why for name, why in exceptions.items()}
        return list(committed_results.violations(self.root, named))

    def test_is_measured_at_an_ancestor_of_the_head(self):
        self.assertEqual(self.violations(), [])
        self.change("README.md")
        self.assertEqual(self.violations(), [])
        self.write(RESULTS, "0" * 40)
        self.assertIn("is not in this history", self.violations()[0])
        self.write(RESULTS, "unknown")
        self.assertIn("its commit unknown is not in this history", self.violations()[0])
        self.git("checkout", "--quiet", "--orphan", "rewritten")
        self.git("commit", "--quiet", "--message", "Begins anew")
        self.assertEqual(len(self.violations()), 2)

    def test_is_measured_on_an_unchanged_tree_unless_it_is_an_exception(self):
        self.write(RESULTS, self.first + "-dirty")
        [violation] = self.violations()
        self.assertIn("is that of a changed tree; measure it again with experiments/run --publish", violation)
        self.assertEqual(self.violations(speed_vs_length="to be measured again"), [])
        self.write(RESULTS, self.first)
        self.assertIn("is no exception any more", self.violations(speed_vs_length="to be measured again")[0])

    def test_is_not_checked_without_history_which_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            self.git("clone", "--quiet", "--depth=1", f"file://{self.root}", folder)
            for root, why in ((pathlib.Path(folder), "this clone is shallow"), (self.root / "lib", "this is no clone")):
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    self.assertEqual(committed_results.main(root), 77)
                self.assertEqual(out.getvalue(), f"committed results: not checked: {why}\n")


class AHost(unittest.TestCase):
    def test_is_one_for_all_rows_of_a_committed_file(self):
        """A file of an experiment has one header; one of comparisons has one host in all."""
        for sources in made_up.committed().values():
            for source in sources:
                self.assertEqual(source.skipped, 0, f"{source.path}: a second header, or what is no row")
                hosts = {json.dumps([r["provenance"].get(fact) for fact in study.HOST]) for r in source.rows
                         if "provenance" in r}
                self.assertLessEqual(len(hosts), 1, source.path)

    def test_is_described_by_both_languages_in_the_same_words(self):
        import tool
        if not tool.PROGRAM.exists():
            self.skipTest("the tool is not built")
        done = subprocess.run([tool.PROGRAM, "compare", "-", "--methods", "exact@cpu", "--repeat", "1", "--json"],
                              input="1 2", capture_output=True, text=True, check=True)
        there, here = json.loads(done.stdout)["provenance"], study.provenance({})
        for name in study.HOST:
            self.assertEqual(there[name], here[name], name)
        self.assertEqual(there["clocks"].keys() - here["clocks"].keys(), set())


class PythonProvenance(unittest.TestCase):
    def test_has_the_driver_and_the_clocks_of_a_gpu(self):
        line = "NVIDIA H200, 580.95.05, 345, 1980, 3201, 3201, 700.00"
        with unittest.mock.patch.object(study, "gpu_line", lambda: line):
            about = study.provenance({"torch": "2.11", "samesum": "0.1.0"})
        self.assertEqual((about["gpu"], about["gpu_driver"], about["libraries"], about["library_version"]),
                         ("NVIDIA H200", "580.95.05", {"torch": "2.11"}, "0.1.0"))
        self.assertEqual([about["clocks"][name] for name in study.GPU_CLOCKS], [345, 1980, 3201, 3201, 700])
        self.assertIsNone(results.problem(made_up.header("python_speed") | {"provenance": about}, ["study"]))

    def test_says_what_is_unknown(self):
        for line, gpu in (("", "A GPU"), ("A GPU, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]", None)):
            with unittest.mock.patch.object(study, "gpu_line", lambda line=line: line):
                about = study.provenance({}, gpu)
            self.assertEqual((about["gpu"], about["gpu_driver"]), ("A GPU", None))
            self.assertEqual([about["clocks"][name] for name in study.GPU_CLOCKS], [None] * 5)
            self.assertIsNone(results.problem(made_up.header("python_speed") | {"provenance": about}, ["study"]))
        with unittest.mock.patch.object(study, "gpu_line", lambda: ""):
            about = study.provenance({})
        self.assertEqual((about["gpu"], "gpu_driver" in about, "gpu_sm_mhz" in about["clocks"]), (None, False, False))
        self.assertEqual(set(study.processor("").values()), {None})

    def test_identifies_a_processor_with_several_sockets(self):
        text = "".join("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\n"
                       f"stepping\t: 8\nphysical id\t: {socket}\ncore id\t\t: {core}\n\n"
                       for socket in range(2) for core in (0, 0, 1))
        self.assertEqual(study.processor(text), {"vendor": "GenuineIntel", "family": 6, "model": 143, "stepping": 8,
                                                 "sockets": 2, "cores": 4})

    def test_identifies_the_cpu_on_pages(self):
        about = made_up.PROVENANCE | {"processor": study.processor("cpu family: 26\nmodel: 2\nstepping: 1\n")}
        self.assertEqual(results.cpu_of(about), "A Processor (family 26, model 2, stepping 1)")
        self.assertEqual(results.cpu_of(made_up.PROVENANCE), "A Processor")

    def test_spells_the_name_of_a_machine(self):
        for gpu, cpu, name, expected in ((None, "Intel(R) Xeon(R) Processor", "XEON", "Xeon"),
                                         ("NVIDIA H200, compute capability 9.0", "AMD EPYC 9654", "H200", "H200"),
                                         (None, "AMD EPYC 9654", "EPYC", "EPYC"), (None, "Xeonic 1", "XEON", "XEON")):
            header = {"provenance": made_up.PROVENANCE | {"gpu": gpu, "cpu": cpu}}
            source = results.Source(name, "databases", pathlib.Path("a.jsonl"), header, [])
            self.assertEqual(results.as_spelled(source), expected)
        self.assertIn("EPYC", {s.machine for s in made_up.committed()["python_speed"]})

    def test_is_shown_in_the_report_in_words(self):
        about = made_up.PROVENANCE | {"clocks": {"cpu_mhz": 2600, "cpu_governor": None},
                                      "libraries": {"Boost": "1.83.0"}}
        sources = [results.Source("EPYC", "speed_vs_length", pathlib.Path("a.jsonl"), {"provenance": provenance},
                                  made_up.few_speeds()) for provenance in (about, about, made_up.PROVENANCE)]
        [table] = importlib.import_module("report").provenance(sources)
        self.assertIn(["clocks", "cpu mhz 2600, cpu governor unknown (most files)"], table.rows)
        self.assertIn(["libraries", "Boost 1.83.0 (most files)"], table.rows)
        self.assertTrue(table.rows[-1][1].endswith(", clocks not recorded, libraries not recorded"))


class APeer(unittest.TestCase):
    """Its first call takes a thousand seconds, later ones one: no time may contain the first."""

    def setUp(self):
        self.now, self.warm = 0.0, set()
        self.clock = types.SimpleNamespace(perf_counter=lambda: self.now)
        self.turns = study.Turns(types.SimpleNamespace(seed=1, process=1), [], 3)

    def cold(self, result=0.0):
        """A call that has never run."""
        def call():
            self.now += 1 if call in self.warm else 1000
            self.warm.add(call)
            return result
        return call

    def test_is_warm_before_a_data_frame_is_timed(self):
        script = made_up.script("data_frames")
        script.time = self.clock

        class Library(script.NumPy):
            has_threads = has_chunks = True

            def calls(_, k, x, groups, chunks):
                return {script.SUM: self.cold(), script.GROUPS: self.cold([0.0] * groups)}

        import numpy
        rows = list(script.measured(Library(), "normal", (100, 2, 4, 3, 2), 1, numpy.zeros(100, int), numpy.zeros(100),
                                    [1, 1], self.turns))
        self.assertEqual({r["axis"] for r in rows}, {"runs", "threads", "chunks", "permutation"})
        self.assertEqual({r["high"] for r in rows}, {1})

    def test_is_warm_before_it_is_timed_in_turns(self):
        script = made_up.script("python_speed")
        script.time = self.clock
        found = script.in_turns({name: self.cold() for name in "ab"}, self.turns, script.on_the_host)
        self.assertEqual(found, {"a": [1] * 3, "b": [1] * 3})

    def test_is_warm_before_it_is_timed_beside_an_experiment(self):
        script = made_up.script("torch_speed")
        script.time = self.clock
        found = script.in_turns({name: self.cold() for name in "ab"}, self.turns, script.on_the_host, 1)
        self.assertEqual(found, {"a": [1] * 3, "b": [1] * 3})


if __name__ == "__main__":
    unittest.main()
