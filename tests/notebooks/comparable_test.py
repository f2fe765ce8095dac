"""Tests of what rows may be compared, with made-up files.

Run by ctest, or: build/venv/bin/python tests/notebooks/comparable_test.py
"""

import dataclasses
import pathlib
import tempfile
import unittest

import made_up
from made_up import PROVENANCE, at_speed
import comparable
import results
import section
import speed_of_reductions
import timing


def reduction(method, gb_per_s, **more):
    return {"kind": "reduction", "method": method, "operation": method.split("/")[0], "input_format": "fp32", "outer": 8,
            "n": 32, "inner": 1, "seed": 1, "threads": 0, "verified": True, "bars": []} | at_speed(gb_per_s) | more


OURS = reduction("dot/tree/plain/fp32@cuda", 2.0)
CUBLAS = reduction("cublas/dot/fp32@peer", 264208.0, operation="dot", verified=None)
EIGEN = reduction("eigen/dot/fp32@peer", 1.0, operation="dot", verified=None)


def source(rows, file="h200.speed_of_reductions.jsonl", **provenance):
    made = made_up.source("speed_of_reductions", [], "H200")
    return dataclasses.replace(made, rows=rows, path=pathlib.Path(file), header={"provenance": PROVENANCE | provenance})


def methods(sources):
    return [r["method"] for s in sources for r in s.rows]


class Work(made_up.SentenceTest):
    def test_peers_that_computed_one_of_several_vectors_are_left_out_and_named(self):
        for more in ({}, {"outer": 1, "inner": 8}):
            [found] = comparable.by_host([source([OURS | more, CUBLAS | more, EIGEN | more])])
            self.assertEqual(methods([found]), [OURS["method"], EIGEN["method"]])
            self.assertEqual(len(found.void), 1)
            self.assert_sentences(speed_of_reductions.section([found]).findings,
                                  "1 row of cublas/dot is left out: … were not checked, computed one of several "
                                  "vectors.",
                                  "beside eigen/dot, samesum is faster in the only reduction")

    def test_a_single_vector_or_a_file_with_checks_is_kept(self):
        for rows in ([OURS, CUBLAS | {"outer": 1}], [OURS, CUBLAS, EIGEN | {"verified": True}],
                     [OURS, CUBLAS | {"verified": False}]):
            [found] = comparable.by_host([source(rows)])
            self.assertEqual(found.rows, rows)
            self.assertEqual(list(section.void_findings([found])), [])

    def test_a_peer_of_one_thread_is_not_compared_with_several(self):
        ours, eigen, tbb = (made_up.speed(m, 4.0) for m in ("tree/plain/fp32@cpu", "eigen/fp32@peer", "tbb/fp32@peer"))
        two = [r | {"threads": 2} for r in (ours, eigen, tbb)]
        [found] = comparable.by_host([source([ours, eigen, tbb, *two])])
        self.assertEqual([(r["method"], r["threads"]) for r in found.rows],
                         [(ours["method"], 1), (eigen["method"], 1), (tbb["method"], 1), (ours["method"], 2),
                          (tbb["method"], 2)])


class Hosts(made_up.SentenceTest):
    def test_rows_of_different_hosts_have_different_places(self):
        torch = reduction("torch/dot/fp32@peer", 4.0, operation="dot", verified=None)
        for field, other in (("kernel", "Another kernel"), ("cpu", "Another Processor"), ("hardware_threads", 64),
                             ("gpu", "A GPU, driver 1")):
            parts = [source([OURS]), source([torch], "h200.torch_speed.jsonl", **{field: other})]
            found = comparable.by_host(parts)
            self.assertEqual([section.place(s, r) for s in found for r in s.rows], ["H200, GPU", "H200 (host 2), GPU"])
            self.assert_no_sentences(speed_of_reductions.section(found).findings, "beside torch/dot")
        parts[1] = source([torch], "h200.torch_speed.jsonl")
        self.assert_sentences(speed_of_reductions.section(comparable.by_host(parts)).findings,
                              "beside torch/dot, samesum is slower in the only reduction")

    def test_another_version_of_a_library_is_no_other_host(self):
        found = comparable.by_host([source([OURS], gpu="A GPU, CCCL 3.5"),
                                    source([EIGEN], "h200.b.jsonl", gpu="A GPU, CCCL 3.0")])
        self.assertEqual([s.other_host for s in found], ["", ""])

    def test_a_merged_file_is_split_by_the_hosts_of_its_rows(self):
        rows = [OURS | {"host": "one"}, EIGEN | {"host": "two"}, CUBLAS | {"host": "two"}]
        found = comparable.by_host([source(rows)])
        self.assertEqual([(s.other_host, methods([s]), len(s.void)) for s in found],
                         [("", [OURS["method"]], 1), (" (host 2)", [EIGEN["method"]], 0)])
        self.assertEqual([s.place_of("tree/plain/fp32@cuda") for s in found], ["H200", "H200 (host 2)"])

    def test_a_file_without_rows_is_kept(self):
        self.assertEqual(len(comparable.by_host([source([])])), 1)


class Turns(unittest.TestCase):
    def test_turns_of_different_files_are_different(self):
        slow = {"rounds": [[2.0, 9.0, 2.0, 2.0, 2.0]], "turns": 1, "seconds": 2.0, "low": 2.0, "high": 9.0}
        fast = {"rounds": [[1.0, 4.5, 1.0, 1.0, 1.0]], "turns": 1, "seconds": 1.0, "low": 1.0, "high": 4.5}
        files = [source([OURS | fast]), source([EIGEN | slow], "h200.b.jsonl")]
        [one], [other] = (s.rows for s in comparable.by_host(files))
        self.assertIsNone(timing.paired(one, other))
        one, other = comparable.by_host([source([OURS | fast, EIGEN | slow])])[0].rows
        self.assertEqual(timing.ratio(one, other), timing.Ratio(2, 2, 2))


class Reading(unittest.TestCase):
    def test_files_are_read_with_comparable_rows_only(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            made_up.write(folder / "speed_of_reductions.jsonl", [made_up.header("speed_of_reductions"), OURS, CUBLAS])
            made_up.write(folder / "torch_speed.jsonl", [made_up.header("torch_speed") | {
                "provenance": PROVENANCE | {"kernel": "Another"}}, EIGEN])
            found = results.read(folder)["speed_of_reductions"]
        self.assertEqual([(methods([s]), s.other_host, len(s.void)) for s in found],
                         [([OURS["method"]], "", 1), ([EIGEN["method"]], " (host 2)", 0)])


if __name__ == "__main__":
    unittest.main()
