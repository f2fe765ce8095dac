"""The arguments of these functions: elements in host memory, numbers and texts."""

from __future__ import annotations

import math
import operator
from typing import Any

from .._arrays.inputs import array_of
from .._calls.inputs import same_type
from .._elements.formats import format_of, without_address
from .._elements.library import library_of
from .._frames.reading import present


def shown(value: Any) -> str:
    """Returns an argument as a message shows it."""
    return without_address(value, repr(value))


def pair_on_host(function: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Returns the elements of two inputs as contiguous NumPy vectors of one type. The second one may be None."""
    if y is None:
        return on_host(present(x), "x"), None
    a = on_host(x, "x")
    b = on_host(y, "y")
    if b.size != a.size:
        raise ValueError(f"samesum: {function}: x has {a.size} elements and y has {b.size}; pass inputs of one length")
    return same_type(library_of(a), a, b)


def on_host(x: Any, argument: str) -> Any:
    """Returns the elements of x as a contiguous NumPy vector."""
    library, a = array_of(x, argument)
    numpy = library_of([])
    format_of(a.dtype, argument)  # raises for what has no numbers
    if library.name == "torch":
        a = numpy.converted(a.cpu())
    elif library.name == "cupy":
        a = a.get()
    return numpy.contiguous(a).reshape(-1)


def checked_count(n: Any, name: str) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"samesum: {name} is {shown(n)}; it must be a whole number") from None
    if not 0 <= count < 2**64:
        raise ValueError(f"samesum: {name} is {count}; it must be at least 0 and below 2**64")
    return count


def checked_number(x: Any, name: str) -> float:
    try:
        return math.ldexp(x, 0)  # unlike float(), refuses texts
    except TypeError:
        raise TypeError(f"samesum: {name} is {shown(x)}; it must be a number") from None


def checked_text(x: Any, name: str) -> str:
    if not isinstance(x, str):
        raise TypeError(f"samesum: {name} is {shown(x)}; it must be a text")
    return x
