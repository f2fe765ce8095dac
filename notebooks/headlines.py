"""The three findings at the top of the report: accuracy, reproducibility and speed of sums."""

import math

import phrases
from section import distinct, place, promises_one_result

LOOP, TREE, EXACT = "serial/plain", "tree/plain", "exact"


def headlines(found):
    """Yields (question, finding) for the questions that have results."""
    for question, summarise, experiment, kind in (("How accurate?", accuracy, "error_vs_length", "error"),
                                                  ("How reproducible?", reproducibility, "spread_over_runs", "spread"),
                                                  ("How fast?", speed, "speed_vs_length", "speed")):
        sentence = summarise([(s, r) for s in found.get(experiment, []) for r in s.of(kind)])
        if sentence:
            yield question, sentence


def accuracy(rows):
    """Median errors of the loop, the tree and exact in fp32, at the greatest length at which a machine measured all
    three on the same data."""
    by_place = {}
    for source, r in rows:
        algorithm, format, _ = phrases.parts(r["method"])
        if algorithm in (LOOP, TREE, EXACT) and format == r["input_format"] == "fp32":
            error = math.inf if r["error_ulps"] is None else r["error_ulps"]
            at = by_place.setdefault((r["n"], source.machine), {})
            at.setdefault(algorithm, {}).setdefault(r["data"], []).append((error, source.place_of(r["method"])))
    common = {at: set.intersection(*map(set, errors.values())) for at, errors in by_place.items() if len(errors) == 3}
    common = {at: data for at, data in common.items() if data}
    if not common:
        return None
    n, machine = max(common, key=lambda at: at[0])
    errors, data = by_place[n, machine], common[n, machine]
    loop, tree, exact = (median_error([max(errors[algorithm][d])[0] for d in data]) for algorithm in (LOOP, TREE, EXACT))
    return (f"For {phrases.count(n)} fp32 number{'s' * (n != 1)}, the error in ulps (units in the last place) is "
            f"{loop} with a plain loop, {tree} with a tree of plain additions and {exact} with the exact sum "
            f"({' and '.join(distinct(at for algorithm in errors for d in data for _, at in errors[algorithm][d]))}, "
            f"medians over {phrases.plural(len(data), 'data set')}).")


def median_error(errors):
    middle = phrases.median(errors)
    return phrases.error_in_ulps(middle, "fp32") if math.isfinite(middle) else "infinite"


def reproducibility(rows):
    """Counts the methods that promise the same bits everywhere and kept that, and the others with several results.

    A method that ran on several machines counts once.
    """
    kept = [r for _, r in rows if promises_one_result(r)]
    loose = [(s, r) for s, r in rows if r["axis"] != "permutation" and not promises_one_result(r)]
    clauses = []
    if kept:
        methods = {r["method"] for r in kept}
        one = methods - {r["method"] for r in kept if r["distinct_bits"] > 1}
        clauses.append(f"{phrases.out_of(len(one), len(methods), 'method')} with a promise of the same bits everywhere "
                       f"returned the same bits in {phrases.plural(sum(r['runs'] for r in kept), 'run')}")
    if loose:
        source, most = max(loose, key=lambda row: row[1]["distinct_bits"])
        several = {r["method"] for _, r in loose if r["distinct_bits"] > 1}
        clauses.append(f"{phrases.out_of(len(several), len({r['method'] for _, r in loose}), 'method')} that "
                       f"{phrases.verb(2, len({r['method'] for _, r in loose}), 'does', 'do')} not promise “everywhere” "
                       "returned more than one result for the same elements"
                       + (f", up to {most['distinct_bits']} in {phrases.plural(most['runs'], 'run')} "
                          f"({most['method']}, {source.place_of(most['method'])})" if several else ""))
    return phrases.capitalised("; ".join(clauses)) + "." if clauses else None


def speed(rows):
    """Speed of exact relative to the fastest plain sum, on one thread and on the GPU of every machine."""
    places = {}
    for source, r in rows:
        if r["input_format"] == "fp32" and r["data"] == "normal" and r["caches"] == "hot" and r["threads"] <= 1:
            places.setdefault((r["threads"], place(source, r)), []).append(r)
    clauses = [text for (_, at), some in sorted(places.items(), key=lambda found: found[0])
               for text in exact_speed(at, some)]
    return phrases.capitalised("; ".join(clauses)) + "." if clauses else None


def exact_speed(at, rows):
    exact = [r for r in rows if phrases.parts(r["method"])[:2] == (EXACT, "fp32")]
    if exact:
        longest = max(exact, key=lambda r: r["n"])
        plain = max((r["gb_per_s"] for r in rows
                     if r["n"] == longest["n"] and phrases.accumulator(r["method"]) == "plain"), default=0)
        yield (f"the exact sum reads {phrases.number(longest['gb_per_s'])} GB/s "
               f"({at}, n = {phrases.count(longest['n'])})"
               + (f", {longest['gb_per_s'] / plain:.0%} of the speed of the fastest plain sum" if plain else ""))
