"""Settings of all tests of the Python package: which copy is tested, and how hypothesis searches."""

from __future__ import annotations

import samesum


def pytest_report_header() -> str:
    return f"samesum: {samesum.__path__[0]}"


try:
    import hypothesis
except ImportError:
    pass
else:
    # The same examples in every run, and no limit on their time, which other processes on the machine would decide.
    hypothesis.settings.register_profile("samesum", deadline=None, derandomize=True, print_blob=True)
    hypothesis.settings.load_profile("samesum")
