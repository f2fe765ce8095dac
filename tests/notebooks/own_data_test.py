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
        self.assert_sentences(self.check().findings[:1], f"{right}the only file.")

    def test_has_a_table_of_all_files_and_a_table_per_file(self):
        first, *others = self.check().tables
        self.assertEqual([row[0] for row in first.rows], ["a.f32", "b.f32"])
        self.assertEqual(first.rows[1][first.columns.index("serial/plain")], "1e-06")
        self.assertEqual(first.rows[1][first.columns.index("tree/plain")], "", "tree/plain was not measured")
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
