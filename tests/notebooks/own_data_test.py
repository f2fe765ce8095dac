"""What the report says of several files: made-up comparisons, altered one number at a time.

Run by ctest, or: build/venv/bin/python -B tests/notebooks/own_data_test.py
"""

import unittest

import made_up
from made_up import comparison, measured
import results


def file(name, error_of_a_loop):
    return comparison(name, [measured("exact/fp32@cpu", "order_free", 0),
                             measured("serial/plain/fp32@cpu", "everywhere", error_of_a_loop * 2.0**23)], condition=2.0)


class OwnData(made_up.OfSection):
    question = "own_data"

    def setUp(self):
        self.rows = [file("my/a.f32", 0), file("my/b.f32", 1e-6)]

    def test_counts_the_files_on_which_a_loop_is_right_and_lost(self):
        right, lost = "right to the last bit on ", " … not one right digit on "
        for rows, told in (([], f"{right}1 of 2 files."),
                           ([(1, file("my/b.f32", 0.5))], f"{right}1 of 2 files, {lost}1 of 2: b.f32."),
                           ([(0, file("my/a.f32", 1e-7))], f"{right}none of 2 files, {lost}1 of 2: b.f32.")):
            for i, row in rows:
                self.rows[i] = row
            self.assert_tells(self.tell().findings[:1], told)
        self.rows[0]["methods"][1].update(value=None, relative_error=None)
        self.assert_tells(self.tell().findings[:1], f"{lost}all 2: a.f32, b.f32.")
        self.rows = [file("my/a.f32", 0)]
        self.assert_tells(self.tell().findings[:1], f"{right}1 of 1 file.")

    def test_has_all_files_in_one_table_and_then_a_table_a_file(self):
        first, *others = self.tell().tables
        self.assertEqual([row[0] for row in first.rows], ["a.f32", "b.f32"])
        self.assertEqual(first.rows[1][first.columns.index("serial/plain")], "1e-06")
        self.assertEqual(first.rows[1][first.columns.index("tree/plain")], "", "that was not measured")
        self.assertEqual(first.rows[0][-1], "exact/fp32@cpu")
        self.assertEqual(len(others), 2)

    def test_takes_the_latest_comparison_of_a_file(self):
        self.rows.append(file("my/b.f32", 0.5))
        self.assertEqual([row[4] for row in self.tell().tables[0].rows], ["0", "0.5"])

    def test_files_of_one_base_name_stay_apart(self):
        self.rows = [file("a/x", 0), file("b/x", 0.5)]
        s = self.tell()
        self.assertIn("1 of 2: b/x.", s.findings[0])
        self.assertEqual([f.split(" (")[0] for f in s.findings if "a plain loop" in f], ["a/x", "b/x"])
        self.assertEqual([row[0] for row in s.tables[0].rows], ["a/x", "b/x"])
        self.assertEqual([t.caption for t in s.tables[1:]], ["a/x, this machine", "b/x, this machine"])
        self.assertEqual(dict(s.figures[0].menus)["Data"], ["a/x", "b/x"])

    def test_are_not_described_as_those_of_the_study_are(self):
        self.rows[0]["data"].update(name="my/uniform.f32", n=1 << 22)
        self.assertEqual(self.tell().tables[1].note,
                         "4,194,304 elements in fp32, condition number 2. Use exact/fp32@cpu: it is exact.")

    def test_fails_with_what_was_broken(self):
        self.rows[0]["failures"] = ["exact/fp32@cpu: is wrong"]
        self.assertEqual(self.tell().failures, [f"{results.HERE}, a.f32: exact/fp32@cpu: is wrong"])


if __name__ == "__main__":
    unittest.main()
