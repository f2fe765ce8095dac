"""Figures: lines, points or bars that menus select, as plotly traces and as SVG, or small finished pictures."""

import dataclasses
import html
import json
import math
import re

from phrases import superscript

DIAGONAL = 0.5**0.5
# (turn from the top, relative distance from the centre) of each corner
POLYGONS = {"square": [((2 * k + 1) / 8, 1.2) for k in range(4)], "diamond": [(k / 4, 1.3) for k in range(4)],
            "triangle-up": [(k / 3, 1.3) for k in range(3)], "triangle-down": [(k / 3 + 0.5, 1.3) for k in range(3)],
            "star": [(k / 10, 0.6 if k % 2 else 1.5) for k in range(10)],
            "pentagon": [(k / 5, 1.2) for k in range(5)], "hexagon": [(k / 6, 1.2) for k in range(6)]}
STROKES = {"cross": [(1, 0), (0, 1)], "x": [(DIAGONAL, DIAGONAL), (DIAGONAL, -DIAGONAL)]}
SVG_DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "11 4"}


@dataclasses.dataclass
class Series:
    """One line, one cloud of points, or one bar for each x.

    `on` has the choice of each menu that shows the series; None stands for every choice. `text` holds the label of
    each bar, or the hover text of each point.
    """

    name: str
    x: list
    y: list
    colour: str
    on: tuple
    dash: str = "solid"
    symbol: str = "circle"
    faint: bool = False  # a bound or a frontier: thin, dotted if its dash is solid, without a legend entry
    key: str = ""  # what faint lines with this dash are, once in the legend for all of them
    text: list = None
    names: list = None  # of the methods of a bar that stands for several


@dataclasses.dataclass
class Tile:
    """One of several small pictures. Its id is a link to it."""

    id: str
    title: str
    text: str
    picture: str  # a finished SVG


@dataclasses.dataclass
class Figure:
    id: str
    title: str
    menus: list  # (label, [choices]), the preferred choice first
    series: list
    x_title: str
    y_titles: dict  # by choice of the last menu; None for all
    description: str = ""  # what the figure shows and what its axes are
    finding: str = ""  # a sentence computed from the results
    bars: bool = False
    dots: bool = False  # with bars: a mark at the end instead of a bar, for values whose 0 is no origin
    points: bool = False  # a scatter plot: only faint series are lines
    x_kind: str = "log2"  # or log10, linear
    y_kind: str = "log10"
    tiles: list = dataclasses.field(default_factory=list)  # small pictures, instead of menus and series
    broad_tiles: bool = False  # the pictures hold text
    across: int = 3  # tiles of a row on paper
    initial: dict = dataclasses.field(default_factory=dict)  # {menu: initial choice}

    def chosen(self):
        """The initial choice of each menu: that of `initial`, or else the first with series for the menus before it."""
        choice, series = (), self.series
        for i, (label, values) in enumerate(self.menus):
            fits = {s.on[i] for s in series}
            first = [self.initial[label]] if label in self.initial else []
            choice += (next((v for v in first + values if v in fits or None in fits), ""),)
            series = [s for s in series if s.on[i] in (None, choice[i])]
        return choice

    def choose(self, choices):
        """A copy of the figure with these initial choices, {menu: choice}, and the first ones of the other menus."""
        menus = dict(self.menus)
        for label, choice in choices.items():
            if choice not in menus.get(label, []):
                raise ValueError(f"no choice {choice!r} in a menu {label!r}; the menus are {menus}")
        return dataclasses.replace(self, initial=choices)

    def _ipython_display_(self):
        """Shows the picture in a notebook, as an image that repository pages show too, and the text below it."""
        import IPython.display

        about = [f"**{self.title}**", ", ".join(self.chosen())]
        about += [f"*{label}*: {', '.join(values)}" for label, values in self.menus if len(values) > 1]
        if svg(self):
            IPython.display.display(IPython.display.SVG(on_paper(svg(self))))
        IPython.display.display(IPython.display.Markdown("\n\n".join(
            filter(None, [*about, self.finding, self.description]))))

    def matching(self, choice):
        return [s for s in self.series if all(a in (None, b) for a, b in zip(s.on, choice))]

    def y_title(self, choice):
        return self.y_titles.get(choice[-1] if choice else None) or self.y_titles[None]

    def plotly(self):
        """The traces, menus and axes as JSON for page.js, which draws them."""
        return {"menus": [{"label": label, "values": values} for label, values in self.menus],
                "start": self.chosen(), "dots": self.dots,
                "shape": "bars" if self.bars else "points" if self.points else "lines",
                "x": self.x_title, "y": self.y_titles, "kinds": [self.x_kind, self.y_kind],
                "traces": [trace(self, s) for s in self.series]}


def with_several_bars(figure):
    """The figure with only the choices of its menus that show several bars: a text says what one bar would show."""
    shown = [s.on for s in figure.series]
    series = [s for s in figure.series if shown.count(s.on) > 1]
    menus = [(label, [v for v in values if any(s.on[i] == v for s in series)])
             for i, (label, values) in enumerate(figure.menus)]
    return dataclasses.replace(figure, series=series, menus=menus)


def rounded(x):
    return None if x is None else float(f"{x:.4g}")


def dash(s):
    return "dot" if s.faint and s.dash == "solid" else s.dash


def trace(figure, s):
    if figure.bars:
        return {"on": s.on, "name": ", ".join(s.names or [s.name]), "x": s.x, "y": s.y, "text": s.text} | (
            {"mode": "markers+text", "marker": {"color": s.colour, "size": 10}} if figure.dots else
            {"type": "bar", "orientation": "h", "marker": {"color": s.colour}})
    x = s.x if figure.x_kind == "log2" else [rounded(x) for x in s.x]
    t = {"on": s.on, "name": s.name, "x": x, "y": [rounded(y) for y in s.y]}
    if s.text:
        t["hovertext"] = s.text
    if s.faint:
        return t | {"mode": "lines", "line": {"color": s.colour, "dash": dash(s), "width": 1}, "showlegend": False} | (
            {"key": s.key} if s.key else {})
    t["marker"] = {"symbol": s.symbol, "size": 9 if figure.points else 7, "color": s.colour}
    if figure.points:
        return t | {"mode": "markers"}
    return t | {"mode": "lines+markers", "line": {"color": s.colour, "dash": s.dash, "width": 2}}


# --- SVG, for printing and for readers without scripts ---------------------------------------------------------

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, ROW = 720, 400, 68, 14, 48, 20
LETTER = 6.9  # approximate width of a letter of a label


class Drawing:
    """An SVG under construction, in the colours of the page; on_paper() fixes them."""

    ink, faint, grid = "currentColor", "var(--soft)", "var(--grid)"

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
                      'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">',
                      f"<title>{html.escape(title)}</title>"]

    def add(self, element):
        self.parts.append(element)

    def text(self, x, y, label, anchor="start", size=12, fill=None, more=""):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                 f'fill="{fill or self.ink}"{more}>'
                 f"{html.escape(label)}</text>")

    def line(self, x1, y1, x2, y2, stroke=None):
        self.add(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{stroke or self.grid}"/>')

    def circle(self, x, y, radius, fill, title=""):
        tip = f"<title>{html.escape(title)}</title>" if title else ""
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" fill-opacity="0.85">{tip}</circle>')

    def symbol(self, x, y, radius, kind, fill, title="", filled=0.85):
        """Draws a symbol of plotly: a circle, a polygon, or strokes through the centre. A symbol that is `filled` less
        has an outline."""
        if kind.endswith("-open"):
            kind, filled = kind.removesuffix("-open"), 0
        if kind == "circle" and filled == 0.85:
            return self.circle(x, y, radius, fill, title)
        tip = f"<title>{html.escape(title)}</title>" if title else ""
        outline = f' fill-opacity="{filled}"' + ("" if filled == 0.85 else f' stroke="{fill}" stroke-width="1.6"')
        if kind == "circle":
            return self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"{outline}>{tip}</circle>')
        if kind in STROKES:
            path = "".join(f"M{x - radius * c:.1f} {y - radius * s:.1f}L{x + radius * c:.1f} {y + radius * s:.1f}"
                           for c, s in STROKES[kind])
            return self.add(f'<path d="{path}" stroke="{fill}" stroke-width="2.4">{tip}</path>')
        corners = POLYGONS[kind]
        path = "L".join(f"{x + radius * size * math.sin(math.tau * turn):.1f} "
                        f"{y - radius * size * math.cos(math.tau * turn):.1f}" for turn, size in corners)
        self.add(f'<path d="M{path}Z" fill="{fill}"{outline}>{tip}</path>')

    def done(self):
        return "\n".join(self.parts + ["</svg>"])


def is_drawable(v, kind):
    """Whether an axis of this kind has a place for v. A logarithmic axis has one for 0, below all other values."""
    return v is not None and (kind == "linear" or v >= 0)


class Axis:
    """Maps values to positions from 0 to 1 and selects the ticks. A logarithmic axis has 0 a step below its lowest tick."""

    def __init__(self, kind, values, most):
        self.kind, self.zero = kind, None
        at = [self.scaled(v) for v in values if v or kind == "linear"] or [0.0]
        low, high = min(at), max(at)
        if kind == "log10" or low == high or (kind == "log2" and math.ceil(low) >= math.floor(high)):
            low, high = math.floor(low), math.ceil(high)
            high = max(high, low + 1)
        step = (nice((high - low) / most) if kind == "linear"
                else max(1, math.ceil((math.floor(high) - math.ceil(low)) / most)))
        if kind == "linear":
            low, high = math.floor(low / step) * step, math.ceil(high / step) * step
        self.low, self.high = low, max(high, low + 1e-9)
        self.ticks = [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        if kind != "linear" and 0 in values:
            self.zero = self.low = self.ticks[0] - step
            self.ticks.insert(0, self.zero)

    def scaled(self, v):
        if not v and self.kind != "linear":
            return self.zero
        return {"log2": math.log2, "log10": math.log10, "linear": float}[self.kind](v)

    def place(self, scaled):
        return (scaled - self.low) / (self.high - self.low)

    def label(self, tick):
        return "0" if tick == self.zero else f"{tick:g}" if self.kind == "linear" else self.kind[3:] + superscript(tick)


def nice(step):
    """Smallest 1, 2 or 5 times a power of ten that is at least `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= step * (1 - 1e-9))


def spaced(positions, distance, low, high):
    """Positions near the given ones, in the same order and at least `distance` apart, so that labels do not overlap."""
    placed = []
    for y in positions:
        placed.append(max(y, placed[-1] + distance if placed else low))
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], placed[i + 1] - distance if i + 1 < len(placed) else high)
    return placed


def svg_lines(figure):
    """Lines with labels at their right ends, or points with a legend."""
    shown = figure.matching(figure.chosen())
    points = [(x, y) for s in shown for x, y in zip(s.x, s.y)
              if is_drawable(x, figure.x_kind) and is_drawable(y, figure.y_kind)]
    if not points:
        return ""
    x_axis = Axis(figure.x_kind, [x for x, _ in points], 7)
    y_axis = Axis(figure.y_kind, [y for _, y in points], 7)
    named = [s for s in shown if not s.faint]
    height = max(HEIGHT, 16 * len(named) + 2 * TOP) if figure.points else HEIGHT
    drawing = Drawing(WIDTH, height, figure.title)
    bottom, right = height - BOTTOM, WIDTH - 30 - LETTER * max((len(s.name) for s in named), default=0)

    def across(scaled):
        return LEFT + (right - LEFT) * x_axis.place(scaled)

    def up(scaled):
        return bottom - (bottom - TOP) * y_axis.place(scaled)

    for tick in y_axis.ticks:
        drawing.line(LEFT, up(tick), right, up(tick))
        drawing.text(LEFT - 6, up(tick) + 4, y_axis.label(tick), "end")
    for tick in x_axis.ticks:
        drawing.line(across(tick), TOP, across(tick), bottom)
        drawing.text(across(tick), bottom + 19, x_axis.label(tick), "middle")
    drawing.text((LEFT + right) / 2, height - 8, figure.x_title, "middle")
    drawing.text(0, 0, figure.y_title(figure.chosen()), "middle",
                 more=f' transform="translate(14 {(TOP + bottom) / 2:.0f}) rotate(-90)"')
    ends = []
    for s in shown:
        pieces, last = [], None
        for i, (x, y) in enumerate(zip(s.x, s.y)):
            if not (is_drawable(x, figure.x_kind) and is_drawable(y, figure.y_kind)):
                pieces.append("M")
                continue
            at = across(x_axis.scaled(x)), up(y_axis.scaled(y))
            pieces += ["{:.1f} {:.1f}".format(*at), "L"]
            last = at
            if figure.points and not s.faint:
                drawing.symbol(*at, 4.2, s.symbol, s.colour, s.text[i] if s.text else s.name)
            elif not s.faint:
                drawing.circle(*at, 2.6, s.colour)
        if not last:
            continue
        if s.faint or not figure.points:
            drawing.add(f'<path d="{curve(pieces)}" fill="none" stroke="{s.colour}" '
                        f'stroke-width="{1 if s.faint else 2}"' + dashed(dash(s)) + "/>")
        if not s.faint:
            ends.append((last, s))
    if not figure.points:
        ends.sort(key=lambda end: end[0][1])
    places = ([TOP + 4 + 16 * i for i in range(len(ends))] if figure.points else
              spaced([y for (_, y), _ in ends], 14, TOP + 4, bottom))
    for ((x, y), s), label in zip(ends, places):
        if figure.points:
            drawing.symbol(right + 14, label, 4.2, s.symbol, s.colour)
        else:
            drawing.line(x + 4, y, right + 10, label, s.colour)
        drawing.text(right + (24 if figure.points else 13), label + 4, s.name)
    return drawing.done()


def curve(pieces):
    """An SVG path through points; "L" or "M" before a point draws a line to it or moves there."""
    path, how = "", "M"
    for piece in pieces:
        if piece in ("L", "M"):
            how = piece
        else:
            path += how + piece
    return path


def dashed(dash):
    return f' stroke-dasharray="{SVG_DASHES[dash]}"' if SVG_DASHES[dash] else ""


def svg_bars(figure):
    rows = [(label, value, text, s.colour) for s in figure.matching(figure.chosen())
            for label, value, text in zip(s.y, s.x, s.text)]
    if not rows:
        return ""
    left = max(190, 12 + LETTER * max(len(label) for label, *_ in rows))
    right = WIDTH - max(70, 16 + LETTER * max(len(text) for _, _, text, _ in rows))
    bottom = TOP + ROW * len(rows) + 4
    height = bottom + 46
    drawing = Drawing(WIDTH, height, figure.title)
    most = max(value for _, value, _, _ in rows) or 1
    axis = Axis("linear", [0, most], 6)
    for tick in (t for t in axis.ticks if t <= most):
        x = left + (right - left) * tick / most
        drawing.line(x, TOP, x, bottom)
        drawing.text(x, bottom + 16, axis.label(tick), "middle")
    for i, (label, value, text, colour) in enumerate(reversed(rows)):
        y, end = TOP + ROW * i, left + (right - left) * value / most
        drawing.text(left - 8, y + 14, label, "end")
        if figure.dots:
            drawing.circle(end, y + 10, 5, colour)
        else:
            drawing.add(f'<rect x="{left}" y="{y + 3}" width="{end - left:.1f}" height="{ROW - 6}" fill="{colour}"/>')
        drawing.text(end + (9 if figure.dots else 6), y + 14, text)
    drawing.text((left + right) / 2, height - 10, figure.x_title, "middle")
    return drawing.done()


VIEW = re.compile(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')
GAP = 20  # between tiles


def svg_tiles(figure):
    """The tiles in rows, in one picture."""
    width = (WIDTH - GAP * (figure.across - 1)) / figure.across
    placed, y = [], 0
    for start in range(0, len(figure.tiles), figure.across):
        row = figure.tiles[start:start + figure.across]
        heights = [width * float(VIEW.match(t.picture)[2]) / float(VIEW.match(t.picture)[1]) for t in row]
        for i, (t, height) in enumerate(zip(row, heights)):
            placed.append((t, (width + GAP) * i, y, height))
        y += max(heights) + 48
    drawing = Drawing(WIDTH, y, figure.title)
    for t, x, top, height in placed:
        drawing.text(x, top + 13, t.title, size=12, more=' font-weight="bold"')
        drawing.text(x, top + 28, t.text, size=11)
        old = VIEW.match(t.picture)
        drawing.add(f'<svg x="{x:.1f}" y="{top + 32:.1f}" width="{width:.1f}" height="{height:.1f}" '
                    f'viewBox="0 0 {old[1]} {old[2]}" font-family="DejaVu Sans, sans-serif">' + t.picture[old.end():])
    return drawing.done()


def on_paper(picture):
    """An SVG as a file of its own: with a size, a white background and fixed colours."""
    view = VIEW.match(picture)
    opening = view[0].replace("<svg ", f'<svg width="{view[1]}" height="{view[2]}" ', 1)
    return (opening + f'<rect width="{view[1]}" height="{view[2]}" fill="#fff"/>' + picture[view.end():]).replace(
        "currentColor", "#222").replace("var(--grid)", "#e4e4e4").replace("var(--soft)", "#555")


def svg(figure):
    if figure.tiles:
        return svg_tiles(figure)
    return svg_bars(figure) if figure.bars else svg_lines(figure)


def script_json(data):
    """JSON that is safe inside a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
