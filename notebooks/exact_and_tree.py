"""The price of exactness as one picture: the time of exact operations relative to plain ones in the order tree, by format,
shape and data."""

import html

import by_data
import glossary
import phrases
import timing
from figure import Drawing, Figure, Tile
from section import IN_GRAPH, preferred
from style import COLOURS

GROUPS = {"sums": ("sum", "mean", "sum_of_magnitudes"), "products and moments": ("dot", "squared_norm", "moments")}
FORMATS = ("fp64", "fp32", "bf16", "fp16")
# From light to dark, so that colour-blind readers can order them, by the least ratio that has them.
SHADES = [(0, "#fdfbd0"), (1.05, "#f8e28a"), (1.3, "#eec05c"), (2, "#e49a53"), (4, "#d8704e"), (8, "#b04a44"),
          (16, "#6e3132")]
DARK, FRAME = ("#b04a44", "#6e3132"), COLOURS["neumaier"]  # shades on which text is white; a colour unlike the shades
CHEAP = 1.3
KINDS = ("rows of", "columns of", "vectors of")
DESCRIPTION = ("Each field is the time of an exact operation over that of the same operation with plain additions in the "
               "order tree on normal data: the largest one among the operations of the tile. The pointer shows all of them "
               "with their intervals. "
               + "".join(f"{phrases.capitalised(group)}: {phrases.listed(of)}. " for group, of in GROUPS.items())
               + "Lines are shapes, by the elements per result; columns of fields are kinds of data. Results for 16-bit "
               "elements are in fp32. The largest ratio of all has a frame. Calls that were also timed in CUDA graphs have "
               "that time.")
FEWEST = 6  # columns for which a picture has room: the text of all pictures is equally large
LEFT, ACROSS, DOWN, RIGHT = 66, 28, 20, 24  # of the fields, and space for slanted labels
TOP, SLANTED = 16, 5.2  # space above the fields, and for each letter of the longest label


def price(pair):
    """How many times as long exact takes: the median of the ratio."""
    return 1 / timing.ratio(*pair).value


def is_compared(r):
    """Whether a row is of samesum and one of these operations, with results in the format of the elements, for 16 bits in
    fp32."""
    wide = "fp32" if r["input_format"] in ("bf16", "fp16") else r["input_format"]
    return (any(r["operation"] in some for some in GROUPS.values()) and not phrases.is_peer(r["method"])
            and phrases.parts(r["method"])[1] == wide and r["verified"] is not False)


def is_plain_tree(method):
    """Whether a method adds in the order tree without compensation; moments have an order alone."""
    return "tree" in phrases.parts(method)[0].split("/") and phrases.accumulator(method) in ("plain", "tree")


def pairs(rows):
    """{place: [(exact row, the row of tree on normal data), …]}; of short calls on a GPU those in CUDA graphs."""
    found = {}
    for at, r in rows:
        if not is_compared(r):
            continue
        work = tuple(r[name] for name in ("operation", "input_format", "outer", "n", "inner"))
        in_graph = at.endswith(IN_GRAPH)
        exact, tree = found.setdefault(at.removesuffix(IN_GRAPH), ({}, {}))
        if phrases.accumulator(r["method"]) == "exact":
            exact[work, by_data.data_of(r), in_graph] = r
        elif is_plain_tree(r["method"]) and by_data.is_normal(r):
            tree[work, in_graph] = r
    return {at: some for at, (exact, tree) in found.items()
            for some in [[(r, tree[work, in_graph]) for (work, data, in_graph), r in exact.items()
                          if (in_graph or (work, data, True) not in exact)
                          and (work, in_graph) in tree and timing.ratio(r, tree[work, in_graph])]] if some}


def kind(r):
    """What a line of the picture shows: rows, columns or vectors, and the number of elements of a result."""
    return KINDS[1 if r["inner"] > 1 else 2 if r["outer"] == 1 else 0], r["n"]


def figure(rows, what):
    """A heat map for each format and group of operations, at the first place with such results; what(r) names the work of a
    row. None without results."""
    places = pairs(rows)
    if not places:
        return None
    at = preferred(places)[0]
    some, worst = places[at], max(places[at], key=price)
    tiles = []
    for format in FORMATS:
        for group, operations in GROUPS.items():
            here = [pair for pair in some if pair[0]["input_format"] == format and pair[0]["operation"] in operations]
            title = f"{format}: {group}"
            if here:
                tiles.append(Tile(f"exact-{format}-{group.split()[0]}", title, most(here),
                                  picture(title, here, worst, what)))
    return Figure("exact-and-tree", f"What exactness costs ({at})", [], [], "", {None: ""}, tiles=tiles, broad_tiles=True,
                  description=DESCRIPTION, finding=finding(some, worst, what))


def finding(some, worst, what):
    """Names the worst cell, and counts those that cost little."""
    cheap = sum(price(pair) <= CHEAP for pair in some)
    return (f"Exact takes at most {timing.ratio(*worst).as_long} as tree: {what(worst[0])}. In "
            f"{phrases.out_of(cheap, len(some), 'cell')}, it takes at most {CHEAP} times as long by the median.")


def most(here):
    pair = max(here, key=price)
    return f"at most {phrases.number(price(pair))} times as long{by_data.other_data(pair[0])}"


def picture(title, here, worst, what):
    """An SVG with a line of fields per shape and a column per kind of data."""
    sets = sorted({by_data.data_of(r) for r, _ in here}, key=list(glossary.DATA).index)
    kinds = sorted({kind(r) for r, _ in here}, key=lambda k: (KINDS.index(k[0]), k[1]))
    top = TOP + SLANTED * max(map(len, sets))
    height = top + DOWN * len(kinds) + 14 * len({k for k, _ in kinds}) + 4
    drawing = Drawing(LEFT + ACROSS * max(len(sets), FEWEST) + RIGHT, height, title)
    for i, data in enumerate(sets):
        x = LEFT + ACROSS * (i + 0.5) + 4
        drawing.text(x, top - 4, data, size=11, more=f' transform="rotate(-70 {x:.1f} {top - 4:.1f})"')
    y, before = top, ""
    for shape, n in kinds:
        if shape != before:
            drawing.text(LEFT - 6, y + 11, shape, "end", 10, drawing.faint)
            y, before = y + 14, shape
        drawing.text(LEFT - 6, y + 14, f"{n:,}" if n < 1 << 21 else phrases.count(n), "end", 11)
        for i, data in enumerate(sets):
            in_field = [pair for pair in here if kind(pair[0]) == (shape, n) and by_data.data_of(pair[0]) == data]
            if in_field:
                field(drawing, LEFT + ACROSS * i, y, in_field, worst in in_field, what)
        y += DOWN
    return drawing.done()


def field(drawing, x, y, in_field, is_worst, what):
    """A coloured field with the largest ratio, and all of them on hover."""
    value = max(map(price, in_field))
    shade = [colour for least, colour in SHADES if value >= least][-1]
    tip = "; ".join(f"{what(r)}: {timing.ratio(r, other).of_times}"
                    for r, other in sorted(in_field, key=price, reverse=True))
    frame = f' stroke="{FRAME}" stroke-width="3"' if is_worst else ""
    drawing.add(f'<rect x="{x + 1}" y="{y + 1}" width="{ACROSS - 2}" height="{DOWN - 2}" fill="{shade}"{frame}>'
                f"<title>{html.escape(tip)}</title></rect>")
    text = f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    drawing.add(f'<text x="{x + ACROSS / 2:.1f}" y="{y + 14}" text-anchor="middle" font-size="10" '
                f'fill="{"#fff" if shade in DARK else "#1c1c1c"}" pointer-events="none">{text}</text>')
