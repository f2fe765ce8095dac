"""The command-line tool, for notebooks."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[1]


def samesum(*arguments):
    """Prints what `samesum ARGUMENTS` does. SAMESUM_TOOL names another program than build/release/bin/samesum."""
    program = pathlib.Path(os.environ.get("SAMESUM_TOOL", ROOT / "build/release/bin/samesum"))
    if not program.exists():
        print(f"{program} is not built yet: ./experiments/run builds it")
        return
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
