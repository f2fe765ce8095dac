"""Operators of PyTorch for the reductions: for autograd, for torch.compile, and for tensors without data.

    samesum::reduce          sum, mean, moments, norm, squared_norm, prod, min, max, argmin, logsumexp, …
    samesum::reduce_pair     dot
    samesum::softmax         softmax and log_softmax
    samesum::layer_norm      and samesum::rms_norm, each with an operator for its gradients

`operation` is a name of the catalogue, and `method` one of a method. Gradients are reduced by the method of
the forward call, or by the closest one that their operation has (see `closest`). They are multiplied by 1 / n
instead of divided by n, since PyTorch's division by a number rounds differently on the CPU and on a GPU.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format
from torch.library import custom_op

from . import _arrays, _core
from ._arrays import DTYPES, dtype_name, format_of, library_of, second_array
from ._by_key import run_by_key
from ._calls import _per_axis, _per_element, check_threads, method_of
from ._integers import EXACT_OPERATIONS, reduce_integers
from ._layout import normalised_axes, paired
from ._scans import scan_array

FORMATS = {getattr(torch, dtype): format for dtype, format in _arrays.FORMATS.items()}
_library = library_of(torch.empty(0))


@lru_cache(maxsize=None)
def closest(like: str, operation: str, format: str) -> str | None:
    """Returns the name of the method of `operation` that is closest to the order and accumulator `like`.

    Closest is the same order and accumulator, else the same order, else for scans the order prefix with the same
    accumulator, else tree/plain, else the order tree, else exact, else the operation's only method. Elements
    of 16 bits are accumulated in fp32. None if the operation takes no elements of that format.
    """
    wide = "fp64" if format == "fp64" else "fp32"
    found = {
        "/".join(part for part in (m.order, m.accumulator) if part): m
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
    return "/".join(part for part in (chosen.order, chosen.accumulator) if part) or "exact"


def reduce_data(
    operation: str, x: Tensor, y: Tensor | None, axes: Sequence[int], keepdims: bool, method: str | None,
    threads: int = 0, ddof: float = 0,
) -> Tensor:  # fmt: skip
    """Reduces elements that are in memory. `axes` are ascending and not negative."""
    if y is None:
        result = _core.fast(operation, x, method, threads, tuple(axes), keepdims, True, ddof)
        if result is not None:
            return result
    x, y = _library.aligned(x), None if y is None else _library.aligned(y)
    format = FORMATS[x.dtype]
    chosen = method_of(method, operation, format, x.get_device())
    if chosen.has_result_per_element:
        return _per_element(_library, chosen, format, x, tuple(axes), None, threads)
    return _per_axis(_library, chosen, format, x, y, tuple(axes), keepdims, None, threads, ddof)


def scan_data(operation: str, x: Tensor, axis: int, method: str) -> Tensor:
    """Scans elements that are in memory along an axis that is not negative."""
    format, x = FORMATS[x.dtype], _library.aligned(x)
    return scan_array(_library, method_of(method, operation, format, x.get_device()), format, x, axis)


def add_by_key(out: Tensor, keys: Tensor, rows: Tensor, method: str) -> Tensor:
    """Returns `out` plus the sums of the rows that share a key, in the format of the method."""
    chosen = method_of(method, "scatter_add", FORMATS[rows.dtype], rows.get_device())
    result = torch.empty(out.shape, dtype=getattr(torch, DTYPES[chosen.format]), device=out.device).copy_(out)
    keys = keys if keys.dtype == torch.int32 else keys.long()
    arrays = [(_library, _library.aligned(a.contiguous())) for a in (keys, rows)]
    run_by_key(chosen, arrays[0], arrays[1], (_library, result), combine=True)
    return result


def _shape(shape: Sequence[Any], axes: Sequence[int], keepdims: bool) -> list[Any]:
    return [1 if d in axes else size for d, size in enumerate(shape) if keepdims or d not in axes]


def _kept(result: Tensor, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Returns results, or their gradients, with the reduced axes kept, so that they broadcast against x."""
    return result if keepdims else result.reshape(_shape(x.shape, axes, True))


def row_major(x: Tensor) -> Tensor:
    """Returns x with the strides of a new tensor, also along axes of length 1, which `contiguous` leaves alone."""
    strides, step = [], 1
    for size in reversed(x.shape):
        strides.append(step)
        step *= max(size, 1)
    return x if x.stride() == tuple(strides[::-1]) else x.contiguous().view(-1).view(x.shape)


def _inverse(x: Tensor, axes: Sequence[int], ddof: float = 0) -> float:
    """Returns 1 / (n - ddof), or 0 if no element uses it."""
    n = math.prod(x.shape[d] for d in axes)
    return 1 / (n - ddof) if n > ddof else math.inf if n else 0.0


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
    return row_major(reduce_integers(_library, operation, x, tuple(axes), keepdims, False))


@reduce.register_fake
def _(
    x: Tensor, operation: str, axes: Any, keepdims: bool, method: Any, threads: int = 0, ddof: float = 0.0
) -> Tensor:
    shape = _shape(x.shape, axes, keepdims)
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
    moved = _wide(x).permute(order)
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

    of_variance = kept(gradient, 1) * (2 * _inverse(x, ctx.axes, ctx.ddof))
    return of_variance * (x - kept(result, 0)) + kept(gradient, 0) * _inverse(x, ctx.axes)


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
        kept = gradient if ctx.keepdims else gradient.reshape(_shape(shape, ctx.axes, True))
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
    _require_one_device(x, y)
    x, y = torch.broadcast_tensors(x, y)
    return reduce_data(operation, x, y, axes, keepdims, method, threads)


@reduce_pair.register_fake
def _(
    x: Tensor, y: Tensor, operation: str, axes: Any, keepdims: bool, method: Any, threads: int = 0
) -> Tensor:
    _require_one_device(x, y)
    shape = _shape(torch.broadcast_shapes(x.shape, y.shape), axes, keepdims)
    return x.new_empty(shape, dtype=getattr(torch, DTYPES[_chosen(method, operation, x).format]))


def _remember_pair(ctx: Any, inputs: Any, output: Any) -> None:
    x, y, operation, ctx.axes, ctx.keepdims, method, _ = inputs
    ctx.like = order_and_accumulator(method, operation, x)
    ctx.save_for_backward(x, y)


def _pair_backward(ctx: Any, gradient: Tensor) -> Any:
    x, y = ctx.saved_tensors
    shape = torch.broadcast_shapes(x.shape, y.shape)
    gradient = gradient.reshape(_shape(shape, ctx.axes, True))
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


# LayerNorm and RMSNorm over the last `axes` axes. Statistics and gradients of 16-bit formats are in fp32.


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _last(x: Tensor, axes: int) -> tuple[int, ...]:
    return tuple(range(x.dim() - axes, x.dim()))


def _row(operation: str, x: Tensor, axes: int, like: str, y: Tensor | None = None) -> Tensor:
    return reduce_data(operation, x, y, _last(x, axes), True, closest(like, operation, FORMATS[x.dtype]))


def _columns(operation: str, x: Tensor, axes: int, like: str, y: Tensor | None = None) -> Tensor:
    method = closest(like, operation, FORMATS[x.dtype])
    return reduce_data(operation, x, y, tuple(range(x.dim() - axes)), False, method)


def _inverse_root(variance: Tensor, eps: float) -> Tensor:
    """Returns 1 / sqrt(variance + eps). torch.rsqrt is not rounded correctly on a GPU; these two are."""
    return square_root(variance.add(eps)).reciprocal_()


def normalise_layer(
    x: Tensor, axes: int, weight: Tensor | None, bias: Tensor | None, eps: float, like: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the normalised elements, the means, and the inverse deviations."""
    x = x.contiguous()
    mean, variance = _row("moments", x, axes, like).unbind(-1)
    mean, inverse = mean.clone(memory_format=torch.contiguous_format), _inverse_root(variance, eps)
    y = (x - mean).mul_(inverse)
    if weight is not None:
        y.mul_(weight)
    if bias is not None:
        y.add_(bias)
    return row_major(y.to(x.dtype)), mean, inverse


def layer_gradients(
    gradient: Tensor, x: Tensor, axes: int, mean: Tensor, inverse: Tensor, weight: Tensor | None,
    wanted: Sequence[bool], like: str,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    x, gradient = x.contiguous(), _wide(gradient).contiguous()  # once, not for each reduction
    normalised = (x - mean).mul_(inverse)
    of_x = of_weight = of_bias = None
    if wanted[0]:
        weighted = gradient if weight is None else gradient * weight
        slope = _row("dot", weighted, axes, like, normalised) * _inverse(x, _last(x, axes))
        centred = (weighted - _row("mean", weighted, axes, like)).sub_(normalised * slope)
        of_x = row_major(centred.mul_(inverse).to(x.dtype))
    if wanted[1] and weight is not None:
        of_weight = _columns("dot", gradient, axes, like, normalised).to(weight.dtype)
    if wanted[2]:
        of_bias = _columns("sum", gradient, axes, like).to(x.dtype)
    return of_x, of_weight, of_bias


def _without_gaps(x: Tensor) -> Tensor:
    """Returns x in its memory format, which PyTorch's rms_norm keeps if it is channels_last."""
    return x.contiguous(memory_format=suggest_memory_format(x))


def _deciding(gradient: Tensor, x: Tensor) -> Tensor:
    """Returns a gradient whose strides are those of the gradient of rms_norm, as in PyTorch.

    PyTorch computes the gradient by elementwise operators, on a GPU by one kernel unless x is channels_last.
    """
    is_fused = x.device.type == "cuda" and suggest_memory_format(x) is torch.contiguous_format
    return gradient.contiguous() if is_fused or 0 in gradient.stride() else gradient


def normalise_rms(
    x: Tensor, axes: int, weight: Tensor | None, eps: float, like: str
) -> tuple[Tensor, Tensor]:
    """Returns the normalised elements in the memory format of x, and the inverse roots of the mean squares."""
    x = _without_gaps(x)
    inverse = _inverse_root(_row("squared_norm", x, axes, like) * _inverse(x, _last(x, axes)), eps)
    y = x * inverse
    if weight is not None:
        y.mul_(weight)
    return y.to(x.dtype), inverse


def rms_gradients(
    gradient: Tensor,
    x: Tensor,
    axes: int,
    inverse: Tensor,
    weight: Tensor | None,
    wanted: Sequence[bool],
    like: str,
) -> tuple[Tensor | None, Tensor | None]:
    gradient = _wide(_deciding(gradient, x))
    normalised = _without_gaps(x) * inverse
    of_x = of_weight = None
    if wanted[0]:
        weighted = gradient if weight is None else gradient * weight
        slope = _row("dot", weighted, axes, like, normalised) * _inverse(x, _last(x, axes))
        of_x = (weighted - normalised * slope).mul_(inverse).to(x.dtype)
    if wanted[1] and weight is not None:
        of_weight = _columns("dot", gradient, axes, like, normalised).to(weight.dtype)
    return of_x, of_weight


def _present(tensors: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
    """Returns results, with empty tensors in place of absent ones."""
    return tuple(like.new_empty(0) if t is None else t for t in tensors)


@custom_op("samesum::layer_norm", mutates_args=())
def layer_norm(
    x: Tensor, axes: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float, method: str
) -> tuple[Tensor, Tensor, Tensor]:
    return _present(normalise_layer(x, axes, weight, bias, eps, method), x)  # type: ignore[return-value]


@layer_norm.register_fake
def _(x: Tensor, axes: int, weight: Any, bias: Any, eps: float, method: str) -> Any:
    shape = _shape(x.shape, _last(x, axes), True)
    statistics = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty(x.shape), x.new_empty(shape, dtype=statistics), x.new_empty(shape, dtype=statistics)


@custom_op("samesum::layer_norm_backward", mutates_args=())
def layer_norm_backward(
    gradient: Tensor, x: Tensor, axes: int, mean: Tensor, inverse: Tensor, weight: Optional[Tensor],
    wanted: Sequence[bool], method: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    found = layer_gradients(gradient, x, axes, mean, inverse, weight, wanted, method)
    return _present(found, x)  # type: ignore[return-value]


@layer_norm_backward.register_fake
def _(
    gradient: Tensor, x: Tensor, axes: int, mean: Any, inverse: Any, weight: Any, wanted: Any, method: str
) -> Any:
    shape = x.shape[x.dim() - axes :]
    of_weight = weight.new_empty(weight.shape) if wanted[1] and weight is not None else None
    found = (
        x.new_empty(x.shape) if wanted[0] else None,
        of_weight,
        x.new_empty(shape) if wanted[2] else None,
    )
    return _present(found, x)


def _remember_layer(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.axes, weight, bias, _, ctx.method = inputs
    ctx.bias = None if bias is None else (bias.dtype, bias.shape)
    ctx.save_for_backward(x, weight, output[1], output[2])
    ctx.mark_non_differentiable(output[1], output[2])


def _layer_backward(ctx: Any, gradient: Tensor, _mean: Any, _inverse: Any) -> Any:
    x, weight, mean, inverse = ctx.saved_tensors
    needed = ctx.needs_input_grad
    wanted = [needed[0], weight is not None and needed[2], ctx.bias is not None and needed[3]]
    found = layer_norm_backward(gradient, x, ctx.axes, mean, inverse, weight, wanted, ctx.method)
    of_x, of_weight, of_bias = (t if w else None for t, w in zip(found, wanted))
    if of_bias is not None:
        of_bias = of_bias.to(ctx.bias[0]).reshape(ctx.bias[1])
    return of_x, None, of_weight, of_bias, None, None


layer_norm.register_autograd(_layer_backward, setup_context=_remember_layer)


@custom_op("samesum::rms_norm", mutates_args=())
def rms_norm(
    x: Tensor, axes: int, weight: Optional[Tensor], eps: float, method: str
) -> tuple[Tensor, Tensor]:
    return normalise_rms(x, axes, weight, eps, method)


@rms_norm.register_fake
def _(x: Tensor, axes: int, weight: Any, eps: float, method: str) -> Any:
    shape = _shape(x.shape, _last(x, axes), True)
    statistics = torch.float64 if x.dtype == torch.float64 else torch.float32
    return torch.empty_like(_without_gaps(x)), x.new_empty(shape, dtype=statistics)


@custom_op("samesum::rms_norm_backward", mutates_args=())
def rms_norm_backward(
    gradient: Tensor,
    x: Tensor,
    axes: int,
    inverse: Tensor,
    weight: Optional[Tensor],
    wanted: Sequence[bool],
    method: str,
) -> tuple[Tensor, Tensor]:
    found = rms_gradients(gradient, x, axes, inverse, weight, wanted, method)
    return _present(found, x)  # type: ignore[return-value]


@rms_norm_backward.register_fake
def _(gradient: Tensor, x: Tensor, axes: int, inverse: Any, weight: Any, wanted: Any, method: str) -> Any:
    of_weight = weight.new_empty(weight.shape) if wanted[1] and weight is not None else None
    gradient = _deciding(gradient, x)
    weighted = gradient if weight is None else gradient * weight
    of_x = torch.empty_like(weighted - _without_gaps(x), dtype=x.dtype) if wanted[0] else None
    return _present((of_x, of_weight), x)


def _remember_rms(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.axes, weight, _, ctx.method = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _rms_backward(ctx: Any, gradient: Tensor, _inverse: Any) -> Any:
    x, weight, inverse = ctx.saved_tensors
    wanted = [ctx.needs_input_grad[0], weight is not None and ctx.needs_input_grad[2]]
    found = rms_norm_backward(gradient, x, ctx.axes, inverse, weight, wanted, ctx.method)
    of_x, of_weight = (t if w else None for t, w in zip(found, wanted))
    return of_x, None, of_weight, None, None


rms_norm.register_autograd(_rms_backward, setup_context=_remember_rms)


def _require_no_transform(x: Tensor) -> None:
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        raise NotImplementedError(
            "samesum: transforms of torch.func are not supported; in place of vmap pass axis, in place of grad "
            "and jvp use torch.autograd.grad"
        )
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(x).tangent is not None:
        raise NotImplementedError(
            "samesum: forward-mode derivatives are not supported; use torch.autograd.grad, or pass "
            "torch.autograd.forward_ad.unpack_dual(x).primal"
        )


def _require_one_device(x: Tensor, y: Tensor) -> None:
    if x.device != y.device:
        raise ValueError(f"samesum: y is on {y.device} and x on {x.device}; pass inputs on one device")


def reduce_traced(
    operation: str, x: Tensor, y: Any, *, axis: Any, dtype: Any, keepdims: bool, out: Any, method: Any,
    threads: int, ddof: float, finish: Any,
) -> Tensor:  # fmt: skip
    """Makes one call of a public function by the operators above. Arguments are as for `_calls.reduce`."""
    if out is not None:
        raise ValueError(
            "samesum: out does not go with gradients or compilation; leave it out, or pass x.detach()"
        )
    if isinstance(x, Tensor) and y is not None and not isinstance(y, Tensor) and not torch.compiler.is_compiling():
        y = second_array(_library, x, y)
    for argument, a, other in (("x", x, "y"), ("y", y, "x")):
        if a is None:
            continue
        if not isinstance(a, Tensor):
            raise TypeError(
                f"samesum: {argument} is a {type(a).__name__}, and PyTorch traces {other}; pass tensors, such as "
                f"torch.as_tensor({argument})"
            )
        _library.require_strided(a, argument)
        if not torch.compiler.is_compiling():
            _require_no_transform(a)
    check_threads(threads)
    name = None if method is None else str(getattr(method, "name", method))
    if dtype is not None:
        format_of(dtype, "dtype")
        x = x.to(getattr(torch, dtype_name(dtype)))
        y = None if y is None else y.to(x.dtype)
    if format_of(x.dtype) == "int" and operation == "prod":
        raise TypeError(
            "samesum: prod of integers is not supported; pass dtype='float64' for a rounded product"
        )
    if y is not None:
        _require_one_device(x, y)
        formats = {format_of(x.dtype), format_of(y.dtype, "y")}
        common = torch.float64 if formats == {"int"} else torch.promote_types(x.dtype, y.dtype)
        x, y = x.to(common), y.to(common)
        x, y, axes = paired(torch, x, y, axis)
        result = reduce_pair(x, y, operation, axes, keepdims, name, threads)
    elif operation in ("softmax", "log_softmax"):
        x = x if x.dtype in FORMATS else x.double()
        result = softmax(x, operation, normalised_axes(axis, x.dim()), name, threads)
    else:
        result = reduce(x, operation, normalised_axes(axis, x.dim()), keepdims, name, threads, float(ddof))
    return result if finish is None else finish(torch, result)
