"""Section on the speed of each sum against length, compared with other libraries and with memory bandwidth."""

import captions
import phrases
import style
import timing
from figure import Figure, Series
from section import (Section, Table, check_findings, declined_findings, distinct, group_by_place, preferred, rows_with_place,
                     starting_with)
from timing import MOST_MISSES, fastest, share_of_target


def section(sources):
    s = Section("speed", "Speed against length", "How fast is a sum?",
                "Speed of each method in bytes of input per second, by number of "
                "elements. Times are medians. Libraries that use one thread are compared with one thread only.",
                "build/release/bin/speed_vs_length --full --out build/study",
                terms=("method", "order", "accumulator", "target", "faster, as fast, not decided",
                       "reading alone", "hot, cold", "cub"))
    rows = rows_with_place(sources, "speed")
    s.verdict = verdict(rows)
    s.findings = [*exact_speed_findings(rows), *findings(rows), *declined_findings(sources)]
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} returned wrong bits for n = {r['n']:,} of {r['input_format']}, {r['data']}"
                  for at, r in rows if r["verified"] is False and not phrases.is_peer(r["method"])]
    return s


# --- sentences --------------------------------------------------------------------------------------------------

def verdict(rows):
    """Speed of exact relative to the fastest plain sum, on one thread and on a GPU: of two places, this machine first."""
    places = group_by_place([(at, r) for at, r in rows if r["input_format"] == "fp32" and r["data"] == "normal"
                             and r["caches"] == "hot" and r["threads"] <= 1 and "launch" not in r])
    clauses = [text for at in preferred(places) for text in exact_share(at, places[at])][:2]
    return phrases.capitalised("; ".join(clauses)) + "." if clauses else ""


def exact_share(at, rows):
    exact = [r for r in rows if phrases.parts(r["method"])[:2] == ("exact", "fp32")]
    if exact:
        longest = max(exact, key=lambda r: r["n"])
        plain = fastest([r for r in rows if r["n"] == longest["n"] and phrases.accumulator(r["method"]) == "plain"])
        yield (f"the exact sum reads {phrases.number(longest['gb_per_s'])} GB/s ({at}, n = {phrases.count(longest['n'])})"
               + (f", {timing.speed_of(longest, plain, 'the fastest plain sum')}" if plain else ""))


def exact_speed_findings(rows):
    """GPUs, which have no threads, come first."""
    for _, at in sorted({(r["threads"], at) for at, r in rows}):
        text = exact_speed(at, [r for a, r in rows if a == at])
        if text:
            yield text


def findings(rows):
    for at, some in group_by_place(rows).items():
        bars = [(r, bar) for r in some for bar in r["bars"]]
        if bars:
            kinds = [("speed", [bar["holds"] for _, bar in bars if bar["against"] != "us"]),
                     ("latency", [bar["holds"] for _, bar in bars if bar["against"] == "us"])]
            kinds = [(kind, held) for kind, held in kinds if held]
            met = [phrases.out_of(sum(held), len(held), f"{kind} target") for kind, held in kinds]
            are = "are" if len(kinds) > 1 else phrases.verb(sum(kinds[0][1]), len(bars))
            yield phrases.capitalised(f"{at}: {' and '.join(met)} {are} met{missed_targets(bars)}.")
    yield from check_findings([(at, r) for at, r in rows if phrases.accumulator(r["method"]) != "read"])


def missed_targets(bars):
    """Names missed targets, the farthest first; targets that differ only in n are named once."""
    groups = {}
    for r, bar in sorted((pair for pair in bars if not pair[1]["holds"]), key=lambda pair: share_of_target(pair[1])):
        groups.setdefault((method_and_case(r), template(bar)), []).append(bar)
    if not groups:
        return ""
    missed = []
    for (which, text), some in list(groups.items())[:MOST_MISSES]:
        numbers = phrases.number_pair(some[0]["reached"], some[0]["factor"], 3)
        missed.append(f"{which}: {text.format(*numbers, f', worst of {len(some)}' if len(some) > 1 else '')}")
    more = sum(map(len, list(groups.values())[MOST_MISSES:]))
    return f". Missed: {'; '.join(missed)}" + (f"; and {more} more" if more else "")


def method_and_case(r):
    """The method of a row and what identifies its case, without default values."""
    format = phrases.parts(r["method"])[1]
    return (r["method"] + (f" with {r['input_format']} elements" if r["input_format"] != format else "")
            + (f" on {r['data']}" if r["data"] != "normal" else "")
            + (f" in {r['place']}" if r["place"] in ("L2", "DRAM") else f" at n = {phrases.count(r['n'])}")
            + (f", {r['caches']} caches" if r["caches"] != "hot" else ""))


def template(bar):
    """Text for a target, with places for what was reached, for the target and for a remark."""
    against = bar["against"]
    if against == "us":
        return "{} µs (target: at most {} µs{})"
    return ("{} times the speed of " + (phrases.parts(against)[0] if phrases.is_peer(against) else against)
            + " (target: {}{})")


def exact_speed(at, rows):
    """Speed of exact at its greatest length, relative to the fastest plain sum, the fastest peer and reading alone."""
    some = [r for r in rows if r["caches"] == "hot" and r["input_format"] == "fp32"]
    normal = [r for r in some if r["data"] == "normal"]
    exact = [r for r in normal if phrases.parts(r["method"])[:2] == ("exact", "fp32")]
    if not exact:
        return None
    longest = max(exact, key=lambda r: r["n"])
    speed = longest["gb_per_s"]
    same = [r for r in normal if r["n"] == longest["n"] and r is not longest]
    wide = [r for r in some if r["data"] == "60 binades" and (r["method"], r["n"]) == (longest["method"], longest["n"])]

    peers = phrases.peers_in_words(r["method"] for r in same)

    def best(kind):
        return fastest([r for r in same if phrases.accumulator(r["method"]) == kind])

    ratios = [timing.speed_of(longest, r, f"{what} ({r['method']})")
              for r, what in [(best("plain"), "the fastest plain sum"), (best("peer"), f"the fastest {peers}")]
              if r and r["gb_per_s"]]
    reading = best("read")
    if reading and reading["gb_per_s"]:
        ratios.append(phrases.share(speed / reading["gb_per_s"], " of the speed of reading alone"))
    return phrases.capitalised(f"{at}: {longest['method']} reads {phrases.number(speed)} GB/s at "
                               f"n = {phrases.count(longest['n'])}"
                               + (f", which is {', '.join(ratios)}" if ratios else "")
                               + "".join(f"; on 60 binades {phrases.number(r['gb_per_s'])} GB/s" for r in wide[:1])
                               + slowest_length(normal, longest["method"]) + ".")


def beside_others(rows, method):
    """Pairs (row of a method, the fastest other sum of the same numbers in the same format), by length."""
    pairs = []
    for n in sorted({r["n"] for r in rows}):
        sums = [r for r in rows if r["n"] == n and phrases.parts(r["method"])[1] == phrases.parts(method)[1]]
        own, other = (fastest([r for r in sums if (r["method"] == method) == which]) for which in (True, False))
        if own and other and timing.ratio(own, other):
            pairs.append((own, other))
    return pairs


def slowest_length(rows, method):
    """The length at which a method takes longest beside the fastest other sum, as the end of a sentence."""
    pairs = beside_others(rows, method)
    if len(pairs) < 2:
        return ""
    own, other = min(pairs, key=lambda pair: timing.ratio(*pair).value)
    return (f"; of {len(pairs)} lengths it is slowest beside other sums at n = {phrases.count(own['n'])}, where it "
            f"takes {timing.ratio(own, other).as_long} as {other['method']}")


# --- figure and tables ------------------------------------------------------------------------------------------

def without_slow_reading(rows):
    """The rows without those of reading alone that a sum beats: there reading is no ceiling, since a start costs more."""
    best = {}
    for at, r in rows:
        key = (at, r["input_format"], r["n"], r["data"], r["caches"])
        best[key] = max(best.get(key, 0), r["gb_per_s"])
    return [(at, r) for at, r in rows if phrases.accumulator(r["method"]) != "read"
            or r["gb_per_s"] == best[at, r["input_format"], r["n"], r["data"], r["caches"]]]


def figure(rows):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("Machine", preferred(at for at, _ in rows)),
             ("Element format", starting_with([r["input_format"] for _, r in rows], "fp32")),
             ("Data", starting_with([r["data"] for _, r in rows], "normal")),
             ("Caches", starting_with([r["caches"] for _, r in rows], "hot")),
             ("Methods", style.all_groups(methods)),
             ("Quantity", ["speed", "time"])]
    lines = {}
    for at, r in without_slow_reading(rows):
        lines.setdefault((at, r["input_format"], r["data"], r["caches"], r["method"]), []).append(r)
    series = []
    for (at, input, data, caches, method), points in lines.items():
        algorithm, format, _ = phrases.parts(method)
        name = algorithm if format in (input, "") else f"{algorithm}/{format}"
        colour, dash, symbol = style.line(method, peers)
        points = sorted((r for r in points if r["n"]), key=lambda r: r["n"])
        x = [r["n"] for r in points]
        for group in style.groups(method):
            on = (at, input, data, caches, group)
            for measure, y in (("speed", [r["gb_per_s"] for r in points]),
                               ("time", [r["seconds"] * 1e6 for r in points])):
                series.append(Series(name, x, y, colour, on + (measure,), dash, symbol))
    found = Figure("speed-figure", "Speed of each method by length", menus, series, "n, number of elements",
                   {None: "GB/s of input", "time": "time, µs"},
                   description="Each line is a method; its colour shows the accumulator. The line read is reading "
                               "alone, at the lengths at which no sum is faster. "
                               "Horizontal axis: number of elements. Vertical axis: GB/s of input, or time.")
    found.finding = captions.describe_lines(found, lambda n: f"n = {phrases.count(n)}",
                                            lambda speed: f"{phrases.number(speed)} GB/s")
    return found


def tables(rows):
    """Yields for each place a table of exact beside other sums, one of targets, summarised, and one of every single
    target."""
    for at, found in group_by_place(rows).items():
        normal = [r for r in found if (r["caches"], r["input_format"], r["data"]) == ("hot", "fp32", "normal")]
        exact = next((r["method"] for r in normal if phrases.parts(r["method"])[:2] == ("exact", "fp32")), None)
        pairs = beside_others(normal, exact) if exact else []
        if pairs:
            yield Table(f"{at}: the exact sum beside the fastest other sum, by length",
                        ["n", "fastest other sum", "its time", "time of exact", "times as long"],
                        [[phrases.count(own["n"]), other["method"], phrases.duration(other["seconds"]),
                          phrases.duration(own["seconds"]), timing.cell_of_times(own, other)] for own, other in pairs],
                        text_columns=2, folded=True)
        bars = [(r, bar) for r in found for bar in r["bars"]]
        if not bars:
            continue
        kinds = {}
        for r, bar in bars:
            key = (r["method"], r["input_format"], r["data"], r["caches"], bar["factor"], family(bar["against"]))
            kinds.setdefault(key, []).append((r, bar))
        yield Table(f"{at}: targets",
                    ["method", "verdict", "elements", "data", "caches", "target", "n", "reached", "met"],
                    [summary(key, some) for key, some in kinds.items()], text_columns=7, folded=len(kinds) > 12)
        yield Table(f"{at}: every target",
                    ["method", "verdict", "elements", "data", "caches", "place", "relative to", "n", "reached",
                     "target"],
                    [[r["method"], judgement(bar["holds"]), r["input_format"], r["data"], r["caches"], r["place"],
                      bar["against"], phrases.count(r["n"]), f"{bar['reached']:.3g}", f"{bar['factor']:.3g}"]
                     for r, bar in bars],
                    text_columns=7, folded=True, page_only=True)


def judgement(holds):
    return "pass" if holds else "MISS"


def family(against):
    return phrases.parts(against)[0].split("/")[0] if phrases.is_peer(against) else against


def summary(key, some):
    method, input, data, caches, factor, against = key
    lengths = sorted({r["n"] for r, _ in some})
    reached = distinct(f"{x:.3g}" for x in sorted(bar["reached"] for _, bar in some))
    held = sum(bar["holds"] for _, bar in some)
    target = f"at most {factor:.3g} µs" if against == "us" else f"{factor:.3g} × {against}"
    return [method, judgement(held == len(some)), input, data, caches, target,
            phrases.count(lengths[0]) + ("" if len(lengths) == 1 else f" to {phrases.count(lengths[-1])}"),
            reached[0] + ("" if len(reached) == 1 else f" to {reached[-1]}"), f"{held} of {len(some)}"]
