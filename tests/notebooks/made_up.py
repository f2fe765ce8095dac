"""Made-up results as their files hold them, for the tests of sections. Who imports this finds the notebooks' modules."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "notebooks"))
import results  # noqa: E402

DEFINED = results.SCHEMA["$defs"]
# What the schema tells in words only, by property.
WORDS = {"tree": ["((0+2)+(1+3))", None], "difference": [None, "the sums of 0 and 1"], "data": ["normal", "ones"],
         "library_version": ["0.1.0"], "commit": ["unknown"], "date": ["2026-11-21T12:00:00Z"]}
METHODS = ["serial/plain/fp32@cpu", "exact/fp32@cpu", "loop/fp32@peer", "atomic/plain/fp16@cuda", "tree/kahan/bf16@cpu"]


def source(question, rows, machine=results.HERE):
    """Rows of a machine, each of which fits the schema."""
    for r in rows:
        wrong = results.problem(r, results.KINDS)
        assert not wrong, wrong
    return results.Source(machine, question, pathlib.Path(f"{question}.jsonl"), {}, rows)


# --- rows of every kind, made from the schema --------------------------------------------------------------------

def kinds_of(question):
    """The kinds of rows that the file of a question has."""
    return [kind for kind in results.KINDS if re.search(f"[` ]{question}[` ]", DEFINED[kind]["description"])]


def properties(about):
    """Of an object, those of what it refers to included."""
    return (properties(DEFINED[about["$ref"].split("/")[-1]]) if "$ref" in about else {}) | about.get("properties", {})


def values(name, about):
    """Some that fit: an ordinary one, then those that are at an end."""
    if "$ref" in about:
        about = DEFINED[about["$ref"].split("/")[-1]] | about
    if "const" in about or "enum" in about:
        return about.get("enum") or [about["const"]]
    types = about.get("type", "object")
    types = types if isinstance(types, list) else [types]
    null = [None] if "null" in types else []
    if name == "method":
        return METHODS
    if properties(about):
        return [sample(about)] + null
    if types[0] == "string":
        return WORDS.get(name) or (["0x00000000", "0x00000001"] if "x(" in about.get("pattern", "") else ["some"] + null)
    if types[0] == "array":
        return [[first] for first in values("", about["items"])[:1]] + [[]] * ("minItems" not in about)
    if types[0] == "boolean":
        return [True, False] + null
    least = about.get("minimum", 0)
    return [max(least, 4) if types[0] == "integer" else max(least, 0.25), least, 32, 1 << 20] + null


def sample(about, **more):
    """An object of the schema in which all is ordinary but what is asked for."""
    return {name: values(name, what)[0] for name, what in properties(about).items()} | more


def rows(kind):
    """An ordinary row of each method, and rows that differ from it in one property."""
    about = DEFINED[kind]
    if kind == "comparison":
        methods = [m for method in METHODS for m in variations(DEFINED["measurement"], sample(
            DEFINED["measurement"], method=method))]
        yield from (sample(about, methods=[m]) for m in methods)
        yield sample(about, methods=methods)
    for method in METHODS if kind != "comparison" else [None]:
        yield from variations(about, sample(about, **({"method": method} if method else {})))


def variations(about, ordinary):
    yield ordinary
    for name, what in properties(about).items():
        yield from (ordinary | {name: value} for value in values(name, what)[1:] if name != "method")
