"""The rule by which times are compared: a ratio with its 95 % interval, and a verdict that the interval decides."""

import dataclasses
import functools
import math

import phrases

MOST_MISSES = 5  # missed targets that one sentence names
EQUAL = 1.03  # ratios that are as good as 1
WITHIN = f"{EQUAL - 1:.0%}"
OUTSIDE = 0.025  # share of resampled medians that lie beyond either end of an interval
CONFIDENCE = f"{1 - 2 * OUTSIDE:.0%}"
UNDECIDED = "?"  # after a ratio in a table without room for intervals
FASTER, SLOWER, AS_FAST, NO_SLOWER, OPEN = VERDICTS = "faster", "slower", "as fast", "no slower", "not decided"


# What the ends of a ratio are, of rows with their rounds and of rows without: only programs older than this code wrote those.
OF_ROUNDS = f"{CONFIDENCE} intervals"
WITHOUT_ROUNDS = "the widest ratios that the 10th and 90th percentiles of both times allow"


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times as fast a row is as another one, and the ends of the 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self):
        """What the interval decides on the first row."""
        if self.low > 1 or self.high < 1:
            return FASTER if self.low > 1 else SLOWER
        if self.low < 1 / EQUAL:
            return OPEN
        return AS_FAST if self.high <= EQUAL else NO_SLOWER

    @property
    def is_no_slower(self):
        return self.low >= 1 / EQUAL

    @property
    def remark(self):
        """' (not decided)'; empty if one of both is faster, which the numbers say."""
        return "" if self.verdict in (FASTER, SLOWER) else f" ({self.verdict})"

    def __str__(self):
        return with_interval(self.value, self.low, self.high)

    @property
    def of_times(self):
        """The same as a ratio of times: how many times as long the first row takes."""
        return with_interval(1 / self.value, 1 / self.high, 1 / self.low)

    @property
    def as_fast(self):
        """'1.09 [1.05, 1.13] times as fast', and the verdict if that does not show it."""
        return f"{self} times as fast{self.remark}"

    @property
    def as_long(self):
        return f"{self.of_times} times as long{self.remark}"


def with_interval(value, low, high):
    """'1.09 [1.05, 1.13]', with enough digits that an end other than 1 does not look like 1."""
    decimals = 3 if any(x != 1 and f"{x:.2f}" == "1.00" for x in (low, high)) else 2
    value, low, high = (f"{x:.{decimals}f}" if 0.1 <= x < 9.995 else phrases.number(x) for x in (value, low, high))
    return f"{value} [{low}, {high}]"


@functools.cache
def rank_of_end(n):
    """Rank, among n sorted values, of the low end of the 95 % interval of their median.

    A resampled median is at most the value of rank k if at least half of the n draws are among the first k. For an even n
    that is the lower median; the high end, which mirrors the low one, is that of the upper median.
    """
    def share_of_medians(k):
        return sum(math.comb(n, i) * (k / n) ** i * (1 - k / n) ** (n - i) for i in range((n + 1) // 2, n + 1))
    return next(k for k in range(1, n + 1) if share_of_medians(k) >= OUTSIDE)


def interval(values):
    """Ends of the 95 % interval of the median."""
    values, rank = sorted(values), rank_of_end(len(values))
    return values[rank - 1], values[-rank]


def median_interval(processes):
    """(median, low, high) of the values of rounds, a list for each process: of the processes' medians, if there are several."""
    values = [phrases.median(process) for process in processes] if len(processes) > 1 else processes[0]
    return phrases.median(values), *interval(values)


def paired(r, other):
    """The ratios of the rounds in which both rows took turns, by process; None if there are none."""
    mine, theirs = r.get("rounds"), other.get("rounds")
    if not mine or not theirs or r.get("turns") is None or r["turns"] != other.get("turns"):
        return None
    if list(map(len, mine)) != list(map(len, theirs)) or not all(map(all, mine)):
        return None
    return [[b / a for a, b in zip(*rounds)] for rounds in zip(mine, theirs)]


def older(sources):
    """The sources whose times have no rounds, which are older than this code; and the number of those with times."""
    times = [(s, [r for r in s.rows if "low" in r and "seconds" in r]) for s in sources]
    return [s for s, rows in times if any("rounds" not in r for r in rows)], sum(bool(rows) for _, rows in times)


def age(sources):
    """A sentence if times of these sources are older than this code; otherwise ''."""
    old, total = older(sources)
    which = "" if len(old) == total else f" of {phrases.names(s.machine for s in old)}"
    return f"The times{which} are older than the code." if old else ""


def ends(sources):
    """A sentence on the ends of the ratios of these sources, and on their age; '' without times."""
    old, total = older(sources)
    if not old:
        return f"Ends in brackets are {OF_ROUNDS}." if total else ""
    if len(old) == total:
        return f"Ends in brackets are {WITHOUT_ROUNDS}: these results are older than the code, which measures {OF_ROUNDS}."
    return (f"Ends in brackets are {OF_ROUNDS}; with results that are older than the code "
            f"({phrases.names(s.machine for s in old)}) they are {WITHOUT_ROUNDS}.")


def has_interval(r):
    """Whether the row has its three times, and not from a single round."""
    return all(r[time] for time in ("low", "seconds", "high")) and sum(map(len, r.get("rounds") or [[0, 0]])) > 1


def ratio(r, other):
    """The Ratio of two rows on the same work; None if a time is missing or is of a single round."""
    if not (has_interval(r) and has_interval(other)):
        return None
    rounds = paired(r, other)
    if not rounds:
        return Ratio(other["seconds"] / r["seconds"], other["low"] / r["high"], other["high"] / r["low"])
    return Ratio(*median_interval(rounds))


def fastest(rows):
    """The row with the least median, of those without wrong results; None if there is none."""
    return min((r for r in rows if r.get("verified") is not False), key=lambda r: r["seconds"], default=None)


def is_faster(r, other):
    found = ratio(r, other)
    return bool(found) and found.verdict == FASTER


def is_no_slower(r, other):
    found = ratio(r, other)
    return bool(found) and found.is_no_slower


def in_words(pairs, noun):
    """'faster in 20 of 29 reductions, slower in 3, as fast in 2, not decided in 4', for the first rows of the pairs."""
    found = [made.verdict if made else OPEN for made in (ratio(r, other) for r, other in pairs)]
    counts = [(what, found.count(what)) for what in VERDICTS if what in found]
    (what, number), *others = counts
    return ", ".join([f"{what} in {phrases.out_of(number, len(pairs), noun)}", *(f"{w} in {n}" for w, n in others)])


def share_of_target(bar):
    """Speed reached over target speed; at least 1 if the target is met. A target in µs is a time."""
    reached, target = bar["reached"], bar["factor"]
    if bar["against"] == "us":
        reached, target = target, reached
    return reached / target if target else math.inf


def cell(r, other):
    """'1.09 [1.05, 1.13]' for a table, the speed of r relative to the other row; '-' without one."""
    found = ratio(r, other) if r and other else None
    return f"{found}{found.remark}" if found else "-"


def cell_of_times(r, other):
    """The same for the time of r."""
    found = ratio(r, other) if r and other else None
    return f"{found.of_times}{found.remark}" if found else "-"


def speed_of(r, other, name):
    """'1.09 [1.05, 1.13] times the speed of exact', and the verdict if that does not show it."""
    found = ratio(r, other)
    return f"{found} times the speed of {name}{found.remark}" if found else f"a speed not compared with that of {name}"


def short(r, other):
    """'1.09', or '1.09?' if that is not decided, for a table without room for intervals; '' without another row."""
    found = ratio(r, other) if r and other else None
    return f"{found.value:.2f}" + UNDECIDED * (found.verdict == OPEN) if found else ""
