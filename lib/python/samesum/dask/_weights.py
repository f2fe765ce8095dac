"""Weighted means and variances of Dask arrays: exact sums of chunks, as integers of Python, which are divided once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._elements.in_floats import in_floats
from .._elements.library import library
from .._parts.states import Partial
from .._statistics.inputs import sum_is_zero
from .._statistics.weights import require_no_negative

_DIGIT_BYTES, _CHECKSUM_BYTES, _LOWEST_EXPONENT = 544, 4, -2162
"""The end of a serialised exact partial: flags, an integer in units of 2^-2162, and a checksum."""
_SEEN, _SEEN_OTHER_THAN_MINUS_ZERO, _NAN, _PLUS_INFINITY, _MINUS_INFINITY = 1, 2, 4, 8, 16
_BAND = 512
_UNIT = _LOWEST_EXPONENT - 8 * _BAND
"""Sums are multiples of 2^_UNIT: squares are scaled by up to 2^(7·_BAND)."""


class Sum(NamedTuple):
    """An exact sum, in units of 2^_UNIT; its flags tell of NaN, infinities and -0."""

    integer: int = 0
    flags: int = 0

    @property
    def is_special(self) -> bool:
        """Whether a NaN or an infinity was added."""
        return self.flags >= _NAN

    @property
    def value(self) -> Fraction:
        return Fraction(self.integer, 1 << -_UNIT)

    def representative(self) -> float:
        """Returns NaN, an infinity or zero if the sum is one, else a number of its sign."""
        if self.flags & _NAN or (self.flags & _PLUS_INFINITY and self.flags & _MINUS_INFINITY):
            return math.nan
        if self.is_special:
            return math.inf if self.flags & _PLUS_INFINITY else -math.inf
        if self.integer == 0:
            return -0.0 if self.flags == _SEEN else 0.0
        return 1.0 if self.integer > 0 else -1.0


def plus(a: Sum, b: Sum) -> Sum:
    return Sum(a.integer + b.integer, a.flags | b.flags)


def exact_sum(x: Any, y: Any = None) -> Sum:
    """Returns the sum of the elements of x, or of the products of those of x and y."""
    if len(x) == 0:  # such a partial is serialised without a sum
        return Sum()
    partial = Partial("sum/exact/fp64" if y is None else "dot/exact/fp64")
    partial.add(x, y, threads=1)
    end = partial.to_bytes()[-1 - _DIGIT_BYTES - _CHECKSUM_BYTES : -_CHECKSUM_BYTES]
    integer = int.from_bytes(end[1:], "little", signed=True)
    return Sum(integer << (_LOWEST_EXPONENT - _UNIT), end[0])


def sum_with_squares(w: Any, x: Any) -> Sum:
    """Returns Σwx² of finite numbers of fp64."""
    (w, of_w), (x, of_x) = np.frexp(w), np.frexp(x)
    # x² = high + low, since numbers between 1/2 and 1 neither over- nor underflow (Dekker 1971).
    c = x * 134217729.0  # 2^27 + 1
    head = c - (c - x)
    tail = x - head
    high = x * x
    low = ((head * head - high) + 2 * head * tail) + tail * tail
    exponents = of_w.astype(np.int64) + 2 * of_x
    bands = exponents // _BAND
    total = Sum()
    for band in np.unique(bands).tolist():
        taken = bands == band
        scaled = np.ldexp(w[taken], (exponents[taken] - band * _BAND).astype(np.int32))
        found = plus(exact_sum(scaled, high[taken]), exact_sum(scaled, low[taken]))
        shift = band * _BAND
        integer = found.integer << shift if shift >= 0 else found.integer >> -shift  # no bit is lost
        total = plus(total, Sum(integer, found.flags))
    return total


class WeightedPartial:
    """The sums of weights, of weighted elements and of weighted squares, with the functions of `Partial`."""

    def __init__(self, function: str, weights_are: str, dtype: Any) -> None:
        self.function, self.weights_are, self.dtype = function, weights_are, dtype
        self.count, self.w, self.wx, self.wxx, self.ww = 0, Sum(), Sum(), Sum(), Sum()

    def add(self, x: Any, w: Any) -> None:
        x, w = (_in_fp64(name, a) for name, a in (("x", x), ("weights", w)))
        self.count += len(x)
        self.w, self.wx = plus(self.w, exact_sum(w)), plus(self.wx, exact_sum(w, x))
        if self.function == "mean":
            return
        require_no_negative(w)
        if np.isfinite(x).all() and np.isfinite(w).all():
            self.wxx = plus(self.wxx, sum_with_squares(w, x))
        else:  # 0 · inf is NaN too, as all variances of infinities
            self.wxx = Sum(0, _NAN)
        if self.weights_are == "reliabilities":
            self.ww = plus(self.ww, exact_sum(w, w))

    def copy(self) -> WeightedPartial:
        new = WeightedPartial(self.function, self.weights_are, self.dtype)
        vars(new).update(vars(self))
        return new

    def merge(self, next: WeightedPartial) -> None:
        self.count += next.count
        for name in ("w", "wx", "wxx", "ww"):
            setattr(self, name, plus(getattr(self, name), getattr(next, name)))

    def finish(self, *, correction: float) -> float:
        """Returns the mean or the variance, rounded once."""
        if self.count and not self.w.is_special and self.w.integer == 0:
            raise sum_is_zero()
        if self.count == 0:
            return math.nan
        if self.function == "mean":
            if self.w.is_special or self.wx.is_special or self.wx.integer == 0:
                with np.errstate(invalid="ignore"):
                    return float(np.float64(self.wx.representative()) / self.w.representative())
            return nearest(self.wx.value / self.w.value, self.dtype)
        if self.w.is_special or self.wx.is_special or self.wxx.is_special:
            return math.nan
        total = self.w.value
        squares = self.ww.value if self.weights_are == "reliabilities" else total
        divisor = total * total - Fraction(correction) * squares
        if divisor <= 0:
            return math.nan
        return nearest((total * self.wxx.value - self.wx.value**2) / divisor, self.dtype)


def _in_fp64(name: str, a: Any) -> Any:
    """Returns numbers as a contiguous array of fp64. Raises OverflowError for an integer that it does not hold."""
    return np.ascontiguousarray(in_floats(library("numpy"), a, name) if a.dtype.kind in "iub" else a, np.float64)


def nearest(exact: Fraction, dtype: Any) -> float:
    """Returns the number of a floating-point type nearest to an exact one, ties to even. 0 is +0."""
    if exact == 0:
        return 0.0
    precision, lowest, limit = _LIMITS[np.dtype(dtype).name]
    n, d = abs(exact.numerator), exact.denominator
    exponent = n.bit_length() - d.bit_length()
    exponent -= n < d << exponent if exponent >= 0 else n << -exponent < d
    quantum = max(exponent - precision + 1, lowest)
    units = round(abs(exact) / Fraction(2) ** quantum)
    is_beyond = units.bit_length() + quantum > limit
    return math.copysign(math.inf if is_beyond else math.ldexp(units, quantum), 1 if exact > 0 else -1)


_LIMITS = {
    "float16": (11, -24, 16),
    "bfloat16": (8, -133, 128),
    "float32": (24, -149, 128),
    "float64": (53, -1074, 1024),
}
"""Bits of a significand, exponent of the least subnormal number, and exponent that is too large."""
