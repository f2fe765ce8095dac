"""Arrays of libraries that samesum does not write to: NumPy, CuPy or PyTorch read them without a copy."""

from __future__ import annotations

import sys
from typing import Any

from .._elements import traced
from .._elements.carried import refuse_carried
from .._elements.formats import dtype_name, format_of
from .._elements.library import Library, library


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


class Converted(Library):
    """Arrays of another library, read by NumPy (host) or by CuPy or PyTorch (GPU) without a copy.

    Results become arrays of the other library if its arrays tell their namespace, as the array API standard
    has it; otherwise they are arrays of the library that read.
    """

    name = "dlpack"

    def reader(self, x: Any, argument: str = "x", wide: bool = False) -> tuple[Any, Any]:
        refuse_carried(x, argument)
        if not self._is_on_gpu(x):
            numpy = library("numpy")
            return numpy, numpy.array(self._on_host(numpy, x, argument), argument, wide)
        for name in ("cupy", "torch"):
            try:
                reader = library(name)
            except ImportError:
                continue
            xp = reader.namespace
            if hasattr(x, "__dlpack__"):
                return reader, xp.from_dlpack(x)
            return reader, xp.asarray(x) if name == "cupy" else xp.as_tensor(x)
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
        numpy = library("numpy")
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
        return traced.modules["jax"]().has_handler("gpu")

    def refuse_traced(self, function: str, x: Any, argument: str, other: str = "") -> None:
        if not isinstance(x, self.jax.core.Tracer) and self.is_traced(x):
            raise NotImplementedError(
                f"samesum: {function} takes no arrays of JAX on a GPU, as {argument} is; pass numpy.asarray("
                f"{argument}), or cupy.from_dlpack({argument}), which stays there"
            )
        super().refuse_traced(function, x, argument, other)
