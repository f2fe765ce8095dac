"""The reductions, with the names and keywords of the array API standard."""

from __future__ import annotations

from typing import Any, Sequence

from ._calls import Method, reduce

Axis = int | Sequence[int] | None


def sum(
    x: Any, /, axis: Axis = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False,
    method: str | Method | None = None, threads: int = 0, check: bool = False,
) -> Any:  # fmt: skip
    """Returns the sum of the elements over `axis`, by default correctly rounded."""
    return reduce("sum", x, axis=axis, dtype=dtype, out=out, keepdims=keepdims, method=method, threads=threads, check=check)
