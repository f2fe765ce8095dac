"""Runs the command-line tool in a notebook."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[1]


PROGRAM = pathlib.Path(os.environ.get("SAMESUM_TOOL", ROOT / "build/release/bin/samesum"))


def samesum(*arguments, text=None):
    """Prints the output of `samesum ARGUMENTS` with a text, or the numbers of a list, as its input. The program is
    build/release/bin/samesum, or SAMESUM_TOOL if set."""
    if not PROGRAM.exists():
        print(f"{PROGRAM} is not built yet; build it with ./experiments/run")
        return
    text = text if text is None or isinstance(text, str) else "\n".join(map(str, text))
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
