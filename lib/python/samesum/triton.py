"""Order-free sums inside kernels of Triton.

`atomic_add` adds to cells that `samesum.cells` has made, in place of `triton.language.atomic_add`. A kernel takes the
cells as the argument `samesum.triton.cells(c)`:

    @triton.jit
    def histogram(i, x, n, cells, BLOCK: tl.constexpr):
        k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        samesum.triton.atomic_add(cells, tl.load(i + k, k < n), tl.load(x + k, k < n), k < n)

    c = samesum.cells(1000, "float32", like=x, grid=-40)
    histogram[(triton.cdiv(n, 1024),)](i, x, n, samesum.triton.cells(c), 1024)
    c.finish()

All updates are additions of integers, bitwise or and maxima, so no order of blocks, warps or launches changes a bit.
"""

# Functions of Triton take no annotations.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-redef,untyped-decorator"

from __future__ import annotations

from typing import Any, NamedTuple

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError(
        "samesum: samesum.triton needs Triton; install it with 'pip install triton'", name=error.name
    ) from error

from ._cells.cells import Cells
from ._cells.layout import digits_of

__all__ = ["atomic_add", "atomic_add_sum", "cells"]


class KernelCells(NamedTuple):
    """Cells as an argument of a kernel."""

    words: Any
    """The words, whose type in a kernel is a pointer to int64."""
    grid: Any
    """Exponent of the grid, a constexpr; None for exact sums."""
    digits: Any
    """Digits of an exact sum, a constexpr."""
    lowest: Any
    """Digit 0 counts units of 2**lowest, a constexpr."""


def cells(c: Cells, /) -> KernelCells:
    """Returns cells in memory of PyTorch as an argument of a kernel."""
    if not hasattr(c.words, "data_ptr"):
        raise TypeError(
            f"samesum: the cells are in a {type(c.words).__name__}, and Triton takes tensors of PyTorch; make the "
            "cells with like=x, where x is a tensor"
        )
    digits, lowest = digits_of(c.dtype)
    grid = None if c.grid is None else tl.constexpr(c.grid)  # the interpreter does not see that a constexpr is None
    return KernelCells(c.words, grid, tl.constexpr(digits), tl.constexpr(lowest))


@triton.jit
def _decompose(x):
    """Returns the sign of each element, its significand and the exponent of that, and the flags of SumFlags for NaN and
    infinities, whose significand is 0.
    """
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        fraction: tl.constexpr = 52
        bias: tl.constexpr = 1023
    elif x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        fraction: tl.constexpr = 23
        bias: tl.constexpr = 127
    elif x.dtype == tl.bfloat16:
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        fraction: tl.constexpr = 7
        bias: tl.constexpr = 127
    else:
        tl.static_assert(x.dtype == tl.float16, "samesum: x must be float16, bfloat16, float32 or float64")
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        fraction: tl.constexpr = 10
        bias: tl.constexpr = 15
    negative = bits < 0
    field = ((bits >> fraction) & (2 * bias + 1)).to(tl.int32)
    rest = bits & ((1 << fraction) - 1)
    finite = field != 2 * bias + 1
    special = tl.where(finite, 0, tl.where(rest != 0, 4, tl.where(negative, 16, 8)))
    significand = tl.where(finite, tl.where(field != 0, rest + (1 << fraction), rest), 0)
    return negative, significand, tl.maximum(field, 1) - (bias + fraction), special


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _units(x, grid):
    """Returns each element in units of 2**grid, rounded to nearest, ties to even, or 0 if that is beyond 2**62; whether
    it is; and the flags of what is not finite.
    """
    negative, m, exponent, special = _decompose(x)
    shift = exponent - grid
    most: tl.constexpr = 62 if x.dtype == tl.float64 else 30  # there, each significand is below half a unit
    down = tl.minimum(tl.maximum(-shift, 0), most).to(m.dtype)
    half_below = tl.where(down == 0, 0, ((1 << down) >> 1) - 1 + ((m >> down) & 1)).to(m.dtype)
    magnitude = ((m + half_below) >> down).to(tl.int64)
    up = tl.maximum(shift, 0).to(tl.int64)
    room = tl.maximum(62 - up, 0)
    beyond = (magnitude > (tl.full([], 1, tl.int64) << room)) | ((up > 62) & (magnitude != 0))
    magnitude = tl.where(beyond, 0, magnitude << tl.minimum(up, 62))
    return tl.where(negative, -magnitude, magnitude), beyond, special


@triton.jit
def _add_to_grid(state, low, high, beyond, special, mask):
    """Adds high * 2**64 + low, where low is read without its sign, to the units of states, and sets their flags."""
    least: tl.constexpr = -(2**63)
    old = tl.atomic_add(state, low, mask=mask & (low != 0), sem="relaxed")
    carry = (low != 0) & (((old + low) ^ least) < (old ^ least))  # as numbers without sign
    high += carry.to(tl.int64)
    tl.atomic_add(state + 1, high, mask=mask & (high != 0), sem="relaxed")
    flags = (state + 2).to(tl.pointer_type(tl.int32))
    tl.atomic_or(flags, special, mask=mask & (special != 0), sem="relaxed")
    tl.atomic_max(flags + 1, 127, mask=mask & beyond, sem="relaxed")


@triton.jit
def _digits(x, lowest):
    """Returns the first digit that each element adds to, what it adds to this one and to the next two, and its flags.

    Each part is below 2**40, and the second or third is 0 where the first ones have room for it.
    """
    tl.static_assert(
        lowest == -1074 or (lowest <= -178 and x.dtype != tl.float64) or (lowest <= -146 and x.dtype == tl.bfloat16)
        or x.dtype == tl.float16,
        "samesum: x has a type whose numbers the cells do not hold; make cells of this type",
    )
    negative, m, exponent, special = _decompose(x)
    offset = exponent - lowest
    shift = (offset & 31).to(tl.int64)
    m = m.to(tl.int64)
    lower: tl.constexpr = (1 << 32) - 1
    most: tl.constexpr = 1 << 40
    if x.dtype == tl.float64:
        first = (m << shift) & lower
        rest = m >> (32 - shift)
        second = tl.where(rest < most, rest, rest & lower)
        third = tl.where(rest < most, 0, rest >> 32)
    else:
        whole = m << shift
        first = tl.where(whole < most, whole, whole & lower)
        second = tl.where(whole < most, 0, whole >> 32)
        third = tl.zeros_like(second)
    flags = tl.where(special != 0, special | 3, tl.where((m == 0) & negative, 1, 3))
    sign = tl.where(negative, -1, 1).to(tl.int64)
    return offset >> 5, first * sign, second * sign, third * sign, flags


@triton.jit
def _add_to_digit(digit, part, mask):
    """Adds a part below 2**42 to digits, and carries once. Returns where the digits were 0.

    What a digit gets from the one below is not looked at: 2**54 additions change it by less than 2**62.
    """
    half: tl.constexpr = 1 << 41
    mask = mask & (part != 0)
    old = tl.atomic_add(digit, part, mask=mask, sem="relaxed")
    carry = ((old + part + half) >> 42) - ((old + half) >> 42)
    carries = mask & (carry != 0)
    tl.atomic_add(digit, -(carry << 42), mask=carries, sem="relaxed")
    tl.atomic_add(digit + 1, carry << 10, mask=carries, sem="relaxed")
    return mask & (old == 0)


@triton.jit
def _set_flags(flags, seen, mask):
    now = tl.load(flags, mask=mask, other=0, volatile=True)
    tl.atomic_or(flags, seen, mask=mask & ((seen & ~now) != 0), sem="relaxed")


@triton.jit
def _flags_of(state, digits: tl.constexpr):
    return (state + digits).to(tl.pointer_type(tl.int32))


@triton.jit
def atomic_add(cells, i, x, mask=None):
    """Adds x to the cells with the indices i, as `triton.language.atomic_add` does for numbers; where mask is false,
    nothing is read or written. Returns nothing.

    Indices count single cells: row r, column c of cells of shape (n, 3) has the index 3 * r + c. They are not checked.
    """
    i, x = tl.broadcast(i + tl.zeros_like(x).to(tl.int64), x)
    if mask is None:
        mask = i == i
    else:
        mask = tl.broadcast(mask, i)[0]
    if cells.grid is None:
        state = cells.words + i * (cells.digits + 1)
        place, first, second, third, seen = _digits(x, cells.lowest)
        digit = state + place
        # The first element of a digit sees that it is 0, and sets the flags. So others need not look at the flags,
        # unless they add to no digit.
        was_0 = _add_to_digit(digit, first, mask) | _add_to_digit(digit + 1, second, mask)
        if x.dtype == tl.float64:
            was_0 = was_0 | _add_to_digit(digit + 2, third, mask)
        adds_none = (first == 0) & (second == 0) & (third == 0)
        _set_flags(_flags_of(state, cells.digits), seen, mask & (was_0 | adds_none))
    else:
        units, beyond, special = _units(x, cells.grid)
        _add_to_grid(cells.words + i * 3, units, units >> 63, beyond, special, mask)


@triton.jit
def atomic_add_sum(cells, i, x, mask=None, axis: tl.constexpr = None):
    """Adds the sums of x along an axis to the cells with the indices i, which have the shape of these sums; without an
    axis, the sum of the whole block to one cell. The block adds in registers and shared memory first.
    """
    if mask is None:
        mask = x == x
        mask = mask | (x != x)
    else:
        mask = tl.broadcast(mask, x)[0]
    if cells.grid is None:
        state = cells.words + (tl.full([], 0, tl.int64) + i) * (cells.digits + 1)
        place, first, second, third, seen = _digits(x, cells.lowest)
        first = tl.where(mask, first, 0)
        second = tl.where(mask, second, 0)
        third = tl.where(mask, third, 0)
        flags = tl.reduce(tl.where(mask, seen, 0), axis, _or)
        adds = mask & ((first != 0) | (second != 0) | (third != 0))
        d = tl.min(tl.where(adds, place, cells.digits))
        end = tl.max(tl.where(adds, place + 3, 0))
        while d < end:
            part = tl.sum(
                tl.where(place == d, first, 0)
                + tl.where(place + 1 == d, second, 0)
                + tl.where(place + 2 == d, third, 0),
                axis,
            )
            _add_to_digit(state + d, part & ((1 << 32) - 1), part != 0)
            _add_to_digit(state + d + 1, part >> 32, part != 0)
            d += 1
        _set_flags(_flags_of(state, cells.digits), flags, flags != 0)
    else:
        state = cells.words + (tl.full([], 0, tl.int64) + i) * 3
        units, beyond, special = _units(x, cells.grid)
        units = tl.where(mask, units, 0)
        lower = tl.sum(units & ((1 << 32) - 1), axis)
        upper = tl.sum(units >> 32, axis) + (lower >> 32)
        flags = tl.reduce(tl.where(mask, special, 0), axis, _or)
        any_beyond = tl.max((mask & beyond).to(tl.int32), axis) != 0
        low = (lower & ((1 << 32) - 1)) | (upper << 32)
        _add_to_grid(state, low, upper >> 32, any_beyond, flags, flags == flags)
