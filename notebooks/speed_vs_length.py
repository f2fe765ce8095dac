"""How fast is each sum, for arrays of every length, beside what other libraries need and what memory allows?"""

import style
import words
from figure import Figure, Series
from section import Section, Table, distinct, preferred


def section(sources):
    s = Section("speed", "Speed against length", "Bytes of input a second, medians. A bar is what a method is held to: so "
                "many times the speed of another one, or so many microseconds.",
                "build/release/bin/speed_vs_length --full --out build/study")
    if sources:
        rows = [(place(source.machine, r), r) for source in sources for r in source.rows]
        s.findings = list(findings(rows))
        s.figures = [figure(rows)]
        s.tables = list(tables(rows))
        s.failures = [f"{at}: {r['method']} gave wrong bits for n = {r['n']:,} of {r['input_format']}, {r['data']}"
                      for at, r in rows if r["verified"] is False and not words.is_peer(r["method"])]
    return s


def place(machine, r):
    return f"{machine}, GPU" if r["threads"] == 0 else f"{machine}, {words.plural(r['threads'], 'thread')}"


def share(bar):
    """What part of its bar was reached: 1 or more holds it."""
    return bar["factor"] / bar["reached"] if bar["against"] == "us" else bar["reached"] / bar["factor"]


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    places = distinct(at for at, _ in rows)
    prices = [price for at in places if (price := price_of_exactness(at, [r for a, r in rows if a == at]))]
    yield from (text for _, text in sorted(prices, reverse=True))  # the fastest first
    for at in places:
        bars = [(r, bar) for a, r in rows if a == at for bar in r["bars"]]
        if bars:
            held = sum(bar["holds"] for _, bar in bars)
            yield words.sentence(f"{at}: {words.of(held, len(bars))} bars hold{missed(bars)}.")
    checked = [r for _, r in rows if r["verified"] is not None]
    if checked:
        wrong = [r for r in checked if not r["verified"]]
        yield (f"{words.sentence(words.of(len(checked) - len(wrong), len(checked)))} results whose bits were checked are right"
               + (f"; not {words.names(r['method'] for r in wrong)}." if wrong else "."))


def missed(bars):
    worst = {}
    for r, bar in bars:
        if not bar["holds"]:
            worst.setdefault(r["method"], []).append((share(bar), bar, r))
    if not worst:
        return ""
    told = [f"{method} {words.times(len(misses))}, down to {min(misses, key=lambda m: m[0])[0]:.0%} of its bar"
            for method, misses in sorted(worst.items(), key=lambda item: min(m[0] for m in item[1]))]
    return f". Missed: {'; '.join(told[:3])}" + (f"; and by {words.plural(len(told) - 3, 'other method')}" if len(told) > 3 else "")


def price_of_exactness(at, rows):
    """At the greatest length: exact beside the fastest plain sum, the fastest peer and reading alone. With its speed."""
    some = [r for r in rows if r["data"] == "normal" and r["caches"] == "hot" and r["input_format"] == "fp32"]
    exact = [r for r in some if words.accumulator(r["method"]) == "exact"]
    if not exact:
        return None
    longest = max(exact, key=lambda r: r["n"])
    same = [r for r in some if r["n"] == longest["n"] and r is not longest]

    def best(kind):
        return max((r for r in same if words.accumulator(r["method"]) == kind), key=lambda r: r["gb_per_s"], default=None)

    beside = [(best("plain"), "of {}, the fastest plain sum"), (best("peer"), "of {}, the fastest of other libraries"),
              (best("read"), "of reading and nothing else")]
    told = [f"{longest['gb_per_s'] / r['gb_per_s']:.0%} {text.format(r['method'])}" for r, text in beside if r]
    return longest["gb_per_s"], words.sentence(
        f"{at}: {longest['method']} reads {words.number(longest['gb_per_s'])} GB/s at n = {words.count(longest['n'])}"
        + (f", {', '.join(told)}." if told else "."))


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
            for measure, y in (("speed", [r["gb_per_s"] for r in points]), ("time", [r["seconds"] * 1e6 for r in points])):
                series.append(Series(name, x, y, colour, on + (measure,), dash, symbol))
    return Figure("speed-figure", "The speed of each sum, by length", menus, series, "n, elements",
                  {None: "GB/s of input", "time": "time, µs"})


def tables(rows):
    """For each place what was held and missed, and folded every bar."""
    for at in distinct(at for at, _ in rows):
        bars = [(r, bar) for a, r in rows if a == at for bar in r["bars"]]
        if not bars:
            continue
        kinds = {}
        for r, bar in bars:
            key = (r["method"], r["input_format"], r["data"], r["caches"], bar["factor"], family(bar["against"]))
            kinds.setdefault(key, []).append((r, bar))
        yield Table(f"{at}: what was held", ["", "method", "elements", "data", "caches", "held to", "n", "reached", "held"],
                    [summary(key, some) for key, some in kinds.items()], words=7, folded=len(kinds) > 12)
        yield Table(f"{at}: every bar", ["", "method", "elements", "data", "caches", "where", "against", "n", "reached", "of"],
                    [[verdict(bar["holds"]), r["method"], r["input_format"], r["data"], r["caches"], r["place"], bar["against"], words.count(r["n"]),
                      f"{bar['reached']:.3g}", f"{bar['factor']:.3g}"] for r, bar in bars],
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
    if against == "us":
        goal = f"at most {factor:.3g} µs"
    else:
        goal = f"{factor:.3g} × {against}"
    return [verdict(held == len(some)), method, input, data, caches, goal,
            words.count(lengths[0]) + ("" if len(lengths) == 1 else f" to {words.count(lengths[-1])}"),
            reached[0] + ("" if len(reached) == 1 else f" to {reached[-1]}"), f"{held} of {len(some)}"]
