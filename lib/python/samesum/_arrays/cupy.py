"""CuPy arrays."""

from __future__ import annotations

from typing import Any, Sequence

from .._elements.library import Library, View


class CuPy(Library):
    """CuPy arrays, in CuPy's current stream."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cp = self.namespace = cupy
        self.kind = cupy.ndarray

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        return x if x.data.ptr % x.dtype.itemsize == 0 else x.copy()

    def view(self, a: Any) -> View:
        with a.device:
            stream = self.cp.cuda.get_current_stream().ptr
        return View(a.data.ptr, a.shape, self.strides(a), a.device.id, stream)

    def place(self, a: Any) -> str:
        return f"cuda:{a.device.id}"

    def converted(self, x: Any) -> Any:
        """Returns a tensor of PyTorch on a GPU as an array of the same memory."""
        return self.cp.from_dlpack(x)

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        with like.device:
            return self.cp.empty(tuple(shape), self.dtype(dtype))

    def wait(self, a: Any) -> None:
        with a.device:
            self.cp.cuda.get_current_stream().synchronize()
