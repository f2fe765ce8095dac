"""Checks that committed results were measured at commits of this history and on unchanged trees:
committed_results.py ROOT

Prints each violation with its file, and exits with 1 if there is one; 77 where the history is not there: in archives,
without git, and in shallow clones.
"""

import pathlib
import re
import subprocess
import sys

# Files that violate the rule until they are measured again, and why.
EXCEPTIONS = {}


class NoHistory(Exception):
    pass


def git(root, *arguments):
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.split()
    except (OSError, subprocess.CalledProcessError):
        raise NoHistory("git is missing or fails") from None


def history(root):
    """The commits from which HEAD descends, and HEAD."""
    if not (root / ".git").exists():
        raise NoHistory("this is no clone")
    if git(root, "rev-parse", "--is-shallow-repository") == ["true"]:
        raise NoHistory("this clone is shallow")
    return set(git(root, "rev-list", "HEAD"))


def violations(root, exceptions):
    """Yields a line for each violation."""
    ancestors = history(root)
    for path in [*sorted((root / "experiments/results").glob("*.jsonl")), root / "experiments/shipped_costs.jsonl"]:
        commits = set(re.findall(r'"commit":"([^"]*)"', path.read_text(encoding="utf-8")))
        wrong = sorted(commits - ancestors)
        if wrong and path.name not in exceptions:
            why = "is that of a changed tree" if wrong[0].endswith("-dirty") else "is not in this history"
            yield f"{path.name}: its commit {wrong[0]} {why}; measure it again with experiments/run --publish"
        if not commits:
            yield f"{path.name}: names no commit"
        if not wrong and path.name in exceptions:
            yield f"{path.name}: is no exception any more; remove it from EXCEPTIONS"


def main(root):
    try:
        found = list(violations(root, EXCEPTIONS))
    except NoHistory as why:
        print(f"committed results: not checked: {why}")
        return 77
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
