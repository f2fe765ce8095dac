"""Figures are drawn where their values say, by plotly and as SVG.

Run by ctest, or: build/venv/bin/python tests/notebooks/figure_test.py
"""

import json
import pathlib
import re
import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import page  # noqa: E402
from figure import Axis, Figure, Series, script_json, svg  # noqa: E402


def figure(series, **more):
    return Figure("f", "A figure", [], series, "x, units", {None: "y, units"}, **more)


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
        import style
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


if __name__ == "__main__":
    unittest.main()
