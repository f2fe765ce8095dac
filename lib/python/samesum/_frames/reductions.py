"""Reductions of columns and frames."""

from __future__ import annotations

import sys
from typing import Any, Callable

from .._elements.layout import normalised_axes
from .flags import both, column_of, flags_beside, rows_of
from .kinds import OTHER, Pair, kind_of
from .reading import Table, joined, read_chunks, wide_matrix, without_nulls
from .results import as_column, like_column, named_results, value_or_null

PER_ELEMENT = ("softmax", "log_softmax")
"""Operations that have a result for each element."""


def reduce_frames(
    reduce: Callable[..., Any], reduce_chunks: Callable[..., Any], operation: str, x: Any, options: dict[str, Any]
) -> Any:
    """Makes a call for a column or a frame by `reduce`, which makes it for arrays.

    `reduce_chunks` makes it for a column in several chunks; it returns None for other options than it has.
    """
    if (kind_of(x) or OTHER).name == "dask":
        x = x.compute()
    where = options.pop("where", None)
    wide = wide_matrix(x)
    if operation in PER_ELEMENT:
        return like_column(x, reduce(operation, without_nulls(x, "x"), **options))

    def reduced(chunks: list[Pair], where: Any, **options: Any) -> Any:
        result = reduce_chunks(operation, chunks, options) if len(chunks) > 1 and where is None else None
        if result is not None:
            return result
        values, valid = joined(chunks)
        return reduce(operation, values, **options, where=both(valid, where))

    found = read_chunks(x) if wide is None else Table([*x.columns], [])
    if not isinstance(found, Table):
        return reduced(found, where, **options)
    axis = options.pop("axis", None)
    axes = (0,) if axis is None else normalised_axes(axis, 2, "a frame")
    given = {"out": options.get("out") is not None, "keepdims": options.get("keepdims")}
    for name in (name for name, is_given in given.items() if is_given):
        raise TypeError(f"samesum: {name} does not go with a frame, whose results have names; leave it out")
    if not axes:
        raise ValueError(
            "samesum: axis is (); a frame is reduced over its rows (0, the default), its columns (1), or both (0, 1)"
        )
    where = rows_of(flags_beside(where, found.names), len(found.names))
    if wide is None and axes == (0,):

        def of_column(i: int, chunks: list[Pair]) -> Any:
            dtype = "int64" if operation.startswith("arg") else chunks[0].values.dtype
            return value_or_null(lambda: reduced(chunks, column_of(where, i), **options), dtype)

        return named_results(x, found.names, [of_column(i, chunks) for i, chunks in enumerate(found.chunks)])
    values, valid = found.matrix() if wide is None else Pair(wide, None)
    result = reduce(operation, values, **options, axis=axes, where=both(valid, where))
    if len(axes) == 2:
        return result
    return as_column(x, result) if axes == (1,) else sys.modules["pandas"].Series(result, index=x.columns)
