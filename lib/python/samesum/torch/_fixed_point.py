"""Gradients that are added in fixed point, so that the number of ranks changes no bit."""

from __future__ import annotations

from functools import partial
from typing import Any, Iterable, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from .._parts.agreement import agreed, on_all_ranks
from ._ranks import GroupRanks

_NO_EXPONENT, _NOT_FINITE = -(1 << 20), 1 << 20  # below and above the exponents of all numbers
_WORD_BITS = 62  # no sum exceeds 2^62 units, so none wraps in int64
_QUANTUM = -149  # all numbers of fp32, fp16 and bf16 are multiples of 2^-149


class _Memory(NamedTuple):
    """What the means of a step need, so that no rank lacks it after the sums are exchanged."""

    means: list[Tensor]
    work: Tensor
    divisor: Tensor
    """A tensor, since PyTorch multiplies by the inverse of a number on a GPU."""


class FixedPointGradients:
    """Mean gradients of a fixed list of micro-batches, with the same bits for any number of ranks.

    Each rank runs any of the micro-batches of a step, in any order. Each gradient is rounded once to a multiple of
    2^grid, one grid per parameter, and added to a sum of type int64, which is the same in any order; so is the sum over
    the ranks. At the end the sums are divided once by the number of micro-batches.

    >>> import torch, samesum.torch.distributed as same
    >>> model = torch.nn.Linear(2, 1)
    >>> gradients = same.FixedPointGradients(model.parameters(), 4)
    >>> batches = torch.arange(24.0).reshape(4, 3, 2)
    >>> while True:
    ...     for batch in batches:  # with P ranks, rank r takes batches[r::P], or any others
    ...         model(batch).mean().backward()
    ...     if gradients.reduce():
    ...         break
    >>> model.weight.grad
    tensor([[11., 12.]])
    >>> gradients.remove()

    The bits of a step then do not depend on the number of ranks, provided that forward and backward give the same
    gradients for the same micro-batch on every rank: same hardware, same number of threads, deterministic kernels,
    random numbers seeded per micro-batch, and no statistics over a rank's batches.

    Grids. The largest gradient of the step before, on all ranks, determines the grid of a parameter. If it is below
    2^e, grid = e + headroom + ⌈log2(micro_batches)⌉ - 62, so gradients up to 2^headroom times as large fit. Rounding
    changes a gradient by at most 2^(grid - 1): with the default headroom and 1024 micro-batches by 2^-44 of that
    largest gradient. The division rounds to fp64, and then to the parameter's type. If a gradient does not fit, and in
    the first step, which has no grid yet, `reduce` sets the grids and returns False, and the step must be run again.

    Without a process group, the class serves one process.

    Parameters
    ----------
    parameters
        the parameters of a model, on one device, in fp32, fp16 or bf16. Those that need no gradient are left out. A
        hook takes each gradient as soon as it is complete, so `.grad` is None until `reduce`.
    micro_batches
        the number of micro-batches of a step, on all ranks together.
    group
        a process group. Default: that of all ranks.
    headroom
        how many times gradients may double from one step to the next.
    """

    grids: list[int | None]
    """The grid of each parameter; None before the first step. Part of the state that a checkpoint needs."""

    def __init__(
        self, parameters: Iterable[Tensor], micro_batches: int, *, group: Any = None, headroom: int = 8
    ) -> None:
        self._ranks = GroupRanks(group) if dist.is_available() and dist.is_initialized() else None
        self._micro_batches, self._headroom = micro_batches, headroom
        self._hooks: list[Any] = []

        def begin() -> tuple[dict[str, Any], None]:
            self._parameters = [p for p in parameters if p.requires_grad]
            description = self._checked()
            self._allocate()
            for i, p in enumerate(self._parameters):
                self._hooks.append(p.register_post_accumulate_grad_hook(partial(self._add, i)))
            return description, None

        try:
            if self._ranks is None:
                begin()
            else:
                agreed(self._ranks, "FixedPointGradients", begin)
        except Exception:
            self.remove()
            raise

    def _allocate(self) -> None:
        """Makes all tensors that the ranks exchange, so that no rank lacks one when the others wait for it."""
        self.grids = [None] * len(self._parameters)
        device = self._parameters[0].device
        sizes = [p.numel() for p in self._parameters]
        count = len(sizes)
        # The sums of all parameters, and behind them how many gradients each one has had: reduced by one call.
        self._words = torch.zeros(sum(sizes) + count, dtype=torch.int64, device=device)
        *sums, self._counts = self._words.split([*sizes, count])
        self._sums = [s.view(p.shape) for s, p in zip(sums, self._parameters)]
        # The largest exponent, the grid and the negated grid of each parameter, and whether this rank has failed.
        self._largest = torch.full((3 * count + 1,), _NO_EXPONENT, dtype=torch.int64, device=device)
        self._exponents, self._known, self._failed = self._largest.split([count, 2 * count, 1])
        self._means: list[Tensor | None] = [None] * count

    def _checked(self) -> dict[str, Any]:
        """Checks the arguments, and returns what all ranks must have the same."""
        if not self._parameters:
            raise ValueError("samesum: no parameter needs a gradient; pass model.parameters()")
        if not 1 <= self._micro_batches < 1 << 30:
            raise ValueError(f"samesum: micro_batches is {self._micro_batches}; use 1 or more")
        if not 0 <= self._headroom <= 24:
            raise ValueError(f"samesum: headroom is {self._headroom}; use 0 to 24")
        for p in self._parameters:
            if p.dtype not in (torch.float32, torch.float16, torch.bfloat16):
                raise TypeError(
                    f"samesum: a parameter has elements of type {p.dtype}; use float32, float16 or bfloat16"
                )
            if p.device != self._parameters[0].device:
                raise ValueError(
                    "samesum: the parameters lie on several devices; make one FixedPointGradients for each"
                )
        return {
            "number of micro_batches": self._micro_batches,
            "headroom": self._headroom,
            "list of shapes": [tuple(p.shape) for p in self._parameters],
            "list of data types": [str(p.dtype) for p in self._parameters],
        }

    @property
    def _reserve(self) -> int:
        """Bits of the sums above the largest term: ⌈log2(micro_batches)⌉."""
        return (self._micro_batches - 1).bit_length()

    @torch.no_grad()
    def _add(self, i: int, parameter: Tensor) -> None:
        """Takes the gradient of a micro-batch. Never waits for a GPU."""
        gradient = parameter.grad
        if gradient is None or gradient.is_sparse:
            raise TypeError("samesum: a gradient is sparse; use layers with sparse=False")
        if gradient is self._means[i]:  # PyTorch has added to the result of the step before
            raise RuntimeError("samesum: .grad still holds the gradient of the step before; call zero_grad() first")
        parameter.grad = None
        self._counts[i] += 1
        if gradient.numel() == 0:
            return
        largest = gradient.abs().amax().float()
        exponent = torch.where(largest == 0, _NO_EXPONENT, torch.frexp(largest).exponent.long())
        exponent = torch.where(largest.isfinite(), exponent, _NOT_FINITE)
        self._exponents[i] = torch.maximum(self._exponents[i], exponent)
        grid = self.grids[i]
        if grid is not None:
            units = (gradient.double() * 2.0**-grid).round_()  # to nearest, ties to even; the product is exact
            # Larger terms overflow the grid, which the exponents show: the sum is not used then.
            self._sums[i] += units.nan_to_num_(nan=0).clamp_(-(2.0**_WORD_BITS), 2.0**_WORD_BITS).long()

    @torch.no_grad()
    def reduce(self) -> bool:
        """Ends a step: returns True if each `.grad` holds the mean gradient of all micro-batches.

        Returns False, on all ranks, if the micro-batches must be run again: the grids fit now. A parameter with a
        gradient that is infinite or NaN gets NaN everywhere; one without gradients keeps None. Call `zero_grad()` of
        the model or the optimizer before the next step.

        Raises ValueError, on all ranks, if not all micro-batches were run, or the grids of the ranks differ.
        """
        try:
            return self._reduce()
        finally:
            self._words.zero_()
            self._exponents.fill_(_NO_EXPONENT)

    def _reduce(self) -> bool:
        memory: Any = None
        failure: Exception | None = None
        try:
            memory = self._memory_for_means()
            known = [_NO_EXPONENT if g is None else g for g in self.grids]
            self._known.copy_(torch.tensor([*known, *(-g for g in known)]))
        except Exception as error:  # the other ranks wait for this one
            failure = error
        exponents, counts = self._exchanged(failure)
        fits = all(
            e == _NOT_FINITE or (g is not None and e + self._reserve <= g + _WORD_BITS)
            for e, g in zip(exponents, self.grids)
        )
        if fits:
            self._write_means(memory, exponents, counts)
        self.grids = [
            g if e == _NOT_FINITE else max(_QUANTUM, e + self._headroom + self._reserve - _WORD_BITS)
            for e, g in zip(exponents, self.grids)
        ]
        return fits

    def _memory_for_means(self) -> _Memory:
        device = self._words.device
        means = [torch.empty(p.shape, dtype=p.dtype, device=device) for p in self._parameters]
        work = torch.empty(max(m.numel() for m in means), dtype=torch.float64, device=device)
        return _Memory(means, work, torch.full((), self._micro_batches, dtype=torch.float64, device=device))

    def _exchanged(self, failure: Exception | None) -> tuple[list[int], list[int]]:
        """Adds the sums of all ranks. Returns the largest exponent and the number of gradients of each parameter.

        Raises on all ranks if one has failed, or if grids or micro-batches are not those of one step.
        """
        self._failed.fill_(failure is not None)
        if self._ranks is not None:
            dist.all_reduce(self._words, group=self._ranks.group)
            dist.all_reduce(self._largest, op=dist.ReduceOp.MAX, group=self._ranks.group)
        *largest, failed = self._largest.tolist()
        if failed:
            self._raise_on_all_ranks(failure)
        count = len(self._parameters)
        exponents, grids, negated = largest[:count], largest[count : 2 * count], largest[2 * count :]
        if any(g != -n for g, n in zip(grids, negated)):
            raise ValueError("samesum: the grids differ between ranks; load the same checkpoint on all")
        counts = self._counts.tolist()
        if max(counts) != self._micro_batches:
            raise ValueError(
                f"samesum: {max(counts)} micro-batches were run on all ranks together, and micro_batches is "
                f"{self._micro_batches}; run each one once, then call reduce"
            )
        return exponents, counts

    def _write_means(self, memory: _Memory, exponents: list[int], counts: list[int]) -> None:
        """Makes the means the gradients of the parameters that have had one."""
        for i, p in enumerate(self._parameters):
            if counts[i]:
                mean = memory.work[: p.numel()].view(p.shape).copy_(self._sums[i])
                if exponents[i] == _NOT_FINITE or self.grids[i] is None:
                    mean.fill_(torch.nan)
                else:
                    mean.mul_(2.0 ** self.grids[i]).div_(memory.divisor)
                p.grad = self._means[i] = memory.means[i].copy_(mean)

    def _raise_on_all_ranks(self, failure: Exception | None) -> None:
        def step() -> None:
            if failure is not None:
                raise failure

        if self._ranks is None:
            step()
        else:
            on_all_ranks(self._ranks, "FixedPointGradients.reduce", step)

    def remove(self) -> None:
        """Removes the hooks from the parameters."""
        for hook in self._hooks:
            hook.remove()
