"""Reductions of columns and frames."""

from __future__ import annotations

import sys
from typing import Any, Callable

from .._elements.layout import normalised_axes
from .flags import both, column_of, flags_beside, rows_of
from .kinds import OTHER, Pair, kind_of
from .reading import Table, joined, read_chunks, wide_matrix, without_nulls
from .results import as_column, like_column, named_results, null_for

PER_ELEMENT = ("softmax", "log_softmax")
"""Operations that have a result for each element."""


def reduce_frames(reduce: Callable[..., Any], reduce_chunks: Callable[..., Any], call: Any) -> Any:
    """Makes a call for a column or a frame by `reduce`, which makes it for arrays.

    `reduce_chunks` makes it for a column in several chunks; it returns None for other options than it has.
    """
    x, where = call.x, call.where
    if (kind_of(x) or OTHER).name == "dask":
        x = x.compute()
    if call.operation in PER_ELEMENT:
        call.x, call.where = without_nulls(x, "x"), None
        return like_column(x, reduce(call))
    wide = wide_matrix(x)
    found = read_chunks(x) if wide is None else Table([*x.columns], [])
    if not isinstance(found, Table):
        return _of_column(reduce, reduce_chunks, call, found)
    axes = (0,) if call.axis is None else normalised_axes(call.axis, 2, "a frame")
    if call.out is not None or call.keepdims:
        name = "keepdims" if call.out is None else "out"
        raise TypeError(f"samesum: {name} does not go with a frame, whose results have names; leave it out")
    if not axes:
        raise ValueError(
            "samesum: axis is (); a frame is reduced over its rows (0, the default), its columns (1), or both (0, 1)"
        )
    if where is not None:
        where = rows_of(flags_beside(where, found.names), len(found.names))
    call.axis = None
    if wide is None and axes == (0,):
        results = []
        for i, chunks in enumerate(found.chunks):
            call.where = None if where is None else column_of(where, i)
            try:
                results.append(_of_column(reduce, reduce_chunks, call, chunks))
            except ValueError as error:  # an extremum of no integers is null
                dtype = "int64" if call.operation.startswith("arg") else chunks[0].values.dtype
                results.append(null_for(error, dtype))
        return named_results(x, found.names, results)
    values, valid = found.matrix() if wide is None else Pair(wide, None)
    call.x, call.axis, call.where = values, axes, both(valid, where)
    result = reduce(call)
    if len(axes) == 2:
        return result
    return as_column(x, result) if axes == (1,) else sys.modules["pandas"].Series(result, index=x.columns)


def _of_column(reduce: Callable[..., Any], reduce_chunks: Callable[..., Any], call: Any, chunks: list[Pair]) -> Any:
    """Makes the call for a column."""
    result = reduce_chunks(call, chunks) if len(chunks) > 1 and call.where is None else None
    if result is not None:
        return result
    call = call.copy()
    call.x, valid = joined(chunks)
    call.where = call.where if valid is None else both(valid, call.where)
    return reduce(call)
