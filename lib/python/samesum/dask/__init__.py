"""Reductions of Dask arrays, with the bits of the whole array in one memory.

>>> import dask.array, samesum.dask
>>> x = dask.array.from_array([1e16, 1.0, 1.0, -1e16], chunks=3)
>>> samesum.dask.sum(x).compute(), x.sum().compute()
(np.float64(2.0), np.float64(0.0))

This module has each function of `samesum` whose methods have partials (`samesum.Partial`), with the same parameters
except `out`, `threads`, `check`, and PyTorch's `dim` and `keepdim`. Results are Dask arrays, computed when Dask
computes them, by any of its schedulers. Neither the chunks nor the workers change a bit.

Chunks. Exact methods, extrema and fixed_point take any chunks. An order such as tree, and the index of argmin and
argmax, need chunks that hold consecutive elements: if several axes are reduced, only the first of them may be cut. All
other chunks raise ValueError, which names the remedy.

Masks. `where` is a Dask array, or one of NumPy; its chunks do not matter. Masked blocks use their mask, if Dask knows
that they are masked; otherwise they raise TypeError. Elements that take no part are packed away in each chunk, which
then takes three tasks: to pack, to count and to reduce.

Frames. Series and DataFrames of dask.dataframe are taken too, by functions of one input: each column is reduced over
all partitions, of which nothing is known but their order. A Series becomes a Dask array of no axes, a DataFrame a
Series of results by column. Nulls are missing values. They take no masks and weights.

Costs. A result whose elements lie in one chunk is computed by one call for all results of the chunk. Otherwise each
result of each chunk is a partial, a Python object: that suits few long reductions. For many short ones,
`x.rechunk({axis: -1})` first. Weighted means and variances divide integers of Python, which takes long if
there are many results and chunks.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
from functools import partial
from typing import Any, Callable, Sequence

import dask.array as da
import numpy as np
from dask.delayed import delayed

from .. import _core
from .._arrays.selection import require_fitting, require_flags
from .._calls.integers import EXACT_OPERATIONS
from .._calls.reduction import Method, arguments_by_name, common_type, correction_of, is_exact, method_of
from .._elements.formats import dtype_name, format_of
from .._elements.layout import VECTOR, normalised_axes, paired
from .._elements.library import library
from .._frames.frames import kind_of, refuse_masked_flags, require_different, require_same_axes
from .._functions import reductions as _functions
from .._parts.states import Partial
from .._statistics.weights import for_elements
from . import _tasks as tasks
from ._tasks import FINISH, Call, unmasked


# --- the graph ------------------------------------------------------------------------------------------------


def _dask_array(name: str, a: Any) -> da.Array:
    if not isinstance(a, da.Array):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a Dask array, or use the function of samesum")
    if any(math.isnan(size) for sizes in a.chunks for size in sizes):
        raise ValueError(f"samesum: {name} has chunks of unknown size; call {name}.compute_chunk_sizes() first")
    return a


def _without_hidden_masks(name: str, a: da.Array) -> da.Array:
    """Returns an argument whose blocks are refused when they are computed, if they are masked."""
    return _dask_array(name, a).map_blocks(partial(unmasked, name), meta=a._meta)


def _is_masked(a: da.Array) -> bool:
    return isinstance(a._meta, np.ma.MaskedArray)


def _without_masks(inputs: list[da.Array]) -> tuple[list[da.Array], list[da.Array]]:
    """Returns the elements of inputs, and the flags of those that masks show."""
    if len(inputs) == 2 and any(map(_is_masked, inputs)):
        require_same_axes(*inputs)
    flags = [~a.map_blocks(np.ma.getmaskarray, dtype=bool) for a in inputs if _is_masked(a)]
    empty = [np.empty((0,) * a.ndim, a.dtype) for a in inputs]
    return [a.map_blocks(np.ma.getdata, meta=m) if _is_masked(a) else a for a, m in zip(inputs, empty)], flags


def _flags(x: da.Array, masks: list[da.Array], where: Any) -> da.Array | None:
    """Returns which elements of x take part, in its chunks; None for all."""
    if where is not None:
        refuse_masked_flags(where)
        where = where if isinstance(where, da.Array) else da.asarray(np.asarray(where))
        refuse_masked_flags(where._meta)
        where = _without_hidden_masks("where", where)
        require_flags(where.dtype)
        require_fitting(where.shape, x.shape)
        masks = [*masks, where]
    if not masks:
        return None
    together = masks[0]
    for mask in masks[1:]:
        together = together & mask
    return da.broadcast_to(together, x.shape).rechunk(x.chunks)


def _in_one_type(inputs: list[da.Array], takes: da.Array | None, skipna: bool) -> list[da.Array]:
    """Returns inputs of one shape in one type. Integers that take no part in a pair need not be held."""
    formats = [format_of(a.dtype, name) for name, a in zip("xy", inputs)]
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
        for name, a, format in zip("xy", inputs, formats)
    ]


def _pair(x: da.Array, y: da.Array, axis: Any) -> tuple[list[da.Array], tuple[int, ...]]:
    """Returns two inputs in one shape and the same chunks, and the reduced axes."""
    if x.shape != y.shape:  # Dask drops masks that it does not know where it broadcasts
        x, y = (_without_hidden_masks(name, a) for name, a in (("x", x), ("y", y)))
    x, y, axes = paired(da, x, y, axis)
    return list(da.broadcast_arrays(x, y)), axes


def _require_consecutive(x: da.Array, axes: Sequence[int], call: Call) -> None:
    """Checks that each chunk holds consecutive elements of the reduced axes, if the method needs that."""
    index = call.operation.startswith("arg")
    if not index and (call.method is None or Partial(call.method, grid=call.grid).method.promise == "order_free"):
        return
    last = max((a for a in axes if x.numblocks[a] > 1), default=-1)
    if all(size <= 1 for a in axes if a < last for size in x.chunks[a]):
        return
    whole = {a: -1 for a in axes if a != axes[0]}
    exact = any(m.operation == call.operation and m.accumulator == "exact" for m in _core.methods())
    raise ValueError(
        f"samesum: {call.function}: "
        + ("an index" if index else f"the order of method {call.method}")
        + f" needs chunks that cut the first reduced axis only; use x.rechunk({whole})"
        + (", or method='exact', which takes any chunks" if exact else "")
    )


_task = partial(delayed, pure=True)


def _few(parts: list[Any], split_every: int) -> list[Any]:
    """Merges neighbours until `split_every` are left."""
    merge = _task(tasks.merge_chunks)
    while len(parts) > split_every:
        parts = [merge(parts[i : i + split_every]) for i in range(0, len(parts), split_every)]
    return parts


def _parts(
    call: Call, axes: Sequence[int], skipna: bool, takes_some: bool, blocks: Sequence[Sequence[Any]]
) -> list[Any]:
    """Returns the tasks that make the partials of consecutive chunks: flags (None for all), the inputs, and a size."""
    begin: Any = 0
    parts = []
    if call.operation.startswith("arg") and call.method is None:
        for flags, *inputs, size in blocks:
            parts.append(_task(tasks.index_chunk)(call, axes, skipna, begin, flags, *inputs))
            begin += size
    elif call.operation == "weighted":
        parts = [_task(tasks.weigh_chunk)(call, axes, skipna, *block[:-1]) for block in blocks]
    elif takes_some:
        begins = None
        for flags, *inputs, _ in blocks:
            packed = _task(tasks.pack_chunk)(axes, skipna, flags, *inputs)
            parts.append(_task(tasks.reduce_packed)(call, begins, packed))
            begins = _task(tasks.begins_after)(begins, packed)
    else:
        for _, *inputs, size in blocks:
            # In an order-free method, positions serve only to check that each chunk is merged once.
            parts.append(_task(tasks.reduce_chunk)(call, axes, begin, *inputs))
            begin += size
    return parts


def _tree(
    inputs: list[da.Array], takes: da.Array | None, skipna: bool, axes: Sequence[int], call: Call, split_every: int
) -> da.Array:
    """Reduces chunks to partials, and merges neighbours until `split_every` are left, which are finished."""
    x = inputs[0]
    _require_consecutive(x, axes, call)
    kept = [d for d in range(x.ndim) if d not in axes]
    blocks = [a.to_delayed(optimize_graph=False) for a in (*inputs, *(() if takes is None else (takes,)))]
    finish = _task(partial(tasks.finish_chunks, call))
    results = np.empty([x.numblocks[d] for d in kept], object)
    for result in np.ndindex(results.shape):
        chunks = []
        for cut in itertools.product(*(range(x.numblocks[a]) for a in axes)):
            at = dict(zip((*kept, *axes), (*result, *cut)))
            index = tuple(at[d] for d in range(x.ndim))
            flags = None if takes is None else blocks[-1][index]
            size = math.prod(x.chunks[a][at[a]] for a in axes)
            chunks.append((flags, *(b[index] for b in blocks[: len(inputs)]), size))
        parts = _few(_parts(call, axes, skipna, takes is not None or skipna, chunks), split_every)
        shape = tuple(x.chunks[d][at[d]] for d in kept)
        results[result] = da.from_delayed(finish(shape, parts), shape, call.dtype)
    return da.block(results.tolist())


def _call(name: str, operation: str, format: str, options: dict[str, Any], takes_some: bool, dtype: Any) -> Call:
    """Returns the call of a function with partials. Raises ValueError if the method has none, or needs a grid."""
    method, grid, chosen = options["method"], options.get("grid"), None
    if format != "int" or not (operation in EXACT_OPERATIONS and is_exact(method, operation) and grid is None):
        chosen = method_of(method, operation, "fp64" if format == "int" else format, -1).name
        Partial(chosen, grid=grid)
    if operation.startswith("arg") and takes_some:
        chosen = None
    divisor = correction_of(options.get("correction"), options.get("ddof"))
    return Call(name, operation, chosen, grid, divisor, dtype)


def _reduce(function: Callable[..., Any], inputs: list[Any], options: dict[str, Any]) -> da.Array:
    """Makes one call of a public function."""
    name = function.__name__
    split_every, keepdims, dtype = options.pop("split_every"), options.pop("keepdims", False), options.pop("dtype")
    where, skipna = options.pop("where"), bool(options.pop("skipna"))
    weights = options.pop("weights", None)
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"samesum: split_every is {split_every!r}; use a whole number, 2 or more")
    if isinstance(options["method"], Method):
        options["method"] = options["method"].name  # which can be sent to other processes
    if _is_of_frames(inputs[0]):
        for argument in (a for a, given in (("where", where), ("weights", weights)) if given is not None):
            raise TypeError(
                f"samesum: {argument} does not go with a frame of Dask; select its rows, or pass "
                "x.to_dask_array(lengths=True)"
            )
        return _reduce_frame(function, inputs, {**options, "keepdims": keepdims}, dtype, skipna, split_every)
    inputs, masks = _without_masks([_dask_array(argument, a) for argument, a in zip("xy", inputs)])
    if dtype is not None:
        format_of(dtype, "dtype")
        inputs = [a.astype(np.dtype(dtype_name(dtype))) for a in inputs]
    axis = VECTOR if name == "dot" else options.pop("axis")
    if len(inputs) == 2:
        inputs, axes = _pair(*inputs, axis)
    else:
        axes = normalised_axes(axis, inputs[0].ndim)
    x = inputs[0]
    named = {} if weights is None else {"weights": _weights(x, weights, axis, axes, dtype)}
    takes = _flags(x, masks, where)
    if takes is not None:
        named["where"] = takes
    if len(inputs) == 2:
        inputs = _in_one_type(inputs, takes, skipna)
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
        result = _tree(inputs, takes, skipna, axes, call, split_every)
    return result[tuple(np.newaxis if d in axes else slice(None) for d in range(x.ndim))] if keepdims else result


def _call_of_parts(
    function: Callable[..., Any], inputs: list[da.Array], weights: da.Array | None, takes: da.Array | None,
    skipna: bool, options: dict[str, Any], dtype: Any,
) -> tuple[Call, list[da.Array]]:  # fmt: skip
    """Returns the call whose partials are merged, and its inputs."""
    name, operation = function.__name__, _operation(function)
    if weights is not None and name != "sum":
        divisor = correction_of(options.get("correction"), options.get("ddof"))
        kind = options.get("weights_are", "frequencies")
        return Call(name, "weighted", None, None, divisor, dtype, kind), [*inputs, weights]
    if weights is not None:
        operation, inputs = "dot", _in_one_type([*inputs, weights], takes, skipna)
    takes_some = takes is not None or skipna
    return _call(name, operation, format_of(inputs[0].dtype), options, takes_some, dtype), inputs


def _weights(x: da.Array, weights: Any, axis: Any, axes: tuple[int, ...], dtype: Any) -> da.Array:
    """Returns a weight for each element of x, in its chunks."""
    if not isinstance(weights, da.Array):
        weights = da.asarray(library("numpy").array(weights, "weights"))
    elif _is_masked(weights):
        raise TypeError("samesum: weights is a masked array; pass dask.array.ma.filled(weights, 0)")
    weights = _without_hidden_masks("weights", weights)
    format_of(weights.dtype, "weights")
    weights = weights if dtype is None else weights.astype(np.dtype(dtype_name(dtype)))
    weights = for_elements(library("numpy"), weights, x.shape, axis, axes)
    return da.broadcast_to(weights, x.shape).rechunk(x.chunks)


# --- frames ---------------------------------------------------------------------------------------------------


def _is_of_frames(x: Any) -> bool:
    kind = kind_of(x)
    return kind is not None and kind.name == "dask"


def _reduce_frame(
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
    together = _task(tasks.by_column)(x.columns, [result.to_delayed().item() for result in results])
    return dask.dataframe.from_delayed([together], meta=meta, verify_meta=False)


def _reduce_series(
    function: Callable[..., Any], x: Any, options: dict[str, Any], dtype: Any, skipna: bool, split_every: int,
    is_column: bool = False,
) -> da.Array:  # fmt: skip
    """Reduces a Series; each partition begins where the one before ends, which is known when they are computed.

    The result of a column of a frame may be null.
    """
    operation = _operation(function)
    of_meta, _ = tasks.elements_of_partition(dtype, x._meta_nonempty)
    sample = function(np.ones(1, of_meta.dtype), **options)
    call = _call(function.__name__, operation, format_of(of_meta.dtype), options, True, sample.dtype)
    parts, begin, begins = [], 0, None
    for partition in x.to_delayed():
        if operation.startswith("arg"):
            parts.append(_task(tasks.index_partition)(call, dtype, skipna, begin, partition))
            begin = _task(operator.add)(begin, _task(len)(partition))
        else:
            packed = _task(tasks.pack_partition)(dtype, skipna, partition)
            parts.append(_task(tasks.reduce_packed)(call, begins, packed))
            begins = _task(tasks.begins_after)(begins, packed)
    finish = tasks.finish_column if is_column else partial(tasks.finish_chunks, shape=())
    return da.from_delayed(_task(finish)(call=call, chunks=_few(parts, split_every)), (), call.dtype)


# --- the functions --------------------------------------------------------------------------------------------


def _operation(function: Callable[..., Any]) -> str:
    return "moments" if function.__name__ in FINISH else {"vecdot": "dot"}.get(function.__name__, function.__name__)


def _has_partials(operation: str) -> bool:
    for method in _core.methods():
        if method.operation == operation and method.backend == "cpu":
            try:
                Partial(method, grid=0 if method.accumulator == "fixed_point" else None)
                return True
            except ValueError:
                pass
    return False


_IN_MEMORY = ("out", "threads", "check", "dim", "keepdim")
"""Parameters that only the functions for arrays in memory have."""


def _for_dask(function: Callable[..., Any]) -> Callable[..., da.Array]:
    parameters = inspect.signature(function).parameters
    inputs = [p for p in parameters if p in ("x", "y")]
    shown = [p for n, p in parameters.items() if n not in _IN_MEMORY]
    shown.append(inspect.Parameter("split_every", inspect.Parameter.KEYWORD_ONLY, default=8, annotation=int))
    signature = inspect.Signature(shown, return_annotation=da.Array)

    def reduction(*arguments: Any, **options: Any) -> da.Array:
        given = arguments_by_name(function.__name__, signature, arguments, options)
        return _reduce(function, [given.pop(name) for name in inputs], {"dtype": None, **given})

    reduction.__name__ = reduction.__qualname__ = function.__name__
    reduction.__signature__ = signature  # type: ignore[attr-defined]
    summary = (function.__doc__ or "").partition("\n")[0]
    reduction.__doc__ = f"""{summary}

    Has the parameters and the bits of `samesum.{function.__name__}` for the whole array in memory.

    Parameters
    ----------
    {", ".join(inputs)}
        Dask arrays of NumPy's arrays, with chunks of known size: see the module for those that methods need, and for
        frames.
    {", ".join(p.name for p in shown[len(inputs):-1])}
        as for `samesum.{function.__name__}`. fixed_point needs a grid if the reduced axes are cut.
    split_every
        how many partials one task merges. It never changes the bits.

    Returns
    -------
    result
        a Dask array.
    """
    return reduction


_offered = {f.__name__: _for_dask(f) for f in _functions.FUNCTIONS if _has_partials(_operation(f))}
__all__ = list(_offered)


def __getattr__(name: str) -> Callable[..., da.Array]:  # as globals, they would hide the sum and max of Python here
    if name in _offered:
        return _offered[name]
    raise AttributeError(f"module 'samesum.dask' has no attribute {name!r}; its functions are {', '.join(_offered)}")


def __dir__() -> list[str]:
    return __all__
