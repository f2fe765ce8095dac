"""Calls of the library that reduce axes of an array in memory: a result for each row, or for each element.

A call comes with arrays of its library, a method and a format; its options are checked.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import beside, packed_rows, places_of, takes_part
from .._elements.formats import DTYPES
from .._elements.layout import Layout, axes_last, layout_of, reduced_shape, rows, vector
from .arguments import Call
from .results import result_array


def per_axis(call: Call) -> Any:
    """Returns a result for each row of the axes, or two."""
    library, shape, axes = call.library, tuple(call.x.shape), call.axes
    if (call.where is not None or call.skipna) and library.view(call.x).device >= 0:
        return _per_packed_row(call)
    strides = [library.strides(a) for a in (call.x, call.y, call.where) if a is not None]
    repeated = [d for d, n in enumerate(shape) if n > 1 and d not in axes and not any(s[d] for s in strides)]
    if repeated:  # by broadcasting
        return _each_once(call, repeated)
    call = call.copy()
    if call.where is not None:
        call.where = beside(library, call.x, call.where)
    inputs = [a for a in (call.x, call.y, call.where) if a is not None]
    call.layout = layout_of(shape, strides[0], axes)
    if call.layout is not None and any(layout_of(shape, library.strides(a), axes) != call.layout for a in inputs[1:]):
        call.layout = None
    if call.layout is None or _needs_vectors(call):
        # One copy, in which the elements of each result are contiguous.
        order, _ = axes_last(len(shape), axes)
        call.x, call.y, call.where = (
            None if a is None else library.contiguous(library.transposed(a, order))
            for a in (call.x, call.y, call.where)
        )
        call.layout = rows(math.prod(reduced_shape(shape, axes, False)), math.prod(shape[d] for d in axes))
    call.result = _results_of_axes(call, shape)
    if call.layout.results:
        _core.run(call)
    return call.result


def _needs_vectors(call: Call) -> bool:
    """Whether the method reduces single contiguous vectors only."""
    if call.method.backend != "cuda" or call.layout == vector(call.layout.n):
        return False
    return not _core.accepts_layout(call.method, call.format, call.layout)


def _each_once(call: Call, repeated: list[int]) -> Any:
    """Returns a result for each row of the axes, of which those along `repeated` are equal."""
    library, ndim, shape = call.library, call.x.ndim, tuple(call.x.shape)
    once = tuple(slice(1) if d in repeated else slice(None) for d in range(ndim))
    short = call.copy()
    short.x, short.y, short.where = (None if a is None else a[once] for a in (call.x, call.y, call.where))
    short.out, short.keepdims = None, True
    result = per_axis(short)
    whole = reduced_shape(shape, call.axes, True) + tuple(result.shape[ndim:])
    whole_result = library.contiguous(library.namespace.broadcast_to(result, whole))
    return whole_result.reshape(reduced_shape(shape, call.axes, call.keepdims) + whole[ndim:])


def _results_of_axes(call: Call, shape: tuple[int, ...]) -> Any:
    """Returns the array for the results of reducing the axes of an array of that shape."""
    method = call.method
    whole = reduced_shape(shape, call.axes, call.keepdims) + ((2,) if method.results == 2 else ())
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    out = call.out if method.results == 1 and call.finish is None else None
    return result_array(call.library, out, whole, dtype, call.x)


def _per_packed_row(call: Call) -> Any:
    """Returns a result for each row of the axes from its elements that take part, which the library packs on a GPU."""
    library, shape = call.library, tuple(call.x.shape)
    inputs = [a for a in (call.x, call.y) if a is not None]
    takes = takes_part(library, call.where, call.skipna, *inputs)
    packed, offsets, flags = packed_rows(library, inputs, takes, call.axes)
    call = call.copy()
    call.result = _results_of_axes(call, shape)
    call.x, call.y = packed[0], packed[1] if len(packed) > 1 else None
    call.where, call.skipna, call.offsets = None, False, offsets
    call.layout = Layout(offsets.shape[0] - 1, 0, 1, 0, 1)
    if call.layout.results:
        _core.run(call)
        if call.method.returns_index:
            library.copy_to(call.result, places_of(library, call.result, offsets, flags))
    return call.result


def per_element(call: Call) -> Any:
    """Returns a result for each element, along axes that follow each other in memory after a copy at most."""
    library, a, method = call.library, call.x, call.method
    order, back = axes_last(a.ndim, call.axes)
    moved = library.transposed(a, order)
    kept = a.ndim - len(call.axes)
    n = math.prod(moved.shape[kept:])
    layout = layout_of(moved.shape, library.strides(moved), range(kept, a.ndim))
    if layout is None or layout.inner != 1 or layout.stride != 1 or layout.outer_stride < n:
        moved = library.contiguous(moved)
        layout = rows(math.prod(moved.shape[:kept]), n)
    straight = back == tuple(range(a.ndim))
    dtype = DTYPES[call.format if method.keeps_format else method.format]
    result = result_array(library, call.out if straight else None, tuple(moved.shape), dtype, a)
    if layout.results and n:
        call = call.copy()
        call.x, call.layout, call.result, call.result_stride = moved, layout, result, n
        _core.run(call)
    return result if straight else library.transposed(result, back)
