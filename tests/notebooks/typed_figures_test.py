"""Tests that no page and no --help has a typed measurement: notebooks/pages.py makes figures from results.

Run by ctest, or: build/venv/bin/python tests/notebooks/typed_figures_test.py
"""

import ast
import json
import re
import unittest

from made_up import ROOT
import pages

# Dated records of what was measured once.
HISTORY = "lib/PERFORMANCE.md", "lib/sql/PERFORMANCE.md", "lib/DECISIONS.md", "lib/BUILD_TIMES.md"
CITED = "lib/RELATED.md"  # figures of other authors
# A number with a unit of time, speed or error, or a multiple of a measurement. "×" between two numbers is a shape.
FIGURE = re.compile(r"(?<![\^\d.])\d[\d.,]*\s?(?:(?:ns|[µu]s|ms|s|seconds?|minutes?|hours?|[KMGT]i?B/s|ulps?|%|percent)"
                    r"(?![\w/])"
                    r"|×(?!\s?\d)|times (?:as|that|the|its|\w+')\b|(?<=\.\d) times)"
                    r"|\b(?:half|twice|thrice|\w+ times) as (?:fast|slow|long)\b|\btimes (?:faster|slower|longer)\b"
                    r"|\b(?:half|a third|a quarter|a tenth) (?:of )?(?:the|its|their|\w+') time\b")
EXCEPTIONS = {  # what has the form of a measurement, and is none
    "about 10 minutes": "the time of ./experiments/run, which its --help repeats",
    "100% in the denominator": "a bound that theory gives",
    "2^14 times as large": "a made data set",
    "for 2 ms": "how long python_speed repeats a call in each round",
}


def prose(text):
    """A page without generated tables, and without programs and what they print, which other tests run."""
    return re.sub(r"^```(\w*)\n(.*?)^```$", lambda block: block[2] if block[1] == "sh" else "", pages.MARKED.sub("", text),
                  flags=re.M | re.S)


def figures(text):
    """Lines with a figure, each with the words before and after it."""
    for exception in EXCEPTIONS:
        text = text.replace(exception, "")
    return [text[max(0, found.start() - 40):found.end() + 20].replace("\n", " ") for found in FIGURE.finditer(text)]


def page_texts():
    for path in sorted({path for pattern in (*pages.PAGES, "*.md") for path in ROOT.glob(pattern)}):
        yield path.relative_to(ROOT).as_posix(), prose(path.read_text(encoding="utf-8"))
    for path in sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("lib/python/*.ipynb")]):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield path.relative_to(ROOT).as_posix(), "\n".join(
            "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def help_texts():
    """Texts and comments of the programs of the study, and docstrings of the package."""
    for path in sorted([*ROOT.glob("experiments/*.cpp"), ROOT / "experiments/run", ROOT / "tests/run"]):
        text = path.read_text(encoding="utf-8")
        if path.suffix:
            text = "\n".join(re.findall(r"//.*|\"(?:[^\"\\\n]|\\.)*\"", text))
        yield path.relative_to(ROOT).as_posix(), text
    for path in sorted([*ROOT.glob("lib/python/samesum/**/*.py"), *ROOT.glob("experiments/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                yield path.relative_to(ROOT).as_posix(), ast.get_docstring(node) or ""


class NoFigureIsTyped(unittest.TestCase):
    def test_pages_and_help_texts_have_no_typed_measurement(self):
        """If this fails, take the figure from a results file in notebooks/pages.py, or say the sentence without it."""
        for name, text in [*page_texts(), *help_texts()]:
            if name not in (*HISTORY, CITED, "CHANGELOG.md"):
                with self.subTest(name):
                    self.assertEqual(figures(text), [])

    def test_a_typed_measurement_is_found(self):
        for typed in ("takes 0.3 to 1 µs", "reads 4440 GB/s", "1.4 times NumPy's", "30 times as fast", "6.1 × as",
                      "several times faster", "160 s on two cores", "up to 5 %", "twice as long as",
                      "a third of pandas' time", "off by 3.5 ulps"):
            self.assertEqual(len(figures(f"It {typed} here.")), 1, typed)
        self.assertEqual(figures("A matrix of 8 × 512 fp32 in 2^20 steps, 64 bytes and 12 places."), [])

    def test_the_exceptions_are_in_use(self):
        texts = "\n".join(text for _, text in [*page_texts(), *help_texts()])
        self.assertEqual([e for e in EXCEPTIONS if e not in texts], [])

    def test_the_study_has_one_time(self):
        times = [re.findall(r"about ([\d.]+) minutes", (ROOT / name).read_text(encoding="utf-8"))
                 for name in ("README.md", "experiments/run")]
        self.assertEqual(times[0], times[1])
        self.assertEqual(len(times[0]), 1)

    def test_figures_of_other_authors_have_a_source(self):
        for line in (ROOT / CITED).read_text(encoding="utf-8").split("\n"):
            for cell in line.split("|"):
                if figures(cell.removesuffix(" Ends in brackets are 95% intervals.")):
                    self.assertRegex(cell, r"\]\(https://|\(its README\)")

    def test_the_history_has_dates_and_commits_and_only_decisions_refer_to_its_figures(self):
        for page in HISTORY[:2]:
            for section in re.split(r"^#{2,3} ", (ROOT / page).read_text(encoding="utf-8"), flags=re.M)[1:]:
                if section.count("\n") > 2:
                    self.assertRegex(section, r"(?m)^20\d\d-\d\d-\d\d \([0-9a-f]{7}", section[:40])
        for name, text in page_texts():
            if name not in HISTORY:
                self.assertNotIn("PERFORMANCE.md#", text, name)


if __name__ == "__main__":
    unittest.main()
