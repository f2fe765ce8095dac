"""Sums and extrema of integers: exact in 64 bits.

Integers in host memory are reduced where they are; those on a GPU by the caller's array library, as are integers of
Python. Integer addition is associative, so the order of an array library cannot change the result.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from .. import _core
from .._elements.formats import UNSIGNED, dtype_name, no_integers
from .._elements.in_floats import high_and_low
from .._elements.layout import axes_last, reduced_shape
from .arguments import Call

EXACT_OPERATIONS = ("sum", "min", "max", "argmin", "argmax")
"""Operations whose results for integers are exact."""

_SIGN = -(1 << 63)  # by xor, unsigned numbers become signed ones in the same order

_overflows: dict[tuple[str, int, int], Any] = {}
"""For each library, GPU and stream: an array of one element, not 0 if a sum has overflowed."""
_lock = threading.Lock()


def reduce_integers(call: Call) -> Any:
    """Reduces the `axes` of x, an array of integers, of which those take part whose flag in `where` is true."""
    library, operation, a, axes, where = call.library, call.operation, call.x, call.axes, call.where
    has_objects = getattr(a.dtype, "hasobject", False)  # integers of Python, which do not overflow
    n = math.prod(a.shape[d] for d in axes)
    if n == 0 and operation != "sum":
        raise no_integers(operation, where is not None)
    if not has_objects and library.view(a).device < 0:
        return _reduce_on_host(call)
    name = dtype_name(a.dtype)
    if library.name == "torch" and name in UNSIGNED and operation != "sum":
        found = _of_others(call, library.astype(a, "int64") ^ _SIGN, where)
        return found if operation.startswith("arg") else library.astype(found ^ _SIGN, name)
    if where is not None:
        return _selected(call)
    if operation == "sum" and not has_objects:
        return _sum(call)
    xp = library.namespace
    moved = library.transposed(a, axes_last(a.ndim, axes)[0])
    kept = tuple(moved.shape[: a.ndim - len(axes)])
    flat = library.contiguous(moved).reshape((*kept, n))
    if name == "bool":
        flat = library.astype(flat, "uint8")
    found = getattr(xp, {"min": "amin", "max": "amax"}.get(operation, operation))(flat, -1)
    if operation.startswith("arg"):
        found = library.astype(found, "int64")
    elif name == "bool":
        found = library.astype(found, "bool")
    elif has_objects:
        found = library.narrowed(xp.asarray(found, object))
        if found is None:
            raise beyond_64_bits(operation, has_objects=True)
    return found.reshape(reduced_shape(a.shape, axes, True)) if call.keepdims else found


def _of_others(call: Call, x: Any, where: Any = None) -> Any:
    """Makes the call for other integers, and another mask."""
    other = call.copy()
    other.x, other.where = x, where
    return reduce_integers(other)


def _reduce_on_host(call: Call) -> Any:
    library, operation, a, axes, where = call.library, call.operation, call.x, call.axes, call.where
    name, view = dtype_name(a.dtype), library.view(a)
    flags = None if where is None else library.view(where)
    by_axis = zip(view.shape, view.strides, flags.strides if flags else view.strides)
    dtype = name
    if operation == "sum":
        dtype = "uint64" if name.startswith("uint") else "int64"
    elif operation.startswith("arg"):
        dtype = "int64"
    out = library.empty(reduced_shape(view.shape, axes, call.keepdims), dtype, a)
    described = [(*lengths, axis in axes) for axis, lengths in enumerate(by_axis)]
    is_invalid = _core.reduce_integers(
        operation, name, view.address, flags.address if flags else 0, described, library.view(out).address
    )
    if is_invalid:
        raise beyond_64_bits("sum") if operation == "sum" else no_integers(operation, True)
    return out


def mean_of_integers(call: Call) -> Any:
    """Returns the means of small integers in host memory, rounded once to fp64; None if sums may be beyond 2^53."""
    library, a, axes, where = call.library, call.x, call.axes, call.where
    n = math.prod(a.shape[d] for d in axes)
    if getattr(a.dtype, "hasobject", False) or library.view(a).device >= 0 or n << 8 * a.dtype.itemsize > 1 << 53:
        return None
    sums = call.copy()
    sums.operation = "sum"
    counts = n if where is None else _of_others(sums, where)
    if n == 0 or (where is not None and bool((counts == 0).any())):
        return None
    return library.astype(reduce_integers(sums), "float64") / counts


def _selected(call: Call) -> Any:
    """Makes the call for integers among which those that take no part cannot matter."""
    library, operation, a, mask, axes = call.library, call.operation, call.x, call.where, call.axes
    xp = library.namespace
    if operation == "sum":
        return _of_others(call, library.zeroed(a, mask))
    order, _ = axes_last(a.ndim, axes)
    count = math.prod(reduced_shape(tuple(a.shape), axes, False))
    if count == 0:
        return _of_others(call, a)
    rows = library.contiguous(library.transposed(mask, order)).reshape((count, math.prod(a.shape[d] for d in axes)))
    if rows.shape[1] == 0 or not bool(rows.any(1).all()):
        raise no_integers(operation, True)
    wide = library.astype(a, "uint8") if dtype_name(a.dtype) == "bool" else a
    most = wide.max() if operation.endswith("min") else wide.min()
    result = _of_others(call, xp.where(mask, wide, most))
    if not operation.startswith("arg"):
        return library.astype(result, "bool") if wide is not a else result
    # A place that takes no part is found only if all others hold `most`: then the first of these is meant.
    index = library.namespace.asarray(result).reshape((-1, 1))
    first = library.astype(library.astype(rows, "uint8").argmax(1), "int64").reshape((-1, 1))
    is_taken = xp.take_along_axis(rows, index, 1) if library.name != "torch" else rows.gather(1, index)
    return xp.where(is_taken, index, first).reshape(tuple(getattr(result, "shape", ())))


def _sum(call: Call) -> Any:
    library, a, axes = call.library, call.x, call.axes
    name = dtype_name(a.dtype)
    unsigned = name.startswith("uint")

    def total(x: Any) -> Any:
        return x.sum(axes) if axes else x

    if name not in ("int64", "uint64"):
        result = total(library.astype(a, "int64"))  # fewer than 2^31 elements cannot overflow
        if unsigned:
            result = library.astype(result, "uint64")
    else:
        # High and low words are added apart; a carry moves from the low to the high sum.
        high, low = high_and_low(library, a, name)
        low = total(low)
        high = total(high) + (low >> 32)
        most, least = ((1 << 32) - 1, 0) if unsigned else ((1 << 31) - 1, -(1 << 31))
        _report(library, a, (high > most) | (high < least), call.check)
        result = library.astype(((high & 0xFFFFFFFF) << 32) | (low & 0xFFFFFFFF), name)
    return result.reshape(reduced_shape(a.shape, axes, True)) if call.keepdims else result


def beyond_64_bits(operation: str, has_objects: bool = False) -> OverflowError:
    """Returns the error for an extremum or a sum. Objects are integers that may themselves be beyond 64 bits."""
    remedy = "method='exact/fp64', which rounds the exact sum once"
    if operation != "sum":
        remedy = f"dtype='float64' for a rounded {operation}"
    elif has_objects:
        remedy = "dtype='float64' for the sum of rounded integers, or call samesum.Exact(x).value(), which rounds once"
    return OverflowError(f"samesum: the {operation} of integers is beyond 64 bits; pass {remedy}")


def _report(library: Any, a: Any, overflowed: Any, check: bool) -> None:
    if check:
        if bool(overflowed.any()):
            raise beyond_64_bits("sum")
        return
    view = library.view(a)
    key = (library.name, view.device, view.stream)
    with _lock:
        before = _overflows.get(key)
        _overflows[key] = overflowed.any() if before is None else overflowed.any() | before


def integer_overflow() -> bool:
    """Returns whether a sum of integers on a GPU has overflowed since the last call of this function.

    Waits for the GPUs. Sums on the host raise OverflowError at once, as do those on a GPU with `check=True`.
    """
    global _overflows
    with _lock:
        found, _overflows = _overflows, {}
    return any([bool(status) for status in found.values()])
