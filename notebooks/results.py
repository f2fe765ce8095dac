"""Results files: read, checked against the schema, and sorted by question and machine."""

import dataclasses
import json
import math
import pathlib

import jsonschema

SCHEMA_FILE = pathlib.Path(__file__).parents[1] / "experiments/harness/results.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
VERSION = SCHEMA["$defs"]["study"]["properties"]["schema"]["const"]
EXPERIMENTS = sorted(p.stem for p in SCHEMA_FILE.parents[1].glob("*.cpp") if p.stem != "samesum")
FORMATS = SCHEMA["$defs"]["format"]["enum"]
HERE = "this machine"
REMEDY = "run experiments/run again, or delete the file"


class Refused(Exception):
    """A file that is not what it should be: one line that names it and the remedy."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One file of results."""

    machine: str  # HERE, or what the file's name says: "H200" of h200.error_vs_length.jsonl
    question: str  # one of EXPERIMENTS, or "compare"
    path: pathlib.Path
    header: dict  # its "provenance", and of an experiment also "mode", "seed", "filter"
    rows: list


def lines_of(path):
    """The objects of a file with their places. What follows the last end of a line was not written completely."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}: {REMEDY}") from None
    for i, line in enumerate(lines, 1):
        try:
            yield f"{path}:{i}", json.loads(line.decode(), parse_constant=finite, parse_float=finite)
        except ValueError as error:  # bytes that are not UTF-8 are one too
            raise Refused(f"{path}:{i}: this is not JSON: {error}: {REMEDY}") from None


def finite(text):
    """Python reads NaN, Infinity and 1e999; JSON has no such numbers."""
    x = float(text)
    if not math.isfinite(x):
        raise ValueError(f"{text[:20]} is not finite")
    return x


def checker(kind):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})


def check(objects, kind):
    validator = checker(kind)
    for place, o in objects:
        found = o.get("kind") if isinstance(o, dict) else None
        if found != kind:
            raise Refused(f"{place}: expected an object of kind '{kind}', not {found!r}: {REMEDY}")
        for problem in validator.iter_errors(o):
            raise Refused(f"{place}: {problem.json_path}: {problem.message[:200]}: {REMEDY}")
    return [o for _, o in objects]


def read_comparisons(path, machine):
    rows = check(list(lines_of(path)), "comparison")
    return [Source(machine, "compare", path, {"provenance": rows[0]["provenance"]}, rows)] if rows else []


def read_experiment(path, machine, experiment):
    objects = list(lines_of(path))
    if not objects:
        return []
    version = objects[0][1].get("schema") if isinstance(objects[0][1], dict) else None
    if version != VERSION:
        raise Refused(f"{path}: is of schema {version}, and this report reads schema {VERSION}: {REMEDY}")
    header = check(objects[:1], "study")[0]
    if header["experiment"] != experiment:
        raise Refused(f"{path}: has the results of {header['experiment']}: {REMEDY}")
    rows = check(objects[1:], experiment.split("_")[0])
    return [Source(machine, experiment, path, header, rows)] if rows else []


def read(folder, committed=None):
    """{question: [Source, …]}: the files of a study, and beside them MACHINE.QUESTION.jsonl of other machines."""
    found = {"compare": []} | {e: [] for e in EXPERIMENTS}
    files = [(HERE, q, folder / ("results.jsonl" if q == "compare" else f"{q}.jsonl")) for q in found]
    if committed:
        files += [(machine.upper(), q, path) for q in found for path in sorted(committed.glob(f"*.{q}.jsonl"))
                  for machine in [path.name.split(".")[0]]]
    for machine, question, path in files:
        if path.is_symlink() or path.exists():
            found[question] += (read_comparisons(path, machine) if question == "compare"
                                else read_experiment(path, machine, question))
    return found


def unread(committed):
    """Files that read() passes over, since of their names it knows nothing."""
    return [path.name for path in sorted(committed.iterdir())
            if not path.name.startswith(".") and not any(path.match(f"*.{q}.jsonl") for q in ["compare", *EXPERIMENTS])]
