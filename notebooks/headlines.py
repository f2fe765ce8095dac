"""The three findings that a reader sees first: how wrong, how steady and how fast sums are."""

import math

import words
from section import promises_one_result

LOOP, TREE, EXACT = "serial/plain", "tree/plain", "exact"


def headlines(found):
    """(question, sentence), of those questions that were measured."""
    for question, tell, experiment, kind in (("How wrong?", wrong, "error_vs_length", "error"),
                                             ("How steady?", steady, "spread_over_runs", "spread"),
                                             ("How fast?", fast, "speed_vs_length", "speed")):
        sentence = tell([(s.machine, r) for s in found.get(experiment, []) for r in s.of(kind)])
        if sentence:
            yield question, sentence


def wrong(rows):
    """The median errors of the loop, the tree and exact in fp32, on the machine and at the length, the greatest, at
    which all of them were measured on the same data."""
    by_place = {}
    for machine, r in rows:
        recipe, format, _ = words.parts(r["method"])
        if recipe in (LOOP, TREE, EXACT) and format == r["input_format"] == "fp32":
            error = math.inf if r["error_ulps"] is None else r["error_ulps"]
            by_place.setdefault((r["n"], machine), {}).setdefault(recipe, {}).setdefault(r["data"], []).append(error)
    common = {at: set.intersection(*map(set, errors.values())) for at, errors in by_place.items() if len(errors) == 3}
    common = {at: data for at, data in common.items() if data}
    if not common:
        return None
    n, machine = max(common, key=lambda at: at[0])
    errors, data = by_place[n, machine], common[n, machine]
    loop, tree, exact = (median([max(errors[recipe][d]) for d in data]) for recipe in (LOOP, TREE, EXACT))
    return (f"The sum of {words.count(n)} fp32 number{'s' * (n != 1)} by a plain loop is {loop} units in the last "
            f"place off, by a tree of plain additions {tree}, and by exact {exact} "
            f"({machine}, medians over {words.plural(len(data), 'data set')}).")


def median(errors):
    middle = words.median(errors)
    return words.number(middle, 2) if math.isfinite(middle) else "infinitely many"


def steady(rows):
    """Of those that promise the same bits everywhere, and of those that do not the one with the most results; a method
    is one of them however many machines it ran on."""
    kept = [r for _, r in rows if promises_one_result(r)]
    loose = [(m, r) for m, r in rows if r["axis"] != "permutation" and not promises_one_result(r)]
    told = []
    if kept:
        methods = {r["method"] for r in kept}
        one = methods - {r["method"] for r in kept if r["distinct_bits"] > 1}
        told.append(f"{words.of(len(one), len(methods), 'method')} with a promise of the same bits everywhere gave "
                    f"them in {words.plural(sum(r['runs'] for r in kept), 'run')}")
    if loose:
        machine, most = max(loose, key=lambda row: row[1]["distinct_bits"])
        several = {r["method"] for _, r in loose if r["distinct_bits"] > 1}
        told.append(f"{words.of(len(several), len({r['method'] for _, r in loose}), 'method')} with less of a promise "
                    "gave more than one result for the same elements"
                    + (f", up to {most['distinct_bits']} in {words.plural(most['runs'], 'run')} ({most['method']}, "
                       f"{machine})" if several else ""))
    return words.sentence("; ".join(told)) + "." if told else None


def fast(rows):
    """The exact sum beside the fastest plain one, on one thread and on GPUs, on every machine."""
    places = {}
    for machine, r in rows:
        if r["input_format"] == "fp32" and r["data"] == "normal" and r["caches"] == "hot" and r["threads"] <= 1:
            places.setdefault((r["threads"], machine), []).append(r)
    told = [text for (threads, machine), some in sorted(places.items(), key=lambda place: place[0])
            for text in price(f"{machine}, {'GPU' if threads == 0 else 'one thread'}", some)]
    return words.sentence("; ".join(told)) + "." if told else None


def price(place, rows):
    exact = [r for r in rows if words.parts(r["method"])[:2] == (EXACT, "fp32")]
    if exact:
        longest = max(exact, key=lambda r: r["n"])
        plain = max((r["gb_per_s"] for r in rows
                     if r["n"] == longest["n"] and words.accumulator(r["method"]) == "plain"), default=0)
        yield (f"exact reads {words.number(longest['gb_per_s'])} GB/s ({place}, n = {words.count(longest['n'])})"
               + (f", {longest['gb_per_s'] / plain:.0%} of the fastest plain sum" if plain else ""))
