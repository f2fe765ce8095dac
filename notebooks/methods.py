"""The section that lists every method with its promise, error, bound and speed."""

import math

import phrases
from section import SAME_EVERYWHERE, Section, Table

DATA = "normal"


def section(found):
    """One row per method and machine, at the greatest length measured, for elements in the format of the method."""
    s = Section("methods", "All sums", "Which sums are there?",
                f"One row per method and machine. Error and bound, in ulps, are for {DATA} "
                "elements at the greatest length measured. Speed is for long arrays, on one thread or a GPU. “Bit "
                "patterns” is the largest number of different results for one array whose element order was kept. "
                "“-” means not measured, “none” no finite bound.",
                "experiments/run", terms=("method", "order", "accumulator", "promise", "ulp", "bound", "cub"))
    table = {}
    for question, kind, fact in (("error_vs_length", "error", "error"), ("speed_vs_length", "speed", "speed"),
                                 ("spread_over_runs", "spread", "spread")):
        for source in found.get(question, []):
            for r in source.of(kind):
                if phrases.accumulator(r["method"]) != "read" and r["input_format"] == phrases.parts(r["method"])[1]:
                    table.setdefault((source.place_of(r["method"]), r["method"]), {}).setdefault(fact, []).append(r)
    promised = promises(found)
    rows = [row(machine, method, facts, promised.get(without_backend(method), "-"))
            for (machine, method), facts in sorted(table.items(), key=order)]
    columns = ["method", "promise", "machine", "n", "error, ulps", "bound, ulps", "GB/s", "bit patterns"]
    if len({source.machine for some in found.values() for source in some}) == 1:  # a host computes @cpu, its GPU @cuda
        columns, *rows = ([*cells[:2], *cells[3:]] for cells in (columns, *rows))
    if rows:
        names = {without_backend(method) for _, method in table}
        ours = [m for m in names if not phrases.is_peer(m)]
        others = [m for m in names if phrases.is_peer(m)]
        s.verdict = (f"{phrases.plural(len(ours), 'sum')} of samesum"
                     + (f" and {len(others)} of {phrases.peers_in_words(others, many=True)}"
                        if others else "")
                     + f" {phrases.verb(len(names), len(names), 'was', 'were')} measured; "
                     f"{sum(promised.get(m) in SAME_EVERYWHERE for m in ours)} of samesum's promise the same bits everywhere.")
        s.tables = [Table("All sums", columns, rows, text_columns=columns.index("n"))]
    return s


def without_backend(method):
    """Name of a method without its backend; for a peer the whole name. The promise depends on this alone."""
    return method if phrases.is_peer(method) else method.split("@")[0]


def promises(found):
    """{method without backend: promise} from the rows that state promises; rows of speeds do not."""
    sources = [s for some in found.values() for s in some]
    rows = [r for s in sources for r in s.of("error") + s.of("spread")]
    rows += [m for s in sources for c in s.of("comparison") for m in c["methods"]]
    return {without_backend(r["method"]): r["promise"] for r in rows}


def order(item):
    (machine, method), _ = item
    algorithm, format, backend = phrases.parts(method)
    return (phrases.is_peer(method), phrases.FORMAT_BITS.get(format, (0, 0))[0] != 24, format, backend, algorithm,
            machine)


def row(machine, method, facts, promise):
    errors = [r for r in facts.get("error", []) if r["data"] == DATA]
    speeds = [r for r in facts.get("speed", []) if r["data"] == DATA and r["caches"] == "hot" and r["threads"] <= 1]
    worst = max(errors, key=lambda r: r["n"], default=None)
    fastest = max(speeds, key=lambda r: r["n"], default=None)
    patterns = max((r for r in facts.get("spread", []) if r["axis"] != "permutation"),
                   key=lambda r: r["distinct_bits"], default=None)
    return [method, promise, machine, phrases.count(worst["n"]) if worst else "-",
            *((phrases.error_in_ulps(worst["error_ulps"], phrases.parts(method)[1]), bound(worst)) if worst else ("-", "-")),
            phrases.number(fastest["gb_per_s"]) if fastest else "-",
            f"{patterns['distinct_bits']} in {phrases.plural(patterns['runs'], 'run')}" if patterns else "-"]


def bound(r):
    if r["bound"] is None or not r["truth"]:
        return "none"
    ulps = r["bound"] / phrases.ulp(phrases.parts(r["method"])[1], r["truth"])
    return phrases.number(ulps, 2) if math.isfinite(ulps) else "none"
