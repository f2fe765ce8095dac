"""The installed package: what an import costs, processes and threads, signals, what a wheel carries."""

from __future__ import annotations

import subprocess
import sys


def run(code, *options, **keywords):
    """Runs a program in a new interpreter and returns what it prints."""
    done = subprocess.run([sys.executable, *options, "-c", code], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, **keywords)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_import_loads_no_array_library():
    code = "import samesum, sys; print(*{'numpy', 'torch', 'jax', 'cupy', 'ml_dtypes'} & set(sys.modules))"
    assert run(code).split() == []
