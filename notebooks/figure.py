"""A figure: lines or bars that menus choose from, as a specification for plotly and as a static SVG."""

import dataclasses
import html
import json
import math

SVG_DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "11 4"}


@dataclasses.dataclass
class Series:
    """One line, or with `text` one bar for each x. `on` says which choice of each menu shows it; None means all."""

    name: str
    x: list
    y: list
    colour: str
    on: tuple
    dash: str = "solid"
    symbol: str = "circle"
    faint: bool = False  # a bound: thin, dotted, in no legend
    text: list = None


@dataclasses.dataclass
class Figure:
    id: str
    title: str
    menus: list  # (label, [choices]), the best choices first
    series: list
    x_title: str
    y_titles: dict  # by choice of the last menu; None for all
    note: str = ""
    bars: bool = False

    def chosen(self):
        """The first choice of each menu for which there is something to see, given those before it."""
        choice = ()
        for i, (_, values) in enumerate(self.menus):
            fits = {s.on[i] for s in self.matching(choice)}
            choice += (next(v for v in values if v in fits or None in fits),)
        return choice

    def matching(self, choice):
        return [s for s in self.series if all(a in (None, b) for a, b in zip(s.on, choice))]

    def y_title(self, choice):
        return self.y_titles.get(choice[-1] if choice else None) or self.y_titles[None]

    def plotly(self):
        """The traces, the menus that choose among them, and the axes: page.js does the rest."""
        return {"menus": [{"label": label, "values": values} for label, values in self.menus],
                "start": self.chosen(), "bars": self.bars, "x": self.x_title, "y": self.y_titles,
                "traces": [trace(s, self.bars) for s in self.series]}


def short(x):
    return None if x is None else float(f"{x:.4g}")


def trace(s, bars):
    if bars:
        return {"on": s.on, "name": s.name, "type": "bar", "orientation": "h", "x": s.x, "y": s.y, "text": s.text,
                "marker": {"color": s.colour}}
    t = {"on": s.on, "name": s.name, "x": s.x, "y": [short(y) for y in s.y]}
    if s.faint:
        return t | {"mode": "lines", "line": {"color": s.colour, "dash": "dot", "width": 1}, "opacity": 0.75,
                    "showlegend": False}
    return t | {"mode": "lines+markers", "line": {"color": s.colour, "dash": s.dash, "width": 2},
                "marker": {"symbol": s.symbol, "size": 7, "color": s.colour}}


# --- the same as SVG: for paper, and where there are no scripts -------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, ROW = 720, 400, 68, 170, 14, 48, 20


def superscript(n):
    return str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


class Drawing:
    """Colours of text and grid come from the page; `paper` gives those of a picture of its own."""

    def __init__(self, width, height, title, paper=False):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
                      + (f'width="{width:g}" height="{height:g}" ' if paper else "")
                      + 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">',
                      f"<title>{html.escape(title)}</title>"]
        self.ink, self.faint, self.grid = ("#222", "#555", "#e4e4e4") if paper else (
            "currentColor", "currentColor", "var(--grid)")
        if paper:
            self.parts.append(f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>')

    def add(self, element):
        self.parts.append(element)

    def text(self, x, y, words, anchor="start", size=12, fill=None, more=""):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                 f'fill="{fill or self.ink}"{more}>'
                 f"{html.escape(words)}</text>")

    def line(self, x1, y1, x2, y2, stroke=None):
        self.add(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{stroke or self.grid}"/>')

    def circle(self, x, y, radius, fill, title=""):
        tip = f"<title>{html.escape(title)}</title>" if title else ""
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" fill-opacity="0.85">{tip}</circle>')

    def done(self):
        return "\n".join(self.parts + ["</svg>"])


def decades(values):
    """Whole powers of ten around them, and those to be labelled."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    return low, high, range(low, high + 1, max(1, (high - low) // 6))


def apart(wanted, distance, low, high):
    """Places near those that are wanted, in the same order, and far enough from each other to be read."""
    placed = []
    for y in wanted:
        placed.append(max(y, placed[-1] + distance if placed else low))
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], placed[i + 1] - distance if i + 1 < len(placed) else high)
    return placed


def svg_lines(figure):
    shown = [s for s in figure.matching(figure.chosen()) if any(y for y in s.y)]
    drawing = Drawing(WIDTH, HEIGHT, figure.title)
    points = [(x, y) for s in shown for x, y in zip(s.x, s.y) if y]
    if not points:
        return ""
    low, high, labelled = decades([y for _, y in points])
    first, last = math.log2(min(x for x, _ in points)), math.log2(max(x for x, _ in points))
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def at(x, y):
        return (LEFT + (right - LEFT) * (math.log2(x) - first) / max(last - first, 1e-9),
                bottom - (bottom - TOP) * (math.log10(y) - low) / (high - low))

    for exponent in labelled:
        y = at(2**first, 10.0**exponent)[1]
        drawing.line(LEFT, y, right, y)
        drawing.text(LEFT - 6, y + 4, f"10{superscript(exponent)}", "end")
    for k in range(math.ceil(first), math.floor(last) + 1, max(1, round((last - first) / 7))):
        x = at(2.0**k, 10.0**low)[0]
        drawing.line(x, TOP, x, bottom)
        drawing.text(x, bottom + 17, f"2{superscript(k)}", "middle")
    drawing.text((LEFT + right) / 2, HEIGHT - 8, figure.x_title, "middle")
    drawing.text(0, 0, figure.y_title(figure.chosen()), "middle",
                 more=f' transform="translate(14 {(TOP + bottom) / 2:.0f}) rotate(-90)"')
    ends = []
    for s in shown:
        pieces, open_piece = [], False
        for x, y in zip(s.x, s.y):
            if not y:
                open_piece = False
                continue
            pieces.append(("L" if open_piece else "M") + "{:.1f} {:.1f}".format(*at(x, y)))
            open_piece = True
            if not s.faint:
                drawing.circle(*at(x, y), 2.6, s.colour)
        dashes = SVG_DASHES["dot" if s.faint else s.dash]
        drawing.add(f'<path d="{"".join(pieces)}" fill="none" stroke="{s.colour}" stroke-width="{1 if s.faint else 2}"'
                    + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>")
        if not s.faint:
            ends.append((at(*[(x, y) for x, y in zip(s.x, s.y) if y][-1]), s))
    ends.sort(key=lambda end: end[0][1])
    for ((x, y), s), label in zip(ends, apart([y for (_, y), _ in ends], 14, TOP + 4, bottom)):
        drawing.line(x + 4, y, right + 10, label, s.colour)
        drawing.text(right + 13, label + 4, s.name)
    return drawing.done()


def svg_bars(figure):
    rows = [(label, value, text, s.colour) for s in figure.matching(figure.chosen())
            for label, value, text in zip(s.y, s.x, s.text)]
    if not rows:
        return ""
    left, right = 190, WIDTH - 70
    height = TOP + ROW * len(rows) + 34
    drawing = Drawing(WIDTH, height, figure.title)
    most = max(value for _, value, _, _ in rows)
    for i, (label, value, text, colour) in enumerate(reversed(rows)):
        y, end = TOP + ROW * i, left + (right - left) * value / most
        drawing.text(left - 8, y + 14, label, "end")
        drawing.add(f'<rect x="{left}" y="{y + 3}" width="{end - left:.1f}" height="{ROW - 6}" fill="{colour}"/>')
        drawing.text(end + 6, y + 14, text)
    drawing.text((left + right) / 2, height - 10, figure.x_title, "middle")
    return drawing.done()


def svg(figure):
    return svg_bars(figure) if figure.bars else svg_lines(figure)


def script_json(data):
    """JSON that can stand in a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
