"""Tests of the section on data sets, with made-up comparisons that are changed one number at a time.

Run by ctest, or: build/venv/bin/python tests/notebooks/compare_test.py
"""

import unittest

import made_up
from made_up import comparison, measured, source
import compare


class DataSets(made_up.SectionTest):
    """Two data sets on this machine and one of them on another, so that findings depend on more than the first."""

    question = "compare"

    def setUp(self):
        self.rows = [comparison("made/up.f32", [measured("exact/fp32@cpu", "order_free", 0.25),
                                                measured("tree/plain/fp32@cpu", "everywhere", 2),
                                                measured("serial/plain/fp32@cpu", "everywhere", 40),
                                                measured("atomic/plain/fp32@cpu", "none", 8),
                                                measured("loop/fp32@peer", "run_to_run", 40)]),
                     comparison("made/other.f32", [measured("exact/fp32@cpu", "order_free", 0.25),
                                                   measured("serial/plain/fp32@cpu", "everywhere", 5)],
                                condition=1000.0)]
        self.there = [comparison("up.f32", [measured("exact/fp32@cuda", "order_free", 0.25),
                                            measured("tree/plain/fp32@cuda", "everywhere", 2),
                                            measured("serial/plain/fp32@cpu", "everywhere", 40)])]

    def pick(self, method, rows=None):
        return next(m for c in rows or self.rows for m in c["methods"] if m["method"] == method)

    # --- sentences ----------------------------------------------------------------------------------------------

    def test_counts_correctly_rounded_results_and_data_sets(self):
        expected = "exact is the correctly rounded sum in {} results on {}; … round correctly in {}."
        self.check(expected.format("all 3", "2 data sets", "none of 6"))
        self.pick("exact/fp32@cuda", self.there)["bits"] = "0x00000007"
        self.pick("tree/plain/fp32@cpu")["bits"] = self.pick("tree/plain/fp32@cpu")["truth_bits"]
        self.check(expected.format("2 of 3", "2 data sets", "1 of 6"))
        self.rows.pop()
        self.check(expected.format("1 of 2", "1 data set", "1 of 5"))

    def test_the_verdict_is_on_the_loop(self):
        self.check(verdict="A plain loop in the format of the data is correct to the last bit on neither of the two files.")
        loop = self.rows[1]["methods"][1]
        loop["bits"] = loop["truth_bits"]
        self.check(verdict="on 1 of 2 files.")
        self.rows, self.there = self.rows[:1], []
        self.check(verdict="up.f32 (4,096 elements in fp32, condition number 1): a plain loop in fp32 returns")

    def test_names_errors_beyond_their_bounds_except_those_of_peers(self):
        self.check("All 9 errors of samesum's")
        self.rows[1]["methods"][1]["within_bound"] = False
        self.pick("loop/fp32@peer")["within_bound"] = False
        self.check("8 of 9 errors of samesum's … Beyond the bound: serial/plain/fp32@cpu on other.f32 (this machine).")
        for c in self.rows + self.there:
            for m in c["methods"]:
                m.update(bound=None, within_bound=True)
        self.check("no finite bound for 9 errors")

    def test_names_methods_that_broke_a_promise_of_the_same_bits(self):
        self.check("All 8 results of methods with a promise …")
        self.pick("atomic/plain/fp32@cpu")["distinct_bits"] = 9
        self.pick("tree/plain/fp32@cuda", self.there)["distinct_bits"] = 2
        self.check("7 of 8 results … exceptions: tree/plain/fp32@cuda on up.f32 (H200).")
        self.rows, self.there = self.rows[:1], []
        del self.rows[0]["methods"][1:]
        self.check("The only result of methods with a promise …")

    def test_describes_the_result_of_a_loop_once_per_data_set(self):
        loops = [f for f in self.check().findings if "a plain loop" in f]
        self.assertEqual(len(loops), 2)
        first = "up.f32 (4,096 elements in fp32, condition number 1): … 4096.02 instead of 4096, … 4.8e-06"
        self.assert_sentences(loops, first, "other.f32 (4,096 elements in fp32, condition number 1,000): … 4096.002 "
                                            "instead of 4096, … 6e-07")
        loop = self.pick("serial/plain/fp32@cpu")
        loop.update(value=5000.0, relative_error=0.22)
        self.rows[0]["data"].update(n=8, condition=3.0)
        expected = "up.f32 (8 elements in fp32, condition number 3): … in fp32 "
        self.check(expected + "returns 5000 instead of 4096, … 0.22", first)
        self.there.clear()
        for change, text in (({"relative_error": None}, "returns 5000 instead of 4096."),
                             ({"truth": None}, "returns 5000, … no finite result"),
                             ({"bits": loop["truth_bits"]}, "is correct to the last bit."),
                             ({"value": None}, "returns no finite number; there is no finite result in that format.")):
            loop.update(change)
            self.check(expected + text)

    def test_failures_of_comparisons_are_failures_of_the_section(self):
        self.there[0]["failures"] = ["exact/fp32@cuda: is wrong"]
        self.assertEqual(self.check().failures, ["H200, up.f32: exact/fp32@cuda: is wrong"])

    # --- titles of data ----------------------------------------------------------------------------------------

    def test_the_title_of_data_is_the_shortest_unique_end_of_their_path(self):
        for names, titles in ((["run1/grad.npy", "run2/grad.npy", "run2/a.npy"],
                               ["run1/grad.npy", "run2/grad.npy", "a.npy"]),
                              (["/x/1/grad.npy", "/y/1/grad.npy"], ["x/1/grad.npy", "y/1/grad.npy"]),
                              (["grad.npy", "a/grad.npy"], ["grad.npy", "a/grad.npy"]),
                              (["one/file"], ["file"]), (["my/t.csv:2", "my/t.csv:3"], ["t.csv:2", "t.csv:3"]),
                              (["my/t.csv:EUR/kg", "/a:b/c"], ["t.csv:EUR/kg", "a:b/c"])):
            self.assertEqual(list(compare.titles(names).values()), titles)

    def test_data_with_the_same_base_name_are_kept_apart(self):
        self.rows[1]["data"]["name"] = "unlike/up.f32"
        s = self.check()
        self.assertEqual([t.caption for t in s.tables], ["made/up.f32, this machine", "unlike/up.f32, this machine",
                                                         "up.f32, H200"])
        self.assertEqual([f.split(" (")[0] for f in s.findings if "a plain loop" in f],
                         ["made/up.f32", "unlike/up.f32", "up.f32"])
        self.assertEqual(dict(s.figures[0].menus)["Data"], ["made/up.f32", "unlike/up.f32", "up.f32"])

    def test_elements_read_in_two_formats_are_two_data_sets(self):
        self.rows[1]["data"].update(name="made/up.f32", format="fp16")
        self.assertEqual([t.caption for t in self.check().tables][:2],
                         ["up.f32 as fp32, this machine", "up.f32 as fp16, this machine"])

    def test_the_latest_comparison_of_a_file_counts(self):
        self.rows.append(comparison("made/up.f32", self.rows[1]["methods"], n=7))
        self.assertEqual([c.data["n"] for c in compare.comparisons([source("compare", self.rows)])], [7, 4096])

    def test_files_are_those_of_the_row_or_of_the_name_of_an_older_one(self):
        for name, more, operation, expected in (
                ("a.npy", {}, "sum", ("a.npy",)), ("a.npy, b.npy", {}, "sum", ("a.npy", "b.npy")),
                ("a.npy, b.npy", {}, "dot", ("a.npy", "b.npy")), ("a.npy and b.npy", {}, "dot", ("a.npy", "b.npy")),
                ("a and b.npy", {}, "sum", ("a and b.npy",)), ("a, b.npy", {"files": ["a, b.npy"]}, "sum", ("a, b.npy",)),
                ("a and b, c", {"files": ["a and b", "c"]}, "dot", ("a and b", "c"))):
            row = comparison(name, self.rows[0]["methods"]) | {"operation": operation}
            row["data"].update(more)
            self.assertEqual(compare.files(row), expected)
            source("compare", [row])  # fits the schema

    def test_a_dot_product_of_data_of_the_study_is_not_of_the_study(self):
        row = comparison("data/uniform.f32, data/uniform.f32", [], n=1 << 22)
        self.assertFalse(compare.is_of_study(row))

    def test_only_data_of_the_study_are_described(self):
        note = compare.about_data_sets()["uniform.f32", 1 << 22]
        self.assertRegex(note, r"2\^22 .*2\^-23")
        for name, n, expected in (("build/study/data/uniform.f32", 1 << 22, True), ("uniform.f32", 1000, False),
                                  ("run2/uniform.npy", 1 << 22, False)):
            self.rows[0]["data"].update(name=name, n=n)
            self.assertEqual(note in self.check().tables[0].note, expected, name)
        self.assertEqual(len(compare.about_data_sets()), 4)
        self.assertEqual(compare.made_data_sets(), ["uniform.f32", "wide.f32", "ones.bf16"])
        self.assertEqual(self.check().question, "How wrong are sums of 3 made data sets and of 1 real one?")

    # --- the figure and the tables ------------------------------------------------------------------------------

    def test_the_figure_names_the_fastest_and_the_most_accurate_method(self):
        self.assert_sentences([self.check().figures[0].finding], "up.f32 (this machine, CPU, results in fp32): …")
        for method, speed in (("serial/plain/fp32@cpu", 0.5), ("tree/plain/fp32@cpu", 9.0), ("loop/fp32@peer", 20.0)):
            self.pick(method).update(gb_per_s=speed)
        self.there.clear()
        self.assertEqual(self.check().figures[0].chosen(), ("up.f32", "this machine, CPU", "fp32"))
        start = "up.f32 (this machine, CPU, results in fp32): of 3 methods that promise the same bits everywhere, "
        ends = ("the fastest is {} (20 GB/s, relative error {}) and the most accurate is exact/fp32@cpu (4 GB/s, "
                "relative error 3e-08)")
        loose = ". Not ranked, because they promise less … other bits (atomic/plain/fp32@cpu, loop/fp32@peer)."
        self.pick("atomic/plain/fp32@cpu").update(gb_per_s=99.0)  # it promises nothing
        for method, speed, text in (("serial/plain/fp32@cpu", 20.0, ends.format("serial/plain/fp32@cpu", "4.8e-06")
                                     + "; … frontier: tree/plain/fp32@cpu" + loose),
                                    ("tree/plain/fp32@cpu", 3.0,
                                     ends.format("serial/plain/fp32@cpu", "4.8e-06") + loose),
                                    ("exact/fp32@cpu", 30.0,
                                     "exact/fp32@cpu is the most accurate, and no other is more than 3% faster "
                                     "(30 GB/s, … error 3e-08)" + loose)):
            if method:
                self.pick(method).update(gb_per_s=speed)
            self.assert_sentences([self.check().figures[0].finding], start + text)
        [frontier] = [s for s in self.s.figures[0].matching(self.s.figures[0].chosen()) if s.faint]
        self.assertEqual(frontier.x, [30.0])
        for m in self.rows[0]["methods"]:
            m["promise"] = "none"
        self.assert_sentences([self.check().figures[0].finding],
                              "no method promises the same bits everywhere. Not ranked … exact/fp32@cpu, tree/plain")

    def test_the_figure_has_methods_of_accumulators_without_a_colour(self):
        self.rows[0]["methods"].append(measured("tree/novel/fp32@cpu", "none", 1))
        names = [s.name for s in self.check().figures[0].series if s.on[0] == "up.f32"]
        self.assertIn("tree/novel", names)

    def test_a_table_has_a_row_per_method_with_the_range_of_its_bit_patterns(self):
        self.rows[0]["methods"].append(measured("tree/plain/fp16@cpu", "everywhere", 2) | {
            "distinct_bits": 3, "value": None})
        table = self.check().tables[0]
        self.assertEqual(table.columns, ["method", "fp16", "fp32", "bit patterns", "GB/s in fp32"])
        self.assertIn(["tree/plain@cpu", "not finite", "2.4e-07", "1 to 3", "4"], table.rows)
        self.assertEqual(table.note, "4,096 elements in fp32, condition number 1. Use exact/fp32@cpu: it is exact.")


if __name__ == "__main__":
    unittest.main()
