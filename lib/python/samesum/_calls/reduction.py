"""From the arguments of a function to one call of the library."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core
from .._arrays.inputs import second_array
from .._arrays.selection import counts_of, mask_of, narrowed, takes_part, without_mask, without_masks
from .._elements.carried import keeping_unit
from .._elements.formats import DTYPES, format_of, method_format
from .._elements.in_floats import adds_exactly, held_floats, in_floats, in_two_floats, not_held
from .._elements.layout import normalised_axes
from .._elements.library import library_of
from .._elements.traced import reduce_traced
from .._frames.kinds import kind_of
from .._frames.reductions import reduce_frames
from .arguments import Options, check_grid, check_threads
from .axes import per_axis, per_element
from .inputs import in_type, paired_inputs, read
from .integers import EXACT_OPERATIONS, mean_of_integers, reduce_integers
from .methods import is_exact, method_of
from .results import delivered


@keeping_unit
def reduce(operation: str, x: Any, y: Any = None, **options: Any) -> Any:
    """Reduces axes of x (of x and y, for dot) by a method of `operation`. See `Options` for the keywords."""
    if y is None and kind_of(x):
        return reduce_frames(reduce, _reduce_chunks, operation, x, options)
    o = Options(**options)
    if y is None:
        x, where = without_mask(x, o.where)
    else:
        x, y, where = without_masks(x, y, o.where)
    owner = library_of(x)
    if y is None and operation == "dot":
        raise TypeError("samesum: y is None; pass the second input")
    if owner.is_traced(x) or (y is not None and library_of(y).is_traced(y)):
        _refuse_in_traces(o._replace(where=where))
        return reduce_traced(operation, x, y, o)
    threads, grid = check_threads(o.threads), check_grid(o.grid)
    if threads is not o.threads or grid is not o.grid:  # a copy takes as long as the other checks
        o = o._replace(threads=threads, grid=grid)
    keeps_integers = operation in EXACT_OPERATIONS and is_exact(o.method, operation) and grid is None
    library, a, b, axes, where = _read_inputs(x, y, o, where, keeps_integers)
    has_objects = getattr(a.dtype, "hasobject", False)
    if has_objects and not library.are_integers(a):
        raise not_held("x")
    format = "int" if has_objects else format_of(a.dtype)
    if where is not None or o.skipna:
        o = o._replace(where=where, skipna=bool(o.skipna) and format != "int")
    result = _exact_result(library, operation, a, axes, o, keeps_integers) if format == "int" else None
    if result is not None:
        return delivered(library, result, x, o.out)
    chosen = method_of(o.method, operation, method_format(a.dtype), library.view(a).device)
    if format == "int":
        floats = held_floats(library, a, chosen, mask=where)
        if floats is None and adds_exactly(chosen):
            return delivered(library, _of_two_floats(library, operation, a, axes, o), x, o.out)
        if floats is None:
            raise not_held("x")
        format, a, b = "fp64", floats, None if b is None else in_floats(library, b, o.second, chosen, mask=where)
    if chosen.has_result_per_element:
        if o.where is not None or o.skipna:
            raise TypeError(f"samesum: {operation} takes no masked array; pass x.filled(-math.inf)")
        result = per_element(library, chosen, format, a, axes, o.out, o.threads)
    else:
        result = per_axis(library, chosen, format, a, b, axes, o if o.finish is None else o._replace(out=None))
    if o.as_numpy and (o.where is not None or o.skipna):
        result = _as_numpy(library, operation, a, axes, o, result)
    if o.finish is not None:
        result = o.finish(library.namespace, result)
    if b is not None and library_of(y) is not library:
        library.wait(b)  # the owner of the memory does not know of the reading stream
    return delivered(library, result, x, o.out)


def _refuse_in_traces(o: Options) -> None:
    """Raises TypeError for options that a traced call does not have."""
    if o.check:
        raise TypeError("samesum: check does not go with tracing or gradients; call integer_overflow afterwards")
    if o.grid is not None:
        raise TypeError("samesum: grid does not go with tracing or gradients; leave it out, so that a grid is found")
    if o.where is not None or o.skipna:
        raise TypeError("samesum: where and skipna do not go with tracing or gradients; pass x.detach()")


def _read_inputs(
    x: Any, y: Any, o: Options, where: Any, keeps_integers: bool
) -> tuple[Any, Any, Any, tuple[int, ...], Any]:
    """Returns the library of x, the inputs in one type and shape (the second may be None), the axes, and the mask."""
    wide = o.dtype is not None or where is not None
    library, a = read(x, o.out, wide=keeps_integers or wide)
    b = None if y is None else second_array(library, a, library_of(x).second(y), o.second, wide)
    a, b = in_type(library, a, o.dtype), in_type(library, b, o.dtype)
    if b is not None:
        return library, *paired_inputs(library, a, b, o.axis, where, o.skipna, o.second)
    axes, mask = normalised_axes(o.axis, a.ndim), mask_of(library, a, where)
    return library, narrowed(library, a, mask, wide=keeps_integers), None, axes, mask


def _exact_result(
    library: Any, operation: str, a: Any, axes: tuple[int, ...], o: Options, keeps_integers: bool
) -> Any:
    """Returns results of integers that need no method, or None."""
    if keeps_integers:
        return reduce_integers(library, operation, a, axes, o.keepdims, o.check, o.where)
    if operation == "mean" and is_exact(o.method, operation) and o.grid is None:
        return mean_of_integers(library, a, axes, o.keepdims, o.where)
    return None


def _of_two_floats(library: Any, operation: str, a: Any, axes: tuple[int, ...], o: Options) -> Any:
    """Returns sums or means of integers. The mean of n is twice that of their 2n parts."""
    parts = library.namespace.stack(in_two_floats(library, a), -1)
    where = None if o.where is None else o.where[..., None]
    whole = o._replace(axis=(*axes, a.ndim), dtype=None, out=None, where=where)
    result = reduce(operation, parts, **whole._asdict())
    if o.keepdims:
        result = result[..., 0]
    return result * 2 if operation == "mean" else result


def _reduce_chunks(operation: str, chunks: Sequence[Any], options: dict[str, Any]) -> Any:
    """Returns the result of a column in chunks of elements and flags, from a partial to which each chunk is added.

    Returns None for options or methods that need the elements together.
    """
    o = Options(**options)
    axis = None if o.axis in (0, -1) else o.axis
    used = {name: getattr(o, name) for name in ("method", "threads", "ddof", "grid", "skipna", "finish")}
    is_plain = o.out is None and o._replace(axis=axis) == Options(**used)
    format = format_of(chunks[0].values.dtype)
    selects = o.skipna or any(chunk.valid is not None for chunk in chunks)
    if not is_plain or format == "int" or (selects and operation.startswith("arg")):
        return None
    threads, numpy = check_threads(o.threads), library_of([])
    method = method_of(o.method, operation, format, -1)
    if method.has_result_per_element or (method.accumulator == "fixed_point" and o.grid is None):
        return None
    try:
        partial = _core.Partial(method, 0, check_grid(o.grid))
    except ValueError:  # atomic methods have no partials
        return None
    for values, valid in chunks:
        takes = takes_part(numpy, valid, o.skipna, values)
        a = numpy.array(values if takes is None else values[takes])
        partial.add(format, numpy.view(a).address, 0, a.size, False, -1, 0, threads)
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    result = numpy.np.array(partial.finish(float(o.ddof)), numpy.dtype(dtype))
    return result[()] if o.finish is None else o.finish(numpy.namespace, result)[()]


def _as_numpy(library: Any, operation: str, a: Any, axes: tuple[int, ...], o: Options, result: Any) -> Any:
    """Returns results in which those of no elements are NaN. Raises ValueError if one of them is an index."""
    if operation.startswith("arg"):
        if bool((result < 0).any()):
            raise ValueError(f"samesum: nan{operation}: all elements of a result are NaN or left out; pass others")
        return result
    if not bool((result == (math.inf if operation == "min" else -math.inf)).any()):
        return result  # only the extremum of no elements, and of infinities, is infinite
    counts = counts_of(library, takes_part(library, o.where, o.skipna, a), axes)
    if bool((counts == 0).any()):
        nan = library.namespace.full_like(result, math.nan)
        library.copy_to(result, library.namespace.where(counts.reshape(tuple(result.shape)) == 0, nan, result))
    return result
