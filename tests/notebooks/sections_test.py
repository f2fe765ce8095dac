"""Tests that every section accepts all rows that fit the schema, and that the fast check against the schema agrees with
jsonschema. The rows are of every kind, one at a time, several at a time and in growing numbers.

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
import operations
import page
import phrases
import report
import results
import schema
import section
import story


def shown(section):
    """The section as HTML and as Markdown."""
    for f in section.figures:
        figure.script_json(f.plotly())
    return page.section(section), "\n".join(markdown.section(section))


def has_something(f):
    """Whether a figure shows more than faint lines."""
    lines = [s for s in f.matching(f.chosen()) if not s.faint]
    return f.tiles or (lines if f.bars else any(figure.is_drawable(x, f.x_kind) and figure.is_drawable(y, f.y_kind)
                                                  for s in lines for x, y in zip(s.x, s.y)))


class Checks(unittest.TestCase):
    def test_the_number_of_checked_times_is_said_of_samesum_and_of_peers_apart(self):
        rows = [{"method": method, "verified": verified} for method, verified in (
            ("exact/fp32@cpu", True), ("tree/plain/fp32@cpu", None), ("loop/fp32@peer", None), ("eigen/fp32@peer", None),
            ("tbb/fp32@peer", None))]
        text = ("the bits of 1 of 2 timed results of samesum and the results of none of 3 timed calls of other libraries and "
                "loops were checked")
        self.assertEqual(section.checked_in_words(rows), text)
        rows[4]["verified"] = True
        self.assertIn("1 of 3 timed calls", section.checked_in_words(rows))
        self.assertEqual(section.checked_in_words([]), "")
        self.assertEqual(list(section.check_findings([("here", r) for r in rows[1:4]])),
                         ["Neither of the two timed calls of other libraries and loops was checked."])


class Sections(unittest.TestCase):
    def check(self, question, rows):
        source = results.Source(results.HERE, question, None, {}, rows)
        section = importlib.import_module(question).section([source])
        shown(section)
        for f in section.figures:
            self.assertTrue(f.finding or not has_something(f), f"{f.id} has series but no finding")
            self.assertTrue(f.description, f"{f.id} has no description")
        for sentence in [*section.findings, section.verdict, *section.failures, *(f.finding for f in section.figures)]:
            self.assertIsNone(re.search(r"\bNone\b(?! of)|\bnan\b|\binf\b|\{\}|  ", sentence), sentence)
        self.assertLessEqual(len(headlines.headlines([section])), 1)
        page.opening({question: [source]}, "")
        for text in (story.about({question: [source]}), *(text for _, text in story.answers({question: [source]})),
                     *(c.text for c in story.cards({question: [source]}))):
            self.assertIsNone(re.search(r"\bNone\b(?! of)|\bnan\b|\binf\b|\{\}|  ", text), text)
        shown(methods.section({question: [source]}))
        every = operations.section({question: [source]})
        shown(every)
        for sentence in [*every.findings, *every.failures, *(f.finding for f in every.figures)]:
            self.assertIsNone(re.search(r"\bNone\b(?! of)|\bnan\b|\binf\b|\{\}|  ", sentence or ""), sentence)

    def check_all(self, question, tries):
        """Checks several lists of rows; the first error ends the check and names the rows."""
        for rows in tries:
            try:
                self.check(question, rows)
            except Exception as error:
                error.add_note(f"{question}: {len(rows)} rows; the last is {rows[-1] if rows else None}")
                raise

    def test_made_up_rows_fit_the_schema(self):
        for kind in results.KINDS:
            if kind != "study":
                for r in made_up.rows(kind):
                    self.assertIsNone(results.problem(r, [kind]), r)
                self.assertTrue(schema.acceptor_of(kind)(r), f"{kind}: only jsonschema accepts this, which is slow")

    def test_nothing_is_accepted_that_jsonschema_rejects(self):
        rejected = 0
        for kind in results.KINDS:
            r = made_up.sample(schema.DEFINED[kind])
            altered = [r | {"more": 1}, list(r), *({k: v for k, v in r.items() if k != name} for name in r)]
            altered += [r | {name: wrong} for name in r for wrong in (None, "other", -1, 0.5, True, [], [1], {})]
            for wrong in altered:
                if not schema.acceptor_of(kind)(wrong):
                    rejected += 1
                else:
                    self.assertEqual([e.message for e in schema.validator(kind).iter_errors(wrong)], [], wrong)
        self.assertGreater(rejected, 1000)

    def test_sections_accept_any_single_row(self):
        for question in report.SECTIONS:
            with self.subTest(question):
                empty = importlib.import_module(question).section([])
                self.assertEqual((empty.empty, empty.failures), (True, []))
                self.check_all(question, ([r] for kind in made_up.kinds_of(question) for r in made_up.rows(kind)))

    def test_sections_accept_the_first_rows_of_a_file_and_consecutive_rows(self):
        for question in report.SECTIONS:
            rows = [r for kind in made_up.kinds_of(question) for r in made_up.rows(kind)]
            lengths = [0, *(2**k for k in range(1, len(rows).bit_length())), len(rows)]
            with self.subTest(question):
                self.check_all(question, [rows[:k] for k in lengths]
                               + [rows[k:k + 10] for k in range(0, len(rows), 10)])

    def test_sections_ignore_rows_of_other_kinds(self):
        for question in report.SECTIONS:
            with self.subTest(question):
                self.check_all(question, ([next(made_up.rows(kind))] for kind in results.KINDS if kind != "study"))

    def test_every_term_has_a_definition(self):
        for question in [*report.SECTIONS, "methods", "operations"]:
            section = importlib.import_module(question).section([] if question in report.SECTIONS else {})
            self.assertLessEqual(set(section.terms), set(phrases.TERMS), question)

    def test_the_kinds_of_rows_of_a_section(self):
        self.assertEqual(made_up.kinds_of("compare"), ["comparison"])
        self.assertEqual(made_up.kinds_of("error_vs_length"), ["error", "coverage"])
        self.assertTrue(all(map(made_up.kinds_of, report.SECTIONS)))


if __name__ == "__main__":
    unittest.main()
