"""Section on operations other than sums, from the rows of the experiments on error, condition, spread, order and price."""

import phrases
import style
from figure import Figure, Series
from section import (SAME_EVERYWHERE, Section, Table, bound_findings, distinct, place, promises_one_result, result_failures,
                     starting_with)

KINDS = {"error": "error_vs_length", "condition": "error_vs_condition", "spread": "spread_over_runs",
         "tree": "reveal_order", "price": "price_of_promise"}
LEAST_ULPS = 1e-3  # smaller errors are plotted here: a logarithmic axis has no place for 0


def section(found):
    """`found` has the sources of each experiment."""
    s = Section("operations", "Every operation", "The same questions for means, dot products, norms, variances (of "
                "moments), products, logsumexp and softmax (its first element): errors against exact results, bits over "
                "runs, orders, and prices.",
                " && ".join(f"build/release/bin/{e} --full --out build/study" for e in KINDS.values()),
                terms=("method", "order", "accumulator", "promise", "ulp", "bound", "condition number"))
    rows = {kind: [(place(source, r), r) for source in found.get(question, []) for r in source.of_operations(kind)]
            for kind, question in KINDS.items()}
    if any(rows.values()):
        s.findings = list(findings(rows))
        s.figures = [f for f in [figure(rows["error"])] if f.series]
        s.tables = [t for t in [error_table(rows["error"]), condition_table(rows["condition"]), price_table(rows["price"])]
                    if t.rows]
        s.failures = list(failures(rows))
    return s


def samesums(rows):
    return [r for _, r in rows if not phrases.is_peer(r["method"])]


def of_operations(rows):
    return phrases.names(distinct(r["operation"] for r in rows), most=20)


def row_names(rows):
    return phrases.names(f"{r['method']} on {r['data']} at n = {phrases.count(r['n'])}" for r in rows)


# --- sentences ------------------------------------------------------------------------------------------------------

def findings(rows):
    results = samesums(rows["error"]) + samesums(rows["condition"])
    yield from bound_findings(results, "samesum's methods for these operations", "their rigorous bounds", row_names)
    exact = [r["bits"] == r["truth_bits"] for r in results if is_exact(r)]
    if exact:
        operations = of_operations([r for r in results if is_exact(r)])
        yield (f"exact is the correctly rounded result in {phrases.out_of(sum(exact), len(exact), 'result')} "
               f"({operations}).")
    promised = [r for r in samesums(rows["spread"]) if promises_one_result(r)]
    if promised:
        kept = sum(r["distinct_bits"] == 1 for r in promised)
        yield (f"Where a promise allows one result only, "
               f"{phrases.out_of(kept, len(promised), 'pair of method and setting', 'pairs of method and setting')} gave "
               f"one ({of_operations(promised)}).")
    trees = [r for r in samesums(rows["tree"]) if r["matches"] is not None]
    if trees:
        found = sum(r["matches"] for r in trees)
        yield (f"{phrases.capitalised(phrases.out_of(found, len(trees), 'order'))} of {of_operations(trees)} "
               f"{phrases.verb(found, len(trees))} as declared.")


def is_exact(r):
    """Whether a method of samesum promises the exact result, rounded once; softmax/exact has an exact denominator only."""
    return phrases.accumulator(r["method"]) == "exact" and r["operation"] != "softmax"


def failures(rows):
    for _, r in rows["error"] + rows["condition"]:
        if not phrases.is_peer(r["method"]):
            judged = r if is_exact(r) else r | {"truth_bits": r["bits"]}
            yield from (f"{r['method']} on {r['data']}, n = {r['n']:,}: {why}" for why in result_failures(judged))
    for _, r in rows["spread"]:
        if r["broken"] and not phrases.is_peer(r["method"]):
            yield f"{r['method']} on {r['data']}: {r['distinct_bits']} results over {r['axis']}"
    for _, r in rows["tree"]:
        if r["matches"] is False:
            yield f"{r['method']}, n = {r['n']:,}: not the declared order"
    for at, r in rows["price"]:
        if r["verified"] is False:
            yield f"{at}: {r['method']} returned wrong bits for n = {r['n']:,}"
    yield from (f"{name}: different bits in different places on {data}, n = {n:,}"
                for name, data, n in unlike(rows["error"]))


def unlike(rows):
    """Methods with a promise of the same bits everywhere, with other bits on another machine or backend."""
    same = {}
    for _, r in rows:
        if r["promise"] in SAME_EVERYWHERE and not phrases.is_peer(r["method"]):
            key = (r["method"].split("@")[0], r["data"], r["n"], r["input_format"], r["seed"], r["truth_bits"])
            same.setdefault(key, set()).add(r["bits"])
    return [key[:3] for key, bits in same.items() if len(bits) > 1]


# --- figure and tables ------------------------------------------------------------------------------------------------

def name_of(r):
    """Name of a method within its operation: 'tree/kahan', or the whole algorithm of a peer."""
    return phrases.parts(r["method"])[0].removeprefix(r["operation"] + "/")


def figure(rows):
    peers = style.peers_among([r["method"] for _, r in rows])
    menus = [("Operation", starting_with([r["operation"] for _, r in rows], "dot")),
             ("Machine", distinct(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32")),
             ("Data", starting_with([r["data"] for _, r in rows], "normal"))]
    lines = {}
    for at, r in rows:
        if r["n"]:
            lines.setdefault((r["operation"], at, r["input_format"], r["data"], r["method"]), []).append(r)
    series = []
    for (*on, method), points in lines.items():
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["n"])
        x = [r["n"] for r in points]
        errors = [None if r["error_ulps"] is None else max(r["error_ulps"], LEAST_ULPS) for r in points]
        series.append(Series(name_of(points[0]), x, errors, colour, tuple(on), dash, symbol))
        bounds = [bound_in_ulps(r) for r in points]
        if not phrases.is_peer(method) and any(bounds):
            series.append(Series(f"bound of {name_of(points[0])}", x, bounds, colour, tuple(on), faint=True))
    return Figure("operations-figure", "Error of each operation by length", menus, series, "n, number of elements",
                  {None: "error, ulps"},
                  description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of "
                              "elements. Vertical axis: error against the exact result. Dotted: the rigorous bound. "
                              f"Errors below {LEAST_ULPS} ulps, including 0, are plotted at {LEAST_ULPS} ulps.")


def bound_in_ulps(r):
    if r["bound"] is None or not r["truth"]:
        return None
    format = r["input_format"] if r["operation"] == "softmax" else phrases.parts(r["method"])[1]
    return max(r["bound"] / phrases.ulp(format, r["truth"]), LEAST_ULPS)


def in_fp32(rows, kind=None):
    """Rows of fp32 on fp32 elements at the first place with results."""
    first = rows[0][0] if rows else None
    return [r for at, r in rows if at == first and r["input_format"] == "fp32"]


def cell(x):
    return "-" if x is None else phrases.number(x, 2)


def error_table(rows):
    """Errors of the longest normal array of each operation, in fp32; of prod, of numbers near 1."""
    some = [r for r in in_fp32(rows) if r["data"] == ("near 1" if r["operation"] == "prod" else "normal")]
    longest = {}
    for r in some:
        longest[r["operation"]] = max(longest.get(r["operation"], 0), r["n"])
    cells = [[r["operation"], name_of(r), phrases.count(r["n"]), cell(r["condition"]), cell(r["error_ulps"]),
              cell(bound_in_ulps(r)) if not phrases.is_peer(r["method"]) else "-"]
             for r in some if r["n"] == longest[r["operation"]]]
    return Table("Error in fp32, normal elements (of prod, near 1)",
                 ["operation", "method", "n", "condition number", "error, ulps", "bound, ulps"], cells, text_columns=2)


def condition_table(rows):
    """The correct digits of each method in fp32, for a few condition numbers."""
    targets = [1, 1e2, 1e4, 1e6, 1e8, 1e12]
    digits = {}
    for r in in_fp32(rows):
        digits.setdefault((r["operation"], name_of(r)), {})[r["target_condition"]] = r["digits"]
    cells = [[*key, *(cell(found.get(t)) for t in targets)] for key, found in digits.items()]
    return Table("Correct decimal digits in fp32 by condition number of the result",
                 ["operation", "method", *(phrases.power_of_ten(t) for t in targets)], cells, text_columns=2,
                 folded=True)


def price_table(rows):
    """Speed and error of each method in fp32."""
    cells = [[r["operation"], name_of(r), at, phrases.count(r["n"]), r["promise"], cell(r["gb_per_s"]), cell(r["error_ulps"])]
             for at, r in rows if r["input_format"] == "fp32" and r["threads"] <= 1]
    return Table("Speed and error in fp32, on one thread or a GPU",
                 ["operation", "method", "where", "n", "promise", "GB/s", "error, ulps"], cells, text_columns=3,
                 folded=True)
