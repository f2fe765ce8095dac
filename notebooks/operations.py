"""Section on operations other than sums, from the rows of the experiments on error, condition, spread, order and price."""

import captions
import phrases
import style
from error_vs_length import bit_failures, finite, in_one_format
from figure import Figure, Series
from section import (Check, Section, Table, bound_findings, distinct, group_by_place, place, promises_one_result,
                     result_failures, starting_with)

KINDS = {"error": "error_vs_length", "condition": "error_vs_condition", "spread": "spread_over_runs",
         "tree": "reveal_order", "price": "price_of_promise"}


def section(found):
    """`found` has the sources of each experiment."""
    s = Section("operations", "Every operation", "Do other operations keep the same promises?",
                "The same questions for means, dot products, norms, variances (of "
                "moments), products, logsumexp and softmax (its first element): errors against exact results, bits over "
                "runs, orders, and prices.",
                " && ".join(f"build/release/bin/{e} --full --out build/study" for e in KINDS.values()),
                terms=("method", "order", "accumulator", "promise", "ulp", "bound", "condition number"))
    rows = {kind: [(place(source, r), r) for source in found.get(question, []) for r in source.of_operations(kind)]
            for kind, question in KINDS.items()}
    if any(rows.values()):
        s.findings = list(findings(rows))
        s.verdict = verdict(rows, s.checks)
        s.figures = [f for f in [figure(rows["error"])] if f.series]
        s.tables = [t for t in [*error_tables(rows["error"]), *condition_tables(rows["condition"]),
                                price_table(rows["price"])] if t.rows]
        s.failures = list(failures(rows))
    return s


def samesums(rows):
    return [r for _, r in rows if not phrases.is_peer(r["method"])]


def of_operations(rows):
    return phrases.names(distinct(r["operation"] for r in rows), most=20)


def row_names(rows):
    return phrases.names(f"{r['method']} on {r['data']} at n = {phrases.count(r['n'])}" for r in rows)


# --- sentences ------------------------------------------------------------------------------------------------------

def verdict(rows, checks):
    """How many checks the operations passed."""
    operations = distinct(r["operation"] for some in rows.values() for r in samesums(some))
    passed, total = sum(c.passed for c in checks), sum(c.total for c in checks)
    if not checks:
        return ""
    return (f"{phrases.plural(len(operations), 'other operation')} passed {phrases.out_of(passed, total, 'check')}: "
            f"{phrases.names(operations, 20)}.")


def findings(rows):
    results = samesums(rows["error"]) + samesums(rows["condition"])
    yield from bound_findings(results, f"samesum's methods for {of_operations(results)}", "their rigorous bounds",
                              row_names)
    exact = [r["bits"] == r["truth_bits"] for r in results if is_exact(r)]
    if exact:
        operations = of_operations([r for r in results if is_exact(r)])
        yield Check(f"exact is the correctly rounded result in {phrases.out_of(sum(exact), len(exact), 'result')} "
                    f"({operations}).",
                    sum(exact), len(exact), "result correctly rounded by exact", "results correctly rounded by exact")
    promised = [r for r in samesums(rows["spread"]) if promises_one_result(r)]
    if promised:
        kept = sum(r["distinct_bits"] == 1 for r in promised)
        yield Check(f"Methods with a promise of the same bits returned one bit pattern in "
                    f"{phrases.out_of(kept, len(promised), 'case')} ({of_operations(promised)}). A case is one method on "
                    "one array, over runs, thread counts, launch shapes, alignments or orders of the elements.",
                    kept, len(promised), "case with one bit pattern", "cases with one bit pattern")
    trees = [r for r in samesums(rows["tree"]) if r["matches"] is not None]
    if trees:
        found = sum(r["matches"] for r in trees)
        yield Check(f"{phrases.capitalised(phrases.out_of(found, len(trees), 'order'))} of {of_operations(trees)} "
                    f"{phrases.verb(found, len(trees))} as declared.",
                    found, len(trees), "order as declared", "orders as declared")


def has_result_per_element(r):
    """Whether the operation has a result per element, as softmax. Its formats are those of the elements, and only its
    denominator is exact."""
    return r.get("result") == "first element"


def is_exact(r):
    """Whether a method of samesum promises the exact result, rounded once."""
    return phrases.accumulator(r["method"]) == "exact" and not has_result_per_element(r)


def failures(rows):
    for at, r in rows["error"] + rows["condition"]:
        if not phrases.is_peer(r["method"]):
            judged = r if is_exact(r) else r | {"truth_bits": r["bits"]}
            yield from (f"{at}: {r['method']} on {r['data']}, n = {r['n']:,}: {why}" for why in result_failures(judged))
    for at, r in rows["spread"]:
        if r["broken"] and not phrases.is_peer(r["method"]):
            yield f"{at}: {r['method']} on {r['data']}: {r['distinct_bits']} results over {r['axis']}"
    for at, r in rows["tree"]:
        if r["matches"] is False:
            yield f"{at}: {r['method']}, n = {r['n']:,}: not the declared order"
    for at, r in rows["price"]:
        if r["verified"] is False:
            yield f"{at}: {r['method']} returned wrong bits for n = {r['n']:,}"
    yield from bit_failures(rows["error"])


# --- figure and tables ------------------------------------------------------------------------------------------------

def short_name(r):
    """Name of a method without its operation, such as 'tree/kahan/fp32@cpu'; a peer has its whole name."""
    return r["method"].removeprefix(r["operation"] + "/")


def name_of(r):
    """Order and accumulator of a method, such as 'tree/kahan'; the whole algorithm of a peer."""
    return phrases.parts(short_name(r))[0]


def figure(rows):
    peers = style.peers_among([r["method"] for _, r in rows])
    menus = [("Operation", starting_with([r["operation"] for _, r in rows], "dot")),
             ("Machine", distinct(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32")),
             ("Data", starting_with([r["data"] for _, r in rows], "normal"))]
    lines = {}
    for at, r in rows:
        if r["n"]:
            lines.setdefault((r["operation"], at, r["input_format"], r["data"], short_name(r)), []).append(r)
    series = []
    for (*on, method), points in lines.items():
        colour, dash, symbol = style.line(method, peers)
        points = sorted(points, key=lambda r: r["n"])
        x = [r["n"] for r in points]
        errors = [r["error_ulps"] for r in points]
        series.append(Series(name_of(points[0]), x, errors, colour, tuple(on), dash, symbol))
        bounds = [bound_in_ulps(r) for r in points]
        if not phrases.is_peer(method) and any(bounds):
            series.append(Series(f"bound of {name_of(points[0])}", x, bounds, colour, tuple(on), faint=True,
                                 key="rigorous bound"))
    found = Figure("operations-figure", "Error of each operation by length", menus, series, "n, number of elements",
                   {None: "error, ulps"},
                   description="Each line is a method; its colour shows the accumulator. Horizontal axis: number of "
                               "elements. Vertical axis: error against the exact result. Dotted: the rigorous bound.")
    found.finding = captions.describe_lines(found, lambda n: f"n = {phrases.count(n)}", phrases.ulps)
    return found


def bound_in_ulps(r):
    """The bound in ulps; None if there is none, or if the result is 0."""
    if r["bound"] is None or not r["truth"]:
        return None
    format = r["input_format"] if has_result_per_element(r) else phrases.parts(r["method"])[1]
    return finite(r["bound"] / phrases.ulp(format, r["truth"]))


def cell(x):
    return "-" if x is None else phrases.number(x, 2)


def error_tables(rows):
    """Yields a table per place: the errors of the longest array of each operation, of normal elements if measured."""
    for i, (at, found) in enumerate(group_by_place(rows).items()):
        format, found = in_one_format(found)
        cells = []
        for operation in distinct(r["operation"] for r in found):
            some = [r for r in found if r["operation"] == operation]
            data = starting_with([r["data"] for r in some], "normal")[0]
            n = max(r["n"] for r in some if r["data"] == data)
            cells += [[operation, name_of(r), data, phrases.count(n), cell(r["condition"]), cell(r["error_ulps"]),
                       "-" if phrases.is_peer(r["method"]) else cell(bound_in_ulps(r))]
                      for r in some if (r["data"], r["n"]) == (data, n)]
        yield Table(f"{at}: error in {format}",
                    ["operation", "method", "data", "n", "condition number", "error, ulps", "bound, ulps"], cells,
                    text_columns=3, folded=True, page_only=i > 0)


def condition_tables(rows):
    """Yields a table per place: the correct digits of each method for a few condition numbers."""
    targets = [1, 1e2, 1e4, 1e6, 1e8, 1e12]
    for i, (at, found) in enumerate(group_by_place(rows).items()):
        format, found = in_one_format(found)
        digits = {}
        for r in found:
            digits.setdefault((r["operation"], name_of(r)), {})[r["target_condition"]] = r["digits"]
        yield Table(f"{at}: correct decimal digits in {format} by condition number of the result",
                    ["operation", "method", *(phrases.power_of_ten(t) for t in targets)],
                    [[*key, *(cell(of_method.get(t)) for t in targets)] for key, of_method in digits.items()],
                    text_columns=2, folded=True, page_only=i > 0)


def price_table(rows):
    """The speed and the error of each method."""
    format, found = in_one_format([r | {"at": at} for at, r in rows if r["threads"] <= 1])
    return Table(f"Speed and error in {format}, on one thread or a GPU",
                 ["operation", "method", "where", "promise", "n", "GB/s", "error, ulps"],
                 [[r["operation"], name_of(r), r["at"], r["promise"], phrases.count(r["n"]), cell(r["gb_per_s"]),
                   cell(r["error_ulps"])] for r in found], text_columns=4, folded=True)
