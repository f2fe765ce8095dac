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

from .. import _core
from .._calls.arguments import Call
from .._calls.integers import EXACT_OPERATIONS, reduce_integers
from .._calls.methods import method_of
from .._calls.reduction import reduce as reduce_arrays
from .._elements.formats import DTYPES, dtype_name
from .._elements.layout import axes_last, reduced_shape
from .methods import FORMATS, closest, inverse_count, library, order_and_accumulator, reduce_data, row_major, widened


def require_one_device(x: Tensor, y: Tensor) -> None:
    if x.device != y.device:
        raise ValueError(f"samesum: y is on {y.device} and x on {x.device}; pass inputs on one device")


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
    call = Call(operation, x, tuple(axes), keepdims=keepdims, method=method, threads=threads, ddof=ddof)
    if x.dtype in FORMATS:
        return reduce_data(call)
    if operation not in EXACT_OPERATIONS:
        return row_major(reduce_arrays(call))
    call.library, call.axes = library, tuple(axes)
    return row_major(reduce_integers(call))


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


# Each gradient is that of x. The gradient of the result, and the result itself, have the reduced axes, with length 1.


def _extremum(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    """Shares the gradient evenly between equal extrema, as torch.amax does."""
    is_extremum = x == result
    count = is_extremum.sum(ctx.axes, keepdim=True) if ctx.axes else is_extremum
    return is_extremum * (gradient / count)


def _product(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    """Multiplies the gradient by the product of all other elements, also if elements are zero."""
    order, back = axes_last(x.dim(), ctx.axes)
    moved = widened(x).permute(order)
    kept = moved.shape[: x.dim() - len(ctx.axes)]
    others = _products_of_others(moved.reshape([*kept, -1 if x.numel() else 0]))
    return gradient * others.reshape(moved.shape).permute(back)


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


def _logsumexp(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    method = closest(ctx.like, "softmax", FORMATS[x.dtype])
    # The derivative is exp(x - result). If the result is inf, it is 0 for finite elements, the softmax NaN for all.
    is_zero = (x < math.inf) & (result == math.inf)
    return gradient * softmax(x, "softmax", ctx.axes, method).masked_fill(is_zero, 0)


def _moments(ctx: Any, gradient: Tensor, x: Tensor, result: Tensor) -> Tensor:
    of_mean, of_variance = gradient.unbind(-1)
    of_variance = of_variance * (2 * inverse_count(x, ctx.axes, ctx.ddof))
    return of_variance * (x - result.select(-1, 0)) + of_mean * inverse_count(x, ctx.axes)


_GRADIENTS: dict[str, Callable[..., Tensor]] = {
    "sum_of_magnitudes": lambda ctx, gradient, x, result: gradient * torch.sign(x),
    "squared_norm": lambda ctx, gradient, x, result: gradient * (2 * x),
    "norm": lambda ctx, gradient, x, result: gradient * torch.where(result == 0, 0, x / result),
    "prod": _product,
    "logsumexp": _logsumexp,
    "moments": _moments,
    "min": _extremum,
    "max": _extremum,
}


def _reduce_backward(ctx: Any, gradient: Tensor) -> Any:
    rest = (None,) * 6
    shape = [*reduced_shape(ctx.shape, ctx.axes, True), *([2] if ctx.operation == "moments" else [])]
    gradient = gradient if ctx.keepdims else gradient.reshape(shape)
    if ctx.operation in ("sum", "mean"):
        if ctx.operation == "mean":
            n = math.prod(ctx.shape[d] for d in ctx.axes)
            gradient = gradient * (1 / n if n else 0.0)
        return gradient.expand(ctx.shape).to(ctx.dtype), *rest
    if ctx.operation not in _GRADIENTS:
        raise NotImplementedError(f"samesum: {ctx.operation} has no gradient; pass x.detach()")
    x, result = ctx.saved_tensors
    result = result if ctx.keepdims else result.reshape(shape)
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
    return reduce_data(Call(operation, x, tuple(axes), keepdims=keepdims, method=method, threads=threads, y=y))


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
    return reduce_data(Call(operation, x, tuple(axes), method=method, threads=threads))


@softmax.register_fake
def _(x: Tensor, operation: str, axes: Any, method: Any, threads: int = 0) -> Tensor:
    _chosen(method, operation, x)
    order, back = axes_last(x.dim(), axes)
    return x.new_empty([x.shape[d] for d in order]).permute(back)


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
