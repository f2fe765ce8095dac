"""Made-up results in the form of results files, and base classes for the tests of sections.

Importing this module puts the folders notebooks and experiments on the import path.
"""

import contextlib
import functools
import importlib
import importlib.util
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "notebooks"), str(ROOT / "experiments")]
import results  # noqa: E402
from schema import DEFINED, properties  # noqa: E402

PROVENANCE = {"cpu": "A Processor", "hardware_threads": 2, "gpu": None, "os": "An OS", "kernel": "A kernel",
              "compiler": "a compiler", "flags": "-O3", "library_version": "0.1.0", "commit": "unknown",
              "date": "2026-11-21T12:00:00Z"}
# Values of properties whose form the schema states only in descriptions.
DESCRIBED = {"tree": ["((0+2)+(1+3))", None], "difference": [None, "the sums of 0 and 1"], "data": ["normal", "ones"]}
METHODS = ["serial/plain/fp32@cpu", "exact/fp32@cpu", "loop/fp32@peer", "atomic/plain/fp16@cuda", "tree/kahan/bf16@cpu"]


# Files are read once for all tests, which share their rows: none changes them.
read_once = functools.cache(results.read)


def committed():
    """The results in experiments/results."""
    return read_once(None, ROOT / "experiments/results")


class SentenceTest(unittest.TestCase):
    """Checks sentences by the names, numbers and verdicts in them; "…" in an expected text stands for any words."""

    def has_sentence(self, sentences, expected):
        # An expected number matches a whole number: 8 matches neither 80 nor 0.8.
        parts = [re.sub(r"^(?=\d)", r"(?<![\\d.,])", re.sub(r"(?<=\d)$", r"(?![.,]?\\d)", re.escape(part)))
                 for part in re.split(" ?… ?", expected)]
        pattern = re.compile(".*?".join(parts))
        return any(map(pattern.search, sentences.splitlines() if isinstance(sentences, str) else sentences))

    def assert_sentences(self, sentences, *expected):
        for each in expected:
            self.assertTrue(self.has_sentence(sentences, each), f"no sentence matches {each!r}: {sentences}")

    def assert_no_sentences(self, sentences, *unexpected):
        for each in unexpected:
            self.assertFalse(self.has_sentence(sentences, each), f"a sentence matches {each!r}: {sentences}")


class SectionTest(SentenceTest):
    """Tests of the section of `question`, made from self.rows of this machine and self.there of another."""

    there = ()

    def check(self, *expected, failures=None, verdict=None):
        """Makes the section and checks that its findings match all of `expected`, and its verdict `verdict`."""
        sources = [source(self.question, self.rows), source(self.question, self.there, "H200")]
        self.s = importlib.import_module(self.question).section(sources)
        self.assert_sentences(self.s.findings, *expected)
        if failures is not None:
            self.assertEqual(self.s.failures, failures)
        if verdict is not None:
            self.assert_sentences([self.s.verdict], verdict)
        return self.s


SUM = re.compile("((serial|tree|pairwise|prefix|canonical[0-9]+|atomic|atomic_element)/[a-z_]+|exact)/")


def script(name):
    """An experiment in Python, such as "torch_speed", as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"{name}_script", ROOT / f"experiments/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(module, question, *arguments):
    """Runs an experiment: (exit code, what was printed, the source that the report reads)"""
    with tempfile.TemporaryDirectory() as folder:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = module.main([*arguments, "--out", folder])
        [source] = results.read(pathlib.Path(folder), questions=[question])[question]
    return code, out.getvalue() + err.getvalue(), source


def stored(x, name=""):
    """Results in the form of files, with full names of samesum's sums."""
    if isinstance(x, dict):
        return {key: stored(value, key) for key, value in x.items()}
    if isinstance(x, list):
        return [stored(value) for value in x]
    return "sum/" + x if name in ("method", "against") and SUM.match(x) else x


def source(question, rows, machine=results.HERE):
    """A source with the given rows of a machine, which are checked against the schema."""
    for r in rows:
        wrong = results.problem(r, results.KINDS)
        assert not wrong, wrong
    return results.Source(machine, question, pathlib.Path(f"{question}.jsonl"), {}, rows)


def result(method, n, ulps, promise, format="fp32"):
    """A result with sum n and an error of `ulps`."""
    bits = {"fp16": 4, "bf16": 4, "fp32": 8, "fp64": 16}[format]
    ulp = 2.0**-23 * n  # n is a power of two
    return {"method": method, "input_format": format, "n": n, "value": n + ulps * ulp,
            "bits": "0x" + "0" * (bits - 1) + ("1" if ulps > 0.5 else "0"),
            "truth": float(n), "truth_bits": "0x" + "0" * bits, "error_ulps": ulps, "relative_error": ulps * 2.0**-23,
            "absolute_error": ulps * ulp, "bound": (2 * ulps + 1) * ulp, "within_bound": True, "condition": 1.0,
            "promise": promise}


def measured(method, promise, ulps):
    """A method of a comparison."""
    return result(method, 4096, ulps, promise) | {"repeats": 3, "distinct_bits": 1, "seconds": 1e-3, "gb_per_s": 4.0}


def comparison(name, methods, n=4096, condition=1.0):
    return {"kind": "comparison", "provenance": PROVENANCE,
            "data": {"name": name, "format": "fp32", "n": n, "nans": 0, "infinities": 0, "magnitudes": 4096.0,
                     "condition": condition},
            "threads": 2, "repeats": 3, "transfer": None, "methods": methods, "failures": [],
            "recommendation": {"method": "exact/fp32@cpu", "reason": "it is exact"}}


def spread(method, promise, axis="runs", distinct=1, vs=0.0, **more):
    """A row of spread_over_runs."""
    return {"kind": "spread", "method": method, "promise": promise, "input_format": "fp32", "data": "normal", "seed": 1,
            "n": 4096, "axis": axis, "runs": 10, "distinct_bits": distinct, "spread_ulps": float(distinct - 1),
            "lowest": 1.0, "highest": 1.0, "vs_max": vs, "broken": False} | more


def took(seconds):
    """The fields of a time that did not vary."""
    return {"seconds": seconds, "low": seconds, "high": seconds}


def at_speed(gb_per_s):
    """The fields of a speed, with the time that such a row has."""
    return {"gb_per_s": gb_per_s} | took(1e-2 / gb_per_s if gb_per_s else 0.0)


def speed(method, gb_per_s, **more):
    """A row of speed_vs_length."""
    return {"kind": "speed", "method": method, "input_format": "fp32", "data": "normal", "seed": 1, "n": 1 << 20,
            "threads": 1, "caches": "hot", "place": "DRAM", "verified": True, "bars": []} | at_speed(gb_per_s) | more


# --- the rows of a small study ------------------------------------------------------------------------------------

FEW = [("exact/fp32@cpu", "order_free", 0.25), ("tree/plain/fp32@cpu", "everywhere", 2),
       ("serial/plain/fp32@cpu", "everywhere", 40), ("atomic/plain/fp32@cpu", "none", 8),
       ("loop/fp32@peer", "run_to_run", 40), ("tbb/fp32@peer", "none", 4)]


def header(experiment):
    return {"kind": "study", "schema": results.VERSION, "experiment": experiment, "question": "?", "mode": "quick",
            "seed": 1, "filter": "", "provenance": PROVENANCE}


def header_of_this_host(experiment):
    """The header of an experiment that ran here: others refuse to measure beside results of another host."""
    import study
    return header(experiment) | {"provenance": study.provenance({})}


def few_errors():
    """Rows of errors; those of the loop grow with n."""
    return [{"kind": "error", "data": data, "seed": 1}
            | result(method, n, ulps * (n // 1024 if "serial" in method else 1), promise)
            for data in ("normal", "ones") for n in (1024, 4096) for method, promise, ulps in FEW]


def of_operation(operation, row):
    """The row of a sum as one of another operation."""
    method = row["method"]
    return row | {"operation": operation, "method": method if method.endswith("@peer") else f"{operation}/{method}"}


def few_spreads():
    return [spread(method, promise, axis) for axis in ("runs", "threads", "alignment") for method, promise, _ in FEW]


def few_speeds(threads=1):
    rows = [speed(method, gb_per_s, n=n, threads=threads, verified=verified)
            for n in (1 << 20, 1 << 26)
            for method, gb_per_s, verified in [("exact/fp32@cpu", 8.0, True), ("tree/plain/fp32@cpu", 10.0, True),
                                               ("loop/fp32@peer", 4.0, None), ("read", 16.0, None)]]
    for r in rows[::4]:
        r["bars"] = [{"against": "loop/fp32@peer", "factor": 1.5, "reached": 2.0, "holds": True}]
    return rows


def few_comparisons():
    return [comparison("made/up.f32", [measured(*m) for m in FEW])]


def few():
    """The rows of the small study by experiment."""
    return {"error_vs_length": few_errors(), "spread_over_runs": few_spreads(), "speed_vs_length": few_speeds()}


def write(path, objects):
    path.write_text("".join(json.dumps(stored(o)) + "\n" for o in objects))


def write_study(folder, experiments, comparisons):
    for experiment, rows in experiments.items():
        write(folder / f"{experiment}.jsonl", [header(experiment)] + rows)
    write(folder / "results.jsonl", comparisons)


# --- rows of every kind, made from the schema --------------------------------------------------------------------

def kinds_of(question):
    """The kinds of rows in the results file of a question."""
    return [kind for kind in results.KINDS if re.search(f"[` ]{question}[` ]", DEFINED[kind]["description"])]


def values(name, about):
    """Valid values: an ordinary one first, then extreme ones."""
    if "$ref" in about:
        about = DEFINED[about["$ref"].split("/")[-1]] | about
    if "const" in about or "enum" in about:
        return about.get("enum") or [about["const"]]
    types = about.get("type", "object")
    types = types if isinstance(types, list) else [types]
    null = [None] if "null" in types else []
    if name == "method" or about.get("$ref") == "#/$defs/method":
        return METHODS
    if name == "provenance":
        return [PROVENANCE]
    if properties(about):
        return [sample(about)] + null
    if types[0] == "string":
        bits = ["0x00000000", "0x00000001"] if "x(" in about.get("pattern", "") else None
        return DESCRIBED.get(name) or bits or ["some"] + null
    if types[0] == "array":
        return [[first] for first in values("", about["items"])[:1]] + [[]] * ("minItems" not in about)
    if types[0] == "boolean":
        return [True, False] + null
    least = about.get("minimum", 0)
    return [max(least, 4) if types[0] == "integer" else max(least, 0.25), least, 32, 1 << 20] + null


def sample(about, **more):
    """An object of the schema with ordinary values, except for `more`; a row of a sum, if it can be one."""
    return {name: values(name, what)[0] for name, what in properties(about).items()
            if what.get("$ref") != "#/$defs/other_operation"} | more


def rows(kind):
    """Yields an ordinary row per method, and rows that differ from it in one property."""
    about = DEFINED[kind]
    if kind == "comparison":
        methods = [m for method in METHODS for m in variations(DEFINED["measurement"], sample(
            DEFINED["measurement"], method=method))]
        yield from (sample(about, methods=[m]) for m in methods)
        yield sample(about, methods=methods)
    for method in METHODS if "method" in properties(about) else [None]:
        yield from variations(about, sample(about, **({"method": method} if method else {})))
    if kind in results.OF_OPERATIONS:
        for operation in ("dot", "softmax"):
            yield from variations(about, sample(about, operation=operation, method=f"{operation}/exact/fp32@cpu"))
            yield from variations(about, sample(about, operation=operation, method="eigen/dot/fp32@peer"))


def variations(about, ordinary):
    yield ordinary
    for name, what in properties(about).items():
        yield from (ordinary | {name: value} for value in values(name, what)[1:] if name != "method")
