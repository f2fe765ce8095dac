"""Axes and layouts: which elements each result reduces, without a copy where the library can express it."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, Sequence

from .. import _core


class Layout(NamedTuple):
    """As in C++: result (o, i) reduces the elements o·outer_stride + k·stride + i for 0 <= k < n."""

    outer: int
    n: int
    inner: int
    outer_stride: int
    stride: int

    @property
    def results(self) -> int:
        return self.outer * self.inner


def vector(n: int) -> Layout:
    return Layout(1, n, 1, n, 1)


def rows(count: int, n: int, row_stride: int | None = None) -> Layout:
    return Layout(count, n, 1, n if row_stride is None else row_stride, 1)


def along(shape: Sequence[int], axis: int) -> Layout:
    """Returns the layout whose results are those of the vectors along an axis of a contiguous array."""
    n, inner = shape[axis], math.prod(shape[axis + 1 :])
    return Layout(math.prod(shape[:axis]), n, inner, n * inner, inner)


VECTOR: Any = "the axis of a vector"
"""In place of an axis: the only axis of inputs that must be vectors."""


def normalised_axes(axis: int | Sequence[int] | None, ndim: int, owner: str = "an array") -> tuple[int, ...]:
    """Returns the reduced axes in ascending order. Messages name the `owner` of the axes.

    Raises IndexError for an axis that does not exist, ValueError for one that is repeated, and TypeError for
    one that is not an integer.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = []
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        try:
            a = operator.index(a)
        except TypeError:
            raise TypeError(f"samesum: axis is {axis!r}; use an integer, a tuple of integers, or None") from None
        if not -ndim <= a < ndim:
            raise IndexError(f"samesum: axis {a} is out of range for {owner} with {ndim} axes")
        axes.append(a % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"samesum: axis {axis} names an axis twice")
    return tuple(sorted(axes))


def reduced_shape(shape: Sequence[Any], axes: Sequence[int], keepdims: bool) -> tuple[Any, ...]:
    """Returns the axes of the results. Reduced ones are left out, or have length 1 with `keepdims`."""
    return tuple([1 if d in axes else size for d, size in enumerate(shape) if keepdims or d not in axes])


def axes_last(ndim: int, axes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the order of axes in which `axes` are the last ones, and the order that undoes it."""
    order = (*[d for d in range(ndim) if d not in axes], *axes)
    return order, tuple([order.index(d) for d in range(ndim)])


def paired(namespace: Any, x: Any, y: Any, axis: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Returns two inputs with the reduced axes at the same places, and these axes; the other axes can be broadcast.

    As in `numpy.vecdot`, an axis counts in each input, and is not broadcast. Raises as `normalised_axes`, and
    ValueError if the inputs differ in their lengths along the axes.
    """
    if axis is VECTOR:
        for name, a in (("x", x), ("y", y)):
            if a.ndim != 1:
                remedy = "use vecdot, which reduces one axis" if a.ndim else "pass a vector"
                raise ValueError(f"samesum: dot: {name} has {a.ndim} axes; {remedy}")
        if x.shape != y.shape:
            raise ValueError(
                f"samesum: dot: x has {x.shape[0]} elements and y {y.shape[0]}; pass vectors of one length"
            )
        return x, y, (0,)
    of_x, of_y = normalised_axes(axis, x.ndim, "x"), normalised_axes(axis, y.ndim, "y")
    lengths = [tuple(a.shape[d] for d in axes) for a, axes in ((x, of_x), (y, of_y))]
    if lengths[0] != lengths[1]:
        has = [f"{n[0]} elements" if len(n) == 1 else f"the lengths {n}" for n in lengths]
        where = "all axes" if axis is None else f"axis {axis}"
        raise ValueError(
            f"samesum: x has {has[0]} along {where} and y has {has[1]}; pass inputs of one length, since only the "
            "other axes are broadcast"
        )
    shapes = tuple(x.shape), tuple(y.shape)
    axes = of_x if x.ndim > y.ndim else of_y
    if any(d - x.ndim != e - y.ndim for d, e in zip(of_x, of_y)):
        if x.ndim < y.ndim:
            x = _with_axes(namespace, x, of_x, y.ndim, of_y)
        else:
            y = _with_axes(namespace, y, of_y, x.ndim, of_x)
    if any(m != n and m != 1 and n != 1 for m, n in zip(x.shape[::-1], y.shape[::-1])):
        raise ValueError(
            f"samesum: x has shape {shapes[0]} and y {shapes[1]}; axes that are not reduced must agree, or have "
            "length 1"
        )
    return x, y, axes


def _with_axes(namespace: Any, a: Any, axes: tuple[int, ...], ndim: int, places: tuple[int, ...]) -> Any:
    """Moves the axes of an array to `places` of one with `ndim` axes, whose first other axes have length 1."""
    last = tuple(range(-len(axes), 0))
    return namespace.moveaxis(namespace.moveaxis(a, axes, last)[(None,) * (ndim - a.ndim)], last, places)


def layout_of(shape: Sequence[int], strides: Sequence[int], reduced: Sequence[int]) -> Layout | None:
    """Returns the layout that reduces the axes `reduced` in row-major order; None if there is none.

    Results are in row-major order of the other axes.
    """
    found = _core.layout_of(shape, strides, reduced)
    return None if found is None else Layout(*found)
