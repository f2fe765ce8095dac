"""Lists the committed results that are older than the code that they time: staleness.py

A check before a release: results that it lists should be measured again (experiments/run --publish). Needs a clone with
its history. Exit codes: 0; 1 if a file is listed; 2 without such a clone.
"""

import ast
import functools
import json
import re
import subprocess
import sys

import results
from results import ROOT

KERNELS = tuple(f"lib/samesum/{folder}" for folder in (
    "accumulator", "backend", "format", "operation", "order", "window"))
ON_A_GPU = "lib/samesum/backend/cuda"
PYTHON = ("lib/python/samesum", "lib/python/src")
# The code that each experiment times. What is not here times nothing.
TIMED = {name: KERNELS for name in ("compare", "own_data", "speed_vs_length", "speed_of_reductions", "price_of_promise",
                                    "prefix_sums", "sums_by_key")}
TIMED |= {name: KERNELS + PYTHON for name in ("python_speed", "data_frames")}
TIMED |= {"own_kernels": (*KERNELS, "lib/python/samesum/numba.py", "lib/python/samesum/triton.py")}
TIMED |= {"tensor_cores": (*KERNELS, "experiments/tensor_cores")}
TIMED |= {"databases": (*KERNELS, "lib/sql/duckdb.cpp", "lib/sql/functions.hpp")}
TIMED |= {name: ("experiments/torch_speed.py",) for name in ("torch_speed", "torch_sums_by_key", "torch_prefix_sums")}
TIMED |= {"ladder": (*KERNELS, "experiments/ladder"), "consequences": (*KERNELS, "experiments/harness/downstream")}


LITERAL_OR_COMMENT = re.compile(
    r'''(?P<literal>R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')|//[^\n]*|/\*.*?\*/''', re.DOTALL)


def git(*arguments):
    """What git prints on the clone; None outside of a clone, without git, and if git fails."""
    if not (ROOT / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def without_comments(path, text):
    """The text of a source file without what cannot change a time: comments, docstrings and the widths of spaces."""
    if path.endswith(".py"):
        try:
            tree = ast.parse(text)
        except SyntaxError:  # of a newer Python
            return text
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
                del node.body[0]
        return ast.dump(tree)
    if path.endswith((".cpp", ".hpp", ".cu", ".cuh", ".h")):
        text = LITERAL_OR_COMMENT.sub(lambda found: found["literal"] or " ", text)
        return re.sub(r"\s+", " ", text).strip()
    return text


@functools.cache
def changed_since(commit, paths):
    """A file below the paths that differs in more than comments from that of the commit; None if there is none, or if git
    cannot tell."""
    differing = git("diff", "--no-renames", "--name-only", commit, "HEAD", "--", *paths, ":(exclude)*.md") or ""
    for path in differing.splitlines():
        then, now = (git("show", f"{at}:{path}") for at in (commit, "HEAD"))  # None if it is not in that commit
        if then is None or now is None or without_comments(path, then) != without_comments(path, now):
            return path
    return None


def stale(source):
    """A text on what the results time and what has changed since; None if nothing has, if the results time nothing, or
    if git cannot tell."""
    paths = TIMED.get(source.question, ())
    if not paths or not source.header:
        return None
    about = source.header["provenance"]
    if about["gpu"] is None and paths[0] == KERNELS[0]:
        paths += (f":(exclude){ON_A_GPU}",)
    changed = changed_since(about["commit"].partition("-")[0], paths)
    return f"measured at {source.commit}; code that it times has changed since, for example {changed}" if changed else None


def header_of(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(file.readline())


def main():
    if git("rev-parse", "--is-shallow-repository") != "false":
        print("staleness.py: needs git and a clone with its history", file=sys.stderr)
        return 2
    found = 0
    for machine, _, name, path in results.of_other_machines(ROOT / "experiments/results", results.QUESTIONS):
        why = stale(results.Source(machine, name, path, header_of(path), []))
        found += bool(why)
        if why:
            print(f"{path.name}: {why}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
