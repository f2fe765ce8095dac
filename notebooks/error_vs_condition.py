"""Section on the correct digits of each sum against the condition number of the data."""

import captions
import phrases
import style
from figure import Figure, Series
from section import (Section, Table, bound_findings, distinct, exactness_findings, group_by_place, preferred,
                     result_failures, rows_with_place, starting_with)

SHOWN = ["exact", "tree/double_word", "tree/neumaier", "tree/kahan", "tree/plain"]


def section(sources):
    s = Section("condition", "Error against condition number", "How much cancellation does each method survive?",
                "Correct decimal digits of each method as cancellation "
                "increases: on synthetic data with condition numbers from 1 to 10⁴⁰, or as far as the range of the "
                "format allows.", "build/release/bin/error_vs_condition --full --out build/study",
                terms=("method", "order", "accumulator", "bound", "condition number"))
    rows = rows_with_place(sources, "condition")
    s.verdict = verdict(rows)
    s.findings = list(findings(rows))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} at condition number {phrases.power_of_ten(r['target_condition'])}: {why}"
                  for at, r in rows if not phrases.is_peer(r["method"]) for why in result_failures(r)]
    return s


def where_lost(rows):
    """Smallest condition number from which on no row has a correct digit; None if the last row has one."""
    rows = sorted(rows, key=lambda r: r["target_condition"])
    without = 0
    while without < len(rows) and rows[-1 - without]["digits"] < 1:
        without += 1
    return rows[-without]["target_condition"] if without else None


def losses(rows):
    """{(format, algorithm, is a peer): where_lost} for the methods in the format of the elements."""
    lines = {}
    for r in rows:
        algorithm, format, _ = phrases.parts(r["method"])
        if format == r["input_format"]:
            lines.setdefault((format, algorithm, phrases.is_peer(r["method"])), []).append(r)
    return {key: where_lost(some) for key, some in lines.items()}


def greatest(rows):
    return phrases.power_of_ten(max(r["target_condition"] for r in rows))


# --- sentences --------------------------------------------------------------------------------------------------

def verdict(rows):
    """Where each of the methods in SHOWN loses its last digit in fp32, on the first machine."""
    places = group_by_place(rows)
    at = next(iter(preferred(places)), None)
    format = next(iter(starting_with([r["input_format"] for r in places.get(at, [])], "fp32")), None)
    lost = {algorithm: where for (f, algorithm, peer), where in losses(places.get(at, [])).items()
            if f == format and not peer and algorithm in SHOWN}
    if not lost:
        return ""
    steps = sorted({where for where in lost.values() if where is not None})
    texts = [f"{phrases.power_of_ten(step)} by {' and '.join(m for m, where in lost.items() if where == step)}"
             for step in steps]
    never = [algorithm for algorithm, where in lost.items() if where is None]
    most = greatest(r for r in places[at] if r["input_format"] == format)
    return (f"In {format} the last correct digit is lost "
            + "; ".join([f"at condition number {', '.join(texts)}"] * bool(texts)
                        + [f"not up to {most} by {phrases.names(never)}"] * bool(never)) + f" ({at}).")


def findings(rows):
    ours = [r | {"at": at} for at, r in rows if not phrases.is_peer(r["method"])]
    yield from bound_findings(ours, "samesum's methods", "their rigorous bounds",
                              lambda some: phrases.names(f"{r['method']} at condition number "
                                                         f"{phrases.power_of_ten(r['target_condition'])} "
                                                         f"({r['at']})" for r in some))
    yield from captions.sentences_by_place(rows, lost_digits)
    exact = [r for r in ours if phrases.accumulator(r["method"]) == "exact"]
    yield from exactness_findings(exact, f" with condition numbers up to {greatest(exact)}" if exact else "")


def lost_digits(rows):
    """Yields a sentence per format: the condition number at which each of samesum's methods loses its last digit."""
    for format in starting_with([r["input_format"] for r in rows], "fp32"):
        here = {algorithm: at for (f, algorithm, peer), at in losses(rows).items() if f == format and not peer}
        if not here:
            continue
        most = greatest(r for r in rows if r["input_format"] == format)
        steps = sorted({at for at in here.values() if at is not None})
        lost = [f"{phrases.power_of_ten(step)} by {phrases.names([m for m, at in here.items() if at == step], 4)}"
                for step in steps]
        never = [m for m, at in here.items() if at is None]
        if not lost:
            yield f"in {format} no method loses its last correct digit up to condition number {most}."
            continue
        yield (f"in {format} the last correct digit is lost at condition number {'; '.join(lost)}"
               + (f"; not up to {most} by {phrases.names(never, 4)}." if never else "."))


# --- figure and tables ------------------------------------------------------------------------------------------

def figure(rows):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("Machine", distinct(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32")),
             ("Methods", style.all_groups(methods))]
    lines = {}
    for at, r in rows:
        if r["condition"] is not None:
            lines.setdefault((at, r["input_format"], r["method"]), []).append(r)
    series = []
    for (at, input, method), points in lines.items():
        algorithm, format, _ = phrases.parts(method)
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["condition"])
        for group in style.groups(method):
            series.append(Series(algorithm if format == input else f"{algorithm}/{format}",
                                 [r["condition"] for r in points], [r["digits"] for r in points], colour,
                                 (at, input, group), dash, symbol))
    found = Figure("condition-figure", "Correct digits of each method by condition number", menus, series,
                   "condition number, Σ|x| / |Σx|", {None: "correct decimal digits"}, x_kind="log10", y_kind="linear",
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: condition "
                               "number. Vertical axis: correct decimal digits. Below one digit, nothing in the result "
                               "is correct.")
    found.finding = captions.describe_lines(
        found, lambda x: f"a condition number of about {phrases.power_of_ten(x)}",
        lambda digits: f"{phrases.number(digits, 2)} correct digits")
    return found


def tables(rows):
    for at, here in group_by_place(rows).items():
        lost = {(format, algorithm): condition for (format, algorithm, _), condition in losses(here).items()}
        formats = distinct(format for format, _ in lost)
        algorithms = sorted({algorithm for _, algorithm in lost}, key=lambda m: (m not in SHOWN, m))
        most = {f: greatest(r for r in here if r["input_format"] == f) for f in formats}
        lines = [[algorithm] + [cell(lost, (f, algorithm), most[f]) for f in formats] for algorithm in algorithms]
        yield Table(f"{at}: condition number at which the last correct digit is lost", ["method"] + formats, lines, folded=True,
                    note="lost: fewer than one digit is correct; over: not lost up to the largest condition number that was "
                         "tried.")


def cell(lost, key, most):
    if key not in lost:
        return ""
    return phrases.power_of_ten(lost[key]) if lost[key] is not None else f"over {most}"
