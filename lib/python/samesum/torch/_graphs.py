"""torch.compile: which calls become operators of samesum, which stay as they are, and which break the graph."""

from __future__ import annotations

from functools import partial
from typing import Any, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.overrides import TorchFunctionMode

from ._handlers import MOMENTS, Handler, _eps_of, _reduced, _softmax_of
from ._routing import _Routing, _can_skip, _methods, _recorded, _skip, _watch, _with_divisor


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
    """Returns the handler of the function of that name in torch.nn.functional."""

    def handler(route: Any, x: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        return _softmax_of(operation, route, x, dim, dtype)

    return handler


def _compiled_moments(operator: Handler) -> Handler:
    def handler(route: Any, x: Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
        return operator(route, None, x, dim, correction=correction, keepdim=keepdim)

    return handler


def _compiled_layer_norm(
    route: Any, x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    return torch.ops.samesum.layer_norm(x, len(normalized_shape), weight, bias, eps, route.like)[0]


def _called_rms_norm(
    route: Any, x: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    return torch.ops.samesum.rms_norm(x, len(normalized_shape), weight, _eps_of(x, eps), route.like)[0]


_IN_GRAPHS: dict[Any, Handler] = {
    F.softmax: _compiled_softmax("softmax"), F.log_softmax: _compiled_softmax("log_softmax"),
    F.layer_norm: _compiled_layer_norm, F.rms_norm: _called_rms_norm, torch.rms_norm: _called_rms_norm,
}  # fmt: skip
for _owner in (torch, Tensor, torch.special):
    for _name in ("sum", "mean", "logsumexp"):
        if hasattr(_owner, _name):
            _IN_GRAPHS[getattr(_owner, _name)] = partial(_reduced, _name)
for _owner in (torch, Tensor):
    for _name in ("softmax", "log_softmax"):
        _IN_GRAPHS[getattr(_owner, _name)] = partial(_softmax_of, _name)
    for _name, _handler in MOMENTS.items():
        if hasattr(_owner, _name):  # tensors have no var_mean
            _IN_GRAPHS[getattr(_owner, _name)] = _compiled_moments(_handler)


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
) | {torch.ops.aten.numpy_T, torch.ops.aten.mT, torch.ops.aten.matrix_H, torch.ops.aten.mH}  # x.T in PyTorch 2.15
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
