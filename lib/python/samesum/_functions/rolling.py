"""The rolling operations: a result for each element, that of a window of elements around it.

Each function passes its arguments, which are all its local names, to `roll`.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import is_masked, without_mask
from .._calls.arguments import check_grid, check_threads, correction_of, refuse_traced, whole_number
from .._calls.axes import run_call
from .._calls.inputs import read_floats
from .._calls.methods import Method, MethodName
from .._calls.results import delivered, result_array
from .._elements.carried import keeping_unit
from .._elements.formats import DTYPES, format_of
from .._elements.layout import along, normalised_axes
from .._elements.traced import square_root
from .._frames.results import like_column
from .parameters import described

_MOST = 1 << 62  # beyond the limits of the library


@described
def rolling_sum(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
    grid: int | None = None,
) -> Any:  # fmt: skip
    """Returns the sums of the elements of each window along `axis`, by default correctly rounded.

    Each result has the bits of `sum` of the elements of its window, whatever came before them: nothing drifts. The
    time for an element does not depend on the window; on a GPU it grows with the logarithm of the window.

    >>> rolling_sum([1e16, 1.0, 1.0, 1.0], 2).tolist()
    [nan, 1e+16, 2.0, 2.0]
    >>> rolling_sum([1.0, 2.0, 3.0], 2, min_periods=1).tolist()
    [1.0, 3.0, 5.0]

    {parameters}
    """
    return roll("rolling_sum", **locals())


@described
def rolling_mean(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
    grid: int | None = None,
) -> Any:  # fmt: skip
    """Returns the means of the elements of each window along `axis`, by default correctly rounded.

    Each result has the bits of `mean` of the elements of its window.

    >>> rolling_mean([3.0, 1.0, 2.0, 6.0], 3, center=True, min_periods=1).tolist()
    [2.0, 2.0, 3.0, 4.0]

    {parameters}
    """
    return roll("rolling_mean", **locals())


@described
def rolling_var(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, correction: float | None = None, ddof: float | None = None, dtype: Any = None,
    out: Any = None, method: MethodName = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Returns the variances of the elements of each window along `axis`, correctly rounded.

    Each result has the bits of `var` of the elements of its window. The sum of squared deviations is divided by
    n - correction: 0, the default, gives the variance of a population; the default of pandas is 1. It must be a whole
    number. `ddof` is NumPy's name for `correction`.

    >>> rolling_var([1.0, 3.0, 3.0, 5.0], 2, ddof=1).tolist()
    [nan, 2.0, 0.0, 2.0]

    {parameters}
    """
    return roll("rolling_var", **locals())


@described
def rolling_std(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, correction: float | None = None, ddof: float | None = None, dtype: Any = None,
    out: Any = None, method: MethodName = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Returns the standard deviations of each window: the rounded roots of `rolling_var`, whose arguments it has.

    Each result has the bits of `std` of the elements of its window.

    >>> rolling_std([1.0, 5.0, 5.0, 9.0], 2).tolist()
    [nan, 2.0, 0.0, 2.0]

    {parameters}
    """
    return roll("rolling_std", **locals())


@described
def rolling_min(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Returns the smallest elements of each window along `axis`; NaN if there is one.

    >>> rolling_min([3.0, 1.0, 2.0, 5.0], 2, min_periods=1).tolist()
    [3.0, 1.0, 1.0, 2.0]

    {parameters}
    """
    return roll("rolling_min", **locals())


@described
def rolling_max(
    x: Any, /, window: int, axis: int = -1, *, min_periods: int | None = None, center: bool = False,
    skipna: bool = False, dtype: Any = None, out: Any = None, method: MethodName = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Returns the largest elements of each window along `axis`; NaN if there is one.

    >>> rolling_max([3.0, 1.0, 2.0, 5.0], 2, min_periods=1).tolist()
    [3.0, 3.0, 2.0, 5.0]

    {parameters}
    """
    return roll("rolling_max", **locals())


@keeping_unit
def roll(
    operation: str,
    x: Any,
    *,
    window: int,
    axis: int = -1,
    min_periods: int | None = None,
    center: bool = False,
    skipna: bool = False,
    correction: float | None = None,
    ddof: float | None = None,
    dtype: Any = None,
    out: Any = None,
    method: str | Method | None = None,
    threads: int = 0,
    grid: int | None = None,
) -> Any:
    """Moves a window along an axis of x, and reduces its elements by a method of `operation`.

    rolling_std, which has no methods of its own, is the root of rolling_var.
    """
    is_root = operation == "rolling_std"
    refuse_traced(operation, x)
    if axis is None or isinstance(axis, (tuple, list)):
        raise TypeError(f"samesum: axis is {axis!r}; {operation} takes one axis")
    size = _count("window", window, 1, ", the number of elements")
    least = None if min_periods is None else _count("min_periods", min_periods, 0, ", or None for the window")
    subtracted = correction_of(correction, ddof)
    threads, grid = check_threads(threads), check_grid(grid)
    source = x
    x, valid = without_mask(x, None, operation)
    if valid is not None and not skipna and not valid.all():
        raise _nulls_error(operation, source, valid.size - int(valid.sum()))
    computed = "rolling_var" if is_root else operation
    library, a, _, chosen = read_floats(computed, x, valid, dtype, out, method)
    if a.ndim == 0:
        raise ValueError(f"samesum: x is a number; {operation} moves a window along an axis of an array")
    if valid is not None and not valid.all():  # a NaN that is skipped is as if absent, as a null is
        a = a.copy()
        a[~valid] = math.nan
    format, shape = format_of(a.dtype), tuple(a.shape)
    layout = along(shape, normalised_axes(axis, a.ndim)[0])
    a = library.contiguous(a)
    view = library.view(a)
    apart = None if out is None or is_root or _overlap(library, a, format, out) else out
    result = result_array(library, apart, shape, DTYPES[chosen.format], a)
    if layout.results and layout.n:
        run_call(
            chosen, format, view.address, math.prod(shape), layout, library.view(result).address, math.prod(shape),
            view.device, view.stream, threads=threads, ddof=subtracted, grid=grid, window=size, min_periods=least,
            centred=bool(center), skip_nan=bool(skipna),
        )  # fmt: skip
    if is_root:
        result = square_root(library.namespace, result)
    result = delivered(library, result, x, out)
    return result if out is not None else like_column(source, result)


def _nulls_error(operation: str, x: Any, count: int) -> ValueError:
    has = f"hides {count} element{'s' * (count > 1)}" if is_masked(x) else f"has {count} null{'s' * (count > 1)}"
    return ValueError(f"samesum: {operation}: x {has}; pass skipna=True, with which windows leave out nulls and NaN")


def _overlap(library: Any, a: Any, format: str, out: Any) -> bool:
    """Whether results that are written to `out` would replace elements of a that later windows still need."""
    if not isinstance(out, library.kind):
        return False  # refused elsewhere
    first, second = library.view(a).address, library.view(out).address
    size = math.prod(a.shape) * _core.format_bytes[format]
    extent = sum((n - 1) * abs(stride) for n, stride in zip(out.shape, library.strides(out)) if n) + 1
    return first < second + extent * out.dtype.itemsize and second < first + size


def _count(name: str, value: Any, least: int, meaning: str) -> int:
    count = whole_number(name, value, meaning)
    if count < least:
        raise ValueError(f"samesum: {name} is {value!r}; use {least} or more{meaning}")
    return min(count, _MOST)
