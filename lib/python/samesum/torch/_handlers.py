"""Handlers of PyTorch's operators: reductions, softmax, normalisations, losses and cumsum.

`_by_key` has those of the operators that add by key.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor

from .._torch import norms
from .._torch.methods import row_major
from .._torch.operators import softmax_gradient, square_root
from ._operators import is_integral

aten = torch.ops.aten

# A handler gets the mode and the operator, then the operator's arguments. It returns NotImplemented if it leaves the
# call to PyTorch, which then may add in an order of its own.

Handler = Callable[..., Any]
_HANDLERS: dict[Any, tuple[str, Handler]] = {}


def _handles(name: str, *overloads: Any) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for overload in overloads:
            _HANDLERS[overload] = (name, handler)
        return handler

    return register


def _axis(dim: int, ndim: int) -> int:
    """Returns PyTorch's `dim` as an axis that is not negative. A number has the axes 0 and -1."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"samesum: dim is {dim}; use one from {-count} to {count - 1}")
    return dim % count


def _axes(dim: Any, ndim: int) -> list[int]:
    """Returns PyTorch's `dim` as ascending axes; None and () mean all."""
    if dim is None:
        return list(range(ndim))
    if isinstance(dim, int):
        dim = (dim,)
    if len(dim) == 0:
        return list(range(ndim))
    axes = [_axis(d, ndim) for d in dim]
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"samesum: dim is {tuple(dim)}, which names an axis twice; name it once")
    return sorted(axes) if ndim else []


def _converted(x: Tensor, dtype: torch.dtype | None) -> tuple[Tensor, torch.dtype]:
    """Returns the elements to reduce, and the type of the result. 16-bit elements are accumulated in fp32."""
    if dtype is None or dtype == x.dtype:
        return x, x.dtype
    if dtype == torch.float32 and x.dtype in (torch.float16, torch.bfloat16):
        return x, dtype
    return x.to(dtype), dtype


def _reduced(
    operation: str, route: Any, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    x, result = _converted(x, dtype)
    return route.reduce(operation, x, _axes(dim, x.dim()), keepdim).to(result)


def _is_integral(x: Tensor, dtype: torch.dtype | None) -> bool:
    return is_integral(x.dtype if dtype is None else dtype)


def _added(operation: str) -> Handler:
    """Returns the handler of sum or mean, over some axes or all."""

    def handler(route: Any, func: Any, x: Tensor, *axes: Any, dtype: Any = None, **options: Any) -> Any:
        if _is_integral(x, dtype):
            return func(x, *axes, dtype=dtype, **options)  # sums are exact in any order, means raise an error
        return _reduced(operation, route, x, *axes, dtype=dtype, **options)

    return handler


_handles("sum", aten.sum.dim_IntList, aten.sum.default)(_added("sum"))
_handles("mean", aten.mean.dim, aten.mean.default)(_added("mean"))


def _part_of_moments(i: int) -> Callable[[Tensor], Tensor]:
    """Returns the function that takes means (i = 0) or variances (i = 1) as a tensor of their own."""
    return lambda moments: moments.select(-1, i).clone(memory_format=torch.contiguous_format)


def _deviation(moments: Tensor) -> Tensor:
    return square_root(moments[..., 1])


def _moments(*parts: Callable[[Tensor], Tensor]) -> Handler:
    """Returns the handler of an operator with one or several results, each a part of the moments."""

    def handler(
        route: Any, func: Any, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        divisor = 1.0 if correction is None else float(correction)
        if not divisor >= 0:
            raise ValueError(
                f"samesum: correction is {correction}; use one that is not negative, or call the operator outside "
                "samesum.torch.deterministic"
            )
        moments = route.reduce("moments", x, _axes(dim, x.dim()), keepdim, divisor)
        found = tuple([part(moments).to(x.dtype) for part in parts])
        return found if len(found) > 1 else found[0]

    return handler


MOMENTS = {
    "var": _moments(_part_of_moments(1)),
    "std": _moments(_deviation),
    "var_mean": _moments(_part_of_moments(1), _part_of_moments(0)),
    "std_mean": _moments(_deviation, _part_of_moments(0)),
}
"""Handlers of the operators of these names."""
for _name, _handler in MOMENTS.items():
    _handles(_name, getattr(aten, _name).correction)(_handler)


_NORMS = {1: "sum_of_magnitudes", 2: "norm"}


@_handles("norm", aten.linalg_vector_norm.default)
def _vector_norm(route: Any, func: Any, x: Tensor, ord: Any = 2, *axes: Any, **options: Any) -> Any:
    return _reduced(_NORMS[ord], route, x, *axes, **options) if ord in _NORMS else NotImplemented


@_handles(
    "norm",
    aten.norm.Scalar,
    aten.norm.ScalarOpt_dim,
    aten.norm.ScalarOpt_dtype,
    aten.norm.ScalarOpt_dim_dtype,
)
def _norm(route: Any, func: Any, x: Tensor, p: Any = 2, *axes: Any, **options: Any) -> Any:
    return _vector_norm(route, func, x, 2 if p is None else p, *axes, **options)


@_handles("norm", aten._foreach_norm.Scalar)
def _norms(route: Any, func: Any, tensors: Any, ord: Any = 2, dtype: Any = None) -> Any:
    if ord not in _NORMS or not tensors:
        return NotImplemented  # no tensors are an error
    return [_reduced(_NORMS[ord], route, x, dtype=dtype) for x in tensors]


def _softmax_of(operation: str, route: Any, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    axis = _axis(dim, x.dim())
    if x.dim() == 0:
        return _softmax_of(operation, route, x.reshape(1), 0, dtype).reshape(())
    y = route.softmax(operation, x if dtype is None else x.to(dtype), [axis])
    return y if axis == x.dim() - 1 else row_major(y)


@_handles("softmax", aten._safe_softmax.default)
def _safe_softmax(route: Any, func: Any, x: Tensor, dim: int, dtype: Any = None) -> Any:
    y = _softmax_of("softmax", route, x, dim, dtype)
    return y.masked_fill((x == float("-inf")).all(dim, keepdim=True), 0)


def _softmax_gradient(
    route: Any, operation: str, gradient: Tensor, y: Tensor, dim: int, dtype: torch.dtype
) -> Tensor:
    axes = [_axis(dim, y.dim())]
    if y.dim() == 0:
        return _softmax_gradient(route, operation, gradient.reshape(1), y.reshape(1), 0, dtype).reshape(())
    exponentials = route.softmax("softmax", y, axes) if operation == "log_softmax" else None
    result = softmax_gradient(
        lambda a, b: route.reduce_pair("dot", a, b, axes, True), lambda a: route.reduce("sum", a, axes, True),
        y, gradient, exponentials,
    )  # fmt: skip
    return row_major(result.to(dtype))


def _handle_softmax(operation: str) -> None:
    """Registers the handlers of softmax or log_softmax, of its gradient, and of its form with `out`."""

    @_handles(operation, getattr(aten, f"_{operation}").default)
    def forward(route: Any, func: Any, x: Tensor, dim: int, half_to_float: bool) -> Any:
        return _softmax_of(operation, route, x, dim, torch.float32 if half_to_float else x.dtype)

    @_handles(f"{operation}_backward", getattr(aten, f"_{operation}_backward_data").default)
    def backward(route: Any, func: Any, gradient: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Any:
        return _softmax_gradient(route, operation, gradient, output, dim, input_dtype)

    @_handles(operation, getattr(aten, operation).int_out)  # which PyTorch does not decompose
    def into_out(route: Any, func: Any, x: Tensor, dim: int, dtype: Any = None, *, out: Tensor) -> Tensor:
        return _written(out, _softmax_of(operation, route, x, dim, dtype))


_handle_softmax("softmax")
_handle_softmax("log_softmax")


@_handles("logsumexp", aten.logsumexp.default)
def _logsumexp(route: Any, func: Any, x: Tensor, dim: Any, keepdim: bool = False) -> Any:
    x = x if x.dtype.is_floating_point else x.float()
    return _reduced("logsumexp", route, x, dim, keepdim)


@_handles("layer_norm", aten.native_layer_norm.default)
def _layer_norm(route: Any, func: Any, x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return norms.normalise_layer(x, len(shape), weight, bias, eps, route.like)


@_handles("layer_norm_backward", aten.native_layer_norm_backward.default)
def _layer_norm_backward(
    route: Any, func: Any, gradient: Tensor, x: Tensor, shape: Any, mean: Tensor, inverse: Tensor,
    weight: Any, bias: Any, wanted: Any,
) -> Any:  # fmt: skip
    norm = norms.Norm(x, len(shape), inverse, weight, wanted, route.like)
    return norms.layer_gradients(gradient, norm, mean)


def _eps_of(x: Tensor, eps: float | None) -> float:
    if eps is not None:
        return eps
    return torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps


@_handles("rms_norm", aten._fused_rms_norm.default)
def _rms_norm(route: Any, func: Any, x: Tensor, shape: Any, weight: Any, eps: Any) -> Any:
    y, inverse = norms.normalise_rms(x, len(shape), weight, _eps_of(x, eps), route.like)
    return row_major(y), inverse


@_handles("rms_norm_backward", aten._fused_rms_norm_backward.default)
def _rms_norm_backward(
    route: Any, func: Any, gradient: Tensor, x: Tensor, shape: Any, inverse: Tensor, weight: Any, wanted: Any
) -> Any:
    norm = norms.Norm(x, len(shape), inverse, weight, wanted, route.like)
    of_x, of_weight = norms.rms_gradients(gradient, norm)
    return of_x if of_x is None else row_major(of_x), of_weight


_NONE, _MEAN = 0, 1  # PyTorch's numbers for the reduction of a loss


@_handles("nll_loss", aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def _nll_loss(
    route: Any, func: Any, x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> Any:
    indices = (torch.int64, torch.uint8) if func is aten.nll_loss_forward.default else (torch.int64,)
    if reduction == _NONE or target.dtype not in indices:
        return func(x, target, weight, reduction, ignore_index)  # adds nothing, or raises an error
    target = target.long()  # a uint8 neither equals a negative number nor is an index
    classes = 0 if x.dim() == 1 else 1
    counts = target != ignore_index
    index = torch.where(counts, target, 0)
    terms = x.gather(classes, index.unsqueeze(classes)).squeeze(classes).neg()
    weights = counts.to(x.dtype) if weight is None else torch.where(counts, weight[index], 0)
    terms = torch.where(counts, terms * weights, 0)
    everything = list(range(terms.dim()))
    total, loss = (route.reduce("sum", a, everything, False) for a in (weights, terms))
    return (loss / total if reduction == _MEAN else loss).to(x.dtype), total.to(x.dtype)


def _loss(functional: Any, position: int) -> Handler:
    """Returns the handler of a loss, with and without `out`. `position` is that of the argument `reduction`."""

    def handler(route: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        reduction = args[position] if len(args) > position else kwargs.get("reduction", _MEAN)
        if reduction == _NONE:
            return func(*args, **kwargs)
        out = kwargs.pop("out", None)
        if len(args) > position:
            args = (*args[:position], _NONE, *args[position + 1 :])
        else:
            kwargs["reduction"] = _NONE
        each = functional(*args, **kwargs)
        result = _reduced("mean" if reduction == _MEAN else "sum", route, each)
        return result if out is None else _written(out, result)

    return handler


for _operator, _position in (
    (aten.mse_loss, 2), (aten.smooth_l1_loss, 2), (aten.huber_loss, 2), (aten.soft_margin_loss, 2),
    (aten.binary_cross_entropy, 3), (aten.binary_cross_entropy_with_logits, 4),
):  # fmt: skip
    _name = str(_operator).partition(".")[2]
    _handles(_name, _operator.default, _operator.out)(_loss(_operator.default, _position))


@_handles("cumsum", aten.cumsum.default)
def _cumsum(route: Any, func: Any, x: Tensor, dim: int, *, dtype: Any = None) -> Any:
    if _is_integral(x, dtype):
        return func(x, dim, dtype=dtype)
    x, result = _converted(x, dtype)
    axis = _axis(dim, x.dim())
    sums = route.scan("cumsum", x.reshape(1) if x.dim() == 0 else x, axis)
    return sums.reshape(x.shape).to(result)


def _written(out: Tensor, result: Tensor) -> Tensor:
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def _is_form(functional: Any, form: Any) -> bool:
    """Whether an overload differs from another one only in that it writes, to `out` or to its first argument."""
    read, written = (
        [(a.name, str(a.type)) for a in f._schema.arguments if not a.is_out] for f in (functional, form)
    )
    return read == written and form._schema.is_mutable


def _writing(functional: Any, form: Any) -> Handler:
    """Returns the handler of a form that writes, for an operator whose other form is handled."""
    names = [a.name for a in form._schema.arguments if a.is_out]

    def handler(route: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name) for name in names]
        if outs and isinstance(outs[0], list):
            (outs,) = outs
        results = _HANDLERS[functional][1](route, functional, *args, **kwargs)
        if results is NotImplemented:
            return NotImplemented
        if not outs:
            return args[0].copy_(results)
        pairs = zip(outs, results if isinstance(results, (tuple, list)) else (results,))
        written = tuple(out if result is None else _written(out, result) for out, result in pairs)
        if not form._schema.returns:  # of forms that write a list
            return None
        return written if len(written) > 1 else written[0]

    return handler


def handle_writing_forms() -> None:
    """Registers the handlers of the forms that write, of all operators that are handled."""
    for functional, (name, _) in list(_HANDLERS.items()):
        packets = (getattr(aten, str(functional).split(".")[1] + suffix, None) for suffix in ("", "_"))
        for form in (getattr(packet, o) for packet in packets if packet for o in packet.overloads()):
            if form not in _HANDLERS and _is_form(functional, form):
                _handles(name, form)(_writing(functional, form))
