"""The three findings that a reader sees first: how wrong, how steady and how fast sums are."""

import math

import words
from section import promises_one_result

LOOP, TREE, EXACT = "serial/plain", "tree/plain", "exact"


def headlines(found):
    """(question, sentence), of those questions that were measured."""
    for question, sentence in (("How wrong?", wrong(rows(found, "error_vs_length", "error"))),
                               ("How steady?", steady(rows(found, "spread_over_runs", "spread"))),
                               ("How fast?", fast(rows(found, "speed_vs_length", "speed")))):
        if sentence:
            yield question, sentence


def rows(found, question, kind):
    return [(s.machine, r) for s in found.get(question, []) for r in s.of(kind)]


def wrong(rows):
    """The median errors of the loop, the tree and exact in fp32, at the greatest length at which there are all."""
    by_length = {}
    for _, r in rows:
        recipe, format, _ = words.parts(r["method"])
        if recipe in (LOOP, TREE, EXACT) and format == r["input_format"] == "fp32":
            error = math.inf if r["error_ulps"] is None else r["error_ulps"]
            by_length.setdefault(r["n"], {}).setdefault(recipe, {}).setdefault(r["data"], []).append(error)
    complete = {n: errors for n, errors in by_length.items() if len(errors) == 3}
    if not complete:
        return None
    n = max(complete)
    data = set.intersection(*(set(errors) for errors in complete[n].values()))
    if not data:
        return None
    loop, tree, exact = (median([max(complete[n][recipe][d]) for d in data]) for recipe in (LOOP, TREE, EXACT))
    return (f"The sum of {words.count(n)} fp32 numbers by a plain loop is {loop} units in the last place off, by a "
            f"tree of plain additions {tree}, and by exact {exact} (medians over {words.plural(len(data), 'data set')}).")


def median(errors):
    middle = words.median(errors)
    return words.number(middle, 2) if math.isfinite(middle) else "infinitely many"


def steady(rows):
    """Of those that promise the same bits everywhere, and of those that do not the one with the most results."""
    kept = [(m, r) for m, r in rows if promises_one_result(r)]
    loose = [r for _, r in rows if r["axis"] != "permutation" and not promises_one_result(r)]
    told = []
    if kept:
        methods = {(m, r["method"]) for m, r in kept}
        one = methods - {(m, r["method"]) for m, r in kept if r["distinct_bits"] > 1}
        told.append(f"{words.of(len(one), len(methods))} methods that promise the same bits everywhere gave them in "
                    f"{sum(r['runs'] for _, r in kept):,} runs")
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"])
        several = {r["method"] for r in loose if r["distinct_bits"] > 1}
        told.append(f"{words.of(len(several), len({r['method'] for r in loose}))} that promise less gave more than one "
                    "result for the same elements"
                    + (f", up to {most['distinct_bits']} in {words.plural(most['runs'], 'run')} ({most['method']})"
                       if several else ""))
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
        plain = [r["gb_per_s"] for r in rows if r["n"] == longest["n"] and words.accumulator(r["method"]) == "plain"]
        yield (f"exact reads {words.number(longest['gb_per_s'])} GB/s ({place}, n = {words.count(longest['n'])})"
               + (f", {longest['gb_per_s'] / max(plain):.0%} of the fastest plain sum" if plain else ""))
