"""Order-free sums inside kernels of Warp, on CPUs and GPUs.

`atomic_add` adds to cells that `samesum.cells` has made, in place of `warp.atomic_add`. A kernel takes the cells as the
argument `samesum.warp.cells(c)`, a struct whose type is `samesum.warp.GridFloat32`, `ExactFloat32` and so on:

    @wp.kernel
    def histogram(cells: samesum.warp.GridFloat32, i: wp.array(dtype=int), x: wp.array(dtype=float)):
        k = wp.tid()
        samesum.warp.atomic_add(cells, i[k], x[k])

    c = samesum.cells(1000, "float32", like=x, grid=-40)
    wp.launch(histogram, len(x), inputs=[samesum.warp.cells(c), i, x])
    c.finish()

All updates are additions of integers and bitwise or, so no order of threads, blocks or launches changes a bit.

Sums have derivatives: with `samesum.warp.cells(c, result)`, the gradient of an element is read from that of the
result of its cell. So `result` must hold the sums before a tape goes on: `result.assign(c.finish())`.
"""

# Annotations of Warp are evaluated, and are no types to mypy.
# mypy: ignore-errors

from typing import Any

try:
    import warp as wp
except ImportError as error:
    raise ImportError(
        "samesum: samesum.warp needs Warp; install it with 'pip install warp-lang'", name=error.name
    ) from error

from ._cells.cells import Cells
from ._cells.layout import FIELDS, digits_of
from ._cells.words import is_warp

__all__ = [
    "ExactFloat16", "ExactFloat32", "ExactFloat64", "GridFloat16", "GridFloat32", "GridFloat64", "atomic_add", "cells",
]  # fmt: skip


@wp.func
def _decompose(bits: wp.int64, fraction: wp.int64, bias: wp.int64):
    """Returns whether the element is negative, its significand and the exponent of that, and the flags of SumFlags for
    NaN and infinities.
    """
    one = wp.int64(1)
    field = (bits >> fraction) & (wp.int64(2) * bias + one)
    rest = bits & ((one << fraction) - one)
    negative = bits < wp.int64(0)
    m, flags = rest, wp.int64(0)
    if field == wp.int64(2) * bias + one:
        m = wp.int64(0)
        flags = wp.where(rest != wp.int64(0), wp.int64(4), wp.where(negative, wp.int64(16), wp.int64(8)))
    elif field != wp.int64(0):
        m = rest + (one << fraction)
    return negative, m, wp.max(field, one) - (bias + fraction), flags


@wp.func
def _set_flags(words: wp.array2d(dtype=wp.int64), i: int, at: int, flags: wp.int64):
    if (flags & ~words[i, at]) != wp.int64(0):  # the first elements set them; all others only look
        wp.atomic_or(words, i, at, flags)


@wp.func
def _add_to_grid(words: wp.array2d(dtype=wp.int64), grid: int, i: int, bits: wp.int64, fraction: int, bias: int):
    zero, one = wp.int64(0), wp.int64(1)
    negative, m, exponent, flags = _decompose(bits, wp.int64(fraction), wp.int64(bias))
    shift = exponent - wp.int64(grid)
    units = wp.int64(0)
    if shift >= zero:
        if m > (one << wp.max(wp.int64(62) - shift, zero)) or (shift > wp.int64(62) and m != zero):
            flags = wp.int64(127) << wp.int64(32)  # beyond 2^62 units
        else:
            units = m << wp.min(shift, wp.int64(62))
    elif shift >= wp.int64(-62):
        down = -shift
        units = (m + (one << (down - one)) - one + ((m >> down) & one)) >> down
    low = wp.where(negative, -units, units)
    high = low >> wp.int64(63)
    if low != zero:
        old = wp.atomic_add(words, i, 0, low)
        if wp.uint64(old + low) < wp.uint64(old):  # a carry
            high = high + one
    if high != zero:
        wp.atomic_add(words, i, 1, high)
    if flags != zero:
        _set_flags(words, i, 2, flags)


@wp.func
def _add_to_digit(words: wp.array2d(dtype=wp.int64), i: int, first: int, digits: int, first_part: wp.int64):
    at = int(first)
    part = wp.int64(first_part)
    half, bits = wp.int64(1) << wp.int64(41), wp.int64(42)
    while part != wp.int64(0):
        old = wp.atomic_add(words, i, at, part)
        carry = ((old + part + half) >> bits) - ((old + half) >> bits)
        at = at + 1
        part = wp.int64(0)
        if carry != wp.int64(0) and at < digits:
            wp.atomic_add(words, i, at - 1, -(carry << bits))
            part = carry << wp.int64(10)


@wp.func
def _add_exactly(
    words: wp.array2d(dtype=wp.int64), digits: int, lowest: int, i: int, bits: wp.int64, fraction: int, bias: int
):
    zero = wp.int64(0)
    negative, m, exponent, flags = _decompose(bits, wp.int64(fraction), wp.int64(bias))
    only_minus_zero = m == zero and flags == zero and negative
    _set_flags(words, i, digits, flags | wp.where(only_minus_zero, wp.int64(1), wp.int64(3)))
    if m != zero:
        offset = exponent - wp.int64(lowest)
        at, shift = int(offset >> wp.int64(5)), offset & wp.int64(31)
        lower, sign = wp.int64(0xFFFFFFFF), wp.where(negative, wp.int64(-1), wp.int64(1))
        rest = m >> (wp.int64(32) - shift)
        _add_to_digit(words, i, at, digits, sign * ((m << shift) & lower))
        _add_to_digit(words, i, at + 1, digits, sign * (rest & lower))
        _add_to_digit(words, i, at + 2, digits, sign * (rest >> wp.int64(32)))


def _declared(atomic_add: Any, dtype: str, element: Any, integer: Any) -> Any:
    """Returns the structs of the cells of a type, with a grid and exact, and atomic_add with overloads for them.

    Warp adds overloads to the function that has the name of the new one: the parameter.
    """
    (fraction, bias), (digits, lowest) = FIELDS[dtype], digits_of(dtype)
    members = {"words": wp.array2d(dtype=wp.int64), "gradient": wp.array(dtype=element), "grid": int}

    def struct(kind: str) -> Any:
        return wp.struct(type(f"{kind}{dtype.capitalize()}", (), {"__annotations__": members, "__module__": __name__}))

    Grid, Exact = struct("Grid"), struct("Exact")

    def gathers(added: Any, Kind: Any) -> None:
        """Makes a backward pass read gradients. Warp would run the additions again before: the replay does nothing."""

        @wp.func_replay(added)
        def replay_atomic_add(cells: Kind, i: int, x: element):
            pass

        @wp.func_grad(added)
        def adjoint_atomic_add(cells: Kind, i: int, x: element):
            if cells.gradient.shape[0] > 0:
                wp.adjoint[x] += cells.gradient[i]

    @wp.func
    def atomic_add(cells: Grid, i: int, x: element):
        _add_to_grid(cells.words, cells.grid, i, wp.int64(wp.cast(x, integer)), fraction, bias)

    gathers(atomic_add, Grid)

    @wp.func
    def atomic_add(cells: Exact, i: int, x: element):
        _add_exactly(cells.words, digits, lowest, i, wp.int64(wp.cast(x, integer)), fraction, bias)

    gathers(atomic_add, Exact)
    return Grid, Exact, atomic_add


GridFloat16, ExactFloat16, atomic_add = _declared(None, "float16", wp.float16, wp.int16)
GridFloat32, ExactFloat32, atomic_add = _declared(atomic_add, "float32", wp.float32, wp.int32)
GridFloat64, ExactFloat64, atomic_add = _declared(atomic_add, "float64", wp.float64, wp.int64)

_STRUCTS = {
    "float16": (GridFloat16, ExactFloat16, wp.float16), "float32": (GridFloat32, ExactFloat32, wp.float32),
    "float64": (GridFloat64, ExactFloat64, wp.float64),
}  # fmt: skip


def cells(c: Cells, /, result: Any = None) -> Any:
    """Returns cells in memory of Warp as an argument of a kernel.

    Parameters
    ----------
    result
        an array of the shape and type of the cells that has a gradient. A backward pass adds the gradient of the result
        of cell i to that of each element that was added to it. Default: elements have no gradient by their cells.
    """
    if not is_warp(c.words):
        raise TypeError(
            f"samesum: the cells are in a {type(c.words).__name__}, and Warp takes its own arrays; make the cells with "
            "like=x, where x is an array of Warp"
        )
    if c.dtype not in _STRUCTS:
        raise TypeError(f"samesum: the cells hold {c.dtype}; for Warp make cells of {', '.join(_STRUCTS)}")
    grid, exact, element = _STRUCTS[c.dtype]
    argument = exact() if c.grid is None else grid()
    argument.words = c.words.reshape((-1, c.words.shape[-1]))
    argument.grid = c.grid or 0
    argument.gradient = wp.empty(0, dtype=element, device=c.words.device)
    if result is not None:
        if not is_warp(result) or result.shape != c.shape or result.dtype != element:
            raise TypeError(f"samesum: result must be an array of Warp of shape {c.shape} and type {c.dtype}")
        if result.grad is None:
            raise ValueError("samesum: result has no gradient; make it with requires_grad=True")
        argument.gradient = result.grad.reshape((-1,))
    return argument
