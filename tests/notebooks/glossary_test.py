"""Tests of the tables of names.

Run by ctest, or: build/venv/bin/python tests/notebooks/glossary_test.py
"""

import re
import unittest

from made_up import ROOT, comparison, few_errors, measured, source
import glossary
import phrases


def strings_of(file):
    """The source with string literals that stand side by side joined."""
    return re.sub(r'"\s*\n\s*"', "", (ROOT / "experiments" / file).read_text())


def peers_of_the_gpu():
    return re.findall(r'"([a-z]+/[a-z_]+)"', strings_of("harness/peers.cu") + strings_of("harness/peers_cublas.cu"))


class Glossary(unittest.TestCase):
    def test_names_and_meanings_are_those_of_the_experiments(self):
        data = strings_of("harness/dataset.cpp")
        listed = re.findall(r'\{"([^"]+)",\s*"([^"]+)",\s*(?:structured|independent)', data)
        listed += [(f"kappa {k}", f"a sum of condition number {k}")
                   for k in re.findall(r'of_condition\("([^"]+)"', data)]
        self.assertEqual(dict(listed), glossary.DATA)
        cases = strings_of("accumulator_formats.cpp").split("cases()")[1].split("cases_in_words")[0]
        self.assertEqual(dict(re.findall(r'\{"([^"]+)",\s*"([^"]+)",\s*(?:sixteen|\{)', cases)), glossary.CASES)

    def test_every_peer_has_a_meaning(self):
        peers = strings_of("harness/peers.cpp") + strings_of("harness/peers.cu") + '"torch/sum", Promise'
        for name in re.findall(r'"([a-z_/]+)",\s*(?:Promise|\[\])', peers) + peers_of_the_gpu():
            self.assertIn(glossary.library(f"{name}/fp32@peer"), glossary.LIBRARIES)

    def test_names_identify_the_peers_of_the_gpu(self):
        self.assertIn("cublas/dot", peers_of_the_gpu())
        for name in peers_of_the_gpu():
            self.assertEqual(phrases.device(f"{name}/fp32@peer"), "GPU")
        self.assertEqual(phrases.device("eigen/dot/fp32@peer"), "CPU")

    def test_loops_of_the_study_are_those_that_the_meanings_call_loops(self):
        for name, meaning in glossary.LIBRARIES.items():
            self.assertEqual(phrases.is_loop(f"{name}/fp32@peer"), meaning.startswith("a loop"), name)

    def test_calls_of_one_library_count_once_and_loops_are_no_library(self):
        methods = [f"{name}/fp32@peer" for name in ("std_reduce", "std/dot", "std_par", "boost_kahan", "boost/mean", "torch/sum",
                                                    "torch_cpu", "loop", "loop/by_key", "fast_math", "openmp",
                                                    "samesum/sum")] + ["exact/fp32@cpu"]
        self.assertEqual(glossary.libraries(methods), ["std", "boost", "torch"])
        self.assertEqual(glossary.peers(methods), "std, Boost, PyTorch and a loop")
        self.assertEqual(glossary.peers(["fast_math/fp32@peer"]), "a loop")

    def test_sentences_call_loops_loops(self):
        library, loop, own = "eigen/fp32@peer", "loop/by_key/fp32@peer", "exact/fp32@cpu"
        self.assertEqual([phrases.peers_in_words([own, *some]) for some in ([], [library], [loop], [loop, library])],
                         ["other library", "other library", "loop", "other library or loop"])
        self.assertEqual(phrases.peers_in_words([loop, library], many=True), "other libraries and loops")

    def test_has_only_names_that_occur(self):
        found = {"error_vs_length": [source("error_vs_length", few_errors())],
                 "compare": [source("compare", [comparison("a.f32", [measured("eigen/fp32@peer", "run_to_run", 1)])])]}
        self.assertEqual([[row[0] for row in t.rows] for t in glossary.tables(found)],
                         [["normal", "ones"], ["loop", "eigen", "tbb"]])
        self.assertEqual(list(glossary.tables({})), [])


if __name__ == "__main__":
    unittest.main()
