"""JAX arrays: the bits of NumPy arrays, under jit, vmap and grad too."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import pytest

jax = pytest.importorskip("jax")
np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
hypothesis = pytest.importorskip("hypothesis")
import jax.numpy as jnp  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import samesum  # noqa: E402
import samesum.jax  # noqa: E402
from samesum import _core  # noqa: E402
from samesum._calls.arguments import Call  # noqa: E402
from samesum._calls.reduction import reduce  # noqa: E402
from samesum._elements.library import library_of  # noqa: E402

DTYPES = {"fp16": "float16", "bf16": ml_dtypes.bfloat16, "fp32": "float32", "fp64": "float64"}
METHODS = [
    m for m in _core.methods()
    if m.backend == "cpu" and m.promise != "none" and not m.takes_keys and not m.takes_window
]

needs_handler = pytest.mark.skipif(
    not samesum.jax.has_handler("cpu"), reason="samesum was built without JAX, so XLA cannot call it"
)


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    """Creates arrays in host memory, also where JAX has a GPU; test_gpu.py has the tests of that."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def bits(x: Any) -> tuple[Any, ...]:
    a = np.asarray(x)
    return a.dtype, a.shape, a.tobytes()


def data(format: str, shape: tuple[int, ...], seed: int = 1) -> Any:
    """Normal numbers of many magnitudes, subnormal ones among them."""
    g = np.random.default_rng(seed)
    spread = 6 if format == "fp16" else 30
    a = (g.standard_normal(shape) * 2.0 ** g.integers(-spread, spread // 3, shape)).astype(DTYPES[format])
    if a.ndim and a.shape[-1]:
        a[..., -1] = np.finfo(np.float32).smallest_subnormal * 5 if format == "fp32" else a[..., -1]
    return a


@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize(("axis", "compiled"), [(-1, False), pytest.param(1, True, marks=needs_handler)])
def test_every_method_has_the_bits_of_numpy_arrays(x64: None, format: str, axis: int, compiled: bool) -> None:
    inputs = [data(format, (3, 5, 700), seed) for seed in (1, 2)]
    methods = [m for m in METHODS if m.accepts(format)]
    assert len(methods) > 80
    if compiled:  # compiling takes longest, so each method takes half of its formats, or its only one

        def takes_turn(k: int, m: Any) -> bool:
            accepted = [f for f in DTYPES if m.accepts(f)]
            return len(accepted) == 1 or (k + accepted.index(format)) % 2 == 0

        methods = [m for k, m in enumerate(METHODS) if m.accepts(format) and takes_turn(k, m)]

    def all_of(x: Any, y: Any) -> list[Any]:
        return [reduce(Call(m.operation, x, axis, method=m, y=y if m.inputs > 1 else None, ddof=1)) for m in methods]

    arrays = [jnp.asarray(x) for x in inputs]
    assert [bits(a) for a in arrays] == [bits(x) for x in inputs]
    results = (jax.jit(all_of) if compiled else all_of)(*arrays)
    for m, result, expected in zip(methods, results, all_of(*inputs), strict=True):
        assert isinstance(result, jax.Array)
        assert bits(result) == bits(expected), m.name


@needs_handler
@pytest.mark.parametrize("format", DTYPES)
def test_every_function_has_the_bits_of_numpy_arrays_under_jit(x64: None, format: str) -> None:
    inputs = [data(format, (4, 30, 7), seed) for seed in (1, 2)]

    def all_of(x: Any, y: Any) -> dict[str, Any]:
        results = {"dot": samesum.dot(x[0, :, 0], y[0, :, 0]), "vecdot": samesum.vecdot(x, y, axis=1)}
        for name in sorted({*samesum.jax.__all__} - {"dot", "vecdot"}):
            for axis in (0, 1, -1, None, (0, 2), (2, 1)) if format == "fp32" else (1, (2, 1)):
                results[f"{name} {axis}"] = getattr(samesum, name)(x, axis=axis)
        return results

    results = jax.jit(all_of)(*map(jnp.asarray, inputs))
    for name, expected in all_of(*inputs).items():
        assert bits(results[name]) == bits(expected), name


def jitted(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    run = jax.jit(lambda *arrays: function(*arrays, **options))
    return lambda *arrays: run(*map(jnp.asarray, arrays))


@needs_handler
@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(st.data())
def test_axes_and_keepdims_are_those_of_numpy_under_jit(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=0, max_size=4)))
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) * 7 % 5
    axis: Any = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    if data.draw(st.booleans()):
        axis = tuple(data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))) if shape else ()
    keepdims = data.draw(st.booleans())
    name = "sum" if axis == () else data.draw(st.sampled_from(["sum", "max", "var"]))
    result = jitted(getattr(samesum, name), axis=axis, keepdims=keepdims)(x)
    expected = getattr(x.astype(float), name)(axis=axis, keepdims=keepdims).astype(np.float32)
    assert result.shape == np.shape(expected) and np.allclose(result, expected, rtol=1e-6), name


@needs_handler
def test_vmap_has_the_bits_of_a_loop() -> None:
    x, y = jnp.asarray(data("fp32", (6, 4, 50))), jnp.asarray(data("fp32", (6, 4, 50), 2))
    for axis in (0, 2):
        for name in ("sum", "std", "argmax", "norm", "softmax", "prod"):
            call = lambda a: getattr(samesum, name)(a, axis=-1)  # noqa: E731
            rows = jnp.moveaxis(x, axis, 0)
            expected = np.stack([np.asarray(call(row)) for row in rows])
            assert bits(jax.vmap(call, in_axes=axis)(x)) == bits(expected), name
            if axis == 0:
                assert bits(jax.jit(jax.vmap(jax.vmap(call)))(rows)) == bits(expected), name
    one = jax.vmap(samesum.vecdot, in_axes=(0, None))(x, y[0])
    assert bits(one) == bits(samesum.vecdot(np.asarray(x), np.asarray(y[0])))
    assert bits(jax.vmap(samesum.vecdot, in_axes=(None, 0))(x[0], y)) == bits(
        samesum.vecdot(np.asarray(x[0]), np.asarray(y))
    )


@needs_handler
def test_a_compiled_function_calls_samesum_and_does_not_sum_itself() -> None:
    text = jax.jit(lambda x: samesum.sum(x, axis=0)).lower(jnp.ones((3, 4))).as_text()
    assert "samesum_reduce" in text and 'method = "sum/exact/fp32"' in text
    assert "stablehlo.reduce" not in text
    assert "samesum_reduce" in jax.jit(jax.grad(lambda x: samesum.logsumexp(x))).lower(jnp.ones(3)).as_text()


@needs_handler
def test_a_named_backend_stays_in_a_compiled_function() -> None:
    text = jax.jit(lambda x: samesum.sum(x, method="tree/plain@cpu")).lower(jnp.ones(3)).as_text()
    assert 'method = "sum/tree/plain/fp32@cpu"' in text


# --- gradients ---------------------------------------------------------------------------------------------

GRADIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (samesum.sum, jnp.sum),
    "mean": (samesum.mean, jnp.mean),
    "var": (samesum.var, jnp.var),
    "std": (samesum.std, jnp.std),
    "prod": (samesum.prod, jnp.prod),
    "min": (samesum.min, jnp.min),
    "max": (samesum.max, jnp.max),
    "norm": (samesum.norm, lambda x, axis: jnp.sqrt((x * x).sum(axis))),
    "logsumexp": (samesum.logsumexp, jax.scipy.special.logsumexp),
    "softmax": (samesum.softmax, jax.nn.softmax),
    "log_softmax": (samesum.log_softmax, jax.nn.log_softmax),
}


@needs_handler
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("axis", [1, (0, 2)])
def test_gradients_are_those_of_jax(name: str, axis: Any) -> None:
    ours, theirs = GRADIENTS[name]
    g = np.random.default_rng(3)
    x = jnp.asarray(g.standard_normal((3, 4, 5)), jnp.float32)
    weights = jnp.asarray(
        g.standard_normal(jax.eval_shape(lambda x: theirs(x, axis=axis), x).shape), jnp.float32
    )
    both = [jax.grad(lambda x, f=f: (weights * f(x, axis=axis)).sum()) for f in (ours, theirs)]
    found, expected = jax.jit(lambda x: [gradient(x) for gradient in both])(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, expected, rtol=3e-5, atol=1e-6)


@needs_handler
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_differences(x64: None, name: str) -> None:
    from jax.test_util import check_grads

    ours, _ = GRADIENTS[name]
    x = jnp.asarray(np.random.default_rng(4).standard_normal((2, 5)), "float64")
    check_grads(jax.jit(lambda x: ours(x, axis=1)), (x,), order=2, modes=["rev"], atol=1e-5, rtol=1e-5)


@needs_handler
def test_gradients_of_dot_products_go_to_both_inputs(x64: None) -> None:
    from jax.test_util import check_grads

    g = np.random.default_rng(5)
    x, y = jnp.asarray(g.standard_normal((3, 4))), jnp.asarray(g.standard_normal(4))
    check_grads(lambda x, y: samesum.vecdot(x, y), (x, y), order=2, modes=["rev"])  # y is broadcast
    assert jax.grad(samesum.dot, 1)(x[0], y).tolist() == x[0].tolist()


@needs_handler
def test_gradients_at_special_points() -> None:
    def grad(function: Any) -> Any:
        return jax.jit(jax.grad(function))  # compiled as a whole, not operation by operation

    assert grad(samesum.prod)(jnp.array([1.0, 2.0, 0.0, 4.0])).tolist() == [0, 0, 8, 0]
    assert grad(samesum.prod)(jnp.array([1.0, 0.0, 0.0, 4.0])).tolist() == [0, 0, 0, 0]
    second = jax.jacrev(grad(samesum.prod))(jnp.array([3.0, 0.0, 0.0]))
    assert second.tolist() == [[0, 0, 0], [0, 0, 3], [0, 3, 0]]
    assert grad(samesum.max)(jnp.array([1.0, 3.0, 3.0])).tolist() == [0, 0.5, 0.5]
    assert grad(samesum.norm)(jnp.zeros(3)).tolist() == [0, 0, 0]
    inf = jnp.inf
    rows = [inf, 1, 2], [1, inf, -inf], [inf, inf, inf], [-inf, -inf, -inf], [-inf, 1, -inf], [jnp.nan, inf, 1]
    for axis in (0, 1, None):
        functions = samesum.logsumexp, jax.nn.logsumexp
        both = jax.jit(lambda x, axis=axis: [grad(lambda x, f=f: f(x, axis=axis).sum())(x) for f in functions])
        for row in rows:
            np.testing.assert_allclose(*both(jnp.array([row, row[::-1]])), err_msg=str((row, axis)))
    assert grad(samesum.sum)(jnp.zeros((0, 3))).shape == (0, 3)
    assert grad(samesum.sum)(jnp.float32(3)).tolist() == 1
    assert grad(samesum.sum)(jnp.ones(4, jnp.bfloat16)).dtype == jnp.bfloat16
    assert grad(lambda x: x[samesum.argmax(x)])(jnp.array([1.0, 3.0])).tolist() == [0, 1]
    assert grad(lambda x: samesum.var(x, correction=1))(jnp.array([1.0, 3.0])).tolist() == [-2, 2]


@needs_handler
def test_the_gradient_of_a_method_in_another_format_has_the_format_of_the_elements(x64: None) -> None:
    x = jnp.asarray([1.0, 2.0], jnp.float32)
    gradient = jax.grad(lambda x: samesum.sum(x, method="exact/fp64"))(x)
    assert gradient.dtype == jnp.float32 and gradient.tolist() == [1, 1]


# --- formats and errors ------------------------------------------------------------------------------------


def test_results_of_arrays_in_host_memory_are_jax_arrays_on_their_device() -> None:
    x = jnp.ones((3, 4), jnp.bfloat16)
    for result in (samesum.sum(x), samesum.sum(x, axis=0), samesum.sum(x, method="tree/plain/fp32")):
        assert isinstance(result, jax.Array) and result.devices() == x.devices() and not result.weak_type
    assert samesum.sum(x).dtype == jnp.bfloat16 and samesum.sum(x) == 12


def test_jax_arrays_are_read_without_a_copy() -> None:
    x = jnp.ones(1000)
    _, a = library_of(x).reader(x)
    assert a.__array_interface__["data"][0] == x.unsafe_buffer_pointer()


def test_fp64_needs_x64() -> None:
    x = jnp.ones(3)
    with jax.enable_x64(False):
        with pytest.raises(TypeError, match="jax_enable_x64"):
            samesum.sum(x, method="exact/fp64")
        with pytest.raises(TypeError, match="jax_enable_x64"):
            samesum.mean(jnp.arange(3))
    with jax.enable_x64(True):
        result = samesum.sum(jnp.array([1e16, 1, 1]), method="exact/fp64")
        assert result.dtype == jnp.float64 and result == 1e16 + 2


@needs_handler
def test_fp64_needs_x64_under_jit() -> None:
    x = jnp.ones(3)
    with jax.enable_x64(False):
        for call in (
            lambda x: samesum.sum(x, method="exact/fp64"),
            lambda x: samesum.sum(x, dtype="float64"),
            lambda x: samesum.mean(x.astype(int)),
            lambda x: samesum.sum(x.astype(int)),
            lambda x: samesum.vecdot(x, np.ones(3)),
        ):
            with pytest.raises(TypeError, match="samesum: .*jax_enable_x64"):
                jax.jit(call)(x)


def test_integers_are_summed_exactly() -> None:
    x = np.array([2**31 - 1, 2**31 - 1, -5], np.int64)
    with jax.enable_x64(True):
        assert samesum.sum(jnp.asarray(x)) == x.sum() and samesum.sum(jnp.asarray(x)).dtype == jnp.int64
        with pytest.raises(OverflowError):
            samesum.sum(jnp.full(3, 2**62))
        if samesum.jax.has_handler("cpu"):
            assert jax.jit(samesum.sum)(jnp.asarray(x, jnp.int32)) == x.sum()
            assert jax.jit(samesum.sum)(jnp.ones((3, 4), bool)) == 12
    with jax.enable_x64(False):
        assert samesum.sum(jnp.arange(5)) == 10 and samesum.sum(jnp.arange(5)).dtype == jnp.int32
        with pytest.raises(OverflowError, match="jax_enable_x64"):
            samesum.sum(jnp.asarray(x, jnp.int32))


@needs_handler
def test_indices_have_the_type_of_those_of_jax() -> None:
    for enabled in (False, True):
        with jax.enable_x64(enabled):
            for x in (jnp.array([[1.0, 3.0], [4.0, 2.0]]), jnp.array([[1, 3], [4, 2]])):
                for call in (samesum.argmax, jax.jit(samesum.argmax, static_argnames="axis")):
                    assert call(x, axis=1).tolist() == [1, 0]
                    assert call(x, axis=1).dtype == jnp.argmax(x).dtype


@needs_handler
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: samesum.sum(x, axis=2), IndexError, "axis 2 is out of range"),
        (lambda x: samesum.sum(x, axis=(0, 0)), ValueError, "twice"),
        (lambda x: samesum.sum(x, method="nothing"), ValueError, "nothing"),
        (lambda x: samesum.sum(x, threads=-1), ValueError, "threads is -1"),
        (lambda x: samesum.sum(x, out=x), TypeError, "out"),
        (lambda x: samesum.sum(x.astype(complex)), TypeError, "complex64; use float16"),
        (lambda x: samesum.max(x, method="max/fp16"), TypeError, "does not accept"),
        (lambda x: samesum.max(x.astype(int)[:, :0], axis=1), ValueError, "at least one element"),
        (lambda x: samesum.sum(x, dtype="complex64"), TypeError, "dtype is complex64"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_errors_are_the_same_under_jit(
    call: Callable[..., Any], error: type[Exception], message: str
) -> None:
    x = jnp.ones((2, 3), jnp.float32)
    with pytest.raises(error, match="samesum: .*" + message):
        call(x)
    with pytest.raises(error, match="samesum: .*" + message):
        jax.jit(call)(x)


SECOND_INPUTS = {
    "array of NumPy": np.array([1.5, 2.0, 0.5], np.float32),
    "list": [1.5, 2.0, 0.5],
    "tuple of integers": (3, 0, 1),
    "half precision": np.array([1.5, 2.0, 0.5], np.float16),
    "objects": np.array([3, True, 1], object),
}


@pytest.mark.parametrize("name", SECOND_INPUTS)
@pytest.mark.parametrize("enabled", [False, True])
def test_a_second_input_of_another_library_is_read_as_jax_reads_it(name: str, enabled: bool) -> None:
    x, y = jnp.array([2.0, 4.0, 8.0], jnp.float32), SECOND_INPUTS[name]
    with jax.enable_x64(enabled):
        if name in ("objects", "tuple of integers") and not enabled:
            pytest.skip("integers become fp64")
        expected = samesum.dot(x, jnp.asarray(np.asarray(y, "int64") if name == "objects" else y))
        calls: list[Any] = [samesum.dot, samesum.vecdot]
        if samesum.jax.has_handler("cpu"):
            calls += [lambda x, y, f=f: jax.jit(lambda x: f(x, y))(x) for f in (samesum.dot, samesum.vecdot)]
            calls += [lambda x, y: jax.vmap(lambda x: samesum.vecdot(x, y))(x[None])[0]]
        for call in calls:
            assert bits(call(x, y)) == bits(expected)


@needs_handler
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (np.array(["a", "b", "c"]), "y has texts"),
        ((i for i in range(3)), "y is a generator"),
        (np.ones(3, complex), "y has elements of type complex"),
        (object(), "y "),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, str) else "",
)
def test_a_second_input_that_jax_cannot_read_is_named(y: Any, message: str) -> None:
    x = jnp.ones(3, jnp.float32)
    traced = jax.jit(lambda x: samesum.vecdot(x, y)), jax.grad(lambda x: samesum.dot(x, y))
    for call in (lambda x: samesum.vecdot(x, y), lambda x: samesum.dot(x, y), *traced):
        with pytest.raises(TypeError, match="samesum: .*" + message):
            call(x)


@needs_handler
def test_a_mask_does_not_go_with_tracing() -> None:
    x, y = jnp.ones(3, jnp.float32), np.ma.masked_equal(np.array([1, 2, 3], np.float32), 2)
    assert float(samesum.dot(x, y)) == 4
    with pytest.raises(TypeError, match="where and skipna do not go with tracing"):
        jax.jit(lambda x: samesum.dot(x, y))(x)


PAIRS = [
    ((3,), (3, 2), 0), ((2, 3), (2, 4, 3), 0), ((4, 2), (3, 4, 2), -2), ((2, 3, 4), (1, 3, 4), 1), ((3,), (2, 3), -1),
]  # fmt: skip


@needs_handler
@pytest.mark.parametrize(("first", "second", "axis"), PAIRS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_an_axis_counts_in_each_input_as_in_numpy(first: Any, second: Any, axis: int, keepdims: bool) -> None:
    x, y = (np.arange(math.prod(shape), dtype=np.float32).reshape(shape) for shape in (first, second))
    expected = samesum.vecdot(x, y, axis=axis, keepdims=keepdims)
    for a, b in ((x, y), (y, x)):
        for call in (samesum.vecdot, jax.jit(samesum.vecdot, static_argnames=("axis", "keepdims"))):
            result = call(jnp.asarray(a), jnp.asarray(b), axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(np.asarray(result), expected)
        if keepdims:
            continue
        gradients = jax.grad(lambda a, b: samesum.vecdot(a, b, axis=axis).sum(), (0, 1))(*map(jnp.asarray, (a, b)))
        assert [g.shape for g in gradients] == [a.shape, b.shape]


@needs_handler
def test_the_reduced_axis_is_not_broadcast_under_jit() -> None:
    for x, y, axis in ((jnp.ones((1, 3)), jnp.ones((4, 3)), 0), (jnp.ones((4, 1)), jnp.ones(3), -1)):
        for call in (samesum.vecdot, jax.jit(samesum.vecdot, static_argnames="axis")):
            with pytest.raises(ValueError, match="samesum: x has . elements along axis .*; pass inputs of one length"):
                call(x, y, axis=axis)
    for call in (samesum.dot, jax.jit(samesum.dot)):
        with pytest.raises(ValueError, match="dot: x has 2 axes; use vecdot"):
            call(jnp.ones((2, 3)), jnp.ones(3))
        with pytest.raises(ValueError, match="dot: x has 2 elements and y 1; pass vectors of one length"):
            call(jnp.ones(2), jnp.ones(1))


@needs_handler
def test_a_call_that_does_not_fit_its_buffers_is_refused() -> None:
    samesum.jax._register()
    for dtype, shape in (("float64", (2,)), ("float32", (5,)), ("int32", (2,))):
        with jax.enable_x64(True):
            call = jax.ffi.ffi_call(
                "samesum_reduce", jax.ShapeDtypeStruct(shape, dtype), vmap_method="broadcast_all"
            )
            with pytest.raises(Exception, match="samesum: "):
                call(
                    jnp.ones((2, 3), jnp.float32), method="sum/exact/fp32", threads=0, ddof=0.0
                ).block_until_ready()


@needs_handler
def test_results_of_no_elements_are_those_of_numpy_arrays() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        names = "sum", "mean", "max", "argmin", "prod", "norm", "logsumexp", "var", "softmax"

        def all_of(x: Any, axes: range = range(len(shape))) -> list[Any]:
            return [getattr(samesum, name)(x, axis=axis) for name in names for axis in axes]

        x = np.zeros(shape, np.float32)
        for result, expected in zip(jitted(all_of)(x), all_of(x), strict=True):
            np.testing.assert_array_equal(result, expected)


@needs_handler
def test_subnormal_numbers_survive_the_mode_of_the_threads_of_xla() -> None:
    x = np.full(8, np.finfo(np.float32).smallest_subnormal, np.float32)
    for method in ("exact", "tree/plain", "serial/kahan"):
        assert bits(jitted(samesum.sum, method=method)(x)) == bits(samesum.sum(x, method=method))
        assert np.asarray(jitted(samesum.sum, method=method)(x)).view(np.int32) == 8


@needs_handler
def test_calls_from_many_threads_have_the_same_bits() -> None:
    from concurrent.futures import ThreadPoolExecutor

    x = data("fp32", (16, 5000))
    expected = bits(samesum.sum(x, axis=1, method="tree/plain"))
    call = jitted(samesum.sum, axis=1, method="tree/plain")
    with ThreadPoolExecutor(8) as pool:
        assert {bits(r) for r in pool.map(lambda _: call(x), range(64))} == {expected}


@pytest.mark.parametrize(("call", "argument"), [
    (lambda a, n: samesum.scatter_add(a, [0], np.ones(1, np.float32)), "out"),
    (lambda a, n: samesum.scatter_add(n, a, n), "keys"),
    (lambda a, n: samesum.scatter_add(n, [0], a), "values"),
    (lambda a, n: samesum.groupby_sum([0], a), "values"),
    (lambda a, n: samesum.cumsum(a), "x"),
    (lambda a, n: samesum.rolling_sum(a, 1), "x"),
    (lambda a, n: samesum.average(n, weights=a), "weights"),
])  # fmt: skip
def test_functions_without_an_operator_of_xla_name_an_array_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[Any, Any], Any], argument: str
) -> None:
    a, n = jnp.ones(1, jnp.float32), np.ones(1, np.float32)
    monkeypatch.setattr(type(library_of(a)), "_is_on_gpu", lambda self, x: True)
    monkeypatch.setattr(samesum.jax, "has_handler", lambda platform: True)
    with pytest.raises(NotImplementedError, match=rf"takes no arrays of JAX on a GPU.*numpy.asarray\({argument}\)"):
        call(a, n)
    with pytest.raises(NotImplementedError, match=rf"is not traced.*pass {argument}.detach\(\)"):
        jax.jit(lambda a: call(a, n))(a)
