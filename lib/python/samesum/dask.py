"""Reductions of Dask arrays, with the bits of the whole array in one memory.

>>> import dask.array, samesum.dask
>>> x = dask.array.from_array([1e16, 1.0, 1.0, -1e16], chunks=3)
>>> samesum.dask.sum(x).compute(), x.sum().compute()
(np.float64(2.0), np.float64(0.0))

This module has each function of `samesum` whose methods have partials (`samesum.Partial`), with the same parameters
except `out`, `threads`, `check`, `where`, `skipna` and weights. Results are Dask arrays, computed when Dask computes
them, by any of its schedulers. Neither the chunks nor the workers change a bit.

Chunks. Exact methods, extrema and fixed_point take any chunks. An order such as tree, and the index of argmin and
argmax, need chunks that hold consecutive elements: if several axes are reduced, only the first of them may be cut. All
other chunks raise ValueError, which names the remedy. Masked blocks raise TypeError, as masked arrays do elsewhere.

Frames. Series and DataFrames of dask.dataframe are taken too, by functions of one input: each column is reduced over
all partitions, of which nothing is known but their order. A Series becomes a Dask array of no axes, a DataFrame a
Series of results by column. Nulls are missing values.

Costs. A result whose elements lie in one chunk is computed by one call for all results of the chunk. Otherwise each
result of each chunk is a partial, a Python object: that suits few long reductions. For many short ones,
`x.rechunk({axis: -1})` first.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
from functools import partial
from typing import Any, Callable, NamedTuple, Sequence

import dask.array as da
import numpy as np
from dask.delayed import delayed

from . import _core, _functions
from ._arrays import dtype_name, format_of
from ._calls import Method, common_type, correction_of, is_exact, method_of
from ._frames import as_one_array, kind_of, present, without_nulls
from ._integers import EXACT_OPERATIONS
from ._layout import VECTOR, axes_last, normalised_axes, paired, reduced_shape
from ._states import Partial
from ._workers import merged


# --- in the tasks ---------------------------------------------------------------------------------------------


def unmasked(name: str, block: Any) -> Any:
    """Returns a block of the input `name`, or an array of the type of its blocks. Raises TypeError if it is masked."""
    if isinstance(block, np.ma.MaskedArray):
        raise TypeError(
            f"samesum: {name} has masked blocks; pass dask.array.ma.filled({name}, 0), in which masked elements are 0"
        )
    return block


class _Call(NamedTuple):
    """What the tasks of one call need to know."""

    function: str
    operation: str
    method: str | None  # its name; None: integers stay integers
    grid: int | None
    correction: float
    dtype: Any  # of the result


class _IntegerPartial:
    """A sum or an extremum of consecutive integers, with the functions of `Partial`. Python's integers do not
    overflow."""

    def __init__(self, operation: str, begin: int) -> None:
        self.operation, self.begin, self.sum = operation, begin, 0
        self.best: tuple[int, int] | None = None  # extremum and index

    def add(self, x: Any, *, threads: int = 0) -> None:
        if self.operation == "sum":
            if x.dtype.itemsize == 8:  # two words, whose sums fit into 64 bits
                self.sum += int((x >> x.dtype.type(32)).sum()) << 32
                self.sum += int((x & x.dtype.type(0xFFFFFFFF)).sum(dtype=np.uint64))
            else:
                self.sum += int(x.sum())
        elif x.size:
            index = int(x.argmin() if self.operation.endswith("min") else x.argmax())
            self._meet((int(x[index]), self.begin + index))

    def _meet(self, other: tuple[int, int] | None) -> None:
        """Takes a later extremum, unless the one so far equals it."""
        if other is not None:
            better = int.__lt__ if self.operation.endswith("min") else int.__gt__
            if self.best is None or better(other[0], self.best[0]):
                self.best = other

    def merge(self, next: _IntegerPartial) -> None:
        self.sum += next.sum
        self._meet(next.best)

    def copy(self) -> _IntegerPartial:
        new = _IntegerPartial(self.operation, self.begin)
        new.sum, new.best = self.sum, self.best
        return new

    def finish(self, *, correction: float = 0) -> int:
        if self.operation == "sum":
            return self.sum
        if self.best is None:
            raise ValueError(f"samesum: {self.operation} of no integers has no value; pass at least one element")
        return self.best[self.operation.startswith("arg")]


def _rows(a: Any, axes: Sequence[int]) -> Any:
    """Returns the elements of each result as a row."""
    shape = math.prod(reduced_shape(a.shape, axes, False)), math.prod(a.shape[d] for d in axes)
    return np.ascontiguousarray(a.transpose(axes_last(a.ndim, axes)[0]).reshape(shape))


def reduce_chunk(call: _Call, axes: Sequence[int], begin: int, *inputs: Any) -> list[Any]:
    """Returns a partial for each result."""
    parts = []
    for rows in zip(*(_rows(np.asarray(unmasked(name, a)), axes) for name, a in zip("xy", inputs))):
        part: Any
        if call.method is None:
            part = _IntegerPartial(call.operation, begin)
        else:
            part = Partial(call.method, begin, grid=call.grid)
        part.add(*rows, threads=1)  # Dask uses the other processors
        parts.append(part)
    return parts


def reduce_whole(function: Callable[..., Any], options: dict[str, Any], *inputs: Any) -> Any:
    """Returns the results of blocks that hold all their elements."""
    return function(*(unmasked(name, a) for name, a in zip("xy", inputs)), threads=1, **options)


def merge_chunks(chunks: Sequence[list[Any]]) -> list[Any]:
    """Merges the partials of consecutive chunks, result by result."""
    return [merged(parts) for parts in zip(*chunks)]


def finish_chunks(call: _Call, shape: tuple[int, ...], chunks: Sequence[list[Any]]) -> Any:
    """Returns the results of the last chunks."""
    numbers = [part.finish(correction=call.correction) for part in merge_chunks(chunks)]
    if call.method is None and call.operation == "sum":
        limits = np.iinfo(call.dtype)
        if not all(limits.min <= n <= limits.max for n in numbers):
            raise OverflowError(
                "samesum: the sum of integers is beyond 64 bits; pass dtype='float64' for a rounded sum"
            )
    moments = (2,) if call.operation == "moments" else ()
    results = np.array(numbers, call.dtype).reshape((*shape, *moments))
    return np.asarray(_FINISH[call.function](np, results) if moments else results)[()]  # one result as a scalar


# --- the graph ------------------------------------------------------------------------------------------------


def _dask_array(name: str, a: Any) -> da.Array:
    if not isinstance(a, da.Array):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a Dask array, or use the function of samesum")
    unmasked(name, a._meta)
    if any(math.isnan(size) for sizes in a.chunks for size in sizes):
        raise ValueError(f"samesum: {name} has chunks of unknown size; call {name}.compute_chunk_sizes() first")
    return a


def _pair(x: da.Array, y: da.Array, axis: Any) -> tuple[list[da.Array], tuple[int, ...]]:
    """Returns two inputs in one type, one shape and the same chunks, and the reduced axes."""
    if format_of(x.dtype) != format_of(y.dtype, "y"):
        common = np.dtype(common_type(np, x.dtype, y.dtype))
        x, y = x.astype(common), y.astype(common)
    if x.shape != y.shape:  # Dask drops masks where it broadcasts
        x, y = (a.map_blocks(partial(unmasked, name), meta=a._meta) for name, a in (("x", x), ("y", y)))
    x, y, axes = paired(da, x, y, axis)
    return list(da.broadcast_arrays(x, y)), axes


def _require_consecutive(x: da.Array, axes: Sequence[int], call: _Call) -> None:
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
    merge = _task(merge_chunks)
    while len(parts) > split_every:
        parts = [merge(parts[i : i + split_every]) for i in range(0, len(parts), split_every)]
    return parts


def _tree(inputs: list[da.Array], axes: Sequence[int], call: _Call, split_every: int) -> da.Array:
    """Reduces chunks to partials, and merges neighbours until `split_every` are left, which are finished."""
    x = inputs[0]
    _require_consecutive(x, axes, call)
    kept = [d for d in range(x.ndim) if d not in axes]
    blocks = [a.to_delayed(optimize_graph=False) for a in inputs]
    part, finish = _task(partial(reduce_chunk, call, axes)), _task(partial(finish_chunks, call))
    results = np.empty([x.numblocks[d] for d in kept], object)
    for result in np.ndindex(results.shape):
        parts, begin = [], 0
        for cut in itertools.product(*(range(x.numblocks[a]) for a in axes)):
            at = dict(zip((*kept, *axes), (*result, *cut)))
            index = tuple(at[d] for d in range(x.ndim))
            # In an order-free method, positions serve only to check that each chunk is merged once.
            parts.append(part(begin, *(b[index] for b in blocks)))
            begin += math.prod(x.chunks[a][at[a]] for a in axes)
        parts = _few(parts, split_every)
        shape = tuple(x.chunks[d][at[d]] for d in kept)
        results[result] = da.from_delayed(finish(shape, parts), shape, call.dtype)
    return da.block(results.tolist())


def _call(name: str, operation: str, format: str, options: dict[str, Any], dtype: Any) -> _Call:
    """Returns the call of a function with partials. Raises ValueError if the method has none, or needs a grid."""
    method, grid, chosen = options["method"], options.get("grid"), None
    if format != "int" or not (operation in EXACT_OPERATIONS and is_exact(method, operation) and grid is None):
        chosen = method_of(method, operation, "fp64" if format == "int" else format, -1).name
        Partial(chosen, grid=grid)
    divisor = correction_of(options.get("correction"), options.get("ddof"))
    return _Call(name, operation, chosen, grid, divisor, dtype)


def _reduce(function: Callable[..., Any], inputs: list[Any], options: dict[str, Any]) -> da.Array:
    """Makes one call of a public function."""
    name, operation = function.__name__, _operation(function)
    split_every, keepdims, dtype = options.pop("split_every"), options.pop("keepdims", False), options.pop("dtype")
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"samesum: split_every is {split_every!r}; use a whole number, 2 or more")
    if _is_of_frames(inputs[0]):
        return _reduce_frame(function, inputs, {**options, "keepdims": keepdims}, dtype, split_every)
    inputs = [_dask_array(argument, a) for argument, a in zip("xy", inputs)]
    if dtype is not None:
        format_of(dtype, "dtype")
        inputs = [a.astype(np.dtype(dtype_name(dtype))) for a in inputs]
    axis = VECTOR if name == "dot" else options.pop("axis")
    if len(inputs) == 2:
        inputs, axes = _pair(*inputs, axis)
    else:
        axes = normalised_axes(axis, inputs[0].ndim)
    x = inputs[0]
    if name != "dot":
        options["axis"] = axes
    if isinstance(options["method"], Method):
        options["method"] = options["method"].name  # which can be sent to other processes
    # One element tells the type of the result, and raises what the whole array would.
    sample = function(*(np.ones((1,) * x.ndim, a.dtype) for a in inputs), **options)
    if all(x.numblocks[a] == 1 for a in axes):
        direct = partial(reduce_whole, function, options)
        meta = np.empty((0,) * sample.ndim, sample.dtype)
        result = da.map_blocks(direct, *inputs, dtype=sample.dtype, drop_axis=axes, meta=meta)
    else:
        result = _tree(inputs, axes, _call(name, operation, format_of(x.dtype), options, sample.dtype), split_every)
    return result[tuple(np.newaxis if d in axes else slice(None) for d in range(x.ndim))] if keepdims else result


# --- frames ---------------------------------------------------------------------------------------------------


def _is_of_frames(x: Any) -> bool:
    kind = kind_of(x)
    return kind is not None and kind.name == "dask"


def elements(is_index: bool, dtype: Any, partition: Any) -> Any:
    """Returns the elements of a partition of a column. With `is_index`, nulls are refused: an index counts them."""
    values = np.asarray(without_nulls(partition, "x") if is_index else present(partition))
    return values if dtype is None else values.astype(dtype)


def by_column(names: Any, results: Sequence[Any]) -> Any:
    """Returns the results of columns as a Series."""
    import pandas

    return pandas.Series(as_one_array(results), index=names)


def _reduce_frame(
    function: Callable[..., Any], inputs: list[Any], options: dict[str, Any], dtype: Any, split_every: int
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
        return _reduce_series(function, x, options, dtype, split_every)
    results = [_reduce_series(function, x[column], options, dtype, split_every) for column in x.columns]
    meta = by_column(x.columns, [np.ones((), result.dtype)[()] for result in results])
    together = _task(by_column)(x.columns, [result.to_delayed().item() for result in results])
    return dask.dataframe.from_delayed([together], meta=meta, verify_meta=False)


def _reduce_series(
    function: Callable[..., Any], x: Any, options: dict[str, Any], dtype: Any, split_every: int
) -> da.Array:  # fmt: skip
    """Reduces a Series; each partition begins where the one before ends, which is known when they are computed."""
    operation = _operation(function)
    take = _task(partial(elements, operation.startswith("arg"), dtype))
    of_meta = elements(False, dtype, x._meta_nonempty)
    sample = function(np.ones(1, of_meta.dtype), **options)
    if isinstance(options["method"], Method):
        options = {**options, "method": options["method"].name}
    call = _call(function.__name__, operation, format_of(of_meta.dtype), options, sample.dtype)
    part, begin, parts = _task(partial(reduce_chunk, call, (0,))), 0, []
    for partition in x.to_delayed():
        values = take(partition)
        parts.append(part(begin, values))
        begin = _task(operator.add)(begin, _task(len)(values))
    finish = _task(partial(finish_chunks, call))
    return da.from_delayed(finish((), _few(parts, split_every)), (), call.dtype)


# --- the functions --------------------------------------------------------------------------------------------

_FINISH = {"var": _functions._variance, "std": _functions._deviation}


def _operation(function: Callable[..., Any]) -> str:
    return "moments" if function.__name__ in _FINISH else {"vecdot": "dot"}.get(function.__name__, function.__name__)


def _has_partials(operation: str) -> bool:
    for method in _core.methods():
        if method.operation == operation and method.backend == "cpu":
            try:
                Partial(method, grid=0 if method.accumulator == "fixed_point" else None)
                return True
            except ValueError:
                pass
    return False


_IN_MEMORY = ("out", "threads", "check", "where", "skipna", "weights", "weights_are")
"""Parameters that only the functions for arrays in memory have."""


def _for_dask(function: Callable[..., Any]) -> Callable[..., da.Array]:
    parameters = inspect.signature(function).parameters
    inputs = [p for p in parameters if p in ("x", "y")]
    shown = [p for n, p in parameters.items() if n not in _IN_MEMORY]
    shown.append(inspect.Parameter("split_every", inspect.Parameter.KEYWORD_ONLY, default=8, annotation=int))
    signature = inspect.Signature(shown, return_annotation=da.Array)

    def reduction(*arguments: Any, **options: Any) -> da.Array:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        given = dict(bound.arguments)
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
