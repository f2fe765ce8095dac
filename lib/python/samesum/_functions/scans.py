"""The scans: a result for each element, that of the elements up to it."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import takes_part, without_mask
from .._calls.arguments import Call, check_grid, check_threads, names_of_torch
from .._calls.inputs import read_floats
from .._calls.results import delivered, result_array
from .._elements.carried import has_unit, in_its_unit
from .._elements.formats import DTYPES
from .._elements.layout import along, axes_last, normalised_axes
from .._elements.library import library_of
from .._frames.results import like_column


_OF_NOTHING = {"cumsum": 0, "cumprod": 1}


def scan(call: Call) -> Any:
    """Scans x along `axis`, or all elements in row-major order, by a method of an operation.

    With `include_initial`, the result for no elements comes first, and the result is one longer than x.
    """
    if has_unit(call):
        return in_its_unit(call, scan)
    source, function = call.x, call.function or call.operation
    call.x, call.where = without_mask(call.x, call.where, function)
    names_of_torch(call)
    library_of(call.x).refuse_traced(function, call.x, "x")
    if call.axis is not None and isinstance(call.axis, (tuple, list)):
        raise TypeError(
            f"samesum: axis is {call.axis!r}; {function} takes one axis, or None for all elements in row-major order"
        )
    x = call.x
    call.threads, call.grid = check_threads(call.threads), check_grid(call.grid)
    read_floats(call)
    if call.axis is None and call.x.ndim > 1 and function.startswith("cumulative_"):
        raise ValueError(f"samesum: x has {call.x.ndim} axes; pass axis=")
    if call.axis is None:
        call.x, call.where = (
            None if a is None else call.library.contiguous(a).reshape(-1) for a in (call.x, call.where)
        )
    call.axis = normalised_axes(0 if call.axis is None else call.axis, call.x.ndim)[0]
    call.skipna = bool(call.skipna)
    selects = call.where is not None or call.skipna
    scanned = _scan_packed if selects and call.library.view(call.x).device >= 0 else scan_array
    result = delivered(call.library, scanned(call), x, call.out)
    return result if call.out is not None else like_column(source, result)


def scan_array(call: Call) -> Any:
    """Scans an array of the library of the call along an axis that is not negative."""
    library, method, axis = call.library, call.method, call.axis
    call = call.copy()
    call.x = library.contiguous(call.x)
    call.where = None if call.where is None else library.contiguous(call.where)
    shape = tuple(call.x.shape)
    call.layout = layout = along(shape, axis)
    whole = (*shape[:axis], layout.n + 1, *shape[axis + 1 :]) if call.include_initial else shape
    result = call.result = result_array(library, call.out, whole, DTYPES[method.format], call.x)
    if call.include_initial:
        result[(slice(None),) * axis + (0,)] = _OF_NOTHING[method.operation]
        call.result, call.result_stride = result.reshape(-1)[layout.inner :], (layout.n + 1) * layout.inner
    if layout.results and layout.n:
        _core.run(call)
    return result


def _scan_packed(call: Call) -> Any:
    """Scans the elements that take part vector by vector, which the library packs on a GPU."""
    library, a = call.library, call.x
    takes = takes_part(library, call.where, call.skipna, a)
    order, back = axes_last(a.ndim, (call.axis,))
    rows, flags = (library.contiguous(library.transposed(c, order)) for c in (a, takes))
    shape, n, initial = tuple(rows.shape), a.shape[call.axis], bool(call.include_initial)
    results = library.empty((math.prod(shape[:-1]), n + 1 if initial else n), DTYPES[call.method.format], rows)
    each = call.copy()
    each.axis, each.out, each.include_initial, each.where, each.skipna = 0, None, False, None, False
    for k, (row, taken) in enumerate(zip(rows.reshape((-1, n)), flags.reshape((-1, n)))):
        each.x, each.exclusive = row[taken], False
        packed = scan_array(each)
        # Result i is that of the first i elements that take part.
        each.x, each.exclusive = row[:1], True
        of_first = library.namespace.concatenate((scan_array(each), packed))
        count = library.astype(taken, "int64").cumsum(0)
        if call.exclusive:
            count = count - library.astype(taken, "int64")
        results[k, int(initial) :] = of_first[count]
        if initial:
            results[k, :1] = of_first[:1]
    return library.transposed(results.reshape((*shape[:-1], -1)), back)
