"""The arguments of public functions: checked, and under the names of other libraries."""

from __future__ import annotations

import inspect
import operator
from typing import Any

from .. import _core
from .._elements.library import library_of


class Call(metaclass=_core.CallMaker):
    """A call of a public function: `Call(operation, x, …)` is a `_core.Call`, which has the fields and their order.

    torch.compile cannot trace how `_core` makes it; it traces `__init__` instead.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        for name, value in {**_core.call_fields, **dict(zip(_core.call_fields, given)), **named}.items():
            setattr(self, name, value)


_OF_THE_LAST_AXIS = ("softmax", "log_softmax", "dot")
"""Operations of functions whose axis is the last one unless the caller gives another."""


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


def names_of_torch(call: Call) -> None:
    """Gives axis and keepdims what the caller has named as PyTorch does, dim and keepdim."""
    axis, dim, keepdim = call.axis, call.dim, call.keepdim
    if dim is None and keepdim is None:
        return
    if library_of(call.x).name != "torch":
        raise TypeError(
            f"samesum: x is a {type(call.x).__name__}, and dim and keepdim are for PyTorch's tensors; pass axis and "
            "keepdims"
        )
    if dim is not None and axis != (-1 if call.operation in _OF_THE_LAST_AXIS else None):
        raise ValueError(f"samesum: axis is {axis} and dim {dim}; they are two names of one argument, so pass one")
    if keepdim is not None and call.keepdims:
        raise ValueError("samesum: keepdims and keepdim are two names of one argument; pass one")
    if dim is not None:
        call.axis = None if isinstance(dim, (tuple, list)) and not dim else dim
    call.keepdims = bool(keepdim) or call.keepdims
    call.dim = call.keepdim = None


def arguments_by_name(name: str, signature: inspect.Signature, arguments: Any, keywords: Any) -> dict[str, Any]:
    """Returns the arguments of a call by their names. Raises TypeError, as Python does, if they do not fit."""
    try:
        given = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    given.apply_defaults()
    return given.arguments
