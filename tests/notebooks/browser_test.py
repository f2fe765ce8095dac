"""Tests of the report in a browser without a network: it draws every plot, sorts tables and filters methods.

Run by ctest, or: build/venv/bin/python tests/notebooks/browser_test.py. The report has the committed results, and those
of this machine if there are any. Screenshots are written to SAMESUM_SCREENSHOTS (default: build/screenshots), and with
SAMESUM_LONG_TESTS=1 also screenshots of whole pages and a PDF. The page takes seconds to load, so it is loaded once,
and each test of OnADesk restores its state.
"""

import contextlib
import functools
import io
import os
import pathlib
import sys
import tempfile
import unittest

from made_up import ROOT
import browser
import report
import style

PICTURES = pathlib.Path(os.environ.get("SAMESUM_SCREENSHOTS", ROOT / "build/screenshots"))
LONG = os.environ.get("SAMESUM_LONG_TESTS")
WIDTHS = {390: 844, 768: 1024, 1280: 800}  # a phone, a tablet, a desk
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
FIGURES = '[...document.querySelectorAll("figure:has(.live)")]'
MARKS = 'querySelectorAll(".live .scatterlayer .trace, .live .barlayer .point").length'


def made_report(*arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        report.main([str(a) for a in arguments])


FOLDED = "document.querySelectorAll('details').forEach(d => d.open = {})"
MOST_BYTES, MOST_SECONDS, MOST_SCREENS = 6_500_000, 1.5, 9.8
ROOM = 12  # pixels below the first screen's texts
# The time of the largest contentful paint in ms, and its element.
LARGEST = """new Promise(done => {
    const seen = []; new PerformanceObserver(list => seen.push(...list.getEntries()))
      .observe({type: "largest-contentful-paint", buffered: true});
    setTimeout(() => done(seen.at(-1)?.startTime), 1000); })"""


def setUpModule():
    global folder, page
    temporary = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(temporary.cleanup)
    folder = pathlib.Path(temporary.name)
    page = browser.Browser(PROGRAM)
    unittest.addModuleCleanup(page.close)
    PICTURES.mkdir(parents=True, exist_ok=True)


@functools.cache
def whole_report():
    study = [ROOT / "build/study"] if (ROOT / "build/study").is_dir() else []
    made_report("--committed", ROOT / "experiments/results", "--out", folder, *study)
    return (folder / "report.html").rename(folder / "whole.html").as_uri()


def size(width):
    page.size(width, WIDTHS[width])
    page.run(FRAME)


def until(condition):
    """Waits for a condition, because plotly draws asynchronously. Returns whether it became true."""
    return page.run(f"""new Promise(done => {{ const end = Date.now() + 10000, look = () =>
        {condition} ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20); look(); }})""")


class OnADesk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = page
        page.prefer("light")
        page.size(1280, WIDTHS[1280])
        page.load(whole_report())
        cls.largest = page.run(LARGEST)
        cls.drawn_at_first = page.run("document.querySelectorAll('.scripted').length")
        page.run(FOLDED.format("true"))
        page.run(f"Promise.all({FIGURES}.map(drawOnce)).then(() => 0)")

    def tearDown(self):
        self.assertEqual(list(self.page.complaints()), [])
        self.page.events.clear()

    def click(self, element):
        """Clicks the centre of an element, which is a JavaScript expression."""
        x, y = self.page.run(f"""(() => {{ const e = {element}; e.scrollIntoView({{block: "center"}});
            const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        self.page.click(x, y)

    def test_the_page_is_light_and_the_first_screen_comes_first(self):
        self.assertLess(pathlib.Path(whole_report().removeprefix("file://")).stat().st_size, MOST_BYTES)
        self.assertTrue(0 < self.largest < 1000 * MOST_SECONDS, self.largest)
        self.assertLessEqual(self.drawn_at_first, 1, "plots are drawn when a reader comes near")

    def test_the_menu_of_the_first_figure_selects_a_machine(self):
        shown = self.page.run("""(() => { const menu = document.querySelector("#frontier select");
            return [...menu.options].map((option, i) => { menu.value = option.value;
              return [...document.querySelectorAll("#frontier .picked")].map(p => p.offsetHeight > 0); }); })()""")
        self.assertGreater(len(shown), 1)
        self.assertEqual(shown, [[i == k for k in range(len(shown))] for i in range(len(shown))])

    def test_a_link_to_something_folded_opens_it_and_a_link_to_a_tree_enlarges_it(self):
        self.page.run(FOLDED.format("false"))
        self.assertTrue(self.page.run("""(() => { location.hash = "growth-figure"; return 0; })()""") == 0)
        self.assertTrue(until("document.querySelector('#growth-figure').offsetHeight > 0"))
        width = "document.querySelector('#order .tile:last-child').offsetWidth"
        before = self.page.run(width)
        self.page.run("(() => { location.hash = document.querySelector('#order .tile:last-child').id; return 0; })()")
        self.assertTrue(until(f"{width} > 1.5 * {before}"))
        self.page.run(FOLDED.format("true"))

    def test_every_plot_is_drawn_labelled_and_shown_instead_of_its_picture(self):
        plots = self.page.run(f"""{FIGURES}.map(f => {{
              const plot = f.querySelector(".live > [role]"), picture = f.querySelector(".static"),
                    hidden = picture.offsetHeight;
              f.classList.remove("scripted");
              const shown = f.querySelector(".static svg").getBoundingClientRect().height;
              f.classList.add("scripted");
              return {{id: f.id, surfaces: f.querySelectorAll(".live svg.main-svg, .live canvas").length,
                marks: f.{MARKS}, role: plot.role, title: f.querySelector("figcaption").textContent,
                label: plot.ariaLabel, hidden, shown}};
            }})""")
        self.assertGreater(len(plots), 2)
        for plot in plots:
            self.assertTrue(plot["surfaces"] > 0 and plot["marks"] > 0, plot)
            self.assertEqual((plot["role"], plot["hidden"]), ("img", 0), plot)
            self.assertGreater(plot["shown"], 40, plot)
            self.assertTrue(plot["label"].startswith(plot["title"] + ". "), plot)

    def test_draws_every_choice_of_every_menu(self):
        """Nothing is drawn for them, to save time: OnEveryScreen draws the choices of the first menus."""
        choices = self.page.run(f"""{FIGURES}.flatMap(figure => {{
              const draw = Plotly.react, found = [], menus = [...figure.querySelectorAll("select")];
              const first = menus.map(menu => menu.value);
              let marks;
              Plotly.react = (_, traces) => {{
                marks = traces.filter(t => t.y.some((y, k) => y !== null && t.x[k] !== null)).length; }};
              const choose = (menu, choice) => {{
                marks = 0;
                menu.value = choice;
                menu.dispatchEvent(new Event("change"));
              }};
              menus.forEach((menu, i) => [...menu.options].forEach(({{value}}) => {{
                choose(menu, value);
                found.push({{id: figure.id, menu: i, value, marks}});
              }}));
              menus.forEach((menu, i) => choose(menu, first[i]));
              Plotly.react = draw;
              return found;
            }})""")
        self.assertGreater(len(choices), 10)
        for choice in choices:
            self.assertGreater(choice["marks"], 0, choice)

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
        self.assertEqual(cells(i)[len(numbers):], ["-"] * (len(cells(i)) - len(numbers)))  # missing values are last
        self.assertEqual(state(i), "descending")
        self.page.run(f"{table}.tHead.rows[0].cells[0].querySelector('button').focus()")
        self.page.press("Enter", 13)
        names = cells(0)
        self.assertEqual((state(0), state(i)), ("ascending", None))
        self.assertLess(names.index("exact/fp32@cuda"), names.index("tree/plain/fp32@cuda"))

    def test_numbers_and_powers_are_sorted_by_value(self):
        self.assertEqual(self.page.run("""["2²⁰", "1,000", "3.5e-07", "2⁸", "not finite", "over 10¹³", "0.5 to 0.9",
             "10⁻³", "-2"]
            .sort((a, b) => compare(a, b, true))"""), ["-2", "3.5e-07", "10⁻³", "0.5 to 0.9", "2⁸", "1,000", "2²⁰",
                                                       "over 10¹³", "not finite"])

    def test_ticks_between_powers_leave_room_for_each_other(self):
        self.assertEqual(self.page.run("[5, 12].map(most => scale('log10', [690, 3500], most).ticktext)"), [
            ["700", "1,000", "2,000", "3,000"], ["700", "800", "1,000", "2,000", "3,000"]])
        self.assertEqual(self.page.run("scale('log2', [1, 2 ** 26], 5).ticktext.at(-1)"), "2<sup>26</sup>")

    def test_a_line_of_one_point_is_a_ring(self):
        self.assertEqual(self.page.run("""[[[1, null, 2], [3, 4, null]], [[1, 2], [3, 4]]].map(([x, y]) =>
            lone({mode: "lines+markers", x, y, marker: {symbol: "star", color: "#888888"}}).marker.symbol)"""),
            ["circle-open", "star"])

    def test_bars_beside_one_peer_name_it_at_the_axis(self):
        self.assertEqual(self.page.run("""["1.3 × a/b", "0.9? × a/b", "2 × c"].map((_, i, all) =>
            beside({shape: "bars", x: "times the speed of the fastest peer"}, [{text: all.slice(0, i + 1)}]))"""), [
            ["times the speed of a/b", [{"text": ["1.3"]}]], ["times the speed of a/b", [{"text": ["1.3", "0.9?"]}]],
            ["times the speed of the fastest peer", [{"text": ["1.3 × a/b", "0.9? × a/b", "2 × c"]}]]])

    def search(self, figure, text):
        self.page.run(f"""(() => {{ const f = document.querySelector("#{figure} input[type=search]");
            f.value = "{text}"; f.dispatchEvent(new Event("input")); }})()""")

    def test_the_filter_selects_methods_and_points(self):
        figure = "document.querySelector('#error-figure')"

        def shown():
            return self.page.run(f"[...{figure}.querySelectorAll('.legendtext')].map(t => t.textContent)")

        everything = shown()
        self.page.run(f"{figure}.querySelector('input[type=search]').focus()")
        self.page("Input.insertText", text="tree plai")
        self.page.run(FRAME)
        self.assertEqual(shown(), ["tree/plain", "rigorous bound", "bound with probability 0.99"])
        self.assertGreater(len(everything), 3)
        self.search("error-figure", "no such method")
        self.assertEqual(shown(), [])
        self.search("error-figure", "")
        self.assertEqual(shown(), everything)
        self.search("frontier-figure", "pairwise neumaier")
        points = self.page.run("""document.querySelector("#frontier-figure .js-plotly-plot").data
            .flatMap(t => t.hovertext ?? [])""")
        self.search("frontier-figure", "")
        self.assertEqual(len(points), 1)
        self.assertIn("pairwise/neumaier/", points[0])

    def test_a_click_on_the_legend_hides_a_line_and_its_bounds(self):
        figure = "document.querySelector('#error-figure')"
        count = f"{figure}.querySelectorAll('.scatterlayer .trace').length"
        self.page.run(f"{figure}.scrollIntoView()")
        before = self.page.run(count)
        self.click(f"[...{figure}.querySelectorAll('.traces')].find(t => t.textContent.includes('tree/plain'))"
                   ".querySelector('.legendtoggle')")
        self.assertTrue(until(f"{count} <= {before - 2}"))  # plotly waits for a possible double click
        self.search("error-figure", "")  # draws all lines
        self.assertEqual(self.page.run(count), before)

    def test_a_plot_that_cannot_be_drawn_keeps_its_picture(self):
        figure, thrown, kept = self.page.run("""(async () => {
            const figure = document.querySelector("#error-figure").cloneNode(true), draw = Plotly.react;
            figure.querySelector(".live").replaceChildren();
            figure.classList.remove("scripted");
            document.querySelector("main").append(figure);
            let thrown = "nothing";
            Plotly.react = () => { throw Error("broken"); };
            try { await interactive(figure); } catch (error) { thrown = error.message; }
            Plotly.react = draw;
            const kept = figure.querySelector(".static").offsetHeight;
            figure.remove();
            return [figure.id, thrown, kept];
        })()""")
        self.assertEqual((figure, thrown), ("error-figure", "broken"))
        self.assertGreater(kept, 100)


class OnEveryScreen(unittest.TestCase):
    """Uses the page that OnADesk has loaded."""

    def test_fits_every_width_of_the_window_unclipped_and_follows_the_colour_scheme(self):
        """Visits each width once, since plotly draws all figures again, which takes seconds."""
        if page.run("location.href.split('#')[0]") != whole_report():
            page.load(whole_report())
        size(1280)
        page.print(PICTURES / "print.pdf")  # at another width, plotly would draw all figures twice more
        self.assertLess((PICTURES / "print.pdf").read_bytes().count(b"/Type /Page\n"), 30)
        ink = "getComputedStyle(document.querySelector('#error-figure .legendtext')).fill"
        for width in sorted(WIDTHS, reverse=True):
            with self.subTest(width):
                size(width)
                page.run(FOLDED.format("true"))
                self.assertTrue(until(f"document.documentElement.scrollWidth <= {width}"))
                self.assertEqual(page.run(f"{CLIPPED}({9 if LONG else int(width > 1000)})"), [])
                page.run(FOLDED.format("false"))
                if width > 1000:
                    height = page.run("document.documentElement.scrollHeight")
                    self.assertLessEqual(height, MOST_SCREENS * WIDTHS[width])
                page.run("scrollTo(0, 0)")
                self.assertEqual(page.run(COVERED), [])
                self.picture(f"{width}_light")
                texts = page.run("""Math.max(...[...document.querySelectorAll(".first :is(.answers, small)")]
                    .map(e => e.getBoundingClientRect().bottom))""")
                self.assertLess(texts, WIDTHS[width] - ROOM, "the first screen has the findings and the answers")
        light = page.run(ink)
        page.prefer("dark")
        page.run(FRAME)
        self.picture(f"{width}_dark")
        self.assertNotEqual(page.run(ink), light)
        drawn = page.run("""(() => { const plot = document.querySelector("#error-figure .js-plotly-plot");
            return plot.data.find(trace => trace.name === "exact").line.color; })()""")
        self.assertEqual(drawn, style.ON_DARK[style.COLOURS["exact"]])
        colour = page.run("getComputedStyle(document.querySelector('#frontier [fill=\"" + style.COLOURS["exact"]
                          + "\"]')).fill")
        self.assertEqual(colour, "rgb({}, {}, {})".format(*bytes.fromhex(drawn.removeprefix("#"))))
        self.assertEqual(list(page.complaints()), [])

    def picture(self, name):
        page.picture(PICTURES / f"{name}.png")
        if LONG:
            page.picture(PICTURES / f"{name}_whole.png", min(page.run("document.documentElement.scrollHeight"), 16000))


# Labels of the first figure that cover a point or another label by more than the space between lines, or pass the right
# edge of the grid, for each machine.
COVERED = """(() => {
  const found = [], menu = document.querySelector("#frontier select"), near = e => e.getBoundingClientRect();
  const covers = (a, b) => Math.min(a.right, b.right) > Math.max(a.left, b.left)
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  for (const {value} of menu.options) {
    menu.value = value;
    for (const svg of document.querySelectorAll("#frontier svg")) {
      const labels = [...svg.querySelectorAll("text")].filter(e => near(e).width);
      const points = [...svg.querySelectorAll(":is(path, circle):has(title):not([fill=none])")];
      const edge = Math.max(...[...svg.querySelectorAll("path:not(:has(title))")].map(e => near(e).right));
      labels.filter(e => e.getAttribute("text-anchor") === "start" && near(e).right > edge + 1)
        .forEach(e => found.push(`${svg.textContent.slice(0, 50)}: ${e.textContent} passes the grid`));
      labels.forEach((e, i) => [...points, ...labels.slice(i + 1)].filter(other => covers(near(e), near(other)))
        .forEach(other => found.push(`${svg.textContent.slice(0, 50)}: ${e.textContent} on ${other.textContent}`)));
    }
  }
  menu.selectedIndex = 0;
  return found;
})()"""

# Problems of the tables and of the figures, with everything unfolded: for the choices of the first menus.
CLIPPED = """(async menus => {
  const found = [], near = e => e.getBoundingClientRect();
  for (const table of document.querySelectorAll(".wide"))
    if (table.scrollWidth > table.clientWidth && innerWidth > 1000) found.push(`${table.ariaLabel}: columns`);
  for (const text of document.querySelectorAll("svg:not(.live svg) text")) {
    const box = near(text), picture = near(text.ownerSVGElement);
    if (box.width && (box.right > picture.right + 1 || box.left < picture.left - 1 || box.bottom > picture.bottom + 1))
      found.push(`${text.textContent} is clipped in ${text.closest("[id]").id}`);
  }
  for (const figure of document.querySelectorAll("figure:has(.live)")) {
    await drawOnce(figure);
    const plot = figure.querySelector(".js-plotly-plot");
    // plotly follows the window some time after it has changed
    if (plot._fullLayout.width !== plot.clientWidth) await Plotly.Plots.resize(plot);
    const values = axis => new Set(plot.data.flatMap(t => t[axis]).filter(v => v !== null));
    const check = choice => {
      const page = near(figure.querySelector(".main-svg")), bar = figure.querySelector(".legend .scrollbar");
      const add = what => found.push(`${figure.id}, ${choice}: ${what}`);
      if (!figure.%s) add("nothing is drawn");
      if (bar && near(bar).height) add("the legend scrolls");
      for (const axis of "xy")
        if (figure.querySelectorAll(`.${axis}tick`).length < Math.min(2, values(axis).size)) add(`the axis ${axis} has no ticks`);
      for (const text of figure.querySelectorAll(".main-svg text")) {
        const box = near(text);
        if (box.width && (box.right > page.right + 1 || box.left < page.left - 1 || box.bottom > page.bottom + 1))
          add(`${text.textContent} is clipped`);
      }
    };
    check("at first");
    for (const select of [...figure.querySelectorAll(".menus select")].slice(0, menus)) {
      const first = select.value;
      for (const value of [...[...select.options].map(o => o.value).filter(v => v !== first), first]) {
        select.value = value;
        select.dispatchEvent(new Event("change"));
        // plotly widens the margins of bars after the first drawing
        if (menus > 1) await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
        check(value);
      }
    }
  }
  return found.slice(0, 9);
})""".replace("%s", MARKS)


class ThePaper(unittest.TestCase):
    def test_has_at_most_eight_pages(self):
        page.load((ROOT / "notebooks/paper.html").as_uri())
        page.print(PICTURES / "paper.pdf")
        pages = (PICTURES / "paper.pdf").read_bytes().count(b"/Type /Page\n")
        self.assertTrue(3 < pages <= 8, pages)
        self.assertEqual(list(page.complaints()), [])


class WithoutScripts(unittest.TestCase):
    def machines(self, document):
        """Which of the first two pictures of the frontier are shown."""
        shown = []
        for node in page("DOM.querySelectorAll", nodeId=document["nodeId"], selector="#frontier .picked")["nodeIds"][:2]:
            try:
                shown.append(page("DOM.getBoxModel", nodeId=node)["model"]["height"] > 0)
            except RuntimeError:  # an element that is not displayed has no box
                shown.append(False)
        return shown

    def test_shows_static_pictures(self):
        url = whole_report()
        page.size(390, WIDTHS[390])
        page("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(page, "Emulation.setScriptExecutionDisabled", value=False)
        page.load(url)
        document = page("DOM.getDocument")["root"]
        pictures = page("DOM.querySelectorAll", nodeId=document["nodeId"], selector=".static svg")["nodeIds"]
        self.assertGreater(len(pictures), 2)
        for node in pictures:
            self.assertGreater(page("DOM.getBoxModel", nodeId=node)["model"]["height"], 40)
        self.assertEqual(list(page.complaints()), [])
        shown = page("DOM.querySelectorAll", nodeId=document["nodeId"], selector="#frontier svg, .card b, .answers dd")
        self.assertGreater(len(shown["nodeIds"]), 6)
        self.assertEqual(self.machines(document), [True, False])
        page("DOM.focus", nodeId=page("DOM.querySelector", nodeId=document["nodeId"], selector="#frontier select")["nodeId"])
        page.press("ArrowDown", 40)
        self.assertEqual(self.machines(document)[:2], [False, True], "the menu of machines is CSS")
        page.picture(PICTURES / "without_scripts.png", 6000)


if __name__ == "__main__":
    PROGRAM = browser.find()
    if not PROGRAM:
        print("browser: no usable Chromium; install the Debian package chromium")
        sys.exit(77)
    unittest.main()
