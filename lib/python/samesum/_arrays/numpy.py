"""NumPy arrays, and how lists, buffers and objects become such arrays."""

from __future__ import annotations

import sys
from array import array
from typing import Any, Sequence

from .. import _core
from .._elements.carried import refuse_carried
from .._elements.formats import dtype_name, texts_error
from .._elements.in_floats import not_held
from .._elements.library import Library, View
from .._frames.kinds import kind_of
from .._frames.reading import without_nulls


def _is_table(x: Any) -> bool:
    """Whether x has columns of their own types, as those of pandas."""
    return hasattr(getattr(x, "dtypes", None), "__iter__")


def _may_have_integers(x: Any) -> bool:
    """Whether x, which NumPy has read as float64, may hold integers: a list, or a table with columns of integers."""
    if _is_table(x):
        return any(getattr(dtype, "kind", "O") in "iub" for dtype in x.dtypes)
    return not hasattr(x, "__array__") and not isinstance(x, (memoryview, array))


class NumPy(Library):
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
        self.np = self.namespace = numpy
        self.kind = numpy.ndarray
        formats = {"fp16": numpy.float16, "fp32": numpy.float32, "fp64": numpy.float64}
        integers = {name: numpy.dtype(name).type for name in _core.integer_types}
        _core.know_numpy(numpy.ndarray, numpy.empty, formats, integers)

    def array(self, x: Any, argument: str = "x", wide: bool = False) -> Any:
        """Returns an array of numbers. With `wide`, numbers whose integers no type of 64 bits holds stay objects."""
        np = self.np
        if self.is_masked(x):
            if argument == "weights":
                remedy = "weights.filled(0), with which elements that have no weight take no part"
            else:
                remedy = f"{argument}.compressed(), or {argument}.filled(0) to keep its shape"
            raise TypeError(f"samesum: {argument} is a masked array; pass {remedy}")
        if kind_of(x):
            return self.array(without_nulls(x, argument), argument, wide)
        if type(x) is not np.ndarray:
            refuse_carried(x, argument)
        try:
            a = np.asanyarray(x)
        except ValueError as error:  # rows of different lengths
            raise ValueError(f"samesum: NumPy cannot read {argument}: {error}") from error
        if isinstance(a, np.ma.MaskedArray):
            raise TypeError(
                f"samesum: {argument} is a {type(x).__name__} that NumPy reads as a masked array; pass "
                f"numpy.asanyarray({argument}), whose mask samesum reads"
            )
        a = np.asarray(a)
        may_round = a is not x and a.dtype == np.float64 and _may_have_integers(x)
        if may_round and np.abs(a).max(initial=0, where=a == a) >= 2**53:
            # NumPy and pandas make floats of integers if int64 and uint64 meet, or floats are among them.
            objects = np.asarray(x.astype(object) if _is_table(x) else x, dtype=object)
            a = objects if self.are_integers(objects) else self._in_floats(objects, argument, wide)
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

    def are_integers(self, a: Any) -> bool:
        return a.size > 0 and all(isinstance(v, (int, self.np.integer, self.np.bool_)) for v in a.flat)

    def _from_objects(self, a: Any, argument: str, wide: bool) -> Any:
        if self.are_integers(a):
            return self._from_integers(a, argument, wide)
        if all(hasattr(type(v), "__float__") or hasattr(type(v), "__index__") for v in a.flat):
            return self._in_floats(a, argument, wide)
        if any(isinstance(v, (str, bytes)) for v in a.flat):
            raise texts_error(argument)
        if a.ndim == 0 and hasattr(a[()], "__iter__"):
            remedy = "a list of its elements"
            if hasattr(a[()], "toarray"):
                remedy = f"{argument}.toarray(), or {argument}.data for the elements that are stored"
            raise TypeError(f"samesum: {argument} is a {type(a[()]).__name__}; pass {remedy}")
        remedy = "booleans, such as x > 0" if argument == "where" else "numbers, with NaN for what is missing"
        raise TypeError(f"samesum: {argument} has elements that are not numbers; pass {remedy}")

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
        return self._in_floats(a, argument, wide)

    def _in_floats(self, a: Any, argument: str, wide: bool) -> Any:
        """Returns objects as fp64. If that cannot hold an integer, raises OverflowError or, if `wide`, returns them."""
        floats = a.astype(self.np.float64)
        if any(hasattr(type(v), "__index__") and int(v) != x for v, x in zip(a.flat, floats.ravel().tolist())):
            if not wide:
                raise not_held(argument)
            return a
        return floats

    def narrowed(self, a: Any) -> Any:
        """Returns Python's integers in the type int64 or uint64; None if neither holds them."""
        for dtype in (self.np.int64, self.np.uint64):
            limits = self.np.iinfo(dtype)
            if not a.size or limits.min <= a.min() <= a.max() <= limits.max:
                return a.astype(dtype)
        return None

    def view(self, a: Any) -> View:
        return View(a.__array_interface__["data"][0], a.shape, self.strides(a), -1, 0)

    def place(self, a: Any) -> str:
        return "cpu"

    def converted(self, x: Any) -> Any:
        """Returns a tensor of PyTorch in host memory as an array of the same memory."""
        if dtype_name(x.dtype) == "bfloat16":
            return self.converted(x.view(sys.modules["torch"].int16)).view(self.dtype("bfloat16"))
        return x.numpy()

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        return self.np.empty(shape, self.dtype(dtype))

    def finished(self, result: Any, source: Any) -> Any:
        """Returns a result without axes as a scalar, as NumPy does; for a list or number as Python's own."""
        if result.ndim:
            return result
        if type(source) in (list, tuple, int, float, bool):
            return result.item()
        return result[()]
