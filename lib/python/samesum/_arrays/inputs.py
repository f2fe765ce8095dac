"""The first and the second input of a call as arrays of one library."""

from __future__ import annotations

from typing import Any

from .._elements.formats import format_of
from .._elements.library import library_of
from . import cupy, numpy, pytorch  # noqa: F401  each enters its library
from .converted import Converted


def array_of(x: Any, argument: str = "x", wide: bool = False) -> tuple[Any, Any]:
    """Returns the library that reads x, and its array of the same elements. See `NumPy.array` for `wide`."""
    library = library_of(x)
    if isinstance(library, Converted) and library.is_traced(x):
        raise TypeError(
            f"samesum: JAX traces {argument}, which has no elements yet; call this outside jit, vmap and grad"
        )
    return library.reader(x, argument, wide)


def second_array(library: Any, a: Any, y: Any, argument: str = "y", wide: bool = False) -> Any:
    """Returns the second input as an array of the library of the first one, `a`, and in the same memory."""
    if y is None:
        raise TypeError(f"samesum: {argument} is None; pass the second input")
    reader, b = array_of(y, argument, wide and library.name == "numpy")
    places = library.place(a), reader.place(b)
    if places[0] != places[1]:
        raise ValueError(f"samesum: {argument} is on {places[1]} and x on {places[0]}; pass inputs on one device")
    if reader is library:
        return b
    format_of(b.dtype, argument)  # raises for what has no numbers
    try:
        return library.converted(b)
    except Exception as error:
        raise TypeError(
            f"samesum: {argument} is a {type(y).__name__}, which {library.name} cannot read ({error}); pass an array "
            "of the library of x"
        ) from error
