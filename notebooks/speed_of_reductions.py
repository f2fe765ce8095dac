"""How fast is each reduction, of vectors, rows and columns, beside other libraries and what memory allows?"""

import math

import words
from section import Section, Table, by_place, checked, placed

MOST_MISSES = 5  # that one sentence names
CEILINGS = ("read", "copy")
# What PyTorch is held against: its rows come from a script of its own, so their bars are made here.
TORCH, TORCH_FACTOR = "torch/", 1.0


def section(sources):
    s = Section("reductions", "Speed of reductions", "Bytes of input a second, of softmax also of output; medians. The "
                "ceiling moves the same bytes and does nothing else. A bar is what a method is held to: so many times "
                "the speed of another one.",
                "build/release/bin/speed_of_reductions --full --out build/study")
    rows = placed(sources, "reduction")
    s.findings = list(findings(rows))
    s.tables = list(tables(rows))
    s.failures = [f"{at}: {r['method']} gave wrong bits for {what(r)}"
                  for at, r in rows if r["verified"] is False and not words.is_peer(r["method"])]
    return s


def cell(r):
    """What was measured side by side has the same."""
    return r["operation"], r["input_format"], r["outer"], r["n"], r["inner"]


def shape(r):
    """'2²⁸', '49,152 × 32', or with the middle axis reduced '1 × 4,096 × 131,072'."""
    if r["inner"] == 1:
        return words.count(r["n"]) if r["outer"] == 1 else f"{r['outer']:,} × {r['n']:,}"
    return f"{r['outer']:,} × {r['n']:,} × {r['inner']:,}"


def what(r):
    """'sum of 49,152 × 32 bf16'"""
    return f"{r['operation']} of {shape(r)} {r['input_format']}"


def cells(some):
    """[[row, …], …] of one place."""
    found = {}
    for r in some:
        found.setdefault(cell(r), []).append(r)
    return list(found.values())


def is_ours(r):
    return not words.is_peer(r["method"]) and r["method"] not in CEILINGS


def fastest(rows):
    return max(rows, key=lambda r: r["gb_per_s"], default=None)


def ceiling(together):
    """The speed that memory allows a cell; None where it was not measured, or is 0."""
    return next((r["gb_per_s"] for r in together if r["method"] in CEILINGS and r["gb_per_s"]), None)


def bars_of(r, together):
    """The bars of a row of a cell; one that is held to something is held to PyTorch too, where it was measured."""
    yield from r["bars"]
    if r["bars"] and is_ours(r):
        for torch in together:
            if torch["method"].startswith(TORCH) and torch["gb_per_s"]:
                reached = r["gb_per_s"] / torch["gb_per_s"]
                yield {"against": torch["method"], "factor": TORCH_FACTOR, "reached": reached,
                       "holds": reached >= TORCH_FACTOR}


def bars(together):
    """(row, bar) of a cell."""
    return [(r, bar) for r in together for bar in bars_of(r, together)]


def share(bar):
    """What part of its bar was reached: 1 or more holds it."""
    return bar["reached"] / bar["factor"] if bar["factor"] else math.inf


# --- sentences --------------------------------------------------------------------------------------------------

def findings(rows):
    for at, some in by_place(rows).items():
        groups = cells(some)
        yield from about_bars(at, [pair for together in groups for pair in bars(together)])
        yield from about_ceilings(at, groups)
        for library in dict.fromkeys(library_of(r) for r in some if words.is_peer(r["method"])):
            yield from beside(at, library, groups)
    yield from checked([(at, r) for at, r in rows if is_ours(r)])


def about_bars(at, judged):
    if not judged:
        return
    held = sum(bar["holds"] for _, bar in judged)
    misses = sorted((pair for pair in judged if not pair[1]["holds"]), key=lambda pair: share(pair[1]))
    told = []
    for r, bar in misses[:MOST_MISSES]:
        reached, factor = words.apart(bar["reached"], bar["factor"], 3)
        told.append(f"{r['method']} of {shape(r)} {r['input_format']}: {reached} of {factor} times "
                    f"{goal(bar['against'])}")
    more = len(misses) - len(told)
    yield words.sentence(f"{at}: {words.of(held, len(judged), 'bar')} held"
                         + (f". Missed: {'; '.join(told)}" + (f"; and {more} more" if more else "") if told else "")
                         + ".")


def goal(against):
    return words.parts(against)[0] if words.is_peer(against) else against


def about_ceilings(at, groups):
    """Which cells come nearest to what memory allows, and which stay farthest from it."""
    shares = [(best["gb_per_s"] / top, best) for together in groups
              for best in [fastest([r for r in together if is_ours(r)])] for top in [ceiling(together)] if best and top]
    if not shares:
        return
    (low, last), (high, first) = min(shares, key=lambda s: s[0]), max(shares, key=lambda s: s[0])
    told = f"{what(first)} is at {percent(high)} ({first['method']})"
    if len(shares) == 1:
        yield words.sentence(f"{at}: of the speed that memory allows, {told}.")
    else:
        yield words.sentence(f"{at}: of the speed that memory allows, the fastest methods for {len(shares)} reductions "
                             f"reach between {percent(low)} and {percent(high)}: {told}, {what(last)} the farthest "
                             f"from it ({last['method']}).")


def percent(part):
    return f"{part:.1%}" if 0.9 < part < 1 else f"{part:.0%}" if part >= 0.1 else f"{part:.1%}"


def library_of(r):
    """'eigen/dot' of eigen/dot/fp32@peer."""
    return words.parts(r["method"])[0]


def beside(at, library, groups):
    """The fastest of ours beside what another library needs for the same."""
    ratios = []
    for together in groups:
        best = fastest([r for r in together if is_ours(r)])
        other = fastest([r for r in together if words.is_peer(r["method"]) and library_of(r) == library])
        if best and other and other["gb_per_s"]:
            ratios.append((best["gb_per_s"] / other["gb_per_s"], best))
    if not ratios:
        return
    (low, last), (high, first) = min(ratios, key=lambda s: s[0]), max(ratios, key=lambda s: s[0])
    won = sum(ratio >= 1 for ratio, _ in ratios)
    how = ("; it was measured in a process of its own, on the same machine in the same sitting, and ratios are of "
           "medians" if library.startswith(TORCH) else "")
    spread = (f"{words.number(low)} times its speed for {what(last)}" if len(ratios) == 1 else
              f"from {words.number(low)} times its speed ({what(last)}) to {words.number(high)} times ({what(first)})")
    yield words.sentence(f"{at}: samesum is at least as fast as {library} in "
                         f"{words.of(won, len(ratios), 'reduction')}, {spread}{how}.")


# --- tables -------------------------------------------------------------------------------------------------------

def tables(rows):
    """For each place a line a reduction, and folded every method."""
    for at, some in by_place(rows).items():
        groups = cells(some)
        yield Table(f"{at}: reductions",
                    ["reduction", "shape", "elements", "fastest of samesum", "fastest other", "GB/s",
                     "of the ceiling", "of the other", "bars held"],
                    [summary(together) for together in groups], words=5,
                    folded=len(groups) > 12 and "GPU" not in at)
        yield Table(f"{at}: reductions by every method",
                    ["reduction", "shape", "elements", "method", "time, µs", "GB/s", "of the ceiling", "held to"],
                    [line(r, together) for together in groups for r in together], words=4, folded=True, page_only=True)


def summary(together):
    r = together[0]
    best = fastest([r for r in together if is_ours(r)])
    other = fastest([r for r in together if words.is_peer(r["method"])])
    judged = [bar["holds"] for _, bar in bars(together)]
    return [r["operation"], shape(r), r["input_format"], best["method"] if best else "-",
            goal(other["method"]) if other else "-", words.number(best["gb_per_s"]) if best else "-",
            of(best, ceiling(together)), of(best, other and other["gb_per_s"]),
            f"{sum(judged)} of {len(judged)}" if judged else "-"]


def of(r, speed):
    return percent(r["gb_per_s"] / speed) if r and speed else "-"


def line(r, together):
    judged = "; ".join(f"{'pass' if bar['holds'] else 'MISS'} {bar['reached']:.3g} of {bar['factor']:.3g} × "
                       f"{goal(bar['against'])}" for bar in bars_of(r, together))
    return [r["operation"], shape(r), r["input_format"], r["method"], words.number(r["seconds"] * 1e6),
            words.number(r["gb_per_s"]), of(r, ceiling(together)), judged or "-"]
