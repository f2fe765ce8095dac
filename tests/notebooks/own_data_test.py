"""What the report says of several files: made-up comparisons, altered one number at a time.

Run by ctest, or: build/venv/bin/python -B tests/notebooks/own_data_test.py
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import own_data  # noqa: E402
import results  # noqa: E402


def method(name, error, format="fp32"):
    return {"method": f"{name}/{format}@cpu", "value": 1.0, "truth": 1.0, "bits": "0x" + ("1" if error else "0"),
            "truth_bits": "0x0", "relative_error": error, "error_ulps": 1.0, "bound": 1.0, "within_bound": True,
            "promise": "everywhere", "distinct_bits": 1, "gb_per_s": 4.0}


def comparison(name, error_of_a_loop):
    return {"kind": "comparison", "failures": [],
            "data": {"name": f"my/{name}", "format": "fp32", "n": 4096, "condition": 2.0},
            "methods": [method("exact", 0), method("serial/plain", error_of_a_loop)],
            "recommendation": {"method": "exact/fp32@cpu", "reason": "it is exact"}}


class OwnData(unittest.TestCase):
    def setUp(self):
        self.rows = [comparison("a.f32", 0), comparison("b.f32", 1e-6)]

    def section(self):
        return own_data.section([results.Source(results.HERE, "own_data", pathlib.Path("own_data.jsonl"), {}, self.rows)])

    def test_counts_the_files_on_which_a_loop_is_right_and_lost(self):
        self.assertEqual(self.section().findings[0], "A plain loop in the data's own format is right to the last bit on "
                                                     "1 of 2 files.")
        self.rows[1] = comparison("b.f32", 0.5)
        self.assertIn("not one right digit on 1 of 2: b.f32.", self.section().findings[0])
        self.rows[0] = comparison("a.f32", 1e-7)
        self.assertIn("right to the last bit on none of 2 files", self.section().findings[0])

    def test_has_all_files_in_one_table_and_then_a_table_a_file(self):
        first, *others = self.section().tables
        self.assertEqual([row[0] for row in first.rows], ["a.f32", "b.f32"])
        self.assertEqual(first.rows[1][first.columns.index("serial/plain")], "1e-06")
        self.assertEqual(first.rows[1][first.columns.index("tree/plain")], "", "that was not measured")
        self.assertEqual(first.rows[0][-1], "exact/fp32@cpu")
        self.assertEqual(len(others), 2)

    def test_takes_the_latest_comparison_of_a_file(self):
        self.rows.append(comparison("b.f32", 0.5))
        self.assertEqual([row[4] for row in self.section().tables[0].rows], ["0", "0.5"])

    def test_fails_with_what_was_broken(self):
        self.rows[0]["failures"] = ["exact/fp32@cpu: is wrong"]
        self.assertEqual(self.section().failures, [f"{results.HERE}, a.f32: exact/fp32@cpu: is wrong"])

    def test_says_nothing_of_nothing(self):
        self.assertTrue(own_data.section([]).empty)


if __name__ == "__main__":
    unittest.main()
