"""Turns results into a report: `report.py RESULTS.jsonl REPORT.md`, and prints what was found.

Exits with 1 where a result does not fit the schema, or where a method broke its promise or its bound.
"""

import inspect
import json
import os
import pathlib
import statistics
import sys

import jsonschema

from datasets import DATASETS

SCHEMA = json.loads(pathlib.Path(__file__).with_name("harness").joinpath("results.schema.json").read_text())
FORMATS = SCHEMA["$defs"]["format"]["enum"]
ABOUT = {name: inspect.getdoc(make) for name, make, *_ in DATASETS}


def parts(name):
    """'tree/kahan/bf16@cpu' -> ('tree/kahan', 'bf16', 'cpu')"""
    path, backend = name.split("@")
    recipe, format = path.rsplit("/", 1)
    return recipe, format, backend


def title(comparison):
    return pathlib.PurePath(comparison["data"]["name"]).name


def number(x, digits=2):
    return "-" if x is None else f"{x:.{digits}g}"


def apart(x, y):
    """Both numbers, with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(6, 17) if f"{x:.{d}g}" != f"{y:.{d}g}"), 17)
    return f"{x:.{digits}g}", f"{y:.{digits}g}"


def error(method):
    return number(method["relative_error"]) if method["value"] is not None else "not finite"


def plural(n, what):
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def own(comparison, recipe):
    """The method of that order and accumulator in the data's own format, if it was measured."""
    wanted = (recipe, comparison["data"]["format"], "cpu")
    return next((m for m in comparison["methods"] if parts(m["method"]) == wanted), None)


def about(c):
    condition = c["data"]["condition"]
    return f"{plural(c['data']['n'], 'element')} in {c['data']['format']}, condition number {number(condition, 3)}"


def findings(comparisons):
    methods = [(c, m) for c in comparisons for m in c["methods"]]
    kept = [m for _, m in methods if m["promise"] in ("everywhere", "order_free")]
    changed = [m for m in kept if m["distinct_bits"] > 1]
    loose = [m for _, m in methods if m["promise"] == "none"]
    unbounded = sum(m["bound"] is None for _, m in methods)
    beyond = [m for _, m in methods if not m["within_bound"]]
    repeats = comparisons[0]["repeats"]
    yield (f"Of {plural(len(kept), 'result')} of methods that promise the same bits everywhere, "
           f"{'all' if not changed else len(kept) - len(changed)} gave one bit pattern in {plural(repeats, 'run')}.")
    if loose:
        several = [m["distinct_bits"] for m in loose if m["distinct_bits"] > 1]
        yield (f"Of {len(loose)} of methods that promise nothing (threads add as they arrive), {len(several)} gave more "
               f"than one" + (f", up to {max(several)} in {repeats} runs." if several else "."))
    yield (f"{'Every' if not beyond else len(methods) - len(beyond)} error is within its rigorous bound; for {unbounded} "
           f"of the {len(methods)} results theory gives no finite bound.")
    exact = [m for _, m in methods if parts(m["method"])[0] == "exact"]
    if exact:
        right = sum(m["bits"] == m["truth_bits"] for m in exact)
        others = [m for _, m in methods if parts(m["method"])[0] != "exact"]
        yield (f"exact was the correctly rounded sum in {right} of {len(exact)} results, the other methods in "
               f"{sum(m['bits'] == m['truth_bits'] for m in others)} of {len(others)}.")
    for c in comparisons:
        loop, best = own(c, "serial/plain"), own(c, "exact")
        if not loop or not best:
            continue
        if loop["value"] is None:
            wrong = "gives no finite number"
        elif loop["bits"] == loop["truth_bits"]:
            wrong = "is right to the last bit"
        else:
            wrong = "gives {} for {}".format(*apart(loop["value"], loop["truth"]))
            if loop["relative_error"] is not None:
                wrong += f", a relative error of {number(loop['relative_error'])}"
        yield f"{title(c)} ({about(c)}): a plain loop in {c['data']['format']} {wrong}."
    ratios = [best["seconds"] / fast["seconds"] for c in comparisons
              if (best := own(c, "exact")) and (fast := own(c, "pairwise/plain"))]
    if ratios:
        yield (f"The exact sum took {min(ratios):.1f} to {max(ratios):.1f} times as long as pairwise/plain in the same "
               f"format (median {statistics.median(ratios):.1f}).")


def table(c):
    rows = {}
    for m in c["methods"]:
        recipe, format, backend = parts(m["method"])
        rows.setdefault((recipe, backend), {})[format] = m
    formats = [f for f in FORMATS if any(f in row for row in rows.values())]
    several = len({backend for _, backend in rows}) > 1
    mine = c["data"]["format"]
    yield f"| method | {' | '.join(formats)} | bit patterns | GB/s in {mine} |"
    yield "| --- |" + " ---: |" * (len(formats) + 2)
    for (recipe, backend), row in rows.items():
        cells = [error(row[f]) if f in row else "" for f in formats]
        patterns = [m["distinct_bits"] for m in row.values()]
        speed = number(row[mine]["gb_per_s"]) if mine in row else ""
        low, high = min(patterns), max(patterns)
        yield (f"| {recipe}{'@' + backend if several else ''} | {' | '.join(cells)} | "
               f"{low if low == high else f'{low} to {high}'} | {speed} |")


def report(comparisons):
    p = comparisons[0]["provenance"]
    yield "# How wrong are sums?\n"
    yield (f"Every method was asked for the sum of {plural(len(comparisons), 'data set')}, "
           f"{comparisons[0]['repeats']} times each, with {comparisons[0]['threads']} threads.\n")
    yield "## What was found\n"
    yield from (f"- {sentence}" for sentence in findings(comparisons))
    yield "\n## On what\n"
    yield "| | |\n| --- | --- |"
    yield from (f"| {key.replace('_', ' ')} | {value} |" for key, value in p.items())
    yield "\n## Data set by data set\n"
    yield ("Errors are relative to the exact sum of the elements as given. Columns are the format in which a method "
           "adds and answers;\nwhere that is narrower than the data, elements are rounded to it first. Rows are sorted "
           "by their best error. Times are medians.")
    for c in comparisons:
        yield f"\n### {title(c)}\n"
        if title(c) in ABOUT:
            yield ABOUT[title(c)] + "\n"
        yield f"{about(c)[:1].upper()}{about(c)[1:]}.\n"
        yield from table(c)
        yield f"\nUse `{c['recommendation']['method']}`: {c['recommendation']['reason']}"
        yield from (f"\n**Failed:** {failure}" for failure in c["failures"])


def main():
    results, target = map(pathlib.Path, sys.argv[1:])
    validator = jsonschema.Draft202012Validator(SCHEMA)
    comparisons = [json.loads(line) for line in results.read_text().splitlines()]
    for i, comparison in enumerate(comparisons, 1):
        for problem in validator.iter_errors(comparison):
            sys.exit(f"{results}:{i}: {problem.json_path}: {problem.message}")
    temporary = target.with_name(target.name + ".part")
    temporary.write_text("\n".join(report(comparisons)) + "\n")
    os.replace(temporary, target)
    for sentence in findings(comparisons):
        print(f"- {sentence}")
    failures = [f"{title(c)}: {failure}" for c in comparisons for failure in c["failures"]]
    if failures:
        sys.exit("\n".join(["Promises were broken:"] + failures))


if __name__ == "__main__":
    main()
