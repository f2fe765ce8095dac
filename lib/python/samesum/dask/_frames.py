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
        call, parts = _parts_of_series(function, x, options, dtype, skipna)
        return _result_of(call, few_of(parts, split_every), partial(tasks.finish_chunks, shape=()))
    require_different([*x.columns], "x", "which Dask tells apart by their names alone; give them different names")
    results = []
    for column in x.columns:
        call, parts = _parts_of_series(function, x[column], options, dtype, skipna)
        results.append(_result_of(call, few_of(parts, split_every), tasks.finish_column))  # which may be null
    meta = tasks.by_column(x.columns, [np.ones((), result.dtype)[()] for result in results])
    together = as_task(tasks.by_column)(x.columns, [result.to_delayed().item() for result in results])
    return dask.dataframe.from_delayed([together], meta=meta, verify_meta=False)


def _result_of(call: tasks.Call, parts: list[Any], finish: Callable[..., Any]) -> da.Array:
    return da.from_delayed(as_task(finish)(call=call, chunks=parts), (), call.dtype)


def _parts_of_series(
    function: Callable[..., Any], x: Any, options: dict[str, Any], dtype: Any, skipna: bool
) -> tuple[tasks.Call, list[Any]]:
    """Returns the call for a Series, and the tasks that make its partials.

    Each partition begins where the one before ends, which is known when they are computed.
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
    return call, parts
