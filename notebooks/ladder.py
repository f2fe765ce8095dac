"""Section on the kernels of the ladder: what makes sums fast, and what that costs in accuracy and reproducibility."""

import dataclasses
import html
import math
import pathlib

import phrases
import style
import timing
from figure import Figure, Series
from section import Check, Section, Table, distinct, is_gpu, preferred, rows_with_place

SUMS = "sums"
FOLDER = pathlib.Path(__file__).parents[1] / "experiments/ladder"
# Topics of GPU MODE's lectures 8 (CUDA Performance Checklist) and 9 (Reductions), 2024, with the demonstration or the
# two sums that show them.
TOPICS = [("8", "coalesced accesses to global memory", "coalescing"), ("8", "occupancy", "occupancy"),
          ("8", "control divergence", "divergence"), ("8", "tiling of reused data, privatisation", "privatisation"),
          ("8", "thread coarsening", "coarsening"), ("8", "better mathematics: online softmax", "softmax"),
          ("9", "control divergence", ("interleaved", "strided_index")),
          ("9", "memory divergence", ("strided_index", "sequential")),
          ("9", "fewer accesses to global memory: shared memory", ("sequential", "shared")),
          ("9", "many blocks", ("shared", "segmented")), ("9", "thread coarsening", ("segmented", "coarsened"))]
# What each demonstration varies.
SETTINGS = {"coalescing": lambda n: f"stride {n:,}", "occupancy": lambda n: f"{phrases.plural(n, 'thread')} per block",
            "divergence": lambda n: phrases.plural(n, "step"),
            "coarsening": lambda n: f"{phrases.plural(n, 'element')} per thread",
            "privatisation": lambda n: f"window of {n:,}", "softmax": lambda n: phrases.plural(n, "column"),
            "ceilings": lambda n: phrases.plural(n, "step")}


def section(sources):
    s = Section("ladder", "The ladder", "What makes a kernel fast?",
                "The textbook kernels for sums, simplest first, their counterparts on a CPU, "
                "and one kernel for each technique that makes kernels fast. Kernels are checked before they are timed.",
                "build/release/bin/ladder --full --profile --out build/study",
                terms=("ulp", "bound", "faster, as fast, not decided", "reading alone", "×N",
                       "uniform branches", "L1 hits", "occupancy"))
    sums, shown = rows_with_place(sources, "ladder"), rows_with_place(sources, "demonstration")
    if sums or shown:
        s.verdict = verdict(sums)
        s.findings = list(correctness_findings(sums, shown)) + [phrases.capitalised(f) for f in findings(sums, shown)] + [
            f"Measured {what} ({source.machine})." for source in sources for what in source.header.get("left_out", [])]
        s.figures = [f for f in (roofline(sums, shown),) if f.series]
        s.tables = list(tables(sums, shown))
        s.failures = [f"{at}: {name(r)}, n = {r['n']:,}: {why}"
                      for at, r in sums + shown for why in kernel_failures(r)]
    return s


def kernel_failures(r):
    if r["kind"] == "demonstration":
        return ["returned a wrong result"] if r["verified"] is False else []
    return (["the error exceeds its bound"] * (not r["within_bound"])
            + [f"promises {r['promise']} but returned {r['distinct_bits']} results"] * r["broken"]
            + ["the bits differ from those of its declared order"] * (r["as_read"] is False))


def name(r):
    """Name of a kernel with its setting: 'coarsened ×32', or 'strided_reads (stride 32)' for a demonstration."""
    algorithm = phrases.parts(r["method"])[0]
    if r["kind"] == "ladder":
        return f"{algorithm} ×{r['setting']}" if r["setting"] > 1 or algorithm == "coarsened" else algorithm
    return f"{algorithm} ({SETTINGS[r['demonstration']](r['setting'])})"


def grouped(rows, key):
    found = {}
    for at, r in rows:
        found.setdefault((at, *key(r)), []).append(r)
    return found.items()


def times(slow, fast):
    """The Ratio of the times of two kernels if the second is faster, otherwise None."""
    return timing.ratio(fast, slow) if timing.is_faster(fast, slow) else None


def share(r, of=""):
    """The speed of a sum relative to reading the same elements from where they are, a cache or memory."""
    return "-" if r["read_share"] is None else phrases.share(r["read_share"], of)


# --- sentences --------------------------------------------------------------------------------------------------

def verdict(sums):
    """The speed-up of the longest sums, on a GPU if there is one."""
    if not sums:
        return ""
    place = preferred(at for at, _ in sums)[0]
    n = max(r["n"] for at, r in sums if at == place)
    rows = [r for at, r in sums if (at, r["n"]) == (place, n)]
    first, fastest = rows[0], min(rows, key=lambda r: r["seconds"])
    ratio = timing.ratio(fastest, first)
    return (f"From {name(first)} to {name(fastest)}, a sum of {phrases.count(n)} became "
            + (ratio.as_fast if ratio and first is not fastest else "no faster")
            + (f" and reached {share(fastest, ' of the speed of reading alone')}" if fastest["read_share"] else "")
            + f" ({place}).")


def findings(sums, shown):
    for (at, n), rows in grouped(sums, lambda r: (r["n"],)):
        yield from speed_findings(at, n, rows)
        yield from branch_findings(at, n, rows)
        yield from bit_findings(at, n, rows)
    for (at, technique, _), rows in grouped(shown, lambda r: (r["demonstration"], r["n"])):
        if technique != "ceilings":
            yield from demonstration_findings(at, technique, rows)
    for at in distinct(at for at, _ in shown):
        yield from roof_findings(at, [r for a, r in sums + shown if a == at])


def correctness_findings(sums, shown):
    checked = [r for _, r in sums + [(at, r) for at, r in shown if r["verified"] is not None]]
    if checked:
        wrong = [name(r) for r in checked if kernel_failures(r)]
        right = sum(not kernel_failures(r) for r in checked)
        yield Check(f"{phrases.capitalised(phrases.out_of(right, len(checked), 'measured kernel'))} returned correct "
                    "results, sums within their rigorous bounds" + phrases.exceptions(wrong),
                    right, len(checked), "kernel with a correct result", "kernels with correct results")


def speed_findings(at, n, rows):
    """Yields the times of the first and the fastest kernel, and the speeds of samesum's methods."""
    first, fastest = rows[0], min(rows, key=lambda r: r["seconds"])
    ours = [f"{phrases.parts(r['method'])[0]} reaches {share(r)}" for r in rows
            if phrases.parts(r["method"])[0] in ("tree/plain", "exact")]
    more = f", {times(first, fastest)} times as long" if times(first, fastest) else ""
    yield (f"{at}, sum of {phrases.count(n)}: the first kernel of the ladder, {name(first)}, takes "
           f"{phrases.duration(first['seconds'])}{more}"
           + (" and is the fastest" if first is fastest else f"{' as' if more else ';'} the fastest, {name(fastest)}, "
              f"which reaches {share(fastest, ' of the speed of reading alone')}")
           + (f"; samesum's {' and '.join(ours)}." if ours else "."))
    several = [r for r in rows if phrases.parts(r["method"])[0] == "coarsened"]
    if len(several) > 1:
        best, least = min(several, key=lambda r: r["seconds"]), min(several, key=lambda r: r["setting"])
        if times(least, best):
            yield (f"{at}, sum of {phrases.count(n)}: the fastest of {len(several)} coarsening factors is "
                   f"{best['setting']}; factor {least['setting']} takes {times(least, best)} times as long.")


def branch_findings(at, n, rows):
    """Yields the divergence of the first two addressing schemes, if they were profiled."""
    known = {phrases.parts(r["method"])[0]: r["branch_efficiency"] for r in rows if r["branch_efficiency"] is not None}
    if {"interleaved", "sequential"} <= set(known):
        yield (f"{at}, sum of {phrases.count(n)}: the threads of a warp agree in {phrases.percent(known['interleaved'])} of "
               f"the branches with interleaved addressing and in {phrases.percent(known['sequential'])} with sequential "
               "addressing (GPU MODE lecture 9, 2024: 74% and 99%).")


def bit_findings(at, n, rows):
    loose = [r for r in rows if r["distinct_bits"] > 1]
    wrong = [r for r in rows if r["error_ulps"] is not None]
    text = f"{phrases.out_of(len(loose), len(rows), 'kernel')} returned more than one result"
    if loose:
        most = max(loose, key=lambda r: r["distinct_bits"])
        text += f", up to {most['distinct_bits']} in {phrases.plural(most['runs'], 'run')} ({name(most)})"
    if wrong:
        low, high = min(wrong, key=lambda r: r["error_ulps"]), max(wrong, key=lambda r: r["error_ulps"])
        text += (f"; errors range from {phrases.ulps(low['error_ulps'], 'fp32')} ({name(low)}) to "
                 f"{phrases.ulps(high['error_ulps'], 'fp32')} ({name(high)})")
    yield f"{at}, sum of {phrases.count(n)}: {text}."


def demonstration_findings(at, technique, rows):
    fastest, slowest = min(rows, key=lambda r: r["seconds"]), max(rows, key=lambda r: r["seconds"])
    text = f"{name(fastest)} is the fastest with {phrases.duration(fastest['seconds'])}"
    if times(slowest, fastest):
        text += f"; {name(slowest)} takes {times(slowest, fastest)} times as long"
    suggested = [r for r in rows if r["suggested"]]
    if suggested:
        text += (f"; CUDA suggests {phrases.plural(suggested[0]['setting'], 'thread')} per block, "
                 + ("which is the fastest" if suggested[0] is fastest else
                    f"which takes {phrases.duration(suggested[0]['seconds'])}"))
    yield f"{at}, {technique}: {text}."


# --- roofline -----------------------------------------------------------------------------------------------------

def ceilings(rows):
    """(GB/s of reading, GFLOP/s of additions, GFLOP/s of fused multiply-adds); None for what was not measured."""
    found = {phrases.parts(r["method"])[0]: r for r in rows
             if r["kind"] == "demonstration" and r["demonstration"] == "ceilings"}
    read, add, fused = (found.get(which) for which in ("read", "add", "multiply_and_add"))
    return (read and read["gb_per_s"]) or None, (add and add["gflop_per_s"]) or None, \
        (fused and fused["gflop_per_s"]) or None


def roofline_point(r):
    """(operations per byte, GFLOP/s); None for kernels without operations or bytes and for those of the ceilings."""
    if r["kind"] == "demonstration" and r["demonstration"] == "ceilings":
        return None
    if not (r["operations"] and r["bytes"] and r["seconds"]):
        return None
    return r["operations"] / r["bytes"], r["operations"] / r["seconds"] / 1e9


def roof_findings(at, rows):
    read, add, fused = ceilings(rows)
    points = [(r, roofline_point(r)) for r in rows if roofline_point(r)]
    if not (read and add and points):
        return
    left = [r for r, (intensity, _) in points if intensity * read < add]
    nearest, best = max(shares_of_ceiling(points, add), key=lambda pair: pair[0], default=(None, None))
    few = phrases.verb(len(left), len(points), "has fewer and is", "have fewer and are")
    yield (f"{at}: the ceilings, {phrases.number(read)} GB/s for reading and {phrases.number(add)} GFLOP/s for "
           "additions" + (f" ({phrases.number(fused)} for fused multiply-adds)" if fused else "")
           + f", intersect at {phrases.number(add / read, 2)} operations per byte; "
           f"{phrases.out_of(len(left), len(points), 'kernel')} {few} limited by memory"
           + (f"; of the sums of {phrases.count(best['n'])}, the one nearest to its ceiling is {name(best)}, at "
              f"{phrases.share(nearest)}." if best else "."))


def shares_of_ceiling(points, add):
    """Yields pairs (share, sum) for the longest sums. The ceiling is that of reading the same elements, so that elements
    in a cache are not compared with memory."""
    longest = max((r["n"] for r, _ in points if r["kind"] == "ladder"), default=None)
    for r, (intensity, rate) in points:
        if r["kind"] == "ladder" and r["n"] == longest and r["read_share"] and r["gb_per_s"]:
            yield rate / min(intensity * r["gb_per_s"] / r["read_share"], add), r


def under_the_roof(rows):
    """(the rows of the roofline, the number of those that got bytes from a cache). Only the longest sums read memory,
    and a kernel that is faster than its ceiling did not."""
    longest = max((r["n"] for r in rows if r["kind"] == "ladder"), default=None)
    points = [r for r in rows if roofline_point(r) and (r["kind"] != "ladder" or r["n"] == longest)]
    read, add, fused = ceilings(rows)
    if not read:
        return points, 0
    most = max(filter(None, (add, fused)), default=math.inf)
    under = [r for r in points for intensity, rate in [roofline_point(r)]
             if rate <= timing.EQUAL * min(intensity * read, most)]
    return under, len(points) - len(under)


def roofline(sums, shown):
    """Figure of the kernels that read memory by their operations per byte, with the ceilings of the same run."""
    colours = list(style.COLOURS.values())
    series, findings_of = [], {}
    places = preferred(at for at, _ in sums + shown)
    for at in places:
        rows = [r for a, r in sums + shown if a == at]
        clouds = {}
        under, cached = under_the_roof(rows)
        for r in under:
            clouds.setdefault(SUMS if r["kind"] == "ladder" else r["demonstration"], []).append(r)
        groups = [SUMS, *SETTINGS]
        for group, some in clouds.items():
            place = groups.index(group)
            series.append(Series(group, [roofline_point(r)[0] for r in some], [roofline_point(r)[1] for r in some],
                                 colours[place % len(colours)], (at,), symbol=style.SYMBOLS[place],
                                 text=[f"{name(r)}, n = {phrases.count(r['n'])}" for r in some]))
        intensities = [roofline_point(r)[0] for r in under]
        read, add, fused = ceilings(rows)
        for rate, which, dash in ((add, "additions", "dot"), (fused, "fused multiply-adds", "dash")):
            if read and rate and intensities:
                across = sorted({min(intensities), rate / read, max(*intensities, 2 * rate / read)})
                series.append(Series("ceiling", across, [min(x * read, rate) for x in across], style.GREY, (at,),
                                     dash, faint=True, key=f"ceiling: reading, then {which}"))
        if intensities:
            low, high = min(intensities), max(intensities)
            findings_of[at] = (f"{phrases.plural(sum(map(len, clouds.values())), 'kernel')} with "
                               f"{phrases.number(low, 2)} to {phrases.number(high, 2)} operations per byte"
                               + (f"; memory is the limit below {phrases.number(add / read, 2)}" if read and add
                                  else "")
                               + (f"; not shown {phrases.verb(cached, cached)} {cached} above the ceiling, whose bytes "
                                  "came from a cache" if cached else ""))
    found = Figure("ladder-roofline", "Roofline: speed of kernels that read memory, against operations per byte",
                   [("Machine", [at for at in places if at in findings_of])],
                   [s for s in series if s.on[0] in findings_of],
                   "operations per byte", {None: "GFLOP/s"}, points=True, x_kind="log10",
                   description="Each point is a kernel. Horizontal axis: operations per byte. Vertical axis: "
                               "operations per second. The ceilings, measured in the same run, are those of reading "
                               "(the slope), and of additions in registers (dotted) and of fused multiply-adds "
                               "(dashed). Of the sums, "
                               "the longest are shown: others fit in a cache. Kernels that only move elements "
                               "(coalescing) have no point.")
    if findings_of:
        chosen = found.chosen()[0]
        found.finding = phrases.capitalised(f"{chosen}: {findings_of[chosen]}.")
    return found


# --- the notebook's steps -----------------------------------------------------------------------------------------

@dataclasses.dataclass
class Step:
    """A kernel: its lines, and beside them its lesson and its times."""

    lines: str
    lesson: str
    rows: list  # of (number of elements, time, speed-up over the kernel before it)

    def __repr__(self):
        return f"Step({self.lesson!r})"

    def _repr_html_(self):
        times = "".join(f"<tr><td>{n}</td><td>{time}</td><td>{faster}</td></tr>" for n, time, faster in self.rows)
        return (f'<table><tr><td style="text-align: left; vertical-align: top">'
                f'<pre style="font-family: monospace; white-space: pre">{html.escape(self.lines)}</pre></td>'
                f'<td style="vertical-align: top"><table><tr><th>elements</th><th>time</th><th>times as fast</th></tr>{times}'
                f"</table><p>{html.escape(self.lesson)}</p></td></tr></table>")


def lines_of(kernel):
    """The lines of a kernel's file inside its namespace."""
    text = next(FOLDER.glob(f"[0-9][0-9]_{kernel}.cuh")).read_text()
    return text.partition("namespace samesum::ladder {")[2].rpartition("}  // namespace")[0].strip()


def step(sources, kernel, before=None):
    """The step of a kernel on a GPU, at its fastest setting per length, compared with the kernel before it."""
    def fastest(name):
        found = {}
        for r in (r for source in sources for r in source.of("ladder")):
            algorithm, _, backend = phrases.parts(r["method"])
            if (algorithm, backend) == (name, "cuda") and r["seconds"]:
                found[r["n"]] = min(r, found.get(r["n"], r), key=lambda r: r["seconds"])
        return found

    mine, other = fastest(kernel), fastest(before)
    rows = [(phrases.count(n), phrases.duration(r["seconds"]),
             timing.cell(r, other.get(n))) for n, r in sorted(mine.items())]
    return Step(lines_of(kernel), next((phrases.capitalised(r["lesson"]) + "." for r in mine.values()), ""), rows)


# --- tables -------------------------------------------------------------------------------------------------------

def tables(sums, shown):
    longest = {at: max(r["n"] for a, r in sums if a == at) for at, _ in sums}
    for (at, n), rows in grouped(sums, lambda r: (r["n"],)):
        yield Table(f"{at}: the ladder, sums of {phrases.count(n)} fp32",
                    ["kernel", "lesson", "time", "GB/s", "of reading", "uniform branches", "L1 hits", "results",
                     "error, ulps"],
                    [[name(r), r["lesson"], phrases.duration(r["seconds"]), phrases.number(r["gb_per_s"]),
                      phrases.percent(r["read_share"]), phrases.percent(r["branch_efficiency"]), phrases.percent(r["l1_hit_rate"]),
                      f"{r['distinct_bits']} in {r['runs']} runs",
                      phrases.error_in_ulps(r["error_ulps"], "fp32")] for r in rows],
                    text_columns=2, folded=not (n == longest[at] and "GPU" in at))
    for at in distinct(at for at, _ in sums + shown if is_gpu(at)):
        yield topics(at, [r for a, r in sums if a == at], [r for a, r in shown if a == at])
    for (at,), rows in grouped(shown, lambda r: ()):
        yield Table(f"{at}: techniques that make kernels fast",
                    ["technique", "kernel", "lesson", "n", "time", "GB/s", "GFLOP/s", "occupancy", "uniform branches",
                     "L1 hits"],
                    [[r["demonstration"], name(r) + (" (suggested)" if r["suggested"] else ""), r["lesson"],
                      phrases.count(r["n"]), phrases.duration(r["seconds"]), phrases.number(r["gb_per_s"]),
                      phrases.number(r["gflop_per_s"]), phrases.percent(r["occupancy"]), phrases.percent(r["branch_efficiency"]),
                      phrases.percent(r["l1_hit_rate"])] for r in rows], text_columns=3, folded=True)


def topics(at, sums, shown):
    """Table of the topics of the lectures, each from the slower to the faster kernel at their greatest common length."""
    lines = []
    for lecture, topic, what in TOPICS:
        if isinstance(what, str):
            some = [r for r in shown if r["demonstration"] == what and r["seconds"]]
            pair = (max(some, key=lambda r: r["seconds"]), min(some, key=lambda r: r["seconds"])) if some else None
        else:
            found = [{n: min(rs, key=lambda r: r["seconds"]) for n in {r["n"] for r in sums}
                      if (rs := [r for r in sums if r["n"] == n and phrases.parts(r["method"])[0] == kernel and r["seconds"]])}
                     for kernel in what]
            common = max(set(found[0]) & set(found[1]), default=None)
            pair = None if common is None else (found[0][common], found[1][common])
        if pair:
            lines.append([lecture, topic, name(pair[0]), name(pair[1]), phrases.count(pair[1]["n"]),
                          timing.cell(pair[1], pair[0])])
    return Table(f"{at}: topics of GPU MODE's lectures 8 and 9", ["lecture", "topic", "from", "to", "n", "times as fast"],
                 lines, text_columns=4, folded=True)
