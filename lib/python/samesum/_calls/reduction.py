"""From the arguments of a function to one call of the library."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core
from .._arrays.inputs import second_array
from .._arrays.selection import counts_of, mask_of, narrowed, takes_part, without_mask, without_masks
from .._elements.carried import has_unit, in_its_unit
from .._elements.formats import DTYPES, format_of, method_format
from .._elements.in_floats import adds_exactly, held_floats, in_floats, in_two_floats, not_held
from .._elements.layout import normalised_axes
from .._elements.library import library_of
from .._elements.traced import reduce_traced, watches
from .._frames.kinds import kind_of
from .._frames.reductions import reduce_frames
from .arguments import Call, check_grid, check_threads, names_of_torch
from .axes import per_axis, per_element
from .inputs import in_type, pair_inputs, read
from .integers import EXACT_OPERATIONS, mean_of_integers, reduce_integers
from .methods import is_exact, method_of
from .results import delivered

_fast = _core.fast


def reduce(call: Call) -> Any:
    """Reduces axes of x (of x and y, for dot) by a method of an operation. Tries the fast path of `_core` first."""
    result = None if watches and watches[0]() else _fast(call)
    return _reduce_any(call) if result is None else result


def _finished(x: Any, finish: Any, result: Any) -> Any:
    """Returns what a call computes from the result of the fast path."""
    library = library_of(x)
    return library.finished(finish(library.namespace, result), x)


_core.finish_by(_finished)


def _reduce_any(call: Call) -> Any:
    """Reduces what is no array, what carries more than numbers, and what its library must see."""
    if call.dim is not None or call.keepdim is not None:
        names_of_torch(call)
        return reduce(call)
    if call.y is None and kind_of(call.x):
        return reduce_frames(reduce, _reduce_chunks, call)
    if has_unit(call):
        return in_its_unit(call, _reduce_any)
    x, where = call.x, call.where
    if call.y is None:
        call.x, call.where = without_mask(x, where)
    else:
        call.x, call.y, call.where = without_masks(x, call.y, where)
    if call.y is None and call.operation == "dot":
        raise TypeError("samesum: y is None; pass the second input")
    if library_of(call.x).is_traced(call.x) or (call.y is not None and library_of(call.y).is_traced(call.y)):
        _refuse_in_traces(call)
        return reduce_traced(call)
    return _reduce_arrays(call) if call.x is x and call.where is where else reduce(call)


def _refuse_in_traces(call: Call) -> None:
    """Raises TypeError for options that a traced call does not have."""
    if call.check:
        raise TypeError("samesum: check does not go with tracing or gradients; call integer_overflow afterwards")
    if call.grid is not None:
        raise TypeError("samesum: grid does not go with tracing or gradients; leave it out, so that a grid is found")
    if call.where is not None or call.skipna:
        raise TypeError("samesum: where and skipna do not go with tracing or gradients; pass x.detach()")


def _reduce_arrays(call: Call) -> Any:
    """Reduces axes of arrays in memory."""
    x, y = call.x, call.y
    call.threads, call.grid = check_threads(call.threads), check_grid(call.grid)
    keeps_integers = call.operation in EXACT_OPERATIONS and is_exact(call.method, call.operation) and call.grid is None
    _read_inputs(call, keeps_integers)
    library = call.library
    result = _result_of_integers(call, keeps_integers) if call.format == "int" else None
    if result is not None:
        return delivered(library, result, x, call.out)
    if call.method.has_result_per_element:
        if call.where is not None or call.skipna:
            raise TypeError(f"samesum: {call.operation} takes no masked array; pass x.filled(-math.inf)")
        result = per_element(call)
    else:
        result = per_axis(call)
    if call.as_numpy and (call.where is not None or call.skipna):
        result = _as_numpy(call, result)
    if call.finish is not None:
        result = call.finish(library.namespace, result)
    if call.y is not None and library_of(y) is not library:
        library.wait(call.y)  # the owner of the memory does not know of the reading stream
    return delivered(library, result, x, call.out)


def _read_inputs(call: Call, keeps_integers: bool) -> None:
    """Replaces the inputs by arrays of one library, type and shape, and finds the axes, the format and the method.

    That of integers is yet to be found.
    """
    wide = call.dtype is not None or call.where is not None
    library, a = read(call.x, call.out, wide=keeps_integers or wide)
    b = None if call.y is None else second_array(library, a, library_of(call.x).second(call.y), call.second, wide)
    call.library, call.x, call.y = library, in_type(library, a, call.dtype), in_type(library, b, call.dtype)
    if b is not None:
        pair_inputs(call)
    else:
        call.axes, call.where = normalised_axes(call.axis, call.x.ndim), mask_of(library, call.x, call.where)
        call.x = narrowed(library, call.x, call.where, wide=keeps_integers)
    has_objects = getattr(call.x.dtype, "hasobject", False)
    if has_objects and not library.are_integers(call.x):
        raise not_held("x")
    call.format = "int" if has_objects else format_of(call.x.dtype)
    call.skipna = bool(call.skipna) and call.format != "int"
    if call.format != "int":
        call.method = method_of(call.method, call.operation, call.format, library.view(call.x).device)


def _result_of_integers(call: Call, keeps_integers: bool) -> Any:
    """Returns results of integers that stay integers, or are beyond fp64. Else returns None: the inputs become fp64."""
    library, where = call.library, call.where
    if keeps_integers:
        return reduce_integers(call)
    if call.operation == "mean" and is_exact(call.method, call.operation) and call.grid is None:
        result = mean_of_integers(call)
        if result is not None:
            return result
    given = call.method
    call.method = method_of(given, call.operation, method_format(call.x.dtype), library.view(call.x).device)
    floats = held_floats(library, call.x, call.method, mask=where)
    if floats is None and adds_exactly(call.method):
        call.method = given
        return _of_two_floats(call)
    if floats is None:
        raise not_held("x")
    call.format, call.x = "fp64", floats
    call.y = None if call.y is None else in_floats(library, call.y, call.second, call.method, mask=where)
    return None


def _of_two_floats(call: Call) -> Any:
    """Returns sums or means of integers. The mean of n is twice that of their 2n parts."""
    whole, ndim = call.copy(), call.x.ndim
    whole.x = call.library.namespace.stack(in_two_floats(call.library, call.x), -1)
    whole.where = None if call.where is None else call.where[..., None]
    whole.axis, whole.dtype, whole.out = (*call.axes, ndim), None, None
    result = reduce(whole)
    if call.keepdims:
        result = result[..., 0]
    return result * 2 if call.operation == "mean" else result


def _reduce_chunks(call: Call, chunks: Sequence[Any]) -> Any:
    """Returns the result of a column in chunks of elements and flags, from a partial to which each chunk is added.

    Returns None for options or methods that need the elements together.
    """
    has_others = call.out is not None or call.dtype is not None or call.keepdims or call.check or call.as_numpy
    operation, format = call.operation, format_of(chunks[0].values.dtype)
    selects = call.skipna or any(chunk.valid is not None for chunk in chunks)
    is_plain = not has_others and call.axis in (None, 0, -1)
    if not is_plain or format == "int" or (selects and operation.startswith("arg")):
        return None
    threads, numpy = check_threads(call.threads), library_of([])
    method = method_of(call.method, operation, format, -1)
    if method.has_result_per_element or (method.accumulator == "fixed_point" and call.grid is None):
        return None
    try:
        partial = _core.Partial(method, 0, check_grid(call.grid))
    except ValueError:  # atomic methods have no partials
        return None
    for values, valid in chunks:
        takes = takes_part(numpy, valid, call.skipna, values)
        a = numpy.array(values if takes is None else values[takes])
        partial.add(Call(x=a, threads=threads, library=numpy, format=format))
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    result = numpy.np.array(partial.finish(float(call.ddof)), numpy.dtype(dtype))
    return result[()] if call.finish is None else call.finish(numpy.namespace, result)[()]


def _as_numpy(call: Call, result: Any) -> Any:
    """Returns results in which those of no elements are NaN. Raises ValueError if one of them is an index."""
    library, operation = call.library, call.operation
    if operation.startswith("arg"):
        if bool((result < 0).any()):
            raise ValueError(f"samesum: nan{operation}: all elements of a result are NaN or left out; pass others")
        return result
    if not bool((result == (math.inf if operation == "min" else -math.inf)).any()):
        return result  # only the extremum of no elements, and of infinities, is infinite
    counts = counts_of(library, takes_part(library, call.where, call.skipna, call.x), call.axes)
    if bool((counts == 0).any()):
        nan = library.namespace.full_like(result, math.nan)
        library.copy_to(result, library.namespace.where(counts.reshape(tuple(result.shape)) == 0, nan, result))
    return result
