"""Figures are drawn where their values say, by plotly and as SVG.

Run by ctest, or: build/venv/bin/python tests/notebooks/figure_test.py
"""

import contextlib
import io
import json
import re
import unittest
import xml.dom.minidom

import made_up
from made_up import ROOT
import markdown
import page
import section
import style
import tool
import words
from figure import Axis, Figure, Series, script_json, svg


def figure(series, **more):
    return Figure("f", "A figure", [], series, "x, units", {None: "y, units"}, **more)


def texts(picture):
    return [node.firstChild.data if node.firstChild else ""
            for node in xml.dom.minidom.parseString(picture).getElementsByTagName("text")]


def circles(picture):
    return [tuple(map(float, at)) for at in re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"', picture)]


class Axes(unittest.TestCase):
    def test_of_logarithms_have_ticks_at_whole_powers(self):
        self.assertEqual([Axis("log10", [0.02, 300], 7).label(t) for t in Axis("log10", [0.02, 300], 7).ticks],
                         ["10⁻²", "10⁻¹", "10⁰", "10¹", "10²", "10³"])
        self.assertEqual([Axis("log2", [16, 128], 7).label(t) for t in Axis("log2", [16, 128], 7).ticks],
                         ["2⁴", "2⁵", "2⁶", "2⁷"])

    def test_that_are_linear_have_round_ticks_around_all_values(self):
        axis = Axis("linear", [0, 7.2], 7)
        self.assertEqual([axis.label(t) for t in axis.ticks], ["0", "2", "4", "6", "8"])
        axis = Axis("linear", [-0.13, 0.31], 7)
        self.assertEqual([axis.label(t) for t in axis.ticks], ["-0.2", "-0.1", "0", "0.1", "0.2", "0.3", "0.4"])

    def test_never_have_too_many_ticks_and_hold_every_value(self):
        for kind in ("log2", "log10", "linear"):
            for low, high in [(1, 1), (1, 2), (1, 1e40), (3e-300, 1e300), (7, 1e4), (1e-9, 2e-9)]:
                axis = Axis(kind, [low, high], 7)
                self.assertLessEqual(len(axis.ticks), 9, (kind, low, high))
                for v in (low, high):
                    self.assertTrue(-1e-9 <= axis.place(axis.scaled(v)) <= 1 + 1e-9, (kind, low, high))


class Figures(unittest.TestCase):
    def test_place_equal_steps_of_their_scale_equally_far_apart(self):
        for kind, x in (("log2", [1, 2, 4]), ("log10", [1, 10, 100]), ("linear", [0, 5, 10])):
            for f in (figure([Series("a", x, [1, 10, 100], "#000", ())], x_kind=kind),
                      figure([Series("a", x, [1, 10, 100], "#000", ())], x_kind=kind, points=True)):
                (x1, y1), (x2, y2), (x3, y3) = circles(svg(f))[:3]
                self.assertAlmostEqual(x2 - x1, x3 - x2, delta=0.2)
                self.assertAlmostEqual(y2 - y1, y3 - y2, delta=0.2)
                self.assertLess(y2, y1)

    def test_leave_out_what_a_logarithm_has_no_place_for_and_break_the_line_there(self):
        picture = svg(figure([Series("a", [1, 2, 4, 8], [1, 0, None, 3], "#000", ())]))
        self.assertEqual(len(circles(picture)), 2)
        self.assertIn("M", re.findall(r'<path d="(M[^"]*)" fill="none"', picture)[0][1:])
        self.assertEqual(len(circles(svg(figure([Series("a", [1, 2], [1, 0], "#000", ())], y_kind="linear")))), 2)

    def test_of_points_say_what_each_point_is(self):
        f = figure([Series("tree", [1e-9, 2.5], [3, 4], "#123456", (), symbol="diamond", text=["<a>", "b"]),
                    Series("frontier", [1e-9, 2.5], [3, 4], "#123456", (), faint=True)], points=True, x_kind="log10")
        tips = [n.firstChild.data for n in xml.dom.minidom.parseString(svg(f)).getElementsByTagName("title")]
        self.assertEqual(tips, ["A figure", "<a>", "b"])
        spec = json.loads(script_json(f.plotly()))
        self.assertEqual((spec["shape"], spec["kinds"]), ("points", ["log10", "log10"]))
        self.assertEqual([t["mode"] for t in spec["traces"]], ["markers", "lines"])
        self.assertEqual(spec["traces"][0]["hovertext"], ["<a>", "b"])

    def test_of_points_draw_every_symbol(self):
        for symbol in style.SYMBOLS:
            picture = svg(figure([Series("a", [1, 2], [1, 2], "#000", (), symbol=symbol)], points=True))
            self.assertNotIn("nan", xml.dom.minidom.parseString(picture).toxml())

    def test_with_nothing_to_show_are_no_picture(self):
        self.assertEqual(svg(figure([Series("a", [1, 2], [None, 0], "#000", ())])), "")

    def test_that_are_pictures_stand_in_the_page_as_they_are(self):
        picture = '<svg viewBox="0 0 1 1"><path d="M0 0L1 1"/></svg>'
        f = figure([], picture=picture)
        self.assertEqual(svg(f), picture)
        self.assertIn(picture, page.figure(f))
        self.assertNotIn("<script", page.figure(f))

    def test_tell_their_ticks_and_what_their_axes_are(self):
        f = figure([Series("a line", [1, 4], [1, 100], "#000", ())])
        self.assertEqual(texts(svg(f)), ["10⁰", "10¹", "10²", "2⁰", "2¹", "2²", "x, units", "y, units", "a line"])

    def test_of_bars_have_them_in_their_order_and_as_long_as_their_values(self):
        f = figure([Series("a", [1.0, 4.0], ["small", "large"], "#000", (), text=["one", "four"]),
                    Series("b", [2.0], ["middle"], "#111", (), text=["two"])], bars=True)
        picture = svg(f)
        self.assertEqual(texts(picture), ["middle", "two", "large", "four", "small", "one", "x, units"])
        bars = [tuple(map(float, bar)) for bar in re.findall(r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)"', picture)]
        (left, y1, middle), (_, y2, large), (_, y3, small) = bars
        self.assertTrue(y1 < y2 < y3)
        self.assertEqual([middle / large, small / large, left + large], [0.5, 0.25, 650])
        ends = [float(x) for x in re.findall(r'<text x="([^"]+)" y="[^"]+" text-anchor="start"', picture)]
        self.assertEqual(ends, [left + width + 6 for width in (middle, large, small)])

    def test_of_bars_that_are_all_0_are_drawn(self):
        f = figure([Series("a", [0.0], ["none"], "#000", (), text=["0"])], bars=True)
        self.assertIn('width="0.0"', svg(f))

    def test_begin_with_what_there_is_even_where_no_choice_fits(self):
        f = Figure("f", "A figure", [("On", ["here"]), ("Show", []), ("Of", ["a", "b"])],
                   [Series("a", [1], [1], "#000", ("here", None, "b"))], "x", {None: "y"})
        self.assertEqual(f.chosen(), ("here", "", "b"))
        self.assertEqual(len(circles(svg(f))), 1)
        self.assertEqual(Figure("f", "A figure", [("Of", ["a"])], [], "x", {None: "y"}).chosen(), ("",))

    def test_say_how_they_read_in_the_page_the_text_and_the_notebook(self):
        f = figure([Series("a", [1, 2], [1, 2], "#000", ())], reading="It <grows>.", note="A note.")
        self.assertIn("<p class=reading>It &lt;grows&gt;.</p><p class=note>A note.</p>", page.figure(f))
        self.assertIn("<div>It &lt;grows&gt;.</div><div>A note.</div>", f._repr_html_())
        self.assertNotIn("<p class=reading>", page.figure(figure([])))
        s = section.Section("s", "A section", "About it.", "make it", findings=["Found."], figures=[f])
        self.assertIn("- *A figure*: It &lt;grows&gt;.", list(markdown.section(s)))


class Style(unittest.TestCase):
    def test_has_another_colour_for_every_accumulator_that_there_is(self):
        with contextlib.redirect_stdout(io.StringIO()) as listed:
            tool.samesum("list", "sum/*")
        if "is not built yet" in listed.getvalue():
            self.skipTest(listed.getvalue())
        methods = re.findall(r"^\S+/\S+@\w+", listed.getvalue(), re.M)
        self.assertGreater(len(methods), 40)
        for method in methods:
            self.assertIn(words.accumulator(method), style.COLOURS, method)
            self.assertIn(words.order(method), style.ORDERS, method)
        self.assertEqual(len(set(style.COLOURS.values())), len(style.COLOURS))

    def test_has_a_symbol_for_every_promise(self):
        self.assertEqual(list(style.PROMISES), section.PROMISES)
        self.assertEqual(len(set(style.PROMISES.values())), len(section.PROMISES))
        self.assertEqual(section.SAME_EVERYWHERE, ["everywhere", "order_free"])

    def test_lines_stand_out_from_paper_and_from_a_dark_page(self):
        dark = re.findall("--paper: (#[0-9a-f]+)", (ROOT / "notebooks/page.css").read_text())[1]
        for colour in [*style.COLOURS.values(), *style.PEERS]:
            for paper in ("#ffffff", dark):
                self.assertGreaterEqual(contrast(colour, paper), 3, (colour, paper))

    def test_menus_have_a_choice_even_where_all_belongs_to_every_group(self):
        self.assertEqual(style.all_groups(["exact/fp32@cpu", "read"]), ["all"])
        self.assertEqual(style.all_groups(["tree/plain/fp32@cpu", "serial/plain/fp32@cpu"])[0], "order tree")


def contrast(a, b):
    """As WCAG 2.1 defines it."""
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted([luminance(a), luminance(b)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


class Words(made_up.Told):
    def test_of_a_test_are_free_and_its_numbers_are_not(self):
        for sentence, told in (("all 3 of 12.", "3 … 12."), ("at 8.", "at 8"), ("8 kernels, 9 sums", "8 … 9 …")):
            self.assert_tells([sentence], told)
        for sentence, told in (("80 of x", "8 … x"), ("0.8 of x", "8 … x"), ("1,008 of x", "8 … x"),
                               ("3 of 120", "3 … 12"), ("8.5", "8"), ("9 sums, 8 kernels", "8 … 9")):
            self.assert_silent([sentence], told)

    def test_are_right_for_one_and_for_many(self):
        for n, all, told in ((1, 1, "1 of 1 file is"), (0, 1, "0 of 1 file is"), (0, 2, "none of 2 files are"),
                             (1, 2, "1 of 2 files is"), (2, 2, "all 2 files are"),
                             (1200, 3000, "1,200 of 3,000 files are")):
            self.assertEqual(f"{words.of(n, all, 'file')} {words.verb(n, all)}", told)
        self.assertEqual(words.of(2, 2), "all 2")
        self.assertEqual([words.plural(n, "library", "libraries") for n in (1, 2)], ["1 library", "2 libraries"])

    def test_two_numbers_have_the_digits_that_tell_them_apart(self):
        for x, y, told in ((256.0, 1048576.0, ("256", "1048576")), (1.0, 1.00000001, ("1", "1.00000001")),
                           (1.02, 1.2, ("1.02", "1.2")), (-1e300, 2.5e8, ("-1e+300", "2.5e+08"))):
            self.assertEqual(words.apart(x, y), told)

    def test_have_powers_of_ten_above_and_below_1(self):
        self.assertEqual([words.power_of_ten(x) for x in (1, 1e12, 1e-3, 9.9e5)], ["1", "10¹²", "10⁻³", "10⁶"])


class Rows(unittest.TestCase):
    def test_are_told_where_they_were_measured(self):
        for r, told in (({"method": "tree/plain/fp32@cuda"}, "H200, GPU"), ({"method": "cub/fp32@peer"}, "H200, GPU"),
                        ({"method": "exact/fp32@cpu"}, "H200, CPU"),
                        ({"method": "read", "threads": 0}, "H200, GPU"),
                        ({"method": "read", "threads": 1}, "H200, 1 thread"),
                        ({"method": "read", "threads": 4}, "H200, 4 threads")):
            self.assertEqual(section.place("H200", r), told)

    def test_on_the_frontier_are_those_than_which_none_is_cheaper_and_no_more_wrong(self):
        rows = [(3, 1), (1, 9), (2, 9), (2, 4), (4, 1), (5, 0)]
        self.assertEqual(section.frontier(rows, lambda r: r[0], lambda r: r[1]), [(1, 9), (2, 4), (3, 1), (5, 0)])

    def test_of_exact_and_of_others_are_counted_and_those_of_peers_are_not(self):
        rows = [{"method": method, "bits": bits, "truth_bits": "0x1"} for method, bits in (
            ("exact/fp32@cpu", "0x1"), ("tree/plain/fp32@cpu", "0x1"), ("tree/plain/fp32@cuda", "0x2"),
            ("loop/fp32@peer", "0x1"))]
        self.assertEqual(list(section.exactness(rows, ", here")), [
            "exact is the correctly rounded sum in 1 of 1 result, here; samesum's other methods are in 1 of 2."])
        rows[0]["bits"] = "0x2"
        self.assertIn("in 0 of 1 result.", next(section.exactness(rows[:1])))
        self.assertEqual(list(section.exactness(rows[1:])), [])

    def test_are_failures_beyond_their_bounds_and_where_exact_is_not(self):
        good = {"method": "exact/fp32@cpu", "within_bound": True, "absolute_error": 2.0, "bound": 1.0, "bits": "0x1",
                "truth_bits": "0x1"}
        self.assertEqual(list(section.broken(good)), [])
        self.assertEqual(list(section.broken(good | {"within_bound": False})), ["the error 2 exceeds its bound 1"])
        self.assertEqual(list(section.broken(good | {"bits": "0x2"})), ["gave 0x2, but the exact sum rounds to 0x1"])
        self.assertEqual(list(section.broken(good | {"bits": "0x2", "method": "tree/plain/fp32@cpu"})), [])


if __name__ == "__main__":
    unittest.main()
