"""Calls for the Series and DataFrames of dask.dataframe."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Callable

import dask.array as da
import numpy as np

from .._elements.formats import dtype_name, format_of
from .._frames.kinds import kind_of
from .._frames.reading import require_different
from . import _tasks as tasks
from ._graph import as_task, call_of, few_of, operation_of


def is_of_frames(x: Any) -> bool:
    kind = kind_of(x)
    return kind is not None and kind.name == "dask"


def reduce_frame(
    function: Callable[..., Any], inputs: list[Any], options: dict[str, Any], dtype: Any, skipna: bool, split_every: int
) -> Any:  # fmt: skip
    """Makes one call for a Series or a DataFrame of dask.dataframe."""
    import dask.dataframe

    x, name = inputs[0], function.__name__
    if len(inputs) == 2:
        raise TypeError(f"samesum: {name} takes no frames of Dask; pass x.to_dask_array(lengths=True)")
    if options.pop("keepdims") or options.pop("axis") not in (None, 0, (0,)):
        raise ValueError(f"samesum: {name} reduces a frame of Dask over its rows; leave out axis and keepdims")
    if dtype is not None:
        format_of(dtype, "dtype")
        dtype = np.dtype(dtype_name(dtype))
    if x.ndim == 1:
        return _reduce_series(function, x, options, dtype, skipna, split_every)
    require_different([*x.columns], "x", "which Dask tells apart by their names alone; give them different names")
    results = [_reduce_series(function, x[column], options, dtype, skipna, split_every, True) for column in x.columns]
    meta = tasks.by_column(x.columns, [np.ones((), result.dtype)[()] for result in results])
    together = as_task(tasks.by_column)(x.columns, [result.to_delayed().item() for result in results])
    return dask.dataframe.from_delayed([together], meta=meta, verify_meta=False)


def _reduce_series(
    function: Callable[..., Any], x: Any, options: dict[str, Any], dtype: Any, skipna: bool, split_every: int,
    is_column: bool = False,
) -> da.Array:  # fmt: skip
    """Reduces a Series; each partition begins where the one before ends, which is known when they are computed.

    The result of a column of a frame may be null.
    """
    operation = operation_of(function)
    of_meta, _ = tasks.elements_of_partition(dtype, x._meta_nonempty)
    sample = function(np.ones(1, of_meta.dtype), **options)
    call = call_of(function.__name__, operation, format_of(of_meta.dtype), options, True, sample.dtype)
    parts, begin, begins = [], 0, None
    for partition in x.to_delayed():
        if operation.startswith("arg"):
            parts.append(as_task(tasks.index_partition)(call, dtype, skipna, begin, partition))
            begin = as_task(operator.add)(begin, as_task(len)(partition))
        else:
            packed = as_task(tasks.pack_partition)(dtype, skipna, partition)
            parts.append(as_task(tasks.reduce_packed)(call, begins, packed))
            begins = as_task(tasks.begins_after)(begins, packed)
    finish = tasks.finish_column if is_column else partial(tasks.finish_chunks, shape=())
    return da.from_delayed(as_task(finish)(call=call, chunks=few_of(parts, split_every)), (), call.dtype)
