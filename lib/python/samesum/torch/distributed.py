"""Reductions over the ranks of a process group of torch.distributed, which carries the data.

>>> import torch, torch.distributed as dist, samesum.torch.distributed as same
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> same.all_reduce(torch.tensor([0.5, 2.0]), method="tree/kahan")
tensor([0.5000, 2.0000])
>>> same.reduce(torch.tensor([1e8, 1.0, -1e8]))  # a block of a longer vector
1.0
>>> dist.destroy_process_group()

All ranks of the group call the same function with the same method. If a method, a type, a shape or a version of samesum
differs between ranks, or a rank fails, every rank raises. Tensors are on the CPU with the backend gloo, or on CUDA
devices with the backend nccl.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._calls.arguments import Call
from .._calls.methods import Method
from .._parts import blocks, elements
from .._parts.rank_docs import documented
from ._fixed_point import FixedPointGradients
from ._ranks import GroupRanks

__all__ = ["FixedPointGradients", "all_reduce", "exact_mean_hook", "reduce", "reduce_scatter"]

_documented = documented("a tensor", "group\n        a process group. Default: that of all ranks.", on_gpu=True)


@torch.no_grad()
@_documented
def reduce(
    x: Tensor, y: Tensor | None = None, /, *, method: str | Method | None = None, group: Any = None,
    correction: float = 0, grid: int | None = None, threads: int = 0,
) -> Any:  # fmt: skip
    """Reduces a vector of which each rank holds a block: rank 0 the first elements, rank 1 the next ones.

    {details}
    """
    call = Call("", x, method=method, threads=threads, grid=grid, y=y, ddof=correction)
    return blocks.reduce_blocks(GroupRanks(group), call)


def _require_tensor(name: str, a: Any) -> None:
    if not isinstance(a, Tensor):
        raise TypeError(f"samesum: {name} is a {type(a).__name__}; pass a tensor")
    if name == "x":
        return
    # What PyTorch refuses to write raises on all ranks, before any of them waits for another one.
    if a.layout != torch.strided or any(n > 1 and stride == 0 for n, stride in zip(a.shape, a.stride())):
        raise ValueError(f"samesum: {name} is sparse, or its elements share memory; pass a tensor that can be written")
    if a.is_inference() and not torch.is_inference_mode_enabled():
        raise ValueError(f"samesum: {name} is a tensor of inference mode, which only that mode writes; pass a clone")


@torch.no_grad()
@_documented
def all_reduce(
    x: Tensor, /, *, out: Tensor | None = None, method: str | Method | None = None, group: Any = None,
    grid: int | None = None, check: bool = True,
) -> Tensor:  # fmt: skip
    """Reduces the tensors of all ranks element by element; every rank gets the results.

    {details}
    """
    call = Call("", x, out=x if out is None else out, method=method, grid=grid, check=check)
    return elements.all_reduce(GroupRanks(group), call, _require_tensor)


@torch.no_grad()
@_documented
def reduce_scatter(
    x: Tensor, out: Tensor, /, *, method: str | Method | None = None, group: Any = None, grid: int | None = None,
    check: bool = True,
) -> Tensor:  # fmt: skip
    """Reduces the tensors of all ranks element by element; each rank gets its share of the results.

    {details}
    """
    call = Call("", x, out=out, method=method, grid=grid, check=check)
    return elements.reduce_scatter(GroupRanks(group), call, _require_tensor)


def exact_mean_hook(group, bucket):  # type: ignore[no-untyped-def]  # PyTorch compares annotations, and not as strings
    """Communication hook of DistributedDataParallel: the mean gradient over the ranks, rounded once.

    Register it by `model.register_comm_hook(group, exact_mean_hook)`, with None for the group of all ranks. Each
    gradient becomes the exact sum of those of all ranks, divided once and rounded once. So the all-reduce adds no error
    beyond half a unit in the last place, and its result does not depend on the order of the ranks or the engine. No
    more is promised: another number of ranks computes other gradients. `FixedPointGradients` serves that.
    """
    gradients = bucket.buffer()
    all_reduce(gradients, method="mean/exact", group=group, check=False)
    done: torch.futures.Future[Tensor] = torch.futures.Future(devices=[gradients.device] if gradients.is_cuda else [])
    done.set_result(gradients)
    return done
