"""Order-free sums inside functions and kernels of Numba.

`atomic_add` adds to cells that `samesum.cells` has made: in functions of `numba.njit`, whose threads may add at once,
and in kernels of `numba.cuda.jit`. Both take the cells as the argument `samesum.numba.cells(c)`:

    @numba.njit(parallel=True)
    def histogram(cells, i, x):
        for k in numba.prange(len(x)):
            samesum.numba.atomic_add(cells, i[k], x[k])

    c = samesum.cells(1000, "float32", grid=-40)
    histogram(samesum.numba.cells(c), i, x)
    c.finish()

All updates are additions of integers and bitwise or, so no order of threads, blocks or launches changes a bit.
"""

# Functions of Numba take no annotations.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-redef,untyped-decorator"

from __future__ import annotations

from typing import Any, NamedTuple

try:
    import numba
    import numba.extending
    import numpy as np
    from numba.core.errors import TypingError
except ImportError as error:
    raise ImportError(
        "samesum: samesum.numba needs Numba; install it with 'pip install numba'", name=error.name
    ) from error

from ._cells.cells import Cells
from ._cells.layout import FIELDS, digits_of
from ._cells.words import on_host, view

__all__ = ["atomic_add", "cells"]

_ELEMENTS = ("float32", "float64")


class GridCells(NamedTuple):
    """Cells with a grid as an argument."""

    words: Any
    """The words, an array of int64 with one axis."""
    grid: int


class ExactCells(NamedTuple):
    """Exact cells as an argument."""

    words: Any
    zero: Any
    """A number of the type of the elements."""


def cells(c: Cells, /) -> GridCells | ExactCells:
    """Returns cells as an argument of a function of Numba, or of a kernel if they are in the memory of a GPU."""
    if c.grid is None and c.dtype not in _ELEMENTS:
        raise TypeError(f"samesum: the cells hold {c.dtype}, and Numba adds float32 and float64; make cells of float32")
    if view(c.words).device >= 0:
        from numba import cuda

        words = cuda.as_cuda_array(c.words.reshape(-1))
    else:
        words = on_host(c.words).reshape(-1)
    return ExactCells(words, np.dtype(c.dtype).type(0)) if c.grid is None else GridCells(words, c.grid)


def atomic_add(cells: GridCells | ExactCells, i: int, x: float) -> None:
    """Adds x, of float32 or float64, to the cell with the index i, while other threads may add to the same cell.

    Indices count single cells: row r, column c of cells of shape (n, 3) has the index 3 * r + c. They are not checked.
    """
    raise TypeError("samesum: call samesum.numba.atomic_add in a function that Numba compiles")


def _overloaded(extending: Any, typing_error: type[Exception]) -> None:
    """Makes atomic_add known to a compiler of Numba."""
    types = numba.types

    def update(operation: str) -> Any:
        def declare(context: Any, words: Any, i: Any, x: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
                return builder.atomic_rmw(operation, builder.gep(data, [arguments[1]]), arguments[2], "monotonic")

            return types.int64(words, types.int64, types.int64), generate

        return extending.intrinsic(declare)

    fetch_add, fetch_or = update("add"), update("or")

    @extending.intrinsic
    def bits_of(context: Any, x: Any) -> Any:
        result = types.int32 if x == types.float32 else types.int64

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(result))

        return result(x), generate

    @extending.register_jitable
    def decompose(bits, fraction, bias):
        """Returns whether the element is negative, its significand and the exponent of that, and the flags of SumFlags
        for NaN and infinities.
        """
        field = (bits >> fraction) & (2 * bias + 1)
        m = bits & ((1 << fraction) - 1)
        if field == 2 * bias + 1:
            return bits < 0, 0, 0, 4 if m != 0 else 16 if bits < 0 else 8
        if field != 0:
            m |= 1 << fraction
        return bits < 0, m, max(field, 1) - (bias + fraction), 0

    @extending.register_jitable
    def set_flags(words, at, flags):
        if flags & ~words[at]:  # the first elements set them; all others only look
            fetch_or(words, at, flags)

    @extending.register_jitable
    def add_to_grid(words, grid, i, bits, fraction, bias):
        negative, m, exponent, flags = decompose(bits, fraction, bias)
        state, shift = 3 * i, exponent - grid
        if shift >= 0:
            if m > (1 << max(62 - shift, 0)) or (shift > 62 and m != 0):  # beyond 2^62 units
                flags, m = 127 << 32, 0
            units = m << min(shift, 62)
        elif shift < -62:
            units = 0
        else:
            units = (m + (1 << (-shift - 1)) - 1 + ((m >> -shift) & 1)) >> -shift
        low = -units if negative else units
        high = low >> 63
        if low != 0:
            old = fetch_add(words, state, low)
            if ((old + low) ^ (1 << 63)) < (old ^ (1 << 63)):  # a carry: as numbers without sign
                high += 1
        if high != 0:
            fetch_add(words, state + 1, high)
        if flags != 0:
            set_flags(words, state + 2, flags)

    @extending.register_jitable
    def add_to_digit(words, at, end, part):
        """Returns whether a digit was 0 to which it has added."""
        was_0 = False
        while part != 0:
            old = fetch_add(words, at, part)
            was_0 = was_0 or old == 0
            carry = ((old + part + (1 << 41)) >> 42) - ((old + (1 << 41)) >> 42)
            if carry == 0 or at + 1 == end:
                break
            fetch_add(words, at, -(carry << 42))
            part = carry << 10
            at += 1
        return was_0

    @extending.register_jitable
    def add_exactly(words, digits, lowest, i, bits, fraction, bias):
        negative, m, exponent, flags = decompose(bits, fraction, bias)
        state = (digits + 1) * i
        end = state + digits
        sets_flags = m == 0
        if m != 0:
            offset = exponent - lowest
            at, shift, sign = state + (offset >> 5), offset & 31, -1 if negative else 1
            rest = m >> (32 - shift)
            sets_flags |= add_to_digit(words, at, end, sign * ((m << shift) & 0xFFFFFFFF))
            sets_flags |= add_to_digit(words, at + 1, end, sign * (rest & 0xFFFFFFFF))
            sets_flags |= add_to_digit(words, at + 2, end, sign * (rest >> 32))
        if sets_flags:  # a digit is other than 0 only if an element came before, which sets the flags of all but zeros
            set_flags(words, end, flags | (1 if m == 0 and flags == 0 and negative else 3))

    @extending.overload(atomic_add)
    def implementation(cells, i, x):
        kind = getattr(cells, "instance_class", None)
        if kind not in (GridCells, ExactCells):
            raise typing_error("samesum: the first argument of atomic_add must be samesum.numba.cells(c)")
        if str(x) not in _ELEMENTS:
            raise typing_error(f"samesum: x is {x}; use float32 or float64")
        fraction, bias = FIELDS[str(x)]
        if kind is GridCells:
            return lambda cells, i, x: add_to_grid(cells.words, cells.grid, i, np.int64(bits_of(x)), fraction, bias)
        element = str(cells.types[1])
        if (str(x), element) == ("float64", "float32"):
            raise typing_error("samesum: x is float64, and the cells hold float32; make cells of float64")
        digits, lowest = digits_of(element)
        return lambda cells, i, x: add_exactly(
            cells.words, digits, lowest, i, np.int64(bits_of(x)), fraction, bias)


_overloaded(numba.extending, TypingError)
try:
    import numba.cuda.extending
    from numba.cuda.core.errors import TypingError as CudaTypingError
except ImportError:
    pass  # functions of CPUs alone; kernels need the package numba-cuda
else:
    _overloaded(numba.cuda.extending, CudaTypingError)
