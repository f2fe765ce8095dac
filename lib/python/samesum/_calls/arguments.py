"""The arguments of public functions: checked, and under the names of other libraries."""

from __future__ import annotations

import inspect
import operator
from typing import Any, NamedTuple

from .._elements.library import library_of
from .methods import Method


def whole_number(name: str, value: Any, meaning: str = "") -> int:
    """Returns an argument as an integer. `meaning` ends the message of the TypeError if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"samesum: {name} is {value!r}; use a whole number{meaning}") from None


def check_threads(threads: Any) -> int:
    """Returns the number of threads for a call."""
    count = whole_number("threads", threads)
    if count < 0:
        raise ValueError(f"samesum: threads is {threads!r}; use 0 for one per processor, or a positive number")
    return min(count, 1 << 20)


def check_grid(grid: Any) -> int | None:
    """Returns the exponent of a grid for a call."""
    if grid is None:
        return None
    return max(-(1 << 30), min(whole_number("grid", grid, ", the exponent of 2"), 1 << 30))  # beyond the limits anyway


def correction_of(correction: float | None, ddof: float | None) -> float:
    """Returns what is subtracted from n in the divisor of a variance, from its two names."""
    if correction is not None and ddof is not None and correction != ddof:
        raise ValueError(f"samesum: correction is {correction} and ddof {ddof}; they are two names of one argument")
    return float(correction if correction is not None else ddof if ddof is not None else 0)


def names_of_torch(
    x: Any, axis: Any, dim: Any, keepdims: bool = False, keepdim: bool | None = None, default: int | None = None
) -> tuple[Any, bool]:
    """Returns axis and keepdims, which may have their names in PyTorch, dim and keepdim. `default` is that of axis."""
    if dim is None and keepdim is None:
        return axis, keepdims
    if library_of(x).name != "torch":
        raise TypeError(
            f"samesum: x is a {type(x).__name__}, and dim and keepdim are for PyTorch's tensors; pass axis and keepdims"
        )
    if dim is not None and axis != default:
        raise ValueError(f"samesum: axis is {axis} and dim {dim}; they are two names of one argument, so pass one")
    if keepdim is not None and keepdims:
        raise ValueError("samesum: keepdims and keepdim are two names of one argument; pass one")
    if dim is not None:
        axis = None if isinstance(dim, (tuple, list)) and not dim else dim
    return axis, bool(keepdim) or keepdims


def arguments_by_name(name: str, signature: inspect.Signature, arguments: Any, keywords: Any) -> dict[str, Any]:
    """Returns the arguments of a call by their names. Raises TypeError, as Python does, if they do not fit."""
    try:
        given = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    given.apply_defaults()
    return given.arguments


def refuse_traced(operation: str, x: Any) -> None:
    """Raises NotImplementedError if x is traced, by an operation with a result per element."""
    library = library_of(x)
    if library.is_traced(x):
        library.require_strided(x, "x")
        raise NotImplementedError(
            f"samesum: {operation} has no gradient, and is not traced or compiled; pass x.detach(), or call it outside "
            "of transformations"
        )


class Options(NamedTuple):
    """The options of a reduction: keywords of the public functions, and what these add."""

    axis: Any = None
    dtype: Any = None
    keepdims: bool = False
    out: Any = None
    method: str | Method | None = None
    threads: int = 0
    ddof: float = 0
    grid: Any = None
    check: bool = False
    where: Any = None
    skipna: bool = False
    as_numpy: bool = False
    """Whether results for no elements are those of NumPy's nan-functions: extrema NaN, and indices errors."""
    second: str = "y"
    """The name under which the caller knows y."""
    finish: Any = None
    """finish(namespace, result) computes further from the results, in the caller's array library."""
