"""The figure of the first screen: error against speed of at most ten methods, on one machine at a time."""

import math

import glossary
import phrases
import style
from figure import LETTER, Drawing
from price_of_promise import finite_frontier
from section import PROMISES, distinct, group_by_place, preferred, rows_with_place, starting_with

MOST = 10  # methods
ABOUT = 10**6  # elements
ORDINARY = ("normal", "uniform", "uniform +-1", "log-normal")  # data that are not chosen to be hard
OURS = ["exact", "tree/plain", "atomic/plain", "pairwise/plain", "tree/kahan", "tree/neumaier", "serial/plain"]
FILLS = dict(zip(PROMISES, (0, 0.3, 0.65, 1)))
LEFT, RIGHT, TOP, BOTTOM, LINE = 52, 16, 28, 62, 20
RADIUS, REACH = 6, 10  # of a symbol; a star reaches farther than its radius
WIDE, NARROW = 860, 380


def measured(found):
    """{place: rows of price_of_promise}: methods of fp32 numbers, of the one length that is about a million, this
    machine and GPUs first. The errors are those of the array that was timed."""
    rows = [(at, r) for at, r in rows_with_place(found.get("price_of_promise", []), "price")
            if r["input_format"] == phrases.parts(r["method"])[1] == "fp32"]
    places = {}
    for at, some in group_by_place(rows).items():
        n = min({r["n"] for r in some}, key=lambda n: abs(math.log(n / ABOUT)) if n else math.inf)
        some = [r for r in some if r["n"] == n and r["relative_error"] is not None and r["gb_per_s"]]
        if some:
            places[at] = some
    return {at: places[at] for at in preferred(places)}


def array(rows):
    """'one array of 2²⁰ normal fp32 numbers', of which price_of_promise measures times and errors."""
    return f"one array of {phrases.count(rows[0]['n'])} normal fp32 numbers"


def chosen(rows):
    """The methods of the figure (the frontier, then samesum's in OURS and the fastest peers), and the frontier of all
    methods."""
    peers = sorted((r for r in rows if phrases.is_peer(r["method"])), key=lambda r: r["seconds"])
    ours = [r for name in OURS for r in rows
            if phrases.parts(r["method"])[0] == name and not phrases.is_peer(r["method"])]
    best = finite_frontier(rows, "relative_error")
    others = [r for r in ours + peers if r not in best]
    return (best + others)[:MOST], best


def label(r):
    name = phrases.parts(r["method"])[0]
    return glossary.in_words(name) if phrases.is_peer(r["method"]) else name


def shape(method):
    """The symbol of an order; exact, which has none, and peers have symbols of their own."""
    return "triangle-up" if phrases.is_peer(method) else style.ORDERS.get(phrases.order(method), ("", "circle"))[1]


def ticks(low, high):
    """Powers of ten in the range; also 2 and 5 times them if there are fewer than three."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if sum(low <= 10.0**k <= high for k in powers) > 2 else (1, 2, 5)
    return [x for k in powers for step in steps for x in [step * 10.0**k] if low <= x <= high]


def power_text(x):
    """'10⁻⁷' or '2·10⁻⁷'."""
    exponent = math.floor(math.log10(x) + 1e-9)
    digit = round(x / 10.0**exponent)
    return f"{digit}·" * (digit > 1) + phrases.power_of_ten(10.0**exponent)


def along(curve):
    """Small boxes that cover the lines between points."""
    return [(x - 1, y - 1, x + 1, y + 1) for (x1, y1), (x2, y2) in zip(curve, curve[1:])
            for steps in [math.ceil(math.hypot(x2 - x1, y2 - y1) / 4) + 1]
            for i in range(steps + 1) for x, y in [(x1 + (x2 - x1) * i / steps, y1 + (y2 - y1) * i / steps)]]


class Labels:
    """Finds places for labels beside points, where they cover neither a point nor another label."""

    def __init__(self, points, left, right, top, bottom):
        self.taken = [(x - REACH, y - REACH, x + REACH, y + REACH) for x, y in points]
        self.left, self.right, self.top, self.bottom = left, right, top, bottom

    def place(self, x, y, width):
        """(left end of the text, its baseline) of the free place nearest to the point."""
        for away in range(0, 130, 4):
            for dx, dy in ((11 + away / 2, 0), (-11 - away / 2 - width, 0), (-width / 2, -18 - away),
                           (-width / 2, 18 + away), (10 + away / 2, 8 + away), (10 + away / 2, -8 - away),
                           (-10 - away / 2 - width, 8 + away), (-10 - away / 2 - width, -8 - away)):
                box = (x + dx, y + dy - 8, x + dx + width, y + dy + 8)
                if (box[0] >= self.left and box[2] <= self.right and box[1] >= self.top and box[3] <= self.bottom
                        and not any(box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3]
                                    for t in self.taken)):
                    self.taken.append(box)
                    return box[0], y + dy + 4
        return min(x + 11, self.right - width), y + 4


def picture(at, rows, width=WIDE):
    """An SVG of the methods of one place."""
    some, best = chosen(rows)
    size = 13 if width == WIDE else 11.5
    letter = LETTER * size / 12
    legend = legend_rows(some, width, letter)
    height = (380 if width == WIDE else 360) + LINE * len(legend)
    bottom = height - BOTTOM - LINE * len(legend)
    drawing = Drawing(width, height, f"Error against speed ({at})")
    speeds = [r["gb_per_s"] for r in some]
    unit = 2.0 ** -phrases.FORMAT_BITS["fp32"][0]
    ends = [unit, *(r["relative_error"] for r in some if r["relative_error"])]
    low_x, high_x = min(speeds) / 1.5, max(speeds) * (1.5 if width == WIDE else 2.2)  # space for labels
    low_y, high_y = min(ends) / 3, max(ends) * 4
    zero = low_y if any(r["relative_error"] == 0 for r in some) else None
    low_y = low_y / 3 if zero else low_y

    def across(speed):
        return LEFT + (width - RIGHT - LEFT) * math.log(speed / low_x) / math.log(high_x / low_x)

    def up(error):
        return bottom - (bottom - TOP) * math.log((error or zero) / low_y) / math.log(high_y / low_y)

    n = some[0]["n"]
    for speed in ticks(low_x, high_x):
        drawing.line(across(speed), TOP, across(speed), bottom)
        drawing.text(across(speed), bottom + 17, f"{speed:g}", "middle", size)
        drawing.text(across(speed), bottom + 33, phrases.duration(4 * n / speed / 1e9, 2), "middle", size - 2, drawing.faint)
    for error in ([zero] if zero else []) + [e for e in ticks(low_y, high_y) if not zero or e > 1.5 * zero]:
        drawing.line(LEFT, up(error), width - RIGHT, up(error))
        drawing.text(LEFT - 6, up(error) + 4, "0" if error == zero else power_text(error), "end", size)
    drawing.text(LEFT, TOP - 11, "relative error", size=size)
    drawing.text(width - RIGHT, bottom + 51, f"GB/s, and the time for {phrases.count(n)} numbers; faster →", "end",
                 size)
    drawing.text(LEFT + 6, bottom - 7, "↓ more accurate", size=size - 1, fill=drawing.faint)
    drawing.line(LEFT, up(unit), width - RIGHT, up(unit), style.GREY)
    drawing.text(LEFT + 6, up(unit) - 4, "one rounding of fp32", size=size - 2, fill=drawing.faint)
    points = [(across(r["gb_per_s"]), up(r["relative_error"])) for r in some]
    curve = [points[some.index(r)] for r in best if r in some]
    drawing.add('<path d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in curve)
                + f'" fill="none" stroke="{style.GREY}" stroke-dasharray="2 3"><title>frontier: '
                  f'{phrases.TERMS["frontier"]}</title></path>')
    labels = Labels(points, LEFT + 2, width - RIGHT, TOP, bottom)
    labels.taken += [(LEFT, up(unit) - 16, LEFT + 20 * letter, up(unit)),
                     (LEFT, bottom - 20, LEFT + 16 * letter, bottom), *along(curve)]
    for r, (x, y) in sorted(zip(some, points), key=lambda pair: pair[1][1]):
        on = r in best
        capitals = sum(map(str.isupper, label(r)))  # which are wider than other letters
        long = letter * (len(label(r)) + capitals / 3) * (1.15 if on else 1)
        at_x, at_y = labels.place(x, y, long)
        # A label that is neither beside nor above or below its point has a line to it.
        if abs(at_y - 4 - y) > 6 and not at_x <= x <= at_x + long:
            drawing.line(x, y, at_x if at_x > x else at_x + long, at_y - 4, style.GREY)
        drawing.symbol(x, y, RADIUS, shape(r["method"]), style.colour(r["method"]),
                       f"{r['method']}: {phrases.number(r['gb_per_s'])} GB/s, {phrases.duration(r['seconds'], 2)}, "
                       f"relative error {phrases.number(r['relative_error'], 2)}, promise {r['promise']}",
                       FILLS[r["promise"]])
        drawing.text(at_x, at_y, label(r), size=size, more=' font-weight="bold"' if on else "")
    y = bottom + BOTTOM + 6
    for row in legend:
        for x, symbol, colour, filled, text in row:
            drawing.symbol(x + 8, y - 4, 4 if symbol == "star" else 5, symbol, colour, filled=filled)
            drawing.text(x + 18, y, text, size=size - 1)
        y += LINE
    return drawing.done()


def legend_rows(some, width, letter):
    """Rows of (x, symbol, colour, fill, text): orders by shape, accumulators by colour, promises by fill."""
    rows = []
    methods = [r["method"] for r in some]
    peers = phrases.peers_in_words(methods, many=True)
    kinds = {peers if phrases.is_peer(m) else phrases.order(m) or "any order": shape(m) for m in methods}
    accumulators = starting_with([phrases.accumulator(m) for m in methods if not phrases.is_peer(m)], "exact")
    promises = [p for p in PROMISES if any(r["promise"] == p for r in some)]
    for entries in ([(symbol, style.COLOURS["peer"] if name == peers else style.GREY, 1, name)
                     for name, symbol in kinds.items()],
                    [("circle", style.COLOURS.get(a, style.GREY), 1, f"accumulator: {a}" if a == accumulators[0] else a)
                     for a in accumulators],
                    [("circle", style.GREY, FILLS[p], f"promise: {p}" if p == promises[0] else p) for p in promises]):
        row, x = [], 4
        for symbol, colour, filled, text in entries:
            need = 36 + letter * len(text)
            if row and x + need > width:
                rows.append(row)
                row, x = [], 4
            row.append((x, symbol, colour, filled, text))
            x += need
        rows.append(row)
    return rows


def finding(at, rows):
    """A sentence on the frontier of a place, and what was measured."""
    some, best = chosen(rows)
    names = distinct(map(label, best))
    return (f"Of {phrases.plural(len(rows), 'method')}, {phrases.names(names, 5)} "
            f"{phrases.verb(len(names), len(rows), 'is', 'are')} on the frontier: faster, beyond noise, than every more "
            f"accurate one ({at}, times and errors of {array(rows)}).")
