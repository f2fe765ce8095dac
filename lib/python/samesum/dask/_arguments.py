"""The arguments of a call as Dask arrays of one shape and the same chunks, and which elements take part."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from .._arrays.selection import require_fitting, require_flags
from .._calls.inputs import common_type
from .._elements.formats import dtype_name, format_of
from .._elements.layout import paired
from .._elements.library import library
from .._frames.flags import refuse_masked_flags, require_same_axes
from .._statistics.inputs import for_elements
from . import _tasks as tasks
from ._tasks import unmasked


def dask_array(name: str, a: Any) -> da.Array:
    if not isinstance(a, da.Array):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a Dask array, or use the function of samesum")
    if any(math.isnan(size) for sizes in a.chunks for size in sizes):
        raise ValueError(f"samesum: {name} has chunks of unknown size; call {name}.compute_chunk_sizes() first")
    return a


def without_hidden_masks(name: str, a: da.Array) -> da.Array:
    """Returns an argument whose blocks are refused when they are computed, if they are masked."""
    return dask_array(name, a).map_blocks(partial(unmasked, name), meta=a._meta)


def is_masked(a: da.Array) -> bool:
    return isinstance(a._meta, np.ma.MaskedArray)


def without_masks(inputs: list[da.Array]) -> tuple[list[da.Array], list[da.Array]]:
    """Returns the elements of inputs, and the flags of those that masks show."""
    if len(inputs) == 2 and any(map(is_masked, inputs)):
        require_same_axes(*inputs)
    flags = [~a.map_blocks(np.ma.getmaskarray, dtype=bool) for a in inputs if is_masked(a)]
    empty = [np.empty((0,) * a.ndim, a.dtype) for a in inputs]
    return [a.map_blocks(np.ma.getdata, meta=m) if is_masked(a) else a for a, m in zip(inputs, empty)], flags


def flags_of(x: da.Array, masks: list[da.Array], where: Any) -> da.Array | None:
    """Returns which elements of x take part, in its chunks; None for all."""
    if where is not None:
        refuse_masked_flags(where)
        where = where if isinstance(where, da.Array) else da.asarray(np.asarray(where))
        refuse_masked_flags(where._meta)
        where = without_hidden_masks("where", where)
        require_flags(where.dtype)
        require_fitting(where.shape, x.shape)
        masks = [*masks, where]
    if not masks:
        return None
    together = masks[0]
    for mask in masks[1:]:
        together = together & mask
    return da.broadcast_to(together, x.shape).rechunk(x.chunks)


def in_one_type(
    inputs: list[da.Array], takes: da.Array | None, skipna: bool, names: tuple[str, str] = ("x", "y")
) -> list[da.Array]:
    """Returns inputs of one shape in one type. Integers that take no part in a pair need not be held."""
    formats = [format_of(a.dtype, name) for name, a in zip(names, inputs)]
    if len({*formats}) == 1:
        return inputs
    common = np.dtype(common_type(np, *(a.dtype for a in inputs)))
    for a, format in zip(inputs, formats):
        if skipna and format != "int":
            takes = a == a if takes is None else takes & (a == a)
    flags = [] if takes is None else [takes]
    return [
        da.map_blocks(partial(tasks.in_common_type, name, common.name), a, *flags, dtype=common)
        if format == "int"
        else a.astype(common)
        for name, a, format in zip(names, inputs, formats)
    ]


def in_one_shape(x: da.Array, y: da.Array, axis: Any) -> tuple[list[da.Array], tuple[int, ...]]:
    """Returns two inputs in one shape and the same chunks, and the reduced axes."""
    if x.shape != y.shape:  # Dask drops masks that it does not know where it broadcasts
        x, y = (without_hidden_masks(name, a) for name, a in (("x", x), ("y", y)))
    x, y, axes = paired(da, x, y, axis)
    return list(da.broadcast_arrays(x, y)), axes


def weights_of(x: da.Array, weights: Any, axis: Any, axes: tuple[int, ...], dtype: Any) -> da.Array:
    """Returns a weight for each element of x, in its chunks."""
    if not isinstance(weights, da.Array):
        weights = da.asarray(library("numpy").array(weights, "weights"))
    elif is_masked(weights):
        raise TypeError("samesum: weights is a masked array; pass dask.array.ma.filled(weights, 0)")
    weights = without_hidden_masks("weights", weights)
    format_of(weights.dtype, "weights")
    weights = weights if dtype is None else weights.astype(np.dtype(dtype_name(dtype)))
    weights = for_elements(library("numpy"), weights, x.shape, axis, axes)
    return da.broadcast_to(weights, x.shape).rechunk(x.chunks)
