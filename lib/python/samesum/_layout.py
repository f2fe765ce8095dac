"""Axes and layouts: which elements each result reduces, without a copy where the library can express it."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple, Sequence


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

    @property
    def extent(self) -> int:
        """Number of elements from the first to the last one that is read."""
        if self.results == 0 or self.n == 0:
            return 0
        return (self.outer - 1) * self.outer_stride + (self.n - 1) * self.stride + self.inner


def vector(n: int) -> Layout:
    return Layout(1, n, 1, n, 1)


def rows(count: int, n: int, row_stride: int | None = None) -> Layout:
    return Layout(count, n, 1, n if row_stride is None else row_stride, 1)


def normalised_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Returns the reduced axes in ascending order.

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
            raise IndexError(f"samesum: axis {a} is out of range for an array with {ndim} axes")
        axes.append(a % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"samesum: axis {axis} names an axis twice")
    return tuple(sorted(axes))


def _collapsed(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Joins neighbouring axes whose elements lie at one stride, and drops axes of length 1."""
    axes: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * stride:
            axes[-1] = (axes[-1][0] * size, stride)
        else:
            axes.append((size, stride))
    return axes


def layout_of(shape: Sequence[int], strides: Sequence[int], reduced: Sequence[int]) -> Layout | None:
    """Returns the layout that reduces the axes `reduced` in row-major order; None if there is none.

    Results are in row-major order of the other axes.
    """
    kept = [a for a in range(len(shape)) if a not in reduced]
    count, n = math.prod(shape[a] for a in kept), math.prod(shape[a] for a in reduced)
    if count == 0 or n == 0:
        return Layout(count, n, 1, 0, 1)
    if any(stride < 0 for size, stride in zip(shape, strides) if size > 1):
        return None
    inside = _collapsed([shape[a] for a in reduced], [strides[a] for a in reduced])
    outside = _collapsed([shape[a] for a in kept], [strides[a] for a in kept])
    if len(inside) > 1 or len(outside) > 2:
        return None
    stride = inside[0][1] if inside else 1
    if n > 1 and stride == 0:
        return None
    if not outside:
        return Layout(1, n, 1, n, stride)
    size, step = outside[-1]
    columns = step == 1 and (n == 1 or stride >= size)
    if len(outside) == 2:
        return Layout(outside[0][0], n, size, outside[0][1], stride if n > 1 else size) if columns else None
    if columns and stride != 1:
        return Layout(1, n, size, 0, stride if n > 1 else size)
    return Layout(size, n, 1, step, stride)
