"""Calls of the public functions that PyTorch must see, from their arguments to an operator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._arrays.inputs import second_array
from .._calls.arguments import Call, check_threads
from .._elements.formats import dtype_name, format_of
from .._elements.in_floats import in_floats
from .._elements.layout import normalised_axes, paired
from .methods import FORMATS, library
from .operators import reduce, reduce_pair, require_one_device, softmax, square_root

__all__ = ["reduce_traced", "square_root"]


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


def _in_type(argument: str, a: Tensor, dtype: Any) -> Tensor:
    has_elements = not (torch.compiler.is_compiling() or a.is_meta or isinstance(a, torch._subclasses.FakeTensor))
    if format_of(a.dtype) != "int" or not has_elements:  # then there is nothing to look at
        return a.to(dtype)
    return in_floats(library, a, argument, dtype=dtype_name(dtype))


def reduce_traced(call: Call) -> Tensor:
    """Makes one call of a public function by operators of PyTorch."""
    operation, x, y, second = call.operation, call.x, call.y, call.second
    if call.out is not None:
        raise ValueError(
            "samesum: out does not go with gradients or compilation; leave it out, or pass x.detach()"
        )
    if isinstance(x, Tensor) and y is not None and not isinstance(y, Tensor) and not torch.compiler.is_compiling():
        y = second_array(library, x, y, second)
    for argument, a, other in (("x", x, second), (second, y, "x")):
        if a is None:
            continue
        if not isinstance(a, Tensor):
            raise TypeError(
                f"samesum: {argument} is a {type(a).__name__}, and PyTorch traces {other}; pass tensors, such as "
                f"torch.as_tensor({argument})"
            )
        library.require_strided(a, argument)
        if not torch.compiler.is_compiling():
            _require_no_transform(a)
    check_threads(call.threads)
    name = None if call.method is None else str(getattr(call.method, "name", call.method))
    if call.dtype is not None:
        format_of(call.dtype, "dtype")
        x = x.to(getattr(torch, dtype_name(call.dtype)))
        y = None if y is None else y.to(x.dtype)
    if y is not None:
        require_one_device(x, y)
        formats = {format_of(x.dtype), format_of(y.dtype, second)}
        common = torch.float64 if formats == {"int"} else torch.promote_types(x.dtype, y.dtype)
        x, y = (_in_type(name, a, common) for name, a in (("x", x), (second, y)))
        x, y, axes = paired(torch, x, y, call.axis)
        result = reduce_pair(x, y, operation, axes, call.keepdims, name, call.threads)
    elif operation in ("softmax", "log_softmax"):
        x = x if x.dtype in FORMATS else x.double()
        result = softmax(x, operation, normalised_axes(call.axis, x.dim()), name, call.threads)
    else:
        axes = normalised_axes(call.axis, x.dim())
        result = reduce(x, operation, axes, call.keepdims, name, call.threads, float(call.ddof))
    return result if call.finish is None else call.finish(torch, result)
