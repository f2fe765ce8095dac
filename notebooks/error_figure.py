"""Draws the measured error of every method on one data set: `error_figure.py RESULTS.jsonl DATA OUT.svg`.

Made with the results of experiments/run, and nothing but Python's standard library:
  python3 notebooks/error_figure.py build/study/results.jsonl moon.npy notebooks/figures/errors.svg
"""

import json
import math
import os
import pathlib
import sys

import words
from compare import title
from figure import Drawing, superscript

COLOURS = {"fp16": "#d55e00", "bf16": "#e69f00", "fp32": "#0072b2", "fp64": "#009e73"}  # Okabe and Ito's
LEFT, RIGHT, TOP, ROW, WIDTH = 190, 40, 92, 26, 860


def main():
    results, data, target = sys.argv[1:]
    comparison = next(c for c in map(json.loads, open(results)) if title(c) == data)
    rows = {}
    for m in comparison["methods"]:
        recipe, format, backend = words.parts(m["method"])
        if backend == "cpu":
            rows.setdefault(recipe, []).append((format, m))
    rows = sorted(rows.items(), key=lambda row: min(m["relative_error"] or math.inf for _, m in row[1]))
    errors = [m["relative_error"] for _, row in rows for _, m in row if m["relative_error"]]
    low, high = math.floor(math.log10(min(errors))), max(1, math.ceil(math.log10(max(errors))))
    decade = (WIDTH - LEFT - RIGHT - 70) / (high - low)  # 70 for the column of what is not finite
    bottom = TOP + ROW * len(rows)

    def x(error):
        return LEFT + decade * (math.log10(error) - low)

    d = Drawing(WIDTH, bottom + 58, f"Relative error of each method on {data}", paper=True)
    about = comparison["data"]
    d.text(16, 26, f"How wrong is each sum of {data}?", size=17, more=' font-weight="bold"')
    d.text(16, 46, f"{about['n']:,} elements in {about['format']}, condition number {about['condition']:.3g}. "
                   "A dot is a method in one format; left is better.", size=13, fill=d.faint)
    for i, (format, colour) in enumerate(COLOURS.items()):
        d.circle(LEFT + 72 * i, 66, 5, colour)
        d.text(LEFT + 72 * i + 10, 70.5, format, size=13)

    for exponent in range(low, high + 1):
        at = x(10.0**exponent)
        d.line(at, TOP - 8, at, bottom, "#888" if exponent == 0 else None)
        if exponent % 2 == 0:
            d.text(at, bottom + 18, "1" if exponent == 0 else f"10{superscript(exponent)}", "middle", fill=d.faint)
    d.text(x(1), TOP - 14, "all digits wrong", "middle", 11, d.faint)
    d.text(WIDTH - RIGHT, bottom + 18, "not finite", "middle", fill=d.faint)
    d.text((LEFT + WIDTH - RIGHT - 70) / 2, bottom + 42, "relative error against the exact sum", "middle", 13, d.faint)
    for i, (recipe, row) in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        d.line(LEFT, y, WIDTH - RIGHT, y, "#f0f0f0")
        d.text(LEFT - 14, y + 4.5, recipe, "end", 13, more=' font-weight="bold"' if recipe == "exact" else "")
        for format, m in row:
            error = m["relative_error"]
            at = WIDTH - RIGHT if m["value"] is None else x(error) if error else LEFT
            d.circle(at, y, 5.5, COLOURS[format], f"{m['method']}: {'not finite' if m['value'] is None else error}")
    temporary = pathlib.Path(target + ".part")
    temporary.write_text(d.done() + "\n")
    os.replace(temporary, target)


if __name__ == "__main__":
    main()
