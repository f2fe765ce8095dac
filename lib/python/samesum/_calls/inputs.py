"""The elements of the inputs of a call, in the types and shapes that its method takes."""

from __future__ import annotations

from typing import Any

from .._arrays.converted import Converted
from .._arrays.selection import mask_of, narrowed, takes_part
from .._elements.formats import dtype_name, format_of
from .._elements.in_floats import in_floats
from .._elements.layout import paired
from .._elements.library import library_of
from .arguments import Call
from .methods import Method, method_of


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


def read_floats(call: Call) -> None:
    """Replaces x by its elements as the method takes them, in the library that reads them, `where` by their mask, and
    the name of the method by the method."""
    library, a = read(call.x, call.out, wide=call.dtype is not None or call.where is not None)
    a = in_type(library, a, call.dtype)
    call.library, call.where = library, mask_of(library, a, call.where)
    call.x = a = floats_for(library, call.operation, a, call.method, mask=call.where)
    call.format = format_of(a.dtype)
    call.method = method_of(call.method, call.operation, call.format, library.view(a).device)


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


def pair_inputs(call: Call) -> None:
    """Brings two inputs into one type and shape, with their mask, and finds the reduced axes."""
    library, second = call.library, call.second
    a, b, call.axes = paired(library.namespace, call.x, call.y, call.axis)
    mask = takes = None
    if call.where is not None or call.skipna:
        both = library.broadcast(a, b)
        mask = takes = mask_of(library, both[0], call.where)
        a, b = narrowed(library, a, mask), narrowed(library, b, mask, second)
        if call.skipna and (format_of(a.dtype) == "int") != (format_of(b.dtype, second) == "int"):
            takes = takes_part(library, mask, True, *both)
    a, b = same_type(library, a, b, takes, second)
    call.x, call.y = (a, b) if a.shape == b.shape else library.broadcast(a, b)
    call.where = mask


def common_type(namespace: Any, a: Any, b: Any) -> str:
    """Returns the name of the narrowest type that holds the elements of two data types."""
    if {dtype_name(a), dtype_name(b)} == {"float16", "bfloat16"}:
        return "float32"  # NumPy knows no common type of these
    return dtype_name(namespace.promote_types(a, b))


def same_type(library: Any, a: Any, b: Any, mask: Any = None, argument: str = "y") -> tuple[Any, Any]:
    """Converts the narrower of two inputs to the type of the wider one. A mask tells which of the pairs take part.

    Messages name the second one `argument`.
    """
    first, second = format_of(a.dtype), format_of(b.dtype, argument)
    if first == second:
        return a, b
    wider = common_type(library.namespace, a.dtype, b.dtype)
    a = in_floats(library, a, dtype=wider, mask=mask) if first == "int" else library.astype(a, wider)
    if second == "int":
        return a, in_floats(library, b, argument, dtype=wider, mask=mask)
    return a, library.astype(b, wider)
