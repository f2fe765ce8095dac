"""Settings of all tests of the Python package: which copy is tested, and how hypothesis searches."""

from __future__ import annotations

import os
import pathlib

# Triton reads this when it is imported, whatever imports it first.
if not pathlib.Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# JAX compiles each call of each test, which takes longer than to run it. It reads this when it is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import samesum  # noqa: E402


def pytest_report_header() -> str:
    return f"samesum: {samesum.__path__[0]}"


try:
    import hypothesis
except ImportError:
    pass
else:
    # Every run has the same examples. Their time has no limit, since other processes on the machine would decide it.
    hypothesis.settings.register_profile("samesum", deadline=None, derandomize=True, print_blob=True)
    hypothesis.settings.load_profile("samesum")
