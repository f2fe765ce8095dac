"""The rule by which the report compares times, so that noise is not reported as a difference."""

import math

import phrases

MOST_MISSES = 5  # missed targets that one sentence names
NO_DIFFERENCE = "no measurable difference"


def speed_ratio(r, other):
    """How many times as fast r is as another row on the same work, by medians; None without a measurable difference.

    There is one if the ranges of both times (10th to 90th percentile) do not overlap, and if the gap between the ranges is,
    as a ratio, at least as wide as either range. So a time that jumps between two values differs only from one far away.
    """
    if not all(x[time] for x in (r, other) for time in ("low", "seconds", "high")):
        return None
    ranges = sorted((x["low"], x["high"]) for x in (r, other))
    gap = ranges[1][0] / ranges[0][1]
    measurable = gap > 1 and all(gap >= high / low for low, high in ranges)
    return other["seconds"] / r["seconds"] if measurable else None


def fastest(rows):
    """The fastest of some rows, of which those with wrong results do not count; None if there is none."""
    return min((r for r in rows if r.get("verified") is not False), key=lambda r: r["seconds"], default=None)


def is_faster(r, other):
    return (speed_ratio(r, other) or 1) > 1


def in_words(pairs, noun):
    """'faster in 20 of 29 reductions, slower in 3, not measurably different in 6', of the first rows of the pairs."""
    faster, slower = sum(is_faster(r, other) for r, other in pairs), sum(is_faster(other, r) for r, other in pairs)
    counts = [(what, number) for what, number in (("faster", faster), ("slower", slower), (
        "not measurably different", len(pairs) - faster - slower)) if number]
    (what, number), *others = counts
    return ", ".join([f"{what} in {phrases.out_of(number, len(pairs), noun)}", *(f"{w} in {n}" for w, n in others)])


def share_of_target(bar):
    """Speed reached over target speed; at least 1 if the target is met. A target in µs is a time."""
    reached, target = bar["reached"], bar["factor"]
    if bar["against"] == "us":
        reached, target = target, reached
    return reached / target if target else math.inf


def text(ratio, digits=3):
    """A ratio of speed_ratio() for a table."""
    return "≈ 1" if ratio is None else phrases.number(ratio, digits)
