"""Arrays of every layout, format and library have the sums of their elements."""

from __future__ import annotations

import array
import collections
import contextlib
import functools
import inspect
import math
import tracemalloc
from typing import Any

import pytest

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402

import samesum  # noqa: E402
from samesum._calls.arguments import Call  # noqa: E402
from samesum._calls.reduction import reduce  # noqa: E402
from samesum._elements.library import library_of  # noqa: E402
from samesum._functions.reductions import FUNCTIONS  # noqa: E402

ml_dtypes = pytest.importorskip("ml_dtypes")
FLOATS = [np.dtype("float16"), np.dtype(ml_dtypes.bfloat16), np.dtype("float32"), np.dtype("float64")]
INTEGERS = [np.dtype(t) for t in ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")]


class OnlyDLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __dlpack__(self, **options: Any) -> Any:
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.a.__dlpack_device__()


class OldDLPack(OnlyDLPack):
    """An array with DLPack as it was before 2023: without a version and without options."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.a.__dlpack__()


class BFloat16(OldDLPack):
    """An array that exports bfloat16 by DLPack, which NumPy does not; `a` holds the bits as uint16."""

    def __dlpack__(self, stream: Any = None) -> Any:
        import ctypes

        capsule = self.a.__dlpack__()
        kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        pointer = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
        code = ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20)
        assert code.value == 1  # unsigned integers
        code.value = 4  # bfloat16
        return capsule


class Namespaced(OnlyDLPack):
    """An array that tells its namespace, as in the array API standard."""

    def __array_namespace__(self) -> Any:
        class Namespace:
            @staticmethod
            def from_dlpack(x: Any) -> Namespaced:
                return Namespaced(np.from_dlpack(x))

            @staticmethod
            def asarray(x: Any) -> Namespaced:
                return Namespaced(np.asarray(x))

        return Namespace


def whole(shape: tuple[int, ...], dtype: Any = "float64") -> Any:
    """Small whole numbers, of which sums are exact in every format; 0 and 1 if the type is bool."""
    a = np.arange(math.prod(shape)).reshape(shape) * 7 % 5
    return (a % 2 if np.dtype(dtype) == bool else a).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_arrays_that_have_only_dlpack_are_read(dtype: Any) -> None:
    x = whole((3, 5), dtype)
    if dtype == ml_dtypes.bfloat16:
        x = np.ascontiguousarray(x)
        wrapped: Any = BFloat16(x.view(np.uint16))
    else:
        wrapped = OnlyDLPack(x)
    assert samesum.sum(wrapped) == x.astype(float).sum()
    assert samesum.sum(wrapped).dtype == dtype
    assert samesum.sum(wrapped, axis=0).tolist() == x.astype(float).sum(0).tolist()


def test_bfloat16_by_dlpack_is_read_without_a_copy_and_released() -> None:
    import gc
    import weakref

    class Owned(np.ndarray):
        pass

    x = np.array([1, 2, 3], ml_dtypes.bfloat16).view(np.uint16).view(Owned)
    library, a = library_of(BFloat16(x)).reader(BFloat16(x))
    assert a.__array_interface__["data"][0] == x.__array_interface__["data"][0]
    assert a.dtype == ml_dtypes.bfloat16
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None and a.astype(float).tolist() == [1, 2, 3]
    del a
    gc.collect()
    assert gone() is None


def test_dlpack_of_old_libraries_is_read() -> None:
    x = whole((4, 6), "float32")
    assert samesum.sum(OldDLPack(x)) == x.sum()
    assert samesum.vecdot(OldDLPack(x), OldDLPack(x)).tolist() == (x * x).sum(1).tolist()


def test_strides_survive_dlpack() -> None:
    x = whole((6, 8), "float32")[::2, ::-3].T
    assert samesum.sum(OnlyDLPack(x), axis=0).tolist() == x.sum(0).tolist()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_results_go_back_to_the_namespace_of_the_array(axis: Any) -> None:
    x = whole((3, 4), "float32")
    result = samesum.sum(Namespaced(x), axis=axis)
    assert isinstance(result, Namespaced)
    assert result.a.tolist() == x.sum(axis).tolist()


def test_results_in_bfloat16_go_back_to_the_namespace() -> None:
    class Array(Namespaced, BFloat16):
        pass

    result = samesum.sum(Array(np.ones(8, ml_dtypes.bfloat16).view(np.uint16)))
    assert isinstance(result, Namespaced) and result.a == 8 and result.a.dtype == ml_dtypes.bfloat16


def test_an_array_that_numpy_cannot_read_by_dlpack_is_a_type_error() -> None:
    class Broken:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("no")

        def __dlpack_device__(self) -> Any:
            return 1, 0

    with pytest.raises(TypeError, match="samesum: NumPy cannot read x, a Broken, by DLPack"):
        samesum.sum(Broken())


def test_an_array_in_the_memory_of_a_gpu_without_a_library_for_it_is_a_type_error() -> None:
    for name in ("cupy", "torch"):
        try:
            __import__(name)
        except ImportError:
            continue
        pytest.skip(f"{name} is installed")

    class OnGpu:
        __cuda_array_interface__: Any = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}

    with pytest.raises(TypeError, match="neither CuPy nor PyTorch is installed"):
        samesum.sum(OnGpu())


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (array.array("d", [1, 2, 3]), 6),
        (array.array("f", [1, 2, 3]), 6),
        (array.array("i", [1, -2, 4]), 3),
        (memoryview(array.array("d", [1, 2, 3])), 6),
        (memoryview(array.array("d", [1, 2, 3, 4]))[::-2], 6),
        (memoryview(bytes(8)).cast("f"), 0),
        (bytearray([1, 255]), 256),
        ([1.0, 2.0, 3.5], 6.5),
        ((1, 2, 3), 6),
        ([[1, 2], [3, 4.5]], 10.5),
        ([], 0),
        ([[], []], 0),
        ([True, False, True], 2),
        ([2**62, 2**62, -(2**62)], 2**62),
        ([np.float32(1), np.float32(2)], 3),
        ([np.ones(2), np.ones(2)], 4),
        (3, 3),
        (2.5, 2.5),
        (True, 1),
        (np.float32(2.5), 2.5),
        (np.int8(-3), -3),
        (range(5), 10),
    ],
    ids=lambda v: type(v).__name__,
)
def test_buffers_lists_and_scalars_have_their_sum(x: Any, expected: float) -> None:
    assert samesum.sum(x) == expected
    assert np.ravel(samesum.sum(x, keepdims=True)).tolist() == [expected]  # not by the short way


def test_a_nested_list_is_reduced_along_its_axes() -> None:
    assert samesum.sum([[1, 2], [3, 4.5]], axis=0).tolist() == [4, 6.5]
    assert samesum.argmax([[1.0, 2.0], [4.0, 3.0]], axis=1).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(3, complex), "complex128; use float16"),
        (np.zeros(3, [("a", "f4"), ("b", "f4")]), "use float16"),
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
        (np.array([3], "m8[s]"), "timedelta64"),
        (np.array(["a", "b"]), "x has texts, not numbers; convert them first"),
        (["a", "b"], "x has texts"),
        ([["1", "2"], [3, 4]], "x has texts"),
        (b"abc", "x has texts"),
        ("abc", "x has texts"),
        (np.array(["a", 1.5], object), "x has texts"),
        (np.array([b"1"]), "x has texts"),
        (np.array(["a"], "T" if np.__version__ >= "2" else "U"), "x has texts"),
        ((i for i in range(3)), "x is a generator; pass a list"),
        (map(float, [1]), "x is a map; pass a list"),
        ({1.0, 2.0}, "x is a set; pass a list"),
        ({1: 2}.values(), "x is a dict_values; pass a list"),
        ([1, None], "not numbers"),
        (object(), "not numbers"),
        (None, "not numbers"),
        ({1: 2}, "x is a dict; pass a list"),
        (np.ones(3, np.longdouble), "use float16"),
        (1j, "complex128; use float16"),
        (np.zeros(3, ml_dtypes.float8_e4m3fn), "float8_e4m3fn; use float16"),
        ([np.ma.masked_array([1.0, 2.0], [0, 1]), [1.0, 2.0]], "masked array"),
        ([[1.0, 2.0], np.ma.masked_array([1.0, 2.0], [0, 1])], "masked array"),
    ],
    ids=lambda v: str(getattr(v, "dtype", type(v).__name__)) if not isinstance(v, str) or v == "abc" else "",
)
def test_what_has_no_numbers_is_a_type_error_that_names_the_remedy(x: Any, message: str) -> None:
    for call in (lambda: samesum.sum(x), lambda: samesum.sum(x, keepdims=True), lambda: samesum.mean(x)):
        with pytest.raises(TypeError, match="samesum: .*" + message):
            call()


def test_a_ragged_list_is_a_value_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="samesum: NumPy cannot read x: "):
        samesum.sum([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="samesum: NumPy cannot read y: "):
        samesum.vecdot(np.ones((2, 2)), [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_every_type_of_numpy_is_summed_exactly(dtype: Any) -> None:
    x = whole((4, 5), dtype)
    for axis in (None, 0, 1, (0, 1)):
        result = samesum.sum(x, axis=axis)
        assert np.asarray(result).astype(float).tolist() == x.astype(float).sum(axis).tolist()
        wide = "uint64" if dtype.kind == "u" else "int64"
        assert result.dtype == (dtype if dtype in FLOATS else wide)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint64"])
def test_bytes_in_the_other_order_are_converted(dtype: str) -> None:
    x = whole((3, 4), dtype)
    swapped = x.astype(x.dtype.newbyteorder())
    assert samesum.sum(swapped) == x.sum()
    assert samesum.max(swapped, axis=1).tolist() == x.max(1).tolist()


def unaligned(a: Any, how: str) -> Any:
    """Returns a copy of an array whose elements are not aligned: a field of records, or memory at an odd address."""
    if how == "record":
        x = np.zeros(a.shape, [("tag", "S1"), ("value", a.dtype)])["value"]
    else:
        raw = np.zeros(a.nbytes + 16, np.uint8)
        start = 1 - raw.ctypes.data % 8 % 2
        x = raw[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    x[...] = a
    assert not x.flags.aligned
    return x


def outcome(call: Any, *arguments: Any) -> Any:
    """Returns the bits of what a call returns, or its error without what names the data."""
    try:
        results = call(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    results = results if isinstance(results, tuple) else (results,)
    return [(np.asarray(r).dtype.str, np.shape(r), np.asarray(r).tobytes()) for r in results]


def partial_of(x: Any, y: Any = None) -> Any:
    partial = samesum.Partial("exact/fp64" if y is None else "dot/exact/fp64")
    partial.add(x) if y is None else partial.add(x, y)
    return partial.finish()


def with_second_input(function: Any) -> Any:
    return (lambda x: function(x, x)) if "y" in inspect.signature(function).parameters else function


READERS = {f"{f.__name__} of a vector": with_second_input(f) for f in FUNCTIONS}
READERS = {name: lambda x, f=f: f(x[:, 0]) for name, f in READERS.items()}
of_vectors = (samesum.dot, samesum.cumulative_sum, samesum.cumulative_prod)
READERS |= {f.__name__: with_second_input(f) for f in FUNCTIONS if f not in of_vectors}
READERS |= {
    "sum over the first axis": lambda x: samesum.sum(x, axis=0),
    "sum in another type": lambda x: samesum.sum(x, dtype="float32"),
    "out": lambda x: samesum.sum(x, axis=0, out=np.zeros_like(x[0]), dtype=x.dtype),
    "Exact": lambda x: samesum.Exact(x).value(),
    "Partial": partial_of,
    "Partial of two inputs": lambda x: partial_of(x, x),
    "estimate": lambda x: samesum.estimate(x)[:3],
    "estimate of two inputs": lambda x: samesum.estimate(x, "exact", x)[:3],
    "compare": lambda x: tuple(row.value for row in samesum.compare(x)),
    "scatter_add": lambda x: samesum.scatter_add(x, [0, 0, 1], x),
    "scatter_add with these keys": lambda x: samesum.scatter_add(np.zeros(9), x.reshape(-1), np.arange(6.0)),
    "bincount": lambda x: samesum.bincount(x[:, 0]),
    "bincount with these weights": lambda x: samesum.bincount([0, 1, 0], x[:, 0]),
    "groupby_sum": lambda x: samesum.groupby_sum(x[:, 0], x),
    "reduce_by_key": lambda x: samesum.reduce_by_key(x[:, 0], x),
    "reduce_by_key of two inputs": lambda x: samesum.reduce_by_key(x[:, 0], x, x, operation="dot"),
}


@pytest.mark.parametrize("how", ["record", "address"])
@pytest.mark.parametrize("name", READERS)
def test_arrays_that_are_not_aligned_have_the_results_of_their_copies(name: str, how: str) -> None:
    read = 0
    for dtype in (t for t in FLOATS + INTEGERS if t.itemsize > 1):
        a = whole((3, 2), dtype)
        expected = outcome(READERS[name], a)
        assert outcome(READERS[name], unaligned(a, how)) == expected, dtype
        read += isinstance(expected, list)
    assert read


@pytest.mark.parametrize("how", ["record", "address"])
@pytest.mark.parametrize("function", [samesum.sum, samesum.var, samesum.argmax, samesum.softmax, samesum.cumsum])
def test_results_are_written_to_memory_that_is_not_aligned(function: Any, how: str) -> None:
    x = whole((3, 4), "float32")
    expected = function(x, axis=1)
    out = unaligned(np.full_like(expected, 9), how)
    assert function(x, axis=1, out=out) is out
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("function", [samesum.sum, samesum.var, samesum.argmax, samesum.softmax, samesum.cumsum])
def test_results_are_written_in_the_byte_order_of_out(function: Any) -> None:
    x = whole((3, 4), "float32")
    expected = function(x, axis=1)
    out = np.full(expected.shape, 9, expected.dtype.newbyteorder())
    assert function(x, axis=1, out=out) is out
    assert out.tolist() == expected.tolist()


def test_an_out_that_is_no_array_is_refused() -> None:
    x = whole((3, 4))
    others: list[Any] = [[0.0] * 3, np.float64(0), array.array("d", [0] * 3), np.ma.zeros(3)]
    try:
        others.append(__import__("pandas").Series(np.zeros(3)))
    except ImportError:
        pass
    for out in others:
        for function in (samesum.sum, samesum.mean, samesum.var):
            with pytest.raises(TypeError, match="samesum: out is a "):
                function(x, axis=1, out=out)


def test_fields_of_an_aligned_structure_are_read() -> None:
    aligned = np.zeros(5, np.dtype([("tag", "u1"), ("value", "f8")], align=True))
    aligned["value"] = [1, 2, 3, 4, 5]
    assert samesum.sum(aligned["value"]) == 15


def test_strides_that_are_no_multiple_of_an_element_are_read_by_a_copy() -> None:
    raw = np.zeros(64, np.uint8)
    x = np.ndarray((4,), "float64", raw, strides=(12,)) if raw.ctypes.data % 8 == 0 else None
    assert x is not None
    x[:] = [1, 2, 3, 4]
    assert samesum.sum(x) == 10
    assert samesum.sum(np.ndarray((2, 2), "float64", raw, strides=(24, 12)), axis=1).tolist() == [3, 7]


def test_a_read_only_array_is_read() -> None:
    x = whole((3, 4))
    x.flags.writeable = False
    assert samesum.sum(x) == x.sum()
    assert samesum.sum(OnlyDLPack(x), axis=0).tolist() == x.sum(0).tolist()


def test_out_that_overlaps_the_input_has_the_result_or_is_refused() -> None:
    for axis in (0, 1):
        x = whole((40, 40), "float32")
        expected = x.sum(axis)
        for out in (x[0], x[:, 0], x[5], x[:, 7], x[3, ::-1]):
            y = x.copy()
            part = np.ndarray(
                out.shape, out.dtype, y, out.__array_interface__["data"][0] - x.ctypes.data, out.strides
            )
            try:
                samesum.sum(y, axis=axis, out=part)
            except ValueError as error:
                assert "out overlaps x; use separate memory" in str(error)
                assert (y == x).all()
                continue
            assert part.tolist() == expected.tolist()


def test_a_read_only_out_is_refused() -> None:
    out = np.zeros(4)
    out.flags.writeable = False
    with pytest.raises(ValueError):
        samesum.sum(whole((3, 4)), axis=0, out=out)
    assert out.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("ndim", range(6))
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_arrays_of_zero_to_five_axes_are_reduced_over_every_axis(ndim: int, dtype: Any) -> None:
    x = whole((2, 3, 1, 4, 2)[:ndim], dtype)
    assert samesum.sum(x) == x.astype(float).sum()
    for axis in range(ndim):
        assert samesum.sum(x, axis=axis).astype(float).tolist() == x.astype(float).sum(axis).tolist()
    assert np.asarray(samesum.sum(x, axis=())).astype(float).tolist() == x.astype(float).tolist()


def test_broadcast_arrays_count_each_element_as_often_as_it_appears() -> None:
    x = np.broadcast_to(whole((3, 1), "float32"), (4, 3, 5))
    for axis in (None, 0, 1, 2, (0, 2), (1, 2)):
        assert np.asarray(samesum.sum(x, axis=axis)).tolist() == x.sum(axis).tolist()
    assert samesum.sum(np.broadcast_to(np.float64(3), (1000,))) == 3000


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_arrays_without_elements_have_the_results_of_nothing(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.zeros(shape, dtype)
    assert samesum.sum(x) == 0
    for axis in range(len(shape)):
        expected = x.astype(float).sum(axis)
        result = samesum.sum(x, axis=axis)
        assert result.shape == expected.shape and result.astype(float).tolist() == expected.tolist()
        assert samesum.max(x, axis=axis).astype(float).tolist() == np.full(expected.shape, -np.inf).tolist()


# --- second inputs ------------------------------------------------------------------------------------------


def tensor(a: Any) -> Any:
    return pytest.importorskip("torch").tensor(np.asarray(a))


def array_of_jax(a: Any) -> Any:
    return pytest.importorskip("jax").numpy.asarray(a)


KINDS = {
    "array": np.asarray, "narrow array": lambda a: np.asarray(a, "float16"), "list": np.ndarray.tolist,
    "tuple": lambda a: tuple(a.tolist()), "objects": lambda a: a.astype(object),
    "integers": lambda a: a.astype("uint8"), "buffer": lambda a: array.array("d", a),
    "memory": lambda a: memoryview(np.array(a)), "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype), "reversed": lambda a: a[::-1].copy()[::-1],
    "unaligned": lambda a: unaligned(a, "address"), "bfloat16": lambda a: a.astype(ml_dtypes.bfloat16),
    "dlpack": lambda a: OnlyDLPack(np.array(a)), "namespace": lambda a: Namespaced(np.array(a)),
    "bfloat16 by dlpack": lambda a: BFloat16(a.astype(ml_dtypes.bfloat16).view("u2")),
    "jax": array_of_jax, "tensor": tensor, "bfloat16 tensor": lambda a: tensor(a).bfloat16(),
    "series": lambda a: pytest.importorskip("pandas").Series(a),
}  # fmt: skip
PAIRED = {
    "vecdot": samesum.vecdot,
    "dot": samesum.dot,
    "Partial": partial_of,
    "estimate": lambda x, y: samesum.estimate(x, "exact", y).value,
    "compare": lambda x, y: samesum.compare(x, y)[0].value,
}


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_a_second_input_of_any_library_is_read(first: str, second: str) -> None:
    a, b = np.array([1.0, 2.0, 3.0], "float32"), np.array([4.0, 0.0, 5.0], "float32")
    types = {"jax": "ArrayImpl", "tensor": "Tensor", "bfloat16 tensor": "Tensor", "namespace": "Namespaced"}
    with pytest.importorskip("jax").enable_x64(True) if first == "jax" else contextlib.nullcontext():
        for call in PAIRED.values():
            result = call(KINDS[first](a), KINDS[second](b))
            assert float(result.a if isinstance(result, Namespaced) else result) == 19
        result = samesum.vecdot(KINDS[first](a), KINDS[second](b), keepdims=True)
    assert type(result).__name__ == types.get(first, "ndarray")


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ((i for i in range(3)), TypeError, "y is a generator; pass a list"),
        (["a", "b", "c"], TypeError, "y has texts"),
        (np.array(["1", "2", "3"]), TypeError, "y has texts"),
        ([1.0, None, 2.0], TypeError, "y has elements that are not numbers"),
        ([1j, 2, 3], TypeError, "y has elements of type complex128"),
        (np.ones(3, "M8[s]"), TypeError, "y has elements of type datetime64"),
        (2.0, (IndexError, ValueError), "y .*0 axes|x has 3 elements and y has 1|y has shape"),
        (np.float64(2), (IndexError, ValueError), "y .*0 axes|x has 3 elements and y has 1|y has shape"),
        ([1.0, 2.0], ValueError, "x has 3 elements.* and y|y has shape"),
        ([1.0], ValueError, "x has 3 elements.* and y|y has shape"),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, str) else "",
)
@pytest.mark.parametrize("first", ["array", "list", "dlpack", "jax", "tensor"])
@pytest.mark.parametrize("name", PAIRED)
def test_a_second_input_that_does_not_fit_is_named(name: str, first: str, y: Any, error: Any, message: str) -> None:
    x = KINDS[first](np.ones(3))
    with pytest.raises(error, match="samesum: .*(" + message + ")"):
        PAIRED[name](x, y)


@pytest.mark.parametrize("first", KINDS)
def test_a_second_input_that_is_missing_is_named(first: str) -> None:
    for function in (samesum.vecdot, samesum.dot):
        with pytest.raises(TypeError, match="samesum: y is None; pass the second input"):
            function(KINDS[first](np.ones(3)), None)


def test_numbers_are_no_vectors() -> None:
    for x, y in ((2.0, 3.0), (np.float32(2), [1.0]), ([1.0], 2)):
        with pytest.raises(ValueError, match="samesum: dot: . has 0 axes; pass a vector"):
            samesum.dot(x, y)
        with pytest.raises(IndexError, match="samesum: axis -1 is out of range for . with 0 axes"):
            samesum.vecdot(x, y)


# --- integers of Python -------------------------------------------------------------------------------------

HELD = {
    "list": lambda x: x, "tuple": tuple, "rows": lambda x: [[v] for v in x], "deque": collections.deque,
    "objects": lambda x: np.array(x, object), "columns of objects": lambda x: np.array([x], object),
    "numbers of NumPy": lambda x: [np.uint64(v) if 2**63 <= v < 2**64 else v for v in x],
}  # fmt: skip


@pytest.mark.parametrize("held", HELD)
@hypothesis.settings(max_examples=40)
@hypothesis.given(
    st.lists(
        st.sampled_from([0, 1, -1, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64, -(2**64)]),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_integers_of_python_are_reduced_exactly_or_refused(held: str, x: list[int]) -> None:
    given = HELD[held](x)
    sums = {"sum": sum(x), "min": min(x), "max": max(x), "argmin": x.index(min(x)), "argmax": x.index(max(x))}
    for name, expected in sums.items():
        function = getattr(samesum, name)
        if -(2**63) <= expected < 2**64:
            try:
                result = function(given)
            except OverflowError:  # all elements are of one type, which does not hold the sum
                one_type = min(x) >= -(2**63) and max(x) < 2**63 or min(x) >= 0 and max(x) < 2**64
                assert name == "sum" and one_type and not -(2**63) <= expected < 2**63
            else:
                assert result == expected and isinstance(result, (int, np.integer))
        else:
            with pytest.raises(OverflowError, match=f"samesum: the {name} of integers is beyond 64 bits"):
                function(given)


def test_a_sum_of_unsigned_and_signed_integers_is_refused_where_no_type_holds_it() -> None:
    for x in ([2**64 - 1, 1], [2**63 - 1, 1], [-(2**63), -1], [2**64 - 1, 2**63, -1]):
        remedy = "dtype='float64'" if min(x) < 0 < max(x) else "method='exact/fp64'"  # objects have no such method
        with pytest.raises(OverflowError, match=f"samesum: the sum of integers is beyond 64 bits; pass {remedy}"):
            samesum.sum(x)
        assert samesum.sum(x, dtype="float64") == float(sum(x))
        if "exact" in remedy:
            assert samesum.sum(x, method="exact/fp64") == float(sum(x))
    with pytest.raises(OverflowError, match="the max of integers is beyond 64 bits"):
        samesum.max([[2**63], [-1]], axis=1)
    assert samesum.sum([[2**63 + 1, -(2**63)], [7, 8]], axis=1).tolist() == [1, 15]
    assert samesum.sum([[2**63 + 1, -(2**63)]], axis=1, keepdims=True).tolist() == [[1]]


def test_integers_of_python_are_rounded_by_methods_that_round() -> None:
    for x in ([2**63, -1, 5], [2**64 - 1, 1], [2**53 + 1, 2]):
        for function in (samesum.norm, functools.partial(samesum.sum, method="tree/plain")):
            assert function(x) == function([float(v) for v in x])
    with pytest.raises(OverflowError, match="samesum: x has integers beyond 64 bits; convert them to floats first"):
        samesum.mean([2**64, 1])


def test_objects_are_read_as_the_numbers_that_they_are() -> None:
    from fractions import Fraction

    def objects(*x: Any) -> Any:
        return np.array(x, object)

    for x, expected in (
        (objects(1, 2, 3), np.int64(6)),
        (objects(True, False, True), np.int64(2)),
        (objects(True, 2), np.int64(3)),
        (objects(2**63, 1), np.uint64(2**63 + 1)),
        (objects(np.int8(3), np.True_), np.int64(4)),
        (objects(1.5, 2), np.float64(3.5)),
        (objects(Fraction(1, 2), True), np.float64(1.5)),
        (objects(), np.float64(0)),
        (objects(np.uint64(2**64 - 1), np.int64(-1)), np.uint64(2**64 - 2)),
    ):
        result = samesum.sum(x)
        assert result == expected and result.dtype == expected.dtype, x
    assert samesum.max(objects(True, False)).dtype == bool
    assert samesum.argmax(objects(1, 5, 2)) == 1
    assert samesum.mean(objects(1, 2)) == 1.5 and samesum.mean(objects(1, 2), dtype="float32").dtype == np.float32
    assert samesum.bincount([0, 1], weights=objects(1, 2)).tolist() == [1, 2]
    assert samesum.Exact(objects(2**70, -(2**70), 1)).value() == 1
    assert samesum.Exact(objects(2**63 + 1, -(2**63))).value() == 1


def test_tables_of_integers_have_sums_of_integers() -> None:
    pandas = pytest.importorskip("pandas")
    for columns, expected in (
        ({"a": [1, 2], "b": [True, False]}, [3, 1]),
        ({"a": [1, 2], "b": pandas.array([3, 4], dtype="Int64")}, [3, 7]),
        ({"a": [True, False], "b": pandas.array([True, True], dtype="boolean")}, [1, 2]),
        ({"a": np.array([2**63 + 1, 5], "uint64"), "b": [-(2**63), 6]}, None),
    ):
        table = pandas.DataFrame(columns)
        if expected is not None:
            sums = samesum.sum(table, axis=0)
            assert sums.tolist() == expected and sums.dtype == np.int64
        else:
            assert samesum.sum(table).tolist() == [2**63 + 6, 6 - 2**63]
            assert samesum.sum(table, axis=(0, 1)) == 12 and samesum.sum(table, axis=1).tolist() == [1, 11]
    mixed = pandas.DataFrame({"a": [1.5, 2], "b": [True, False]})
    assert samesum.sum(mixed, axis=0).tolist() == [3.5, 1]
    assert samesum.sum(pandas.Series([1, 2], dtype="Int64")) == 3
    with pytest.raises(TypeError, match="x has texts"):
        samesum.sum(pandas.Series(["1", "2"]))


# --- properties --------------------------------------------------------------------------------------------


@st.composite
def layouts(draw: Any, dtypes: Any = FLOATS + INTEGERS, least: int = 0) -> Any:
    """Arrays of whole numbers in any layout that slicing, transposing, broadcasting and windows can make."""
    dtype = draw(st.sampled_from(dtypes))
    ndim = draw(st.integers(least, 5))
    shape = tuple(draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 5)) for _ in range(ndim))
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in shape]
    order = draw(st.permutations(range(ndim)))
    base = np.zeros([n * abs(step) for n, step in zip(shape, steps)], np.int64)
    seed = draw(st.integers(0, 1000))
    lowest, highest = (0, 2) if dtype == bool else (0, 5) if dtype.kind == "u" else (-4, 5)
    base = np.random.default_rng(seed).integers(lowest, highest, base.shape).astype(dtype)
    x = base[tuple(slice(None, None, step) for step in steps)]
    assert x.shape == shape
    x = x.transpose(order)
    for axis in range(x.ndim):
        if draw(st.integers(0, 9)) == 0 and x.shape[axis] > 0:  # a stride of 0
            x = np.broadcast_to(x.take([0], axis), x.shape)
    if 0 < x.ndim < 5 and x.shape[-1] > 1 and draw(st.integers(0, 9)) == 0:  # windows that overlap
        x = np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1)
    return x


@st.composite
def calls(draw: Any, dtypes: Any = FLOATS + INTEGERS) -> Any:
    x = draw(layouts(dtypes))
    kind = draw(st.sampled_from(["none", "one", "some"]))
    axis: Any = None
    if kind == "one" and x.ndim:
        axis = draw(st.integers(-x.ndim, x.ndim - 1))
    elif kind == "some":
        chosen = draw(st.lists(st.sampled_from(range(x.ndim)), unique=True)) if x.ndim else []
        axis = tuple(a - draw(st.sampled_from([0, x.ndim])) for a in chosen)
    return x, axis, draw(st.booleans())


def as_numpy(operation: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """What NumPy returns; indices over several axes count their elements in row-major order of the axes."""
    a = x.astype(np.int64)
    if not operation.startswith("arg"):
        return getattr(np, operation)(a, axis=axis, keepdims=keepdims)
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else tuple(sorted(np.atleast_1d(np.array(axis, int)) % max(x.ndim, 1)))
    )
    kept = [d for d in range(x.ndim) if d not in axes]
    rows = a.transpose((*kept, *axes)).reshape(
        [a.shape[d] for d in kept] + [-1 if a.size else math.prod(a.shape[d] for d in axes)]
    )
    found = getattr(np, operation)(rows, axis=-1)
    return found.reshape([1 if d in axes else a.shape[d] for d in range(x.ndim)]) if keepdims else found


def rounded(expected: Any, dtype: Any) -> Any:
    """Exact results, rounded once to the format of the elements; integers stay as they are."""
    return np.asarray(expected).astype(dtype if dtype in FLOATS else "int64")


@hypothesis.settings(max_examples=120, deadline=None)
@hypothesis.given(calls(), st.sampled_from(["sum", "max", "min", "argmax", "argmin"]))
def test_reductions_of_whole_numbers_equal_those_of_numpy(call: Any, operation: str) -> None:
    x, axis, keepdims = call
    axes = range(x.ndim) if axis is None else [a % x.ndim for a in np.atleast_1d(np.array(axis, int))]
    if operation != "sum":
        hypothesis.assume(all(x.shape[a] > 0 for a in axes) and x.ndim > 0)
    expected = as_numpy(operation, x, axis, keepdims)
    result = reduce(Call(operation, x, axis, keepdims=keepdims))
    assert np.shape(result) == np.shape(expected)
    assert (
        np.asarray(result).tolist() == rounded(expected, x.dtype if operation == "sum" else "int64").tolist()
    )


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(calls())
def test_norms_and_dot_products_of_whole_numbers_equal_those_of_numpy(call: Any) -> None:
    x, axis, keepdims = call
    a = x.astype(np.float64)
    dots = reduce(Call("dot", x, axis, keepdims=keepdims, y=x))
    expected = np.sum(a * a, axis=axis, keepdims=keepdims)
    assert np.shape(dots) == np.shape(expected)
    assert np.asarray(dots).tolist() == rounded(expected, x.dtype).tolist()
    if x.dtype.kind in "iub":
        return
    ones = np.where(a == 0, 0, 4).astype(x.dtype)  # 16 of them have norm 16
    tiles = np.lib.stride_tricks.as_strided(ones, (*ones.shape, 4, 4), (*ones.strides, 0, 0))
    norms = reduce(Call("norm", tiles, (-1, -2), keepdims=keepdims))
    result = norms[..., 0, 0] if keepdims else norms
    assert np.asarray(result).astype(float).tolist() == np.where(a == 0, 0, 16).tolist()


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(calls(FLOATS), st.booleans())
def test_results_are_written_to_out_in_any_layout(call: Any, transposed: bool) -> None:
    x, axis, keepdims = call
    expected = np.asarray(x.astype(float).sum(axis, keepdims=keepdims))
    out = np.full(expected.shape[::-1], 9, x.dtype).T if transposed else np.full(expected.shape, 9, x.dtype)
    assert reduce(Call("sum", x, axis, out=out, keepdims=keepdims)) is out
    assert out.tolist() == rounded(expected, x.dtype).tolist()


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(layouts(FLOATS[:3], 1), st.data())
def test_softmax_of_any_layout_is_that_of_its_rows(x: Any, data: Any) -> None:
    axis = data.draw(st.integers(0, x.ndim - 1))
    result = samesum.softmax(x, axis=axis)
    assert result.shape == x.shape and result.dtype == x.dtype
    rows = np.moveaxis(x, axis, -1)
    for index in np.ndindex(rows.shape[:-1]):
        one = samesum.softmax(rows[index].copy())
        assert np.moveaxis(result, axis, -1)[index].tobytes() == one.tobytes()


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(calls([t for t in FLOATS + INTEGERS if t != ml_dtypes.bfloat16]))
def test_dlpack_carries_every_layout(call: Any) -> None:
    x, axis, keepdims = call
    x = np.asarray(x if x.flags.writeable else x.copy())
    direct = np.asarray(samesum.sum(x, axis=axis, keepdims=keepdims))
    assert np.asarray(samesum.sum(OldDLPack(x), axis=axis, keepdims=keepdims)).tolist() == direct.tolist()


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(layouts(FLOATS, 1), st.data())
def test_every_layout_has_the_bits_of_its_contiguous_copy(x: Any, data: Any) -> None:
    """For a method whose bits depend on the order of the elements, which is row-major in the reduced axes."""
    y = (x.astype(np.float64) * 0.1).astype(x.dtype)
    y = y if data.draw(st.booleans()) else np.asfortranarray(y)[::-1]
    axes = tuple(data.draw(st.lists(st.sampled_from(range(x.ndim)), unique=True, min_size=1)))
    kept = [d for d in range(y.ndim) if d not in axes]
    rows = np.ascontiguousarray(y.transpose((*kept, *sorted(axes))))
    rows = rows.reshape([y.shape[d] for d in kept] + [math.prod(y.shape[d] for d in axes)])
    for method in ("serial/plain", "tree/plain", "pairwise/kahan"):
        expected = samesum.sum(rows, axis=-1, method=method)
        assert samesum.sum(y, axis=axes, method=method).tobytes() == expected.tobytes()


def _peak(call) -> int:
    """Returns the most bytes that NumPy holds during a call."""
    call()  # finds methods
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_integers_are_reduced_without_a_copy(dtype, axis):
    x = (np.arange(500 * 400).reshape(500, 400) % 7).astype(dtype)
    for a in (x, x.T, x[::-1]):
        for function in (samesum.sum, samesum.max, samesum.argmin):
            for where in (None, a > 0):
                assert _peak(lambda: function(a, axis=axis, where=where)) < x.nbytes / 4 + 10_000
    if x.itemsize < 8:
        assert _peak(lambda: samesum.mean(x, axis=axis)) < x.nbytes / 4 + 10_000


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_missing_elements_are_skipped_without_a_copy(axis):
    x = np.ones((300, 400), np.float32)
    x[::7, ::3] = np.nan
    for function in (samesum.nansum, samesum.nanmean, samesum.nanmax, samesum.nanargmin):
        assert _peak(lambda: function(x, axis=axis)) < x.nbytes / 4


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64"])
def test_integers_have_the_results_of_python_in_any_order_of_axes(dtype):
    random = np.random.default_rng(3)
    x = random.integers(0, 2 if dtype == "bool" else 100, (5, 40, 33)).astype(dtype)
    if dtype.startswith("int"):
        x -= 50
    for a in (x, x.transpose(2, 0, 1), x[:, ::-1, ::2], np.broadcast_to(x[:1], x.shape)):
        for axis in (None, 0, 1, 2, (0, 2), (2, 1)):
            for where in (None, random.random(a.shape) < 0.5):
                lists = np.where(True if where is None else where, a.astype(object), 0)
                found = samesum.sum(a, axis=axis, where=where)
                assert found.dtype == np.sum(a).dtype and (found == lists.sum(axis)).all()
                if where is not None and not where.any(axis).all():
                    continue
                mean = samesum.mean(a, axis=axis, where=where)
                assert (mean == np.mean(a, axis=axis, where=True if where is None else where)).all()
                low = np.where(True if where is None else where, a.astype(object), -(10**6))
                assert (samesum.max(a, axis=axis, where=where) == low.max(axis)).all()
                if not isinstance(axis, tuple):
                    assert (samesum.argmax(a, axis=axis, where=where) == low.argmax(axis)).all()
