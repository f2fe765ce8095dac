"""Results files: read, checked against the schema, and sorted by question and machine."""

import dataclasses
import json
import pathlib

import jsonschema

SCHEMA_FILE = pathlib.Path(__file__).parents[1] / "experiments/harness/results.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
VERSION = SCHEMA["$defs"]["study"]["properties"]["schema"]["const"]
EXPERIMENTS = SCHEMA["$defs"]["study"]["properties"]["experiment"]["enum"]
FORMATS = SCHEMA["$defs"]["format"]["enum"]
HERE = "this machine"


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
    text = path.read_text()
    for i, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        try:
            yield f"{path}:{i}", json.loads(line)
        except json.JSONDecodeError as error:
            raise Refused(f"{path}:{i}: this is not JSON: {error}") from None


def checker(kind):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})


def check(objects, kind):
    validator = checker(kind)
    for place, o in objects:
        found = o.get("kind") if isinstance(o, dict) else None
        if found != kind:
            raise Refused(f"{place}: expected an object of kind '{kind}', not '{found}'")
        for problem in validator.iter_errors(o):
            raise Refused(f"{place}: {problem.json_path}: {problem.message[:200]}")
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
        raise Refused(f"{path}: is of schema {version}, and this report reads schema {VERSION}: run experiments/run again")
    header = check(objects[:1], "study")[0]
    if header["experiment"] != experiment:
        raise Refused(f"{path}: has the results of {header['experiment']}")
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
        if path.exists():
            found[question] += (read_comparisons(path, machine) if question == "compare"
                                else read_experiment(path, machine, question))
    return found
