"""Arrays on a GPU: the bits of the CPU, in the caller's stream, as arrays of the caller's library."""

import threading

import numpy as np
import pytest

import samesum
from samesum import _core
from samesum._calls.arguments import Call
from samesum._calls.reduction import reduce


def _libraries():
    if not _core.has_cuda:
        return [pytest.param(None, marks=pytest.mark.skip("samesum was built without CUDA"))]
    if "cuda" in _core.absent():
        return [pytest.param(None, marks=pytest.mark.skip("this machine has no GPU"))]
    found = []
    for name in ("torch", "cupy"):
        try:
            found.append(__import__(name))
        except ImportError:
            found.append(pytest.param(None, marks=pytest.mark.skip(f"{name} is not installed"), id=name))
    return found


@pytest.fixture(params=_libraries(), ids=lambda m: getattr(m, "__name__", "gpu"))
def library(request):
    return request.param


def to_gpu(library, a):
    if library.__name__ == "torch":
        if a.dtype.name == "bfloat16":
            return library.from_numpy(a.view(np.int16).copy()).view(library.bfloat16).cuda()
        if any(s < 0 for s in a.strides):
            a = a.copy()
        return library.from_numpy(np.asarray(a)).cuda() if a.ndim == 0 else as_strided(library, a)
    return library.asarray(a)


def as_strided(torch, a):
    """Copies a to the GPU with its memory layout."""
    order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
    t = torch.from_numpy(np.ascontiguousarray(a.transpose(order))).cuda()
    return t.permute([order.index(d) for d in range(a.ndim)])


def to_host(library, t):
    if library.__name__ == "torch":
        if t.dtype == library.bfloat16:
            return t.view(library.int16).cpu().numpy().view(pytest.importorskip("ml_dtypes").bfloat16)
        return t.cpu().numpy()
    return library.asnumpy(t)


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    kind = f"u{a.dtype.itemsize}"
    return (np.ascontiguousarray(a).view(kind) == np.ascontiguousarray(b).view(kind)).all()


def data(name, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)
    return x.astype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name)


FUNCTIONS = ("sum", "mean", "prod", "min", "max", "argmin", "argmax", "norm", "var", "std",
             "logsumexp", "softmax", "log_softmax")  # fmt: skip
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_every_method_has_the_bits_of_the_cpu(library, name):
    x, y = data(name, 10_000), data(name, 10_000, 1)
    format = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}[name]
    gx, gy = to_gpu(library, x), to_gpu(library, y)
    checked = 0
    for m in samesum.methods("*@cuda"):
        if m.promise == "none" or not m.accepts(format) or (m.is_slow and m.order == "atomic"):
            continue
        if library.__name__ == "cupy" and m.format == "bf16":
            continue  # CuPy has no bfloat16
        short = m.name.partition("@")[0]
        operation = {"moments": "var", "dot": "dot"}.get(m.operation, m.operation)
        if operation not in (*FUNCTIONS, *SCANS, "dot"):
            continue
        function = getattr(samesum, operation)
        both = ((x, y), (gx, gy)) if operation == "dot" else ((x,), (gx,))
        expected, result = function(*both[0], method=short), function(*both[1], method=short)
        assert type(result) is type(gx) and result.device == gx.device
        assert same_bits(to_host(library, result), expected), m.name
        checked += 1
    assert checked > 15


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_scans_of_axes_have_the_bits_of_the_cpu(library, name):
    a = data(name, (6, 50, 40))
    g = to_gpu(library, a)
    for axis in (None, 0, 1, -1):
        for function in SCANS:
            for exclusive in (False, True):
                expected = getattr(samesum, function)(a, axis, exclusive=exclusive)
                result = getattr(samesum, function)(g, axis, exclusive=exclusive)
                assert same_bits(to_host(library, result), expected), (function, axis, exclusive)
    expected = samesum.cumulative_sum(a, axis=1, include_initial=True)
    assert same_bits(to_host(library, samesum.cumulative_sum(g, axis=1, include_initial=True)), expected)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_axes_and_layouts_have_the_bits_of_the_cpu(library, name):
    whole = data(name, (6, 50, 4, 30))
    for a in (whole, whole.transpose(3, 1, 0, 2), whole[:, ::2], whole[2:3, :, :1], np.asfortranarray(whole)):
        g = to_gpu(library, a)
        for axis in (None, 0, 1, -1, (0, 1), (2, 3), (0, 2), ()):
            for function in FUNCTIONS:
                options = {} if "softmax" in function else {"keepdims": True}
                expected = getattr(samesum, function)(a, axis, **options)
                result = getattr(samesum, function)(g, axis, **options)
                assert same_bits(to_host(library, result), expected), (function, axis)
        for method in ("tree/plain", "tree/kahan", "pairwise/plain", "pairwise/kahan", "serial/kahan"):
            assert same_bits(to_host(library, samesum.sum(g, 1, method=method)), samesum.sum(a, 1, method=method))
        assert same_bits(to_host(library, samesum.vecdot(g, g, axis=1)), samesum.vecdot(a, a, axis=1))


def test_two_inputs_of_one_gpu_may_belong_to_two_libraries(library):
    x, y = data("float32", (4, 30)), data("float64", 30, 1)
    expected = samesum.vecdot(x, y)
    g = to_gpu(library, x)
    for name in ("torch", "cupy"):
        try:
            other = __import__(name)
        except ImportError:
            continue
        result = samesum.vecdot(g, to_gpu(other, y))
        assert type(result) is type(g) and same_bits(to_host(library, result), expected)


def test_no_data_moves_between_the_host_and_a_gpu(library):
    x = data("float32", 30)
    g = to_gpu(library, x)
    partial = samesum.Partial("dot/exact/fp64@cuda")
    for y in (x, x.tolist()):
        for call in (samesum.vecdot, samesum.dot, lambda a, b: partial.add(a, b)):
            with pytest.raises(ValueError, match="samesum: y is on cpu and x on cuda:0; pass inputs on one device"):
                call(g, y)
            with pytest.raises(ValueError, match="samesum: y is on cuda:0 and x on cpu; pass inputs on one device"):
                call(y, g)
    if library.__name__ == "torch":
        for a, b in ((g, g.cpu()), (g.cpu(), g), (g.cpu().requires_grad_(), g), (g, g.cpu().requires_grad_())):
            with pytest.raises(ValueError, match="samesum: y is on .* and x on .*; pass inputs on one device"):
                samesum.vecdot(a, b)
            if not b.requires_grad:
                with pytest.raises(ValueError, match="samesum: reduce_by_key: .* is on "):
                    samesum.reduce_by_key([0] * 30, a.detach(), b, operation="dot")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5000,), (3000, 8), (200, 3, 5), (0,)])
def test_sums_by_key_have_the_bits_of_the_cpu(library, name, shape):
    if library.__name__ == "cupy" and name == "bfloat16":
        pytest.skip("CuPy has no bfloat16")
    values, out = data(name, shape), data(name, (40, *shape[1:]), 1)
    keys = np.random.default_rng(2).integers(0, 40, shape[0]) // 2 * 2
    for kind in ("int64", "int32", "uint8"):
        typed = keys.astype(kind)
        host, gpu = (out, typed, values), tuple(to_gpu(library, a) for a in (out, typed, values))
        for options in (
            {},
            {"method": "serial/plain"},
            {"method": "fixed_point"},
            {"method": "fixed_point", "grid": -30},
        ):
            expected, result = samesum.scatter_add(*host, **options), samesum.scatter_add(*gpu, **options)
            assert type(result) is type(gpu[0]) and result.device == gpu[0].device
            assert same_bits(to_host(library, result), expected), options
        assert same_bits(to_host(library, samesum.bincount(gpu[1], minlength=3)), samesum.bincount(typed, minlength=3))
        if values.ndim == 1:
            assert same_bits(to_host(library, samesum.bincount(*gpu[1:])), samesum.bincount(typed, values))
        unique, sums = samesum.groupby_sum(*gpu[1:])
        expected, expected_sums = samesum.groupby_sum(typed, values)
        assert same_bits(to_host(library, unique), expected) and same_bits(to_host(library, sums), expected_sums)


@pytest.mark.parametrize("shape", [(3000,), (500, 6)])
def test_runs_of_equal_keys_have_the_bits_of_the_cpu(library, shape):
    values, other = data("float32", shape), data("float32", shape, 1)
    keys = np.random.default_rng(2).integers(0, 2, shape[0])
    host, gpu = (keys, values, other), tuple(to_gpu(library, a) for a in (keys, values, other))
    for operation in ("sum", "mean", "dot", "norm", "prod", "moments", "min", "argmax"):
        inputs = 3 if operation == "dot" else 2
        for method in (None, "exact", "fixed_point") if operation in ("sum", "mean", "dot") else (None,):
            expected = samesum.reduce_by_key(*host[:inputs], operation=operation, method=method)
            result = samesum.reduce_by_key(*gpu[:inputs], operation=operation, method=method)
            assert type(result[1]) is type(gpu[1]) and result[1].device == gpu[1].device
            assert all(same_bits(to_host(library, a), b) for a, b in zip(result, expected)), (operation, method)
    unique, sums = samesum.reduce_by_key(gpu[0][:0], gpu[1][:0])
    assert tuple(unique.shape) == (0,) and tuple(sums.shape) == (0, *shape[1:])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "uint16", "uint64", "bool"])
def test_keys_on_a_gpu_are_grouped_as_those_on_the_host(library, name):
    if library.__name__ == "cupy" and name == "bfloat16":
        pytest.skip("CuPy has no bfloat16")
    nan = float("nan")
    numbers = [nan, 0, np.copysign(nan, -1), nan, 1, -0.0, np.copysign(nan, -1), -1, 0]
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name
    keys = np.array(numbers if "float" in name else [3, 0, 3, 3, 1, 0, 3, 2, 0]).astype(dtype)
    values = 2.0 ** np.arange(9)
    gpu = to_gpu(library, keys), to_gpu(library, values)
    for function in (samesum.groupby_sum, samesum.reduce_by_key):
        unique, sums = function(*gpu)
        expected, expected_sums = function(keys, values)
        assert isinstance(unique, type(gpu[0])) and unique.dtype == gpu[0].dtype
        np.testing.assert_array_equal(to_host(library, unique).astype(float), expected.astype(float))
        assert to_host(library, sums).tolist() == expected_sums.tolist()


def test_what_is_wrong_with_keys_on_a_gpu_is_named(library):
    out, values = to_gpu(library, np.zeros(3)), to_gpu(library, np.ones(2))
    for bad in (3, -1):
        with pytest.raises(ValueError, match=rf"keys\[1\] is {bad}; it must"):
            samesum.scatter_add(out, to_gpu(library, np.array([0, bad])), values)
    keys = to_gpu(library, np.array([0, 2]))
    assert to_host(library, samesum.scatter_add(out, keys, values)).tolist() == [1, 0, 1]
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.scatter_add(out, keys, values * 1e300, method="fixed_point", grid=0)
    with pytest.raises(ValueError, match="keys is on the host"):
        samesum.scatter_add(out, [0, 2], values)
    if library.__name__ == "torch":
        with pytest.raises(ValueError, match="a graph is being captured"), library.cuda.graph(library.cuda.CUDAGraph()):
            samesum.scatter_add(out, keys, values)


def test_reversed_arrays_of_cupy_are_copied():
    cupy = pytest.importorskip("cupy")
    if "cuda" in _core.absent():
        pytest.skip("this machine has no GPU")
    a = data("float32", (40, 50))
    g = cupy.asarray(a)[::-1, ::-1]
    assert same_bits(
        cupy.asnumpy(samesum.sum(g, 1, method="tree/plain")), samesum.sum(a[::-1, ::-1], 1, method="tree/plain")
    )


def test_empty_arrays_and_axes_have_the_results_of_the_cpu(library):
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        a = np.zeros(shape, "f4")
        g = to_gpu(library, a)
        for function in ("sum", "mean", "prod", "min", "max", "argmax", "norm", "logsumexp"):
            for axis in (None, 0, -1):
                expected = getattr(samesum, function)(a, axis)
                result = to_host(library, getattr(samesum, function)(g, axis))
                assert np.array_equal(result, expected, equal_nan=True), (function, shape, axis)


def test_calls_run_in_the_callers_stream(library):
    a = data("float32", 1 << 24)
    expected = samesum.sum(a, method="tree/plain")
    g = to_gpu(library, a)
    stream = library.cuda.Stream() if library.__name__ == "torch" else library.cuda.Stream(non_blocking=True)
    if library.__name__ == "torch":
        stream.wait_stream(library.cuda.current_stream())
        with library.cuda.stream(stream):
            for _ in range(20):
                copy = g * 2  # enqueued in this stream just before the sum reads it
                result = samesum.sum(copy, method="tree/plain") / 2
        stream.synchronize()
    else:
        library.cuda.Device().synchronize()
        with stream:
            for _ in range(20):
                copy = g * 2
                result = samesum.sum(copy, method="tree/plain") / 2
        stream.synchronize()
    assert float(result) == expected


def test_a_call_can_be_captured_in_a_graph():
    torch = pytest.importorskip("torch")
    if "cuda" in _core.absent():
        pytest.skip("this machine has no GPU")
    x = torch.randn(1 << 20, device="cuda")
    samesum.sum(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = samesum.sum(x)
    x.copy_(torch.arange(1 << 20, device="cuda") % 7)
    graph.replay()
    torch.cuda.synchronize()
    assert result.item() == samesum.sum(x.cpu()).item()


def test_threads_in_one_stream_share_a_workspace_safely(library):
    a = data("float64", 3_000_000)
    expected = samesum.sum(a, method="tree/plain")
    g = to_gpu(library, a)
    wrong = []

    def work():
        for _ in range(200):
            if float(samesum.sum(g, method="tree/plain")) != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_integers_on_a_gpu_are_exact_and_report_overflow(library):
    rng = np.random.default_rng(3)
    for dtype in ("int8", "uint8", "int16", "int32", "int64", "bool"):
        a = (
            rng.integers(0, 2, (50, 60)).astype(dtype)
            if dtype == "bool"
            else rng.integers(-100, 100, (50, 60)).astype(dtype)
        )
        for axis in (None, 0, 1):
            assert np.array_equal(to_host(library, samesum.sum(to_gpu(library, a), axis)), samesum.sum(a, axis))
    samesum.integer_overflow()
    most = to_gpu(library, np.array([np.iinfo("int64").max, 1]))
    samesum.sum(most)
    assert samesum.integer_overflow() and not samesum.integer_overflow()
    with pytest.raises(OverflowError):
        samesum.sum(most, check=True)


def test_out_receives_the_result(library):
    a = data("float32", (40, 50))
    g = to_gpu(library, a)
    out = to_gpu(library, np.empty(40, "f4"))
    assert samesum.sum(g, 1, out=out) is out
    assert same_bits(to_host(library, out), samesum.sum(a, 1))
    with pytest.raises(TypeError, match="out"):
        samesum.sum(g, 1, out=np.empty(40, "f4"))


def test_a_method_of_the_cpu_does_not_read_a_gpu(library):
    g = to_gpu(library, data("float32", 9))
    with pytest.raises(ValueError, match="use @cuda, or copy x to the host"):
        samesum.sum(g, method="tree/plain/fp32@cpu")


def test_exact_states_and_partials_take_in_arrays_of_a_gpu(library):
    a = data("float32", 100_000)
    g = to_gpu(library, a)
    state = samesum.Exact(a[:500])
    state.add(g[500:])
    assert state == samesum.Exact(a)
    first, second = samesum.Partial("tree/kahan/fp32"), samesum.Partial("tree/kahan/fp32@cuda", 30_000)
    first.add(a[:30_000])
    second.add(g[30_000:])
    first.merge(second)
    assert first.finish() == samesum.sum(a, method="tree/kahan/fp32")


def test_an_estimate_of_an_array_on_a_gpu_is_that_of_the_host(library):
    a = data("float32", 1000)
    assert samesum.estimate(to_gpu(library, a), "tree/plain") == samesum.estimate(a, "tree/plain")


def test_a_new_stream_does_not_inherit_the_workspace_of_a_destroyed_one():
    cupy = pytest.importorskip("cupy")
    if "cuda" in _core.absent():
        pytest.skip("this machine has no GPU")
    a = data("float32", 1_000_000)
    g, expected = cupy.asarray(a), samesum.sum(a)
    for _ in range(300):  # more streams than have workspaces of their own
        with cupy.cuda.Stream(non_blocking=True):
            assert float(samesum.sum(g)) == expected


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    if "cuda" in _core.absent() or jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    with jax.enable_x64(True):
        yield jax


def test_arrays_of_jax_on_a_gpu_give_arrays_of_jax(jax):
    a = data("float32", (40, 50))
    result = samesum.sum(jax.numpy.asarray(a), 1)
    assert isinstance(result, jax.Array)
    assert same_bits(np.asarray(result), samesum.sum(a, 1))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_compiled_calls_of_jax_on_a_gpu_have_the_bits_of_the_cpu(jax, name):
    if not pytest.importorskip("samesum.jax").has_handler("gpu"):
        pytest.skip("samesum was built without JAX")
    x, y = data(name, (6, 700)), data(name, (6, 700), 1)
    format = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}[name]
    methods = [
        m
        for m in samesum.methods("*@cuda")
        if m.promise != "none" and m.accepts(format) and not m.takes_keys and not m.takes_window
    ]

    def all_of(backend, x, y):
        pairs = [(m, m.name.replace("@cuda", backend)) for m in methods]
        return [reduce(Call(m.operation, x, 1, method=name, y=y if m.inputs > 1 else None)) for m, name in pairs]

    results = jax.jit(lambda *arrays: all_of("@cuda", *arrays))(jax.numpy.asarray(x), jax.numpy.asarray(y))
    for m, result, expected in zip(methods, results, all_of("@cpu", x, y), strict=True):
        assert same_bits(np.asarray(result), expected), m.name


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape, axis", [((10_000,), None), ((40, 300), 1), ((40, 300), 0), ((3, 5, 700), (0, 2))])
def test_a_selection_has_the_bits_of_the_cpu(library, name, shape, axis):
    x = data(name, shape)
    mask = np.random.default_rng(3).random(shape) < 0.6
    mask.reshape(-1)[:300] = False
    nans = np.where(mask, x, x.dtype.type(np.nan))
    on_gpu = [to_gpu(library, a) for a in (x, nans, mask)]
    for function in ("sum", "mean", "var", "min", "argmin", "argmax", "norm"):
        reduce = getattr(samesum, function)
        expected = reduce(x, axis=axis, where=mask)
        for selected in (
            reduce(on_gpu[0], axis=axis, where=on_gpu[2]), reduce(on_gpu[1], axis=axis, skipna=True),
        ):  # fmt: skip
            assert same_bits(to_host(library, selected), expected), function
    for method in ("tree/kahan", "pairwise/plain", "fixed_point"):
        expected = samesum.sum(x, axis=axis, where=mask, method=method)
        selected = samesum.sum(on_gpu[0], axis=axis, where=on_gpu[2], method=method)
        assert same_bits(to_host(library, selected), expected), method
    if not isinstance(axis, tuple):
        for scan in ("cumsum", "cummax"):
            function = getattr(samesum, scan)
            expected = function(x, axis=axis, where=mask)
            assert same_bits(to_host(library, function(on_gpu[0], axis=axis, where=on_gpu[2])), expected), scan


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_rolling_functions_have_the_bits_of_the_cpu(library, name):
    x = data(name, (40, 300))
    x[3, 7] = np.nan
    on_gpu = to_gpu(library, x)
    for function in ("sum", "mean", "var", "min", "max"):
        roll = getattr(samesum, "rolling_" + function)
        for options in ({"axis": 0}, {"axis": 1, "min_periods": 2, "skipna": True, "center": True}):
            assert same_bits(to_host(library, roll(on_gpu, 9, **options)), roll(x, 9, **options)), function


def test_a_selection_by_key_has_the_bits_of_the_cpu(library):
    x, keys = data("float32", (500, 3)), np.random.default_rng(4).integers(0, 9, 500)
    mask = np.random.default_rng(3).random((500, 3)) < 0.6
    keys[~mask.any(1)] = -5
    before = np.zeros((9, 3), np.float32)
    expected = samesum.scatter_add(before, keys, x, where=mask)
    found = samesum.scatter_add(*(to_gpu(library, a) for a in (before, keys, x)), where=to_gpu(library, mask))
    assert same_bits(to_host(library, found), expected)
