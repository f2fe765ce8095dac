"""Array libraries: where the elements of an array lie, and how results are made.

Each library is one class with the same functions. None is imported here: a class imports its library when it
meets an array of that library, so `import samesum` needs none of them.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Sequence

from . import _core

FORMATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
"""Names of data types, and the formats of samesum."""
DTYPES = {format: dtype for dtype, format in FORMATS.items()}
INTEGERS = {"bool"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


class View(NamedTuple):
    """The elements of an array in memory. Strides are in elements; `device` is -1 for host memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    stream: int


def dtype_name(dtype: Any) -> str:
    """Returns the name of a data type of any library: "float32", "int64"."""
    if isinstance(dtype, str):
        return DTYPES.get(dtype, dtype)
    if dtype is float:
        return "float64"
    if dtype is int:
        return "int64"
    if dtype is bool:
        return "bool"
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return name.rpartition(".")[2]


def format_of(dtype: Any, argument: str = "x") -> str:
    """Returns the format of samesum for a data type, or "int" for integers and booleans.

    Raises TypeError for every other data type; the message names `argument`.
    """
    name = dtype_name(dtype)
    if name in FORMATS:
        return FORMATS[name]
    if name in INTEGERS:
        return "int"
    raise TypeError(
        f"samesum: {argument} has elements of type {name}; use float16, bfloat16, float32, float64, an integer "
        "type or bool"
    )


class NumPy:
    """NumPy arrays, and whatever NumPy converts: lists, buffers, scalars."""

    name = "numpy"

    def __init__(self) -> None:
        try:
            import numpy
        except ImportError as error:
            raise ImportError(
                "samesum: lists and buffers are read by NumPy; install it with 'pip install numpy', or use "
                "samesum.fsum for an iterable of numbers"
            ) from error
        self.np = numpy
        _core.know_numpy(numpy.ndarray, {"fp16": numpy.float16, "fp32": numpy.float32, "fp64": numpy.float64})

    def array(self, x: Any) -> Any:
        np = self.np
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError("samesum: x is a masked array; pass x.compressed(), or x.filled(0) to keep its shape")
        a = np.asarray(x)
        if a.dtype.hasobject:
            a = self._from_objects(a)
        if not a.dtype.isnative:
            a = a.astype(a.dtype.newbyteorder("="))
        return a

    def _from_objects(self, a: Any) -> Any:
        try:
            return a.astype(self.np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError("samesum: x has elements that are not numbers") from error

    def dtype(self, name: str) -> Any:
        if name == "bfloat16":
            try:
                import ml_dtypes
            except ImportError as error:
                raise TypeError(
                    "samesum: NumPy itself has no bfloat16; install ml_dtypes, or choose a method in another "
                    "format, such as method='tree/plain/fp32'"
                ) from error
            return ml_dtypes.bfloat16
        return self.np.dtype(name)

    def view(self, a: Any) -> View:
        size = a.dtype.itemsize
        address = a.__array_interface__["data"][0]
        if a.size and address % size:
            raise ValueError(f"samesum: x is not aligned to its elements of {size} bytes; pass x.copy()")
        return View(address, a.shape, tuple(s // size if s % size == 0 else -1 for s in a.strides), -1, 0)

    def strides(self, a: Any) -> tuple[int, ...]:
        return self.view(a).strides

    def astype(self, a: Any, dtype: str) -> Any:
        return a.astype(self.dtype(dtype))

    def transposed(self, a: Any, axes: Sequence[int]) -> Any:
        return a.transpose(axes)

    def contiguous(self, a: Any) -> Any:
        return self.np.ascontiguousarray(a)

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        return tuple(self.np.broadcast_arrays(x, y))  # type: ignore[return-value]

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        return self.np.empty(shape, self.dtype(dtype))

    def copy_to(self, out: Any, result: Any) -> None:
        out[...] = result

    def finished(self, result: Any, source: Any) -> Any:
        """Returns a result without axes as a scalar, as NumPy does; for a list or number as Python's own."""
        if result.ndim:
            return result
        if isinstance(source, (list, tuple, int, float)):
            return result.item()
        return result[()]

    @property
    def namespace(self) -> Any:
        return self.np

    def is_traced(self, x: Any) -> bool:
        return False


class Torch:
    """PyTorch tensors, on the CPU and on GPUs, in PyTorch's current stream."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        _core.know_torch(torch.Tensor, {f: getattr(torch, d) for d, f in FORMATS.items()}, stream)

    def array(self, x: Any) -> Any:
        if x.layout is not self.torch.strided:
            raise TypeError("samesum: x is a sparse tensor; pass x.to_dense() or x.values()")
        if x.device.type not in ("cpu", "cuda"):
            raise TypeError(f"samesum: x is on the device {x.device}; move it to 'cpu' or 'cuda'")
        return x.detach().resolve_neg()

    def dtype(self, name: str) -> Any:
        return getattr(self.torch, name)

    def view(self, a: Any) -> View:
        device = a.get_device()
        stream = self.torch.cuda.current_stream(device).cuda_stream if device >= 0 else 0
        return View(a.data_ptr(), tuple(a.shape), a.stride(), device, stream)

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

    def copy_to(self, out: Any, result: Any) -> None:
        out.copy_(result)

    def finished(self, result: Any, source: Any) -> Any:
        return result

    @property
    def namespace(self) -> Any:
        return self.torch

    def is_traced(self, x: Any) -> bool:
        """Whether PyTorch must see the call: to differentiate, to compile, or for a tensor without data."""
        torch = self.torch
        return (
            (x.requires_grad and torch.is_grad_enabled())
            or torch.compiler.is_compiling()
            or x.device.type == "meta"
            or type(x) not in (torch.Tensor, torch.nn.Parameter)
        )


class CuPy:
    """CuPy arrays, in CuPy's current stream."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cp = cupy

    def array(self, x: Any) -> Any:
        return x

    def dtype(self, name: str) -> Any:
        if name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.bfloat16
        return self.cp.dtype(name)

    def view(self, a: Any) -> View:
        size = a.dtype.itemsize
        with a.device:
            stream = self.cp.cuda.get_current_stream().ptr
        return View(a.data.ptr, a.shape, tuple(s // size for s in a.strides), a.device.id, stream)

    def strides(self, a: Any) -> tuple[int, ...]:
        return tuple(s // a.dtype.itemsize for s in a.strides)

    def astype(self, a: Any, dtype: str) -> Any:
        return a.astype(self.dtype(dtype))

    def transposed(self, a: Any, axes: Sequence[int]) -> Any:
        return a.transpose(axes)

    def contiguous(self, a: Any) -> Any:
        return self.cp.ascontiguousarray(a)

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        return tuple(self.cp.broadcast_arrays(x, y))  # type: ignore[return-value]

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        with like.device:
            return self.cp.empty(tuple(shape), self.dtype(dtype))

    def copy_to(self, out: Any, result: Any) -> None:
        out[...] = result

    def finished(self, result: Any, source: Any) -> Any:
        return result

    @property
    def namespace(self) -> Any:
        return self.cp

    def is_traced(self, x: Any) -> bool:
        return False


class Converted:
    """Arrays of another library, read by NumPy (host) or by CuPy or PyTorch (GPU) without a copy.

    Results go back through DLPack.
    """

    name = "dlpack"

    def __init__(self, back: Any = None) -> None:
        self.back = back  # makes an array of the caller's library from one of the reading library

    def reader(self, x: Any) -> tuple[Any, Any]:
        """Returns the library that reads x, and its array of the same memory."""
        if not self._is_on_gpu(x):
            numpy = _library("numpy")
            try:
                a = numpy.np.from_dlpack(x)
            except (BufferError, RuntimeError, TypeError, AttributeError):
                a = numpy.array(x)  # NumPy's DLPack has no bfloat16
            return numpy, numpy.array(a)
        for name, load in (("cupy", lambda m, x: m.cp.asarray(x)), ("torch", lambda m, x: m.torch.as_tensor(x))):
            try:
                library = _library(name)
            except ImportError:
                continue
            if hasattr(x, "__dlpack__"):
                return library, library.namespace.from_dlpack(x)
            return library, load(library, x)
        raise TypeError(
            "samesum: x is in the memory of a GPU, and neither CuPy nor PyTorch is installed to make the result; "
            "install one of them"
        )

    def _is_on_gpu(self, x: Any) -> bool:
        if hasattr(x, "__dlpack_device__"):
            return int(x.__dlpack_device__()[0]) not in (1, 3)  # kDLCPU, kDLCUDAHost
        return hasattr(x, "__cuda_array_interface__")

    def returned(self, result: Any, source: Any) -> Any:
        """Returns a result of the reading library as an array of the caller's library, if that is known."""
        if self.back is not None:
            return self.back(result)
        namespace = getattr(source, "__array_namespace__", lambda: None)()
        return namespace.from_dlpack(result) if namespace is not None else result

    def is_traced(self, x: Any) -> bool:
        return False


class Jax(Converted):
    """JAX arrays. Under jit, vmap and grad, `samesum.jax` has the calls."""

    name = "jax"

    def __init__(self) -> None:
        import jax

        self.jax = jax
        super().__init__(jax.numpy.asarray)

    def reader(self, x: Any) -> tuple[Any, Any]:
        if self._is_on_gpu(x):
            return super().reader(x)
        numpy = _library("numpy")
        return numpy, numpy.np.asarray(x)  # without a copy, bfloat16 included

    def returned(self, result: Any, source: Any) -> Any:
        if type(result).__module__.partition(".")[0] in ("cupy", "torch"):
            return self.jax.dlpack.from_dlpack(result)
        with self.jax.experimental.enable_x64():  # the format is the method's, whatever JAX's default
            return self.jax.numpy.asarray(result)

    def is_traced(self, x: Any) -> bool:
        return isinstance(x, self.jax.core.Tracer)


_libraries: dict[str, Any] = {}
_classes = {"numpy": NumPy, "torch": Torch, "cupy": CuPy, "jax": Jax, "dlpack": Converted}
_of_type: dict[type, Any] = {}


def _library(name: str) -> Any:
    library = _libraries.get(name)
    if library is None:
        library = _libraries[name] = _classes[name]()
    return library


def _name_for(kind: type) -> str:
    modules = sys.modules
    if "numpy" in modules and issubclass(kind, (modules["numpy"].ndarray, modules["numpy"].generic)):
        return "numpy"
    if "torch" in modules and issubclass(kind, modules["torch"].Tensor):
        return "torch"
    if "cupy" in modules and issubclass(kind, modules["cupy"].ndarray):
        return "cupy"
    if "jax" in modules and issubclass(kind, modules["jax"].Array):
        return "jax"
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"):
        return "dlpack"
    return "numpy"


def library_of(x: Any) -> Any:
    """Returns the library whose functions handle x."""
    kind = type(x)
    library = _of_type.get(kind)
    if library is None:
        library = _of_type[kind] = _library(_name_for(kind))
    return library
