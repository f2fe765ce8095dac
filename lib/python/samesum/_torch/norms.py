"""Operators of PyTorch for LayerNorm and RMSNorm over the last `axes` axes: samesum::layer_norm and samesum::rms_norm.

Each has an operator for its gradients. Statistics and gradients of 16-bit formats are in fp32.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format
from torch.library import custom_op

from .._calls.arguments import Call
from .._elements.layout import reduced_shape
from .methods import FORMATS, closest, inverse_count, reduce_data, row_major, widened
from .operators import square_root


def _last(x: Tensor, axes: int) -> tuple[int, ...]:
    return tuple(range(x.dim() - axes, x.dim()))


def _row(operation: str, x: Tensor, axes: int, like: str, y: Tensor | None = None) -> Tensor:
    method = closest(like, operation, FORMATS[x.dtype])
    return reduce_data(Call(operation, x, _last(x, axes), keepdims=True, method=method, y=y))


def _columns(operation: str, x: Tensor, axes: int, like: str, y: Tensor | None = None) -> Tensor:
    method = closest(like, operation, FORMATS[x.dtype])
    return reduce_data(Call(operation, x, tuple(range(x.dim() - axes)), method=method, y=y))


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


class Norm(NamedTuple):
    """A call whose gradients are computed: its input, the inverse deviations, and which gradients are wanted."""

    x: Tensor
    axes: int
    inverse: Tensor
    weight: Tensor | None
    wanted: Sequence[bool]
    like: str


def layer_gradients(
    gradient: Tensor, norm: Norm, mean: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    norm = norm._replace(x=norm.x.contiguous())
    gradient = widened(gradient).contiguous()  # once, not for each reduction
    normalised = (norm.x - mean).mul_(norm.inverse)
    of_x, of_weight = _gradients(gradient, norm, normalised, True)
    of_bias = _columns("sum", gradient, norm.axes, norm.like).to(norm.x.dtype) if norm.wanted[2] else None
    return None if of_x is None else row_major(of_x), of_weight, of_bias


def _gradients(
    gradient: Tensor, norm: Norm, normalised: Tensor, is_centred: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Returns the gradients of x and of the weight. `is_centred` tells whether x loses its means."""
    x, axes, inverse, weight, wanted, like = norm
    of_x = of_weight = None
    if wanted[0]:
        weighted = gradient if weight is None else gradient * weight
        slope = _row("dot", weighted, axes, like, normalised) * inverse_count(x, _last(x, axes))
        centred = weighted - _row("mean", weighted, axes, like) if is_centred else weighted
        of_x = (centred - normalised * slope).mul_(inverse).to(x.dtype)
    if wanted[1] and weight is not None:
        of_weight = _columns("dot", gradient, axes, like, normalised).to(weight.dtype)
    return of_x, of_weight


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
    inverse = _inverse_root(_row("squared_norm", x, axes, like) * inverse_count(x, _last(x, axes)), eps)
    y = x * inverse
    if weight is not None:
        y.mul_(weight)
    return y.to(x.dtype), inverse


def rms_gradients(gradient: Tensor, norm: Norm) -> tuple[Tensor | None, Tensor | None]:
    gradient, normalised = widened(_deciding(gradient, norm.x)), _without_gaps(norm.x) * norm.inverse
    return _gradients(gradient, norm, normalised, False)


def _present(tensors: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
    """Returns results, with empty tensors in place of absent ones."""
    return tuple(like.new_empty(0) if t is None else t for t in tensors)


def _new_statistics(x: Tensor, axes: int) -> Tensor:
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty(reduced_shape(x.shape, _last(x, axes), True), dtype=dtype)


@custom_op("samesum::layer_norm", mutates_args=())
def layer_norm(
    x: Tensor, axes: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float, method: str
) -> tuple[Tensor, Tensor, Tensor]:
    return _present(normalise_layer(x, axes, weight, bias, eps, method), x)  # type: ignore[return-value]


@layer_norm.register_fake
def _(x: Tensor, axes: int, weight: Any, bias: Any, eps: float, method: str) -> Any:
    return x.new_empty(x.shape), _new_statistics(x, axes), _new_statistics(x, axes)


@custom_op("samesum::layer_norm_backward", mutates_args=())
def layer_norm_backward(
    gradient: Tensor, x: Tensor, axes: int, mean: Tensor, inverse: Tensor, weight: Optional[Tensor],
    wanted: Sequence[bool], method: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    found = layer_gradients(gradient, Norm(x, axes, inverse, weight, wanted, method), mean)
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


@custom_op("samesum::rms_norm", mutates_args=())
def rms_norm(
    x: Tensor, axes: int, weight: Optional[Tensor], eps: float, method: str
) -> tuple[Tensor, Tensor]:
    return normalise_rms(x, axes, weight, eps, method)


@rms_norm.register_fake
def _(x: Tensor, axes: int, weight: Any, eps: float, method: str) -> Any:
    return torch.empty_like(_without_gaps(x)), _new_statistics(x, axes)


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
    found = rms_gradients(gradient, Norm(x, axes, inverse, weight, wanted, method))
    return _present(found, x)  # type: ignore[return-value]


@rms_norm_backward.register_fake
def _(gradient: Tensor, x: Tensor, axes: int, inverse: Any, weight: Any, wanted: Any, method: str) -> Any:
    of_weight = weight.new_empty(weight.shape) if wanted[1] and weight is not None else None
    gradient = _deciding(gradient, x)
    weighted = gradient if weight is None else gradient * weight
    of_x = torch.empty_like(weighted - _without_gaps(x), dtype=x.dtype) if wanted[0] else None
    return _present((of_x, of_weight), x)


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.axes, weight, *bias, _, ctx.method = inputs
    ctx.bias = [None if b is None else (b.dtype, b.shape) for b in bias]
    ctx.save_for_backward(x, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _backward_by(operator: Any) -> Callable[..., Any]:
    """Returns the gradient of an operator whose arguments are x, axes, weight, a bias if it has one, eps and method."""

    def backward(ctx: Any, gradient: Tensor, *_: Any) -> Any:
        x, weight, *statistics = ctx.saved_tensors
        needed = ctx.needs_input_grad
        given = [weight, *ctx.bias]
        wanted = [needed[0], *(a is not None and n for a, n in zip(given, needed[2:]))]
        found = operator(gradient, x, ctx.axes, *statistics, weight, wanted, ctx.method)
        of_x, of_weight, *of_bias = (t if w else None for t, w in zip(found, wanted))
        of_bias = [None if t is None else t.to(b[0]).reshape(b[1]) for t, b in zip(of_bias, ctx.bias)]
        return of_x, None, of_weight, *of_bias, None, None

    return backward


layer_norm.register_autograd(_backward_by(layer_norm_backward), setup_context=_remember)
rms_norm.register_autograd(_backward_by(rms_norm_backward), setup_context=_remember)
