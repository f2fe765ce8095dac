"""Runs the command-line tool in a notebook."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[1]


def samesum(*arguments, text=None):
    """Prints the output of `samesum ARGUMENTS` with a text as its input. The program is build/release/bin/samesum, or
    SAMESUM_TOOL if set."""
    program = pathlib.Path(os.environ.get("SAMESUM_TOOL", ROOT / "build/release/bin/samesum"))
    if not program.exists():
        print(f"{program} is not built yet; build it with ./experiments/run")
        return
    done = subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, text=True,
                          check=False)
    print(done.stdout + done.stderr, end="")
