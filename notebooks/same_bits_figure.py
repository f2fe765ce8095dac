"""Draws how far apart the results of a sum lie, and how far from the truth, for samesum and CUB: figures/same_bits.svg,
which README.md shows. It is made from the committed results of spread_over_runs.
"""

import math
import pathlib

import results
from figure import Drawing, on_paper
from report import write
from style import COLOURS, GREY

RESULTS = results.ROOT / "experiments/results/h200.spread_over_runs.jsonl"
TARGET = pathlib.Path(__file__).parent / "figures/same_bits.svg"
EXACT = "exact/fp32@cuda"
SHOWN = {"atomic_element/plain/fp32@cuda": ("atomicAdd of every element", GREY),
         "cub/not_guaranteed/fp32@peer": ("CUB, not_guaranteed", COLOURS["peer"]),
         "cub/run_to_run/fp32@peer": ("CUB, run_to_run (its default)", COLOURS["peer"]),
         "cub/gpu_to_gpu/fp32@peer": ("CUB, gpu_to_gpu", COLOURS["peer"]),
         "tree/plain/fp32@cuda": ("samesum, tree/plain", COLOURS["plain"]),
         EXACT: ("samesum, exact", COLOURS["exact"])}
LEFT, RIGHT, TOP, LINE, WIDTH, MOST = 240, 150, 92, 38, 860, 16  # MOST ulps to either side


def spreads(source):
    """{method: its spread over start addresses} of fp32 sums of normal data."""
    rows = [results.with_short_names(r) for r in source.of("spread")]
    found = {r["method"]: r for r in rows if r["axis"] == "alignment" and r["data"] == "normal"}
    if missing := [m for m in SHOWN if m not in found]:
        raise results.Refused(f"{source.path}: has no spread over alignments of {', '.join(missing)}")
    found = {m: found[m] for m in SHOWN}
    if len({(r["n"], r["runs"]) for r in found.values()}) > 1:
        raise results.Refused(f"{source.path}: the spreads over alignments have different lengths or numbers of calls")
    return found


def figure(found, gpu):
    """An SVG with a bar per method from its lowest to its highest result, in ulps from the exact sum."""
    truth, n, calls = found[EXACT]["highest"], found[EXACT]["n"], found[EXACT]["runs"]
    ulp = 2.0 ** (math.frexp(abs(truth))[1] - 24)
    bottom = TOP + LINE * len(found)

    def x(ulps):
        return LEFT + (WIDTH - LEFT - RIGHT) * (ulps + MOST) / (2 * MOST)

    d = Drawing(WIDTH, bottom + 56, f"Results of {calls} sums of the same numbers, by method")
    d.text(16, 26, f"One sum, {calls} calls: how many results, and how far off?", size=17, more=' font-weight="bold"')
    d.text(16, 48, f"The same {n:,} normally distributed floats, at {calls} start addresses in the memory of one {gpu}.",
           size=13, fill=d.faint)
    d.text(WIDTH - 16, TOP - 12, f"different results in {calls} calls", "end", 12, d.faint)
    for ulps in range(-MOST, MOST + 1, 4):
        d.line(x(ulps), TOP - 4, x(ulps), bottom, "#888" if ulps == 0 else None)
        d.text(x(ulps), bottom + 18, f"{ulps:+d}" if ulps else "exact", "middle", fill=d.faint)
    d.text(x(0), bottom + 42, "distance from the correctly rounded sum, in ulps (steps of the format)", "middle", 13, d.faint)
    for i, (method, row) in enumerate(found.items()):
        label, colour = SHOWN[method]
        y = TOP + LINE * i + LINE / 2
        ends = [(row[end] - truth) / ulp for end in ("lowest", "highest")]
        low, high = (x(max(-MOST, min(MOST, e))) for e in ends)
        d.text(16, y + 4.5, label, size=14, more=' font-weight="bold"' if label.startswith("samesum") else "")
        d.add(f'<path d="M{low:.1f} {y:.1f}L{high:.1f} {y:.1f}" stroke="{colour}" stroke-width="7" stroke-opacity="0.45"/>')
        for end, place, side in zip(ends, (low, high), (-1, 1)):
            if abs(end) > MOST:
                d.add(f'<path d="M{place + 9 * side:.1f} {y:.1f}l{-9 * side} -8v16Z" fill="{colour}"/>')
                d.text(place - 8 * side, y - 8, f"{end:+.0f}", "start" if side < 0 else "end", 12, d.faint)
            else:
                d.circle(place, y, 6, colour, f"{label}: {row['lowest']:.9g} to {row['highest']:.9g}")
        d.text(WIDTH - 16, y + 5, str(row["distinct_bits"]), "end", 15, more=' font-weight="bold"')
    return on_paper(d.done())


def main():
    source = results.read_experiment(RESULTS, "H200", "spread_over_runs")
    write(TARGET, figure(spreads(source), source.header["provenance"]["gpu"].split(",")[0]) + "\n")


if __name__ == "__main__":
    main()
