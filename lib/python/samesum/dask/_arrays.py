"""Calls for Dask arrays: of whole chunks, or of their partials."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import dask.array as da
import numpy as np

from .._calls.arguments import correction_of
from .._calls.methods import Method
from .._elements.formats import dtype_name, format_of
from .._elements.layout import VECTOR, normalised_axes
from . import _tasks as tasks
from ._arguments import dask_array, flags_of, in_one_shape, in_one_type, weights_of, without_masks
from ._frames import is_of_frames, reduce_frame
from ._graph import call_of, operation_of, tree_of
from ._tasks import Call


def reduce(function: Callable[..., Any], inputs: list[Any], options: dict[str, Any]) -> da.Array:
    """Makes one call of a public function."""
    name = function.__name__
    split_every, keepdims, dtype = options.pop("split_every"), options.pop("keepdims", False), options.pop("dtype")
    where, skipna = options.pop("where"), bool(options.pop("skipna"))
    weights = options.pop("weights", None)
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"samesum: split_every is {split_every!r}; use a whole number, 2 or more")
    if isinstance(options["method"], Method):
        options["method"] = options["method"].name  # which can be sent to other processes
    if is_of_frames(inputs[0]):
        for argument in (a for a, given in (("where", where), ("weights", weights)) if given is not None):
            raise TypeError(
                f"samesum: {argument} does not go with a frame of Dask; select its rows, or pass "
                "x.to_dask_array(lengths=True)"
            )
        return reduce_frame(function, inputs, {**options, "keepdims": keepdims}, dtype, skipna, split_every)
    inputs, masks = without_masks([dask_array(argument, a) for argument, a in zip("xy", inputs)])
    if dtype is not None:
        format_of(dtype, "dtype")
        inputs = [a.astype(np.dtype(dtype_name(dtype))) for a in inputs]
    axis = VECTOR if name == "dot" else options.pop("axis")
    if len(inputs) == 2:
        inputs, axes = in_one_shape(*inputs, axis)
    else:
        axes = normalised_axes(axis, inputs[0].ndim)
    x = inputs[0]
    named = {} if weights is None else {"weights": weights_of(x, weights, axis, axes, dtype)}
    takes = flags_of(x, masks, where)
    if takes is not None:
        named["where"] = takes
    if len(inputs) == 2:
        inputs = in_one_type(inputs, takes, skipna)
    if name != "dot":
        options["axis"] = axes
    # One element tells the type of the result, and raises what the whole array would.
    ones = [np.ones((1,) * x.ndim, a.dtype) for a in inputs]
    sample = function(*ones, **{n: np.ones((1,) * x.ndim, a.dtype) for n, a in named.items()}, **options)
    if all(x.numblocks[a] == 1 for a in axes):
        direct = partial(tasks.reduce_whole, function, [*named], {**options, "skipna": skipna})
        meta = np.empty((0,) * sample.ndim, sample.dtype)
        result = da.map_blocks(direct, *inputs, *named.values(), dtype=sample.dtype, drop_axis=axes, meta=meta)
    else:
        call, inputs = _call_of_parts(function, inputs, named.get("weights"), takes, skipna, options, sample.dtype)
        skipna = skipna and (call.operation == "weighted" or inputs[0].dtype.kind not in "iub")
        result = tree_of(inputs, takes, skipna, axes, call, split_every)
    return result[tuple(np.newaxis if d in axes else slice(None) for d in range(x.ndim))] if keepdims else result


def _call_of_parts(
    function: Callable[..., Any], inputs: list[da.Array], weights: da.Array | None, takes: da.Array | None,
    skipna: bool, options: dict[str, Any], dtype: Any,
) -> tuple[Call, list[da.Array]]:  # fmt: skip
    """Returns the call whose partials are merged, and its inputs."""
    name, operation = function.__name__, operation_of(function)
    if weights is not None and name != "sum":
        divisor = correction_of(options.get("correction"), options.get("ddof"))
        kind = options.get("weights_are", "frequencies")
        return Call(name, "weighted", None, None, divisor, dtype, kind), [*inputs, weights]
    if weights is not None:
        operation, inputs = "dot", in_one_type([*inputs, weights], takes, skipna, ("x", "weights"))
    takes_some = takes is not None or skipna
    return call_of(name, operation, format_of(inputs[0].dtype), options, takes_some, dtype), inputs
