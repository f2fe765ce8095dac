"""Integers as floating-point numbers: none is rounded unseen.

A method that rounds anyway may round elements, too. For all others, an integer that fp64 does not hold is refused, or
split into two numbers that it holds.
"""

from __future__ import annotations

from typing import Any

from .formats import dtype_name

_SUMS, _MEANS = ("sum", "scatter_add"), ("mean", "scatter_mean")
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def rounds_elements(method: Any) -> bool:
    """Whether a method rounds on its way, so that rounding an integer first adds no more than one such error."""
    return method.promise != "order_free" or method.accumulator == "fixed_point"


def not_held(argument: str, dtype: str = "float64") -> OverflowError:
    return OverflowError(
        f"samesum: {argument} has integers that {dtype} does not hold; convert them to floats first, which rounds them"
    )


def held_floats(library: Any, a: Any, method: Any = None, dtype: str = "float64", mask: Any = None) -> Any:
    """Returns integers in a floating-point type; None if it does not hold all of them, unless a method is given that
    rounds elements. Integers that a mask hides need not be held: the caller leaves them out.
    """
    floats = library.astype(a, dtype)
    if (method is not None and rounds_elements(method)) or _holds(library, a, floats):
        return floats
    if mask is None:
        return None
    shown = library.zeroed(a, mask)
    return floats if _holds(library, shown, library.astype(shown, dtype)) else None


def in_floats(
    library: Any, a: Any, argument: str = "x", method: Any = None, dtype: str = "float64", mask: Any = None
) -> Any:
    """Returns what `held_floats` returns. Raises OverflowError in place of None."""
    floats = held_floats(library, a, method, dtype, mask)
    if floats is None:
        raise not_held(argument, dtype)
    return floats


def in_two_floats(library: Any, a: Any) -> tuple[Any, Any]:
    """Returns the numbers in fp64 that are nearest to integers of 64 bits, and what is left of these."""
    high, low = (library.astype(words, "float64") for words in high_and_low(library, a, dtype_name(a.dtype)))
    high = high * 2.0**32
    nearest = high + low
    return nearest, low - (nearest - high)  # exact (Dekker 1971), since high is 0 or larger than low


def adds_exactly(method: Any) -> bool:
    """Whether a method takes the two parts of an integer as two elements: sums, and means, which are half of the mean
    then.

    Half a mean may be subnormal in fp16.
    """
    adds = method.operation in _SUMS or (method.operation in _MEANS and method.format != "fp16")
    return adds and not rounds_elements(method)


def _holds(library: Any, a: Any, floats: Any) -> bool:
    """Whether integers equal the floating-point numbers to which they were converted. Waits for a GPU."""
    name, dtype = dtype_name(a.dtype), dtype_name(floats.dtype)
    digits = 1 if name == "bool" else int(name.lstrip("uint")) - (not name.startswith("u"))
    if digits <= _DIGITS[dtype] or 0 in a.shape:
        return True
    limit = 2.0 ** _DIGITS[dtype]
    if bool(floats.max() < limit) and bool(floats.min() > -limit):
        return True
    exact = library.astype(a, "float64")
    return bool((library.astype(floats, "float64") == exact).all()) and (
        digits < 63 or not bool(in_two_floats(library, a)[1].any())
    )


def high_and_low(library: Any, a: Any, dtype: str) -> tuple[Any, Any]:
    """Returns the high and the low 32 bits of int64 or uint64 integers as int64. The high ones have the sign."""
    signed = library.astype(a, "int64")  # PyTorch does not shift uint64
    high = signed >> 32
    return high & 0xFFFFFFFF if dtype == "uint64" else high, signed & 0xFFFFFFFF
