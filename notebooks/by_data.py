"""What sections on speeds say of data beside normal numbers: the time that a method takes on them, relative to normal
numbers. Rows without the field "data" are of normal numbers."""

import phrases
import timing
from section import Table, distinct, group_by_place

IDENTITY = ("method", "operation", "input_format", "outer", "n", "inner", "threads", "keys", "bins", "grid")


def method_and_grid(r):
    """'sum/fixed_point/fp32@cuda (grid 2⁻³⁰)' if a grid is given, otherwise the method."""
    grid = r.get("grid")
    return r["method"] + (f" (grid 2{phrases.superscript(grid)})" if grid is not None else "")


def data_of(r):
    """The data set of a row of speeds."""
    return r.get("data", "normal")


def is_normal(r):
    return data_of(r) == "normal"


def of_normal(rows):
    return [(at, r) for at, r in rows if is_normal(r)]


def other_data(r):
    """', arbitrary bits', or '' for normal numbers."""
    return "" if is_normal(r) else f", {data_of(r)}"


def identity(r):
    """What a row has in common with those of the same method and work on other data."""
    return tuple(r.get(name) for name in IDENTITY)


def compared(some):
    """Pairs (row, the row on normal numbers) of the rows on other data that were measured on normal ones, too."""
    normal = {identity(r): r for r in some if is_normal(r)}
    pairs = ((r, normal.get(identity(r))) for r in some if not is_normal(r) and "/" in r["method"])
    return [(r, other) for r, other in pairs if other and timing.ratio(r, other)]


def finding(rows, what):
    """Yields for each place the largest of these times of each accumulator; what(r) names the work of a row."""
    for at, some in group_by_place(rows).items():
        by_accumulator = group_by_place((phrases.accumulator(r["method"]), (r, other)) for r, other in compared(some))
        texts = []
        for accumulator, pairs in by_accumulator.items():
            r, other = min(pairs, key=lambda pair: timing.ratio(*pair).value)
            texts.append(f"{accumulator} takes {'at most ' if len(pairs) > 1 else ''}{timing.ratio(r, other).as_long} "
                         f"as on normal data ({what(r)})")
        if texts:
            yield phrases.capitalised(f"{at}: on other data, {' and '.join(texts)}.")


def tables(rows, what):
    """Yields for each place a table with a row per method and work, and a column per data set."""
    for at, some in group_by_place(rows).items():
        pairs = compared(some)
        if not pairs:
            continue
        sets = distinct(data_of(r) for r, _ in pairs)
        times = {}
        for r, other in pairs:
            times.setdefault(identity(r), (r, {}))[1][data_of(r)] = timing.cell_of_times(r, other)
        lines = []
        for r, by_set in times.values():
            normal = {name: value for name, value in r.items() if name != "data"}
            lines.append([what(normal), method_and_grid(r), *(by_set.get(s, "-") for s in sets)])
        yield Table(f"{at}: time on other data, relative to normal data", ["work", "method", *sets], lines, text_columns=2,
                    folded=len(lines) > 12)
