"""The reductions by key: element k belongs to the result that keys[k] names."""

from __future__ import annotations

import math
from typing import Any

from .._arrays.converted import Converted
from .._arrays.selection import mask_of, narrowed, places_of, starts_of_packed, takes_part, without_mask, without_masks
from .._calls.reduction import (
    Method, check_grid, check_operation, check_threads, delivered, floats_for, method_of, run_call, whole_number,
)  # fmt: skip
from .._elements.formats import DTYPES, dtype_name, format_of, method_format
from .._elements.in_floats import adds_exactly, held_floats, in_two_floats, not_held
from .._elements.layout import Layout
from .._elements.library import library_of
from .keys import any_keys, groups, integer_keys, read_array, starts_of_runs, taken


def _value_array(function: str, argument: str, values: Any, n: int, has_mask: bool = False) -> tuple[Any, Any]:
    """Returns the library of values, and a contiguous array of numbers in a format, with one row for each of n keys.

    If there is a mask, numbers whose integers no type of 64 bits holds stay objects.
    """
    library, a = read_array(function, argument, values, wide=has_mask)
    if not has_mask:
        format_of(a.dtype, argument)  # raises for what has no numbers
    if a.ndim == 0 or a.shape[0] != n:
        raise ValueError(
            f"samesum: {function}: {argument} has shape {tuple(a.shape)}, and there are {n} keys; the first axis of "
            f"{argument} must have one element, or one row, for each key"
        )
    return library, library.contiguous(a)


def _masked_values(function: str, argument: str, values: Any, n: int, where: Any) -> tuple[tuple[Any, Any], Any]:
    """Returns what `_value_array` returns, and which elements take part as a contiguous array; None for all."""
    library, a = _value_array(function, argument, values, n, where is not None)
    mask = None if where is None else library.contiguous(mask_of(library, a, where, argument))
    a = narrowed(library, a, mask, argument)
    format_of(a.dtype, argument)
    return (library, a), mask


def run_by_key(
    method: Method, keys: tuple[Any, Any], values: tuple[Any, Any] | None, result: tuple[Any, Any], threads: int = 0,
    grid: int | None = None, combine: bool = False, mask: Any = None, skipna: bool = False,
) -> None:  # fmt: skip
    """Reduces values, an array and its library, by key into `result`, all of them contiguous and in one memory. Waits
    for the results. A mask is one of the values.
    """
    inner = math.prod(result[1].shape[1:])
    if inner == 0:
        return
    out = result[0].view(result[1])
    if values is not None and (mask is not None or skipna) and out.device >= 0:
        keys, values = _packed_pairs(keys, values, takes_part(values[0], mask, skipna, values[1]), inner)
        inner, mask, skipna = 1, None, False
    read = keys[0].view(keys[1])
    for library, a in (keys, values or keys):
        if library.view(a).stream != out.stream:
            library.wait(a)  # the streams of two libraries
    format, address = method.format, 0
    if values is not None:
        format, address = format_of(values[1].dtype), values[0].view(values[1]).address
    n = keys[1].shape[0]
    run_call(
        method, format, address, n * inner, Layout(1, n, inner, n * inner, inner), out.address,
        math.prod(result[1].shape), out.device, out.stream, key_format=dtype_name(keys[1].dtype), keys=read.address,
        threads=threads, grid=grid, combine=combine, skip_nan=skipna,
        where=0 if mask is None else values[0].view(mask).address if values else 0,
    )  # fmt: skip


def in_floats_by_key(
    method: Method, keys: tuple[Any, Any], values: tuple[Any, Any], mask: Any, argument: str
) -> tuple[Any, Any, Any]:
    """Returns keys, values and mask of a call with integers in fp64: with two pairs for each, if it does not hold them
    and the method adds exactly.
    """
    library, a = values
    if format_of(a.dtype, argument) != "int":
        return keys, values, mask
    floats = held_floats(library, a, method, mask=mask)
    if floats is not None:
        return keys, (library, floats), mask
    if not adds_exactly(method):
        raise not_held(argument)
    both = library.namespace.concatenate(in_two_floats(library, a))
    flags = None if mask is None else library.namespace.concatenate((mask, mask))
    return (keys[0], keys[0].namespace.concatenate((keys[1], keys[1]))), (library, both), flags


def _packed_pairs(keys: tuple[Any, Any], values: tuple[Any, Any], takes: Any, inner: int) -> Any:
    """Returns the pairs that take part of a key and a single element, which has a key of its own in its row."""
    place = {"device": keys[1].device} if keys[0].name == "torch" else {}
    columns = keys[0].namespace.arange(inner, **place)
    each = keys[0].astype(keys[1], "int64").reshape((-1, 1)) * inner + columns
    flags = takes.reshape((-1, inner))
    return (keys[0], each[flags]), (values[0], values[1].reshape((-1, inner))[flags])


def _device_of(function: str, **arrays: tuple[Any, Any]) -> int:
    """Returns the GPU on which all arrays are, each with its library; -1 if they are on the host."""
    devices = {name: library.view(a).device for name, (library, a) in arrays.items()}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {'the host' if d < 0 else f'GPU {d}'}" for name, d in devices.items())
        raise ValueError(f"samesum: {function}: {where}; move the arrays to one place")
    return next(iter(devices.values()))


def _sum_by_key(
    function: str, keys: tuple[Any, Any], argument: str, values: tuple[Any, Any], count: int,
    method: str | Method | None, grid: Any, source: Any, mask: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns the sums of values, which the caller of the function knows as `argument`, for the keys below `count`: an
    array of the library of `source`, in the format of the method.
    """
    library, rows = values
    device = _device_of(function, **{"keys": keys, argument: values})
    chosen = method_of(method, "scatter_add", method_format(rows.dtype), device)
    result = library.empty((count, *rows.shape[1:]), DTYPES[chosen.format], rows)
    keys, values, mask = in_floats_by_key(chosen, keys, values, mask, argument)
    run_by_key(chosen, keys, values, (library, result), grid=check_grid(grid), mask=mask, skipna=bool(skipna))
    return delivered(library, result, source)


def scatter_add(
    out: Any, keys: Any, values: Any, *, method: str | Method | None = None, grid: int | None = None, threads: int = 0,
    where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns `out` plus the sums of the values that share a key, by default correctly rounded.

    Result keys[k], or row keys[k] of the results, is the sum of its element of `out` and of the values with that
    key. Elements of `out` without a key stay as they are, and `out` itself is left alone.

    >>> import numpy as np
    >>> scatter_add(np.zeros(3), [2, 0, 2, 2], [1e16, 5.0, 1.0, -1e16]).tolist()
    [5.0, 0.0, 1.0]
    >>> scatter_add(np.zeros((2, 2)), [1, 1], [[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[0.0, 0.0], [4.0, 6.0]]

    Parameters
    ----------
    out
        an array of floats of shape (m, ...), whose elements come first in the sums.
    keys
        integers of shape (n,), from 0 to m - 1. int32, uint32 and int64 are read in place, other types and objects
        that are integers are converted to int64.
    values
        floats or integers of shape (n, ...), whose axes but the first are those of `out`. Exact sums take integers as
        they are, others in fp64.
    method
        name of a method, such as 'serial/plain', which has the bits of `numpy.add.at`, or 'fixed_point'. Its
        format must be that of `out`. Default: 'exact'.
    grid
        for the accumulator fixed_point: terms are rounded to multiples of 2^grid. Default: found from all values.
    threads
        largest number of threads; 0 for one per processor. It never changes the bits.
    where
        booleans that are broadcast to values: where they are false, the value is as if absent, and the key of a row
        without others is not read.
    skipna
        whether values that are NaN are as if absent, too.

    Returns
    -------
    result
        a new array of the shape, the type and the library of `out`.

    Raises
    ------
    ValueError
        if shapes do not agree, a key is out of range, or the method does not exist.
    TypeError
        if elements have a type that is not supported or that the method does not accept.
    NotImplementedError
        if an array is traced.
    OverflowError
        if a sum overflows the grid.
    """
    function = "scatter_add"
    threads = check_threads(threads)
    grid = check_grid(grid)
    library, before = read_array(function, "out", out)
    format = format_of(before.dtype, "out")
    if format == "int":
        raise TypeError(f"samesum: out has elements of type {dtype_name(before.dtype)}; pass an array of floats")
    read_keys = integer_keys(function, keys)
    values, where = without_mask(values, where)
    read_values, mask = _masked_values(function, "values", values, read_keys[1].shape[0], where)
    device = _device_of(function, out=(library, before), keys=read_keys, values=read_values)
    chosen = method_of(method, function, format, device)
    if chosen.format != format:
        raise TypeError(
            f"samesum: out has elements of type {dtype_name(before.dtype)}, and method {chosen.name} adds to "
            f"{DTYPES[chosen.format]}; convert out, or choose a method in its format"
        )
    rows = read_values[1]
    if not chosen.accepts(method_format(rows.dtype)):
        raise TypeError(
            f"samesum: values has elements of type {dtype_name(rows.dtype)}, which method {chosen.name} does not "
            f"accept; convert values to {DTYPES[format]}"
        )
    if before.ndim == 0 or tuple(before.shape[1:]) != tuple(rows.shape[1:]):
        raise ValueError(
            f"samesum: out has shape {tuple(before.shape)} and values {tuple(rows.shape)}; they must agree in all axes "
            "but the first"
        )
    result = library.empty(tuple(before.shape), DTYPES[format], before)
    library.copy_to(result, before)
    pairs = in_floats_by_key(chosen, read_keys, read_values, mask, "values")
    run_by_key(chosen, *pairs[:2], (library, result), threads, grid, True, pairs[2], bool(skipna))
    return delivered(library, result, out)


def bincount(
    keys: Any, weights: Any = None, minlength: int = 0, *, method: str | Method | None = None, grid: int | None = None,
    where: Any = None, skipna: bool = False,
) -> Any:  # fmt: skip
    """Returns how often each integer from 0 on occurs in `keys` or, with weights, the sums of these.

    As `numpy.bincount`, but the sums of weights are by default correctly rounded, and have the type of the weights.

    >>> bincount([2, 0, 2]).tolist()
    [1, 0, 2]
    >>> bincount([1, 0, 1, 1], weights=[1e16, 5.0, 1.0, -1e16], minlength=3).tolist()
    [5.0, 1.0, 0.0]

    Parameters
    ----------
    keys
        integers of shape (n,), none of them negative.
    weights
        floats or integers of shape (n,), as the values of `scatter_add`; None to count.
    minlength
        smallest length of the result.
    method
        name of a method of scatter_add, or without weights of scatter_count. Default: 'exact' for sums.
    grid
        as for `scatter_add`; only with weights.
    where
        booleans of shape (n,): keys where it is false are as if absent, and are not read.
    skipna
        whether keys whose weight is NaN are as if absent, too.

    Returns
    -------
    result
        an array of max(minlength, 1 + the largest key) elements: int64, or in the format of the method for
        weights. It belongs to the library of the weights, or else to that of the keys.

    Raises
    ------
    ValueError
        if a key or minlength is negative, the shapes do not agree, or the method does not exist.
    TypeError
        if elements have a type that is not supported.
    NotImplementedError
        if an array is traced.
    OverflowError
        if a sum overflows the grid.
    """
    count = whole_number("minlength", minlength)
    if count < 0:
        raise ValueError(f"samesum: minlength is {count}; use 0 or more")
    library, read = integer_keys("bincount", keys)
    source = weights
    weights, where = without_mask(weights, where)
    if weights is not None:
        (of_weights, elements), mask = _masked_values("bincount", "weights", weights, read.shape[0], where)
        if elements.ndim != 1:
            raise ValueError(f"samesum: bincount: weights has {elements.ndim} axes; pass one, or call scatter_add")
        where = takes_part(of_weights, mask, skipna, elements)
        elements = elements if where is None else elements[where]
    if where is not None:
        read = taken(library, read, mask_of(library, read, where, "keys"))
    if read.shape[0]:
        signed = library.astype(read, "int64") if dtype_name(read.dtype) == "uint32" else read  # PyTorch needs it
        count = max(count, int(signed.max()) + 1)
    if weights is not None:
        pairs = (library, read), "weights", (of_weights, elements)
        return _sum_by_key("bincount", *pairs, count, method, grid, source)
    if grid is not None:
        raise ValueError("samesum: bincount: grid is only for weights; leave it out to count")
    result = library.empty((count,), "int64", read)
    chosen = method_of(method, "scatter_count", "fp64", _device_of("bincount", keys=(library, read)))
    run_by_key(chosen, (library, read), None, (library, result))
    return delivered(library, result, keys)


def groupby_sum(
    keys: Any, values: Any, *, method: str | Method | None = None, grid: int | None = None, where: Any = None,
    skipna: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Returns the different keys, sorted, and the sum of the values of each.

    The sums are by default correctly rounded. Keys that are equal are one key; all NaN are one key, too, and all NaT.

    >>> names, sums = groupby_sum(["b", "a", "b", "b"], [1e16, 5.0, 1.0, -1e16])
    >>> names.tolist(), sums.tolist()
    (['a', 'b'], [5.0, 1.0])
    >>> names, sums = groupby_sum(["a", None, float("nan"), None], [1.0, 2.0, 4.0, 8.0])
    >>> names.tolist(), sums.tolist()
    (['a', None, nan], [1.0, 10.0, 4.0])

    Parameters
    ----------
    keys
        an array of shape (n,) of any type whose elements have a hash: numbers, texts, dates, tuples, None. On a GPU,
        numbers. Integers beside nulls stay integers, and the nulls are None. Keys of a list that NumPy would make equal
        stay apart: 1 and "1", 2**53 + 1 and 2.0**53.
    values
        floats or integers of shape (n, ...), as in `scatter_add`; sums are in fp64. `groupby` has sums that are
        integers.
    method
        name of a method of scatter_add. Default: 'exact'.
    grid
        as for `scatter_add`.
    where
        booleans that are broadcast to values: where they are false, the value is as if absent. Its key stays, with the
        sum +0 if it has no others.
    skipna
        whether values that are NaN are as if absent, too.

    Returns
    -------
    unique, sums
        an array of the m different keys, which is NumPy's unless they are on a GPU, and an array of shape (m, ...)
        of the library of the values, in the format of the method. Keys that do not compare, such as NaN and None,
        come last. If the others do not compare with each other, as numbers and texts or sets, all keys are in order
        of first appearance. Tensors of bfloat16 and narrower on the host become float32, since NumPy has no such types.

    Raises
    ------
    ValueError
        if shapes do not agree, or the method does not exist.
    TypeError
        if keys have no hash or are masked, or elements have a type that is not supported.
    NotImplementedError
        if an array is traced.
    OverflowError
        if a sum overflows the grid.
    """
    library, read = any_keys("groupby_sum", keys)
    unique, numbers = groups("groupby_sum", library, read)
    source = values
    values, where = without_mask(values, where)
    read_values, mask = _masked_values("groupby_sum", "values", values, read.shape[0], where)
    pairs = (library, numbers), "values", read_values
    sums = _sum_by_key("groupby_sum", *pairs, unique.shape[0], method, grid, source, mask, skipna)
    return unique if library.name == "numpy" else delivered(library, unique, keys), sums


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
    threads, grid = check_threads(threads), check_grid(grid)
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
    _device_of(function, keys=(of_keys, starts), values=(library, rows), **{"y": (library, a) for a in inputs[1:]})
    waits = any(isinstance(library_of(owner), Converted) for owner in (keys, source))
    result = _reduce_runs(
        chosen, (of_keys, starts), library, inputs, takes, waits, threads=threads, ddof=ddof, grid=grid
    )
    last = (2,) if chosen.results == 2 else ()
    result = library.contiguous(library.transposed(result, (1, 0, 2)))
    result = result.reshape((starts.shape[0], *rows.shape[1:], *last))
    unique = taken(of_keys, read, starts)
    return (
        unique if of_keys.name == "numpy" else delivered(of_keys, unique, keys),
        delivered(library, result, source),
    )  # fmt: skip


def _reduce_runs(
    method: Method, runs_of: tuple[Any, Any], library: Any, inputs: list[Any], takes: Any, waits: bool, **options: Any
) -> Any:
    """Returns the results of all runs for each column of the inputs. The runs are given as their library and starts.

    `waits` tells whether the owners of the memory do not know of the reading stream.
    """
    of_keys, starts = runs_of
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
    place, first = library.view(result), library.view(columns[0])
    has_two_streams = of_offsets.view(offsets).stream != place.stream
    if has_two_streams:
        of_offsets.wait(offsets)
    run_call(
        method, format_of(inputs[0].dtype), first.address, math.prod(first.shape),
        Layout(inner * runs, 0, 1, 0, 1), place.address, inner * runs * method.results, place.device, place.stream,
        y=library.view(columns[-1]).address, offsets=of_offsets.view(offsets).address, **options,
    )  # fmt: skip
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
    read = {name: _value_array(function, name, a, n, where is not None) for name, a in given.items()}
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
