"""What becomes of sums whose accumulator has 16 bits?"""

import math

import style
import telling
import words
from figure import Figure, Series
from section import Section, Table, broken, distinct, placed, preferred, within

SIXTEEN = ("fp16", "bf16")


def section(sources):
    s = Section("formats", "Accumulators of 16 bits", "Sums that people meet, with every accumulator in the format of "
                "the elements and, where these have 16 bits, in fp32: what stagnates, what overflows, what cures it.",
                "build/release/bin/accumulator_formats --out build/study")
    rows = placed(sources, "story")
    s.findings = list(findings(rows))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} of {r['case']}: {why}"
                  for at, r in rows for why in [*broken(r), *unlike_published(r)]]
    return s


def unlike_published(r):
    if r["reproduces"] is False and r["published"] is not None:
        yield f"gave {value(r)}, but {r['published']!r} was published"


def value(r, most=9):
    """As many digits as it takes in the method's format, and whole numbers as they are; beside a bar fewer."""
    x, format = r["value"], words.parts(r["method"])[1]
    if x is None:
        return "not finite"
    if abs(x) < 1e7 and x == int(x):
        return f"{x:,.0f}"
    return repr(x) if format == "fp64" else f"{x:.{most if format == 'fp32' else 6}g}"


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    all_rows = [r | {"at": at} for at, r in rows]
    yield from within(all_rows, "samesum's methods", "their rigorous bounds", where)
    for about in (ones, cure, outputs):
        yield from telling.of_each_place(rows, about)
    lost = [r for r in all_rows if r["value"] is None and r["truth"] is not None]
    if lost:
        yield f"{words.plural(len(lost), 'sum')} overflowed though the true sum is finite: {where(lost)}."


def where(rows):
    return words.names(f"{r['method']} of {r['case']} ({r['at']})" for r in rows)


def ones(rows):
    """Where the loop of each accumulator stagnates."""
    for format in SIXTEEN:
        same = [r for r in rows if (r["case"], r["input_format"]) == ("ones", format)
                and words.order(r["method"]) in ("serial", "") and not words.is_peer(r["method"])]
        for n in distinct(r["n"] for r in same):
            told = [f"{value(r)} with {r['method'].split('@')[0]}" for r in same if r["n"] == n]
            yield f"the sum of {n:,} ones in {format} is {', '.join(told)}."


def cure(rows):
    """The worst relative error of the loop in 16 bits and in fp32, on the same elements."""
    errors = {}
    for r in rows:
        recipe, format, _ = words.parts(r["method"])
        if r["input_format"] in SIXTEEN and recipe == "serial/plain" and r["condition"] is not None:
            errors.setdefault(format if format in SIXTEEN else f"{r['input_format']} elements in fp32", []).append(r)
    finite = {name: max((r for r in some if r["relative_error"] is not None), key=lambda r: r["relative_error"],
                        default=None) for name, some in errors.items()}
    told = [f"{words.number(r['relative_error'], 2)} for {name} (of {r['case']})" for name, r in finite.items() if r]
    if len(told) > 1:
        yield f"the worst finite relative error of a loop, serial/plain, is {', '.join(told)}."


def outputs(rows):
    """Which published outputs these rows have too."""
    published = [r for r in rows if r["published"] is not None and r["reproduces"] is not None]
    kept = [r for r in published if r["reproduces"]]
    if published:
        yield (f"{words.of(len(kept), len(published), 'published output')} {words.verb(len(kept), len(published))} "
               "reproduced" + (": " if kept else "")
               + ", ".join(f"{r['published']!r} ({r['case']}, {r['input_format']})" for r in kept)
               + "".join(f"; {r['method']} of {r['case']} gave {value(r)}, not {r['published']!r}"
                         for r in published if not r["reproduces"]) + ".")


# --- the figure and the tables ----------------------------------------------------------------------------------

def digits(r):
    """Right decimal digits, for a bar; none where the result is not finite or has no digit, all where it is right,
    even if the sum is 0, which has no relative error."""
    error = r["relative_error"]
    most = precision(r) * math.log10(2)
    if r["absolute_error"] == 0:
        return most
    return min(max(-math.log10(error), 0.0), most) if error else 0.0


def figure(rows):
    menus = [("On", distinct(at for at, _ in rows)),
             ("Elements", preferred([r["input_format"] for _, r in rows], "bf16")),
             ("Sum of", preferred([r["case"] for _, r in rows], "softmax"))]
    peers = style.peers_among(r["method"] for _, r in rows)
    series = []
    for at, r in sorted(rows, key=lambda row: digits(row[1])):
        recipe, format, _ = words.parts(r["method"])
        series.append(Series(r["method"], [round(digits(r), 3)],
                             [recipe if format == r["input_format"] else f"{recipe}/{format}"],
                             style.line(r["method"], peers)[0], (at, r["input_format"], r["case"]), text=[value(r, 7)]))
    found = Figure("formats-figure", "Right digits of sums in few bits", menus, series,
                   "right decimal digits; beside each bar the result", {None: ""}, bars=True)
    found.reading = telling.reads_bars(found, lambda digits: f"{words.number(digits, 2)} right digits")
    return found


def tables(rows):
    for at, format in distinct((at, r["input_format"]) for at, r in rows):
        here = [r for a, r in rows if a == at and r["input_format"] == format]
        cases = distinct(r["case"] for r in here)
        cells = {(r["method"], r["case"]): value(r) for r in here}
        widest = {c: max((r for r in here if r["case"] == c), key=precision) for c in cases}
        exact = ["the exact sum"] + [value(r | {"value": r["truth"]}) for r in widest.values()]
        lines = [[m] + [cells.get((m, c), "") for c in cases] for m in distinct(r["method"] for r in here)]
        yield Table(f"{at}: sums of elements in {format}", ["method"] + cases, [exact] + lines,
                    folded=(at, format) != (rows[0][0], rows[0][1]["input_format"]))


def precision(r):
    return words.FORMAT_BITS[words.parts(r["method"])[1]][0]
