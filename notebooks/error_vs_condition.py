"""How many digits of each sum are right, for data of every condition?"""

import style
import telling
import words
from figure import Figure, Series
from section import Section, Table, broken, by_place, distinct, exactness, placed, preferred, within

SHOWN = ["exact", "tree/double_word", "tree/neumaier", "tree/kahan", "tree/plain"]


def section(sources):
    s = Section("condition", "Error against condition", "How many digits of each sum are right where more and more of "
                "it cancels: on made data whose condition, Σ|x| over |Σx|, is 1 to 10⁴⁰, or as far as the format's "
                "range allows.", "build/release/bin/error_vs_condition --full --out build/study")
    rows = placed(sources, "condition")
    s.findings = list(findings(rows))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} at condition {words.power_of_ten(r['target_condition'])}: {why}"
                  for at, r in rows if not words.is_peer(r["method"]) for why in broken(r)]
    return s


def where_lost(rows):
    """The least condition from which on no row has a right digit; None where the last one has."""
    rows = sorted(rows, key=lambda r: r["target_condition"])
    without = 0
    while without < len(rows) and rows[-1 - without]["digits"] < 1:
        without += 1
    return rows[-without]["target_condition"] if without else None


def losses(rows):
    """By format and recipe, of methods whose format is that of the elements."""
    lines = {}
    for r in rows:
        recipe, format, _ = words.parts(r["method"])
        if format == r["input_format"]:
            lines.setdefault((format, recipe, words.is_peer(r["method"])), []).append(r)
    return {key: where_lost(some) for key, some in lines.items()}


def greatest(rows):
    return words.power_of_ten(max(r["target_condition"] for r in rows))


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    ours = [r | {"at": at} for at, r in rows if not words.is_peer(r["method"])]
    yield from within(ours, "samesum's methods", "their rigorous bounds",
                      lambda some: words.names(f"{r['method']} at condition "
                                               f"{words.power_of_ten(r['target_condition'])} "
                                               f"({r['at']})" for r in some))
    yield from telling.of_each_place(rows, lost_digits)
    exact = [r for r in ours if words.accumulator(r["method"]) == "exact"]
    yield from exactness(exact, f", of conditions up to {greatest(exact)}" if exact else "")


def lost_digits(rows):
    """In each format where every one of our methods ends."""
    for format in preferred([r["input_format"] for r in rows], "fp32"):
        here = {recipe: at for (f, recipe, peer), at in losses(rows).items() if f == format and not peer}
        if not here:
            continue
        most = greatest(r for r in rows if r["input_format"] == format)
        steps = sorted({at for at in here.values() if at is not None})
        told = [f"at {words.power_of_ten(step)} by {words.names([m for m, at in here.items() if at == step], 4)}"
                for step in steps]
        never = [m for m, at in here.items() if at is None]
        if not told:
            yield f"in {format} no method loses its last right digit up to {most}."
            continue
        yield (f"in {format} the last right digit is lost {'; '.join(told)}"
               + (f"; up to {most} never by {words.names(never, 4)}." if never else "."))


# --- the figure and the tables ----------------------------------------------------------------------------------

def figure(rows):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("On", distinct(at for at, _ in rows)),
             ("Elements", preferred([r["input_format"] for _, r in rows], "fp32")),
             ("Show", style.all_groups(methods))]
    lines = {}
    for at, r in rows:
        if r["condition"] is not None:
            lines.setdefault((at, r["input_format"], r["method"]), []).append(r)
    series = []
    for (at, input, method), points in lines.items():
        recipe, format, _ = words.parts(method)
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["condition"])
        for group in style.groups(method):
            series.append(Series(recipe if format == input else f"{recipe}/{format}",
                                 [r["condition"] for r in points], [r["digits"] for r in points], colour,
                                 (at, input, group), dash, symbol))
    found = Figure("condition-figure", "Right digits of each sum, by condition", menus, series,
                   "condition, Σ|x| / |Σx|", {None: "right decimal digits"}, x_kind="log10", y_kind="linear",
                   note="Below one digit nothing of the result is right.")
    found.reading = telling.reads_lines(found, lambda x: f"a condition of about {words.power_of_ten(x)}",
                                        lambda digits: f"{words.number(digits, 2)} right digits")
    return found


def tables(rows):
    for i, (at, here) in enumerate(by_place(rows).items()):
        lost = {(format, recipe): condition for (format, recipe, _), condition in losses(here).items()}
        formats = distinct(format for format, _ in lost)
        recipes = sorted({recipe for _, recipe in lost}, key=lambda m: (m not in SHOWN, m))
        most = {f: greatest(r for r in here if r["input_format"] == f) for f in formats}
        lines = [[recipe] + [cell(lost, (f, recipe), most[f]) for f in formats] for recipe in recipes]
        yield Table(f"{at}: the condition at which the last right digit is lost", ["method"] + formats, lines,
                    folded=i > 0, note="Over: not up to the greatest condition that was tried.")


def cell(lost, key, most):
    if key not in lost:
        return ""
    return words.power_of_ten(lost[key]) if lost[key] is not None else f"over {most}"
