"""The graph of a call: partials of chunks, merged until few are left, which one task finishes."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any, Callable, Sequence

import dask.array as da
import numpy as np
from dask.delayed import delayed

from .. import _core
from .._calls.arguments import correction_of
from .._calls.integers import EXACT_OPERATIONS
from .._calls.methods import is_exact, method_of
from .._parts.states import Partial
from . import _tasks as tasks
from ._tasks import FINISH, Call


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


as_task = partial(delayed, pure=True)


def few_of(parts: list[Any], split_every: int) -> list[Any]:
    """Merges neighbours until `split_every` are left."""
    merge = as_task(tasks.merge_chunks)
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
            parts.append(as_task(tasks.index_chunk)(call, axes, skipna, begin, flags, *inputs))
            begin += size
    elif call.operation == "weighted":
        parts = [as_task(tasks.weigh_chunk)(call, axes, skipna, *block[:-1]) for block in blocks]
    elif takes_some:
        begins = None
        for flags, *inputs, _ in blocks:
            packed = as_task(tasks.pack_chunk)(axes, skipna, flags, *inputs)
            parts.append(as_task(tasks.reduce_packed)(call, begins, packed))
            begins = as_task(tasks.begins_after)(begins, packed)
    else:
        for _, *inputs, size in blocks:
            # In an order-free method, positions serve only to check that each chunk is merged once.
            parts.append(as_task(tasks.reduce_chunk)(call, axes, begin, *inputs))
            begin += size
    return parts


def tree_of(
    inputs: list[da.Array], takes: da.Array | None, skipna: bool, axes: Sequence[int], call: Call, split_every: int
) -> da.Array:
    """Reduces chunks to partials, and merges neighbours until `split_every` are left, which are finished."""
    x = inputs[0]
    _require_consecutive(x, axes, call)
    kept = [d for d in range(x.ndim) if d not in axes]
    blocks = [a.to_delayed(optimize_graph=False) for a in (*inputs, *(() if takes is None else (takes,)))]
    finish = as_task(partial(tasks.finish_chunks, call))
    results = np.empty([x.numblocks[d] for d in kept], object)
    for result in np.ndindex(results.shape):
        chunks = []
        for cut in itertools.product(*(range(x.numblocks[a]) for a in axes)):
            at = dict(zip((*kept, *axes), (*result, *cut)))
            index = tuple(at[d] for d in range(x.ndim))
            flags = None if takes is None else blocks[-1][index]
            size = math.prod(x.chunks[a][at[a]] for a in axes)
            chunks.append((flags, *(b[index] for b in blocks[: len(inputs)]), size))
        parts = few_of(_parts(call, axes, skipna, takes is not None or skipna, chunks), split_every)
        shape = tuple(x.chunks[d][at[d]] for d in kept)
        results[result] = da.from_delayed(finish(shape, parts), shape, call.dtype)
    return da.block(results.tolist())


def call_of(name: str, operation: str, format: str, options: dict[str, Any], takes_some: bool, dtype: Any) -> Call:
    """Returns the call of a function with partials. Raises ValueError if the method has none, or needs a grid."""
    method, grid, chosen = options["method"], options.get("grid"), None
    if format != "int" or not (operation in EXACT_OPERATIONS and is_exact(method, operation) and grid is None):
        chosen = method_of(method, operation, "fp64" if format == "int" else format, -1).name
        Partial(chosen, grid=grid)
    if operation.startswith("arg") and takes_some:
        chosen = None
    divisor = correction_of(options.get("correction"), options.get("ddof"))
    return Call(name, operation, chosen, grid, divisor, dtype)


def operation_of(function: Callable[..., Any]) -> str:
    return "moments" if function.__name__ in FINISH else {"vecdot": "dot"}.get(function.__name__, function.__name__)
