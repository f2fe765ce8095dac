"""The whole price: for each operation, format, shape, length and kind of data, how long an exact result and one with
the same bits everywhere take, beside the fastest call that promises less: beside other libraries, loops and atomic
additions, and an exact result beside fixed trees too."""

import dataclasses
import functools

import by_data
import phrases
import timing
from figure import Axis, Drawing, Figure, Tile
from result_arrays import is_ours
from section import FROM_PYTHON, IN_GRAPH, Table, group_by_place, is_gpu, is_here, place, preferred
from style import COLOURS, GREY
from timing import fastest

KINDS = {"speed_vs_length": "speed"} | {q: "reduction" for q in ("speed_of_reductions", "prefix_sums", "sums_by_key")}
NAMES = {"cumsum": "prefix sums", "scatter_add": "sums by key", "scatter_mean": "means by key",
         "sum_of_magnitudes": "sum of magnitudes", "squared_norm": "squared norm"}
ORDER = ("sum", "mean", "sum_of_magnitudes", "dot", "squared_norm", "moments", "softmax", "cumsum", "scatter_add",
         "scatter_mean")  # of the panels
FEWEST = 3  # lengths of a panel
PRICES = ("exact_price", "everywhere_price")


def operation(r):
    return r.get("operation", "sum")


def name_of(operation):
    return NAMES.get(operation, operation)


def elements(r, count=phrases.count):
    """'512 columns of 512 fp32', '2¹⁸ fp32, 2 threads'; count(n) formats a length."""
    outer, n, inner = (r.get(name) or 1 for name in ("outer", "n", "inner"))
    shape = (f"{n:,} rows of {inner:,} numbers" if inner > 1 and r.get("keys") else
             f"{inner:,} columns of {n:,}" if inner > 1 else
             f"{outer:,} rows of {n:,}" if outer > 1 else count(n))
    keys = f" by {count(r['bins'])} keys, {r['keys']}" if r.get("keys") else ""
    threads = f", {r['threads']} threads" if r["threads"] > 1 else ""
    return f"{shape} {r['input_format']}{keys}{threads}{IN_GRAPH if r.get('launch') else ''}"


def work(r):
    """'512 columns of 512 fp32, arbitrary bits'."""
    return elements(r) + by_data.other_data(r)


def is_exact(r):
    return phrases.accumulator(r["method"]) == "exact"


def is_arbitrary(r):
    """Whether a row is of a method of samesum that promises nothing: its order is that of arrival."""
    return is_ours(r) and r["method"].removeprefix(f"{operation(r)}/").startswith("atomic")


def is_ordered(r):
    """Whether a row is of a method of samesum with the same bits everywhere for one order of the elements."""
    return is_ours(r) and not is_arbitrary(r) and phrases.accumulator(r["method"]) not in ("exact", "fixed_point")


def timed(found):
    """Pairs ((question, place), row) of results in hot caches. Those of samesum have the format of the elements; for
    16 bits also fp32, in which other libraries add such elements, too."""
    return [((question, place(source, r)), r) for question, kind in KINDS.items() for source in found.get(question, [])
            for r in source.rows if r["kind"] == kind and r.get("caches") != "cold" and r.get("grid") is None
            and r.get("verified") is not False and (phrases.is_peer(r["method"]) or is_ours(r) and phrases.parts(
                r["method"])[1] in (r["input_format"], "fp32" if "16" in r["input_format"] else ""))]


# --- cells --------------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Cell:
    """The fastest calls for the same work and data. Only exact calls are sure to be of these data: others, whose time
    does not depend on them, may be of normal numbers."""

    exact: dict  # rows of results, or None
    everywhere: dict  # of samesum's methods with the same bits everywhere, exact ones among them
    ordered: dict  # of those, the ones in a fixed order
    loose: dict  # of samesum's methods that promise nothing
    peer: dict  # of other libraries and loops
    prices: tuple = PRICES  # those that it has

    @property
    def row(self):
        """A row of this work and these data."""
        return self.exact or self.everywhere

    def less(self, price):
        """The fastest call that promises less than an exact result, or than the same bits everywhere."""
        return fastest(filter(None, [self.loose, self.peer, self.ordered if price == "exact_price" else None]))

    @functools.cached_property
    def exact_price(self):
        """The timing.Ratio of exact and the fastest call that promises less; None if one is missing."""
        less = self.less("exact_price")
        return timing.ratio(self.exact, less) if "exact_price" in self.prices and self.exact and less else None

    @functools.cached_property
    def everywhere_price(self):
        """The price of the fastest call with the same bits everywhere, on normal numbers."""
        less = self.less("everywhere_price")
        return timing.ratio(self.everywhere, less) if (
            "everywhere_price" in self.prices and self.everywhere and by_data.is_normal(self.row) and less) else None


def times(ratio):
    """How many times as long the first of two calls takes."""
    return 1 / ratio.value


last_made = [], {}  # the sources that cells_of saw last, and their cells: a page asks for them several times


def cells_of(found):
    """Returns made_cells(found), and keeps those of the last call."""
    global last_made
    sources = [source for question in KINDS for source in found.get(question, [])]
    if list(map(id, sources)) != list(map(id, last_made[0])):
        last_made = sources, made_cells(found)
    return last_made[1]


def made_cells(found):
    """{place: [Cell, …]}: the places of this machine and GPUs first, and on CPUs one thread. The calls of a cell are of
    one experiment and one kind of launch; of several cells for the same work and data, each price is the highest."""
    together = {}
    for at, r in timed(found):
        if r["threads"] <= 1:
            together.setdefault((at, operation(r), elements(r)), {}).setdefault(by_data.data_of(r), []).append(r)
    cells = {}
    for ((_, at), *_), by_set in together.items():
        normal = by_set.get("normal", [])
        for data, rows in by_set.items():
            def least(which):
                return fastest(filter(which, rows)) or fastest(filter(which, normal))
            cell = Cell(fastest(filter(is_exact, rows)), least(lambda r: is_ours(r) and not is_arbitrary(r)),
                        least(is_ordered), least(is_arbitrary), least(lambda r: phrases.is_peer(r["method"])))
            if cell.exact_price or cell.everywhere_price:
                some = cells.setdefault(at.removesuffix(IN_GRAPH).removesuffix(FROM_PYTHON), {})
                some.setdefault((operation(cell.row), work(cell.row).replace(IN_GRAPH, "")), []).append(cell)
    return {at: [cell for same in cells[at].values() for cell in dearest(same)] for at in preferred(cells)}


def dearest(same):
    """The cells with the highest prices, of those for the same work and data: one, or one for each price."""
    found = {}
    for price in PRICES:
        if priced := [c for c in same if getattr(c, price)]:
            found.setdefault(same.index(worst(priced, price)), []).append(price)
    return [dataclasses.replace(same[i], prices=tuple(prices)) for i, prices in found.items()]


def shown(cells):
    """The places of the figure: the first, and the first with the other kind of device."""
    first, *others = cells
    second = [at for at in others if is_gpu(at) != is_gpu(first) and is_here(at) == is_here(first)]
    return [first, *second[:1]]


def by_operation(some, price="exact_price"):
    """{operation: [cells with this price]}, in the order of the panels, then the others."""
    found = group_by_place((operation(c.row), c) for c in some if getattr(c, price))
    return {name: found[name] for name in sorted(found, key=(*ORDER, *found).index)}


def worst(some, price="exact_price"):
    return max(some, key=lambda c: times(getattr(c, price)))


def median(some, price="exact_price"):
    """The median price on normal numbers, over formats, shapes and lengths; None without any."""
    normal = [times(getattr(c, price)) for c in some if by_data.is_normal(c.row) and getattr(c, price)]
    return phrases.median(normal) if normal else None


# --- sentences ----------------------------------------------------------------------------------------------------

def is_free(ratio):
    return ratio.verdict in (timing.FASTER, timing.AS_FAST, timing.NO_SLOWER)


def free(some, price, noun="case"):
    """'140 of 246 cases', those on normal numbers in which a promise costs no time; '' without any."""
    ratios = [getattr(c, price) for c in some if by_data.is_normal(c.row) and getattr(c, price)]
    return phrases.out_of(sum(map(is_free, ratios)), len(ratios), noun) if ratios else ""


def in_words(c, price="exact_price", count=phrases.count):
    """'8.38 [8.3, 8.5] (2²⁸ fp64, arbitrary bits, beside cub/run_to_run)'."""
    what = elements(c.row, count) + by_data.other_data(c.row)
    name = phrases.parts(c.less(price)["method"].removeprefix(f"{operation(c.row)}/"))[0]
    return f"{getattr(c, price).of_times} ({what}, beside {name})"


def count_sentence(at, some):
    """In how many cases a promise costs nothing."""
    texts = [f"{what} in {number}" for price, what in (("everywhere_price", "the same bits everywhere take no longer"),
                                                       ("exact_price", "exact results take no longer"))
             for number in [free(some, price)] if number]
    return (f"{phrases.capitalised(at)}: beside the fastest call that promises less, on normal numbers, "
            f"{', '.join(texts)}.")


def median_sentence(some, price, what):
    """The operations in which the median is no price, and those in which it is one."""
    medians = {name_of(name): round(value, 2) for name, of in by_operation(some, price).items()
               for value in [median(of, price)] if value}
    cheap = [name for name, value in medians.items() if value <= timing.EQUAL]
    dear = [(name, f"{value:.3g}") for name, value in medians.items() if value > timing.EQUAL]
    texts = [f"at most {timing.WITHIN} longer for {phrases.listed(cheap)}"] if cheap else []
    if dear:
        (name, value), *others = dear
        texts.append(", ".join([f"{value} times as long for {name}", *(f"{v} for {n}" for n, v in others)]))
    return f"{what} in the median {', and '.join(texts)}." if texts else ""


def medians(some):
    """Where the price is zero by the median, and where it is not, in two sentences."""
    return " ".join(filter(None, [median_sentence(some, "everywhere_price", "The same bits everywhere take"),
                                  median_sentence(some, "exact_price", "Exact results take")]))


def worst_sentence(some, count=phrases.count):
    """The worst case of each operation."""
    texts = [f"{name_of(name)} {in_words(c, count=count)}" for name, of in by_operation(some).items()
             for c in [worst(of)] if c.exact_price.verdict == timing.SLOWER]
    return f"Exact results take at worst so many times as long: {'; '.join(texts)}." if texts else ""


def everywhere_sentence(some):
    """The worst case of the same bits everywhere."""
    priced = [c for c in some if c.everywhere_price and c.everywhere_price.verdict == timing.SLOWER]
    if not priced:
        return ""
    c = worst(priced, "everywhere_price")
    return (f"The same bits everywhere cost most for {name_of(operation(c.row))}, times as long: "
            f"{in_words(c, 'everywhere_price')}.")


def sentences(found):
    """Yields, for each place of the figure, where the price is zero, where it is not, and the worst."""
    cells = cells_of(found)
    for at in shown(cells) if cells else []:
        some = cells[at]
        yield " ".join(filter(None, [
            count_sentence(at, some), medians(some), everywhere_sentence(some), worst_sentence(some)]))


DATA = {"normal": "on normal numbers", "60 binades": "over 60 powers of two", "arbitrary bits": "on arbitrary bits"}


def of_each_data(some):
    """{'on normal numbers': '1.3', …}: the median price of exactness on each kind of data, over all operations, formats
    and shapes."""
    found = {words: [times(c.exact_price) for c in some if c.exact_price and by_data.data_of(c.row) == data]
             for data, words in DATA.items()}
    return {words: phrases.number(phrases.median(prices), 2) for words, prices in found.items() if prices}


def on_each_data(places):
    """'Over all operations, exact results take in the median …' on each kind of data, for pairs (place, its cells); ""
    with one kind only."""
    texts, named = [], []  # the kinds of data that the sentence has named
    for at, some in places:
        medians = of_each_data(some)
        if len(medians) < 2:
            continue
        listed = phrases.listed(medians.values() if [*medians] == named else [
            f"{price} {'' if i else 'times as long '}{words}" for i, (words, price) in enumerate(medians.items())])
        texts.append(f"{listed} ({at})" if len(places) > 1 else listed)
        named = [*medians]
    return f"Over all operations, exact results take in the median {'; '.join(texts)}." if texts else ""


def answered(found):
    """Pairs (place, its cells) of the places of the figure, of those with both prices on normal numbers."""
    cells = {at: some for at, some in cells_of(found).items()
             if free(some, "everywhere_price") and free(some, "exact_price")}
    return [(at, cells[at]) for at in (shown(cells) if cells else [])]


def in_how_many(found):
    """In how many cases a promise costs nothing."""
    counts = [f"in {free(some, 'everywhere_price', '' if i else 'case')}, exact ones in {free(some, 'exact_price', '')} ({at})"
              for i, (at, some) in enumerate(answered(found))]
    return (f"On normal numbers, the same bits everywhere take no longer than any call that promises less "
            f"{'; '.join(counts)}.") if counts else ""


def on_slowest_data(found):
    """The highest price of exactness of GPUs and of CPUs: of this machine or, without results of it, of any."""
    cells = cells_of(found)
    here = bool(cells) and is_here(next(iter(cells)))
    priced = [(at, c) for at, some in cells.items() if is_here(at) == here for c in some if c.exact_price]
    most = [max(of, key=lambda pair: times(pair[1].exact_price)) for on_gpu in (True, False)
            for of in [[(at, c) for at, c in priced if is_gpu(at) == on_gpu]] if of]
    texts = [f"{phrases.number(times(c.exact_price), 2)} ({at.removesuffix(', 1 thread')})" for at, c in most]
    return f"At worst, exact results take {phrases.listed(texts)} times as long." if texts else ""


def longest(some):
    """'0.99× for 2²⁸ fp32', the price of an exact result of the longest vector of normal numbers; None without any."""
    vectors = [c for c in some if c.exact_price and by_data.is_normal(c.row)
               and c.row.get("outer", 1) == c.row.get("inner", 1) == 1]
    c = max(vectors, key=lambda c: (c.row["n"], c.row["input_format"] == "fp32"), default=None)
    return c and f"{phrases.number(times(c.exact_price), 2)}× for {elements(c.row).replace(IN_GRAPH, '')}"


def answer(found):
    """In short: both of these sentences."""
    return " ".join(filter(None, [in_how_many(found), on_slowest_data(found)]))


# --- figure and table -----------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, SIZE = 190, 120, 28, 8, 8, 18, 11
LEAST, MOST = 1 / 32, 64  # of the vertical axis of all panels; what is beyond is drawn at its ends
TICKS = {1 / 16: "¹⁄₁₆×", 1 / 4: "¼×", 1: "1×", 4: "4×", 16: "16×", 64: "64×"}
EXACT, SAME = COLOURS["exact"], COLOURS["plain"]
LEGEND = (("●", EXACT, "exact: median of formats and shapes, on normal numbers"),
          ("▲", EXACT, "exact: slowest format, shape and kind of data"),
          ("■", SAME, "the same bits everywhere: median"))
DESCRIPTION = (
    "Each panel is an operation. Horizontal axis: elements of a vector, a row or a column; for sums by key, of all. Vertical "
    "axis: time beside the fastest call that promises less, of samesum or of another library: an exact result also beside "
    "a fixed order, with the same bits everywhere. 1, the grey line, is no price; what is beyond the axis is drawn at its "
    "end. Other data than normal numbers were measured for some lengths only; the time of other than exact results does not "
    "depend on them. Results for 16-bit elements are in this format or in fp32. The same bits everywhere: methods in a fixed "
    "order, exact ones, and sums on a grid that a call finds.")


def by_length(some):
    """{length: cells}, in the order of the lengths."""
    found = group_by_place((c.row["n"], c) for c in some)
    return {n: found[n] for n in sorted(found)}


def panels(some, most=None):
    """{operation: its cells} of those with enough lengths; at most so many, those with most cells."""
    found = {name: [c for c in some if operation(c.row) == name] for name, of in by_operation(some).items()
             if len(by_length(of)) >= FEWEST}
    kept = sorted(found, key=lambda name: -len(found[name]))[:most]
    return {name: of for name, of in found.items() if name in kept}


def tiles(at, some, most=None):
    """A figure.Tile for each panel of a place."""
    device = "GPU" if is_gpu(at) else "CPU"
    return [Tile(f"price-{device.lower()}-{name}", name_of(name), f"{device}: ≤ {highest(of)}×",
                 picture(f"{name_of(name)}, {at}", of)) for name, of in panels(some, most).items()]


def figure(found):
    """Price against length, a panel for each operation. None without results."""
    cells = cells_of(found)
    places = [at for at in shown(cells) if panels(cells[at])] if cells else []
    made = [tile for at in places for tile in tiles(at, cells[at])]
    legend = ", ".join(f"{mark} {text}" for mark, _, text in LEGEND)
    title = f"Time beside the fastest call that promises less, against length ({'; '.join(places)}). {legend}"
    return Figure("prices", title, [], [], "", {None: ""}, tiles=made, across=5, description=DESCRIPTION) if made else None


def highest(some):
    """'8.4', the highest price of exactness."""
    return phrases.number(max(times(c.exact_price) for c in some if c.exact_price), 2)


def picture(title, some):
    """An SVG of the prices of an operation by length."""
    drawing = Drawing(WIDTH, HEIGHT, f"{title}: price against length")
    lengths = by_length(some)
    across, up, bottom = Axis("log2", list(lengths), 4), Axis("log2", [LEAST, MOST], 8), HEIGHT - BOTTOM

    def at(n, price):
        return (LEFT + 4 + (WIDTH - LEFT - RIGHT - 4) * across.place(across.scaled(n)),
                bottom - (bottom - TOP) * up.place(up.scaled(min(max(price, LEAST), MOST))))

    for tick, label in TICKS.items():
        y = at(min(lengths), tick)[1]
        drawing.line(LEFT, y, WIDTH - RIGHT, y, GREY if tick == 1 else None)
        drawing.text(LEFT - 4, y + 4, label, "end", SIZE)
    for n, anchor in ((min(lengths), "start"), (max(lengths), "end")):
        x = at(n, 1)[0] - 4 if anchor == "start" else WIDTH - RIGHT
        drawing.text(x, HEIGHT - 4, phrases.count(n), anchor, SIZE, drawing.faint)
    drawing.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "elements", "middle", SIZE, drawing.faint)
    middle = {n: phrases.median(prices) for n, of in lengths.items()
              for prices in [[times(c.exact_price) for c in of if c.exact_price and by_data.is_normal(c.row)]] if prices}
    same = {n: phrases.median(prices) for n, of in lengths.items()
            for prices in [[times(c.everywhere_price) for c in of if c.everywhere_price]] if prices}
    for n, of in lengths.items():
        priced = [c for c in of if c.exact_price]
        if priced:
            slowest = worst(priced)
            x, y = at(n, times(slowest.exact_price))
            if n in middle:
                drawing.line(x, at(n, middle[n])[1], x, y, EXACT)
            if times(slowest.exact_price) > timing.EQUAL * middle.get(n, 0):
                drawing.symbol(x, y, 3.2, "triangle-up", EXACT, f"{work(slowest.row)}: {slowest.exact_price.of_times}")
    for values, colour, symbol in ((same, SAME, "square"), (middle, EXACT, "circle")):
        if values:
            drawing.add('<path d="M' + "L".join("{:.1f} {:.1f}".format(*at(*pair)) for pair in values.items())
                        + f'" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        for n, value in values.items():
            drawing.symbol(*at(n, value), 2.4, symbol, colour, f"n = {phrases.count(n)}: {value:.2f}")
    return drawing.done()


def tables(found):
    """Yields a table for each place: a row per operation, format, shape, length and kind of data."""
    def time(r):
        return phrases.duration(r["seconds"], 3) if r else "-"

    def call(r):
        return f"{time(r)}, {phrases.parts(r['method'])[0]}" if r else "-"

    for at, some in cells_of(found).items():
        yield Table(f"{at}: the price of each case",
                    ["operation", "elements", "exact", "fastest with the same bits everywhere",
                     "fastest in a fixed order", "fastest of samesum without a promise",
                     "fastest of other libraries and loops", "price of exact", "of the same bits"],
                    [[name_of(operation(c.row)), work(c.row), time(c.exact),
                      *map(call, (c.everywhere, c.ordered, c.loose, c.peer)),
                      *(f"{ratio.of_times}{ratio.remark}" if ratio else "-"
                        for ratio in (c.exact_price, c.everywhere_price))]
                     for c in some], text_columns=7, folded=True, page_only=True)


def add_to(section, found):
    """Adds the whole price to the section on promises."""
    whole = figure(found)
    if whole:
        section.verdict = answer(found) or section.verdict
        section.findings = [*sentences(found), *section.findings]
        section.figures = [whole, *section.figures]
        section.tables = [*tables(found), *section.tables]


# --- other data -----------------------------------------------------------------------------------------------------

def on_other_data(found):
    """Pairs (an exact row on other data, the same call on normal numbers) of each experiment and place."""
    by_place = {}
    for at, r in timed(found):
        if is_exact(r):
            by_place.setdefault(at, []).append(r)
    return [pair for some in by_place.values() for pair in by_data.compared(some)]


def kind(own):
    """What a table names the slowest case of."""
    return phrases.device(own["method"]), operation(own)


def slowest(pairs, key):
    """{key(row of exact): its pair with the largest ratio of times}, of the pairs in which exact is slower."""
    found = {}
    for own, other in pairs:
        if timing.ratio(own, other).verdict == timing.SLOWER:
            found[key(own)] = min((own, other), found.get(key(own), (own, other)),
                                  key=lambda pair: timing.ratio(*pair).value)
    return dict(sorted(found.items()))
