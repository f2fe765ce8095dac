"""What functions return can be copied and sent to other processes."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402

COPIES: dict[str, Callable[[Any], Any]] = {
    **{f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def results() -> dict[str, Any]:
    x = [0.1, 0.2, 0.3]
    exact = samesum.Exact(x)
    return {
        "Method": samesum.estimate(x).method,
        "Estimate": samesum.estimate(x),
        "Choice": samesum.choose(100, ulps=1),
        "LinearRegression": samesum.linear_regression(x, x),
        "Exact": exact,
        "Partial": samesum.Partial("moments/exact/fp64"),
    }


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", results())
def test_a_copy_equals_its_original(name: str, how: str) -> None:
    original = results()[name]
    copied = COPIES[how](original)
    assert type(copied) is type(original) and copied == original


@pytest.mark.parametrize("how", COPIES)
def test_copies_of_methods_are_the_methods(how: str) -> None:
    for method in samesum.methods():
        assert COPIES[how](method) is method


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_comparison_has_its_rows(how: str) -> None:
    original = samesum.compare([0.1, 0.2])
    copied = COPIES[how](original)
    assert [*copied] == [*original] and repr(copied) == repr(original)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_a_copy_of_groups_reduces_as_they_do(library: str, how: str) -> None:
    package = pytest.importorskip(library)
    columns = {"k": ["b", "a", "b"], "v": [1e16, 5.0, 1.0]}
    if library == "numpy":
        groups, values = samesum.groupby(columns["k"]), columns["v"]
    else:
        frame = (package.table if library == "pyarrow" else package.DataFrame)(columns)
        groups, values = samesum.groupby(frame, "k"), None
    groups.mean(values)
    copied = COPIES[how](groups)
    assert len(copied) == 2 and str(copied.groups) == str(groups.groups)
    for name in ("sum", "var", "max", "count", "first"):
        assert str(getattr(copied, name)(values)) == str(getattr(groups, name)(values))
