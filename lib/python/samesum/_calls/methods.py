"""The method of a call, by its name and the format of the elements."""

from __future__ import annotations

import copyreg
from functools import lru_cache
from typing import Any, Sequence, Union

from .. import _core
from .._elements.formats import DTYPES

Method = _core.Method


def _method_named(name: str, operation: str) -> Method:
    return _core.find(name, operation, "", "")


copyreg.pickle(Method, lambda method: (_method_named, (method.name, method.operation)))  # type: ignore[arg-type]
MethodName = Union[str, Method, None]
Axis = Union[int, Sequence[int], None]


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
        accepted = next(filter(method.accepts, (method.format, *DTYPES)), method.format)
        raise TypeError(
            f"samesum: method {method.name} does not accept elements of format {format}; convert them with "
            f"dtype={DTYPES[accepted]!r}, or choose a method in another format"
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


def check_operation(function: str, operation: Any) -> None:
    """Raises ValueError if an operation, given by its name, is no reduction of all elements to one result."""
    known = dict.fromkeys(
        m.operation for m in _core.methods()
        if not (m.takes_keys or m.takes_window or m.is_scan or m.has_result_per_element)
    )
    if operation not in [*known]:  # perhaps without a hash
        raise ValueError(f"samesum: {function}: operation is {operation!r}; use one of {', '.join(known)}")


def is_exact(method: str | Method | None, operation: str) -> bool:
    """Whether integers stay integers: unless the caller names a method with a format or with rounding."""
    return method in (None, "exact", operation, f"{operation}/exact")
