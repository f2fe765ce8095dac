"""PyTorch under samesum: a context manager that routes PyTorch's own reductions.

>>> import torch, samesum.torch
>>> model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Softmax(-1))
>>> with samesum.torch.deterministic() as routing:
...     loss = model(torch.ones(2, 8)).square().mean()
...     loss.backward()
>>> sorted(routing.calls)
['layer_norm', 'layer_norm_backward', 'mean', 'softmax', 'softmax_backward', 'sum']

Importing this module also imports the operators torch.ops.samesum.*, which the functions of `samesum` use for
tensors that require gradients.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import Any, Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.overrides import TorchFunctionMode, _get_current_function_mode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from .. import _core
from .. import _torch_operators as operators
from .._torch_operators import FORMATS, closest

__all__ = ["deterministic", "not_routed", "routed"]

try:
    from torch._C._dynamo import eval_frame as _skip
except ImportError:
    _skip = None
_can_skip = hasattr(_skip, "set_code_exec_strategy")  # an internal of PyTorch, present in 2.11

aten = torch.ops.aten

_NOT_ROUTED = {
    "matrix products": "mm, bmm, addmm, matmul, linear, einsum, dot, vdot, outer products' gradients",
    "attention": "scaled_dot_product_attention and its fused kernels, MultiheadAttention's fast path",
    "convolutions": "conv1d, conv2d, conv3d, their transposes and gradients",
    "products and cumulative operators": "prod, cumprod, logcumsumexp, trace, nansum, nanmean",
    "scatters": "scatter_reduce, segment_reduce, put with accumulate, bincount, histc, gradients of "
    "embedding_bag, sparse gradients of embedding",
    "other normalisations": "batch_norm, group_norm, instance_norm, weight_norm, local_response_norm",
    "other norms": "vector norms other than the 1-norm and the 2-norm, nuclear norm, cdist, pdist, dist, "
    "renorm",
    "pooling and resampling": "avg_pool, adaptive_avg_pool, interpolate, grid_sample, fold",
    "losses with kernels of their own": "ctc_loss, multi_margin_loss, multilabel_margin_loss",
    "recurrent layers, FFTs, sparse tensors": "lstm, gru, fft, torch.sparse",
    "minima and maxima": "min, max, amin, amax, argmin, argmax, median, sort: their results do not depend on "
    "an order",
}


def not_routed() -> dict[str, str]:
    """Returns what the manager leaves to PyTorch: operators that add, by family.

    Some of them have the same bits in every run anyway, some only if PyTorch's own flag
    torch.use_deterministic_algorithms is set, which the manager does not touch. Elementwise functions such as
    exp and gelu add nothing, but the CPU's and a GPU's may round differently.
    """
    return dict(_NOT_ROUTED)


def routed() -> list[str]:
    """Returns the names of PyTorch's operators that the manager routes."""
    return sorted(str(operator) for operator in _HANDLERS)


@lru_cache(maxsize=None)
def _methods(like: str) -> dict[tuple[str, torch.dtype], str | None]:
    """Methods by operation and format of the elements."""
    operations = {m.operation for m in _core.methods()}
    return {(o, dtype): closest(like, o, format) for o in operations for dtype, format in FORMATS.items()}


def _with_divisor(method: str | None, dtype: torch.dtype, ddof: float) -> Any:
    """Returns the method, or tree/plain's if it is exact and takes no divisor n - ddof."""
    return method if ddof % 1 == 0 else closest("tree/plain", "moments", FORMATS[dtype])


def _validated(method: str | _core.Method) -> str:
    if isinstance(method, _core.Method):
        method = "/".join(filter(None, (method.operation, method.order, method.accumulator)))
    if not isinstance(method, str):
        raise TypeError(
            f"samesum: method is {method!r}; use an order and an accumulator, such as 'tree/kahan', or 'exact'"
        )
    like = method.removeprefix("sum/")
    for m in _core.methods():
        if (
            m.operation == "sum"
            and m.backend == "cpu"
            and like == "/".join(filter(None, (m.order, m.accumulator)))
        ):
            if m.promise in ("everywhere", "order_free"):
                return like
            raise ValueError(
                f"samesum: method {method!r} has the promise {m.promise}; use one whose bits are the same "
                "everywhere"
            )
    raise ValueError(
        f"samesum: method is {method!r}; use an order and an accumulator, such as 'tree/kahan', or 'exact'"
    )


# PyTorch's operators. A handler gets the mode and the operator, then the operator's arguments.

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
    route: Any, operation: str, x: Tensor, dim: Any, keepdim: bool, dtype: torch.dtype | None
) -> Tensor:
    x, result = _converted(x, dtype)
    return route.reduce(operation, x, _axes(dim, x.dim()), keepdim).to(result)


def _is_integral(x: Tensor, dtype: torch.dtype | None) -> bool:
    chosen = x.dtype if dtype is None else dtype
    return not (chosen.is_floating_point or chosen.is_complex)


@_handles("sum", aten.sum.dim_IntList)
def _sum(
    route: Any, func: Any, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if _is_integral(x, dtype):
        return func(x, dim, keepdim, dtype=dtype)  # exact in any order
    return _reduced(route, "sum", x, dim, keepdim, dtype)


@_handles("sum", aten.sum.default)
def _sum_of_all(route: Any, func: Any, x: Tensor, *, dtype: Any = None) -> Any:
    if _is_integral(x, dtype):
        return func(x, dtype=dtype)
    return _reduced(route, "sum", x, None, False, dtype)


@_handles("mean", aten.mean.dim)
def _mean(
    route: Any, func: Any, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if _is_integral(x, dtype):
        return func(x, dim, keepdim, dtype=dtype)  # raises an error
    return _reduced(route, "mean", x, dim, keepdim, dtype)


@_handles("mean", aten.mean.default)
def _mean_of_all(route: Any, func: Any, x: Tensor, *, dtype: Any = None) -> Any:
    return func(x, dtype=dtype) if _is_integral(x, dtype) else _reduced(route, "mean", x, None, False, dtype)


def _moments(route: Any, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    divisor = 1.0 if correction is None else float(correction)
    if not divisor >= 0:
        raise ValueError(
            f"samesum: correction is {correction}; use one that is not negative, or call the operator outside "
            "samesum.torch.deterministic"
        )
    return route.reduce("moments", x, _axes(dim, x.dim()), keepdim, divisor)


@_handles("var", aten.var.correction)
def _var(
    route: Any, func: Any, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    return _moments(route, x, dim, correction, keepdim)[..., 1].to(x.dtype)


@_handles("std", aten.std.correction)
def _std(
    route: Any, func: Any, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    return operators.square_root(_moments(route, x, dim, correction, keepdim)[..., 1]).to(x.dtype)


@_handles("var_mean", aten.var_mean.correction)
def _var_mean(
    route: Any, func: Any, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    moments = _moments(route, x, dim, correction, keepdim).to(x.dtype)
    return moments[..., 1], moments[..., 0]


@_handles("std_mean", aten.std_mean.correction)
def _std_mean(
    route: Any, func: Any, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    moments = _moments(route, x, dim, correction, keepdim)
    return operators.square_root(moments[..., 1]).to(x.dtype), moments[..., 0].to(x.dtype)


_NORMS = {1: "sum_of_magnitudes", 2: "norm"}


@_handles("norm", aten.linalg_vector_norm.default)
def _vector_norm(
    route: Any,
    func: Any,
    x: Tensor,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    if ord not in _NORMS:
        return func(x, ord, dim, keepdim, dtype=dtype)
    return _reduced(route, _NORMS[ord], x, dim, keepdim, dtype)


@_handles(
    "norm",
    aten.norm.Scalar,
    aten.norm.ScalarOpt_dim,
    aten.norm.ScalarOpt_dtype,
    aten.norm.ScalarOpt_dim_dtype,
)
def _norm(
    route: Any, func: Any, x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return _vector_norm(
        route, aten.linalg_vector_norm.default, x, 2 if p is None else p, dim, keepdim, dtype=dtype
    )


def _softmax_of(route: Any, operation: str, x: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    axis = _axis(dim, x.dim())
    if x.dim() == 0:
        return _softmax_of(route, operation, x.reshape(1), 0, dtype).reshape(())
    return route.softmax(operation, x.to(dtype), [axis])


@_handles("softmax", aten._softmax.default)
def _softmax(route: Any, func: Any, x: Tensor, dim: int, half_to_float: bool) -> Any:
    return _softmax_of(route, "softmax", x, dim, torch.float32 if half_to_float else x.dtype)


@_handles("log_softmax", aten._log_softmax.default)
def _log_softmax(route: Any, func: Any, x: Tensor, dim: int, half_to_float: bool) -> Any:
    return _softmax_of(route, "log_softmax", x, dim, torch.float32 if half_to_float else x.dtype)


@_handles("softmax", aten._safe_softmax.default)
def _safe_softmax(route: Any, func: Any, x: Tensor, dim: int, dtype: Any = None) -> Any:
    y = _softmax_of(route, "softmax", x, dim, x.dtype if dtype is None else dtype)
    return y.masked_fill((x == float("-inf")).all(dim, keepdim=True), 0)


def _softmax_gradient(
    route: Any, operation: str, gradient: Tensor, y: Tensor, dim: int, dtype: torch.dtype
) -> Tensor:
    axes = [_axis(dim, y.dim())]
    if y.dim() == 0:
        return _softmax_gradient(route, operation, gradient.reshape(1), y.reshape(1), 0, dtype).reshape(())
    exponentials = route.softmax("softmax", y, axes) if operation == "log_softmax" else None
    return operators.softmax_gradient(
        lambda a, b: route.reduce_pair("dot", a, b, axes, True), lambda a: route.reduce("sum", a, axes, True),
        y, gradient, exponentials,
    ).to(dtype)  # fmt: skip


@_handles("softmax_backward", aten._softmax_backward_data.default)
def _softmax_backward(
    route: Any, func: Any, gradient: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Any:
    return _softmax_gradient(route, "softmax", gradient, output, dim, input_dtype)


@_handles("log_softmax_backward", aten._log_softmax_backward_data.default)
def _log_softmax_backward(
    route: Any, func: Any, gradient: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Any:
    return _softmax_gradient(route, "log_softmax", gradient, output, dim, input_dtype)


@_handles("logsumexp", aten.logsumexp.default)
def _logsumexp(route: Any, func: Any, x: Tensor, dim: Any, keepdim: bool = False) -> Any:
    x = x if x.dtype.is_floating_point else x.float()
    return _reduced(route, "logsumexp", x, dim, keepdim, None)


@_handles("layer_norm", aten.native_layer_norm.default)
def _layer_norm(route: Any, func: Any, x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return operators.normalise_layer(x, len(shape), weight, bias, eps, route.like)


@_handles("layer_norm_backward", aten.native_layer_norm_backward.default)
def _layer_norm_backward(
    route: Any, func: Any, gradient: Tensor, x: Tensor, shape: Any, mean: Tensor, inverse: Tensor,
    weight: Any, bias: Any, wanted: Any,
) -> Any:  # fmt: skip
    return operators.layer_gradients(gradient, x, len(shape), mean, inverse, weight, wanted, route.like)


def _eps_of(x: Tensor, eps: float | None) -> float:
    if eps is not None:
        return eps
    return torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps


@_handles("rms_norm", aten._fused_rms_norm.default)
def _rms_norm(route: Any, func: Any, x: Tensor, shape: Any, weight: Any, eps: Any) -> Any:
    return operators.normalise_rms(x, len(shape), weight, _eps_of(x, eps), route.like)


@_handles("rms_norm_backward", aten._fused_rms_norm_backward.default)
def _rms_norm_backward(
    route: Any, func: Any, gradient: Tensor, x: Tensor, shape: Any, inverse: Tensor, weight: Any, wanted: Any
) -> Any:
    return operators.rms_gradients(gradient, x, len(shape), inverse, weight, wanted, route.like)


_NONE, _MEAN = 0, 1  # PyTorch's numbers for the reduction of a loss


@_handles("nll_loss", aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def _nll_loss(
    route: Any, func: Any, x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> Any:
    if reduction == _NONE:
        return func(x, target, weight, reduction, ignore_index)
    classes = 0 if x.dim() == 1 else 1
    counts = target != ignore_index
    index = torch.where(counts, target, 0)
    terms = x.gather(classes, index.unsqueeze(classes)).squeeze(classes).neg()
    weights = counts.to(x.dtype) if weight is None else torch.where(counts, weight[index], 0)
    terms = torch.where(counts, terms * weights, 0)
    everything = list(range(terms.dim()))
    total, loss = route.reduce("sum", weights, everything, False), route.reduce(
        "sum", terms, everything, False
    )
    return (loss / total if reduction == _MEAN else loss).to(x.dtype), total.to(x.dtype)


def _loss(position: int) -> Handler:
    def handler(route: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        reduction = args[position] if len(args) > position else kwargs.pop("reduction", _MEAN)
        if len(args) > position:
            each = func(*args[:position], _NONE, *args[position + 1 :], **kwargs)
        else:
            each = func(*args, reduction=_NONE, **kwargs)
        if reduction == _NONE:
            return each
        return _reduced(route, "mean" if reduction == _MEAN else "sum", each, None, False, None)

    return handler


for _operator, _position in (
    (aten.mse_loss, 2), (aten.smooth_l1_loss, 2), (aten.huber_loss, 2), (aten.soft_margin_loss, 2),
    (aten.binary_cross_entropy, 3), (aten.binary_cross_entropy_with_logits, 4),
):  # fmt: skip
    _handles(str(_operator).partition(".")[2], _operator.default)(_loss(_position))


@_handles("cumsum", aten.cumsum.default)
def _cumsum(route: Any, func: Any, x: Tensor, dim: int, *, dtype: Any = None) -> Any:
    if _is_integral(x, dtype):
        return func(x, dim, dtype=dtype)
    x, result = _converted(x, dtype)
    axis = _axis(dim, x.dim())
    sums = route.scan("cumsum", x.reshape(1) if x.dim() == 0 else x, axis)
    return sums.reshape(x.shape).to(result)


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
    fits = _fits(out, index, source) and index.dim() <= 1 and list(source.shape) == expected
    if _is_integral(out, None) or not fits:
        return func(out, dim, index, source, alpha=alpha)  # exact in any order, or an error
    rows = source if alpha == 1 else source * alpha
    sums = route.add_by_key(out.movedim(axis, 0), index.reshape(-1), rows.movedim(axis, 0))
    return sums.movedim(0, axis)


@_handles("scatter_add", aten.scatter_add.default)
def _scatter_add(route: Any, func: Any, out: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    axis = _axis(dim, out.dim())
    others = [d for d in range(out.dim()) if d != axis]
    fits = (
        _fits(out, index, source)
        and 0 < out.dim() == index.dim() == source.dim()
        and all(index.shape[d] <= source.shape[d] for d in range(out.dim()))
        and all(index.shape[d] <= out.shape[d] for d in others)
    )
    if _is_integral(out, None) or not fits:
        return func(out, dim, index, source)  # exact in any order, or an error
    if index.numel() == 0:
        return out.clone()
    source = source[tuple(slice(size) for size in index.shape)]
    if all(index.shape[d] == out.shape[d] and (index.stride(d) == 0 or index.shape[d] == 1) for d in others):
        for d in others:
            index = index.narrow(d, 0, 1)  # one key for each row
        sums = route.add_by_key(out.movedim(axis, 0), index.reshape(-1), source.movedim(axis, 0))
        return sums.movedim(0, axis)
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
    return sums.reshape(moved.shape).permute([order.index(d) for d in range(out.dim())])


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


def _in_place(functional: Any) -> Handler:
    """Returns the handler of a form that writes to its first argument, for an operator whose other form is handled."""

    def handler(route: Any, func: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return x.copy_(_HANDLERS[functional][1](route, functional, x, *args, **kwargs))

    return handler


for _functional, _inplace in (
    (aten.cumsum.default, aten.cumsum_.default), (aten.index_add.default, aten.index_add_.default),
    (aten.scatter_add.default, aten.scatter_add_.default), (aten.index_put.default, aten.index_put_.default),
):  # fmt: skip
    _handles(_HANDLERS[_functional][0], _inplace)(_in_place(_functional))


def _into_out(functional: Any) -> Handler:
    """Returns the handler of a form with `out`, for an operator whose other form is handled."""

    def handler(route: Any, func: Any, *args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        result = _HANDLERS[functional][1](route, functional, *args, **kwargs)
        if out.shape != result.shape:
            out.resize_(result.shape)
        return out.copy_(result)

    return handler


for _functional, _out in (
    (aten.sum.default, aten.sum.out), (aten.sum.dim_IntList, aten.sum.IntList_out),
    (aten.mean.default, aten.mean.dtype_out), (aten.mean.dim, aten.mean.out),
    (aten.var.correction, aten.var.correction_out), (aten.std.correction, aten.std.correction_out),
    (aten.linalg_vector_norm.default, aten.linalg_vector_norm.out),
    (aten.logsumexp.default, aten.logsumexp.out),
    (aten.norm.ScalarOpt_dim, aten.norm.out), (aten.norm.ScalarOpt_dim_dtype, aten.norm.dtype_out),
    (aten._softmax.default, aten._softmax.out), (aten._log_softmax.default, aten._log_softmax.out),
    (aten._softmax_backward_data.default, aten._softmax_backward_data.out),
    (aten._log_softmax_backward_data.default, aten._log_softmax_backward_data.out),
    (aten.cumsum.default, aten.cumsum.out), (aten.index_add.default, aten.index_add.out),
    (aten.scatter_add.default, aten.scatter_add.out), (aten.index_put.default, aten.index_put.out),
    (aten.mse_loss.default, aten.mse_loss.out), (aten.smooth_l1_loss.default, aten.smooth_l1_loss.out),
):  # fmt: skip
    _handles(_HANDLERS[_functional][0], _out)(_into_out(_functional))

_PLAIN_TYPES = {Tensor, torch.nn.Parameter, torch.nn.Buffer}
_OWN = {
    torch.ops.samesum.layer_norm.default: "layer_norm",
    torch.ops.samesum.layer_norm_backward.default: "layer_norm_backward",
    torch.ops.samesum.rms_norm.default: "rms_norm",
    torch.ops.samesum.rms_norm_backward.default: "rms_norm_backward",
    torch.ops.samesum.reduce.default: 1,
    torch.ops.samesum.reduce_pair.default: 2,
    torch.ops.samesum.softmax.default: 1,
}
"""Operators of samesum: the name under which they are counted, or the number of the argument that has it."""


class _Routing(TorchDispatchMode):
    """Below autograd: computes PyTorch's reductions by methods of samesum, forward and backward."""

    def __init__(self, like: str, calls: Counter[str]) -> None:
        super().__init__()
        self.like, self.calls = like, calls
        self._methods = _methods(like)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # torch.compile is handled by _Recording, with which this mode is always active

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return not _can_skip  # by a wrapper, which takes longer than the rest of a call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types and not _PLAIN_TYPES.issuperset(types):
            return NotImplemented  # the subclass computes with plain tensors, which come here
        found = _HANDLERS.get(func)
        if found is None:
            own = _OWN.get(func)
            if own is not None:
                self.calls[args[own] if isinstance(own, int) else own] += 1
            return func(*args, **kwargs) if kwargs else func(*args)
        x = args[0]
        if x.layout is not torch.strided or not (x.is_cpu or x.is_cuda):
            if x.device.type == "meta":
                return func(*args, **(kwargs or {}))
            raise NotImplementedError(
                f"samesum: {func} of a tensor with layout {x.layout} on {x.device} is not routed; call it "
                "outside samesum.torch.deterministic, or use dense tensors on 'cpu' or 'cuda'"
            )
        name, handler = found
        self.calls[name] += 1
        return handler(self, func, *args, **kwargs) if kwargs else handler(self, func, *args)

    def _method(self, operation: str, x: Tensor) -> str:
        method = self._methods.get((operation, x.dtype))
        if method is None:
            raise TypeError(
                f"samesum: {operation} of {x.dtype} is not routed, since samesum has no method for it; "
                "convert the tensor, or call the operator outside samesum.torch.deterministic"
            )
        return method

    def reduce(
        self, operation: str, x: Tensor, axes: Sequence[int], keepdims: bool, ddof: float = 0
    ) -> Tensor:
        method = _with_divisor(self._method(operation, x), x.dtype, ddof)
        return operators.reduce_data(operation, x, None, axes, keepdims, method, 0, ddof)

    def reduce_pair(
        self, operation: str, x: Tensor, y: Tensor, axes: Sequence[int], keepdims: bool
    ) -> Tensor:
        x, y = torch.broadcast_tensors(x, y)
        if x.dtype != y.dtype:
            x, y = x.float(), y.float()
        return operators.reduce_data(operation, x, y, axes, keepdims, self._method(operation, x))

    def softmax(self, operation: str, x: Tensor, axes: Sequence[int]) -> Tensor:
        return operators.reduce_data(operation, x, None, axes, False, self._method(operation, x))

    def scan(self, operation: str, x: Tensor, axis: int) -> Tensor:
        return operators.scan_data(operation, x, axis, self._method(operation, x))

    def add_by_key(self, out: Tensor, keys: Tensor, rows: Tensor, narrow: bool = True) -> Tensor:
        method = self._method("scatter_add", rows)
        try:
            sums = operators.add_by_key(out, keys, rows, method)
        except ValueError as error:
            raise IndexError(str(error)) from None  # a key is out of range
        return sums.to(out.dtype) if narrow else sums


def _is_routing() -> bool:
    """Whether a manager is active in this thread."""
    for i in range(torch._C._len_torch_dispatch_stack()):
        if type(torch._C._get_dispatch_stack_at(i)) is _Routing:
            return True
    return False


def _require_routing(gradients: Any) -> None:
    if not _is_routing():
        raise RuntimeError(
            "samesum: this backward pass reaches an operator that was recorded under "
            "samesum.torch.deterministic, but runs outside it, where PyTorch would add in an order of its "
            "own; call backward() inside the manager, or inside another one"
        )


def _recorded(args: Any) -> tuple[Any, Any]:
    """Returns what autograd has recorded for the first argument, which a call may write, and for its base."""
    x = args[0] if args else None
    if not isinstance(x, Tensor):
        return None, None
    try:
        base = x._base
        return x.grad_fn, None if base is None else base.grad_fn
    except RuntimeError:  # a view that can no longer be differentiated
        return None, None


def _watch(result: Any, args: Any, before: tuple[Any, Any]) -> None:
    """Makes a backward pass through the call raise an error if no manager is active then.

    `before` is what was recorded for the first argument before the call.
    """
    for node, old in zip(_recorded(args), before):
        if node is not None and node is not old:
            node.register_prehook(_require_routing)
    _watch_results(result, args)


def _watch_results(result: Any, args: Any) -> None:
    if isinstance(result, Tensor):
        if result.requires_grad and not (args and result is args[0]):
            node = result.grad_fn
            if node is not None:
                node.register_prehook(_require_routing)
    elif isinstance(result, (tuple, list)):
        for part in result:
            _watch_results(part, args)


# torch.compile: which calls become operators of samesum, which stay as they are, and which break the graph


class _Compiled:
    """Calls that become operators of samesum in a compiled graph. Their arguments are those of PyTorch's
    functions; a form that is not understood breaks the graph."""

    def __init__(self, recording: Any) -> None:
        self.like = recording.like
        self._methods = recording.methods

    def reduce(
        self, operation: str, x: Tensor, axes: Sequence[int], keepdims: bool, ddof: float = 0
    ) -> Tensor:
        method = _with_divisor(self._methods[operation, x.dtype], x.dtype, ddof)
        return torch.ops.samesum.reduce(x, operation, axes, keepdims, method, 0, float(ddof))

    def softmax(self, operation: str, x: Tensor, axes: Sequence[int]) -> Tensor:
        return torch.ops.samesum.softmax(x, operation, axes, self._methods[operation, x.dtype])


def _compiled_softmax(operation: str) -> Handler:
    def handler(route: Any, x: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        return _softmax_of(route, operation, x, dim, x.dtype if dtype is None else dtype)

    return handler


def _compiled_torch_softmax(operation: str) -> Handler:
    def handler(route: Any, x: Tensor, dim: Any, dtype: Any = None) -> Any:
        return _softmax_of(route, operation, x, dim, x.dtype if dtype is None else dtype)

    return handler


def _compiled_reduction(operation: str) -> Handler:
    def handler(route: Any, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return _reduced(route, operation, x, dim, keepdim, dtype)

    return handler


def _compiled_moments(operator: Handler) -> Handler:
    def handler(route: Any, x: Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
        return operator(route, None, x, dim, correction=correction, keepdim=keepdim)

    return handler


def _compiled_logsumexp(route: Any, x: Tensor, dim: Any, keepdim: bool = False) -> Any:
    return _reduced(route, "logsumexp", x, dim, keepdim, None)


def _compiled_layer_norm(
    route: Any, x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    return torch.ops.samesum.layer_norm(x, len(normalized_shape), weight, bias, eps, route.like)[0]


def _called_rms_norm(
    route: Any, x: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    return torch.ops.samesum.rms_norm(x, len(normalized_shape), weight, _eps_of(x, eps), route.like)[0]


_IN_GRAPHS: dict[Any, Handler] = {
    torch.logsumexp: _compiled_logsumexp, Tensor.logsumexp: _compiled_logsumexp,
    torch.special.logsumexp: _compiled_logsumexp,
    F.softmax: _compiled_softmax("softmax"), F.log_softmax: _compiled_softmax("log_softmax"),
    F.layer_norm: _compiled_layer_norm, F.rms_norm: _called_rms_norm, torch.rms_norm: _called_rms_norm,
}  # fmt: skip
for _owner in (torch, Tensor):
    for _name in ("sum", "mean"):
        _IN_GRAPHS[getattr(_owner, _name)] = _compiled_reduction(_name)
    for _name in ("softmax", "log_softmax"):
        _IN_GRAPHS[getattr(_owner, _name)] = _compiled_torch_softmax(_name)
    for _name, _operator in (("var", _var), ("std", _std)):
        _IN_GRAPHS[getattr(_owner, _name)] = _compiled_moments(_operator)
for _name, _operator in (("var_mean", _var_mean), ("std_mean", _std_mean)):
    _IN_GRAPHS[getattr(torch, _name)] = _compiled_moments(_operator)


def _named(names: str) -> set[Any]:
    owners = (torch, Tensor, F, torch.special)
    return {getattr(owner, name) for name in names.split() for owner in owners if hasattr(owner, name)}


# Functions that add nothing, forward or backward, once their inputs have one shape.
_ELEMENTWISE = _named(
    "add sub subtract mul multiply div divide true_divide neg negative abs exp expm1 log log1p log2 sqrt "
    "rsqrt square pow reciprocal sin cos tanh sigmoid relu relu6 gelu silu elu leaky_relu softplus mish "
    "hardswish hardtanh logsigmoid erf clamp clamp_min clamp_max where masked_fill minimum maximum sign "
    "floor ceil round dropout "
    "to float half bfloat16 double type clone contiguous detach add_ sub_ mul_ div_ "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __div__ "
    "__rdiv__ __neg__ __pow__ __abs__ "
    "__iadd__ __isub__ __imul__ __itruediv__ __idiv__ "
    "eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__ logical_and logical_or logical_not isnan "
    "isinf"
)
# Functions that only move elements, or make none.
_MOVING = _named(
    "view reshape flatten unflatten transpose permute t swapaxes movedim squeeze unsqueeze cat concat stack "
    "split chunk unbind narrow select masked_select tril triu roll flip size dim numel stride "
    "is_floating_point is_contiguous zeros_like ones_like empty_like full_like new_zeros "
    "new_ones new_empty new_full argmax argmin"
)
# Matrix products, which are not routed. Their gradients are matrix products if no axis is broadcast.
_PRODUCTS = _named("mm bmm matmul __matmul__")


class _Expand(torch.autograd.Function):
    """Broadcasts an input. Its gradient is summed by samesum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: list[int], method: str) -> Tensor:
        ctx.shape, ctx.method = x.shape, method
        extra = len(shape) - x.dim()
        ctx.axes = [d for d in range(len(shape)) if d < extra or (x.shape[d - extra] == 1 and shape[d] != 1)]
        return x.expand(shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        total = torch.ops.samesum.reduce(gradient, "sum", ctx.axes, False, ctx.method)
        return total.to(gradient.dtype).reshape(ctx.shape), None, None


def _expanded(recording: Any, x: Any, shape: list[int]) -> Any:
    if not isinstance(x, Tensor) or not x.requires_grad or list(x.shape) == shape:
        return x
    return _Expand.apply(x, shape, recording.methods["sum", x.dtype])


def _in_graph(recording: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Returns the result of a call that can stay in a compiled graph, else NotImplemented.

    Neither the call nor its gradient may reduce in another way than by matrix products or samesum.
    """
    if func in _MOVING or getattr(func, "__name__", "") == "__get__":
        return func(*args, **kwargs)
    if func in _PRODUCTS:
        x, y = args[0], args[1] if len(args) > 1 else None
        if not (isinstance(y, Tensor) and x.dim() >= 2 and (y.dim() == 2 or x.shape[:-2] == y.shape[:-2])):
            return NotImplemented
        return func(*args, **kwargs)
    is_linear = func is F.linear
    if not is_linear and func not in _ELEMENTWISE:
        return NotImplemented
    if not torch.is_grad_enabled():
        return func(*args, **kwargs)
    if is_linear:
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        if len(args) < 2 or len(kwargs) > (len(args) == 2):
            return NotImplemented
        y = func(args[0], args[1])
        return y if bias is None else y + _expanded(recording, bias, list(y.shape))
    if any([isinstance(a, Tensor) for a in kwargs.values()]):
        return NotImplemented
    shape = _common_shape([a.shape for a in args if isinstance(a, Tensor)])
    return func(*[_expanded(recording, a, shape) for a in args], **kwargs)


def _common_shape(shapes: Sequence[Sequence[int]]) -> list[int]:
    """Returns the shape to which all are broadcast. torch.broadcast_shapes would be part of the graph."""
    ndim = max([0, *[len(shape) for shape in shapes]])
    sizes = [[shape[d - ndim] for shape in shapes if d >= ndim - len(shape)] for d in range(ndim)]
    return [next((size for size in of_axis if size != 1), 1) for of_axis in sizes]


@_disable_dynamo
def _eagerly(func: Any, args: Any, kwargs: Any) -> Any:
    """Breaks the graph: calls the function as outside torch.compile, so that its operators are routed."""
    before = _recorded(args)
    result = func(*args, **kwargs)
    _watch(result, args, before)
    return result


class _Recording(TorchFunctionMode):
    """Above autograd: watches what is recorded, and decides what torch.compile may trace.

    torch.compile traces this class, and compiles again where its state differs: a function that was compiled
    outside the manager is not used inside it, nor one for another method.
    """

    def __init__(self, like: str) -> None:
        super().__init__()
        self.like = like
        self.methods = _methods(like)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return self._compiled(func, args, kwargs or {})
        before = _recorded(args)
        if (func is F.rms_norm or func is torch.rms_norm) and not torch.is_autocast_enabled(
            args[0].device.type
        ):
            result = _called_rms_norm(self, *args, **(kwargs or {}))  # on the CPU it is no single operator
        else:
            result = func(*args, **kwargs) if kwargs else func(*args)
        _watch(result, args, before)
        return result

    if not _can_skip:  # all calls break the graph
        __torch_function__ = _disable_dynamo(__torch_function__)

    def _compiled(self, func: Any, args: Any, kwargs: Any) -> Any:
        handler = _IN_GRAPHS.get(func)
        if handler is not None and _is_understood(self, args, kwargs):
            return handler(_Compiled(self), *args, **kwargs)
        result = _in_graph(self, func, args, kwargs)
        return _eagerly(func, args, kwargs) if result is NotImplemented else result


if _can_skip:
    # torch.compile traces calls of _Recording as part of what calls them. Where a graph breaks, Python itself
    # makes these calls, and torch.compile must not compile them alone: the modes are not active in their own
    # calls.
    for _mode in (_Recording.__torch_function__, _Routing.__torch_dispatch__):
        _skip.set_code_exec_strategy(
            _mode.__code__, _skip._FrameExecStrategy(_skip._FrameAction.SKIP, _skip._FrameAction.SKIP)
        )


def _is_understood(recording: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call that is traced has the form that the handlers of compiled graphs know."""
    x = args[0] if args else None
    if not isinstance(x, Tensor) or ("norm", x.dtype) not in recording.methods:
        return False
    if torch.is_autocast_enabled(x.device.type) or (len(args) > 1 and isinstance(args[1], (bool, str))):
        return False
    if not isinstance(kwargs.get("correction"), (int, type(None))):
        return False  # the method depends on whether it is a whole number
    return all([name in _KEYWORDS for name in kwargs]) and not isinstance(kwargs.get("dim"), str)


_KEYWORDS = {
    "dim",
    "keepdim",
    "dtype",
    "correction",
    "normalized_shape",
    "weight",
    "bias",
    "eps",
    "_stacklevel",
}


class deterministic:
    """Context manager under which PyTorch's reductions have the same bits in every run and on every machine.

    Inside it, these operators are computed by methods of samesum, on the CPU and on NVIDIA GPUs, forward and
    backward: sum, mean, var, std, var_mean, std_mean, the vector 1-norm and 2-norm, softmax, log_softmax,
    logsumexp, layer_norm, rms_norm, cumsum, index_add, scatter_add, index_put with accumulate, the gradients
    of embedding, gather, index_select and of indexing by tensors, and the sums and means of nll_loss,
    cross_entropy, mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div and binary_cross_entropy. Sums that
    autograd itself makes, such as the gradient of a bias, are among them. `routed` lists the operators,
    `not_routed` what is left to PyTorch: matrix products and attention above all. PyTorch's own flag for
    determinism is not touched.

    `method` is an order and an accumulator: "tree/plain", "tree/kahan", "pairwise/plain", "exact", … An
    operation that lacks it uses its closest method, for example norm/tree for "exact", cumsum/prefix/kahan for
    "tree/kahan", and an exact sum by key for all but "serial/plain" and "fixed_point". Elements of 16 bits
    are accumulated in fp32, and each result is rounded to the type that PyTorch returns. Softmax and
    logsumexp of fp64 raise TypeError, since samesum computes them in fp32; so does every reduction of complex
    numbers.

    Scope
    -----
    The manager acts in the thread that enters it, and in autograd's threads during a backward pass that this
    thread starts. Managers nest: the innermost one counts and chooses the method. A backward pass of what was
    recorded inside must run inside a manager; outside, it raises RuntimeError. The watch covers results of
    calls and first arguments that a call changes, as in y += b. It does not cover what C++ code or an
    autograd.Function records, if no later operator of the graph was recorded inside.

    A function of torch.compile that was compiled outside is compiled again inside. Its graphs contain
    operators of samesum (torch.ops.samesum), and break where a call, or its gradient, would add in another
    way; where PyTorch cannot break a graph, the function runs eagerly, which is routed too.

    Parameters
    ----------
    method
        an order and an accumulator of sums whose bits are the same everywhere, or a method of sums.

    Attributes
    ----------
    calls
        number of calls by operator, a Counter.

    >>> import torch
    >>> with deterministic("tree/kahan") as routing:
    ...     print(torch.tensor([1e8, 1.0, -1e8]).sum())
    tensor(1.)
    >>> routing.calls
    Counter({'sum': 1})
    """

    def __init__(self, method: str | _core.Method = "tree/plain") -> None:
        self.method = _validated(method)
        self.calls: Counter[str] = Counter()
        self._entered: list[tuple[Any, Any]] = []

    @_disable_dynamo
    def __enter__(self) -> deterministic:
        routing, recording = _Routing(self.method, self.calls), _Recording(self.method)
        routing.__enter__()
        recording.__enter__()
        self._entered.append((routing, recording))
        return self

    @_disable_dynamo
    def __exit__(self, *error: Any) -> None:
        if not self._entered:
            raise RuntimeError("samesum: this manager was not entered; enter it by a with statement")
        routing, recording = self._entered[-1]
        if _get_current_function_mode() is not recording or _get_current_dispatch_mode() is not routing:
            raise RuntimeError(
                "samesum: this manager is not the innermost mode of its thread; leave managers in the reverse "
                "order of entering them, as with statements do"
            )
        self._entered.pop()
        recording.__exit__(*error)
        routing.__exit__(*error)

    def __repr__(self) -> str:
        return f"samesum.torch.deterministic({self.method!r})"
