"""Where the exact methods are slow: for each operation and device, the longest time beside other calls and the longest on
data other than normal numbers."""

import by_data
import phrases
import timing
from section import place
from timing import fastest

KINDS = {"speed_vs_length": "speed"} | {q: "reduction" for q in ("speed_of_reductions", "prefix_sums", "sums_by_key")}
NAMES = {"cumsum": "prefix sums", "scatter_add": "sums by key"}


def timed(found):
    """Pairs ((question, place), row) of results in the format of the elements, in hot caches. Experiments may be of
    different hosts."""
    return [((question, place(source, r)), r) for question, kind in KINDS.items() for source in found.get(question, [])
            for r in source.rows if r["kind"] == kind and r.get("caches") != "cold" and r.get("grid") is None
            and phrases.parts(r["method"])[1] == r["input_format"]]


def operation(r):
    return r.get("operation", "sum")


def name_of(operation):
    return NAMES.get(operation, operation)


def elements(r, count=phrases.count):
    """'512 columns of 512 fp32', '2¹⁸ fp32, 2 threads'; count(n) formats a length."""
    outer, n, inner = (r.get(name) or 1 for name in ("outer", "n", "inner"))
    shape = (f"{n:,} rows of {inner:,} numbers" if inner > 1 and r.get("keys") else
             f"{inner:,} columns of {n:,}" if inner > 1 else
             f"{outer:,} rows of {n:,}" if outer > 1 else count(n))
    keys = f" by {count(r['bins'])} keys, {r['keys']}" if r.get("keys") else ""
    threads = f", {r['threads']} threads" if r["threads"] > 1 else ""
    return f"{shape} {r['input_format']}{keys}{threads}"


def work(r):
    """'512 columns of 512 fp32, arbitrary bits'."""
    return elements(r) + by_data.other_data(r)


def is_exact(r):
    return phrases.accumulator(r["method"]) == "exact"


def is_peer(r):
    return phrases.is_peer(r["method"])


# --- the search ---------------------------------------------------------------------------------------------------

def beside(found, matches):
    """Pairs (the exact row, the fastest other row that matches) of each experiment and place, on the same work and data."""
    cells = {}
    for at, r in timed(found):
        cells.setdefault((at, operation(r), work(r)), []).append(r)
    pairs = ([fastest(filter(which, together)) for which in (is_exact, matches)] for together in cells.values())
    return [(own, other) for own, other in pairs if own and other and timing.ratio(own, other)]


def on_other_data(found):
    """Pairs (an exact row on other data, the same call on normal numbers) of each experiment and place."""
    by_place = {}
    for at, r in timed(found):
        if is_exact(r):
            by_place.setdefault(at, []).append(r)
    return [pair for some in by_place.values() for pair in by_data.compared(some)]


def kind(own):
    """What a sentence or a table names the slowest case of."""
    return phrases.device(own["method"]), operation(own)


def worst(pairs, key=kind):
    """{key(row of exact): its pair with the largest ratio of times}, of the pairs in which exact is slower."""
    found = {}
    for own, other in pairs:
        if timing.ratio(own, other).verdict == timing.SLOWER:
            found[key(own)] = min((own, other), found.get(key(own), (own, other)), key=lambda pair: timing.ratio(*pair).value)
    return dict(sorted(found.items()))


# --- sentences ----------------------------------------------------------------------------------------------------

def comparisons(found):
    """Yields (with what exact calls are compared, device, {operation: worst pair of rows})."""
    methods = [r["method"] for _, r in timed(found)]
    for what, pairs in (("beside the fastest {}", worst(beside(found, is_peer))),
                        ("beside the same call on normal numbers", worst(on_other_data(found)))):
        for device in sorted({device for device, _ in pairs}):
            here = phrases.peers_in_words(m for m in methods if phrases.device(m) == device)
            yield what.format(here), device, {name: pair for (of, name), pair in pairs.items() if of == device}


def cell(own, other):
    """'dot 40 [36.8, 42.4] (2¹⁸ fp32, arbitrary bits)', and the peer if there is one."""
    peer = f"; {phrases.parts(other['method'])[0]}" if is_peer(other) else ""
    return f"{name_of(operation(own))} {timing.ratio(own, other).of_times} ({work(own)}{peer})"


def sentences(found):
    """Yields a sentence per device and kind of comparison, with the worst cell of each operation."""
    for what, device, pairs in comparisons(found):
        cells_in_words = "; ".join(cell(*pair) for pair in pairs.values())
        yield f"On a {device}, exact calls take at most so many times as long {what}: {cells_in_words}."


def slowest(pairs):
    """Of {operation: pair of rows}, the pair in which exact is slowest."""
    return min(pairs.values(), key=lambda pair: timing.ratio(*pair).value)


def in_short(own, other):
    """'dot of 2¹⁸ fp32, arbitrary bits: 40 times normal numbers', or '… times eigen/dot'."""
    beside = phrases.parts(other["method"])[0] if is_peer(other) else "normal numbers"
    times = phrases.number(1 / timing.ratio(own, other).value, 2)
    return f"{name_of(operation(own))} of {work(own)}: {times} times {beside}"


def answer(found):
    """The slowest operation of each device and kind of comparison, in a sentence; '' without results."""
    texts = []
    for what, device, pairs in comparisons(found):
        texts.append(f"on a {device} {what}: {cell(*slowest(pairs))}")
    return f"Exact calls take at most so many times as long {'; '.join(texts)}." if texts else ""
