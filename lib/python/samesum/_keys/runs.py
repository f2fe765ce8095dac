"""Reductions of the runs of equal keys that follow each other."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.converted import Converted
from .._arrays.selection import mask_of, places_of, starts_of_packed, takes_part, without_mask, without_masks
from .._calls.arguments import Call, check_grid, check_threads
from .._calls.inputs import floats_for
from .._calls.methods import Method, check_operation, method_of
from .._calls.results import delivered
from .._elements.formats import DTYPES, dtype_name, format_of
from .._elements.layout import Layout
from .._elements.library import library_of
from .equality import starts_of_runs
from .reading import any_keys, taken
from .values import device_of, value_array


def reduce_by_key(
    keys: Any, values: Any, y: Any = None, *, operation: str = "sum",
    method: str | Method | None = None, ddof: float = 0,
    grid: int | None = None, threads: int = 0, where: Any = None, skipna: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Returns the keys of all runs of equal keys that follow each other, and the result of the values of each run.

    Each result has the bits of the operation for the values of its run alone. For sorted keys, each key has one run.
    NaN equals NaN here, and NaT equals NaT.

    >>> keys, sums = reduce_by_key([3, 3, 1, 3], [1e16, 1.0, 5.0, 2.0])
    >>> keys.tolist(), sums.tolist()
    ([3, 1, 3], [1e+16, 5.0, 2.0])
    >>> reduce_by_key(["a", "a", "b"], [1.0, 3.0, 2.0], operation="max")[1].tolist()
    [3.0, 2.0]

    Parameters
    ----------
    keys
        an array of shape (n,) of any type whose elements compare: numbers, texts, dates, objects. A list keeps keys
        apart as in `groupby_sum`.
    values
        floats or integers of shape (n, ...). Integers are converted to fp64; those that it does not hold are refused,
        unless the method rounds.
    y
        the second input of the operation dot, of the shape and type of values.
    operation
        'sum', 'mean', 'dot', 'norm', 'squared_norm', 'sum_of_magnitudes', 'prod', 'logsumexp', 'moments' (mean and
        variance, along a last axis), 'min', 'max', 'argmin' or 'argmax' (int64, counted from the beginning of the run).
    method
        name of a method of the operation, as for `sum`.
    ddof
        for moments: subtracted from n in the divisor.
    grid
        for the accumulator fixed_point: terms are rounded to multiples of 2^grid.
    threads
        largest number of threads; 0 for one per processor. It never changes the bits.
    where
        booleans that are broadcast to values: where they are false, the value, or the pair, is as if absent. Its key
        stays, so that runs are those of all keys; a run without values has the result of an empty array.
    skipna
        whether values, or pairs, with a NaN are as if absent, too.

    Returns
    -------
    keys, results
        an array of the m keys of the runs, which is NumPy's unless keys are on a GPU, as for `groupby_sum`, and an
        array of shape (m, ...) of the library of the values, in the format of the method.

    Raises
    ------
    ValueError
        if shapes do not agree, or there is no such operation or method, or it takes no segments.
    TypeError
        if elements have a type that is not supported.
    NotImplementedError
        if an array is traced.
    OverflowError
        if a sum overflows the grid; on a GPU it is NaN.
    """
    function = "reduce_by_key"
    call = Call(operation, threads=check_threads(threads), grid=check_grid(grid), ddof=ddof)
    check_operation(function, operation)
    of_keys, read = any_keys(function, keys)
    n = read.shape[0]
    source = values
    if y is None:
        values, where = without_mask(values, where)
    else:
        values, y, where = without_masks(values, y, where)
    library, chosen, inputs, takes = _inputs_of_runs(operation, method, {"values": values, "y": y}, n, where, skipna)
    rows, starts = inputs[0], starts_of_runs(function, of_keys, read)
    device_of(function, {"keys": starts, **dict(zip(("values", "y"), inputs))})
    waits = any(isinstance(library_of(owner), Converted) for owner in (keys, source))
    call.library, call.method = library, chosen
    result = _reduce_runs(call, (of_keys, starts), inputs, takes, waits)
    last = (2,) if chosen.results == 2 else ()
    result = library.contiguous(library.transposed(result, (1, 0, 2)))
    result = result.reshape((starts.shape[0], *rows.shape[1:], *last))
    unique = taken(of_keys, read, starts)
    return (
        unique if of_keys.name == "numpy" else delivered(of_keys, unique, keys),
        delivered(library, result, source),
    )  # fmt: skip


def _reduce_runs(call: Call, runs_of: tuple[Any, Any], inputs: list[Any], takes: Any, waits: bool) -> Any:
    """Returns the results of all runs for each column of the inputs. The runs are given as their library and starts.

    `waits` tells whether the owners of the memory do not know of the reading stream.
    """
    (of_keys, starts), library, method = runs_of, call.library, call.method
    n, runs, inner = inputs[0].shape[0], starts.shape[0], math.prod(inputs[0].shape[1:])
    # The columns of the values follow each other, so the runs of all columns are consecutive segments.
    columns = [library.contiguous(library.transposed(a.reshape((n, inner)), (1, 0))) for a in inputs]
    offsets = of_keys.empty((inner * runs + 1,), "int64", starts)
    for column in range(inner):
        offsets[column * runs : (column + 1) * runs] = starts + column * n
    offsets[inner * runs :] = inner * n
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    result = library.empty((inner, runs, method.results), dtype, inputs[0])
    of_offsets, flags = of_keys, None
    if takes is not None:
        of_offsets, starts, offsets = library, *(
            a if of_keys is library else library.converted(a) for a in (starts, offsets)
        )
        flags = library.contiguous(library.transposed(takes.reshape((n, inner)), (1, 0)))
        columns = [column[flags] for column in columns]
        offsets = starts_of_packed(library, flags)[offsets]
    if not inner * runs:
        return result
    call.offsets = of_offsets.view(offsets)
    has_two_streams = call.offsets.stream != library.view(result).stream
    if has_two_streams:
        of_offsets.wait(offsets)
    call.x, call.y, call.result, call.format = columns[0], columns[-1], result, format_of(inputs[0].dtype)
    call.layout = Layout(inner * runs, 0, 1, 0, 1)
    _core.run(call)
    if has_two_streams or waits:
        library.wait(result)
    if flags is not None and method.returns_index:
        index = places_of(library, result, offsets, flags)
        result = library.namespace.where(index < 0, index, index - starts.reshape((1, runs, 1)))
    return result


def _inputs_of_runs(
    operation: str, method: str | Method | None, values: dict[str, Any], n: int, where: Any, skipna: bool
) -> tuple[Any, Method, list[Any], Any]:
    """Returns the library of the values, the method, the inputs in one type, and what takes part (None: all)."""
    function = "reduce_by_key"
    given = {name: a for name, a in values.items() if name == "values" or a is not None}
    read = {name: value_array(function, name, a, n, where is not None) for name, a in given.items()}
    library, rows = read["values"]
    _require_one({(type(a), tuple(a.shape)) for _, a in read.values()})
    mask = mask_of(library, rows, where, "values")
    takes = takes_part(library, mask, skipna, *(a for _, a in read.values()))
    inputs = [floats_for(library, operation, a, method, name, takes) for name, (_, a) in read.items()]
    chosen = method_of(method, operation, format_of(inputs[0].dtype), library.view(rows).device)
    if len(inputs) != chosen.inputs:
        raise ValueError(
            f"samesum: {function}: {operation} takes {chosen.inputs} inputs; pass y for dot, and for nothing else"
        )
    _require_one({dtype_name(a.dtype) for a in inputs})
    return library, chosen, inputs, takes


def _require_one(kinds: set[Any]) -> None:
    """Raises ValueError if the inputs of a run are of several kinds."""
    if len(kinds) > 1:
        raise ValueError(
            "samesum: reduce_by_key: y differs from values in library, type or shape; pass arrays that agree"
        )
