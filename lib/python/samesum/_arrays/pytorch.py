"""PyTorch tensors as arrays."""

from __future__ import annotations

import sys
from typing import Any, Sequence

from .. import _core
from .._elements import traced
from .._elements.formats import FORMATS, UNSIGNED, dtype_name
from .._elements.library import Library, View


def _watches(torch: Any) -> Any:
    """Returns the function that tells whether PyTorch must see every call: to compile it, or to derive it forward."""
    from torch.autograd import forward_ad

    return lambda: torch.compiler.is_compiling() or forward_ad._current_level >= 0


class Torch(Library):
    """PyTorch tensors, on the CPU and on GPUs, in PyTorch's current stream."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self.torch = self.namespace = torch
        self.kind = torch.Tensor
        stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        traced.watches.append(_watches(torch))
        _core.know_torch(torch.Tensor, {f: getattr(torch, d) for d, f in FORMATS.items()}, stream)

    def require_strided(self, x: Any, argument: str) -> None:
        """Raises TypeError for a tensor that is more than strided elements: a nested, masked or sparse one."""
        if x.is_nested:
            kind, remedy = "nested", "torch.nested.to_padded_tensor({0}, 0), or each of {0}.unbind()"
        elif isinstance(x, self.torch.masked.MaskedTensor):
            kind, remedy = "masked", "{0}.get_data(), and {0}.get_mask() as where="
        elif x.layout is not self.torch.strided:
            kind, remedy = "sparse", "{0}.to_dense() or {0}.values()"
        else:
            return
        raise TypeError(f"samesum: {argument} is a {kind} tensor; pass {remedy.format(argument)}")

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        self.require_strided(x, argument)
        if x.device.type not in ("cpu", "cuda"):
            raise TypeError(f"samesum: {argument} is on the device {x.device}; move it to 'cpu' or 'cuda'")
        return self.aligned(x.detach().resolve_neg())

    def aligned(self, x: Any) -> Any:
        return x if x.data_ptr() % x.itemsize == 0 else x.clone()

    def dtype(self, name: str) -> Any:
        return getattr(self.torch, name)

    def view(self, a: Any) -> View:
        device = a.get_device()
        stream = self.torch.cuda.current_stream(device).cuda_stream if device >= 0 else 0
        return View(a.data_ptr(), tuple(a.shape), a.stride(), device, stream)

    def place(self, a: Any) -> str:
        return "cpu" if a.is_cpu else str(a.device)

    def converted(self, x: Any) -> Any:
        """Returns an array of another library, in the same memory, as a tensor. Those of NumPy are copied."""
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(x, numpy.ndarray):
            return self.torch.from_dlpack(x)
        if dtype_name(x.dtype) == "bfloat16":
            return self.torch.from_numpy(numpy.array(x).view(numpy.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(numpy.array(x))

    def strides(self, a: Any) -> tuple[int, ...]:
        return a.stride()

    def astype(self, a: Any, dtype: str) -> Any:
        return a.to(self.dtype(dtype))

    def transposed(self, a: Any, axes: Sequence[int]) -> Any:
        return a.permute(tuple(axes))

    def contiguous(self, a: Any) -> Any:
        return a.contiguous()

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        return tuple(self.torch.broadcast_tensors(x, y))  # type: ignore[return-value]

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        return self.torch.empty(tuple(shape), dtype=self.dtype(dtype), device=like.device)

    def zeroed(self, a: Any, mask: Any) -> Any:
        name = dtype_name(a.dtype)
        if name in UNSIGNED:  # of which PyTorch selects none
            return self.torch.where(mask, a.view(self.dtype(name[1:])), 0).view(a.dtype)
        return self.torch.where(mask, a, self.torch.zeros_like(a))

    def copy_to(self, out: Any, result: Any) -> None:
        out.copy_(result)

    def wait(self, a: Any) -> None:
        if a.is_cuda:
            self.torch.cuda.current_stream(a.device).synchronize()

    def is_traced(self, x: Any) -> bool:
        """Whether PyTorch must see the call: to differentiate, to compile, or for a tensor without data."""
        torch = self.torch
        if x.is_nested or isinstance(x, torch.masked.MaskedTensor):
            return False  # `array` refuses it
        return (
            (x.requires_grad and torch.is_grad_enabled())
            or torch.compiler.is_compiling()
            or x.device.type == "meta"
            or type(x) not in (torch.Tensor, torch.nn.Parameter)
            or torch._C._functorch.is_functorch_wrapped_tensor(x)
            or (
                torch.autograd.forward_ad._current_level >= 0
                and torch.autograd.forward_ad.unpack_dual(x).tangent is not None
            )
        )
