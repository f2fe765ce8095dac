"""Operators of PyTorch for the reductions: for autograd, for torch.compile, and for tensors without data.

    samesum::reduce          sum, mean, moments, norm, squared_norm, prod, min, max, argmin, logsumexp, …
    samesum::reduce_pair     dot
    samesum::softmax         softmax and log_softmax

`operation` is a name of the catalogue, and `method` one of a method. Gradients are reduced by the method of
the forward call, or by the closest one that their operation has (see `closest`). They are multiplied by 1 / n
instead of divided by n, since PyTorch's division by a number rounds differently on the CPU and on a GPU.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor
from torch.library import custom_op

from . import _core
from ._arrays import DTYPES, dtype_name
from ._calls import method_of
from ._integers import EXACT_OPERATIONS, reduce_integers
from ._torch_methods import (
    FORMATS, closest, inverse_count, library, order_and_accumulator, reduce_data, reduced_shape, row_major, widened,
)  # fmt: skip


def require_one_device(x: Tensor, y: Tensor) -> None:
    if x.device != y.device:
        raise ValueError(f"samesum: y is on {y.device} and x on {x.device}; pass inputs on one device")


def _kept(result: Tensor, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Returns results, or their gradients, with the reduced axes kept, so that they broadcast against x."""
    return result if keepdims else result.reshape(reduced_shape(x.shape, axes, True))


def sum_to(gradient: Tensor, shape: Sequence[int], like: str) -> Tensor:
    """Sums a gradient over the axes along which an input of that shape was broadcast."""
    extra = gradient.dim() - len(shape)
    axes = [
        d for d in range(gradient.dim()) if d < extra or (shape[d - extra] == 1 and gradient.shape[d] != 1)
    ]
    if not axes:
        return gradient
    method = closest(like, "sum", FORMATS[gradient.dtype])
    return reduce(gradient, "sum", axes, False, method).reshape(tuple(shape))


@custom_op("samesum::square_root", mutates_args=())
def square_root(x: Tensor) -> Tensor:
    """Returns correctly rounded square roots. PyTorch's are on a GPU, but not with every library on a CPU."""
    if not x.is_cpu or x.dtype not in FORMATS:
        return x.sqrt().contiguous()
    y = x.clone(memory_format=torch.contiguous_format)
    _core.square_root(FORMATS[x.dtype], y.data_ptr(), y.numel())
    return y


@square_root.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _remember_root(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)


def _root_backward(ctx: Any, gradient: Tensor) -> Tensor:
    (y,) = ctx.saved_tensors
    return torch.where(y == 0, 0, gradient / (2 * y))  # at 0 it is that of torch.std


square_root.register_autograd(_root_backward, setup_context=_remember_root)


# Reductions of one input


@custom_op("samesum::reduce", mutates_args=())
def reduce(
    x: Tensor, operation: str, axes: Sequence[int], keepdims: bool, method: Optional[str], threads: int = 0,
    ddof: float = 0.0,
) -> Tensor:  # fmt: skip
    if x.dtype in FORMATS:
        return reduce_data(operation, x, None, axes, keepdims, method, threads, ddof)
    if operation not in EXACT_OPERATIONS:
        return reduce_data(operation, x.double(), None, axes, keepdims, method, threads, ddof)
    return row_major(reduce_integers(library, operation, x, tuple(axes), keepdims, False))


@reduce.register_fake
def _(
    x: Tensor, operation: str, axes: Any, keepdims: bool, method: Any, threads: int = 0, ddof: float = 0.0
) -> Tensor:
    shape = reduced_shape(x.shape, axes, keepdims)
    if x.dtype not in FORMATS and operation in ("sum", "min", "max"):
        dtype = torch.uint64 if dtype_name(x.dtype).startswith("uint") else torch.int64
        return x.new_empty(shape, dtype=dtype if operation == "sum" else x.dtype)
    chosen = _chosen(method, operation, x)
    dtype = torch.int64 if chosen.returns_index else getattr(torch, DTYPES[chosen.format])
    return x.new_empty([*shape, 2] if chosen.results == 2 else shape, dtype=dtype)


def _chosen(method: str | None, operation: str, x: Tensor) -> Any:
    return method_of(method, operation, FORMATS.get(x.dtype, "fp64"), 0 if x.device.type == "cuda" else -1)


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    x, operation, ctx.axes, ctx.keepdims, method, ctx.threads, ctx.ddof = inputs
    ctx.operation = operation
    ctx.shape, ctx.dtype = x.shape, x.dtype
    if not x.requires_grad:
        return
    ctx.like = order_and_accumulator(method, operation, x)
    if operation not in ("sum", "mean"):
        ctx.save_for_backward(x, output)


def _extremum(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    """Shares the gradient evenly between equal extrema, as torch.amax does."""
    is_extremum = x == _kept(result, x, ctx.axes, ctx.keepdims)
    count = is_extremum.sum(ctx.axes, keepdim=True) if ctx.axes else is_extremum
    return is_extremum * (_kept(gradient, x, ctx.axes, ctx.keepdims) / count)


def _product(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    """Multiplies the gradient by the product of all other elements, also if elements are zero."""
    kept = [d for d in range(x.dim()) if d not in ctx.axes]
    order = [*kept, *ctx.axes]
    moved = widened(x).permute(order)
    others = _products_of_others(moved.reshape([*moved.shape[: len(kept)], -1 if x.numel() else 0]))
    factor = others.reshape(moved.shape).permute([order.index(d) for d in range(x.dim())])
    return _kept(gradient, x, ctx.axes, ctx.keepdims) * factor


def _products_of_others(x: Tensor) -> Tensor:
    """Returns for each element of a row the product of the others, from a tree of products, which divides
    by no element and forms no product of all."""
    n = x.shape[-1]
    if n <= 1:
        return torch.ones_like(x)
    if n % 2:
        x = torch.cat([x, torch.ones_like(x[..., :1])], -1)
    left, right = x[..., ::2], x[..., 1::2]
    others = _products_of_others(left * right)
    return torch.stack([others * right, others * left], -1).flatten(-2)[..., :n]


def _norm(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    norm = _kept(result, x, ctx.axes, ctx.keepdims)
    return _kept(gradient, x, ctx.axes, ctx.keepdims) * torch.where(norm == 0, 0, x / norm)


def _logsumexp(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    method = closest(ctx.like, "softmax", FORMATS[x.dtype])
    # The derivative is exp(x - result). If the result is inf, it is 0 for finite elements, the softmax NaN for all.
    is_zero = (x < math.inf) & (_kept(result, x, ctx.axes, ctx.keepdims) == math.inf)
    weights = softmax(x, "softmax", ctx.axes, method).masked_fill(is_zero, 0)
    return _kept(gradient, x, ctx.axes, ctx.keepdims) * weights


def _moments(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    def kept(moments: Tensor, i: int) -> Tensor:
        return _kept(moments.select(-1, i), x, ctx.axes, ctx.keepdims)

    of_variance = kept(gradient, 1) * (2 * inverse_count(x, ctx.axes, ctx.ddof))
    return of_variance * (x - kept(result, 0)) + kept(gradient, 0) * inverse_count(x, ctx.axes)


def _elementwise(factor: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda ctx, gradient, x, result: _kept(gradient, x, ctx.axes, ctx.keepdims) * factor(x)


_GRADIENTS: dict[str, Callable[..., Tensor]] = {
    "sum_of_magnitudes": _elementwise(torch.sign),
    "squared_norm": _elementwise(lambda x: 2 * x),
    "norm": _norm,
    "prod": _product,
    "logsumexp": _logsumexp,
    "moments": _moments,
    "min": _extremum,
    "max": _extremum,
}


def _reduce_backward(ctx: Any, gradient: Tensor) -> Any:
    rest = (None,) * 6
    if ctx.operation in ("sum", "mean"):
        shape = ctx.shape
        kept = gradient if ctx.keepdims else gradient.reshape(reduced_shape(shape, ctx.axes, True))
        if ctx.operation == "mean":
            n = math.prod(shape[d] for d in ctx.axes)
            kept = kept * (1 / n if n else 0.0)
        return kept.expand(shape).to(ctx.dtype), *rest
    if ctx.operation not in _GRADIENTS:
        raise NotImplementedError(f"samesum: {ctx.operation} has no gradient; pass x.detach()")
    x, result = ctx.saved_tensors
    return _GRADIENTS[ctx.operation](ctx, gradient, x, result).to(ctx.dtype), *rest


reduce.register_autograd(_reduce_backward, setup_context=_remember)


# Dot products


@custom_op("samesum::reduce_pair", mutates_args=())
def reduce_pair(
    x: Tensor,
    y: Tensor,
    operation: str,
    axes: Sequence[int],
    keepdims: bool,
    method: Optional[str],
    threads: int = 0,
) -> Tensor:
    """`axes` count those of the common shape."""
    require_one_device(x, y)
    x, y = torch.broadcast_tensors(x, y)
    return reduce_data(operation, x, y, axes, keepdims, method, threads)


@reduce_pair.register_fake
def _(
    x: Tensor, y: Tensor, operation: str, axes: Any, keepdims: bool, method: Any, threads: int = 0
) -> Tensor:
    require_one_device(x, y)
    shape = reduced_shape(torch.broadcast_shapes(x.shape, y.shape), axes, keepdims)
    return x.new_empty(shape, dtype=getattr(torch, DTYPES[_chosen(method, operation, x).format]))


def _remember_pair(ctx: Any, inputs: Any, output: Any) -> None:
    x, y, operation, ctx.axes, ctx.keepdims, method, _ = inputs
    ctx.like = order_and_accumulator(method, operation, x)
    ctx.save_for_backward(x, y)


def _pair_backward(ctx: Any, gradient: Tensor) -> Any:
    x, y = ctx.saved_tensors
    shape = torch.broadcast_shapes(x.shape, y.shape)
    gradient = gradient.reshape(reduced_shape(shape, ctx.axes, True))
    of_x = of_y = None
    if ctx.needs_input_grad[0]:
        of_x = sum_to((gradient * y).expand(shape), x.shape, ctx.like).to(x.dtype)
    if ctx.needs_input_grad[1]:
        of_y = sum_to((gradient * x).expand(shape), y.shape, ctx.like).to(y.dtype)
    return of_x, of_y, None, None, None, None, None


reduce_pair.register_autograd(_pair_backward, setup_context=_remember_pair)


# Softmax


@custom_op("samesum::softmax", mutates_args=())
def softmax(
    x: Tensor, operation: str, axes: Sequence[int], method: Optional[str], threads: int = 0
) -> Tensor:
    return reduce_data(operation, x, None, axes, False, method, threads)


@softmax.register_fake
def _(x: Tensor, operation: str, axes: Any, method: Any, threads: int = 0) -> Tensor:
    _chosen(method, operation, x)
    order = [*(d for d in range(x.dim()) if d not in axes), *axes]
    moved = x.new_empty([x.shape[d] for d in order])
    return moved.permute([order.index(d) for d in range(x.dim())])


def softmax_gradient(
    pair: Callable[..., Tensor],
    total: Callable[..., Tensor],
    y: Tensor,
    gradient: Tensor,
    exponentials: Tensor | None,
) -> Tensor:
    """Returns the gradient of softmax, or with `exponentials`, the softmax itself, that of log_softmax."""
    if exponentials is None:
        return y * (gradient - pair(gradient, y))
    return gradient - exponentials * total(gradient)


def _remember_softmax(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.operation, ctx.axes, method, _ = inputs
    ctx.like = order_and_accumulator(method, ctx.operation, x)
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, gradient: Tensor) -> Any:
    (y,) = ctx.saved_tensors
    axes, format = ctx.axes, FORMATS[y.dtype]

    def pair(a: Tensor, b: Tensor) -> Tensor:
        return reduce_pair(a, b, "dot", axes, True, closest(ctx.like, "dot", format))

    def total(a: Tensor) -> Tensor:
        return reduce(a, "sum", axes, True, closest(ctx.like, "sum", format))

    exponentials = None
    if ctx.operation == "log_softmax":
        exponentials = softmax(y, "softmax", axes, closest(ctx.like, "softmax", format))
    return softmax_gradient(pair, total, y, gradient, exponentials).to(y.dtype), None, None, None, None


softmax.register_autograd(_softmax_backward, setup_context=_remember_softmax)
