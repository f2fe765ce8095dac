"""Tests of figures as plotly traces and as SVG, of their style, and of the formatting of numbers and sentences.

Run by ctest, or: build/venv/bin/python tests/notebooks/figure_test.py
"""

import contextlib
import dataclasses
import io
import json
import re
import unittest
import xml.dom.minidom

import made_up
from made_up import ROOT, source
import frontier
import markdown
import page
import phrases
import section
import style
import tool
from figure import Axis, Drawing, Figure, Series, Tile, on_paper, script_json, svg


def figure(series, **more):
    return Figure("f", "A figure", [], series, "x, units", {None: "y, units"}, **more)


def texts(picture):
    return [node.firstChild.data if node.firstChild else ""
            for node in xml.dom.minidom.parseString(picture).getElementsByTagName("text")]


def circles(picture):
    return [tuple(map(float, at)) for at in re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"', picture)]


class LabelsOfTheFrontier(unittest.TestCase):
    def test_a_label_lies_neither_on_a_point_nor_on_the_curve(self):
        curve = [(200, 20), (100, 200), (90, 60)]
        labels = frontier.Labels(curve, 0, 220, 0, 220)
        labels.taken += frontier.along(curve)
        for x, y in curve:
            left, base = labels.place(x, y, 60)
            for i in range(101):
                for (x1, y1), (x2, y2) in zip(curve, curve[1:]):
                    at = x1 + (x2 - x1) * i / 100, y1 + (y2 - y1) * i / 100
                    self.assertFalse(left < at[0] < left + 60 and base - 12 < at[1] < base + 4, (x, y, at))


class Axes(unittest.TestCase):
    def test_logarithmic_axes_have_ticks_at_whole_powers(self):
        self.assertEqual([Axis("log10", [0.02, 300], 7).label(t) for t in Axis("log10", [0.02, 300], 7).ticks],
                         ["10⁻²", "10⁻¹", "10⁰", "10¹", "10²", "10³"])
        self.assertEqual([Axis("log2", [16, 128], 7).label(t) for t in Axis("log2", [16, 128], 7).ticks],
                         ["2⁴", "2⁵", "2⁶", "2⁷"])

    def test_linear_axes_have_round_ticks_around_all_values(self):
        axis = Axis("linear", [0, 7.2], 7)
        self.assertEqual([axis.label(t) for t in axis.ticks], ["0", "2", "4", "6", "8"])
        axis = Axis("linear", [-0.13, 0.31], 7)
        self.assertEqual([axis.label(t) for t in axis.ticks], ["-0.2", "-0.1", "0", "0.1", "0.2", "0.3", "0.4"])

    def test_axes_have_a_few_ticks_and_contain_every_value(self):
        for kind in ("log2", "log10", "linear"):
            for low, high in [(1, 1), (1, 2), (1, 1e40), (3e-300, 1e300), (7, 1e4), (1e-9, 2e-9), (1e5, 1e5), (9, 15)]:
                axis = Axis(kind, [low, high], 7)
                self.assertGreaterEqual(len(axis.ticks), 2, (kind, low, high))
                self.assertLessEqual(len(axis.ticks), 9, (kind, low, high))
                for v in (low, high):
                    self.assertTrue(-1e-9 <= axis.place(axis.scaled(v)) <= 1 + 1e-9, (kind, low, high))


class Figures(unittest.TestCase):
    def test_equal_steps_of_a_scale_have_equal_distances(self):
        for kind, x in (("log2", [1, 2, 4]), ("log10", [1, 10, 100]), ("linear", [0, 5, 10])):
            for f in (figure([Series("a", x, [1, 10, 100], "#000", ())], x_kind=kind),
                      figure([Series("a", x, [1, 10, 100], "#000", ())], x_kind=kind, points=True)):
                (x1, y1), (x2, y2), (x3, y3) = circles(svg(f))[:3]
                self.assertAlmostEqual(x2 - x1, x3 - x2, delta=0.2)
                self.assertAlmostEqual(y2 - y1, y3 - y2, delta=0.2)
                self.assertLess(y2, y1)

    def test_values_without_a_place_are_left_out_and_break_the_line(self):
        picture = svg(figure([Series("a", [1, 2, 4, 8], [1, -1, None, 3], "#000", ())]))
        self.assertEqual(len(circles(picture)), 2)
        self.assertIn("M", re.findall(r'<path d="(M[^"]*)" fill="none"', picture)[0][1:])
        self.assertEqual(len(circles(svg(figure([Series("a", [1, 2], [1, 0], "#000", ())], y_kind="linear")))), 2)

    def test_a_logarithmic_axis_has_0_below_all_other_values(self):
        picture = svg(figure([Series("a", [1, 2, 4], [1e-3, 0, 1], "#000", ())]))
        (_, y1), (_, zero), (_, y2) = circles(picture)
        self.assertTrue(zero > y1 > y2)
        self.assertEqual(texts(picture)[:3], ["0", "10⁻³", "10⁻²"])
        self.assertIn(">0</text>", svg(figure([Series("a", [1, 2], [0, 0], "#000", ())])))

    def test_a_faint_line_has_its_dash_and_what_the_legend_says_of_it(self):
        bounds = [Series(f"bound {dash}", [1, 2], [3, 4], "#123456", (), dash, faint=True, key=key)
                  for dash, key in (("solid", ""), ("dash", "rigorous bound"))]
        f = figure(bounds)
        self.assertEqual([(t["line"]["dash"], t.get("key")) for t in f.plotly()["traces"]],
                         [("dot", None), ("dash", "rigorous bound")])
        self.assertEqual(re.findall('stroke-dasharray="([^"]+)"', svg(f)), ["2 3", "7 4"])

    def test_points_have_hover_texts(self):
        f = figure([Series("tree", [1e-9, 2.5], [3, 4], "#123456", (), symbol="diamond", text=["<a>", "b"]),
                    Series("frontier", [1e-9, 2.5], [3, 4], "#123456", (), faint=True)], points=True, x_kind="log10")
        tips = [n.firstChild.data for n in xml.dom.minidom.parseString(svg(f)).getElementsByTagName("title")]
        self.assertEqual(tips, ["A figure", "<a>", "b"])
        spec = json.loads(script_json(f.plotly()))
        self.assertEqual((spec["shape"], spec["kinds"]), ("points", ["log10", "log10"]))
        self.assertEqual([t["mode"] for t in spec["traces"]], ["markers", "lines"])
        self.assertEqual(spec["traces"][0]["hovertext"], ["<a>", "b"])

    def test_a_long_legend_of_points_ends_within_the_picture(self):
        many = figure([Series(f"method {i}", [1, 2], [1, 2], "#000", ()) for i in range(40)], points=True)
        picture = xml.dom.minidom.parseString(svg(many))
        height = float(picture.documentElement.getAttribute("viewBox").split()[3])
        self.assertLess(max(float(t.getAttribute("y")) for t in picture.getElementsByTagName("text")), height)

    def test_every_symbol_can_be_drawn(self):
        for symbol in style.SYMBOLS:
            picture = svg(figure([Series("a", [1, 2], [1, 2], "#000", (), symbol=symbol)], points=True))
            self.assertNotIn("nan", xml.dom.minidom.parseString(picture).toxml())

    def test_a_figure_without_points_is_empty(self):
        self.assertEqual(svg(figure([Series("a", [1, 2], [None, -1], "#000", ())])), "")

    def test_tiles_are_links_in_the_page_and_parts_of_one_picture_elsewhere(self):
        pictures = [f'<svg viewBox="0 0 720 {height}"><path d="M0 0L{height} 1" stroke="currentColor"/></svg>'
                    for height in (90, 300, 90, 90)]
        f = figure([], tiles=[Tile(f"tile-{i}", f"Title {i}", f"text {i}", p) for i, p in enumerate(pictures)])
        shown = page.figure(f)
        for i, picture in enumerate(pictures):
            self.assertIn(f'<div class=tile id="tile-{i}"><a href="#tile-{i}">Title {i}</a>', shown)
            self.assertIn(picture, shown)
        self.assertNotIn("<script", shown)
        both = xml.dom.minidom.parseString(svg(f))
        inner = [node for node in both.getElementsByTagName("svg") if node.getAttribute("x")]
        self.assertEqual(len(inner), 4)
        self.assertEqual([node.getAttribute("x") for node in inner[::3]], ["0.0", "0.0"], "three in a row")
        self.assertGreater(float(inner[3].getAttribute("y")), float(inner[1].getAttribute("y")) + 300 / 720 * 220)
        self.assertNotIn("currentColor", on_paper(svg(f)))

    def test_labels_of_ticks_and_axes(self):
        f = figure([Series("a line", [1, 4], [1, 100], "#000", ())])
        self.assertEqual(texts(svg(f)), ["10⁰", "10¹", "10²", "2⁰", "2¹", "2²", "x, units", "y, units", "a line"])

    def test_bars_are_in_order_and_as_long_as_their_values(self):
        f = figure([Series("a", [1.0, 4.0], ["small", "large"], "#000", (), text=["one", "four"]),
                    Series("b", [2.0], ["middle"], "#111", (), text=["two"])], bars=True)
        picture = svg(f)
        self.assertEqual(texts(picture), [*"01234", "middle", "two", "large", "four", "small", "one", "x, units"])
        bars = [tuple(map(float, bar)) for bar in re.findall(r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)"', picture)]
        (left, y1, middle), (_, y2, large), (_, y3, small) = bars
        self.assertTrue(y1 < y2 < y3)
        self.assertEqual([middle / large, small / large, left + large], [0.5, 0.25, 650])
        ends = [float(x) for x in re.findall(r'<text x="([^"]+)" y="[^"]+" text-anchor="start"', picture)]
        self.assertEqual(ends, [left + width + 6 for width in (middle, large, small)])

    def test_dots_are_where_bars_would_end(self):
        some = [Series("a", [1.0, 4.0], ["small", "large"], "#000", (), text=["one", "four"])]
        dots = svg(figure(some, bars=True, dots=True))
        self.assertNotIn("<rect", dots)
        ends = re.findall(r'<rect x="([^"]+)" y="[^"]+" width="([^"]+)"', svg(figure(some, bars=True)))
        self.assertEqual([x for x, _ in circles(dots)], [float(x) + float(width) for x, width in ends])
        self.assertEqual(figure(some, bars=True, dots=True).plotly()["traces"][0]["mode"], "markers+text")

    def test_a_long_name_of_a_bar_fits_beside_it(self):
        name = "131,072 columns of 4,096 fp32"
        picture = svg(figure([Series("a", [1.0], [name], "#000", (), text=["1"])], bars=True))
        [left] = re.findall(r'<rect x="([^"]+)"', picture)
        self.assertGreater(float(left), 6.5 * len(name))

    def test_bars_of_length_0_are_drawn(self):
        f = figure([Series("a", [0.0], ["none"], "#000", (), text=["0"])], bars=True)
        self.assertIn('width="0.0"', svg(f))

    def test_initial_choices_have_series_even_if_a_menu_is_empty(self):
        f = Figure("f", "A figure", [("On", ["here"]), ("Show", []), ("Of", ["a", "b"])],
                   [Series("a", [1], [1], "#000", ("here", None, "b"))], "x", {None: "y"})
        self.assertEqual(f.chosen(), ("here", "", "b"))
        self.assertEqual(len(circles(svg(f))), 1)
        self.assertEqual(Figure("f", "A figure", [("Of", ["a"])], [], "x", {None: "y"}).chosen(), ("",))

    def test_description_and_finding_are_in_the_page_the_text_and_the_notebook(self):
        f = figure([Series("a", [1, 2], [1, 2], "#000", ())], finding="It <grows>.", description="A description.")
        self.assertIn("<p class=finding>It &lt;grows&gt;.</p><details class=reading><summary>How to read this figure</summary>"
                      "<p>A description.</p></details>", page.figure(f))
        self.assertNotIn("<p class=finding>", page.figure(figure([])))
        s = section.Section("s", "A section", "A question?", "About it.", "make it", findings=["Found."], figures=[f])
        self.assertIn("- *A figure*: It &lt;grows&gt;.", list(markdown.section(s)))


class Style(unittest.TestCase):
    def test_every_accumulator_has_its_own_colour(self):
        with contextlib.redirect_stdout(io.StringIO()) as listed:
            tool.samesum("list", "sum/*")
        if "is not built yet" in listed.getvalue():
            self.skipTest(listed.getvalue())
        methods = re.findall(r"^\S+/\S+@\w+", listed.getvalue(), re.M)
        self.assertGreater(len(methods), 40)
        for method in methods:
            self.assertIn(phrases.accumulator(method), style.COLOURS, method)
            self.assertIn(phrases.order(method), style.ORDERS, method)
        self.assertEqual(len(set(style.COLOURS.values())), len(style.COLOURS))

    def test_a_point_is_hollow_if_its_method_promises_less_than_the_same_bits_everywhere(self):
        hollow = [p for p in section.PROMISES if style.point("tree/plain/fp32@cpu", p, [])[1] == "square-open"]
        self.assertEqual(hollow, ["none", "run_to_run"])
        pictures = [Drawing(9, 9, "") for _ in range(2)]
        for picture, symbol in zip(pictures, ("square", "square-open")):
            picture.symbol(4, 4, 3, symbol, "#123456")
        self.assertEqual(['fill-opacity="0"' in picture.done() for picture in pictures], [False, True])

    def test_lines_stand_out_on_white_and_on_dark_pages(self):
        css = (ROOT / "notebooks/page.css").read_text()
        dark = [re.findall(f"--{name}: (#[0-9a-f]+)", css)[1] for name in ("paper", "box")]
        colours = [*style.COLOURS.values(), *style.PEERS]
        for colour in colours:
            for seen, paper in [(colour, "#ffffff"), *((style.ON_DARK.get(colour, colour), paper) for paper in dark)]:
                self.assertGreaterEqual(contrast(seen, paper), 3, (seen, paper))
        self.assertEqual(len({style.ON_DARK.get(colour, colour) for colour in colours}), len(set(colours)))

    def test_menus_have_a_choice_even_if_every_method_belongs_to_all_groups(self):
        self.assertEqual(style.all_groups(["exact/fp32@cpu", "read"]), ["all"])
        self.assertEqual(style.all_groups(["tree/plain/fp32@cpu", "serial/plain/fp32@cpu"])[0], "order tree")


def contrast(a, b):
    """Contrast ratio of two colours (WCAG 2.1)."""
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted([luminance(a), luminance(b)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


class Phrases(made_up.SentenceTest):
    def test_assertions_on_sentences_compare_whole_numbers(self):
        for sentence, expected in (("all 3 of 12.", "3 … 12."), ("at 8.", "at 8"), ("8 kernels, 9 sums", "8 … 9 …")):
            self.assert_sentences([sentence], expected)
        for sentence, expected in (("80 of x", "8 … x"), ("0.8 of x", "8 … x"), ("1,008 of x", "8 … x"),
                                   ("3 of 120", "3 … 12"), ("8.5", "8"), ("9 sums, 8 kernels", "8 … 9")):
            self.assert_no_sentences([sentence], expected)

    def test_singular_and_plural(self):
        for n, all, expected in ((1, 1, "the only file is"), (0, 1, "0 of 1 file is"), (0, 2, "neither of the two files is"),
                                 (1, 2, "1 of 2 files is"), (2, 2, "both files are"),
                                 (1200, 3000, "1,200 of 3,000 files are")):
            self.assertEqual(f"{phrases.out_of(n, all, 'file')} {phrases.verb(n, all)}", expected)
        self.assertEqual([phrases.out_of(*counts) for counts in ((0, 2), (2, 2), (1, 1), (0, 3))],
                         ["neither", "both", "the only one", "none of 3"])
        self.assertEqual([phrases.plural(n, "library", "libraries") for n in (1, 2)], ["1 library", "2 libraries"])

    def test_number_pairs_have_the_digits_that_tell_them_apart(self):
        for x, y, expected in ((256.0, 1048576.0, ("256", "1048576")), (1.0, 1.00000001, ("1", "1.00000001")),
                               (1.02, 1.2, ("1.02", "1.2")), (-1e300, 2.5e8, ("-1e+300", "2.5e+08"))):
            self.assertEqual(phrases.number_pair(x, y), expected)

    def test_exceptions_end_a_sentence(self):
        self.assertEqual([phrases.exceptions(iter(names)) for names in ([], ["a", "b"])], [".", "; exceptions: a, b."])

    def test_ulps_have_a_singular(self):
        self.assertEqual([phrases.ulps(x) for x in (1.0, 0.25, 4200.0)], ["1 ulp", "0.25 ulps", "4,200 ulps"])

    def test_powers_of_ten_above_and_below_1(self):
        self.assertEqual([phrases.power_of_ten(x) for x in (1, 1e12, 1e-3, 9.9e5)], ["1", "10¹²", "10⁻³", "10⁶"])


class Rows(unittest.TestCase):
    def test_the_place_of_a_row(self):
        for r, expected in (({"method": "tree/plain/fp32@cuda"}, "H200, GPU"),
                            ({"method": "cub/fp32@peer"}, "H200, GPU"),
                            ({"method": "exact/fp32@cpu"}, "H200, CPU"),
                            ({"method": "read", "threads": 0}, "H200, GPU"),
                            ({"method": "read", "threads": 1}, "H200, CPU, 1 thread"),
                            ({"method": "read", "threads": 4}, "H200, CPU, 4 threads")):
            self.assertEqual(section.place(source("ladder", [], "H200"), r), expected)

    def test_a_machine_that_is_named_after_its_gpu_is_the_host_of_its_cpu(self):
        measured = dataclasses.replace(source("ladder", [], "H200"),
                                       header={"provenance": made_up.PROVENANCE | {
            "gpu": "NVIDIA H200, driver", "cpu": "Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz"}})
        methods = ["exact/fp32@cpu", "exact/fp32@cuda", "cub/run_to_run/fp32@peer"]
        self.assertEqual([section.place(measured, {"method": m}) for m in methods],
                         ["H200 host, Xeon Platinum 8480+", "H200, GPU", "H200, GPU"])
        self.assertEqual([measured.place_of(m) for m in methods], ["H200 host", "H200", "H200"])

    def test_the_short_name_of_a_processor(self):
        for cpu, name in (("Intel(R) Xeon(R) Processor", "Xeon"), ("AMD EPYC 9654 96-Core Processor", "EPYC 9654"),
                          ("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", "Core i7-8700K"), ("Neoverse-V2", "Neoverse-V2"),
                          ("Intel(R) Processor", "CPU")):
            of_gpu, named = ({"provenance": made_up.PROVENANCE | {"cpu": cpu, "gpu": gpu}} for gpu in ("A H200", None))
            here = source("ladder", [], "H200")
            self.assertEqual(dataclasses.replace(here, header=of_gpu).processor, name)
            self.assertEqual(dataclasses.replace(here, header=named).processor, "CPU")

    def test_an_error_as_large_as_the_result_is_said_in_words(self):
        for x, format, text in ((2.0**24, "fp32", "no digit right"), (2.0**24 - 1, "fp32", "1.7e+07"),
                                (256.0, "bf16", "no digit right"), (256.0, "fp16", "260"), (4.2e42, None, "no digit right"),
                                (1e9, None, "1e+09"), (1.0, "fp16", "1"), (None, "fp32", "-")):
            self.assertEqual(phrases.error_in_ulps(x, format), text)
        self.assertEqual([phrases.ulps(x, "fp32") for x in (1.0, 20.0, 4.2e42)], ["1 ulp", "20 ulps", "no digit right"])

    def test_a_share_above_one_tenth_more_than_reading_is_from_a_cache(self):
        for part, text in ((0.042, "4.2%"), (0.5, "50%"), (0.984, "98.4%"), (0.9999, "100.0%"), (1.004, "100%"),
                           (1.08, "108%"), (1.12, "112% (the data came from a cache)"),
                           (3.31, "331% (the data came from a cache)")):
            self.assertEqual(phrases.share(part), text)
        self.assertEqual(phrases.share(1.06, " of reading"), "106% of reading")

    def frontier(self, rows, noise=0.0):
        """The frontier of rows (cost, error, promise), of which costs that differ by `noise` or less are equal."""
        found = section.frontier([{"cost": c, "error": e, "promise": p} for c, e, p in rows], lambda r: r["cost"],
                                 lambda r: r["error"], lambda r, other: r["cost"] < other["cost"] - noise)
        return [(r["cost"], r["error"], r["promise"]) for r in found]

    def test_the_frontier_has_the_rows_that_no_other_row_dominates(self):
        rows = [(c, e, "everywhere") for c, e in [(3, 1), (1, 9), (2, 9), (2, 4), (4, 1), (5, 0)]]
        self.assertEqual(self.frontier(rows), [rows[1], rows[3], rows[0], rows[5]])

    def test_noise_puts_no_row_on_the_frontier(self):
        exact, other, loose = (5.0, 0, "order_free"), (4.9, 0, "everywhere"), (4.95, 3, "none")
        self.assertEqual(self.frontier([loose, other, exact], 0.2), [exact], "the strongest promise of equal rows")
        self.assertEqual(self.frontier([loose, other, exact]), [other])
        self.assertEqual(self.frontier([(4, 3, "none"), other, exact], 0.2), [(4, 3, "none"), exact])

    def test_correctly_rounded_results_are_counted_without_peers(self):
        rows = [{"method": method, "bits": bits, "truth_bits": "0x1"} for method, bits in (
            ("exact/fp32@cpu", "0x1"), ("tree/plain/fp32@cpu", "0x1"), ("tree/plain/fp32@cuda", "0x2"),
            ("loop/fp32@peer", "0x1"))]
        self.assertEqual(list(section.exactness_findings(rows, ", here")), [
            "exact is the correctly rounded sum in the only result, here; samesum's other methods round correctly in 1 "
            "of 2."])
        rows[0]["bits"] = "0x2"
        self.assertIn("in 0 of 1 result.", next(section.exactness_findings(rows[:1])))
        self.assertEqual(list(section.exactness_findings(rows[1:])), [])

    def test_errors_beyond_bounds_and_inexact_results_of_exact_are_failures(self):
        good = {"method": "exact/fp32@cpu", "within_bound": True, "absolute_error": 2.0, "bound": 1.0, "bits": "0x1",
                "truth_bits": "0x1"}
        self.assertEqual(list(section.result_failures(good)), [])
        self.assertEqual(list(section.result_failures(good | {"within_bound": False})), ["the error 2 exceeds its "
                                                                                         "bound 1"])
        self.assertEqual(list(section.result_failures(good | {"bits": "0x2"})), ["returned 0x2, but the exact result "
                                                                                 "rounds to 0x1"])
        self.assertEqual(list(section.result_failures(good | {"bits": "0x2", "method": "tree/plain/fp32@cpu"})), [])


if __name__ == "__main__":
    unittest.main()
