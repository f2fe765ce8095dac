"""Array libraries: where the elements of an array lie, and how results are made.

Each library is one class with the same functions. None is imported here: a class imports its library when it
meets an array of that library, so `import samesum` needs none of them.
"""

from __future__ import annotations

import sys
from array import array
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
        return DTYPES.get(dtype) or _numpys_name(dtype)
    if dtype is float:
        return "float64"
    if dtype is int:
        return "int64"
    if dtype is bool:
        return "bool"
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return name.rpartition(".")[2]


def _numpys_name(dtype: str) -> str:
    """Returns the name that NumPy, if it is in use, has for a type such as "f8"."""
    numpy = sys.modules.get("numpy")
    if dtype in FORMATS or numpy is None:
        return dtype
    try:
        return str(numpy.dtype(dtype).name)
    except (TypeError, ValueError):
        return dtype


def format_of(dtype: Any, argument: str = "x") -> str:
    """Returns the format of samesum for a data type, or "int" for integers and booleans.

    Raises TypeError for every other data type; the message names `argument`.
    """
    name = dtype_name(dtype)
    if name in FORMATS:
        return FORMATS[name]
    if name in INTEGERS:
        return "int"
    is_type = argument in ("dtype", "input")
    if name.startswith(("str", "bytes", "Str")) and not is_type:
        raise _texts(argument)
    has = "is" if is_type else "has elements of type"
    raise TypeError(
        f"samesum: {argument} {has} {name}; use float16, bfloat16, float32, float64, an integer "
        "type or bool"
    )


def _is_table(x: Any) -> bool:
    """Whether x has columns of their own types, as those of pandas."""
    return hasattr(getattr(x, "dtypes", None), "__iter__")


def _may_be_integers(x: Any) -> bool:
    """Whether x, which NumPy has read as float64, may hold integers: a list, or a table with columns of integers."""
    if _is_table(x):
        return all(getattr(dtype, "kind", "O") in "iub" for dtype in x.dtypes)
    if hasattr(x, "__array__") or isinstance(x, (memoryview, array)):
        return False
    while isinstance(x, (list, tuple)) and x:
        x = x[0]
    return not isinstance(x, float)


def _texts(argument: str) -> TypeError:
    return TypeError(
        f"samesum: {argument} has texts, not numbers; convert them first, for example by "
        f"numpy.asarray({argument}, float)"
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
        self.kind = numpy.ndarray
        formats = {"fp16": numpy.float16, "fp32": numpy.float32, "fp64": numpy.float64}
        _core.know_numpy(numpy.ndarray, numpy.empty, formats)

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        """Returns an array of numbers. With `wide`, integers that no type of 64 bits holds stay Python's."""
        np = self.np
        if self.is_masked(x):
            raise TypeError(
                f"samesum: {argument} is a masked array; pass {argument}.compressed(), or {argument}.filled(0) to keep "
                "its shape"
            )
        try:
            a = np.asarray(x)
        except ValueError as error:  # rows of different lengths
            raise ValueError(f"samesum: NumPy cannot read {argument}: {error}") from error
        if a is not x and a.dtype == np.float64 and a.size and _may_be_integers(x) and max(a.max(), -a.min()) > 2**53:
            # NumPy and pandas make floats of integers if int64 and uint64 meet.
            objects = np.asarray(x.astype(object) if _is_table(x) else x, dtype=object)
            a = objects if self._are_integers(objects) else a
        if a.dtype.hasobject:
            a = self._from_objects(a, argument, wide)
        if not a.dtype.isnative:
            a = a.astype(a.dtype.newbyteorder("="))
        return a if a.flags.aligned else a.copy("K")

    def is_masked(self, x: Any) -> bool:
        """Whether NumPy would read x through masks: of an array, of arrays in a list, or of blocks of a Dask array."""
        if isinstance(x, (list, tuple)):
            kinds = set(map(type, x)) if x and not isinstance(x[0], (float, int)) else ()
            return any(issubclass(kind, self.np.ma.MaskedArray) for kind in kinds)
        return isinstance(getattr(x, "_meta", x), self.np.ma.MaskedArray)

    def _are_integers(self, a: Any) -> bool:
        return a.size > 0 and all(isinstance(v, (int, self.np.integer, self.np.bool_)) for v in a.flat)

    def _from_objects(self, a: Any, argument: str, wide: bool) -> Any:
        if self._are_integers(a):
            return self._from_integers(a, argument, wide)
        if all(hasattr(type(v), "__float__") or hasattr(type(v), "__index__") for v in a.flat):
            return a.astype(self.np.float64)
        if any(isinstance(v, (str, bytes)) for v in a.flat):
            raise _texts(argument)
        if a.ndim == 0 and hasattr(a[()], "__iter__"):
            raise TypeError(f"samesum: {argument} is a {type(a[()]).__name__}; pass a list of its elements")
        raise TypeError(f"samesum: {argument} has elements that are not numbers")

    def _from_integers(self, a: Any, argument: str, wide: bool) -> Any:
        np = self.np
        if all(isinstance(v, (bool, np.bool_)) for v in a.flat):
            return a.astype(bool)
        a = np.array([int(v) for v in a.flat], object).reshape(a.shape)
        narrow = self.narrowed(a)
        if narrow is not None:
            return narrow
        if wide:
            return a
        if not -(2**63) <= a.min() <= a.max() < 2**64:
            raise OverflowError(f"samesum: {argument} has integers beyond 64 bits; convert them to floats first")
        return a.astype(np.float64)

    def narrowed(self, a: Any) -> Any:
        """Returns Python's integers in the type int64 or uint64; None if neither holds them."""
        for dtype in (self.np.int64, self.np.uint64):
            limits = self.np.iinfo(dtype)
            if not a.size or limits.min <= a.min() <= a.max() <= limits.max:
                return a.astype(dtype)
        return None

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
        return View(address, a.shape, tuple(s // size if s % size == 0 else -1 for s in a.strides), -1, 0)

    def place(self, a: Any) -> str:
        return "cpu"

    def strides(self, a: Any) -> tuple[int, ...]:
        return self.view(a).strides

    def converted(self, x: Any) -> Any:
        """Returns a tensor of PyTorch in host memory as an array of the same memory."""
        if dtype_name(x.dtype) == "bfloat16":
            return self.converted(x.view(sys.modules["torch"].int16)).view(self.dtype("bfloat16"))
        return x.numpy()

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

    def wait(self, a: Any) -> None:
        """Waits until the calls that read an array have ended."""

    def finished(self, result: Any, source: Any) -> Any:
        """Returns a result without axes as a scalar, as NumPy does; for a list or number as Python's own."""
        if result.ndim:
            return result
        if type(source) in (list, tuple, int, float, bool):
            return result.item()
        return result[()]

    @property
    def namespace(self) -> Any:
        return self.np

    def is_traced(self, x: Any) -> bool:
        return False


def _watches(torch: Any) -> Any:
    """Returns the function that tells whether PyTorch must see every call: to compile it, or to derive it forward."""
    from torch.autograd import forward_ad

    return lambda: torch.compiler.is_compiling() or forward_ad._current_level >= 0


class Torch:
    """PyTorch tensors, on the CPU and on GPUs, in PyTorch's current stream."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.kind = torch.Tensor
        stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        from . import _functions

        _functions.torch_watches = _watches(torch)
        _core.know_torch(torch.Tensor, {f: getattr(torch, d) for d, f in FORMATS.items()}, stream)

    def require_strided(self, x: Any, argument: str) -> None:
        if x.layout is not self.torch.strided:
            raise TypeError(
                f"samesum: {argument} is a sparse tensor; pass {argument}.to_dense() or {argument}.values()"
            )

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

    def copy_to(self, out: Any, result: Any) -> None:
        out.copy_(result)

    def wait(self, a: Any) -> None:
        if a.is_cuda:
            self.torch.cuda.current_stream(a.device).synchronize()

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
            or torch._C._functorch.is_functorch_wrapped_tensor(x)
            or (
                torch.autograd.forward_ad._current_level >= 0
                and torch.autograd.forward_ad.unpack_dual(x).tangent is not None
            )
        )


class CuPy:
    """CuPy arrays, in CuPy's current stream."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cp = cupy
        self.kind = cupy.ndarray

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        return x if x.data.ptr % x.dtype.itemsize == 0 else x.copy()

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

    def place(self, a: Any) -> str:
        return f"cuda:{a.device.id}"

    def converted(self, x: Any) -> Any:
        """Returns a tensor of PyTorch on a GPU as an array of the same memory."""
        return self.cp.from_dlpack(x)

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

    def wait(self, a: Any) -> None:
        with a.device:
            self.cp.cuda.get_current_stream().synchronize()

    def finished(self, result: Any, source: Any) -> Any:
        return result

    @property
    def namespace(self) -> Any:
        return self.cp

    def is_traced(self, x: Any) -> bool:
        return False


class _Bits:
    """Exports an array by DLPack with uint16 in place of bfloat16, which NumPy does not read."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.is_bfloat16 = False

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        import ctypes

        capsule = self.x.__dlpack__()  # without a version: a DLManagedTensor of its own
        kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        pointer = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
        # The type's code lies behind the address (8 bytes), the device (8) and the number of axes (4).
        code = ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20)
        if code.value == 4:  # kDLBfloat
            code.value = 1  # kDLUInt
            self.is_bfloat16 = True
        return capsule


class Converted:
    """Arrays of another library, read by NumPy (host) or by CuPy or PyTorch (GPU) without a copy.

    Results become arrays of the other library if its arrays tell their namespace, as the array API standard
    has it; otherwise they are arrays of the library that read.
    """

    name = "dlpack"

    def reader(self, x: Any, argument: str = "x", wide: bool = False) -> tuple[Any, Any]:
        """Returns the library that reads x, and its array of the same memory."""
        if not self._is_on_gpu(x):
            numpy = _library("numpy")
            return numpy, numpy.array(self._on_host(numpy, x, argument), argument, wide)
        for name in ("cupy", "torch"):
            try:
                library = _library(name)
            except ImportError:
                continue
            xp = library.namespace
            if hasattr(x, "__dlpack__"):
                return library, xp.from_dlpack(x)
            return library, xp.asarray(x) if name == "cupy" else xp.as_tensor(x)
        raise TypeError(
            f"samesum: {argument} is in the memory of a GPU, and neither CuPy nor PyTorch is installed to make the "
            "result; install one of them"
        )

    def _on_host(self, numpy: Any, x: Any, argument: str) -> Any:
        try:
            return numpy.np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, AttributeError) as error:
            if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
                return numpy.np.asarray(x)
            bits = _Bits(x)
            try:
                a = numpy.np.from_dlpack(bits)
            except (BufferError, RuntimeError, TypeError, AttributeError):
                a = None
            if a is None or not bits.is_bfloat16:
                raise TypeError(
                    f"samesum: NumPy cannot read {argument}, a {type(x).__name__}, by DLPack ({error}); pass a NumPy "
                    "array"
                ) from error
            return a.view(numpy.dtype("bfloat16"))

    def _is_on_gpu(self, x: Any) -> bool:
        if hasattr(x, "__dlpack_device__"):
            return int(x.__dlpack_device__()[0]) not in (1, 3)  # kDLCPU, kDLCUDAHost
        return hasattr(x, "__cuda_array_interface__")

    def second(self, y: Any) -> Any:
        """Returns a second input as the library reads it; one that it does not read stays as it is."""
        return y

    def returned(self, result: Any, source: Any) -> Any:
        """Returns a result of the reading library as an array of the caller's library, if that is known."""
        if not hasattr(source, "__array_namespace__"):
            return result
        if "numpy" in sys.modules and isinstance(result, sys.modules["numpy"].generic):
            result = sys.modules["numpy"].asarray(result)
        namespace = source.__array_namespace__()
        try:
            return namespace.from_dlpack(result)
        except (BufferError, RuntimeError):  # NumPy exports no bfloat16
            return namespace.asarray(result)

    def is_traced(self, x: Any) -> bool:
        return False


class Jax(Converted):
    """JAX arrays. NumPy reads those in host memory. For all others, and under jit, vmap and grad, XLA calls
    samesum (`samesum.jax`); if it cannot, CuPy or PyTorch reads arrays on a GPU.

    Without jax_enable_x64 JAX has no 64-bit types. A result in fp64 then raises TypeError; integers become
    32-bit ones, or raise OverflowError.
    """

    name = "jax"

    def __init__(self) -> None:
        import jax

        self.jax = jax

    def _on_host(self, numpy: Any, x: Any, argument: str) -> Any:
        return x  # NumPy reads JAX arrays without a copy, bfloat16 included

    def _is_on_gpu(self, x: Any) -> bool:
        return next(iter(x.devices())).platform != "cpu"

    def second(self, y: Any) -> Any:
        if not isinstance(y, (list, tuple, int, float)):
            return y
        numpy = _library("numpy")
        b = numpy.array(y, "y")
        is_narrow = format_of(b.dtype, "y") == "fp64" and not self.jax.config.jax_enable_x64
        return b.astype("float32") if is_narrow else b

    def returned(self, result: Any, source: Any) -> Any:
        if type(result).__module__.partition(".")[0] in ("cupy", "torch"):
            return self.jax.dlpack.from_dlpack(result)
        if not self.jax.config.jax_enable_x64:
            result = self._narrowed(result)
        devices = source.devices()
        return self.jax.device_put(result, next(iter(devices)) if len(devices) == 1 else None)

    def _narrowed(self, result: Any) -> Any:
        name = dtype_name(result.dtype)
        if name == "float64":
            raise TypeError(
                "samesum: the result is fp64, which JAX has only after jax.config.update('jax_enable_x64', "
                "True); enable it, choose another format by dtype= or method=, or pass numpy.asarray(x)"
            )
        if name not in ("int64", "uint64"):
            return result
        narrow = result.astype(name.replace("64", "32"))
        if (narrow != result).any():
            raise OverflowError(
                "samesum: the result is beyond 32 bits, and JAX has 64-bit integers only after "
                "jax.config.update('jax_enable_x64', True); enable it, or pass numpy.asarray(x)"
            )
        return narrow

    def is_traced(self, x: Any) -> bool:
        """Whether XLA calls samesum: under a transformation, or for an array on a GPU."""
        if isinstance(x, self.jax.core.Tracer):
            return True
        if not self._is_on_gpu(x):
            return False
        from . import jax

        return jax.has_handler("gpu")


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
    if "jax" in modules and issubclass(kind, (modules["jax"].Array, modules["jax"].core.Tracer)):
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


def array_of(x: Any, argument: str = "x", wide: bool = False) -> tuple[Any, Any]:
    """Returns the library that reads x, and its array of the same elements. See `NumPy.array` for `wide`."""
    library = library_of(x)
    if not isinstance(library, Converted):
        return library, library.array(x, argument, wide)
    if library.is_traced(x):
        raise TypeError(
            f"samesum: JAX traces {argument}, which has no elements yet; call this outside jit, vmap and grad"
        )
    return library.reader(x, argument, wide)


def second_array(library: Any, a: Any, y: Any) -> Any:
    """Returns the second input as an array of the library of the first one, `a`, and in the same memory."""
    if y is None:
        raise TypeError("samesum: y is None; pass the second input")
    reader, b = array_of(y, "y")
    places = library.place(a), reader.place(b)
    if places[0] != places[1]:
        raise ValueError(f"samesum: y is on {places[1]} and x on {places[0]}; pass inputs on one device")
    if reader is library:
        return b
    format_of(b.dtype, "y")  # raises for what has no numbers
    try:
        return library.converted(b)
    except Exception as error:
        raise TypeError(
            f"samesum: y is a {type(y).__name__}, which {library.name} cannot read ({error}); pass an array of the "
            "library of x"
        ) from error
