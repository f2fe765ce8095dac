"""The report as a reader sees it: a browser without a network draws every plot, sorts tables and filters methods.

Run by ctest, or: build/venv/bin/python tests/notebooks/browser_test.py. Shows the committed results, and this machine's
where there are some; keeps pictures of the page in SAMESUM_SCREENSHOTS (default: build/screenshots).
"""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

from made_up import ROOT
import browser
import report

PICTURES = pathlib.Path(os.environ.get("SAMESUM_SCREENSHOTS", ROOT / "build/screenshots"))
WIDTHS = {390: 844, 768: 1024, 1440: 900}  # a phone, a tablet, a desk
DRAWN = """[...document.querySelectorAll("figure:has(.live)")].map(f => ({
  id: f.id, surfaces: f.querySelectorAll(".live svg.main-svg, .live canvas").length,
  marks: f.querySelectorAll(".live .scatterlayer .trace, .live .barlayer .point").length}))"""
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        study = ROOT / "build/study"
        empty = pathlib.Path(cls.folder.name) / "empty"
        empty.mkdir()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            report.main([str(study if study.is_dir() else empty), "--committed", str(ROOT / "experiments/results"),
                         "--out", cls.folder.name])
        cls.url = (pathlib.Path(cls.folder.name) / "report.html").as_uri()
        cls.browser = browser.Browser(PROGRAM)
        cls.addClassCleanup(cls.browser.close)
        PICTURES.mkdir(parents=True, exist_ok=True)

    def setUp(self):
        self.page = self.browser
        self.page("Emulation.setScriptExecutionDisabled", value=False)
        self.page("Emulation.setEmulatedMedia", media="", features=[])
        self.page.size(1440, 900)
        self.page.load(self.url)

    def tearDown(self):
        self.assertEqual(list(self.page.complaints()), [])

    def click(self, element):
        """On the middle of an element, an expression of JavaScript."""
        x, y = self.page.run(f"""(() => {{ const e = {element}; e.scrollIntoView({{block: "center"}});
            const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        self.page.click(x, y)

    def test_draws_every_plot(self):
        plots = self.page.run(DRAWN)
        self.assertGreater(len(plots), 2)
        for plot in plots:
            self.assertGreater(plot["surfaces"], 0, plot)
            self.assertGreater(plot["marks"], 0, plot)

    def test_every_plot_says_what_it_is_and_stands_for_its_picture(self):
        for plot in self.page.run("""[...document.querySelectorAll("figure:has(.live)")].map(f => ({
              id: f.id, role: f.querySelector(".live > [role]").role, title: f.querySelector("figcaption").textContent,
              label: f.querySelector(".live > [role]").ariaLabel,
              picture: f.querySelector(".static").offsetHeight}))"""):
            self.assertEqual((plot["role"], plot["picture"]), ("img", 0), plot)
            self.assertTrue(plot["label"].startswith(plot["title"] + ". "), plot)

    def test_a_plot_that_cannot_be_drawn_keeps_its_picture(self):
        """Here all but the first."""
        page = pathlib.Path(self.folder.name) / "report.html"
        broken = page.with_name("broken.html")
        draw = "Plotly.react(plot"
        broken.write_text(page.read_text().replace(draw, f"if (redraws.length) throw Error('broken'); {draw}"))
        self.page.load(broken.as_uri())
        first, second, *_ = self.page.run("[...document.querySelectorAll('.static')].map(f => f.offsetHeight)")
        self.assertTrue(first == 0 and second > 100, (first, second))
        self.assertTrue(any("broken" in text for text in self.page.complaints()))
        self.page.events.clear()

    def test_draws_every_choice_of_every_menu(self):
        for choices in self.page.run("""[...document.querySelectorAll("figure:has(.live)")].flatMap(figure =>
            [...figure.querySelectorAll("select")].flatMap((select, i) => [...select.options].map((o, k) => {
              const again = figure.querySelectorAll("select")[i];
              again.value = o.value;
              again.dispatchEvent(new Event("change"));
              const marks = figure.querySelectorAll(".live .scatterlayer .trace, .live .barlayer .point").length;
              return {id: figure.id, menu: i, choice: o.value, marks};
            })))"""):
            self.assertGreater(choices["marks"], 0, choices)

    def test_sorts_a_table_by_a_click_and_by_the_keyboard(self):
        table = "document.querySelector('#methods table')"
        heads = self.page.run(f"[...{table}.tHead.rows[0].cells].map(c => c.textContent)")

        def cells(i):
            return self.page.run(f"[...{table}.tBodies[0].rows].map(r => r.cells[{i}].textContent)")

        def state(i):
            return self.page.run(f"{table}.tHead.rows[0].cells[{i}].ariaSort")

        i = heads.index("GB/s")
        self.click(f"{table}.tHead.rows[0].cells[{i}].querySelector('button')")
        numbers = [float(c.replace(",", "")) for c in cells(i) if c != "-"]
        self.assertGreater(len(set(numbers)), 10)
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual(state(i), "ascending")
        self.page.press("Enter", 13)  # the button has the focus
        self.assertEqual([float(c.replace(",", "")) for c in cells(i) if c != "-"], sorted(numbers, reverse=True))
        self.assertEqual(cells(i)[len(numbers):], ["-"] * (len(cells(i)) - len(numbers)))  # what is not there is last
        self.assertEqual(state(i), "descending")
        self.page.run(f"{table}.tHead.rows[0].cells[0].querySelector('button').focus()")
        self.page.press("Enter", 13)
        names = cells(0)
        self.assertEqual((state(0), state(i)), ("ascending", None))
        self.assertLess(names.index("exact/fp32@cuda"), names.index("tree/plain/fp32@cuda"))

    def test_numbers_and_powers_are_sorted_by_what_they_are_worth(self):
        self.assertEqual(self.page.run("""["2²⁰", "1,000", "3.5e-07", "2⁸", "not finite", "over 10¹³", "0.5 to 0.9",
             "10⁻³", "-2"]
            .sort((a, b) => compare(a, b, true))"""), ["-2", "3.5e-07", "10⁻³", "0.5 to 0.9", "2⁸", "1,000", "2²⁰",
                                                            "over 10¹³", "not finite"])

    def test_shows_the_methods_that_are_typed(self):
        figure = "document.querySelector('#error-figure')"

        def shown():
            return self.page.run(f"[...{figure}.querySelectorAll('.legendtext')].map(t => t.textContent)")

        everything = shown()
        self.page.run(f"{figure}.querySelector('input[type=search]').focus()")
        self.page("Input.insertText", text="tree neum")
        self.page.run(FRAME)
        self.assertEqual(shown(), ["tree/neumaier"])
        self.assertGreater(len(everything), 3)
        self.page("Input.insertText", text=" no such method")
        self.page.run(FRAME)
        self.assertEqual(shown(), [])
        self.page.run(f"""(() => {{ const f = {figure}.querySelector('input[type=search]');
            f.value = ""; f.dispatchEvent(new Event("input")); }})()""")
        self.assertEqual(shown(), everything)

    def test_shows_the_points_that_are_typed(self):
        self.page.run("""(() => { const f = document.querySelector("#frontier-figure input");
            f.value = "pairwise neumaier"; f.dispatchEvent(new Event("input")); })()""")
        points = self.page.run("""document.querySelector("#frontier-figure .js-plotly-plot").data
            .flatMap(t => t.hovertext ?? [])""")
        self.assertEqual(len(points), 1)
        self.assertIn("pairwise/neumaier/", points[0])

    def test_a_click_on_the_legend_hides_a_line_and_its_bounds(self):
        figure = "document.querySelector('#error-figure')"

        def count():
            return self.page.run(f"{figure}.querySelectorAll('.scatterlayer .trace').length")

        self.page.run(f"{figure}.scrollIntoView()")
        before = count()
        self.click(f"[...{figure}.querySelectorAll('.traces')].find(t => t.textContent.includes('tree/kahan'))"
                   ".querySelector('.legendtoggle')")
        self.page.run("new Promise(done => setTimeout(done, 700))")  # it may become a double click
        self.assertLessEqual(count(), before - 2)

    def test_without_scripts_has_pictures(self):
        self.page("Emulation.setScriptExecutionDisabled", value=True)
        self.page.load(self.url)
        document = self.page("DOM.getDocument", depth=-1)["root"]
        pictures = self.page("DOM.querySelectorAll", nodeId=document["nodeId"], selector=".static svg")["nodeIds"]
        self.assertGreater(len(pictures), 2)
        for node in pictures:
            self.assertGreater(self.page("DOM.getBoxModel", nodeId=node)["model"]["height"], 40)
        self.page.picture(PICTURES / "without_scripts.png")

    def test_is_as_wide_as_the_window_and_no_wider(self):
        for width, height in WIDTHS.items():
            self.page.size(width, height)
            self.page.load(self.url)
            self.page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)

    def test_pictures_are_kept(self):
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            for width, height in WIDTHS.items():
                self.page.size(width, height)
                self.page.load(self.url)
                self.page.run(FRAME)
                self.page.picture(PICTURES / f"{width}_{scheme}.png")
                whole = min(self.page.run("document.documentElement.scrollHeight"), 16000)
                self.page.picture(PICTURES / f"{width}_{scheme}_whole.png", whole)
        self.page.print(PICTURES / "print.pdf")


if __name__ == "__main__":
    PROGRAM = browser.find()
    if not PROGRAM:
        print("browser: no Chromium that sees this folder: install Debian's package chromium")
        sys.exit(77)
    unittest.main()
