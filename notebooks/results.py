"""Results files: read, checked line by line against the schema, and sorted by question and machine.

A line that is corrupt, was not written completely or repeats another is reported with its place and skipped. A file
of another version of the schema, or of something else, is refused.
"""

import dataclasses
import json
import math
import os
import pathlib
import sys

import schema
from schema import SCHEMA

ROOT = pathlib.Path(__file__).parents[1]
VERSION = SCHEMA["$defs"]["study"]["properties"]["schema"]["const"]
KINDS = [name for name, about in SCHEMA["$defs"].items() if "const" in about.get("properties", {}).get("kind", {})]
EXPERIMENTS = sorted(p.stem for p in (ROOT / "experiments").glob("*.cpp") if p.stem != "samesum")
FORMATS = SCHEMA["$defs"]["format"]["enum"]
HERE = "this machine"
REMEDY = "run experiments/run again, or delete the file"
# What tells the rows of an experiment apart, as far as a row has it; all else was measured. A comparison is measured
# again when its file changes.
KEY = ["kind", "method", "input_format", "data", "seed", "n", "threads", "caches", "place", "axis", "case",
       "target_condition", "probability", "steps", "quantity", "setting", "operation", "outer", "inner"]
# What other programs measured for an experiment, in files of their own.
PARTS = {"speed_of_reductions": ["torch_speed"]}
TOLD = 5  # so many corrupt lines of a file are named one by one


class Refused(Exception):
    """A file that is not what it should be: one line that names it and the remedy."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One file of results."""

    machine: str  # HERE, or what the file's name says: "H200" of h200.error_vs_length.jsonl
    question: str  # one of EXPERIMENTS or of PARTS, or "compare"
    path: pathlib.Path
    header: dict  # its "provenance", and of an experiment also "mode", "seed", "filter"
    rows: list  # of several kinds
    skipped: int = 0  # lines

    def of(self, kind):
        return [r for r in self.rows if r["kind"] == kind]


def lines_of(path):
    """The lines of a file with their places; the last one, if it does not end, was not written completely."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}: {REMEDY}") from None
    for i, line in enumerate(lines, 1):
        yield f"{path}:{i}", line, True
    if rest:
        yield f"{path}:{len(lines) + 1}", rest, False


def finite(text):
    """Python reads NaN, Infinity and 1e999; JSON has no such numbers."""
    x = float(text)
    if not math.isfinite(x):
        raise ValueError(f"{text[:20]} is not finite")
    return x


def whole(text):
    """Python's integers may be larger than any float, which the sections could not calculate with."""
    finite(text)
    return int(text)


def problem(o, kinds):
    """Why this is no object of one of these kinds; None where it is."""
    kind = o.get("kind") if isinstance(o, dict) else None
    if kind not in kinds:
        return f"expected an object of kind {' or '.join(kinds)}, not {kind!r}"
    return schema.problem(o, kind)


def repeated(o, seen, place):
    """Why this row is one too many; None where it is the first of its key."""
    if o["kind"] in ("study", "comparison"):
        return None
    first = seen.setdefault(tuple(o.get(name) for name in KEY), place)
    return None if first == place else f"line {first.rpartition(':')[2]} is the same row"


def objects(path, kinds, first=None):
    """What each line holds, and None for one that is no object of these kinds or repeats another, which is reported.
    Without its first line, where that has a kind of its own, nobody knows what a file is; but one that was stopped
    while that was written has nothing else."""
    told, seen = 0, {}
    for i, (place, line, complete) in enumerate(lines_of(path)):
        try:
            o = json.loads(line.decode(), parse_constant=finite, parse_float=finite, parse_int=whole)
            version = o.get("schema", VERSION) if isinstance(o, dict) else VERSION
            if version != VERSION:
                raise Refused(f"{path}: is of schema {version}, and this report reads schema {VERSION}: {REMEDY}")
            wrong = problem(o, [first] if first and i == 0 else kinds) or repeated(o, seen, place)
        except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are the former too
            wrong = f"this is not JSON: {error}"
        wrong = wrong if complete else "was not written completely"
        if wrong and first and i == 0 and complete:
            raise Refused(f"{place}: {wrong}: {REMEDY}")
        told += bool(wrong)
        if wrong and told <= TOLD:
            print(f"{place}: skipped: {wrong}", file=sys.stderr)
        yield None if wrong else o
    if told > TOLD:
        print(f"{path}: skipped: {told - TOLD} more lines: {REMEDY}", file=sys.stderr)


def read_comparisons(path, machine):
    lines = list(objects(path, ["comparison"]))
    rows = [o for o in lines if o]
    return Source(machine, "compare", path, {"provenance": rows[0]["provenance"]} if rows else {}, rows,
                  lines.count(None))


def read_experiment(path, machine, experiment):
    lines = list(objects(path, [k for k in KINDS if k != "study"], first="study"))
    header = lines[0] if lines and lines[0] else {}
    if header and header["experiment"] != experiment:
        raise Refused(f"{path}: has the results of {header['experiment']}: {REMEDY}")
    return Source(machine, experiment, path, header, [o for o in lines[1:] if o], lines.count(None))


def in_short(row):
    """A row about sums with their names as readers see them, without "sum/". Rows of other operations keep theirs."""
    def short(x, name=""):
        if isinstance(x, dict):
            return {key: short(value, key) for key, value in x.items()}
        if isinstance(x, list):
            return [short(value) for value in x]
        return x.removeprefix("sum/") if name in ("method", "against") else x
    return row if row["kind"] == "reduction" else short(row)


def read(folder, committed=None, questions=("compare", *EXPERIMENTS)):
    """{question: [Source, …]}: the files of a study, and beside them MACHINE.QUESTION.jsonl of other machines; names
    of sums in short."""
    named = [(q, name) for q in questions for name in (q, *PARTS.get(q, []))]
    files = [(HERE, q, name, folder / ("results.jsonl" if q == "compare" else f"{name}.jsonl")) for q, name in named]
    if committed:
        files += [(path.name.split(".")[0].upper(), q, name, path) for q, name in named
                  for path in sorted(committed.glob(f"*.{name}.jsonl"))]
    found = {q: [] for q in questions}
    for machine, question, name, path in files:
        if path.is_symlink() or path.exists():
            source = (read_comparisons(path, machine) if question == "compare"
                      else read_experiment(path, machine, name))
            found[question].append(dataclasses.replace(source, rows=[in_short(r) for r in source.rows]))
    return found


def of(question):
    """For notebooks: the results of one question, of this machine's study where there is one, and of others.
    SAMESUM_STUDY names another folder than build/study."""
    study = pathlib.Path(os.environ.get("SAMESUM_STUDY", ROOT / "build/study"))
    return [s for s in read(study, ROOT / "experiments/results", [question])[question] if s.rows]


def unread(committed):
    """Files that read() passes over, since of their names it knows nothing."""
    known = ["compare", *EXPERIMENTS, *(name for parts in PARTS.values() for name in parts)]
    return [path.name for path in sorted(committed.iterdir())
            if not path.name.startswith(".") and not any(path.match(f"*.{name}.jsonl") for name in known)]
