"""Tests of what the experiments in Python share: intervals of medians, random orders, and rows of several processes.

Run by ctest, or: build/venv/bin/python tests/notebooks/study_test.py
"""

import argparse
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import made_up
import results
import study

EXPERIMENT = """
import argparse, sys
sys.path.insert(0, {folder!r})
import study

def main(arguments):
    parser = argparse.ArgumentParser()
    study.add_options(parser, "made_up", "quick", "full", "filter")
    options = study.parsed(parser, arguments)
    if options.processes > 1 and not options.process:
        return study.in_processes(__file__, arguments, options.processes)
    print("process", options.process)
    return {code}

sys.exit(main(sys.argv[1:]))
"""


def options(*arguments):
    parser = argparse.ArgumentParser()
    study.add_options(parser, "python_speed", "quick", "full", "filter")
    with contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            return study.parsed(parser, arguments)
        except SystemExit:
            return err.getvalue()


class Times(unittest.TestCase):
    def test_times_have_five_digits_and_a_ratio_is_taken_round_by_round(self):
        self.assertEqual(study.times([1.234567e-3], turns=3), {"seconds": 1.2346e-3, "low": 1.2346e-3, "high": 1.2346e-3,
                                                               "turns": 3, "rounds": [[1.2346e-3]]})
        self.assertEqual(study.ratio_of_rounds([[2, 8, 2], [3, 3, 3]], [[1, 4, 1], [1, 1, 1.5]]), 2.5)


class Orders(unittest.TestCase):
    def orders(self, *arguments):
        return [*study.Turns(options(*arguments), [], 8).orders(dict.fromkeys("abcd"))]

    def test_each_round_has_each_call_once_in_an_order_that_the_seed_decides(self):
        first = self.orders()
        self.assertTrue(all(sorted(order) == ["a", "b", "c", "d"] for order in first))
        self.assertGreater(len({*map(tuple, first)}), 3)
        self.assertEqual(self.orders(), first)
        self.assertNotEqual(self.orders("--seed", "2"), first)
        self.assertNotEqual(self.orders("--process", "2"), first)


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = made_up.script("python_speed")
        self.measured = 0

    def run_as(self, process, clock, *more):
        """Two calls that take as long as the clock says, in one of three processes."""
        chosen = options("--out", str(self.folder), "--processes", "3", "--process", str(process), *more)
        calls = {("sum/exact/fp32@cpu", 1): lambda: "ours", ("numpy/sum/fp32@peer", 1): lambda: "theirs"}
        target = self.script.Target(*calls, 0.5)

        def rows(earlier):
            self.measured += 1
            yield from self.script.rows(self.script.about("sum", "fp32", (8,), 0, 1), calls, [target],
                                        study.Turns(chosen, earlier, 2), lambda call, _: clock[call()])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            study.complete(chosen, study.header("python_speed", "How fast?", chosen, {"numpy": "2.0"}), [], str, rows)
        return out.getvalue()

    def rows(self):
        [source] = results.read(self.folder, questions=["python_speed"])["python_speed"]
        self.assertEqual(source.skipped, 0)
        return source

    def test_each_adds_its_rounds_and_all_else_follows_from_the_rounds_of_all(self):
        for process, clock in enumerate(({"ours": 1.0, "theirs": 2.0}, {"ours": 1.0, "theirs": 4.0},
                                         {"ours": 3.0, "theirs": 9.0}), 1):
            self.run_as(process, clock)
        source = self.rows()
        self.assertEqual(source.header["options"], {"numpy": "2.0", "processes": 3})
        ours, theirs = source.rows
        self.assertEqual(ours["rounds"], [[1, 1], [1, 1], [3, 3]])
        self.assertEqual([ours[name] for name in ("seconds", "low", "high")], [1, 1, 3])
        self.assertEqual([theirs[name] for name in ("seconds", "low", "high")], [4, 2, 9])
        self.assertEqual([ours["bars"][0]["reached"], ours["times_peer"]], [3, 1 / 3])
        self.assertEqual([r["turns"] for r in (ours, theirs)], [("python_speed.jsonl", 1)] * 2)
        self.assertEqual(ours["gb_per_s"], 8 * 4 / 1 / 1e9)

    def test_an_interrupted_run_is_continued(self):
        printed = self.run_as(1, {"ours": 1.0, "theirs": 2.0})
        path = self.folder / "python_speed.jsonl"
        whole = path.read_text()
        self.assertEqual(self.run_as(1, {}), printed)
        self.assertEqual((self.measured, path.read_text()), (1, whole))
        self.run_as(2, {"ours": 3.0, "theirs": 4.0})
        self.assertEqual([r["rounds"] for r in self.rows().rows], [[[1, 1], [3, 3]], [[2, 2], [4, 4]]])

    def test_a_file_with_other_settings_or_a_broken_line_is_replaced(self):
        for broken in (False, True):
            self.run_as(1, {"ours": 1.0, "theirs": 2.0})
            if broken:
                with open(self.folder / "python_speed.jsonl", "a") as file:
                    file.write("{")
            self.run_as(2, {"ours": 3.0, "theirs": 4.0}, *([] if broken else ["--seed", "2"]))
            self.assertEqual([r["rounds"] for r in self.rows().rows], [[[3, 3]], [[4, 4]]])

    def test_a_row_of_data_frames_has_the_worst_of_all_processes(self):
        script, library = made_up.script("data_frames"), argparse.Namespace(name="duckdb")
        about, earlier, one = {"data": "normal", "seed": 1, "n": 2, "bins": 1}, [], b"\0\0\0\0\0\0\xf0\x3f"
        for process, (found, wanted) in enumerate((([one, one], 1), ([one, b"\0" * 8], 0), ([one, one], 0)), 1):
            turns = study.Turns(options("--process", str(process)), earlier)
            earlier = [script.row(library, "sum", about, [1], "runs", [(bits, process) for bits in found], turns)]
            self.assertIsNone(results.problem(earlier[0], ["frame"]))
            self.assertEqual(earlier[0]["correct"], wanted)
        self.assertEqual([earlier[0][name] for name in ("runs", "distinct_bits", "largest_ulps", "broken")],
                         [2, 2, 2.0**52, False])
        self.assertEqual(earlier[0]["rounds"], [[1, 1], [2, 2], [3, 3]])

    def test_they_run_one_after_the_other_and_the_last_prints(self):
        for code, expected in ((1, (1, "process 3\n")), (2, (2, ""))):
            path = self.folder / "made_up.py"
            path.write_text(EXPERIMENT.format(folder=str(made_up.ROOT / "experiments"), code=code))
            done = study.subprocess.run([sys.executable, path, "--processes", "3", "--out", self.folder], capture_output=True,
                                        text=True)
            self.assertEqual((done.returncode, done.stdout), expected, done.stderr)

    def test_they_need_a_folder_and_a_number(self):
        self.assertIn("--processes needs --out DIR", options("--processes", "2"))
        self.assertIn("--processes: must be 1 or more", options("--processes", "0"))


if __name__ == "__main__":
    unittest.main()
