"""Reads results files and checks every line against the schema.

A line that is corrupt, incomplete or a repetition is reported with its position and skipped. A file with another
version of the schema, or with something else, is refused.
"""

import dataclasses
import json
import math
import os
import pathlib
import re
import sys

import comparable
import phrases
import schema
from schema import SCHEMA

ROOT = pathlib.Path(__file__).parents[1]
VERSION = SCHEMA["$defs"]["study"]["properties"]["schema"]["const"]
KINDS = [name for name, about in SCHEMA["$defs"].items() if "const" in about.get("properties", {}).get("kind", {})]
# Sections of the report in their order: questions of results files, and modules with the same names. All but "compare"
# are experiments.
SECTIONS = ["own_data", "error_vs_length", "error_vs_condition", "accumulator_formats", "spread_over_runs", "reveal_order",
            "price_of_promise", "speed_vs_length", "speed_of_reductions", "prefix_sums", "sums_by_key",
            "own_kernels", "tensor_cores", "matrix_products", "python_speed", "data_frames", "databases", "ladder", "consequences",
            "compare"]
EXPERIMENTS = sorted(set(SECTIONS) - {"compare"})
QUESTIONS = ("compare", *EXPERIMENTS)
FORMATS = SCHEMA["$defs"]["format"]["enum"]
HERE = "this machine"
REMEDY = "run experiments/run again, or delete the file"
# The fields that identify a row of an experiment, as far as a row has them; the others are measurements. A comparison
# is measured again when its file changes.
KEY = ["kind", "method", "input_format", "data", "seed", "n", "threads", "caches", "launch", "place", "axis", "case",
       "target_condition", "probability", "steps", "quantity", "setting", "operation", "outer", "inner", "keys", "bins",
       "grid", "given", "instruction", "class", "probe"]
# Results of other programs for an experiment, in separate files.
PARTS = {"speed_of_reductions": ["torch_speed"], "sums_by_key": ["torch_sums_by_key"],
         "prefix_sums": ["torch_prefix_sums"], "reveal_order": ["python_orders"]}
OF_OPERATIONS = [name for name, about in SCHEMA["$defs"].items()
                 if about.get("properties", {}).get("operation", {}).get("$ref") == "#/$defs/other_operation"]
MAX_REPORTED = 5  # corrupt lines of a file that are reported one by one


def is_of_sum(row):
    """Whether a row is on sums; true also for kinds that do not have rows of other operations."""
    return row["kind"] not in OF_OPERATIONS or "operation" not in row


class Refused(Exception):
    """An invalid file. The message has the file and a remedy."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One file of results."""

    machine: str  # HERE, or from the name of the file: "H200" for h200.error_vs_length.jsonl
    question: str  # one of EXPERIMENTS or PARTS, or "compare"
    path: pathlib.Path
    header: dict  # "provenance"; for an experiment also "mode", "seed" and "filter"
    rows: list
    skipped: int = 0  # number of skipped lines
    other_host: str = ""  # " (host 2)" if other results of the machine for the question are of another host
    left_out: int = 0  # number of rows that cannot be compared
    void: list = dataclasses.field(default_factory=list)  # those of them that are of less work than they say

    def of(self, kind, in_graphs=False):
        """The rows of a kind; of kinds that have rows of several operations, those of sums. Times of calls in CUDA graphs only
        if they are wanted too."""
        return [r for r in self.rows if r["kind"] == kind and is_of_sum(r) and (in_graphs or "launch" not in r)]

    def of_operations(self, kind):
        """The rows of a kind that are not of sums."""
        return [r for r in self.rows if r["kind"] == kind and not is_of_sum(r)]

    @property
    def commit(self):
        """The commit in short: "4b95cf0", or "4b95cf0-dirty" if files were changed."""
        commit, dash, dirty = self.header["provenance"]["commit"].partition("-")
        return commit[:7] + dash + dirty

    @property
    def host(self):
        """Name of the machine for results of its CPU: "H200 host" if the machine is named after its GPU."""
        return (f"{self.machine} host" if self.is_named_after_gpu else self.machine) + self.other_host

    @property
    def is_named_after_gpu(self):
        return self.machine.lower() in (self.header.get("provenance", {}).get("gpu") or "").lower()

    @property
    def processor(self):
        """Short name of the CPU, such as "Xeon Platinum 8480+", if the machine is named after its GPU; else "CPU"."""
        if not self.is_named_after_gpu:
            return "CPU"
        name = re.sub(r"\([^)]*\)|@.*|\b([0-9]+-Core|Processor|CPU|Intel|AMD)\b", " ", self.header["provenance"]["cpu"])
        return " ".join(name.split()) or "CPU"

    def place_of(self, method):
        """Name of the machine or, for results of the CPU, of its host."""
        return self.machine + self.other_host if phrases.device(method) == "GPU" else self.host


def cpu_of(provenance):
    """The CPU with what identifies it: "AMD EPYC (family 26, model 2, stepping 1)". Older files have the name alone."""
    facts = [f"{name} {provenance['processor'][name]}" for name in ("family", "model", "stepping")
             if provenance.get("processor", {}).get(name) is not None]
    return provenance["cpu"] + (f" ({', '.join(facts)})" if facts else "")


def lines_of(path):
    """Yields (position, line, whether it is complete); a last line without a newline is incomplete."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}: {REMEDY}") from None
    for i, line in enumerate(lines, 1):
        yield f"{path}:{i}", line, True
    if rest:
        yield f"{path}:{len(lines) + 1}", rest, False


def parse_float(text):
    """Refuses NaN, Infinity and 1e999, which Python accepts and JSON does not have."""
    x = float(text)
    if not math.isfinite(x):
        raise ValueError(f"{text[:20]} is not finite")
    return x


def parse_integer(text):
    """Refuses integers beyond the range of floats, with which the sections cannot calculate."""
    parse_float(text)
    return int(text)


def problem(o, kinds):
    """Why `o` is not an object of one of these kinds; None if it is."""
    kind = o.get("kind") if isinstance(o, dict) else None
    if kind not in kinds:
        return f"expected an object of kind {' or '.join(kinds)}, found {kind!r}"
    return schema.problem(o, kind)


def with_printable_text(o):
    """The object with printable texts: no section, page or message has to escape control characters."""
    if isinstance(o, dict):
        return {key: with_printable_text(value) for key, value in o.items()}
    if isinstance(o, list):
        return [with_printable_text(value) for value in o]
    return phrases.printable(o) if isinstance(o, str) else o


def repeated(o, seen, place):
    """Why this row is a repetition; None if it is the first with its key."""
    if o["kind"] in ("study", "comparison"):
        return None
    first = seen.setdefault(tuple(o.get(name) for name in KEY), place)
    return None if first == place else f"repeats the row of line {first.rpartition(':')[2]}"


def objects(path, kinds, first=None):
    """Yields the object of each line; None for a line that is invalid or a repetition, which is reported.

    If `first` is the kind of the first line, a file with another first line is refused, unless that line is incomplete:
    then the program was stopped early and the file has nothing else.
    """
    reported, seen = 0, {}
    for i, (place, line, complete) in enumerate(lines_of(path)):
        try:
            text = line.decode()
            o = json.loads(text, parse_constant=parse_float, parse_float=parse_float, parse_int=parse_integer)
            version = o.get("schema", VERSION) if isinstance(o, dict) else VERSION
            if version != VERSION:
                raise Refused(f"{path}: is of schema {version}, and this report reads schema {VERSION}: {REMEDY}")
            wrong = problem(o, [first] if first and i == 0 else kinds) or repeated(o, seen, place)
        except (ValueError, RecursionError) as error:  # invalid UTF-8 is a ValueError
            wrong = f"not JSON: {error}"
        else:
            if "\\" in text or not text.isprintable():
                o = with_printable_text(o)
        wrong = wrong if complete else "incomplete line"
        if wrong and first and i == 0 and complete:
            raise Refused(f"{place}: {wrong}: {REMEDY}")
        reported += bool(wrong)
        if wrong and reported <= MAX_REPORTED:
            print(phrases.printable(f"{place}: skipped: {wrong}"), file=sys.stderr)
        yield None if wrong else o
    if reported > MAX_REPORTED:
        print(phrases.printable(f"{path}: skipped: {reported - MAX_REPORTED} more lines: {REMEDY}"), file=sys.stderr)


def read_comparisons(path, machine):
    lines = list(objects(path, ["comparison"]))
    rows = [o for o in lines if o]
    return Source(machine, "compare", path, {"provenance": rows[0]["provenance"]} if rows else {}, rows,
                  lines.count(None))


def read_experiment(path, machine, experiment):
    lines = list(objects(path, [k for k in KINDS if k != "study"], first="study"))
    header = lines[0] if lines and lines[0] else {}
    if header and header["experiment"] != experiment:
        raise Refused(f"{path}: contains results of {header['experiment']}: {REMEDY}")
    return Source(machine, experiment, path, header, [o for o in lines[1:] if o], lines.count(None))


def with_short_names(row):
    """The row with "sum/" removed from its method names. Rows that name the operation keep it."""
    def short(x, name=""):
        if isinstance(x, dict):
            return {key: short(value, key) for key, value in x.items()}
        if isinstance(x, list):
            return [short(value) for value in x]
        return x.removeprefix("sum/") if name in ("method", "against") else x
    return row if row["kind"] in ("reduction", "errors", "repeats") else short(row)


def with_parts(questions):
    """(question, name of a results file) for the questions; some have several files."""
    return [(q, name) for q in questions for name in (q, *PARTS.get(q, []))]


def of_this_machine(folder, questions):
    """(machine, question, name, path) of the files of a study. A broken link is a file, which cannot be read."""
    files = [(HERE, q, name, folder / ("results.jsonl" if q == "compare" else f"{name}.jsonl"))
             for q, name in with_parts(questions)]
    return [(*about, path) for *about, path in files if path.is_symlink() or path.exists()]


def of_other_machines(folder, questions):
    """The same for MACHINE.QUESTION.jsonl files."""
    return [(path.name.split(".")[0].upper(), q, name, path) for q, name in with_parts(questions)
            for path in sorted(folder.glob(f"*.{name}.jsonl"))]


def as_spelled(source):
    """The name of the machine, as its GPU or its processor spells it if one of both has it: "Xeon", not "XEON"."""
    about = source.header.get("provenance", {})
    found = re.search(rf"\b{re.escape(source.machine)}\b", f"{about.get('gpu')} {about.get('cpu')}", re.I)
    return found[0] if found else source.machine


def refuse_without_results(folder):
    """Refuses a folder that has no results of this machine."""
    if of_this_machine(folder, QUESTIONS):
        return
    others = of_other_machines(folder, QUESTIONS)
    if others:
        raise Refused(f"{folder}: these are results of other machines ({others[0][-1].name}); pass the folder as "
                      "--committed")
    raise Refused(f"{folder}: holds no results.jsonl and no EXPERIMENT.jsonl; name the folder of a study")


def read(folder, committed=None, questions=QUESTIONS):
    """{question: [Source, …]} from the files of a study and the MACHINE.QUESTION.jsonl files of other machines, with
    the short names of with_short_names() and only rows that can be compared. Either folder may be None."""
    files = of_this_machine(folder, questions) if folder else []
    files += of_other_machines(committed, questions) if committed else []
    found = {q: [] for q in questions}
    for machine, question, name, path in files:
        source = read_comparisons(path, machine) if question == "compare" else read_experiment(path, machine, name)
        found[question].append(dataclasses.replace(source, machine=as_spelled(source),
                                                   rows=[with_short_names(r) for r in source.rows]))
    return {question: some if question == "compare" else comparable.by_host(some) for question, some in found.items()}


def of(question):
    """The sources with results for one question, from the study of this machine and from other machines.

    The study is in build/study, or in the folder SAMESUM_STUDY.
    """
    study = pathlib.Path(os.environ.get("SAMESUM_STUDY", ROOT / "build/study"))
    return [s for s in read(study, ROOT / "experiments/results", [question])[question] if s.rows]


def unread_files(committed):
    """Names of the files that read() ignores because their names have no question."""
    known = [name for _, name in with_parts(QUESTIONS)]
    return [path.name for path in sorted(committed.iterdir())
            if not path.name.startswith(".") and not any(path.match(f"*.{name}.jsonl") for name in known)]
