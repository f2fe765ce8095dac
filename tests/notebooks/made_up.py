"""Made-up results as their files hold them, for the tests of sections."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "notebooks"))
import results  # noqa: E402


def source(question, rows):
    """Rows of this machine, each of which fits the schema."""
    for r in rows:
        wrong = results.problem(r, results.KINDS)
        assert not wrong, wrong
    return results.Source(results.HERE, question, pathlib.Path(f"{question}.jsonl"), {}, rows)
