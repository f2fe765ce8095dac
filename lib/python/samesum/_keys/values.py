"""Values beside keys, and the calls of the library that reduce them by key."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._arrays.selection import mask_of, narrowed, takes_part
from .._calls.arguments import Call
from .._elements.formats import dtype_name, format_of
from .._elements.in_floats import adds_exactly, held_floats, in_two_floats, not_held
from .._elements.layout import Layout
from .._elements.library import library_of
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


def masked_values(function: str, argument: str, values: Any, n: int, where: Any) -> tuple[Any, Any]:
    """Returns the array of `value_array`, and which elements take part as a contiguous array; None for all."""
    library, a = value_array(function, argument, values, n, where is not None)
    mask = None if where is None else library.contiguous(mask_of(library, a, where, argument))
    a = narrowed(library, a, mask, argument)
    format_of(a.dtype, argument)
    return a, mask


def run_by_key(call: Call) -> None:
    """Reduces x by key into `result`, by a method. Without x, counts keys.

    The arrays are contiguous and in one memory; keys may be those of another library. Waits for the results. On a GPU,
    replaces keys and x by the pairs that take part.
    """
    inner = math.prod(call.result.shape[1:])
    if inner == 0:
        return
    out = library_of(call.result).view(call.result)
    if call.x is not None and (call.where is not None or call.skipna) and out.device >= 0:
        _pack_pairs(call, inner)
        inner = 1
    run = call.copy()  # whose arrays are views of those of the call, which keeps them
    run.library, run.format = library_of(call.result), call.method.format
    if call.x is not None:
        run.library, run.format = library_of(call.x), format_of(call.x.dtype)
        run.x = run.library.view(call.x)
    of_keys, n = library_of(call.keys), call.keys.shape[0]
    run.keys, run.key_format, run.result = of_keys.view(call.keys), dtype_name(call.keys.dtype), out
    run.layout = Layout(1, n, inner, n * inner, inner)
    if run.keys.stream != out.stream:
        of_keys.wait(call.keys)  # the streams of two libraries
    if call.x is not None and run.x.stream != out.stream:
        run.library.wait(call.x)
    _core.run(run)


def in_floats_by_key(call: Call, argument: str) -> None:
    """Replaces integers x, which the caller knows as `argument`, by fp64.

    Integers that it does not hold become two pairs of a key and a value each, if the method adds exactly.
    """
    library, a = library_of(call.x), call.x
    if format_of(a.dtype, argument) != "int":
        return
    call.x = held_floats(library, a, call.method, mask=call.where)
    if call.x is not None:
        return
    if not adds_exactly(call.method):
        raise not_held(argument)
    call.x = library.namespace.concatenate(in_two_floats(library, a))
    call.where = None if call.where is None else library.namespace.concatenate((call.where, call.where))
    call.keys = library_of(call.keys).namespace.concatenate((call.keys, call.keys))


def _pack_pairs(call: Call, inner: int) -> None:
    """Replaces keys and x by pairs of a key and one element that takes part. Each element of a row has its own key."""
    library, of_keys = library_of(call.x), library_of(call.keys)
    flags = takes_part(library, call.where, call.skipna, call.x).reshape((-1, inner))
    place = {"device": call.keys.device} if of_keys.name == "torch" else {}
    columns = of_keys.namespace.arange(inner, **place)
    each = of_keys.astype(call.keys, "int64").reshape((-1, 1)) * inner + columns
    call.keys, call.x = each[flags], call.x.reshape((-1, inner))[flags]
    call.where, call.skipna = None, False


def device_of(function: str, arrays: dict[str, Any]) -> int:
    """Returns the GPU on which all arrays are; -1 if they are on the host."""
    devices = {name: library_of(a).view(a).device for name, a in arrays.items()}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {'the host' if d < 0 else f'GPU {d}'}" for name, d in devices.items())
        raise ValueError(f"samesum: {function}: {where}; move the arrays to one place")
    return next(iter(devices.values()))
