"""The schema of results files, and the check of objects against it.

Validation with jsonschema, import included, was most of the time of a report.
Functions compiled from the schema therefore check first: they accept only valid objects, and everything that they
reject goes to jsonschema, which decides. Where it is not installed, everything that they reject is invalid.
"""

import functools
import json
import pathlib
import re

FILE = pathlib.Path(__file__).parents[1] / "experiments/harness/results.schema.json"
SCHEMA = json.loads(FILE.read_text())
DEFINED = SCHEMA["$defs"]
TYPES = {"string": [str], "integer": [int], "number": [int, float], "boolean": [bool], "null": [type(None)],
         "array": [list], "object": [dict]}
KNOWN = {"description", "$ref", "type", "const", "enum", "pattern", "minimum", "items", "minItems", "properties",
         "required", "additionalProperties", "unevaluatedProperties"}


def referenced(about):
    return about["$ref"].rpartition("/")[2]


def properties(about):
    """The properties of an object, including those of its reference."""
    return (properties(DEFINED[referenced(about)]) if "$ref" in about else {}) | about.get("properties", {})


@functools.cache
def acceptor_of(name):
    """The acceptor of a definition in the schema."""
    return acceptor(DEFINED[name])


def acceptor(about):
    """A function that is true only for valid values. It may reject valid ones, such as 4.0 for an integer."""
    if not KNOWN.issuperset(about) or about.get("additionalProperties") or about.get("unevaluatedProperties"):
        return lambda value: False
    tests = [acceptor_of(referenced(about))] if "$ref" in about else []
    if "type" in about:
        named = about["type"] if isinstance(about["type"], list) else [about["type"]]
        types = tuple(t for name in named for t in TYPES[name])
        tests.append(lambda value: type(value) in types)
    if "const" in about or "enum" in about:
        values = about.get("enum", [about.get("const")])
        tests.append(lambda value: value in values)
    if "pattern" in about:
        pattern = re.compile(about["pattern"])
        tests.append(lambda value: type(value) is str and pattern.search(value))
    if "minimum" in about:
        minimum = about["minimum"]
        tests.append(lambda value: value is None or type(value) in (int, float) and value >= minimum)
    if "items" in about:
        item, least = acceptor(about["items"]), about.get("minItems", 0)
        tests.append(lambda value: type(value) is list and len(value) >= least and all(map(item, value)))
    if "properties" in about or "required" in about:
        tests.append(object_acceptor(about))
    return functools.reduce(both, tests or [lambda value: True])


def both(one, other):
    """Accepts what both acceptors accept. A generator over all tests would take as long as the tests themselves."""
    return lambda value: one(value) and other(value)


def object_acceptor(about):
    each = [(name, acceptor(what)) for name, what in about.get("properties", {}).items()]
    required, names = set(about.get("required", [])), set(properties(about))
    closed = "additionalProperties" in about or "unevaluatedProperties" in about

    def accepts(value):
        # What is no object is for "type" to reject.
        if type(value) is not dict:
            return True
        if not required <= value.keys() or closed and not value.keys() <= names:
            return False
        for name, test in each:
            if name in value and not test(value[name]):
                return False
        return True
    return accepts


@functools.cache
def validator(kind):
    import jsonschema
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": DEFINED})


def problem(o, kind):
    """Why `o` is not an object of this kind; None if it is."""
    if acceptor_of(kind)(o):
        return None
    try:
        first = next(validator(kind).iter_errors(o), None)
    except ImportError:
        return f"not valid as {kind} (the package jsonschema, which says why, is not installed)"
    return first and f"{first.json_path}: {first.message[:200]}"
