"""Reductions of tensors that are in memory, and the method of an operation that is closest to another one."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Sequence

import torch
from torch import Tensor

from .. import _core
from .._calls.arguments import Call
from .._calls.axes import per_axis, per_element
from .._calls.methods import Method, method_of
from .._elements.formats import DTYPES
from .._elements.library import library_of
from .._functions.scans import scan_array
from .._keys.values import run_by_key

FORMATS = {getattr(torch, dtype): format for format, dtype in DTYPES.items()}
library = library_of(torch.empty(0))


def fields(method: Method) -> str:
    """Returns the order and the accumulator of a method, as far as it has them."""
    return "/".join(part for part in (method.order, method.accumulator) if part)


@lru_cache(maxsize=None)
def closest(like: str, operation: str, format: str) -> str | None:
    """Returns the name of the method of `operation` that is closest to the order and accumulator `like`.

    Closest is the same order and accumulator, else the same order, else for scans the order prefix with the same
    accumulator, else tree/plain, else the order tree, else exact, else the operation's only method. Elements
    of 16 bits are accumulated in fp32. None if the operation takes no elements of that format.
    """
    wide = "fp64" if format == "fp64" else "fp32"
    found = {
        fields(m): m
        for m in _core.methods()
        if m.operation == operation and m.backend == "cpu" and m.format == wide and m.accepts(format)
    }
    order, _, accumulator = like.partition("/")
    for name in (like, order, f"prefix/{accumulator}", "tree/plain", "tree", "exact", *found):
        if name in found:
            return str(found[name].name.partition("@")[0])
    return None


def order_and_accumulator(method: str | None, operation: str, x: Tensor) -> str:
    """Returns the fields of a method that `closest` compares."""
    chosen = method_of(method, operation, FORMATS.get(x.dtype, "fp64"), x.get_device())
    return fields(chosen) or "exact"


def reduce_data(call: Call) -> Tensor:
    """Reduces elements that are in memory. The axes are ascending and not negative."""
    call.is_detached = True
    result = _core.fast(call)
    if result is not None:
        return result
    call.library, call.axes, call.format = library, call.axis, FORMATS[call.x.dtype]
    call.x, call.y = library.aligned(call.x), None if call.y is None else library.aligned(call.y)
    call.method = method_of(call.method, call.operation, call.format, call.x.get_device())
    return per_element(call) if call.method.has_result_per_element else per_axis(call)


def scan_data(operation: str, x: Tensor, axis: int, method: str) -> Tensor:
    """Scans elements that are in memory along an axis that is not negative."""
    format, x = FORMATS[x.dtype], library.aligned(x)
    chosen = method_of(method, operation, format, x.get_device())
    return scan_array(Call(operation, x, axis, method=chosen, library=library, format=format))


def add_by_key(out: Tensor, keys: Tensor, rows: Tensor, method: str) -> Tensor:
    """Returns `out` plus the sums of the rows that share a key, in the format of the method."""
    chosen = method_of(method, "scatter_add", FORMATS[rows.dtype], rows.get_device())
    result = torch.empty(out.shape, dtype=getattr(torch, DTYPES[chosen.format]), device=out.device).copy_(out)
    keys = keys if keys.dtype == torch.int32 else keys.long()
    keys, rows = (library.aligned(a.contiguous()) for a in (keys, rows))
    run_by_key(Call("scatter_add", rows, method=chosen, keys=keys, combine=True, result=result))
    return result


def row_major(x: Tensor) -> Tensor:
    """Returns x with the strides of a new tensor, also along axes of length 1, which `contiguous` leaves alone."""
    strides, step = [], 1
    for size in reversed(x.shape):
        strides.append(step)
        step *= max(size, 1)
    return x if x.stride() == tuple(strides[::-1]) else x.contiguous().view(-1).view(x.shape)


def widened(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def inverse_count(x: Tensor, axes: Sequence[int], ddof: float = 0) -> float:
    """Returns 1 / (n - ddof), or 0 if no element uses it."""
    n = math.prod(x.shape[d] for d in axes)
    return 1 / (n - ddof) if n > ddof else math.inf if n else 0.0
