"""What the sections on prefix sums and on sums by key share: sentences, failures and speeds of calls with many results."""

import phrases
from by_data import data_of
from section import SAME_EVERYWHERE, Check, distinct, group_by_place, promises_one_result
from timing import fastest

CEILINGS = ("read", "copy")
AXES = {"runs": "repeated calls", "permutation": "other orders of the elements", "threads": "other thread counts",
        "schedule": "other schedules of a GPU", "backend": "other backends"}


def is_ours(r):
    return not phrases.is_peer(r["method"]) and r["method"] not in CEILINGS


def short_name(r):
    """Name of a method without its operation, such as 'prefix/plain/fp32@cpu'."""
    return r["method"].removeprefix(r["operation"] + "/")


def algorithm(r):
    return phrases.parts(short_name(r))[0]


def of_format(rows, format="fp32"):
    """Rows whose elements have the format, and so have the results."""
    return [(at, r) for at, r in rows if r["input_format"] == format and phrases.parts(r["method"])[1] == format]


def by_place(rows, describe):
    """Yields a sentence for each text that `describe` yields for the rows of each place."""
    for at, some in group_by_place(rows).items():
        yield from (phrases.capitalised(f"{at}: {text}.") for text in describe(some))


def row_names(rows):
    return phrases.names(f"{r['method']} on {r['data']} at n = {phrases.count(r['n'])}" for r in rows)


# --- errors -------------------------------------------------------------------------------------------------------

def bounds_finding(rows, result, results):
    """Yields checks of errors, bounds and correct rounding of samesum's methods; `result` and `results` name an element."""
    ours = [r for _, r in rows if is_ours(r)]
    exact = [r for r in ours if phrases.accumulator(r["method"]) == "exact"]
    if not ours:
        return
    within = sum(r["within_bound"] for r in ours)
    beyond = [r for r in ours if not r["within_bound"]]
    yield Check(f"{phrases.capitalised(phrases.out_of(within, len(ours), 'call'))} of samesum's methods "
                f"{phrases.verb(within, len(ours), 'keeps', 'keep')} all errors within their bounds"
                + phrases.exceptions([row_names(beyond)] if beyond else []),
                within, len(ours), "call with all errors within their bounds", "calls with all errors within their bounds")
    if exact:
        correct, total = sum(r["correct"] for r in exact), sum(r["results"] for r in exact)
        yield Check(f"exact is correctly rounded in {phrases.out_of(correct, total, result, results)}.", correct, total,
                    f"{result} correctly rounded by exact", f"{results} correctly rounded by exact")


def error_failures(rows):
    for at, r in rows:
        if not is_ours(r):
            continue
        where = f"{at}: {r['method']} on {r['data']} at n = {phrases.count(r['n'])}"
        if not r["within_bound"]:
            yield f"{where}: an error exceeds its bound"
        if phrases.accumulator(r["method"]) == "exact" and r["correct"] != r["results"]:
            yield f"{where}: {r['correct']} of {r['results']} results are correctly rounded"
        if r.get("sums") and r["same_as_sums"] != r["sums"]:
            yield f"{where}: {r['same_as_sums']} of {r['sums']} prefixes have the bits of their sum"


def largest_errors(rows, methods):
    """'4.2 ulps with serial/plain, 1 ulp with exact': the largest errors by method, for methods in the list."""
    found = {}
    for r in rows:
        if algorithm(r) in methods and is_ours(r):
            error = r["largest_ulps"] if r["largest_ulps"] is not None else float("inf")
            found[algorithm(r)] = max(found.get(algorithm(r), 0), error)
    format = phrases.parts(rows[0]["method"])[1] if rows else ""
    return [f"{phrases.ulps(found[m], format if format in phrases.FORMAT_BITS else None)} with {m}"
            for m in methods if m in found]


# --- repeats ------------------------------------------------------------------------------------------------------

def repeats_finding(rows):
    """Yields a check of methods whose bits may not vary, and a sentence on those that varied in repeated calls."""
    kept = [(at, r) for at, r in rows if promises_one_result(r)]
    if kept:
        several = [(at, r["method"]) for at, r in kept if r["distinct_bits"] > 1]
        methods = {r["method"] for _, r in kept}
        one = methods - {method for _, method in several}
        axes = [AXES[axis] for axis in AXES if any(r["axis"] == axis for _, r in kept)]
        runs = phrases.plural(sum(r["runs"] for _, r in kept), "run")
        yield Check(f"{phrases.capitalised(phrases.out_of(len(one), len(methods), 'method'))} with a promise of the same "
                    f"bits returned one result in {runs} ({', '.join(axes)})"
                    + phrases.exceptions(f"{method} ({at})" for at, method in several),
                    len(one), len(methods), f"method with the same bits in {runs}", f"methods with the same bits in {runs}")
    loose = [(at, r) for at, r in rows if r["axis"] == "runs" and r["promise"] not in SAME_EVERYWHERE]
    varied = {}
    for at, r in loose:
        if r["distinct_bits"] > 1 and (r["method"] not in varied or varied[r["method"]]["distinct_bits"] < r["distinct_bits"]):
            varied[r["method"]] = r
    if loose:
        most = max(varied.values(), key=lambda r: r["distinct_bits"], default=None)
        yield (f"In repeated calls {phrases.out_of(len(varied), len({r['method'] for _, r in loose}), 'method')} without "
               "that promise varied"
               + (f", up to {most['distinct_bits']} results in {phrases.plural(most['runs'], 'run')} ({most['method']})."
                  if most else "."))


def repeat_failures(rows):
    for at, r in rows:
        if is_ours(r) and r["broken"]:
            yield (f"{at}: {r['method']} promises {r['promise']} but returned {r['distinct_bits']} results "
                   f"({AXES[r['axis']]})")


# --- speeds -------------------------------------------------------------------------------------------------------

def cells(rows):
    """The rows of a place, grouped by cell: rows with the same key were measured together."""
    found = {}
    for r in rows:
        key = (*(r.get(name) for name in ("operation", "input_format", "outer", "n", "inner", "keys", "bins", "given")),
               data_of(r))
        found.setdefault(key, []).append(r)
    return list(found.values())


def ceiling(together):
    """The row of the ceiling of a cell; None if it was not measured."""
    return next((r for r in together if r["method"] in CEILINGS and r["seconds"]), None)


def ratio(r, other):
    """Speed of r relative to another row; None if a time is missing."""
    return other["seconds"] / r["seconds"] if r and other and r["seconds"] else None


def is_repeatable(r):
    """Whether a row is of a method of samesum whose bits do not vary."""
    return is_ours(r) and not algorithm(r).startswith("atomic")


def fastest_promised(together):
    """samesum's fastest method whose bits do not vary, without a grid that the caller gives; None if there is none."""
    return fastest([r for r in together if is_repeatable(r) and r.get("grid") is None])


def speed_failures(rows, what):
    for at, r in rows:
        if r["verified"] is False and is_ours(r):
            yield f"{at}: {r['method']} returned wrong bits for {what(r)}"


def number_range(values, text):
    """'0.85 to 0.9', or one number; `text` formats them."""
    ends = distinct([text(min(values)), text(max(values))])
    return " to ".join(ends)


def targets(rows):
    """'3 of 4 targets are met' for the targets of the rows; None without targets."""
    bars = [bar for r in rows for bar in r["bars"]]
    met = sum(bar["holds"] for bar in bars)
    return f"{phrases.out_of(met, len(bars), 'target')} {phrases.verb(met, len(bars))} met" if bars else None
