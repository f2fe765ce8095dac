"""Section on sums with 16-bit accumulators: stagnation, overflow and remedies."""

import math

import captions
import phrases
import style
from figure import Figure, Series, with_several_bars
from section import Section, Table, bound_findings, distinct, result_failures, rows_with_place, starting_with

SIXTEEN = ("fp16", "bf16")


def section(sources):
    s = Section("formats", "Accumulators of 16 bits", "What happens to sums in 16 bits?",
                "Sums from practice, with every accumulator in the format of the "
                "elements and, for 16-bit elements, also in fp32. They show which accumulators stagnate (further "
                "elements no longer change the sum), which overflow, and what avoids both.",
                "build/release/bin/accumulator_formats --out build/study", terms=("method", "order", "accumulator", "bound"))
    rows = rows_with_place(sources, "story")
    s.verdict = verdict(rows)
    s.findings = list(findings(rows))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} on {r['case']}: {why}"
                  for at, r in rows for why in [*result_failures(r), *publication_failures(r)]]
    return s


def publication_failures(r):
    if r["reproduces"] is False and r["published"] is not None:
        yield f"returned {value(r)}, but {r['published']!r} was published"


def value(r, most=9):
    """The result with enough digits for the format of the method, at most `most` in fp32; integers in full."""
    x, format = r["value"], phrases.parts(r["method"])[1]
    if x is None:
        return "not finite"
    if abs(x) < 1e7 and x == int(x):
        return f"{x:,.0f}"
    return repr(x) if format == "fp64" else f"{x:.{most if format == 'fp32' else 6}g}"


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    all_rows = [r | {"at": at} for at, r in rows]
    yield from bound_findings(all_rows, "samesum's methods", "their rigorous bounds", row_names)
    for describe in (ones, remedy, outputs):
        yield from captions.sentences_by_place(rows, describe)
    lost = [r for r in all_rows if r["value"] is None and r["truth"] is not None]
    if lost:
        yield f"{phrases.plural(len(lost), 'sum')} overflowed although the exact sum is finite: {row_names(lost)}."


def stagnated(rows):
    """(loop in 16 bits, loop in fp32 or None): rows of the same ones in one place, in bf16 if that was measured; None
    without such a loop."""
    loops = {(at, r["input_format"], phrases.parts(r["method"])[1]): r for at, r in reversed(rows)
             if r["case"] == "ones" and phrases.parts(r["method"])[0] == "serial/plain"}
    for at, format in distinct((at, format) for format in reversed(SIXTEEN) for at, _ in rows):
        loop, wide = loops.get((at, format, format)), loops.get((at, format, "fp32"))
        if loop:
            return loop, wide if wide and wide["n"] == loop["n"] else None
    return None


def verdict(rows):
    found = stagnated(rows)
    if not found:
        return ""
    loop, wide = found
    places = distinct(at for at, r in rows if r["value"] == loop["value"] and r["method"] == loop["method"]
                      and all(r[field] == loop[field] for field in ("case", "n")))
    return (f"{phrases.plural(loop['n'], 'one')} in {loop['input_format']} add up to {value(loop)} in a loop"
            + (f", and to {value(wide)} if its accumulator has fp32" if wide else "") + f" ({'; '.join(places)}).")


def row_names(rows):
    return phrases.names(f"{r['method']} on {r['case']} ({r['at']})" for r in rows)


def ones(rows):
    """Yields what the loop of each accumulator returns for ones, on which 16-bit accumulators stagnate."""
    for format in SIXTEEN:
        same = [r for r in rows if (r["case"], r["input_format"]) == ("ones", format)
                and phrases.order(r["method"]) in ("serial", "") and not phrases.is_peer(r["method"])]
        for n in distinct(r["n"] for r in same):
            values = [f"{value(r)} with {r['method'].split('@')[0]}" for r in same if r["n"] == n]
            yield f"the sum of {n:,} ones in {format} is {', '.join(values)}."


def remedy(rows):
    """Yields the largest relative errors of the loop in 16 bits and in fp32 on the same elements."""
    errors = {}
    for r in rows:
        algorithm, format, _ = phrases.parts(r["method"])
        if r["input_format"] in SIXTEEN and algorithm == "serial/plain" and r["condition"] is not None:
            errors.setdefault(format if format in SIXTEEN else f"{r['input_format']} elements added in fp32",
                              []).append(r)
    finite = {name: max((r for r in some if r["relative_error"] is not None), key=lambda r: r["relative_error"],
                        default=None) for name, some in errors.items()}
    largest = [f"{phrases.number(r['relative_error'], 2)} for {name} (on {r['case']})" for name, r in finite.items()
               if r]
    if len(largest) > 1:
        yield f"the largest finite relative error of a loop (serial/plain) is {', '.join(largest)}."


def outputs(rows):
    """Yields which published outputs these rows reproduce."""
    published = [r for r in rows if r["published"] is not None and r["reproduces"] is not None]
    kept = [r for r in published if r["reproduces"]]
    if published:
        yield (f"{phrases.out_of(len(kept), len(published), 'published output')} "
               f"{phrases.verb(len(kept), len(published))} reproduced" + (": " if kept else "")
               + ", ".join(f"{r['published']!r} ({r['case']}, {r['input_format']})" for r in kept)
               + "".join(f"; {r['method']} on {r['case']} returned {value(r)} instead of {r['published']!r}"
                         for r in published if not r["reproduces"]) + ".")


# --- figure and tables ------------------------------------------------------------------------------------------

def digits(r):
    """Correct decimal digits of a result: 0 if it is not finite; all of the format if it is exact, even for a sum of 0,
    which has no relative error."""
    error = r["relative_error"]
    most = precision(r) * math.log10(2)
    if r["absolute_error"] == 0:
        return most
    return min(max(-math.log10(error), 0.0), most) if error else 0.0


def figure(rows):
    menus = [("Machine", distinct(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "bf16")),
             ("Case", starting_with([r["case"] for _, r in rows], "softmax"))]
    peers = style.peers_among(r["method"] for _, r in rows)
    series = []
    for at, r in sorted(rows, key=lambda row: digits(row[1])):
        algorithm, format, _ = phrases.parts(r["method"])
        series.append(Series(r["method"], [round(digits(r), 3)],
                             [algorithm if format == r["input_format"] else f"{algorithm}/{format}"],
                             style.line(r["method"], peers)[0], (at, r["input_format"], r["case"]), text=[value(r, 7)]))
    found = with_several_bars(Figure(
        "formats-figure", "Correct digits of sums with 16-bit and wider accumulators", menus, style.together(series),
        "correct decimal digits; label: the result", {None: ""}, bars=True, dots=True,
        description="Each point is a method, or several with the same result; its colour shows the accumulator. "
                    "Horizontal axis: correct decimal digits of the result. Label: the result."))
    found.finding = captions.describe_bars(found, lambda digits: f"{phrases.number(digits, 2)} correct digits")
    return found


def tables(rows):
    for at, format in distinct((at, r["input_format"]) for at, r in rows):
        here = [r for a, r in rows if a == at and r["input_format"] == format]
        cases = distinct(r["case"] for r in here)
        cells = {(r["method"], r["case"]): value(r) for r in here}
        widest = {c: max((r for r in here if r["case"] == c), key=precision) for c in cases}
        exact = ["exact sum"] + [value(r | {"value": r["truth"]}) for r in widest.values()]
        lines = [[m] + [cells.get((m, c), "") for c in cases] for m in distinct(r["method"] for r in here)]
        yield Table(f"{at}: sums of elements in {format}", ["method"] + cases, [exact] + lines, folded=True)


def precision(r):
    return phrases.FORMAT_BITS[phrases.parts(r["method"])[1]][0]
