"""What makes a sum fast, one lesson at a time, and what does it cost in bits?"""

import style
import words
from figure import Figure, Series
from section import Section, Table, distinct, placed, preferred

SUMS = "sums"
# What is varied, of which demonstration.
SETTINGS = {"coalescing": lambda n: f"stride {n:,}", "occupancy": lambda n: f"{words.plural(n, 'thread')} a block",
            "divergence": lambda n: words.plural(n, "step"),
            "coarsening": lambda n: f"{words.plural(n, 'element')} a thread",
            "privatisation": lambda n: f"a window of {n:,}", "softmax": lambda n: words.plural(n, "column"),
            "ceilings": lambda n: words.plural(n, "step")}


def section(sources):
    s = Section("ladder", "The ladder", "The kernels of the textbooks on sums, simplest first, what each of them is on "
                "a CPU, and one kernel for each thing that makes kernels fast. All are checked before they are timed.",
                "build/release/bin/ladder --full --profile --out build/study")
    sums, shown = placed(sources, "ladder"), placed(sources, "demonstration")
    if sums or shown:
        s.findings = [words.sentence(f) for f in findings(sums, shown)] + [
            f"Measured {what} ({source.machine})." for source in sources for what in source.header.get("left_out", [])]
        s.figures = [f for f in (roofline(sums, shown),) if f.series]
        s.tables = list(tables(sums, shown))
        s.failures = [f"{at}: {name(r)}, n = {r['n']:,}: {wrong}" for at, r in sums + shown for wrong in broken(r)]
    return s


def broken(r):
    if r["kind"] == "demonstration":
        return ["does not give what it should"] if r["verified"] is False else []
    return (["the error exceeds its bound"] * (not r["within_bound"])
            + [f"promises {r['promise']} but gave {r['distinct_bits']} results"] * r["broken"]
            + ["other bits than its order gives"] * (r["as_read"] is False))


def name(r):
    """'coarsened ×32' of coarsened/fp32@cuda; of a demonstration with what is varied."""
    recipe = words.parts(r["method"])[0]
    if r["kind"] == "ladder":
        return f"{recipe} ×{r['setting']}" if r["setting"] > 1 or recipe == "coarsened" else recipe
    return f"{recipe} ({SETTINGS[r['demonstration']](r['setting'])})"


def grouped(rows, key):
    found = {}
    for at, r in rows:
        found.setdefault((at, *key(r)), []).append(r)
    return found.items()


def times(slow, fast):
    """How many times as long, in words; '' where that is once, or nobody knows."""
    ratio = words.number(slow["seconds"] / fast["seconds"], 2) if fast["seconds"] else "1"
    return "" if ratio == "1" else ratio


def percent(share):
    return "-" if share is None else f"{share:.1%}" if 0.9 < share < 1 else f"{share:.0%}"


def duration(seconds):
    """'4.2 µs'"""
    return next((f"{words.number(seconds * scale)} {unit}" for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"))
                 if seconds * scale >= 1), f"{words.number(seconds * 1e9)} ns")


# --- sentences --------------------------------------------------------------------------------------------------

def findings(sums, shown):
    yield from about_checks(sums, shown)
    for (at, n), rows in grouped(sums, lambda r: (r["n"],)):
        yield from about_speed(at, n, rows)
        yield from about_branches(at, n, rows)
        yield from about_bits(at, n, rows)
    for (at, what, _), rows in grouped(shown, lambda r: (r["demonstration"], r["n"])):
        if what != "ceilings":
            yield from about_demonstration(at, what, rows)
    for at in distinct(at for at, _ in shown):
        yield from about_roof(at, [r for a, r in sums + shown if a == at])


def about_checks(sums, shown):
    checked = [r for _, r in sums + [(at, r) for at, r in shown if r["verified"] is not None]]
    right = [r for r in checked if not broken(r)]
    if checked:
        wrong = [name(r) for r in checked if broken(r)]
        yield (f"{words.of(len(right), len(checked), 'measured kernel')} gave what they should, sums within rigorous "
               "bounds" + (f"; not {words.names(wrong)}." if wrong else "."))


def about_speed(at, n, rows):
    """From the first of the list to the fastest, and samesum's two."""
    first, fastest = rows[0], min(rows, key=lambda r: r["seconds"])
    ours = [f"{words.parts(r['method'])[0]} at {percent(r['read_share'])}" for r in rows
            if words.parts(r["method"])[0] in ("tree/plain", "exact")]
    more = "" if first is fastest or not times(first, fastest) else f", {times(first, fastest)} times as long"
    yield (f"{at}, sum of {words.count(n)}: the first kernel of the ladder, {name(first)}, takes "
           f"{duration(first['seconds'])}{more}"
           + ("" if first is fastest else f" as the fastest, {name(fastest)}, which is at "
              f"{percent(fastest['read_share'])} of the speed of reading alone")
           + (f"; samesum's {' and '.join(ours)}." if ours else "."))
    several = [r for r in rows if words.parts(r["method"])[0] == "coarsened"]
    if len(several) > 1:
        best, least = min(several, key=lambda r: r["seconds"]), min(several, key=lambda r: r["setting"])
        if best is not least and times(least, best):
            yield (f"{at}, sum of {words.count(n)}: of {len(several)} coarsening factors {best['setting']} is the "
                   f"fastest, and {least['setting']} takes {times(least, best)} times as long.")


def about_branches(at, n, rows):
    """The divergence cure, as far as it was profiled."""
    known = {words.parts(r["method"])[0]: r["branch_efficiency"] for r in rows if r["branch_efficiency"] is not None}
    if {"interleaved", "sequential"} <= set(known):
        yield (f"{at}, sum of {words.count(n)}: the threads of a warp agree in {percent(known['interleaved'])} of the "
               f"branches with interleaved addressing, and in {percent(known['sequential'])} with sequential "
               "addressing (the lecture: 74% and 99%).")


def about_bits(at, n, rows):
    loose = [r for r in rows if r["distinct_bits"] > 1]
    wrong = [r for r in rows if r["error_ulps"] is not None]
    told = f"{words.of(len(loose), len(rows), 'sum')} gave more than one result"
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"])
        told += f", {name(most)} {most['distinct_bits']} in {words.plural(most['runs'], 'run')}"
    if wrong:
        low, high = min(wrong, key=lambda r: r["error_ulps"]), max(wrong, key=lambda r: r["error_ulps"])
        told += (f"; errors in units in the last place go from {words.number(low['error_ulps'], 2)} ({name(low)}) to "
                 f"{words.number(high['error_ulps'], 2)} ({name(high)})")
    yield f"{at}, sum of {words.count(n)}: {told}."


def about_demonstration(at, what, rows):
    fastest, slowest = min(rows, key=lambda r: r["seconds"]), max(rows, key=lambda r: r["seconds"])
    told = f"{name(fastest)} is the fastest, in {duration(fastest['seconds'])}"
    if slowest is not fastest and times(slowest, fastest):
        told += f"; {name(slowest)} takes {times(slowest, fastest)} times as long"
    suggested = [r for r in rows if r["suggested"]]
    if suggested:
        told += (f"; CUDA suggests {words.plural(suggested[0]['setting'], 'thread')} a block, "
                 + ("which is the fastest" if suggested[0] is fastest else
                    f"which takes {duration(suggested[0]['seconds'])}"))
    yield f"{at}, {what}: {told}."


# --- the roofline -------------------------------------------------------------------------------------------------

def ceilings(rows):
    """GB/s of reading, GFLOP/s of additions and of fused ones: None where it was not measured."""
    found = {words.parts(r["method"])[0]: r for r in rows
             if r["kind"] == "demonstration" and r["demonstration"] == "ceilings"}
    read, add, fused = (found.get(which) for which in ("read", "add", "multiply_and_add"))
    return (read and read["gb_per_s"]) or None, (add and add["gflop_per_s"]) or None, \
        (fused and fused["gflop_per_s"]) or None


def point(r):
    """(operations a byte, GFLOP/s); None where there are none, or no bytes, and for what measures the ceilings."""
    if r["kind"] == "demonstration" and r["demonstration"] == "ceilings":
        return None
    if not (r["operations"] and r["bytes"] and r["seconds"]):
        return None
    return r["operations"] / r["bytes"], r["operations"] / r["seconds"] / 1e9


def about_roof(at, rows):
    read, add, fused = ceilings(rows)
    on_it = [(r, point(r)) for r in rows if point(r)]
    if not (read and add and on_it):
        return
    left = [r for r, (intensity, _) in on_it if intensity * read < add]
    share = [(rate / min(intensity * read, add), r) for r, (intensity, rate) in on_it if r["kind"] == "ladder"]
    nearest, best = max(share, key=lambda pair: pair[0], default=(None, None))
    yield (f"{at}: {words.number(read)} GB/s of reading and {words.number(add)} GFLOP/s of additions"
           + (f" ({words.number(fused)} fused with multiplications)" if fused else "")
           + f" meet at {words.number(add / read, 2)} operations a byte; {words.of(len(left), len(on_it), 'kernel')} "
           f"{words.verb(len(left), len(on_it), 'has', 'have')} fewer, so that memory is their roof"
           + (f", and of sums {name(best)} comes nearest to it, at {percent(nearest)}." if share else "."))


def roofline(sums, shown):
    """Every kernel by its operations a byte, below the ceilings of the same run."""
    colours = list(style.COLOURS.values())
    series, readings = [], {}
    places = preferred([at for at, _ in sums + shown], next((at for at, _ in sums + shown if "GPU" in at), None))
    for at in places:
        rows = [r for a, r in sums + shown if a == at]
        clouds = {}
        for r in rows:
            if point(r):
                clouds.setdefault(SUMS if r["kind"] == "ladder" else r["demonstration"], []).append(r)
        groups = [SUMS, *SETTINGS]
        for group, some in clouds.items():
            place = groups.index(group)
            series.append(Series(group, [point(r)[0] for r in some], [point(r)[1] for r in some],
                                 colours[place % len(colours)], (at,), symbol=style.SYMBOLS[place],
                                 text=[f"{name(r)}, n = {words.count(r['n'])}" for r in some]))
        intensities = [point(r)[0] for r in rows if point(r)]
        read, add, fused = ceilings(rows)
        for rate in (add, fused):
            if read and rate and intensities:
                across = sorted({min(intensities), rate / read, max(*intensities, 2 * rate / read)})
                series.append(Series("ceiling", across, [min(x * read, rate) for x in across], style.GREY, (at,),
                                     faint=True))
        if intensities:
            low, high = min(intensities), max(intensities)
            readings[at] = (f"{words.plural(sum(map(len, clouds.values())), 'kernel')}, from "
                            f"{words.number(low, 2)} to {words.number(high, 2)} operations a byte"
                            + (f"; memory is the roof up to {words.number(add / read, 2)}" if read and add else ""))
    found = Figure("ladder-roofline", "The roofline: what each kernel could reach, and what it reaches",
                   [("On", [at for at in places if at in readings])], [s for s in series if s.on[0] in readings],
                   "operations a byte", {None: "GFLOP/s"}, points=True, x_kind="log10",
                   note="Dotted: the ceilings measured in the same run: reading (the slope), additions of registers "
                        "alone and fused multiplications and additions (flat). A point above the slope got some of "
                        "its bytes from a cache. What only moves elements (coalescing) has no place here.")
    if readings:
        chosen = found.chosen()[0]
        found.reading = words.sentence(f"{chosen}: {readings[chosen]}.")
    return found


# --- tables -------------------------------------------------------------------------------------------------------

def tables(sums, shown):
    longest = {at: max(r["n"] for a, r in sums if a == at) for at, _ in sums}
    for (at, n), rows in grouped(sums, lambda r: (r["n"],)):
        yield Table(f"{at}: the ladder, sums of {words.count(n)} fp32",
                    ["sum", "lesson", "time", "GB/s", "of reading", "branches that agree", "L1 hits", "results",
                     "error, ulps"],
                    [[name(r), r["lesson"], duration(r["seconds"]), words.number(r["gb_per_s"]),
                      percent(r["read_share"]), percent(r["branch_efficiency"]), percent(r["l1_hit_rate"]),
                      f"{r['distinct_bits']} of {r['runs']}", words.number(r["error_ulps"], 2)] for r in rows],
                    words=2, folded=not (n == longest[at] and "GPU" in at))
    for (at,), rows in grouped(shown, lambda r: ()):
        yield Table(f"{at}: what makes kernels fast", ["what", "kernel", "lesson", "n", "time", "GB/s", "GFLOP/s",
                                                       "occupancy", "branches that agree", "L1 hits"],
                    [[r["demonstration"], name(r) + (" (suggested)" if r["suggested"] else ""), r["lesson"],
                      words.count(r["n"]), duration(r["seconds"]), words.number(r["gb_per_s"]),
                      words.number(r["gflop_per_s"]), percent(r["occupancy"]), percent(r["branch_efficiency"]),
                      percent(r["l1_hit_rate"])] for r in rows], words=3, folded=True)
