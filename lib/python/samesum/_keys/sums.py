"""Sums by key: element k belongs to the result that keys[k] names."""

from __future__ import annotations

from typing import Any

from .._arrays.selection import mask_of, takes_part, without_mask
from .._calls.arguments import Call, check_grid, check_threads, whole_number
from .._calls.methods import Method, method_of
from .._calls.results import delivered
from .._elements.formats import DTYPES, dtype_name, format_of, method_format
from .._elements.library import library_of
from .equality import groups
from .reading import any_keys, integer_keys, read_array, taken
from .values import device_of, in_floats_by_key, masked_values, run_by_key


def _sum_by_key(call: Call, argument: str, count: int) -> Any:
    """Returns the sums of x, which the caller of the function knows as `argument`, for the keys below `count`: an array
    of the library of x, in the format of the method.
    """
    device = device_of(call.function, {"keys": call.keys, argument: call.x})
    call.method = method_of(call.method, "scatter_add", method_format(call.x.dtype), device)
    shape, dtype = (count, *call.x.shape[1:]), DTYPES[call.method.format]
    call.result = library_of(call.x).empty(shape, dtype, call.x)
    in_floats_by_key(call, argument)
    call.grid = check_grid(call.grid)
    run_by_key(call)
    return call.result


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
    _, keys = integer_keys(function, keys)
    values, where = without_mask(values, where)
    rows, mask = masked_values(function, "values", values, keys.shape[0], where)
    device = device_of(function, {"out": before, "keys": keys, "values": rows})
    chosen = method_of(method, function, format, device)
    if chosen.format != format:
        raise TypeError(
            f"samesum: out has elements of type {dtype_name(before.dtype)}, and method {chosen.name} adds to "
            f"{DTYPES[chosen.format]}; convert out, or choose a method in its format"
        )
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
    call = Call(
        function, rows, method=chosen, threads=threads, where=mask, skipna=skipna, grid=grid, keys=keys, combine=True,
        result=result,
    )  # fmt: skip
    in_floats_by_key(call, "values")
    run_by_key(call)
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
        elements, mask = masked_values("bincount", "weights", weights, read.shape[0], where)
        if elements.ndim != 1:
            raise ValueError(f"samesum: bincount: weights has {elements.ndim} axes; pass one, or call scatter_add")
        where = takes_part(library_of(elements), mask, skipna, elements)
        elements = elements if where is None else elements[where]
    if where is not None:
        read = taken(library, read, mask_of(library, read, where, "keys"))
    if read.shape[0]:
        signed = library.astype(read, "int64") if dtype_name(read.dtype) == "uint32" else read  # PyTorch needs it
        count = max(count, int(signed.max()) + 1)
    if weights is not None:
        call = Call("scatter_add", elements, method=method, grid=grid, function="bincount", keys=read)
        return delivered(library_of(elements), _sum_by_key(call, "weights", count), source)
    if grid is not None:
        raise ValueError("samesum: bincount: grid is only for weights; leave it out to count")
    result = library.empty((count,), "int64", read)
    chosen = method_of(method, "scatter_count", "fp64", device_of("bincount", {"keys": read}))
    run_by_key(Call("scatter_count", method=chosen, keys=read, result=result))
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
    rows, mask = masked_values("groupby_sum", "values", values, read.shape[0], where)
    call = Call(
        "scatter_add", rows, method=method, where=mask, skipna=skipna, grid=grid, function="groupby_sum", keys=numbers
    )
    sums = delivered(library_of(rows), _sum_by_key(call, "values", unique.shape[0]), source)
    return unique if library.name == "numpy" else delivered(library, unique, keys), sums
