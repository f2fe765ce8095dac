"""Draws the measured error of every method on one data set, from the comparisons of experiments/run.

The figure in README.md is made with:
  error_figure.py experiments/results/h200.compare.jsonl moon.npy notebooks/figures/errors.svg
"""

import argparse
import math
import pathlib
import sys

import phrases
import results
from compare import name_and_length
from figure import Drawing, on_paper
from report import write

# Tol's muted colours; those of style.py stand for accumulators.
COLOURS = {"fp16": "#cc6677", "bf16": "#882255", "fp32": "#332288", "fp64": "#117733"}
LEFT, RIGHT, TOP, ROW, WIDTH = 190, 40, 110, 26, 860


def main(arguments):
    parser = argparse.ArgumentParser(prog="error_figure.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS.jsonl", type=pathlib.Path, help="results file with comparisons")
    parser.add_argument("data", metavar="DATA", help="file name of the data set")
    parser.add_argument("target", metavar="OUT.svg", type=pathlib.Path, help="the figure to write")
    options = parser.parse_args(arguments)
    try:
        found = [results.with_short_names(c) for c in results.read_comparisons(options.results, results.HERE).rows]
        comparison = next((c for c in found if name_and_length(c)[0] == options.data), None)
        if not comparison:
            raise results.Refused(f"{options.results}: no comparison for {options.data}")
        write(options.target, figure(comparison, options.data) + "\n")
    except (results.Refused, OSError) as refusal:
        print(f"error_figure.py: {refusal}", file=sys.stderr)
        return 2
    return 0


def figure(comparison, data):
    """An SVG with a row per order and accumulator, smallest errors first, and a dot per format.

    An error of 0 is at the left and a result that is not finite at the right. A result without a relative error,
    because the sum is 0, is not shown.
    """
    rows = {}
    for m in comparison["methods"]:
        algorithm, format, backend = phrases.parts(m["method"])
        if backend == "cpu" and (m["value"] is None or m["relative_error"] is not None):
            rows.setdefault(algorithm, []).append((format, m))
    rows = sorted(rows.items(), key=lambda row: min(plotted_error(m) for _, m in row[1]))
    errors = [m["relative_error"] for _, row in rows for _, m in row if m["relative_error"]] or [1.0]
    low, high = min(0, math.floor(math.log10(min(errors)))), max(1, math.ceil(math.log10(max(errors))))
    decade = (WIDTH - LEFT - RIGHT - 70) / (high - low)  # 70 for the column "not finite"
    bottom = TOP + ROW * len(rows)

    def x(error):
        return LEFT + decade * (math.log10(error) - low)

    d = Drawing(WIDTH, bottom + 58, f"Relative error of each method on {data}")
    about = comparison["data"]
    d.text(16, 26, f"Error of each method on {data}", size=17, more=' font-weight="bold"')
    d.text(16, 46, f"{about['n']:,} elements in {about['format']}, condition number "
                   f"{phrases.number(about['condition'])}. Each dot is a method in one format.", size=13, fill=d.faint)
    d.text(16, 64, input_text(about["format"]), size=13, fill=d.faint)
    for i, (format, colour) in enumerate(COLOURS.items()):
        d.circle(LEFT + 72 * i, 84, 5, colour)
        d.text(LEFT + 72 * i + 10, 88.5, format, size=13)

    for exponent in range(low, high + 1):
        at = x(10.0**exponent)
        d.line(at, TOP - 8, at, bottom, "#888" if exponent == 0 else None)
        if exponent % 2 == 0:
            d.text(at, bottom + 18, phrases.power_of_ten(10.0**exponent), "middle", fill=d.faint)
    d.text(x(1), TOP - 14, "no correct digit", "middle", 11, d.faint)
    d.text(WIDTH - RIGHT, bottom + 18, "not finite", "middle", fill=d.faint)
    d.text((LEFT + WIDTH - RIGHT - 70) / 2, bottom + 42, "error relative to the exact sum; further left is better",
           "middle", 13, d.faint)
    for i, (algorithm, row) in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        d.line(LEFT, y, WIDTH - RIGHT, y, "#f0f0f0")
        d.text(LEFT - 14, y + 4.5, algorithm, "end", 13, more=' font-weight="bold"' if algorithm == "exact" else "")
        for format, m in row:
            error = plotted_error(m)
            at = WIDTH - RIGHT if error == math.inf else x(error) if error else LEFT
            d.circle(at, y, 5.5, COLOURS[format], f"{m['method']}: {'not finite' if error == math.inf else error}")
    return on_paper(d.done())


def input_text(format):
    """Which methods round the elements, of this format, before they add."""
    bits, smallest = phrases.FORMAT_BITS[format]
    narrower = [f for f, (precision, least) in phrases.FORMAT_BITS.items() if precision < bits or least > smallest]
    return (f"Every method in {' or '.join(', '.join(narrower).rsplit(', ', 1))} first rounds each element to its format, "
            "except exact, which rounds only its result.")


def plotted_error(method):
    return math.inf if method["value"] is None else method["relative_error"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
