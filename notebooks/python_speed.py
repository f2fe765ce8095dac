"""Section on the speed of calls from Python, relative to NumPy and to other libraries, and the table of the package's page."""

import re

import captions
import phrases
import results
import style
import timing
from figure import Figure, Series
from result_arrays import cells, is_ours
from section import (Section, Table, declined_findings, distinct, group_by_place, preferred, rows_with_place)
from speed_of_reductions import bars_in_words, target_findings

NUMPY = "numpy/"
FEW = 8  # length of the shortest vectors
EXACT_SUMS = ("xsum/", "bitrep/", "accupy/")  # exact sums of other libraries


def section(sources):
    s = Section("python", "Speed in Python", "How fast is the Python package beside NumPy?",
                "Calls from Python, along an axis of an array, beside the same functions of NumPy, one thread each; sums "
                "also with two threads. All calls on an array take turns. Times are medians.",
                "build/venv/bin/python experiments/python_speed.py --full --out build/study",
                terms=("method", "target", "faster, as fast, not decided", "reading alone"))
    rows = beside_peers(rows_with_place(sources, "reduction"))
    s.verdict = verdict(rows)
    s.findings = [*findings(rows), *declined_findings(sources)]
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = [*beside_numpy(rows), *every_call(rows)]
    s.open_tables = 1
    return s


def algorithm(r):
    """'tree/plain' for sum/tree/plain/fp32@cpu, 'exact' for moments/exact/fp32@cpu."""
    return phrases.parts(r["method"].partition("/")[2])[0]


def column(r):
    """'sum, tree/plain'."""
    return f"{r['operation']}, {algorithm(r)}"


def shape(r):
    """'100,000 × 32, rows', '1,024 × 10,000, columns', 'vector of 10,000,000', 'list of 1,000,000'; the reduced axis is that
    of rows, or of columns."""
    if r["inner"] > 1 or r["outer"] > 1:
        lengths = [r["outer"]] * (r["outer"] > 1) + [r["n"]] + [r["inner"]] * (r["inner"] > 1)
        return f"{' × '.join(f'{length:,}' for length in lengths)}, {'rows' if r['inner'] == 1 else 'columns'}"
    return f"{'list' if r.get('given') == 'list' else 'vector'} of {phrases.count(r['n'])}"


def beside_peers(rows):
    """The pairs (place, row), in which "beside" is the row of the peer that took turns."""
    made = []
    for at, some in group_by_place(rows).items():
        for together in cells(some):
            by_method = {r["method"]: r for r in together}
            made += [(at, r | {"beside": by_method[r["peer"]]} if r.get("peer") in by_method else r) for r in together]
    return made


def has_speed(r, peer=""):
    """Whether the row is of samesum and has a time relative to a library whose name begins with `peer`."""
    return is_ours(r) and bool(r.get("peer") and r.get("times_peer")) and r["peer"].startswith(peer)


def speed(r):
    """Speed relative to the other library."""
    return 1 / r["times_peer"]


def span(ratios):
    """'0.5 to 3.1 times'."""
    ratios = sorted(ratios)
    return " to ".join(distinct(phrases.number(end, 2) for end in (ratios[0], ratios[-1]))) + " times"


# --- sentences ----------------------------------------------------------------------------------------------------

def by_column(some):
    """{column: [row, …]} of the rows that have a speed relative to NumPy."""
    return group_by_place((column(r), r) for r in some if has_speed(r, NUMPY))


def verdict(rows):
    """The range of the exact sums and of those in a tree relative to NumPy, in the first place of each machine."""
    places, texts = group_by_place(rows), []
    first = {at.partition(",")[0]: at for at in reversed(preferred(at for at, r in rows if has_speed(r, NUMPY)))}
    for at in reversed(first.values()):
        found = by_column(places[at])
        named = [(name, found[key]) for name, key in (("exact sums", "sum, exact"), ("sums in a tree", "sum, tree/plain"))
                 if key in found]
        texts += [", ".join(f"{name} {span(map(speed, some))}" for name, some in named) + f" ({at})"] if named else []
    return f"Relative to NumPy's, the speed is: {'; '.join(texts)}." if texts else ""


def findings(rows):
    for at, some in group_by_place(rows).items():
        yield from target_findings(at, [(r, bar) for r in some for bar in r["bars"]])
        for key, found in by_column(some).items():
            (low, last), (high, first) = (end(((speed(r), r) for r in found), key=lambda pair: pair[0]) for end in (min, max))
            pairs = [(r, r["beside"]) for r in found if "beside" in r]
            counts = f": {timing.in_words(pairs, 'array')}" if pairs else ""
            where = f" ({what(last)}) to {phrases.number(high, 2)} ({what(first)})" if last is not first else f" ({what(last)})"
            yield phrases.capitalised(f"{at}: {key} has {phrases.number(low, 2)}{where} times the speed of "
                                      f"NumPy{counts}.")
        others = [f"{phrases.number(speed(r), 2)} times that of {phrases.parts(r['peer'])[0]} ({column(r)}; {what(r)})"
                  for r in some if has_speed(r) and not r["peer"].startswith((NUMPY, *EXACT_SUMS))]
        if others:
            yield phrases.capitalised(f"{at}: the speed is {'; '.join(others)}.")
        yield from beside_exact_sums(at, some)


def beside_exact_sums(at, some):
    """Yields a sentence per array on the time of exact relative to the exact sums of other libraries."""
    for together in cells(some):
        ours = next((r for r in together if is_ours(r) and algorithm(r) == "exact"), None)
        others = [r for r in together if r["method"].startswith(EXACT_SUMS) and r["verified"] is not False]
        if ours and others:
            times = phrases.names(f"{phrases.number(r['seconds'] / ours['seconds'], 2)} times that of {phrases.parts(r['method'])[0]}"
                                  for r in others)
            yield phrases.capitalised(f"{at}: the speed of exact is {times} ({what(ours)}).")


def what(r):
    return f"{r['input_format']}, {shape(r)}"


# --- figure and tables --------------------------------------------------------------------------------------------

def figure(rows):
    drawn = [(at, r) for at, r in rows if has_speed(r, NUMPY)]
    calls = distinct(column(r) for _, r in drawn)
    series = [Series(algorithm(r), [speed(r)], [what(r)], style.colour(r["method"]), (at, column(r)),
                     text=[f"{phrases.number(speed(r), 2)} ×"])
              for at, r in sorted(drawn, key=lambda pair: speed(pair[1]))]
    found = Figure("python-figure", "Speed relative to NumPy",
                   [("Machine", preferred(at for at, _ in drawn)),
                    ("Call", sorted(calls, key=lambda call: call != "sum, exact"))],
                   series, "times the speed of NumPy", {None: ""}, bars=True,
                   description="Each bar is an array: the speed of a call of samesum over that of the same function of NumPy. "
                               "Rows are reduced along the last axis, columns along the first.")
    found.finding = captions.describe_bars(found, lambda ratio: f"{phrases.number(ratio, 2)} times its speed").replace(
        "the methods range", "the arrays range").replace("methods have", "arrays have").replace(
        "the only method has", "the only array has")
    return found


def beside_numpy(rows):
    """Yields for each place a table with a row per array and a column per call, of speeds relative to NumPy."""
    for at, some in group_by_place((at, r) for at, r in rows if has_speed(r, NUMPY)).items():
        columns = distinct(map(column, some))
        arrays = group_by_place((what(r), {column(r): r}) for r in some)
        lines = []
        for name, found in arrays.items():
            found = {key: r for each in found for key, r in each.items()}
            lines.append([name, *(relative(found[key]) if key in found else "" for key in columns)])
        yield Table(f"{at}: samesum beside NumPy", ["elements", *columns], lines,
                    note=f"Times the speed of NumPy; < is followed by the target that was missed. {timing.UNDECIDED}: "
                         "which is faster is not decided.")


def relative(r):
    """'1.3', '1.1?' if that is not decided, or '0.7 < 0.8' if a target relative to NumPy was missed."""
    missed = [bar["factor"] for bar in r["bars"] if not bar["holds"] and bar["against"] == r["peer"]]
    ratio = timing.ratio(r, r["beside"]) if "beside" in r else None
    mark = timing.UNDECIDED if ratio and ratio.verdict == timing.OPEN else ""
    if missed:
        reached, wanted = phrases.number_pair(speed(r), max(missed), 2)
        return f"{reached}{mark} < {wanted}"
    return phrases.number(speed(r), 2) + mark


def every_call(rows):
    for at, some in group_by_place(rows).items():
        lines = [[r["operation"], shape(r), r["input_format"], r["method"], phrases.number(r["seconds"] * 1e6),
                  phrases.number(r["gb_per_s"]), bars_in_words(r["bars"])] for together in cells(some) for r in together]
        yield Table(f"{at}: all calls from Python", ["function", "shape", "elements", "method", "time, µs", "GB/s", "targets"],
                    lines, text_columns=4, folded=True, page_only=True)


# --- the page of the package --------------------------------------------------------------------------------------

def page_tables(sources):
    """The tables of samesum beside NumPy in Markdown, with their machines, versions and dates."""
    made = []
    for source in sources:
        about = source.header["provenance"]
        numpy = source.header["options"]["numpy"]
        for table in beside_numpy(beside_peers((source.machine, r) for r in source.rows if r["threads"] == 1)):
            made += [f"{results.cpu_of(about)}, NumPy {numpy}, {about['date'][:10]}:", "",
                     "| " + " | ".join(["", *(re.sub(r"(.*), (.*)", r"\1 `\2`", name) for name in table.columns[1:])]) + " |",
                     "| --- |" + " ---: |" * (len(table.columns) - 1),
                     *("| " + " | ".join(line) + " |" for line in table.rows), ""]
        made += [*page_sentences(source.rows), ""]
    return "\n".join(made)


def page_sentences(rows):
    """Yields a sentence on the times of short calls."""
    for few in rows:
        if few["n"] == FEW and has_speed(few, NUMPY):
            yield (f"A call for {few['n']} {few['input_format']} takes {phrases.duration(few['seconds'], 2)}, NumPy's "
                   f"{phrases.duration(few['seconds'] / few['times_peer'], 2)}.")
