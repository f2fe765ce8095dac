"""Every section stands whatever its files hold, as long as it fits the schema: rows of every kind, one at a time and
growing in number.

Run by ctest, or: build/venv/bin/python tests/notebooks/sections_test.py
"""

import importlib
import re
import unittest

import made_up
import figure
import headlines
import markdown
import methods
import page
import report
import results


def shown(section):
    """All that a reader gets of it, as page and text."""
    for f in section.figures:
        figure.script_json(f.plotly())
    return page.section(section, None), "\n".join(markdown.section(section))


def has_something(f):
    """Whether a figure shows more than bounds."""
    lines = [s for s in f.matching(f.chosen()) if not s.faint]
    return f.picture or (lines if f.bars else any(figure.drawn(x, f.x_kind) and figure.drawn(y, f.y_kind)
                                                  for s in lines for x, y in zip(s.x, s.y)))


class Sections(unittest.TestCase):
    def stands(self, question, rows):
        source = results.Source(results.HERE, question, None, {}, rows)
        section = importlib.import_module(question).section([source])
        shown(section)
        for f in section.figures:
            self.assertTrue(f.reading or not has_something(f), f"{f.id} shows something and says nothing")
        for sentence in [*section.findings, *section.failures, *(f.reading for f in section.figures)]:
            self.assertIsNone(re.search(r"\bNone\b(?! of)|\bnan\b|\binf\b|\{\}|  ", sentence), sentence)
        for caption, some in headlines.headlines({question: [source]}):
            self.assertTrue(caption and some)
        shown(methods.section({question: [source]}))

    def fails_of(self, question, tries):
        """One failure a section is enough, with the rows that make it."""
        for rows in tries:
            try:
                self.stands(question, rows)
            except Exception as error:
                error.add_note(f"{question}: {len(rows)} rows; the last is {rows[-1] if rows else None}")
                raise

    def test_made_up_rows_fit_the_schema(self):
        for kind in results.KINDS:
            if kind != "study":
                for r in made_up.rows(kind):
                    self.assertIsNone(results.problem(r, [kind]), r)

    def test_stand_with_any_single_row(self):
        for question in report.SECTIONS:
            with self.subTest(question):
                self.fails_of(question, ([r] for kind in made_up.kinds_of(question) for r in made_up.rows(kind)))

    def test_stand_with_the_first_rows_of_a_file(self):
        for question in report.SECTIONS:
            rows = [r for kind in made_up.kinds_of(question) for r in made_up.rows(kind)]
            with self.subTest(question):
                self.fails_of(question, (rows[:k] for k in range(0, len(rows), 5)))

    def test_stand_with_rows_that_belong_elsewhere(self):
        for question in report.SECTIONS:
            with self.subTest(question):
                self.fails_of(question, ([next(made_up.rows(kind))] for kind in results.KINDS if kind != "study"))

    def test_know_the_kinds_of_their_rows(self):
        self.assertEqual(made_up.kinds_of("compare"), ["comparison"])
        self.assertEqual(made_up.kinds_of("error_vs_length"), ["error", "coverage"])
        self.assertTrue(all(map(made_up.kinds_of, report.SECTIONS)))


if __name__ == "__main__":
    unittest.main()
