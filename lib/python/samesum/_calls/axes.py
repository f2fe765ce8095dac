"""Calls of the library that reduce axes of an array in memory: a result for each row, or for each element."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import beside, packed_rows, places_of, takes_part
from .._elements.formats import DTYPES
from .._elements.layout import Layout, axes_last, layout_of, reduced_shape, rows, vector
from .._elements.library import View
from .arguments import Options
from .methods import Method
from .results import result_array

run_call = _core.run


def run(
    method: Method, format: str, x: View, y: View | None, layout: Layout, out: View, out_size: int, out_stride: int,
    threads: int, ddof: float, grid: int | None = None, where: View | None = None, skipna: bool = False,
    offsets: View | None = None,
) -> None:  # fmt: skip
    """Runs one call. If the method reduces single vectors only, they are contiguous."""
    run_call(
        method, format, x.address, math.prod(x.shape) if offsets else layout.extent, layout, out.address, out_size,
        x.device, x.stream, y=y.address if y else 0, out_stride=out_stride, threads=threads, ddof=ddof, grid=grid,
        where=where.address if where else 0, skip_nan=skipna, offsets=offsets.address if offsets else 0,
    )  # fmt: skip


def _needs_vectors(method: Method, format: str, layout: Layout) -> bool:
    """Whether the method reduces single contiguous vectors only."""
    return method.backend == "cuda" and layout != vector(layout.n) and not _core.accepts_layout(method, format, layout)


def per_axis(library: Any, method: Method, format: str, a: Any, b: Any, axes: tuple[int, ...], o: Options) -> Any:
    """Returns a result for each row of the axes, or two. The options are checked."""
    inputs = [a] if b is None else [a, b]
    masks = [] if o.where is None else [o.where]
    if (masks or o.skipna) and library.view(a).device >= 0:
        return _per_packed_row(library, method, format, inputs, axes, o)
    shape, strides = tuple(a.shape), [library.strides(c) for c in inputs + masks]
    repeated = [d for d, n in enumerate(shape) if n > 1 and d not in axes and not any(s[d] for s in strides)]
    if repeated:  # by broadcasting: each result is computed once
        once = tuple(slice(1) if d in repeated else slice(None) for d in range(a.ndim))
        b = None if b is None else b[once]
        where = None if o.where is None else o.where[once]
        result = per_axis(library, method, format, a[once], b, axes, o._replace(out=None, keepdims=True, where=where))
        whole = reduced_shape(shape, axes, True) + tuple(result.shape[a.ndim :])
        whole_result = library.contiguous(library.namespace.broadcast_to(result, whole))
        return whole_result.reshape(reduced_shape(shape, axes, o.keepdims) + whole[a.ndim :])
    masks = [beside(library, a, mask) for mask in masks]
    layout = layout_of(shape, strides[0], axes)
    if layout is not None and any(layout_of(shape, library.strides(c), axes) != layout for c in inputs[1:] + masks):
        layout = None
    if layout is None or _needs_vectors(method, format, layout):
        # One copy, in which the elements of each result are contiguous.
        order, _ = axes_last(a.ndim, axes)
        inputs, masks = ([library.contiguous(library.transposed(c, order)) for c in all] for all in (inputs, masks))
        layout = rows(math.prod(reduced_shape(shape, axes, False)), math.prod(shape[d] for d in axes))
    result = _results_of_axes(library, method, inputs[0], shape, axes, o)
    if layout.results:
        x, *others = [library.view(c) for c in inputs]
        run(
            method, format, x, others[0] if others else None, layout, library.view(result),
            layout.results * method.results, 0, o.threads, o.ddof, o.grid, library.view(masks[0]) if masks else None,
            o.skipna,
        )  # fmt: skip
    return result


def _results_of_axes(
    library: Any, method: Method, like: Any, shape: tuple[int, ...], axes: tuple[int, ...], o: Options
) -> Any:
    """Returns the array for the results of reducing the axes of an array of that shape."""
    whole = reduced_shape(shape, axes, o.keepdims) + ((2,) if method.results == 2 else ())
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    return result_array(library, o.out if method.results == 1 else None, whole, dtype, like)


def _per_packed_row(
    library: Any, method: Method, format: str, inputs: list[Any], axes: tuple[int, ...], o: Options
) -> Any:
    """Returns a result for each row of the axes from its elements that take part, which the library packs on a GPU."""
    takes = takes_part(library, o.where, o.skipna, *inputs)
    packed, offsets, flags = packed_rows(library, inputs, takes, axes)
    result = _results_of_axes(library, method, inputs[0], tuple(inputs[0].shape), axes, o)
    count = offsets.shape[0] - 1
    if count:
        x, *others = [library.view(c) for c in packed]
        run(
            method, format, x, others[0] if others else None, Layout(count, 0, 1, 0, 1), library.view(result),
            count * method.results, 0, o.threads, o.ddof, o.grid, offsets=library.view(offsets),
        )  # fmt: skip
        if method.returns_index:
            library.copy_to(result, places_of(library, result, offsets, flags))
    return result


def per_element(
    library: Any, method: Method, format: str, a: Any, axes: tuple[int, ...], out: Any, threads: int
) -> Any:
    order, back = axes_last(a.ndim, axes)
    moved = library.transposed(a, order)
    kept = a.ndim - len(axes)
    n = math.prod(moved.shape[kept:])
    layout = layout_of(moved.shape, library.strides(moved), range(kept, a.ndim))
    if layout is None or layout.inner != 1 or layout.stride != 1 or layout.outer_stride < n:
        moved = library.contiguous(moved)
        layout = rows(math.prod(moved.shape[:kept]), n)
    straight = back == tuple(range(a.ndim))
    result_format = format if method.keeps_format else method.format
    result = result_array(library, out if straight else None, tuple(moved.shape), DTYPES[result_format], a)
    if layout.results and n:
        run(method, format, library.view(moved), None, layout, library.view(result), layout.outer * n, n, threads, 0)
    return result if straight else library.transposed(result, back)
