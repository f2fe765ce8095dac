"""Arrays for results, and results as the caller gets them."""

from __future__ import annotations

from typing import Any, Sequence

from .._arrays.converted import Converted
from .._elements.formats import dtype_name
from .._elements.library import library_of


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
