"""The reductions: the bits of the library, NumPy's conventions of axes, and errors."""

import inspect
import math
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samesum
from samesum import _core
from samesum._calls.arguments import Call
from samesum._elements.formats import DTYPES, FORMATS
from samesum._elements.library import library

FLOATS = ["float16", "float32", "float64"]
NUMPY = {f: np.dtype(d) for f, d in DTYPES.items() if d in FLOATS}
FUNCTIONS = {
    "sum": samesum.sum, "mean": samesum.mean, "prod": samesum.prod, "min": samesum.min, "max": samesum.max,
    "argmin": samesum.argmin, "argmax": samesum.argmax, "norm": samesum.norm, "logsumexp": samesum.logsumexp,
    "softmax": samesum.softmax, "log_softmax": samesum.log_softmax, "cumsum": samesum.cumsum,
    "cumprod": samesum.cumprod,
    "cummax": samesum.cummax, "cummin": samesum.cummin, "cumlogsumexp": samesum.cumlogsumexp,
}  # fmt: skip


def bits(x):
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and (bits(a.copy()) == bits(b.copy())).all()


def data(format, n, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) * 2.0 ** rng.integers(-6, 6, n)).astype(NUMPY[format])


@pytest.mark.parametrize("format", NUMPY)
def test_every_method_has_the_bits_of_the_library_for_a_vector(format):
    x, y = data(format, 5000), data(format, 5000, 1)
    checked = 0
    for m in samesum.methods("*@cpu"):
        if not m.accepts(format) or m.format not in NUMPY or m.promise == "none" or m.takes_keys or m.takes_window:
            continue
        count = 5000 if m.has_result_per_element else m.results
        dtype = np.int64 if m.returns_index else x.dtype if m.keeps_format else NUMPY[m.format]
        expected = np.empty(count, dtype)
        layout = (1, x.size, 1, x.size, 1)
        call = Call(m.operation, x, method=m, threads=1, y=y, library=library("numpy"), format=format, layout=layout)
        call.result = expected
        _core.run(call)
        if m.operation == "dot":
            result = samesum.dot(x, y, method=m.name)
        elif m.operation == "moments":
            result, expected = samesum.var(x, method=m), expected[1:]
        elif m.operation in FUNCTIONS:
            result = FUNCTIONS[m.operation](x, method=m.name.partition("@")[0])
        else:
            continue
        assert same_bits(result, expected if m.has_result_per_element else expected[0]), m.name
        checked += 1
    assert checked > 20


def test_a_long_vector_is_summed_on_the_grid_that_all_its_elements_need():
    x = np.zeros(2**25 + 1, np.float16)  # more than the portions in which other methods sum
    x[0], x[-1] = 1, 1024
    assert samesum.sum(x, method="fixed_point") == 1025


@pytest.mark.parametrize("method", ["exact/fp64", "tree/plain/fp64", "pairwise/plain/fp64", "serial/kahan/fp64"])
def test_a_sum_has_the_bits_that_the_command_prints(method, tmp_path):
    command = shutil.which("samesum")
    if command is None:
        pytest.skip("the command samesum is not installed")
    x = data("fp64", 100_000)
    np.save(tmp_path / "x.npy", x)
    arguments = [command, "sum", "--json", "--method", method, str(tmp_path / "x.npy")]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert f"{int(bits(samesum.sum(x, method=method))):016x}" in printed.lower()


@st.composite
def arrays_and_axes(draw):
    """Draws a whole-number array of any memory layout, axes to reduce, and whether they stay."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=5)))
    dtype = draw(st.sampled_from([*FLOATS, "int32", "uint8", "int64", "bool"]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    a = rng.integers(0 if dtype[0] in "ub" else -9, 10, [2 * s for s in shape]).astype(dtype)
    cuts = [[slice(0, 2 * s, 2), slice(s, 2 * s), slice(s - 1, None, -1) if s else slice(0, 0)] for s in shape]
    a = a[tuple(draw(st.sampled_from(c)) for c in cuts)]
    a = a.transpose(draw(st.permutations(range(a.ndim))))
    some = st.sets(st.integers(0, a.ndim - 1)).map(tuple) if a.ndim else st.just(())
    axis = draw(st.none() | some | some.map(lambda axes: axes[0] - a.ndim if axes else None))
    return a, axis, draw(st.booleans())


@settings(max_examples=120, deadline=None)
@given(arrays_and_axes(), st.sampled_from([None, "tree/plain"]))
def test_axes_and_keepdims_are_as_in_numpy_for_whole_numbers(case, method):
    a, axis, keepdims = case
    is_float = a.dtype.kind == "f"
    result = samesum.sum(a, axis=axis, keepdims=keepdims, method=method if is_float else None)
    expected = np.sum(a, axis=axis, keepdims=keepdims)
    assert np.shape(result) == np.shape(expected)
    assert (np.asarray(result) == expected).all()
    if a.size == 0:
        return
    for function, numpys in ((samesum.max, np.max), (samesum.min, np.min)):
        assert (np.asarray(function(a, axis, keepdims=keepdims)) == numpys(a, axis=axis, keepdims=keepdims)).all()
    wide = a.astype("f8")
    norm = np.sqrt(np.sum(wide**2, axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(samesum.norm(a, axis, keepdims=keepdims, dtype="float64"), norm)
    variance = np.var(wide, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(samesum.var(a, axis, keepdims=keepdims, dtype="fp64"), variance, atol=1e-12)
    if axis is None or isinstance(axis, int):
        assert (np.asarray(samesum.argmax(a, axis)) == np.argmax(a, axis)).all()
        assert (np.asarray(samesum.argmin(a, axis)) == np.argmin(a, axis)).all()


@settings(max_examples=60, deadline=None)
@given(arrays_and_axes())
def test_softmax_and_logsumexp_agree_with_numpy(case):
    a, axis, _ = case
    if a.size == 0:
        return
    wide = a.astype("f8")
    softmax = np.exp(wide) / np.sum(np.exp(wide), axis=axis, keepdims=True)
    logsumexp = np.log(np.sum(np.exp(wide), axis=axis))
    for dtype, relative, absolute in (("float32", 1e-5, 1e-5), ("float64", 1e-13, 1e-13)):
        result = samesum.softmax(a, axis, dtype=dtype)
        assert result.shape == a.shape
        np.testing.assert_allclose(result, softmax, rtol=relative)
        log = samesum.log_softmax(a, axis, dtype=dtype)
        np.testing.assert_allclose(log, np.log(softmax), rtol=10 * relative, atol=absolute)
        np.testing.assert_allclose(samesum.logsumexp(a, axis, dtype=dtype), logsumexp, rtol=relative, atol=absolute)


def test_softmax_of_python_numbers_is_computed_in_fp64():
    np.testing.assert_allclose(samesum.softmax([1.0, 2.0]), [0.2689414213699951, 0.7310585786300049], rtol=4e-16)
    assert samesum.softmax(np.array([1.0, 2.0])).dtype == np.float64
    x = np.array([0.1, 1.0, -3.0], "f4")
    assert samesum.softmax(x, method="tree/plain/fp64").dtype == np.float32
    with pytest.raises(TypeError, match="does not accept elements of format fp64; convert them with dtype='float32'"):
        samesum.softmax([1.0, 2.0], method="exact/fp32")


def test_softmax_of_infinities_and_nan_has_the_values_of_scipy():
    inf, nan = np.inf, np.nan
    for dtype in ("float32", "float64"):
        rows = np.array([[-inf, -inf], [inf, 1], [nan, 0], [-inf, 2], [inf, -inf], [-0.0, 0.0]], dtype)
        expected = [[nan, nan], [nan, nan], [nan, nan], [0, 1], [nan, nan], [0.5, 0.5]]
        np.testing.assert_array_equal(samesum.softmax(rows), expected)
        assert samesum.softmax(np.zeros((2, 0), dtype)).shape == (2, 0)
        np.testing.assert_array_equal(samesum.logsumexp(rows, 1)[:4], [-inf, inf, nan, 2])


def test_the_bits_of_a_row_do_not_depend_on_memory_layout():
    x = data("fp64", 24 * 700).reshape(24, 700)
    for method in ("tree/plain", "pairwise/plain", "tree/kahan", "exact"):
        rows = samesum.sum(x, 1, method=method)
        assert same_bits(rows, samesum.sum(np.asfortranarray(x), 1, method=method)), method
        assert same_bits(rows, samesum.sum(np.ascontiguousarray(x.T), 0, method=method)), method
        assert same_bits(rows[::-1], samesum.sum(x[::-1], 1, method=method)), method
        assert same_bits(rows, [samesum.sum(row, method=method) for row in x]), method
        assert same_bits(samesum.sum(x, method=method), samesum.sum(x.reshape(-1), method=method)), method


def test_threads_do_not_change_bits():
    x = data("fp32", 3_000_000)
    for method in ("exact", "tree/plain", "pairwise/plain"):
        assert len({float(samesum.sum(x, method=method, threads=t)) for t in (0, 1, 2, 5)}) == 1


def test_long_calls_in_chunks_have_the_bits_of_short_ones():
    x = data("fp16", 1 << 20)
    long = np.tile(x, 33)  # more than two chunks
    for method in ("tree/plain/fp32", "exact/fp64"):
        whole = np.empty(1, NUMPY[method[-4:]])
        samesum.sum(long.reshape(1, -1), 1, method=method, out=whole)
        assert whole[0] == samesum.sum(long, method=method)
    rows = long.reshape(33, -1)
    assert same_bits(samesum.sum(rows, 1), np.full(33, samesum.sum(x)))
    assert same_bits(samesum.argmax(rows, 1), np.full(33, samesum.argmax(x)))
    columns = long.reshape(66, -1).astype("f4")
    assert same_bits(samesum.sum(columns, 0)[:99], samesum.sum(columns[:, :99].copy(), 0))
    assert same_bits(samesum.softmax(columns, 1)[60:], samesum.softmax(columns[60:], 1))
    assert same_bits(samesum.var(columns, 1)[60:], samesum.var(columns[60:], 1))


def test_vecdot_broadcasts_and_dot_takes_vectors():
    x, y = data("fp64", 60).reshape(3, 4, 5), data("fp64", 5, 1)
    result = samesum.vecdot(x, y)
    assert result.shape == (3, 4)
    assert result[1, 2] == samesum.dot(x[1, 2], y)
    np.testing.assert_allclose(samesum.vecdot(x, x, axis=0), np.einsum("ijk,ijk->jk", x, x))
    with pytest.raises(ValueError, match="use vecdot"):
        samesum.dot(x, y)
    with pytest.raises(ValueError, match="one length"):
        samesum.dot(y, y[1:])


@settings(max_examples=200)
@given(st.data())
@pytest.mark.skipif(not hasattr(np, "vecdot"), reason="this NumPy has no vecdot")
def test_vecdot_has_the_axes_of_numpys(data):
    shapes = st.lists(st.integers(1, 2), max_size=4) | st.lists(st.sampled_from([0, 3]), max_size=3)
    x, y = (np.arange(math.prod(s), dtype="f4").reshape(s) + 1 for s in (data.draw(shapes), data.draw(shapes)))
    options = dict(axis=data.draw(st.integers(-4, 3)), keepdims=data.draw(st.booleans()))
    try:
        expected = np.vecdot(x, y, **options)
    except ValueError as error:  # AxisError is one
        with pytest.raises(IndexError if isinstance(error, IndexError) else (ValueError, IndexError)):
            samesum.vecdot(x, y, **options)
    else:
        for a in (x, x.tolist() if x.size else x, np.asfortranarray(x)):
            result = samesum.vecdot(a, y, dtype="float32", **options)
            assert np.shape(result) == expected.shape and np.array_equal(result, expected)


def test_the_reduced_axes_of_two_inputs_are_not_broadcast():
    for x, y, axis in (
        ((1, 3), (4, 3), 0), ((1, 3), (4, 3), -2), ((3,), (2, 3), None), ((1,), (3,), -1),
        ((2, 1, 3), (2, 4, 3), (1, 2)),
    ):  # fmt: skip
        for a, b in ((np.ones(x), np.ones(y)), (np.ones(y), np.ones(x)), (np.ones(x).tolist(), np.ones(y).tolist())):
            with pytest.raises(ValueError, match="samesum: x has .* and y has .*; pass inputs of one length"):
                samesum.vecdot(a, b, axis=axis)
    with pytest.raises(IndexError, match="axis 1 is out of range for y with 1 axes"):
        samesum.vecdot(np.ones((2, 2)), np.ones(2), axis=1)
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\) and y \(5, 4, 3\); axes that are not reduced must"):
        samesum.vecdot(np.ones((2, 3)), np.ones((5, 4, 3)))


def test_several_axes_count_in_each_input():
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(6.0).reshape(2, 3)
    assert samesum.vecdot(x, y, axis=(0, 1)).tolist() == np.einsum("ijk,ij->k", x, y).tolist()
    assert samesum.vecdot(y, x, axis=(0, 1), keepdims=True).tolist() == [[np.einsum("ijk,ij->k", x, y).tolist()]]
    assert samesum.vecdot(x, x[0], axis=(-1, -2)).tolist() == np.einsum("ijk,jk->i", x, x[0]).tolist()
    assert samesum.vecdot(x, x, axis=None) == np.vdot(x, x)


@pytest.mark.parametrize("held", [np.array, np.ndarray.tolist, lambda x: tuple(map(tuple, x.tolist()))])
def test_lists_have_the_axes_of_arrays(held):
    a, v = held(np.array([[1.0, 2.0], [3.0, 4.0]])), np.array([1.0, 10.0]).tolist()
    for x, y in ((a, v), (v, a), (a, a)):
        with pytest.raises(ValueError, match="samesum: dot: . has 2 axes; use vecdot"):
            samesum.dot(x, y)
    with pytest.raises(ValueError, match="dot: x has 2 elements and y 1; pass vectors of one length"):
        samesum.dot(v, [1.0])
    for function in (samesum.cumulative_sum, samesum.cumulative_prod):
        for initial in (False, True):
            with pytest.raises(ValueError, match="samesum: x has 2 axes; pass axis="):
                function(a, include_initial=initial)
        assert np.shape(function(a, axis=1)) == (2, 2)
    assert samesum.vecdot(a, v).tolist() == [21, 43]


def test_a_narrow_input_is_converted_to_the_wider_one():
    x, y = np.float32([1, 2]), np.float64([1e300, 1])
    assert samesum.dot(x, y) == 1e300
    assert samesum.dot(x, y).dtype == np.float64


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool"])
def test_integers_are_summed_exactly(dtype):
    rng = np.random.default_rng(1)
    if dtype == "bool":
        a = rng.integers(0, 2, (7, 9)) > 0
    else:
        a = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (7, 9), dtype=dtype, endpoint=True)
    if a.itemsize == 8:
        a = a // 128
    for axis in (None, 0, 1, ()):
        expected = np.sum(a.astype(object), axis=axis)
        assert (np.asarray(samesum.sum(a, axis)).astype(object) == expected).all()
    assert samesum.sum(a).dtype == ("uint64" if dtype.startswith("uint") else "int64")


def test_a_sum_of_integers_beyond_64_bits_is_an_overflow_error():
    most = np.iinfo("int64").max
    assert samesum.sum(np.array([most, -most, most])) == most
    for a in (np.array([most, 1]), np.array([-most, -2]), np.array([np.iinfo("uint64").max, 1], "uint64")):
        with pytest.raises(OverflowError, match="method='exact/fp64'"):
            samesum.sum(a)
    assert samesum.sum(np.array([most, 1]), dtype="float64") == 2.0**63
    assert samesum.sum(np.array([most, most, -most, -most])) == 0
    assert not samesum.integer_overflow()


def test_out_receives_the_result_in_any_layout():
    x = data("fp64", 60).reshape(3, 4, 5)
    expected = samesum.sum(x, 1)
    for out in (np.empty((3, 5)), np.empty((5, 3)).T, np.empty((6, 10))[::2, ::-2]):
        assert samesum.sum(x, 1, out=out) is out
        assert same_bits(out, expected)
    variances = np.empty((3, 5))
    assert samesum.var(x, 1, out=variances) is variances
    assert same_bits(variances, samesum.var(x, 1))
    soft = np.empty((3, 4, 5), "f4")
    assert samesum.softmax(x, 1, dtype="float32", out=soft) is soft
    assert same_bits(soft, samesum.softmax(x, 1, dtype="float32"))
    with pytest.raises(ValueError, match=r"out has shape \(5, 3\)"):
        samesum.sum(x, 1, out=np.empty((5, 3)))
    with pytest.raises(TypeError, match="float32"):
        samesum.sum(x, 1, out=np.empty((3, 5), "f4"))
    with pytest.raises(TypeError, match="out"):
        samesum.sum(x, 1, out=[0])


def test_dtype_converts_elements_first_and_the_method_gives_the_result_its_format():
    x = np.float32([16777216, 1, 1])
    assert samesum.sum(x).dtype == np.float32
    assert samesum.sum(x, dtype="float64") == 16777218
    assert samesum.sum(x, dtype=np.float64).dtype == np.float64
    assert samesum.sum(x, method="exact/fp64") == 16777218
    assert samesum.sum(x, method="exact/fp64").dtype == np.float64
    assert samesum.sum(np.float64([0.1]), dtype="fp32") == np.float32(0.1)


def test_special_values_are_those_of_the_library():
    assert samesum.sum(np.array([])) == 0 and not np.signbit(samesum.sum(np.array([])))
    assert np.signbit(samesum.sum(np.array([-0.0])))
    assert math.isnan(samesum.mean(np.array([])))
    assert samesum.prod(np.array([])) == 1
    assert samesum.max(np.array([])) == -math.inf
    assert samesum.argmax(np.array([])) == -1
    assert samesum.logsumexp(np.array([], "f4")) == -math.inf
    assert samesum.sum(np.zeros((0, 3)), 0).tolist() == [0, 0, 0]
    assert samesum.sum(np.zeros((0, 3)), 1).shape == (0,)
    assert math.isnan(samesum.sum(np.array([math.inf, -math.inf])))


def test_the_variance_divides_by_n_minus_correction():
    x = data("fp64", 1000)
    for k in (0, 1, 2):
        np.testing.assert_allclose(samesum.var(x, correction=k), np.var(x, ddof=k), rtol=1e-13)
        assert samesum.std(x, ddof=k) == np.sqrt(samesum.var(x, correction=k))
    np.testing.assert_allclose(samesum.var(x, correction=0.5, method="tree"), np.var(x, ddof=0.5), rtol=1e-13)
    with pytest.raises(ValueError, match="two names"):
        samesum.var(x, correction=1, ddof=0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: samesum.sum(x, 2), IndexError, "axis 2 is out of range for an array with 2 axes"),
        (lambda x: samesum.sum(x, -3), IndexError, "out of range"),
        (lambda x: samesum.sum(x, (0, -2)), ValueError, "twice"),
        (lambda x: samesum.sum(x, "0"), TypeError, "use an integer"),
        (lambda x: samesum.sum(x, 1.5), TypeError, "use an integer"),
        (lambda x: samesum.sum(x, method="dot/exact"), ValueError, "computes dot, not sum"),
        (lambda x: samesum.sum(x, method="trie/plain"), ValueError, "trie"),
        (lambda x: samesum.sum(x, method=3), TypeError, "method is 3"),
        (lambda x: samesum.sum(x, threads=-1), ValueError, "threads is -1"),
        (lambda x: samesum.sum(x, threads="2"), TypeError, "threads is '2'"),
        (lambda x: samesum.sum(x, method=""), ValueError, "method"),
        (lambda x: samesum.sum([1, 2], method="bogus"), ValueError, "bogus"),
        (lambda x: samesum.sum(x, dtype="foo"), TypeError, "dtype is foo"),
        (lambda x: samesum.sum(x, 0, keepdims=np.array([1, 2])), ValueError, "ambiguous"),
        (lambda x: samesum.vecdot(x, x[:, :1]), ValueError, "only the other axes are broadcast"),
        (lambda x: samesum.sum(x, dtype="complex64"), TypeError, "complex64"),
        (lambda x: samesum.sum(x + 0j), TypeError, "complex128"),
        (lambda x: samesum.sum(["a"]), TypeError, "x has texts"),
        (lambda x: samesum.sum(None), TypeError, "not numbers"),
        (lambda x: samesum.max(np.arange(0)), ValueError, "at least one"),
        (lambda x: samesum.dot(x[0], x), ValueError, "vecdot"),
        (lambda x: samesum.softmax(np.ma.masked_array(x)), TypeError, r"softmax takes no masked array; pass x\.filled"),
        (lambda x: samesum.bound("tree/plain/fp8", 3), ValueError, "fp8"),
        (lambda x: samesum.choose(10), ValueError, "relative_error"),
        (lambda x: samesum.choose(10, relative_error=1e-3, promise="always"), ValueError, "always"),
        (lambda x: samesum.compare(x, operation="softmax"), (TypeError, ValueError), "softmax"),
    ],
)
def test_an_error_names_the_argument_and_the_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((2, 3)))


def test_an_estimate_has_the_value_of_the_method_and_a_bound_that_holds():
    x = data("fp32", 10_000)
    for name in ("tree/plain/fp32", "pairwise/plain/fp32", "tree/kahan/fp32", "exact/fp32", "mean/tree/plain/fp32"):
        operation, function = ("mean/", samesum.mean) if "mean" in name else ("", samesum.sum)
        e = samesum.estimate(x, name)
        assert e.value == float(function(x, method=name))
        exact = samesum.estimate(x, operation + "exact/fp64").value
        assert abs(e.value - exact) <= e.bound * (1 + 1e-6) < 1
    assert samesum.estimate(x, "tree/plain", x).value == float(samesum.dot(x, x, method="tree/plain"))


@pytest.mark.parametrize("call, error, words", [
    (lambda: samesum.bound("tree/plain/fp32", -1), ValueError, "n is -1"),
    (lambda: samesum.bound("tree/plain/fp32", 2.5), TypeError, "n is 2.5; it must be a whole number"),
    (lambda: samesum.choose(2**64, ulps=1), ValueError, "below 2"),
    (lambda: samesum.choose(10, ulps=1, promise=3), TypeError, "promise is 3; it must be a text"),
    (lambda: samesum.choose(10, ulps=1, promise="most"), ValueError, "promise is 'most'; use none, run_to_run"),
    (lambda: samesum.choose(10, ulps="1"), TypeError, "ulps is '1'; it must be a number"),
    (lambda: samesum.compare(np.ones(3), np.ones(4)), ValueError, "x has 3 elements and y has 4"),
])
def test_a_bad_argument_of_the_study_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["n", "input", "operation", "promise", "backend", "relative_error", "ulps",
                                  "probability", "condition", "magnitudes"])  # fmt: skip
def test_the_message_on_an_argument_of_choose_has_its_type_and_no_address(name):
    arguments = {"n": 10, "ulps": None if name == "relative_error" else 1, name: object()}
    with pytest.raises(TypeError, match=f"^samesum: {name} is of type object; ") as caught:
        samesum.choose(**arguments)
    assert "0x" not in str(caught.value)


@pytest.mark.parametrize("arguments", [{"x": object()}, {"x": [object()]}, {"x": np.array([object()])}, {"y": object()},
                                       {"operation": object()}, {"pattern": object()}])  # fmt: skip
def test_messages_of_compare_have_no_address(arguments):
    with pytest.raises(TypeError, match="^samesum: ") as caught:
        samesum.compare(**{"x": [1.0], **arguments})
    assert "0x" not in str(caught.value)


def test_the_common_type_of_the_two_16_bit_formats_is_float32():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, y = np.array([1.5, 2.0], ml_dtypes.bfloat16), np.array([2.0, 0.25], np.float16)
    result = samesum.vecdot(x, y)
    assert result == 3.5 and result.dtype == np.float32


def test_a_bound_grows_with_the_number_of_elements_and_is_refused_without_magnitudes():
    few, many = (samesum.bound("tree/plain/fp32", n, magnitudes=1.0) for n in (1000, 10**9))
    assert 0 < few < many < 1e-4
    assert samesum.bound("tree/plain/fp32", 1000, magnitudes=math.inf) == math.inf
    with pytest.raises(ValueError, match=r"magnitudes is missing.* pass the sum of \|x\|"):
        samesum.bound("tree/plain/fp32", 1000)
    assert samesum.bound("moments/tree/fp64", 1000, (0.5, 1.0), index=1, magnitudes=10.0) < 1e-10


def test_the_chosen_method_keeps_its_promise_and_tolerance():
    c = samesum.choose(10**6, relative_error=1e-10, condition=100)
    assert c.bound <= 1e-10 and c.method.promise == "everywhere"
    assert samesum.choose(10**6, ulps=0.5, promise="order_free").method.accumulator == "exact"
    assert any("bound" in other.reason or "promise" in other.reason for other in c.others)
    name, error, others = repr(c).split("\n")
    assert name == f"{c.method.name}: {c.reason}" and f"{c.ulps:.3g} ulps" in error
    assert others == f"others: {len(c.others)} methods"
    with pytest.raises(ValueError, match="exact"):
        samesum.choose(10**6, relative_error=1e-30)


def test_a_comparison_prints_as_text_and_html():
    table = samesum.compare([1e16, 1.0, 1.0, -1e16])
    assert len(table) > 10
    assert {row.value for row in table if "/exact/" in row.method} == {2.0}
    assert "sum/tree/kahan/fp64@cpu" in repr(table)
    assert table._repr_html_().count("<tr>") == len(table) + 1
    assert all(row.error <= row.bound * (1 + 1e-9) for row in table)
    halves = samesum.compare(np.float16([1e4, 3e4, -1e4, 6e4]), pattern="*/plain/fp16@cpu")
    assert all(math.isinf(row.bound) and math.isinf(row.error) for row in halves)


def test_a_comparison_converts_to_pandas():
    pandas = pytest.importorskip("pandas")
    table = samesum.compare([1.0, 2.0])
    assert isinstance(table.to_pandas(), pandas.DataFrame)


def test_square_roots_are_rounded_correctly():
    for dtype in FLOATS:
        x = np.abs(data("fp64", 5000)).astype(dtype)
        y = x.copy()
        _core.square_root(FORMATS[dtype], y.ctypes.data, y.size)
        assert same_bits(y, np.sqrt(x))


def test_methods_are_listed_by_pattern():
    assert all(m.operation == "dot" for m in samesum.methods("dot/*@cpu"))
    (m,) = samesum.methods("sum/tree/kahan/fp32@cpu")
    assert (m.order, m.accumulator, m.format, m.backend, m.promise) == ("tree", "kahan", "fp32", "cpu", "everywhere")
    assert m.height(1 << 20) == 46 and m.accepts("fp64")
    assert samesum.sum(np.float32([1, 2]), method=m) == 3


def test_methods_are_listed_by_operation_and_by_part_of_a_name():
    names = {m.name for m in samesum.methods()}
    assert {m.name for m in samesum.methods("sum")} == {n for n in names if n.startswith("sum/")}
    assert {m.name for m in samesum.methods("kahan")} == {n for n in names if "/kahan/" in n}
    assert [m.name for m in samesum.methods("sum/prefix/kahan/fp32@cpu")] == ["sum/prefix/kahan/fp32@cpu"]
    assert {m.operation for m in samesum.methods("sum/exact/fp32")} == {"sum"}
    assert {m.name for m in samesum.methods("tree/kahan")} == {n for n in names if "/tree/kahan/" in n}
    assert samesum.methods("*@nowhere") == []
    with pytest.raises(ValueError, match="no method 'khan': .*did you mean 'kahan'"):
        samesum.methods("khan")
    assert {row.method for row in samesum.compare([1.0, 2.0], pattern="kahan")} <= names


def test_integers_are_rounded_only_by_methods_that_round():
    x = np.array([2**53, 1, 1])
    for method in (None, "exact", "sum/exact"):
        assert samesum.sum(x, method=method) == 2**53 + 2 and samesum.sum(x, method=method).dtype == np.int64
    assert samesum.sum(x, method="serial/plain") == 2.0**53
    assert samesum.sum(x, method="exact/fp64").dtype == np.float64


def test_types_of_elements_have_numpys_names_too():
    assert samesum.sum(np.float32([0.5]), dtype="f8").dtype == np.float64
    assert samesum.sum(np.float32([0.5]), dtype="double").dtype == np.float64
    assert samesum.sum(np.float32([0.5]), threads=np.int64(2), out=np.empty((), "f4")) == 0.5


def test_a_list_gives_numbers_of_python():
    assert type(samesum.sum([0.1] * 10)) is float
    assert type(samesum.sum([1, 2])) is int
    assert type(samesum.sum([1, 2.5])) is float
    assert type(samesum.argmax([1.0, 2.0])) is int
    assert samesum.sum([[1.0, 2.0], [3.0, 4.0]], 0).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_short_way_has_the_bits_of_the_long_one(name):
    if name == "bfloat16":
        name = pytest.importorskip("ml_dtypes").bfloat16
    x = data("fp32", 999).astype(name)
    for function in (samesum.sum, samesum.mean, samesum.prod, samesum.min, samesum.max, samesum.norm):
        for _ in range(2):  # the first call takes the long way
            assert same_bits(function(x), function(x, axis=0))


def test_a_grid_rounds_each_term():
    x = np.array([[0.75, 0.75, -0.25], [3.5, 2.5, 0.25]])
    options = dict(method="fixed_point", grid=0)
    assert samesum.sum(x, **options) == 8 and samesum.sum(x, axis=1, **options).tolist() == [2, 6]
    assert samesum.mean(x, axis=1, **options).tolist() == [2 / 3, 2]
    assert samesum.vecdot(x, [2.0, 2.0, 2.0], **options).tolist() == [4, 12]
    assert samesum.dot(x[0], x[0], **options) == 2
    assert samesum.sum([1, 2], **options) == 3
    out = np.zeros(2)
    assert samesum.sum(x, axis=1, out=out, **options) is out and out.tolist() == [2, 6]
    # Sums of parts on one grid add up to the sum of all.
    x = np.random.default_rng(4).standard_normal(10_000)
    options["grid"] = -40
    assert samesum.sum(x, **options) == sum(samesum.sum(part, **options) for part in np.split(x, 10))


def test_a_grid_is_for_fixed_point_and_large_enough():
    for function in (
        lambda x, **options: samesum.sum(x, **options),
        samesum.mean,
        lambda x, **o: samesum.dot(x, x, **o),
    ):
        with pytest.raises(OverflowError, match="give a larger grid"):
            function([1e300, 1.0], method="fixed_point", grid=0)
        with pytest.raises(ValueError, match="grid is only for"):
            function([1.0], grid=0)
        with pytest.raises(ValueError, match="grid is"):
            function([1.0], method="fixed_point", grid=10**9)
        with pytest.raises(TypeError, match="grid is 0.5"):
            function([1.0], method="fixed_point", grid=0.5)
    with pytest.raises(ValueError, match="grid is only for"):
        samesum.sum([1, 2], grid=0)
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="grid does not go with"):
        samesum.sum(torch.ones(2, requires_grad=True), method="fixed_point", grid=0)


@pytest.mark.parametrize(
    "operation",
    ["sum", "mean", "norm", "prod", "max", "min", "logsumexp", "sum_of_magnitudes", "squared_norm"],
)
def test_every_operation_of_one_number_is_compared_by_its_own_methods(operation):
    rows = samesum.compare([1.0, 2.0], operation=operation)
    assert len(rows) >= 1 and all(row.method.startswith(f"{operation}/") for row in rows)
    has_truth = any(m.name == f"{operation}/exact/fp64@cpu" for m in samesum.methods())
    assert all((row.error is not None) == has_truth for row in rows)


@pytest.mark.parametrize("operation", ["summ", "var", "cumsum", "scatter_add", "rolling_sum", "softmax"])
def test_what_is_no_operation_to_compare_is_refused_with_those_that_are(operation):
    with pytest.raises(ValueError, match=f"compare: operation is '{operation}'; use one of sum, mean, .*norm"):
        samesum.compare([1.0], operation=operation)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert samesum.__version__ == version("samesum")


# --- one rule for all functions --------------------------------------------------------------------------------


def parameters_of_functions():
    functions = {name: getattr(samesum, name) for name in samesum.__all__}
    return {name: inspect.signature(f).parameters for name, f in functions.items() if inspect.isfunction(f)}


WITH_AXES = [name for name, parameters in parameters_of_functions().items() if "keepdims" in parameters]


def test_every_reduction_and_scan_takes_the_names_of_pytorch():
    assert len(WITH_AXES) > 20 and "average" in WITH_AXES
    for name, parameters in parameters_of_functions().items():
        is_scan_or_softmax = "cum" in name or "softmax" in name
        assert ("keepdim" in parameters) == (name in WITH_AXES), name
        assert ("dim" in parameters) == (name in WITH_AXES or is_scan_or_softmax), name


@pytest.mark.parametrize("name", WITH_AXES)
def test_the_names_of_pytorch_mean_axis_and_keepdims(name):
    torch = pytest.importorskip("torch")
    function, x = getattr(samesum, name), torch.tensor([[1.0, 2.0, 4.0], [8.0, 0.5, 3.0]])
    inputs = [x, x] if name == "vecdot" else [x]
    for axis in (0, 1):
        result = function(*inputs, dim=axis, keepdim=True)
        assert torch.equal(result, function(*inputs, axis=axis, keepdims=True)) and result.ndim == 2
    if name == "average":
        weights = torch.tensor([3.0, 1.0])
        mean, total = function(x, weights=weights, dim=0, returned=True)
        assert torch.equal(mean, function(x, weights=weights, axis=0)) and total.tolist() == [4] * 3
    with pytest.raises(TypeError, match="dim and keepdim are for PyTorch's tensors"):
        function(*[a.numpy() for a in inputs], dim=0)
    with pytest.raises(ValueError, match="two names of one argument"):
        function(*inputs, axis=0, dim=1)


def test_products_of_integers_are_those_of_fp64_everywhere():
    x, floats = np.array([[3, -2], [5, 7]]), np.array([[3.0, -2.0], [5.0, 7.0]])
    for integers in (x, x.astype(np.int8), x.tolist(), x.astype(object)):
        for axis in (None, 0):
            result = samesum.prod(integers, axis)
            assert result.dtype == np.float64 if axis == 0 else result == -210
            assert np.array_equal(result, samesum.prod(floats, axis))
    assert samesum.prod([True, True]) == 1 and samesum.nanprod([2, 3]) == samesum.cumprod([2, 3])[1] == 6
    assert samesum.reduce_by_key([0, 0], [2, 3], operation="prod")[1].tolist() == [6]
    assert samesum.estimate([2, 3], "prod/tree").value == 6
    assert {row.value for row in samesum.compare([2, 3], operation="prod")} == {6}
    large = [2**53 + 1, 1]  # by a method that rounds
    assert samesum.prod(large) == samesum.prod(large, dtype="float64") == 2.0**53


@pytest.mark.parametrize("function", ["sum", "max"])
def test_the_remedy_for_integers_beyond_64_bits_rounds_once(function):
    large, beyond = [2**62 + 1] * 4, [2**64, 1, 2**64 + 4096]
    if function == "sum":
        with pytest.raises(OverflowError, match="pass method='exact/fp64', which rounds the exact sum once"):
            samesum.sum(large)
        assert samesum.sum(large, method="exact/fp64") == float(sum(large))
        with pytest.raises(
            OverflowError, match=r"rounded integers, or call samesum.Exact\(x\).value\(\), which rounds once"
        ):
            samesum.sum(beyond)
        assert samesum.Exact(beyond).value() == float(sum(beyond))
        groups = samesum.groupby([0] * 4)
        with pytest.raises(OverflowError, match="pass method='exact/fp64'"):
            groups.sum(large)
        assert groups.sum(large, method="exact/fp64")[0] == float(sum(large))
    else:
        with pytest.raises(
            OverflowError, match="max of integers is beyond 64 bits; pass dtype='float64' for a rounded max"
        ):
            samesum.max(beyond)
    assert getattr(samesum, function)(beyond, dtype="float64") == getattr(samesum, function)(np.array(beyond, float))


def test_a_type_rounds_each_integer_and_an_exact_method_the_sum():
    x = [2**53 + 1, 2**53 + 1, 2]
    assert samesum.sum(x, dtype="float64") == samesum.sum(np.array(x, float))
    assert samesum.sum(x, method="exact/fp64") == float(sum(x)) != samesum.sum(x, dtype="float64")
