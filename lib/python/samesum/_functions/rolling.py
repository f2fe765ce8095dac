"""The rolling operations: a result for each element, that of a window of elements around it.

Each function passes its arguments to a call.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import is_masked, without_mask
from .._calls.arguments import Call, check_grid, check_threads, correction_of, whole_number
from .._calls.inputs import read_floats
from .._calls.methods import MethodName
from .._calls.results import delivered, result_array
from .._elements.carried import has_unit, in_its_unit
from .._elements.formats import DTYPES
from .._elements.layout import along, normalised_axes
from .._elements.library import library_of
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
    return roll(Call("rolling_sum", **locals()))


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
    return roll(Call("rolling_mean", **locals()))


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
    divisor = correction_of(correction, ddof)
    return roll(
        Call(
            "rolling_var", x, axis, dtype, out, method=method, threads=threads, skipna=skipna, ddof=divisor,
            window=window, min_periods=min_periods, center=center,
        )
    )  # fmt: skip


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
    divisor = correction_of(correction, ddof)
    return roll(
        Call(
            "rolling_std", x, axis, dtype, out, method=method, threads=threads, skipna=skipna, ddof=divisor,
            window=window, min_periods=min_periods, center=center,
        )
    )  # fmt: skip


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
    return roll(Call("rolling_min", **locals()))


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
    return roll(Call("rolling_max", **locals()))


def roll(call: Call) -> Any:
    """Moves a window along an axis of x, and reduces its elements by a method of an operation.

    rolling_std, which has no methods of its own, is the root of rolling_var.
    """
    if has_unit(call):
        return in_its_unit(call, roll)
    operation, axis, source, out = call.operation, call.axis, call.x, call.out
    library_of(call.x).refuse_traced(operation, call.x, "x")
    if axis is None or isinstance(axis, (tuple, list)):
        raise TypeError(f"samesum: axis is {axis!r}; {operation} takes one axis")
    call.window = _count("window", call.window, 1, ", the number of elements")
    if call.min_periods is not None:
        call.min_periods = _count("min_periods", call.min_periods, 0, ", or None for the window")
    call.threads, call.grid = check_threads(call.threads), check_grid(call.grid)
    call.x, valid = without_mask(call.x, None, operation)
    if valid is not None and not call.skipna and not valid.all():
        raise _nulls_error(operation, source, valid.size - int(valid.sum()))
    x, call.where = call.x, valid
    call.operation = "rolling_var" if operation == "rolling_std" else operation
    read_floats(call)
    library, a = call.library, call.x
    if a.ndim == 0:
        raise ValueError(f"samesum: x is a number; {operation} moves a window along an axis of an array")
    if valid is not None and not valid.all():  # a NaN that is skipped is as if absent, as a null is
        a = a.copy()
        a[~valid] = math.nan
    call.layout = along(tuple(a.shape), normalised_axes(axis, a.ndim)[0])
    call.x, call.where = library.contiguous(a), None
    apart = None if operation == "rolling_std" or out is None or _overlap(call) else out
    result = call.result = result_array(library, apart, tuple(a.shape), DTYPES[call.method.format], call.x)
    if call.layout.results and call.layout.n:
        _core.run(call)
    if operation == "rolling_std":
        result = square_root(library.namespace, result)
    result = delivered(library, result, x, out)
    return result if out is not None else like_column(source, result)


def _nulls_error(operation: str, x: Any, count: int) -> ValueError:
    has = f"hides {count} element{'s' * (count > 1)}" if is_masked(x) else f"has {count} null{'s' * (count > 1)}"
    return ValueError(f"samesum: {operation}: x {has}; pass skipna=True, with which windows leave out nulls and NaN")


def _overlap(call: Call) -> bool:
    """Whether results that are written to `out` would replace elements of x that later windows still need."""
    library, a, out = call.library, call.x, call.out
    if not isinstance(out, library.kind):
        return False  # refused elsewhere
    first, second = library.view(a).address, library.view(out).address
    size = math.prod(a.shape) * _core.format_bytes[call.format]
    extent = sum((n - 1) * abs(stride) for n, stride in zip(out.shape, library.strides(out)) if n) + 1
    return first < second + extent * out.dtype.itemsize and second < first + size


def _count(name: str, value: Any, least: int, meaning: str) -> int:
    count = whole_number(name, value, meaning)
    if count < least:
        raise ValueError(f"samesum: {name} is {value!r}; use {least} or more{meaning}")
    return min(count, _MOST)
