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
    split_every, keepdims, dtype = options.pop("split_every"), options.pop("keepdims", False), options.pop("dtype")
    selection = {"where": options.pop("where"), "weights": options.pop("weights", None)}
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"samesum: split_every is {split_every!r}; use a whole number, 2 or more")
    if isinstance(options["method"], Method):
        options["method"] = options["method"].name  # which can be sent to other processes
    if is_of_frames(inputs[0]):
        for argument in (name for name, given in selection.items() if given is not None):
            raise TypeError(
                f"samesum: {argument} does not go with a frame of Dask; select its rows, or pass "
                "x.to_dask_array(lengths=True)"
            )
        skipna = bool(options.pop("skipna"))
        return reduce_frame(function, inputs, {**options, "keepdims": keepdims}, dtype, skipna, split_every)
    axis = VECTOR if function.__name__ == "dot" else options.pop("axis")
    skipna = options["skipna"] = bool(options["skipna"])
    inputs, named, axes = _arrays_of(inputs, selection, axis, dtype, skipna)
    if axis is not VECTOR:
        options["axis"] = axes
    result = _reduced(function, inputs, named, axes, options, split_every)
    ndim = inputs[0].ndim
    return result[tuple(np.newaxis if d in axes else slice(None) for d in range(ndim))] if keepdims else result


def _arrays_of(
    inputs: list[Any], selection: dict[str, Any], axis: Any, dtype: Any, skipna: bool
) -> tuple[list[da.Array], dict[str, da.Array], tuple[int, ...]]:
    """Returns the inputs in one shape and type, the weights and the flags as far as there are any, and the axes."""
    inputs, masks = without_masks([dask_array(argument, a) for argument, a in zip("xy", inputs)])
    if dtype is not None:
        format_of(dtype, "dtype")
        inputs = [a.astype(np.dtype(dtype_name(dtype))) for a in inputs]
    if len(inputs) == 2:
        inputs, axes = in_one_shape(*inputs, axis)
    else:
        axes = normalised_axes(axis, inputs[0].ndim)
    named, weights = {}, selection["weights"]
    if weights is not None:
        named["weights"] = weights_of(inputs[0], weights, axis, axes, dtype)
    takes = flags_of(inputs[0], masks, selection["where"])
    if takes is not None:
        named["where"] = takes
    return in_one_type(inputs, takes, skipna) if len(inputs) == 2 else inputs, named, axes


def _reduced(
    function: Callable[..., Any], inputs: list[da.Array], named: dict[str, da.Array], axes: tuple[int, ...],
    options: dict[str, Any], split_every: int,
) -> da.Array:  # fmt: skip
    """Reduces arrays by chunks that hold all elements of a result, or by partials of their chunks."""
    x, skipna = inputs[0], options["skipna"]
    in_parts = {name: value for name, value in options.items() if name != "skipna"}
    # One element tells the type of the result, and raises what the whole array would.
    ones = [np.ones((1,) * x.ndim, a.dtype) for a in inputs]
    sample = function(*ones, **{n: np.ones((1,) * x.ndim, a.dtype) for n, a in named.items()}, **in_parts)
    if all(x.numblocks[a] == 1 for a in axes):
        direct = partial(tasks.reduce_whole, function, [*named], options)
        meta = np.empty((0,) * sample.ndim, sample.dtype)
        return da.map_blocks(direct, *inputs, *named.values(), dtype=sample.dtype, drop_axis=axes, meta=meta)
    call, inputs = _call_of_parts(function, inputs, named, skipna, in_parts, sample.dtype)
    skipna = skipna and (call.operation == "weighted" or inputs[0].dtype.kind not in "iub")
    return tree_of(inputs, named.get("where"), skipna, axes, call, split_every)


def _call_of_parts(
    function: Callable[..., Any], inputs: list[da.Array], named: dict[str, da.Array], skipna: bool,
    options: dict[str, Any], dtype: Any,
) -> tuple[Call, list[da.Array]]:  # fmt: skip
    """Returns the call whose partials are merged, and its inputs. `weights` and `where` are named."""
    weights, takes = named.get("weights"), named.get("where")
    name, operation = function.__name__, operation_of(function)
    if weights is not None and name != "sum":
        divisor = correction_of(options.get("correction"), options.get("ddof"))
        kind = options.get("weights_are", "frequencies")
        return Call(name, "weighted", None, None, divisor, dtype, kind), [*inputs, weights]
    if weights is not None:
        operation, inputs = "dot", in_one_type([*inputs, weights], takes, skipna, ("x", "weights"))
    takes_some = takes is not None or skipna
    return call_of(name, operation, format_of(inputs[0].dtype), options, takes_some, dtype), inputs
