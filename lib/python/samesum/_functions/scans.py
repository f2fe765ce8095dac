"""The scans: a result for each element, that of the elements up to it."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import takes_part, without_mask
from .._calls.arguments import check_grid, check_threads, names_of_torch, refuse_traced
from .._calls.axes import run_call
from .._calls.inputs import read_floats
from .._calls.methods import Method
from .._calls.results import delivered, result_array
from .._elements.carried import keeping_unit
from .._elements.formats import DTYPES, format_of
from .._elements.layout import along, axes_last, normalised_axes
from .._frames.results import like_column


@keeping_unit
def scan(
    operation: str,
    x: Any,
    *,
    axis: int | None = None,
    flattens: bool = True,
    exclusive: bool = False,
    include_initial: bool = False,
    dtype: Any = None,
    out: Any = None,
    method: str | Method | None = None,
    threads: int = 0,
    grid: int | None = None,
    where: Any = None,
    skipna: bool = False,
    dim: int | None = None,
    function: str = "",
) -> Any:
    """Scans x along `axis`, or all elements in row-major order, by a method of `operation`.

    `function` is the name of the public function, if that is another one. Without `flattens`, an array of
    several axes needs `axis`. With `include_initial`, the result for no elements comes first, and the result is one
    longer than x.
    """
    source, function = x, function or operation
    x, where = without_mask(x, where, function)
    axis, _ = names_of_torch(x, axis, dim)
    refuse_traced(function, x)
    if axis is not None and isinstance(axis, (tuple, list)):
        raise TypeError(
            f"samesum: axis is {axis!r}; {function} takes one axis, or None for all elements in row-major order"
        )
    threads, grid = check_threads(threads), check_grid(grid)
    library, a, mask, chosen = read_floats(operation, x, where, dtype, out, method)
    format = format_of(a.dtype)
    if axis is None and a.ndim > 1 and not flattens:
        raise ValueError(f"samesum: x has {a.ndim} axes; pass axis=")
    if axis is None:
        a = library.contiguous(a).reshape(-1)
        mask = None if mask is None else library.contiguous(mask).reshape(-1)
    axis = normalised_axes(0 if axis is None else axis, a.ndim)[0]
    if (mask is not None or skipna) and library.view(a).device >= 0:
        takes = takes_part(library, mask, skipna, a)
        result = _scan_packed(library, chosen, format, a, takes, axis, exclusive, include_initial, threads, grid)
    else:
        result = scan_array(
            library, chosen, format, a, axis, out, exclusive, include_initial, threads, grid, mask, skipna
        )
    result = delivered(library, result, x, out)
    return result if out is not None else like_column(source, result)


def scan_array(
    library: Any, method: Method, format: str, a: Any, axis: int, out: Any = None, exclusive: bool = False,
    initial: bool = False, threads: int = 0, grid: int | None = None, mask: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Scans an array of `library`, whose elements have that format, along an axis that is not negative."""
    a = library.contiguous(a)
    shape = tuple(a.shape)
    layout = along(shape, axis)
    n, inner = layout.n, layout.inner
    whole = (*shape[:axis], n + 1, *shape[axis + 1 :]) if initial else shape
    result = result_array(library, out, whole, DTYPES[method.format], a)
    skipped, stride = 0, 0
    if initial:
        result[(slice(None),) * axis + (0,)] = _OF_NOTHING[method.operation]
        skipped, stride = inner, (n + 1) * inner
    if layout.results and n:
        first = library.view(result).address + skipped * _core.format_bytes[method.format]
        view = library.view(a)
        flags = None if mask is None else library.contiguous(mask)
        run_call(
            method, format, view.address, layout.results * n, layout, first, math.prod(whole) - skipped, view.device,
            view.stream, out_stride=stride, threads=threads, exclusive=exclusive, grid=grid,
            where=0 if flags is None else library.view(flags).address, skip_nan=bool(skipna),
        )  # fmt: skip
    return result


def _scan_packed(
    library: Any, method: Method, format: str, a: Any, takes: Any, axis: int, exclusive: bool, initial: bool,
    threads: int, grid: int | None,
) -> Any:  # fmt: skip
    """Scans the elements that take part vector by vector, which the library packs on a GPU."""
    order, back = axes_last(a.ndim, (axis,))
    rows, flags = (library.contiguous(library.transposed(c, order)) for c in (a, takes))
    shape, n = tuple(rows.shape), a.shape[axis]
    results = library.empty((math.prod(shape[:-1]), n + 1 if initial else n), DTYPES[method.format], rows)
    for k, (row, taken) in enumerate(zip(rows.reshape((-1, n)), flags.reshape((-1, n)))):
        packed = scan_array(library, method, format, row[taken], 0, None, False, False, threads, grid)
        # Result i is that of the first i elements that take part.
        one = scan_array(library, method, format, row[:1], 0, None, True)
        of_first = library.namespace.concatenate((one, packed))
        count = library.astype(taken, "int64").cumsum(0)
        if exclusive:
            count = count - library.astype(taken, "int64")
        results[k, int(initial) :] = of_first[count]
        if initial:
            results[k, :1] = of_first[:1]
    return library.transposed(results.reshape((*shape[:-1], -1)), back)


_OF_NOTHING = {"cumsum": 0, "cumprod": 1}
