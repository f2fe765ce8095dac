"""The arrays of a function of several inputs: in one library, in one format, and as rows."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Sequence

from .. import _core
from .._arrays.inputs import second_array
from .._arrays.selection import narrowed
from .._calls.arguments import Call
from .._calls.inputs import common_type, in_type, read
from .._calls.methods import MethodName, method_of
from .._elements.formats import dtype_name, format_of
from .._elements.in_floats import in_floats
from .._elements.layout import axes_last
from .._elements.library import library_of


class Inputs(NamedTuple):
    """Arrays of one library in host memory, with elements of one format."""

    library: Any
    arrays: list[Any]
    format: str
    widest: str
    """The format of results: the widest one of the arrays as they came."""


def read_arrays(
    function: str, inputs: dict[str, Any], dtype: Any = None, out: Any = None, has_mask: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Returns the library that reads x, and its arrays of x and of the other inputs of a function.

    If there will be a mask, numbers whose integers no type of 64 bits holds stay objects.
    """
    x = inputs["x"]
    owner = library_of(x)
    for name, a in inputs.items():
        library_of(a).refuse_traced(function, a, name, ", or use samesum.vecdot, which has gradients")
    wide = dtype is not None or has_mask
    library, first = read(x, out, wide)
    if library.view(first).device >= 0:
        raise ValueError(f"samesum: {function} does not read the memory of a GPU; copy x to the host")
    arrays = {"x": first}
    for name, a in inputs.items():
        if name != "x":
            arrays[name] = second_array(library, first, owner.second(a), name, wide)
    return library, {name: in_type(library, a, dtype) for name, a in arrays.items()}


def in_one_format(library: Any, arrays: dict[str, Any], masks: dict[str, Any] | None = None) -> Inputs:
    """Returns the arguments of a function in one format. Integers become fp64; those that it does not hold are refused,
    unless the mask of the argument hides them.
    """
    masks, found = masks or {}, []
    for name, a in arrays.items():
        a = narrowed(library, a, masks.get(name), name)
        is_integer = format_of(a.dtype, name) == "int"
        found.append(in_floats(library, a, name, mask=masks.get(name)) if is_integer else a)
    names = {dtype_name(a.dtype) for a in found}
    widest = functools.reduce(
        lambda one, other: common_type(library.namespace, library.dtype(one), library.dtype(other)), sorted(names)
    )
    if len(names) > 1:  # fp64 holds the numbers of all formats
        found = [library.astype(a, "float64") for a in found]
    return Inputs(library, found, format_of(found[0].dtype), format_of(widest))


def as_rows(library: Any, a: Any, axes: Sequence[int], takes: Any = None) -> Any:
    """Returns the elements over `axes` as rows, copied if they are not contiguous, or if flags belong to each. The rows
    of a broadcast array share memory.
    """
    moved = library.transposed(a, axes_last(a.ndim, axes)[0])
    kept, shape = a.ndim - len(axes), tuple(moved.shape)
    count, n = math.prod(shape[:kept]), math.prod(shape[kept:])
    if count > 1 and takes is None and not any(s for m, s in zip(shape[:kept], library.strides(moved)) if m > 1):
        one = library.contiguous(moved[(0,) * kept]).reshape((1, n))
        return library.namespace.broadcast_to(one, (count, n))
    return library.contiguous(moved).reshape((count, n))


def compute(call: Call, result: Any, second: Any = None) -> None:
    """Computes the statistic of rows that the operation names.

    Raises ZeroDivisionError if the weights of a result with elements sum to zero.
    """
    call.result, call.second_result = result, second
    if _core.statistics(call):
        raise sum_is_zero()


def sum_is_zero() -> ZeroDivisionError:
    return ZeroDivisionError("samesum: weights sum to zero, which divides nothing; pass weights with another sum")


def exact_format(method: MethodName, operation: str, widest: str) -> str:
    """Returns the format of results by an exact method. Raises ValueError for other methods."""
    chosen = method_of(method, operation, widest, -1)
    if chosen.accumulator != "exact":
        raise ValueError(
            f"samesum: method {chosen.name} takes no weights; leave it out or pass 'exact', or divide two sums"
        )
    return chosen.format


def for_elements(library: Any, weights: Any, shape: Sequence[int], axis: Any, axes: tuple[int, ...]) -> Any:
    """Returns weights as an array that can be broadcast to one of that shape: they come for each of its elements, or
    for those along `axis`.
    """
    given = tuple(weights.shape)
    has_all_axes = len(given) == len(shape)
    if has_all_axes and all(m == n or (m == 1 and d not in axes) for d, (m, n) in enumerate(zip(given, shape))):
        return weights
    named = [a % len(shape) for a in axis] if isinstance(axis, (tuple, list)) else list(axes)
    along = tuple(shape[a] for a in named)
    if given == along:
        ascending = library.transposed(weights, [named.index(a) for a in axes])
        return ascending.reshape([n if d in axes else 1 for d, n in enumerate(shape)])
    other = "" if len(along) == len(shape) else f", or of the shape {along}: one for each index along axis {axis}"
    raise ValueError(
        f"samesum: weights has shape {given} and x {tuple(shape)}; pass weights of the shape of x{other}"
    )
