"""What the tests of weights and of pairs share: correct rounding of fractions, and data of every type."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

DTYPES = ["float16", "bfloat16", "float32", "float64"]
_LIMITS = {
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
    "float32": (24, -149, 127),
    "float64": (53, -1074, 1023),
}
"""Bits of a significand, and exponents of the least subnormal and of the largest numbers."""


def dtype_of(name: str) -> Any:
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name)


def quantum(exact: Fraction, dtype: str) -> Fraction:
    """Returns the distance of the numbers of a type near to a number that is not 0."""
    precision, lowest, _ = _LIMITS[dtype]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    return Fraction(2) ** max(exponent - precision + 1, lowest)


def nearest(exact: Fraction, dtype: str) -> float:
    """Returns the number of a type nearest to an exact one, ties to even."""
    if exact == 0:
        return 0.0
    rounded = round(exact / quantum(exact, dtype)) * quantum(exact, dtype)
    if abs(rounded) >= Fraction(2) ** (_LIMITS[dtype][2] + 1):
        return math.inf if exact > 0 else -math.inf
    result = math.copysign(float(rounded), 1 if exact > 0 else -1)
    assert dtype != "float64" or result == float(exact)
    return result


def is_nearest_root(result: float, square: Fraction, dtype: str) -> bool:
    """Whether no number of a type is nearer to the root of `square` than `result` is."""
    r, step = Fraction(result), quantum(Fraction(result), dtype)
    below = step / 2 if (r / step).numerator & ((r / step).numerator - 1) else quantum(r - step / 4, dtype) / 2
    return (r - below) ** 2 <= square <= (r + step / 2) ** 2


def same(a: Any, b: Any) -> bool:
    """Whether two arrays or numbers have one type, one shape and the same numbers, signs of zeros included."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))).all())


def numbers(rng: Any, shape: Any, dtype: str, spread: int = 8) -> Any:
    """Returns numbers of both signs with exponents that differ by up to 2 · spread."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    return x.astype(dtype_of(dtype))


def fractions(a: Any) -> list[Fraction]:
    return [Fraction(float(v)) for v in np.asarray(a).reshape(-1)]


def rows_of(a: Any, axis: Any) -> list[list[Fraction]]:
    """Returns the elements of each result of reducing `axis`."""
    a = np.asarray(a)
    axes = (
        tuple(range(a.ndim))
        if axis is None
        else tuple(d % a.ndim for d in (axis if isinstance(axis, tuple) else (axis,)))
    )
    kept = [d for d in range(a.ndim) if d not in axes]
    moved = a.transpose([*kept, *sorted(axes)])
    count = math.prod(a.shape[d] for d in kept)
    return [fractions(row) for row in moved.reshape((count, math.prod(a.shape[d] for d in axes)))]
