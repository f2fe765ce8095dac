"""The mode that computes PyTorch's reductions by methods of samesum, and the watch over backward passes outside it."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _core
from .._calls.arguments import Call
from .._torch import methods as _torch_methods
from .._torch.methods import FORMATS, closest
from . import _by_key  # noqa: F401  registers its handlers
from ._handlers import _HANDLERS, handle_writing_forms
from ._operators import missed_family, name_of

try:
    from torch._C._dynamo import eval_frame as _skip
except ImportError:
    _skip = None
_can_skip = hasattr(_skip, "set_code_exec_strategy")  # an internal of PyTorch, present in 2.11 and 2.15


@lru_cache(maxsize=None)
def _methods(like: str) -> dict[tuple[str, torch.dtype], str | None]:
    """Methods by operation and format of the elements."""
    operations = {m.operation for m in _core.methods()}
    return {(o, dtype): closest(like, o, format) for o in operations for dtype, format in FORMATS.items()}


def _with_divisor(method: str | None, dtype: torch.dtype, ddof: float) -> Any:
    """Returns the method, or tree/plain's if it is exact and takes no divisor n - ddof."""
    return method if ddof % 1 == 0 else closest("tree/plain", "moments", FORMATS[dtype])


handle_writing_forms()

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@lru_cache(maxsize=None)
def _is_composite(operator: Any) -> bool:
    """Whether an operator is made of others. PyTorch decomposes it before a mode sees it, but not in inference mode."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), _COMPOSITE.name)


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

    def __init__(self, like: str, calls: Counter[str], missed: Counter[str], strict: bool) -> None:
        super().__init__()
        self.like, self.calls, self.missed, self.strict = like, calls, missed, strict
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
        kwargs = kwargs or {}
        found = _HANDLERS.get(func)
        if found is None:
            own = _OWN.get(func)
            if own is not None:
                self.calls[args[own] if isinstance(own, int) else own] += 1
                return func(*args, **kwargs)
            if _is_composite(func):
                with self:
                    return func._op_dk(_COMPOSITE, *args, **kwargs)
            return self._left(func, args, kwargs)
        for x in args[0] if isinstance(args[0], list) else args[:1]:
            if x.layout is torch.strided and (x.is_cpu or x.is_cuda):
                continue
            if x.device.type == "meta":
                return func(*args, **kwargs)
            raise NotImplementedError(
                f"samesum: {func} of a tensor with layout {x.layout} on {x.device} is not routed; call it "
                "outside samesum.torch.deterministic, or use dense tensors on 'cpu' or 'cuda'"
            )
        name, handler = found
        result = handler(self, func, *args, **kwargs)
        if result is NotImplemented:
            return self._left(func, args, kwargs)
        self.calls[name] += 1
        return result

    def _left(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Leaves a call to PyTorch. Counts it if it adds, or raises RuntimeError if the manager is strict."""
        family = missed_family(func, args, kwargs)
        if family is not None:
            if self.strict:
                raise RuntimeError(
                    f"samesum: {name_of(func)} is not routed ({family}); call it outside "
                    "samesum.torch.deterministic, or leave out strict=True and read the attribute missed"
                )
            self.missed[name_of(func)] += 1
        return func(*args, **kwargs)

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
        return _torch_methods.reduce_data(
            Call(operation, x, tuple(axes), keepdims=keepdims, method=method, ddof=ddof)
        )

    def reduce_pair(
        self, operation: str, x: Tensor, y: Tensor, axes: Sequence[int], keepdims: bool
    ) -> Tensor:
        x, y = torch.broadcast_tensors(x, y)
        if x.dtype != y.dtype:
            x, y = x.float(), y.float()
        return _torch_methods.reduce_data(
            Call(operation, x, tuple(axes), keepdims=keepdims, method=self._method(operation, x), y=y)
        )

    def softmax(self, operation: str, x: Tensor, axes: Sequence[int]) -> Tensor:
        return _torch_methods.reduce_data(Call(operation, x, tuple(axes), method=self._method(operation, x)))

    def scan(self, operation: str, x: Tensor, axis: int) -> Tensor:
        return _torch_methods.scan_data(operation, x, axis, self._method(operation, x))

    def add_by_key(self, out: Tensor, keys: Tensor, rows: Tensor, narrow: bool = True) -> Tensor:
        method = self._method("scatter_add", rows)
        try:
            sums = _torch_methods.add_by_key(out, keys, rows, method)
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
