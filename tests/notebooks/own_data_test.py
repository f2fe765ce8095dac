"""Tests of the section on own data, with made-up comparisons that are changed one number at a time.

Run by ctest, or: build/venv/bin/python -B tests/notebooks/own_data_test.py
"""

import unittest

import made_up
from made_up import comparison, measured
import results


def file(name, error_of_a_loop):
    return comparison(name, [measured("exact/fp32@cpu", "order_free", 0),
                             measured("serial/plain/fp32@cpu", "everywhere", error_of_a_loop * 2.0**23)], condition=2.0)


class OwnData(made_up.SectionTest):
    question = "own_data"

    def setUp(self):
        self.rows = [file("my/a.f32", 0), file("my/b.f32", 1e-6)]

    def test_counts_the_files_on_which_a_loop_is_correct_and_wrong(self):
        right, lost = "correct to the last bit on ", "and has no correct digit on "
        for rows, expected in (([], f"{right}1 of 2 files."),
                               ([(1, file("my/b.f32", 0.5))], f"{right}1 of 2 files {lost}1 of 2: b.f32."),
                               ([(0, file("my/a.f32", 1e-7))], f"{right}neither of the two files {lost}1 of 2: b.f32.")):
            for i, row in rows:
                self.rows[i] = row
            self.assert_sentences(self.check().findings[:1], expected)
        self.rows[0]["methods"][1].update(value=None, relative_error=None)
        self.assert_sentences(self.check().findings[:1], f"{lost}both: a.f32, b.f32.")
        self.rows = [file("my/a.f32", 0)]
        self.assert_sentences(self.check().findings[:1], "a.f32 (4,096 elements … a plain loop in fp32 is correct to the last")
        self.assert_no_sentences(self.s.findings, right)
        self.assertEqual(len(self.s.findings), len(set(self.s.findings)))

    def test_counts_only_files_whose_exact_sum_is_finite(self):
        none = {"value": None, "truth": None, "relative_error": None, "error_ulps": None}
        for name, more in (("nan", {"nans": 1}), ("inf", {"infinities": 2}), ("over", {})):
            self.rows.append(file(f"my/{name}.f32", 0))
            self.rows[-1]["data"].update(more, condition=None)
            for m in self.rows[-1]["methods"]:
                m.update(none)
        findings = self.check("A plain loop … to the last bit on 1 of 2 files with a finite sum; 3 files have no finite sum in "
                              "their format: nan.f32, inf.f32, over.f32.").findings
        self.assert_sentences(findings, "nan.f32 (4,096 elements in fp32, 1 NaN): a plain loop in fp32 returns no finite "
                                        "number; there is no finite result in that format.",
                              "inf.f32 (4,096 elements in fp32, 2 infinities): a plain")
        del self.rows[:2]
        self.check("3 files have no finite sum in their format: nan.f32")
        self.assert_no_sentences(self.check().findings, "last bit on")

    def test_operations_are_not_counted_together(self):
        def mean(name, error):
            return comparison(name, [measured("mean/exact/fp32@cpu", "order_free", 0),
                                     measured("mean/serial/plain/fp32@cpu", "everywhere", error)]) | {"operation": "mean"}

        self.rows += [mean("my/a.f32", 1), mean("my/b.f32", 0), mean("my/c.f32", 0)]
        s = self.check("A plain loop … on 1 of 2 files", "mean: a plain loop … on 2 of 3 files",
                       "exact is the correctly rounded sum in both results on 2 data sets",
                       "mean: exact is the correctly rounded result in all 3 results on 3 data sets",
                       "a.f32, mean (4,096 elements")
        self.assertEqual([t.caption for t in s.tables],
                         ["All files, this machine", "All files, this machine, mean"]
                         + [f"{data}, this machine" for data in ("a.f32", "b.f32", "a.f32, mean", "b.f32, mean", "c.f32, mean")])
        self.assertEqual([len(t.rows) for t in s.tables[:2]], [2, 3])
        self.assertEqual(dict(s.figures[0].menus)["Data"], ["a.f32", "b.f32", "a.f32, mean", "b.f32, mean", "c.f32, mean"])

    def test_a_dot_product_has_the_names_of_both_files(self):
        self.rows = [comparison("my/a.f32, my/b.f32", [measured("dot/exact/fp32@cpu", "order_free", 0)])
                     | {"operation": "dot"}]
        self.assertEqual([t.caption for t in self.check().tables], ["All files, this machine, dot", "a.f32, b.f32, dot, this machine"])

    def test_titles_are_of_the_list_of_files(self):
        self.rows = [file("my/a, b.f32", 0), file("t.csv:2", 0), file("t.csv:3", 0.5),
                     file("my/x.npy, my/y.npy", 0) | {"operation": "dot"}]
        for row, files in zip(self.rows, (["my/a, b.f32"], ["my/t.csv:2"], ["my/t.csv:3"], ["my/x.npy", "my/y.npy"])):
            row["data"]["files"] = files
        for m in self.rows[3]["methods"]:
            m["method"] = f"dot/{m['method']}"
        titles = ["a, b.f32", "t.csv:2", "t.csv:3", "x.npy, y.npy, dot"]
        s = self.check("A plain loop … on 2 of 3 files … 1 of 3: t.csv:3.")
        self.assertEqual([row[0] for t in s.tables[:2] for row in t.rows], titles)
        self.assertEqual([t.caption for t in s.tables[2:]], [f"{title}, this machine" for title in titles])

    def test_columns_of_a_table_do_not_replace_each_other(self):
        self.rows = [file("my/t.csv", 0), file("my/t.csv", 0.5)]
        for row, column in zip(self.rows, "23"):
            row["data"]["files"] = [f"my/t.csv:{column}"]
        self.assertEqual([row[0] for row in self.check().tables[0].rows], ["t.csv:2", "t.csv:3"])

    def test_a_row_with_a_list_of_files_replaces_the_older_one_of_the_same_files(self):
        self.rows = [file("a.npy and b.npy", 0), file("a.npy, b.npy", 0.5)]
        self.rows[1]["data"]["files"] = ["a.npy", "b.npy"]
        for row in self.rows:
            row["operation"] = "dot"
        self.assertEqual([row[0] for row in self.check().tables[0].rows], ["a.npy, b.npy, dot"])

    def test_has_a_table_of_all_files_and_a_table_per_file(self):
        first, *others = self.check().tables
        self.assertEqual([row[0] for row in first.rows], ["a.f32", "b.f32"])
        self.assertEqual(first.rows[1][first.columns.index("error of serial/plain")], "1e-06")
        self.assertNotIn("error of tree/plain", first.columns, "it was not measured")
        self.assertEqual([row[4] for row in first.rows], ["0", "1e-06"])
        self.rows.append(comparison("my/c.f32", [measured("tree/plain/fp32@cpu", "everywhere", 8)]))
        rows = self.check().tables[0].rows
        self.assertEqual([row[4:7] for row in rows], [["0", "", "0"], ["1e-06", "", "0"], ["", "9.5e-07", ""]])
        self.assertEqual(first.rows[0][-1], "exact/fp32@cpu")
        self.assertEqual(len(others), 2)

    def test_uses_the_latest_comparison_of_a_file(self):
        self.rows.append(file("my/b.f32", 0.5))
        self.assertEqual([row[4] for row in self.check().tables[0].rows], ["0", "0.5"])

    def test_files_with_the_same_base_name_are_kept_apart(self):
        self.rows = [file("a/x", 0), file("b/x", 0.5)]
        s = self.check()
        self.assertIn("1 of 2: b/x.", s.findings[0])
        self.assertEqual([f.split(" (")[0] for f in s.findings if "a plain loop" in f], ["a/x", "b/x"])
        self.assertEqual([row[0] for row in s.tables[0].rows], ["a/x", "b/x"])
        self.assertEqual([t.caption for t in s.tables[1:]], ["a/x, this machine", "b/x, this machine"])
        self.assertEqual(dict(s.figures[0].menus)["Data"], ["a/x", "b/x"])

    def test_files_are_not_described_as_data_of_the_study(self):
        self.rows[0]["data"].update(name="my/uniform.f32", n=1 << 22)
        self.assertEqual(self.check().tables[1].note,
                         "4,194,304 elements in fp32, condition number 2. Use exact/fp32@cpu: it is exact.")

    def test_failures_of_comparisons_are_failures_of_the_section(self):
        self.rows[0]["failures"] = ["exact/fp32@cpu: is wrong"]
        self.assertEqual(self.check().failures, [f"{results.HERE}, a.f32: exact/fp32@cpu: is wrong"])


if __name__ == "__main__":
    unittest.main()
