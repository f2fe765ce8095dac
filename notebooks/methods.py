"""Every method that was measured, in one table: what it promises, how wrong it may be and was, and how fast it was."""

import math

import words
from section import Section, Table

DATA = "normal"


def section(found):
    """At the greatest length at which each was measured on the same data, elements of its own format."""
    s = Section("methods", "All methods", "A line a method and machine. Error and its bound are those of "
                f"{DATA} elements at the greatest length measured, in units in the last place of the sum; speed is "
                "that of long arrays, on one thread or a GPU; bit patterns are the most of any array, its "
                "elements in one order. A click on a column sorts.", "experiments/run")
    table = {}
    for question, kind, fact in (("error_vs_length", "error", "error"), ("speed_vs_length", "speed", "speed"),
                                 ("spread_over_runs", "spread", "spread")):
        for source in found.get(question, []):
            for r in source.of(kind):
                if words.accumulator(r["method"]) != "read" and r["input_format"] == words.parts(r["method"])[1]:
                    table.setdefault((source.machine, r["method"]), {}).setdefault(fact, []).append(r)
    promised = promises(found)
    lines = [line(machine, method, facts, promised.get(recipe_of(method), "-"))
             for (machine, method), facts in sorted(table.items(), key=order)]
    if lines:
        s.tables = [Table(f"{words.plural(len(lines), 'line')}", ["method", "promise", "machine", "n", "error, ulps",
                                                                "bound, ulps", "GB/s", "bit patterns"],
                          lines, words=3)]
    return s


def recipe_of(method):
    """Without the backend, which promises depend on of peers alone."""
    return method if words.is_peer(method) else method.split("@")[0]


def promises(found):
    """Rows of speed do not tell them, but those of other questions do."""
    sources = [s for some in found.values() for s in some]
    told = [r for s in sources for r in s.of("error") + s.of("spread")]
    told += [m for s in sources for c in s.of("comparison") for m in c["methods"]]
    return {recipe_of(r["method"]): r["promise"] for r in told}


def order(item):
    (machine, method), _ = item
    recipe, format, backend = words.parts(method)
    return words.is_peer(method), words.FORMAT_BITS.get(format, (0, 0))[0] != 24, format, backend, recipe, machine


def line(machine, method, facts, promise):
    errors = [r for r in facts.get("error", []) if r["data"] == DATA]
    speeds = [r for r in facts.get("speed", []) if r["data"] == DATA and r["caches"] == "hot" and r["threads"] <= 1]
    worst = max(errors, key=lambda r: r["n"], default=None)
    fastest = max(speeds, key=lambda r: r["n"], default=None)
    patterns = max((r for r in facts.get("spread", []) if r["axis"] != "permutation"),
                   key=lambda r: r["distinct_bits"], default=None)
    return [method, promise, machine, words.count(worst["n"]) if worst else "-",
            *((words.number(worst["error_ulps"], 2), bound(worst)) if worst else ("-", "-")),
            words.number(fastest["gb_per_s"]) if fastest else "-",
            f"{patterns['distinct_bits']} of {patterns['runs']}" if patterns else "-"]


def bound(r):
    if r["bound"] is None or not r["truth"]:
        return "none"
    ulps = r["bound"] / words.ulp(words.parts(r["method"])[1], r["truth"])
    return words.number(ulps, 2) if math.isfinite(ulps) else "none"
