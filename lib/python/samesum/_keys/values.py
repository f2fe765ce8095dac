"""Values beside keys, and the calls of the library that reduce them by key."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import mask_of, narrowed, takes_part
from .._calls.arguments import Call
from .._calls.methods import Method
from .._elements.formats import dtype_name, format_of
from .._elements.in_floats import adds_exactly, held_floats, in_two_floats, not_held
from .._elements.layout import Layout
from .reading import read_array


def value_array(function: str, argument: str, values: Any, n: int, has_mask: bool = False) -> tuple[Any, Any]:
    """Returns the library of values, and a contiguous array of numbers in a format, with one row for each of n keys.

    If there is a mask, numbers whose integers no type of 64 bits holds stay objects.
    """
    library, a = read_array(function, argument, values, wide=has_mask)
    if not has_mask:
        format_of(a.dtype, argument)  # raises for what has no numbers
    if a.ndim == 0 or a.shape[0] != n:
        raise ValueError(
            f"samesum: {function}: {argument} has shape {tuple(a.shape)}, and there are {n} keys; the first axis of "
            f"{argument} must have one element, or one row, for each key"
        )
    return library, library.contiguous(a)


def masked_values(function: str, argument: str, values: Any, n: int, where: Any) -> tuple[tuple[Any, Any], Any]:
    """Returns what `value_array` returns, and which elements take part as a contiguous array; None for all."""
    library, a = value_array(function, argument, values, n, where is not None)
    mask = None if where is None else library.contiguous(mask_of(library, a, where, argument))
    a = narrowed(library, a, mask, argument)
    format_of(a.dtype, argument)
    return (library, a), mask


def run_by_key(
    call: Call, keys: tuple[Any, Any], values: tuple[Any, Any] | None, result: tuple[Any, Any]
) -> None:
    """Reduces values, an array and its library, by key into `result`, all of them contiguous and in one memory, by the
    method and the options of a call. Waits for the results. A mask, `where`, is one of the values.
    """
    inner = math.prod(result[1].shape[1:])
    if inner == 0:
        return
    out = result[0].view(result[1])
    call = call.copy()
    if values is not None and (call.where is not None or call.skipna) and out.device >= 0:
        takes = takes_part(values[0], call.where, call.skipna, values[1])
        keys, values = _packed_pairs(keys, values, takes, inner)
        inner, call.where, call.skipna = 1, None, False
    read = keys[0].view(keys[1])
    for library, a in (keys, values or keys):
        if library.view(a).stream != out.stream:
            library.wait(a)  # the streams of two libraries
    n = keys[1].shape[0]
    call.x, call.format = None, call.method.format
    if values is not None:
        call.library, call.x, call.format = values[0], values[1], format_of(values[1].dtype)
    call.keys, call.key_format, call.result = read, dtype_name(keys[1].dtype), out
    call.layout = Layout(1, n, inner, n * inner, inner)
    _core.run(call)


def in_floats_by_key(
    method: Method, keys: tuple[Any, Any], values: tuple[Any, Any], mask: Any, argument: str
) -> tuple[Any, Any, Any]:
    """Returns keys, values and mask of a call with integers in fp64: with two pairs for each, if it does not hold them
    and the method adds exactly.
    """
    library, a = values
    if format_of(a.dtype, argument) != "int":
        return keys, values, mask
    floats = held_floats(library, a, method, mask=mask)
    if floats is not None:
        return keys, (library, floats), mask
    if not adds_exactly(method):
        raise not_held(argument)
    both = library.namespace.concatenate(in_two_floats(library, a))
    flags = None if mask is None else library.namespace.concatenate((mask, mask))
    return (keys[0], keys[0].namespace.concatenate((keys[1], keys[1]))), (library, both), flags


def _packed_pairs(keys: tuple[Any, Any], values: tuple[Any, Any], takes: Any, inner: int) -> Any:
    """Returns the pairs that take part of a key and a single element, which has a key of its own in its row."""
    place = {"device": keys[1].device} if keys[0].name == "torch" else {}
    columns = keys[0].namespace.arange(inner, **place)
    each = keys[0].astype(keys[1], "int64").reshape((-1, 1)) * inner + columns
    flags = takes.reshape((-1, inner))
    return (keys[0], each[flags]), (values[0], values[1].reshape((-1, inner))[flags])


def device_of(function: str, arrays: dict[str, tuple[Any, Any]]) -> int:
    """Returns the GPU on which all arrays are, each with its library; -1 if they are on the host."""
    devices = {name: library.view(a).device for name, (library, a) in arrays.items()}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {'the host' if d < 0 else f'GPU {d}'}" for name, d in devices.items())
        raise ValueError(f"samesum: {function}: {where}; move the arrays to one place")
    return next(iter(devices.values()))
