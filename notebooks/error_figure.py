"""Draws the measured error of every method on one data set: `error_figure.py RESULTS.jsonl DATA OUT.svg`.

Made with the results of experiments/run, and nothing but Python's standard library:
  python3 notebooks/error_figure.py build/study/results.jsonl moon.npy notebooks/figures/errors.svg
"""

import json
import math
import os
import pathlib
import sys

COLOURS = {"fp16": "#d55e00", "bf16": "#e69f00", "fp32": "#0072b2", "fp64": "#009e73"}  # Okabe and Ito's
LEFT, RIGHT, TOP, ROW, WIDTH = 190, 40, 92, 26, 860


def main():
    results, data, target = sys.argv[1:]
    comparison = next(c for c in map(json.loads, open(results)) if pathlib.PurePath(c["data"]["name"]).name == data)
    rows = {}
    for m in comparison["methods"]:
        path, backend = m["method"].split("@")
        recipe, format = path.rsplit("/", 1)
        if backend == "cpu":
            rows.setdefault(recipe, []).append((format, m))
    rows = sorted(rows.items(), key=lambda row: min(m["relative_error"] or math.inf for _, m in row[1]))
    errors = [m["relative_error"] for _, row in rows for _, m in row if m["relative_error"]]
    low, high = math.floor(math.log10(min(errors))), max(1, math.ceil(math.log10(max(errors))))
    decade = (WIDTH - LEFT - RIGHT - 70) / (high - low)  # 70 for the column of what is not finite
    height = TOP + ROW * len(rows) + 58

    def x(error):
        return LEFT + decade * (math.log10(error) - low)

    out = []

    def text(x, y, words, anchor="start", size=13, fill="#222", more=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"{more}>{words}</text>')

    out.append(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
               'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">')
    out.append(f"<title>Relative error of each method on {data}</title>")
    out.append(f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>')
    d = comparison["data"]
    text(16, 26, f"How wrong is each sum of {data}?", size=17, more=' font-weight="bold"')
    text(16, 46, f"{d['n']:,} elements in {d['format']}, condition number {d['condition']:.3g}. "
                 "A dot is a method in one format; left is better.", fill="#555")
    legend = LEFT
    for format, colour in COLOURS.items():
        out.append(f'<circle cx="{legend}" cy="66" r="5" fill="{colour}"/>')
        text(legend + 10, 70.5, format)
        legend += 72

    bottom = TOP + ROW * len(rows)
    for exponent in range(low, high + 1):
        at = x(10.0**exponent)
        whole = exponent == 0
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{bottom}" stroke="{"#888" if whole else "#e4e4e4"}"/>')
        if exponent % 2 == 0:
            text(at, bottom + 18, "1" if whole else f'10<tspan dy="-5" font-size="9">{exponent}</tspan>', "middle", 12, "#555")
    text(x(1), TOP - 14, "all digits wrong", "middle", 11, "#555")
    text(WIDTH - RIGHT, bottom + 18, "not finite", "middle", 12, "#555")
    text((LEFT + WIDTH - RIGHT - 70) / 2, bottom + 42, "relative error against the exact sum", "middle", 13, "#555")
    for i, (recipe, row) in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        out.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#f0f0f0"/>')
        text(LEFT - 14, y + 4.5, recipe, "end", more=' font-weight="bold"' if recipe == "exact" else "")
        for format, m in row:
            error = m["relative_error"]
            at = WIDTH - RIGHT if m["value"] is None else x(error) if error else LEFT
            out.append(f'<circle cx="{at:.1f}" cy="{y}" r="5.5" fill="{COLOURS[format]}" fill-opacity="0.85">'
                       f"<title>{m['method']}: {'not finite' if m['value'] is None else error}</title></circle>")
    out.append("</svg>")
    temporary = pathlib.Path(target + ".part")
    temporary.write_text("\n".join(out) + "\n")
    os.replace(temporary, target)


main()
