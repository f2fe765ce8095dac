"""Handlers of PyTorch's operators that add by key."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .._torch.methods import row_major
from ._handlers import _axis, _handles, _is_integral, aten


def _fits(out: Tensor, index: Tensor, source: Tensor) -> bool:
    return out.dtype == source.dtype and out.device == index.device == source.device


def _require_indices(index: Tensor, least: int, most: int) -> None:
    outside = (index < least) | (index > most)
    if outside.any():
        raise IndexError(
            f"samesum: index has the element {index[outside][0].item()}; use indices from {least} to {most}"
        )


@_handles("index_add", aten.index_add.default)
def _index_add(
    route: Any, func: Any, out: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Any:
    axis = _axis(dim, out.dim())
    if out.dim() == 0 and source.dim() == 0:
        one = _index_add(route, func, out.reshape(1), 0, index.reshape(-1), source.reshape(1), alpha=alpha)
        return one.reshape(())
    expected = [*out.shape[:axis], index.numel(), *out.shape[axis + 1 :]]
    fits = _fits(out, index, source) and index.dim() <= 1 <= out.dim() and list(source.shape) == expected
    if _is_integral(out, None) or not fits:
        return func(out, dim, index, source, alpha=alpha)  # exact in any order, or an error
    rows = source if alpha == 1 else source * alpha
    sums = route.add_by_key(out.movedim(axis, 0), index.reshape(-1), rows.movedim(axis, 0))
    return row_major(sums.movedim(0, axis))


@_handles("scatter_add", aten.scatter_add.default)
def _scatter_add(route: Any, func: Any, out: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    axis = _axis(dim, out.dim())
    if out.dim() == 0:
        sums = _scatter_add(route, func, out.reshape(1), 0, torch.atleast_1d(index), torch.atleast_1d(source))
        return sums.reshape(())
    others = [d for d in range(out.dim()) if d != axis]
    fits = (
        _fits(out, index, source)
        and out.dim() == index.dim() == source.dim()
        and all(index.shape[d] <= source.shape[d] for d in range(out.dim()))
        and all(index.shape[d] <= out.shape[d] for d in others)
    )
    if _is_integral(out, None) or not fits:
        return func(out, dim, index, source)  # exact in any order, or an error
    if index.numel() == 0:
        return out.clone(memory_format=torch.contiguous_format)
    source = source[tuple(slice(size) for size in index.shape)]
    if all(index.shape[d] == out.shape[d] and (index.stride(d) == 0 or index.shape[d] == 1) for d in others):
        for d in others:
            index = index.narrow(d, 0, 1)  # one key for each row
        sums = route.add_by_key(out.movedim(axis, 0), index.reshape(-1), source.movedim(axis, 0))
        return row_major(sums.movedim(0, axis))
    # Each element has a key of its own: its place in `out`.
    _require_indices(index, 0, out.shape[axis] - 1)
    places = torch.arange(out.numel(), device=out.device).reshape(out.shape)
    for d in others:
        places = places.narrow(d, 0, index.shape[d])
    sums = route.add_by_key(out.reshape(-1), places.gather(axis, index).reshape(-1), source.reshape(-1))
    return sums.reshape(out.shape)


@_handles("index_put", aten.index_put.default)
def _index_put(
    route: Any, func: Any, out: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Any:
    axes = [d for d, index in enumerate(indices) if index is not None]
    used = [indices[d] for d in axes]
    is_sum = (
        accumulate and axes and not _is_integral(out, None)
        and all(index.dtype in (torch.int32, torch.int64) for index in used)
        and all(_fits(out, index, values) for index in used)
    )  # fmt: skip
    if not is_sum:
        return func(out, indices, values, accumulate)  # no sum, exact in any order, or an error
    used = torch.broadcast_tensors(*used)
    keys = torch.zeros_like(used[0], dtype=torch.int64)
    for d, index in zip(axes, used):
        size = out.shape[d]
        _require_indices(index, -size, size - 1)
        keys = keys * size + torch.where(index < 0, index + size, index)
    others = [d for d in range(out.dim()) if d not in axes]
    rest = [out.shape[d] for d in others]
    # In the values, the axes of the indices stand where the indexed axes are, or first if these are not adjacent.
    begin = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    rows = values.expand(*rest[:begin], *keys.shape, *rest[begin:])
    rows = rows.movedim(tuple(range(begin, begin + keys.dim())), tuple(range(keys.dim())))
    order = axes + others
    moved = out.permute(order)
    sums = route.add_by_key(
        moved.reshape(math.prod(out.shape[d] for d in axes), *rest), keys.reshape(-1), rows.reshape(keys.numel(), *rest)
    )
    sums = sums.reshape(moved.shape).permute([order.index(d) for d in range(out.dim())])
    # PyTorch clones `out`, with its strides if they leave no gaps, and adds to the clone.
    strides = torch.empty_like(out, device="meta").stride()
    return sums if sums.stride() == strides else torch.empty_like(out).copy_(sums)


@_handles("embedding_backward", aten.embedding_dense_backward.default)
def _embedding_backward(
    route: Any, func: Any, gradient: Tensor, indices: Tensor, words: int, padding: int, by_frequency: bool
) -> Any:
    keys, width = indices.reshape(-1), gradient.shape[-1]
    out = gradient.new_zeros((words, width))
    sums = route.add_by_key(out, keys, gradient.reshape(keys.numel(), width), narrow=False)
    if by_frequency:
        counts = torch.bincount(keys, minlength=words).clamp(min=1).to(sums.dtype)
        sums = sums / counts.unsqueeze(1)
    if padding >= 0:
        sums[padding] = 0
    return sums.to(gradient.dtype)
