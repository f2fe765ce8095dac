"""Where the exact methods are slow: for each operation and device, the longest time beside another library and the
longest on data other than normal numbers."""

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


def work(r):
    """'512 columns of 512 fp32, arbitrary bits'."""
    outer, n, inner = (r.get(name) or 1 for name in ("outer", "n", "inner"))
    shape = (f"{n:,} rows of {inner:,} numbers" if inner > 1 and r.get("keys") else
             f"{inner:,} columns of {n:,}" if inner > 1 else
             f"{outer:,} rows of {n:,}" if outer > 1 else phrases.count(n))
    keys = f" by {phrases.count(r['bins'])} keys, {r['keys']}" if r.get("keys") else ""
    return f"{shape} {r['input_format']}{keys}{by_data.other_data(r)}"


def cells(rows):
    """The rows of each experiment and place on the same work."""
    made = {}
    for at, r in rows:
        made.setdefault((at, operation(r), work(r)), []).append(r)
    return made


def worst(pairs):
    """{(device, operation): (row of exact, other row)} with the largest ratio of times, where exact is slower."""
    found = {}
    for own, other in pairs:
        key, ratio = (phrases.device(own["method"]), operation(own)), timing.ratio(own, other)
        if ratio and ratio.verdict == timing.SLOWER:
            found[key] = min((own, other), found.get(key, (own, other)), key=lambda pair: timing.ratio(*pair).value)
    return dict(sorted(found.items()))


def is_exact(r):
    return phrases.accumulator(r["method"]) == "exact"


def beside_libraries(found):
    """The worst cells beside the fastest other library, on the same data."""
    pairs = ([fastest(filter(matches, together)) for matches in (is_exact, lambda r: phrases.is_peer(r["method"]))]
             for together in cells(timed(found)).values())
    return worst((own, other) for own, other in pairs if own and other)


def on_other_data(found):
    """The worst cells on other data, beside the same method on normal numbers."""
    by_place = {}
    for at, r in timed(found):
        if is_exact(r):
            by_place.setdefault(at, []).append(r)
    return worst(pair for some in by_place.values() for pair in by_data.compared(some))


def comparisons(found):
    """Yields (with what exact calls are compared, device, {operation: worst pair of rows})."""
    for what, pairs in (("beside the fastest other library", beside_libraries(found)),
                        ("beside the same call on normal numbers", on_other_data(found))):
        for device in sorted({device for device, _ in pairs}):
            yield what, device, {name: pair for (of, name), pair in pairs.items() if of == device}


def cell(own, other):
    """'dot 40 [36.8, 42.4] (2¹⁸ fp32, arbitrary bits)', and the library if there is one."""
    library = f"; {phrases.parts(other['method'])[0]}" if phrases.is_peer(other["method"]) else ""
    return (f"{NAMES.get(operation(own), operation(own))} {timing.ratio(own, other).of_times} "
            f"({work(own)}{library})")


def sentences(found):
    """Yields a sentence per device and kind of comparison, with the worst cell of each operation."""
    for what, device, pairs in comparisons(found):
        cells_in_words = "; ".join(cell(*pair) for pair in pairs.values())
        yield f"On a {device}, exact calls take at most so many times as long {what}: {cells_in_words}."


def answer(found):
    """The slowest operation of each device and kind of comparison, in a sentence; '' without results."""
    texts = []
    for what, device, pairs in comparisons(found):
        slowest = min(pairs.values(), key=lambda pair: timing.ratio(*pair).value)
        texts.append(f"on a {device} {what}: {cell(*slowest)}")
    return f"Exact calls take at most so many times as long {'; '.join(texts)}." if texts else ""
