"""How fast is each sum, for arrays of every length, beside what other libraries need and what memory allows?"""

import math

import style
import telling
import words
from figure import Figure, Series
from section import Section, Table, by_place, checked, distinct, placed, preferred

MOST_MISSES = 5  # that one sentence names


def section(sources):
    s = Section("speed", "Speed against length", "Bytes of input a second, medians. A bar is what a method is held to: "
                "so many times the speed of another one, or so many microseconds.",
                "build/release/bin/speed_vs_length --full --out build/study")
    rows = placed(sources, "speed")
    s.findings = list(prices_of_exactness(rows)) + list(findings(rows))
    s.figures = [f for f in [figure(rows)] if f.series]
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} gave wrong bits for n = {r['n']:,} of {r['input_format']}, {r['data']}"
                  for at, r in rows if r["verified"] is False and not words.is_peer(r["method"])]
    return s


def share(bar):
    """What part of its bar was reached: 1 or more holds it."""
    reached, wanted = bar["reached"], bar["factor"]
    if bar["against"] == "us":
        reached, wanted = wanted, reached
    return reached / wanted if wanted else math.inf


# --- sentences --------------------------------------------------------------------------------------------------

def prices_of_exactness(rows):
    """GPUs first, which have no threads."""
    for _, at in sorted({(r["threads"], at) for at, r in rows}):
        text = price_of_exactness(at, [r for a, r in rows if a == at])
        if text:
            yield text


def findings(rows):
    for at, some in by_place(rows).items():
        bars = [(r, bar) for r in some for bar in r["bars"]]
        if bars:
            kinds = [("speed", [bar["holds"] for _, bar in bars if bar["against"] != "us"]),
                     ("latency", [bar["holds"] for _, bar in bars if bar["against"] == "us"])]
            told = [f"{words.of(sum(held), len(held), 'bar')} on {what}" for what, held in kinds if held]
            yield words.sentence(f"{at}: {' and '.join(told)} held{missed(bars)}.")
    yield from checked([(at, r) for at, r in rows if words.accumulator(r["method"]) != "read"])


def missed(bars):
    """The bars that were, the farthest first; those that differ in nothing but n are told as one."""
    alike = {}
    for r, bar in sorted((pair for pair in bars if not pair[1]["holds"]), key=lambda pair: share(pair[1])):
        alike.setdefault((missing(r), goal(bar)), []).append(bar)
    if not alike:
        return ""
    told = []
    for (what, wanted), some in list(alike.items())[:MOST_MISSES]:
        reached, factor = words.apart(some[0]["reached"], some[0]["factor"], 3)
        told.append(f"{what}: {reached} of {wanted.format(factor)}"
                    + (f" (the worst of {len(some)})" if len(some) > 1 else ""))
    more = sum(map(len, list(alike.values())[MOST_MISSES:]))
    return f". Missed: {'; '.join(told)}" + (f"; and {more} more" if more else "")


def missing(r):
    """Who missed a bar, on what, and where: no more than it takes to find it in the table."""
    format = words.parts(r["method"])[1]
    return (r["method"] + (f" of {r['input_format']}" if r["input_format"] != format else "")
            + (f" on {r['data']}" if r["data"] != "normal" else "")
            + (f" in {r['place']}" if r["place"] in ("L2", "DRAM") else f" at n = {words.count(r['n'])}")
            + (f", {r['caches']} caches" if r["caches"] != "hot" else ""))


def goal(bar):
    """What was asked for, with a place for the number."""
    if bar["against"] == "us":
        return "at most {} µs"
    against = bar["against"]
    return "{} times " + (words.parts(against)[0] if words.is_peer(against) else against)


def price_of_exactness(at, rows):
    """At the greatest length: exact beside the fastest plain sum, the fastest peer and reading alone."""
    some = [r for r in rows if r["caches"] == "hot" and r["input_format"] == "fp32"]
    normal = [r for r in some if r["data"] == "normal"]
    exact = [r for r in normal if words.parts(r["method"])[:2] == ("exact", "fp32")]
    if not exact:
        return None
    longest = max(exact, key=lambda r: r["n"])
    speed = longest["gb_per_s"]
    same = [r for r in normal if r["n"] == longest["n"] and r is not longest]
    wide = [r for r in some if r["data"] == "60 binades" and (r["method"], r["n"]) == (longest["method"], longest["n"])]

    def best(kind):
        return max((r for r in same if words.accumulator(r["method"]) == kind), key=lambda r: r["gb_per_s"],
                   default=None)

    told = [f"{speed / r['gb_per_s']:.0%} of {what.format(r['method'])}"
            for r, what in [(best("plain"), "{}, the fastest plain sum"),
                            (best("peer"), "{}, the fastest of other libraries"),
                            (best("read"), "reading and nothing else")] if r and r["gb_per_s"]]
    return words.sentence(f"{at}: {longest['method']} reads {words.number(speed)} GB/s at "
                          f"n = {words.count(longest['n'])}"
                          + "".join(f", {text}" for text in told)
                          + "".join(f"; on 60 binades {words.number(r['gb_per_s'])} GB/s" for r in wide[:1]) + ".")


# --- the figure and the tables ----------------------------------------------------------------------------------

def figure(rows):
    methods = [r["method"] for _, r in rows]
    peers = style.peers_among(methods)
    menus = [("On", distinct(at for at, _ in rows)),
             ("Elements", preferred([r["input_format"] for _, r in rows], "fp32")),
             ("Data", preferred([r["data"] for _, r in rows], "normal")),
             ("Caches", preferred([r["caches"] for _, r in rows], "hot")),
             ("Show", style.all_groups(methods)),
             ("As", ["speed", "time"])]
    lines = {}
    for at, r in rows:
        lines.setdefault((at, r["input_format"], r["data"], r["caches"], r["method"]), []).append(r)
    series = []
    for (at, input, data, caches, method), points in lines.items():
        recipe, format, _ = words.parts(method)
        name = recipe if format in (input, "") else f"{recipe}/{format}"
        colour, dash, symbol = style.line(method, peers)
        points = sorted((r for r in points if r["n"]), key=lambda r: r["n"])
        x = [r["n"] for r in points]
        for group in style.groups(method):
            on = (at, input, data, caches, group)
            for measure, y in (("speed", [r["gb_per_s"] for r in points]),
                               ("time", [r["seconds"] * 1e6 for r in points])):
                series.append(Series(name, x, y, colour, on + (measure,), dash, symbol))
    found = Figure("speed-figure", "The speed of each sum, by length", menus, series, "n, elements",
                   {None: "GB/s of input", "time": "time, µs"})
    found.reading = telling.reads_lines(found, lambda n: f"n = {words.count(n)}",
                                        lambda speed: f"{words.number(speed)} GB/s")
    return found


def tables(rows):
    """For each place what was held and missed, and folded every bar."""
    for at, found in by_place(rows).items():
        bars = [(r, bar) for r in found for bar in r["bars"]]
        if not bars:
            continue
        kinds = {}
        for r, bar in bars:
            key = (r["method"], r["input_format"], r["data"], r["caches"], bar["factor"], family(bar["against"]))
            kinds.setdefault(key, []).append((r, bar))
        yield Table(f"{at}: what was held",
                    ["method", "verdict", "elements", "data", "caches", "held to", "n", "reached", "held"],
                    [summary(key, some) for key, some in kinds.items()], words=7, folded=len(kinds) > 12)
        yield Table(f"{at}: every bar",
                    ["method", "verdict", "elements", "data", "caches", "where", "against", "n", "reached", "of"],
                    [[r["method"], verdict(bar["holds"]), r["input_format"], r["data"], r["caches"], r["place"],
                      bar["against"], words.count(r["n"]), f"{bar['reached']:.3g}", f"{bar['factor']:.3g}"]
                     for r, bar in bars],
                    words=7, folded=True, page_only=True)


def verdict(holds):
    return "pass" if holds else "MISS"


def family(against):
    return words.parts(against)[0].split("/")[0] if words.is_peer(against) else against


def summary(key, some):
    method, input, data, caches, factor, against = key
    lengths = sorted({r["n"] for r, _ in some})
    reached = distinct(f"{x:.3g}" for x in sorted(bar["reached"] for _, bar in some))
    held = sum(bar["holds"] for _, bar in some)
    asked = f"at most {factor:.3g} µs" if against == "us" else f"{factor:.3g} × {against}"
    return [method, verdict(held == len(some)), input, data, caches, asked,
            words.count(lengths[0]) + ("" if len(lengths) == 1 else f" to {words.count(lengths[-1])}"),
            reached[0] + ("" if len(reached) == 1 else f" to {reached[-1]}"), f"{held} of {len(some)}"]
