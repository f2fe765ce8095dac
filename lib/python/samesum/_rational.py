"""Exact sums as numbers of Python, and quotients and roots of them that are rounded once."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple, Sequence

from . import _core
from ._layout import axes_last
from ._library import library

_FORMATS = {"fp16": (11, -24, 16), "bf16": (8, -133, 128), "fp32": (24, -149, 128), "fp64": (53, -1074, 1024)}
"""Bits of a significand, exponent of the least subnormal number, and exponent that is too large."""

_LOWEST_EXPONENT = -2162  # the last bit of an exact partial counts 2^this
_DIGIT_BYTES = 544
_ONLY_MINUS_ZERO, _NAN, _PLUS_INFINITY, _MINUS_INFINITY = 1, 4, 8, 16  # flags of an exact partial


class Dyadic:
    """A number: integer · 2^exponent."""

    __slots__ = ("exponent", "integer")

    def __init__(self, integer: int, exponent: int = 0) -> None:
        self.integer, self.exponent = integer, exponent

    @classmethod
    def of(cls, number: float) -> Dyadic:
        integer, divisor = number.as_integer_ratio()
        return cls(integer, 1 - divisor.bit_length())

    def __add__(self, other: Dyadic) -> Dyadic:
        exponent = min(self.exponent, other.exponent)
        return Dyadic(
            (self.integer << self.exponent - exponent) + (other.integer << other.exponent - exponent), exponent
        )

    def __sub__(self, other: Dyadic) -> Dyadic:
        return self + Dyadic(-other.integer, other.exponent)

    def __mul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.integer * other.integer, self.exponent + other.exponent)


class Sum(NamedTuple):
    """An exact sum of floating-point numbers. `flags` tells of NaN, infinities and -0."""

    value: Dyadic
    flags: int

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        return Sum(self.value + other.value, self.flags | other.flags)

    @property
    def is_special(self) -> bool:
        """Whether a NaN or an infinity was added."""
        return self.flags > 3

    @property
    def is_zero(self) -> bool:
        return not self.is_special and self.value.integer == 0

    def representative(self) -> float:
        """Returns NaN, an infinity or zero if the sum is one, else a number of its sign."""
        if self.flags & _NAN or self.flags & _PLUS_INFINITY and self.flags & _MINUS_INFINITY:
            return math.nan
        if self.is_special:
            return math.inf if self.flags & _PLUS_INFINITY else -math.inf
        if self.value.integer == 0:
            return -0.0 if self.flags == _ONLY_MINUS_ZERO else 0.0
        return 1.0 if self.value.integer > 0 else -1.0


class Rows(NamedTuple):
    """Elements of which row r begins at r·stride. The rows of a broadcast array have the stride 0."""

    elements: Any
    stride: int


def as_rows(library: Any, a: Any, axes: Sequence[int]) -> Rows:
    """Returns the elements over `axes` as rows, copied if they are not contiguous."""
    moved = library.transposed(a, axes_last(a.ndim, axes)[0])
    kept = a.ndim - len(axes)
    shape, strides = tuple(moved.shape), library.strides(moved)
    if all(n == 1 or stride == 0 for n, stride in zip(shape[:kept], strides)) and 0 not in shape[:kept]:
        return Rows(library.contiguous(moved[(0,) * kept]), 0)
    return Rows(library.contiguous(moved), math.prod(shape[kept:]))


def exact_sums(library: Any, format: str, factors: Sequence[Rows], rows: int, n: int, threads: int) -> list[Sum]:
    """Returns the exact sums of elements, or of products of two or three factors, over rows of n elements.

    If a factor is not finite, a sum of products of three is special; which infinity or NaN it is means nothing.
    """
    if rows > 1 and not any(f.stride for f in factors):
        return exact_sums(library, format, factors, 1, n, threads) * rows
    sums = _sums(library, format, factors, rows, n, threads)
    return _sums_of_bands(library, factors, rows, n, threads) if sums is None else sums


def _sums(library: Any, format: str, factors: Sequence[Rows], rows: int, n: int, threads: int) -> list[Sum] | None:
    addresses = [library.view(f.elements).address for f in factors]
    found = _core.exact_sums(format, addresses, [f.stride for f in factors], rows, n, threads)
    if found is None:
        return None
    sums = []
    for at in range(0, len(found), 1 + _DIGIT_BYTES):
        digits = found[at + 1 : at + 1 + _DIGIT_BYTES].lstrip(b"\0")  # the lowest come first
        exponent = _LOWEST_EXPONENT + 8 * (_DIGIT_BYTES - len(digits))
        sums.append(Sum(Dyadic(int.from_bytes(digits, "little", signed=True), exponent), found[at]))
    return sums


_BAND = 256  # powers of two


def _bands(np: Any, a: Any) -> list[tuple[int, Any]]:
    """Returns arrays that have the sum of a, scaled to numbers of similar size, and the powers of two removed."""
    bands = np.frexp(a)[1] // _BAND
    return [
        (_BAND * int(band), np.ldexp(np.where(bands == band, a, 0.0), -_BAND * int(band))) for band in np.unique(bands)
    ]


def _sums_of_bands(reader: Any, factors: Sequence[Rows], rows: int, n: int, threads: int) -> list[Sum]:
    """Returns the sums of products of fp64 that may over- or underflow: those of scaled elements."""
    numpy = library("numpy")
    arrays = [f.elements if reader is numpy else numpy.converted(f.elements) for f in factors]
    total: list[Sum] = []
    for scaled in itertools.product(*[_bands(numpy.np, a) for a in arrays]):
        scale = Dyadic(1, sum(power for power, _ in scaled))
        parts = [Rows(a, f.stride) for (_, a), f in zip(scaled, factors)]
        found = _sums(numpy, "fp64", parts, rows, n, threads)
        assert found is not None
        sums = [Sum(s.value * scale, s.flags) for s in found]
        total = [a + b for a, b in zip(total, sums)] if total else sums
    return total


# --- rounding -------------------------------------------------------------------------------------------------


def _log2(numerator: int, denominator: int) -> int:
    """Returns the logarithm of a positive quotient, rounded down."""
    guess = numerator.bit_length() - denominator.bit_length()
    n, d = _scaled(numerator, denominator, -guess)
    return guess if n >= d else guess - 1


def _scaled(numerator: int, denominator: int, power: int) -> tuple[int, int]:
    """Multiplies a quotient by a power of two."""
    return (numerator << power, denominator) if power >= 0 else (numerator, denominator << -power)


def _number(negative: bool, units: int, quantum: int, format: str) -> float:
    """Returns ±units · 2^quantum, infinite if that is beyond the format."""
    is_beyond = units.bit_length() + quantum > _FORMATS[format][2]
    return math.copysign(math.inf if is_beyond else math.ldexp(units, quantum), -1.0 if negative else 1.0)


def rounded_quotient(a: Dyadic, b: Dyadic, format: str) -> float:
    """Returns the number of the format nearest to a/b, ties to even. b is not 0, and 0/b is +0."""
    if a.integer == 0:
        return 0.0
    precision, lowest, _ = _FORMATS[format]
    n, d, exponent = abs(a.integer), abs(b.integer), a.exponent - b.exponent
    quantum = max(_log2(n, d) + exponent - precision + 1, lowest)
    n, d = _scaled(n, d, exponent - quantum)
    units, rest = divmod(n, d)
    units += 2 * rest > d or (2 * rest == d and units % 2 == 1)
    return _number((a.integer < 0) != (b.integer < 0), units, quantum, format)


def rounded_ratio_to_root(a: Dyadic, b: Dyadic, format: str) -> float:
    """Returns the number of the format nearest to a/√b, ties to even. b is positive, and 0/√b is +0."""
    if a.integer == 0:
        return 0.0
    precision, lowest, _ = _FORMATS[format]
    n, d, exponent = a.integer**2, b.integer, 2 * a.exponent - b.exponent
    quantum = max((_log2(n, d) + exponent) // 2 - precision + 1, lowest)
    n, d = _scaled(n, d, exponent - 2 * quantum)
    units = math.isqrt(n // d)
    above_half = 4 * n - (2 * units + 1) ** 2 * d  # has the sign of √(n/d) - units - 1/2
    units += above_half > 0 or (above_half == 0 and units % 2 == 1)
    return _number(a.integer < 0, units, quantum, format)
