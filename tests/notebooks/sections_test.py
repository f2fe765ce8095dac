"""Every section stands whatever its files hold, as long as it fits the schema: rows of every kind, one at a time, some
at a time and growing in number. And what fits the schema is what jsonschema accepts.

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
import schema


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
                self.assertTrue(schema.surely(kind)(r), f"{kind}: jsonschema alone knows that this fits, slowly")

    def test_nothing_is_accepted_that_jsonschema_refuses(self):
        refused = 0
        for kind in results.KINDS:
            r = made_up.sample(schema.DEFINED[kind])
            altered = [r | {"more": 1}, list(r), *({k: v for k, v in r.items() if k != name} for name in r)]
            altered += [r | {name: wrong} for name in r for wrong in (None, "no one's", -1, 0.5, True, [], [1], {})]
            for wrong in altered:
                if not schema.surely(kind)(wrong):
                    refused += 1
                else:
                    self.assertEqual([e.message for e in schema.validator(kind).iter_errors(wrong)], [], wrong)
        self.assertGreater(refused, 1000)

    def test_stand_with_any_single_row(self):
        for question in report.SECTIONS:
            with self.subTest(question):
                empty = importlib.import_module(question).section([])
                self.assertEqual((empty.empty, empty.failures), (True, []))
                self.fails_of(question, ([r] for kind in made_up.kinds_of(question) for r in made_up.rows(kind)))

    def test_stand_with_the_first_rows_of_a_file_and_with_neighbours(self):
        for question in report.SECTIONS:
            rows = [r for kind in made_up.kinds_of(question) for r in made_up.rows(kind)]
            lengths = [0, *(2**k for k in range(1, len(rows).bit_length())), len(rows)]
            with self.subTest(question):
                self.fails_of(question, [rows[:k] for k in lengths] + [rows[k:k + 10] for k in range(0, len(rows), 10)])

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
