"""From the arguments of a function to one call of the library."""

from __future__ import annotations

import copyreg
import inspect
import math
import operator
from functools import lru_cache
from typing import Any, NamedTuple, Sequence, Union

from .. import _core
from .._arrays.converted import Converted
from .._arrays.inputs import second_array
from .._arrays.selection import (
    beside, counts_of, mask_of, narrowed, packed_rows, places_of, takes_part, without_mask, without_masks,
)  # fmt: skip
from .._elements.carried import keeping_unit
from .._elements.formats import DTYPES, dtype_name, format_of, method_format
from .._elements.in_floats import adds_exactly, held_floats, in_floats, in_two_floats, not_held
from .._elements.layout import Layout, axes_last, layout_of, normalised_axes, paired, reduced_shape, rows, vector
from .._elements.library import View, library_of
from .._elements.traced import reduce_traced
from .._frames.frames import kind_of, reduce_frames
from .integers import EXACT_OPERATIONS, mean_of_integers, reduce_integers

Method = _core.Method


def _method_named(name: str, operation: str) -> Method:
    return _core.find(name, operation, "", "")


copyreg.pickle(Method, lambda method: (_method_named, (method.name, method.operation)))  # type: ignore[arg-type]
MethodName = Union[str, Method, None]
run_call = _core.run


@lru_cache(maxsize=None)
def default_method(operation: str, format: str, backend: str) -> Method:
    """Returns the method that a function uses if the caller names none."""
    method = _core.default_method(operation, format, backend)
    if method is None:
        raise TypeError(_no_method(operation, backend))
    _core.remember(operation, "", format, backend, method)
    return method


def _no_method(operation: str, backend: str) -> str:
    if backend in _core.absent():
        return f"samesum: there are no methods on the backend '{backend}': {_core.absent()[backend]}"
    return f"samesum: {operation} has no method on the backend '{backend}'; copy x to the host"


@lru_cache(maxsize=4096)
def find_method(name: str, operation: str, format: str, backend: str) -> Method:
    """Returns the method `name`, whose missing fields are those of the call.

    Raises ValueError if there is no such method, or if it belongs to another operation.
    """
    method = _core.find(name, operation, format, backend)
    if method.operation != operation:
        raise ValueError(
            f"samesum: method {name!r} computes {method.operation}, not {operation}; leave out the operation"
        )
    if not method.accepts(format):
        raise TypeError(
            f"samesum: method {method.name} does not accept elements of format {format}; convert them with "
            f"dtype={DTYPES[method.format]!r}, or choose a method in another format"
        )
    if method.backend == backend:
        _core.remember(operation, name, format, backend, method)
    return method


def method_of(name: str | Method | None, operation: str, format: str, device: int) -> Method:
    backend = "cuda" if device >= 0 else "cpu"
    if name is None:
        return default_method(operation, format, backend)
    if isinstance(name, Method):
        name = name.name
    if not isinstance(name, str):
        raise TypeError(f"samesum: method is {name!r}; use a name such as 'tree/kahan', or a samesum.Method")
    method = find_method(name, operation, format, backend)
    if device >= 0 and method.backend != "cuda":
        raise ValueError(
            f"samesum: method {method.name} does not read the memory of a GPU; use @cuda, or copy x to the host"
        )
    return method


def run(
    method: Method, format: str, x: View, y: View | None, layout: Layout, out: View, out_size: int, out_stride: int,
    threads: int, ddof: float, grid: int | None = None, where: View | None = None, skipna: bool = False,
    offsets: View | None = None,
) -> None:  # fmt: skip
    """Runs one call. If the method reduces single vectors only, they are contiguous."""
    run_call(
        method, format, x.address, math.prod(x.shape) if offsets else layout.extent, layout, out.address, out_size,
        x.device, x.stream, y=y.address if y else 0, out_stride=out_stride, threads=threads, ddof=ddof, grid=grid,
        where=where.address if where else 0, skip_nan=skipna, offsets=offsets.address if offsets else 0,
    )  # fmt: skip


def _needs_vectors(method: Method, format: str, layout: Layout) -> bool:
    """Whether the method reduces single contiguous vectors only."""
    return method.backend == "cuda" and layout != vector(layout.n) and not _core.accepts_layout(method, format, layout)


def check_operation(function: str, operation: Any) -> None:
    """Raises ValueError if an operation, given by its name, is no reduction of all elements to one result."""
    known = dict.fromkeys(
        m.operation for m in _core.methods()
        if not (m.takes_keys or m.takes_window or m.is_scan or m.has_result_per_element)
    )
    if operation not in [*known]:  # perhaps without a hash
        raise ValueError(f"samesum: {function}: operation is {operation!r}; use one of {', '.join(known)}")


def whole_number(name: str, value: Any, meaning: str = "") -> int:
    """Returns an argument as an integer. `meaning` ends the message of the TypeError if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"samesum: {name} is {value!r}; use a whole number{meaning}") from None


def check_threads(threads: Any) -> int:
    """Returns the number of threads for a call."""
    count = whole_number("threads", threads)
    if count < 0:
        raise ValueError(f"samesum: threads is {threads!r}; use 0 for one per processor, or a positive number")
    return min(count, 1 << 20)


def check_grid(grid: Any) -> int | None:
    """Returns the exponent of a grid for a call."""
    if grid is None:
        return None
    return max(-(1 << 30), min(whole_number("grid", grid, ", the exponent of 2"), 1 << 30))  # beyond the limits anyway


def correction_of(correction: float | None, ddof: float | None) -> float:
    """Returns what is subtracted from n in the divisor of a variance, from its two names."""
    if correction is not None and ddof is not None and correction != ddof:
        raise ValueError(f"samesum: correction is {correction} and ddof {ddof}; they are two names of one argument")
    return float(correction if correction is not None else ddof if ddof is not None else 0)


def names_of_torch(
    x: Any, axis: Any, dim: Any, keepdims: bool = False, keepdim: bool | None = None, default: int | None = None
) -> tuple[Any, bool]:
    """Returns axis and keepdims from their names in PyTorch, dim and keepdim. `default` is that of axis."""
    if library_of(x).name != "torch":
        raise TypeError(
            f"samesum: x is a {type(x).__name__}, and dim and keepdim are for PyTorch's tensors; pass axis and keepdims"
        )
    if dim is not None and axis != default:
        raise ValueError(f"samesum: axis is {axis} and dim {dim}; they are two names of one argument, so pass one")
    if keepdim is not None and keepdims:
        raise ValueError("samesum: keepdims and keepdim are two names of one argument; pass one")
    if dim is not None:
        axis = None if isinstance(dim, (tuple, list)) and not dim else dim
    return axis, bool(keepdim) or keepdims


def arguments_by_name(name: str, signature: inspect.Signature, arguments: Any, keywords: Any) -> dict[str, Any]:
    """Returns the arguments of a call by their names. Raises TypeError, as Python does, if they do not fit."""
    try:
        given = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    given.apply_defaults()
    return given.arguments


def refuse_traced(operation: str, x: Any) -> None:
    """Raises NotImplementedError if x is traced, by an operation with a result per element."""
    library = library_of(x)
    if library.is_traced(x):
        library.require_strided(x, "x")
        raise NotImplementedError(
            f"samesum: {operation} has no gradient, and is not traced or compiled; pass x.detach(), or call it outside "
            "of transformations"
        )


def floats_for(
    library: Any, operation: str, a: Any, method: str | Method | None, argument: str = "x", mask: Any = None
) -> Any:
    """Returns the elements of an array as a method of an operation takes them: integers in fp64. Those that a mask
    hides may become any number.
    """
    a = narrowed(library, a, mask, argument)
    if format_of(a.dtype, argument) != "int":
        return a
    return in_floats(library, a, argument, method_of(method, operation, "fp64", library.view(a).device), mask=mask)


def read_floats(
    operation: str, x: Any, where: Any, dtype: Any, out: Any, method: str | Method | None
) -> tuple[Any, Any, Any, Method]:
    """Returns the library that reads x, its elements as a method takes them, their mask, and the method."""
    library, a = read(x, out, wide=dtype is not None or where is not None)
    a = in_type(library, a, dtype)
    mask = mask_of(library, a, where)
    a = floats_for(library, operation, a, method, mask=mask)
    return library, a, mask, method_of(method, operation, format_of(a.dtype), library.view(a).device)


class Options(NamedTuple):
    """The options of a reduction: keywords of the public functions, and what these add."""

    axis: Any = None
    dtype: Any = None
    keepdims: bool = False
    out: Any = None
    method: str | Method | None = None
    threads: int = 0
    ddof: float = 0
    grid: Any = None
    check: bool = False
    where: Any = None
    skipna: bool = False
    as_numpy: bool = False
    """Whether results for no elements are those of NumPy's nan-functions: extrema NaN, and indices errors."""
    finish: Any = None
    """finish(namespace, result) computes further from the results, in the caller's array library."""


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
        format, a, b = "fp64", floats, None if b is None else in_floats(library, b, "y", chosen, mask=where)
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
    b = None if y is None else second_array(library, a, library_of(x).second(y), wide=wide)
    a, b = in_type(library, a, o.dtype), in_type(library, b, o.dtype)
    if b is not None:
        return library, *_paired(library, a, b, o.axis, where, o.skipna)
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


def read(x: Any, out: Any = None, wide: bool = False) -> tuple[Any, Any]:
    """Returns the library that reads x, and its array of the same elements. See `NumPy.array` for `wide`."""
    owner = library_of(x)
    if out is not None and isinstance(owner, Converted):
        raise TypeError("samesum: out must be a NumPy, CuPy or PyTorch array, and x of the same library")
    return owner.reader(x, wide=wide)


def in_type(library: Any, a: Any, dtype: Any) -> Any:
    """Converts an array to a data type of any library, unless one of them is None."""
    if a is None or dtype is None:
        return a
    format_of(dtype, "dtype")  # raises for what has no numbers
    return library.astype(a, dtype_name(dtype))


def _paired(
    library: Any, a: Any, b: Any, axis: Any, where: Any, skipna: bool
) -> tuple[Any, Any, tuple[int, ...], Any]:
    """Returns two inputs in one type and shape, the reduced axes, and the mask of the pairs."""
    a, b, axes = paired(library.namespace, a, b, axis)
    mask = takes = None
    if where is not None or skipna:
        both = library.broadcast(a, b)
        mask = takes = mask_of(library, both[0], where)
        a, b = narrowed(library, a, mask), narrowed(library, b, mask, "y")
        if skipna and (format_of(a.dtype) == "int") != (format_of(b.dtype, "y") == "int"):
            takes = takes_part(library, mask, True, *both)
    a, b = same_type(library, a, b, takes)
    return (a, b, axes, mask) if a.shape == b.shape else (*library.broadcast(a, b), axes, mask)


def is_exact(method: str | Method | None, operation: str) -> bool:
    """Whether integers stay integers: unless the caller names a method with a format or with rounding."""
    return method in (None, "exact", operation, f"{operation}/exact")


def delivered(library: Any, result: Any, source: Any, out: Any = None) -> Any:
    """Returns a result, or `out` with it, as the caller gets it: an array of the library of `source`."""
    owner = library_of(source)
    if isinstance(owner, Converted):
        library.wait(result)  # the owner of the memory does not know of the reading stream
        return owner.returned(library.finished(result, result), source)
    if out is None:
        return library.finished(result, source)
    if out is not result:
        check_out(library, out, tuple(result.shape), dtype_name(result.dtype))
        library.copy_to(out, result)
    return out


def common_type(namespace: Any, a: Any, b: Any) -> str:
    """Returns the name of the narrowest type that holds the elements of two data types."""
    if {dtype_name(a), dtype_name(b)} == {"float16", "bfloat16"}:
        return "float32"  # NumPy knows no common type of these
    return dtype_name(namespace.promote_types(a, b))


def same_type(library: Any, a: Any, b: Any, mask: Any = None) -> tuple[Any, Any]:
    """Converts the narrower of two inputs to the type of the wider one. A mask tells which of the pairs take part."""
    first, second = format_of(a.dtype), format_of(b.dtype, "y")
    if first == second:
        return a, b
    wider = common_type(library.namespace, a.dtype, b.dtype)
    a = in_floats(library, a, dtype=wider, mask=mask) if first == "int" else library.astype(a, wider)
    return a, in_floats(library, b, "y", dtype=wider, mask=mask) if second == "int" else library.astype(b, wider)


def check_out(library: Any, out: Any, shape: tuple[int, ...], dtype: str) -> None:
    if not isinstance(out, library.kind):
        raise TypeError(f"samesum: out is a {type(out).__name__}; it must be an array of the library of x")
    if tuple(out.shape) != shape:
        raise ValueError(f"samesum: out has shape {tuple(out.shape)}; the result has shape {shape}")
    if dtype_name(out.dtype) != dtype:
        raise TypeError(f"samesum: out has elements of type {dtype_name(out.dtype)}; the result has {dtype}")
    library.array(out, "out")  # raises for what has no elements in memory, or some that are masked
    if not getattr(getattr(out, "flags", None), "writeable", True):
        raise ValueError("samesum: out is read-only; pass an array that can be written")


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def result_array(library: Any, out: Any, shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    """Returns `out` if results can be written to it in place, else a new array."""
    if out is not None:
        check_out(library, out, shape, dtype)
        view = library.view(out)
        is_plain = view.address % out.dtype.itemsize == 0 and getattr(out.dtype, "isnative", True)
        if is_plain and _is_contiguous(shape, view.strides) and library.place(out) == library.place(like):
            return out
    return library.empty(shape, dtype, like)


def per_axis(library: Any, method: Method, format: str, a: Any, b: Any, axes: tuple[int, ...], o: Options) -> Any:
    """Returns a result for each row of the axes, or two. The options are checked."""
    inputs = [a] if b is None else [a, b]
    masks = [] if o.where is None else [o.where]
    if (masks or o.skipna) and library.view(a).device >= 0:
        return _per_packed_row(library, method, format, inputs, axes, o)
    shape, strides = tuple(a.shape), [library.strides(c) for c in inputs + masks]
    repeated = [d for d, n in enumerate(shape) if n > 1 and d not in axes and not any(s[d] for s in strides)]
    if repeated:  # by broadcasting: each result is computed once
        once = tuple(slice(1) if d in repeated else slice(None) for d in range(a.ndim))
        b = None if b is None else b[once]
        where = None if o.where is None else o.where[once]
        result = per_axis(library, method, format, a[once], b, axes, o._replace(out=None, keepdims=True, where=where))
        whole = reduced_shape(shape, axes, True) + tuple(result.shape[a.ndim :])
        whole_result = library.contiguous(library.namespace.broadcast_to(result, whole))
        return whole_result.reshape(reduced_shape(shape, axes, o.keepdims) + whole[a.ndim :])
    masks = [beside(library, a, mask) for mask in masks]
    layout = layout_of(shape, strides[0], axes)
    if layout is not None and any(layout_of(shape, library.strides(c), axes) != layout for c in inputs[1:] + masks):
        layout = None
    if layout is None or _needs_vectors(method, format, layout):
        # One copy, in which the elements of each result are contiguous.
        order, _ = axes_last(a.ndim, axes)
        inputs, masks = ([library.contiguous(library.transposed(c, order)) for c in all] for all in (inputs, masks))
        layout = rows(math.prod(reduced_shape(shape, axes, False)), math.prod(shape[d] for d in axes))
    result = _results_of_axes(library, method, inputs[0], shape, axes, o)
    if layout.results:
        x, *others = [library.view(c) for c in inputs]
        run(
            method, format, x, others[0] if others else None, layout, library.view(result),
            layout.results * method.results, 0, o.threads, o.ddof, o.grid, library.view(masks[0]) if masks else None,
            o.skipna,
        )  # fmt: skip
    return result


def _results_of_axes(
    library: Any, method: Method, like: Any, shape: tuple[int, ...], axes: tuple[int, ...], o: Options
) -> Any:
    """Returns the array for the results of reducing the axes of an array of that shape."""
    whole = reduced_shape(shape, axes, o.keepdims) + ((2,) if method.results == 2 else ())
    dtype = "int64" if method.returns_index else DTYPES[method.format]
    return result_array(library, o.out if method.results == 1 else None, whole, dtype, like)


def _per_packed_row(
    library: Any, method: Method, format: str, inputs: list[Any], axes: tuple[int, ...], o: Options
) -> Any:
    """Returns a result for each row of the axes from its elements that take part, which the library packs on a GPU."""
    takes = takes_part(library, o.where, o.skipna, *inputs)
    packed, offsets, flags = packed_rows(library, inputs, takes, axes)
    result = _results_of_axes(library, method, inputs[0], tuple(inputs[0].shape), axes, o)
    count = offsets.shape[0] - 1
    if count:
        x, *others = [library.view(c) for c in packed]
        run(
            method, format, x, others[0] if others else None, Layout(count, 0, 1, 0, 1), library.view(result),
            count * method.results, 0, o.threads, o.ddof, o.grid, offsets=library.view(offsets),
        )  # fmt: skip
        if method.returns_index:
            library.copy_to(result, places_of(library, result, offsets, flags))
    return result


def per_element(
    library: Any, method: Method, format: str, a: Any, axes: tuple[int, ...], out: Any, threads: int
) -> Any:
    order, back = axes_last(a.ndim, axes)
    moved = library.transposed(a, order)
    kept = a.ndim - len(axes)
    n = math.prod(moved.shape[kept:])
    layout = layout_of(moved.shape, library.strides(moved), range(kept, a.ndim))
    if layout is None or layout.inner != 1 or layout.stride != 1 or layout.outer_stride < n:
        moved = library.contiguous(moved)
        layout = rows(math.prod(moved.shape[:kept]), n)
    straight = back == tuple(range(a.ndim))
    result_format = format if method.keeps_format else method.format
    result = result_array(library, out if straight else None, tuple(moved.shape), DTYPES[result_format], a)
    if layout.results and n:
        run(method, format, library.view(moved), None, layout, library.view(result), layout.outer * n, n, threads, 0)
    return result if straight else library.transposed(result, back)
