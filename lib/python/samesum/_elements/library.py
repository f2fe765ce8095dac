"""The functions that each array library has, and which library handles an object.

A library is a class, which imports its package when it meets an array of it: `import samesum` needs none of them.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, NamedTuple, Sequence


class View(NamedTuple):
    """The elements of an array in memory. Strides are in elements; `device` is -1 for host memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    stream: int


class Library:
    """An array library: what most of them do. Classes add `view`, `place` and `empty`."""

    name: str
    kind: type
    """The type of its arrays."""
    namespace: Any
    """Its package."""

    def __init_subclass__(cls) -> None:
        _classes[cls.name] = cls

    def reader(self, x: Any, argument: str = "x", wide: bool = False) -> tuple[Any, Any]:
        """Returns the library that reads x, and its array of the same elements. See `NumPy.array` for `wide`."""
        return self, self.array(x, argument, wide)

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        """Returns x as an array of the library. Messages name `argument`."""
        raise NotImplementedError

    def dtype(self, name: str) -> Any:
        if name == "bfloat16":
            try:
                import ml_dtypes
            except ImportError as error:
                raise TypeError(
                    "samesum: NumPy itself has no bfloat16; install ml_dtypes, or choose a method in another "
                    "format, such as method='tree/plain/fp32'"
                ) from error
            return ml_dtypes.bfloat16
        return self.namespace.dtype(name)

    def strides(self, a: Any) -> tuple[int, ...]:
        """Returns the strides in elements; -1 for one that is no whole number of elements."""
        size = a.dtype.itemsize
        return tuple([s // size if s % size == 0 else -1 for s in a.strides])

    def astype(self, a: Any, dtype: str) -> Any:
        return a.astype(self.dtype(dtype))

    def transposed(self, a: Any, axes: Sequence[int]) -> Any:
        return a.transpose(axes)

    def contiguous(self, a: Any) -> Any:
        return self.namespace.ascontiguousarray(a)

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        return tuple(self.namespace.broadcast_arrays(x, y))  # type: ignore[return-value]

    def zeroed(self, a: Any, mask: Any) -> Any:
        """Returns an array with 0 in place of the elements that a mask hides."""
        return self.namespace.where(mask, a, self.namespace.zeros_like(a))

    def copy_to(self, out: Any, result: Any) -> None:
        out[...] = result

    def empty_like(self, a: Any, dtype: str) -> Any:
        """Returns a new array of the shape of a, whose elements lie in the same order if those of a have no gaps."""
        return self.namespace.empty_like(a, dtype=self.dtype(dtype))

    def wait(self, a: Any) -> None:
        """Waits until the calls that read an array have ended."""

    def finished(self, result: Any, source: Any) -> Any:
        """Returns a result of `source` as its caller gets it."""
        return result

    def is_traced(self, x: Any) -> bool:
        """Whether the library must see the call: to differentiate, to compile, or to batch it."""
        return False

    def refuse_traced(self, function: str, x: Any, argument: str, other: str = "") -> None:
        """Raises NotImplementedError if `is_traced`, for a function that the library cannot see. `other` ends the
        remedy.
        """
        if self.is_traced(x):
            self.require_strided(x, argument)
            raise NotImplementedError(
                f"samesum: {function} has no gradient, and is not traced or compiled; pass {argument}.detach(), or "
                f"call it outside of transformations{other}"
            )

    def require_strided(self, x: Any, argument: str) -> None:
        """Raises TypeError for an array whose elements are no rows of numbers in memory."""

    def second(self, y: Any) -> Any:
        """Returns a second input as the library reads it; one that it does not read stays as it is."""
        return y


_classes: dict[str, type[Library]] = {}
_libraries: dict[str, Any] = {}
_of_type: dict[type, Any] = {}
_TYPES = {"numpy": ("ndarray", "generic"), "torch": ("Tensor",), "cupy": ("ndarray",), "jax": ("Array", "core.Tracer")}
"""The types of arrays, by the package that has them."""


def library(name: str) -> Any:
    """Returns a library by its name. Raises ImportError if it is not installed."""
    found = _libraries.get(name)
    if found is None:
        found = _libraries[name] = _classes[name]()
    return found


def _name_for(kind: type) -> str:
    for name, types in _TYPES.items():
        if name in sys.modules and issubclass(kind, operator.attrgetter(*types)(sys.modules[name])):
            return name
    if hasattr(kind, "__cuda_array_interface__"):
        return "dlpack"
    has_columns = hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_c_stream__")
    return "dlpack" if hasattr(kind, "__dlpack__") and not has_columns else "numpy"


def library_of(x: Any) -> Any:
    """Returns the library whose functions handle x."""
    kind = type(x)
    found = _of_type.get(kind)
    if found is None:
        found = _of_type[kind] = library(_name_for(kind))
    return found
