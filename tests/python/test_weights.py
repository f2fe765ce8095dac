"""Weighted sums, means and variances: correctly rounded, for every type, axis and library."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from exact_statistics import DTYPES, dtype_of, nearest, numbers, rows_of, same  # noqa: E402

import samesum  # noqa: E402

AXES = [None, 0, 1, -1, (0, 2), (2, 1), (0, 1, 2), ()]


def mean_of(x: list[Fraction], w: list[Fraction]) -> Fraction:
    return sum(a * b for a, b in zip(x, w)) / sum(w)


def variance_of(x: list[Fraction], w: list[Fraction], correction: Fraction, are: str = "frequencies") -> Fraction:
    mean, total = mean_of(x, w), sum(w)
    lost = correction if are == "frequencies" else correction * sum(a * a for a in w) / total
    return sum(b * (a - mean) ** 2 for a, b in zip(x, w)) / (total - lost)


def expected(function: Any, x: Any, w: Any, axis: Any, dtype: str, *options: Any) -> list[float]:
    return [nearest(function(a, b, *options), dtype) for a, b in zip(rows_of(x, axis), rows_of(w, axis))]


def as_list(result: Any) -> list[float]:
    return [float(v) for v in np.asarray(result).reshape(-1)]


# --- correct rounding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_weighted_result_is_the_exact_one_rounded_once(dtype: str, axis: Any) -> None:
    rng = np.random.default_rng(1)
    x, w = numbers(rng, (3, 4, 5), dtype), abs(numbers(rng, (3, 4, 5), dtype, 3))
    mean = samesum.mean(x, axis, weights=w)
    assert mean.dtype == x.dtype and mean.shape == np.sum(x, axis).shape
    assert as_list(mean) == expected(mean_of, x, w, axis, dtype)
    total = samesum.sum(x, axis, weights=w)
    assert as_list(total) == expected(lambda a, b: sum(c * d for c, d in zip(a, b)), x, w, axis, dtype)
    assert as_list(samesum.var(x, axis, weights=w)) == expected(variance_of, x, w, axis, dtype, 0)


@pytest.mark.parametrize("are", ["frequencies", "reliabilities"])
@pytest.mark.parametrize("correction", [0, 1, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_divisor_of_a_variance_is_that_of_numpys_cov(dtype: str, correction: float, are: str) -> None:
    rng = np.random.default_rng(2)
    x, w = numbers(rng, 50, dtype, 2), rng.integers(0, 7, 50)
    result = samesum.var(x.astype(np.float64), weights=w, correction=correction, weights_are=are)
    assert result == nearest(variance_of(*rows_of(x, 0), *rows_of(w, 0), Fraction(correction), are), "float64")
    name = {"frequencies": "fweights", "reliabilities": "aweights"}[are]
    if correction in (0, 1):
        assert result == pytest.approx(float(np.cov(x.astype(np.float64), ddof=correction, **{name: w})), rel=1e-12)
    narrow = samesum.var(x, weights=w.astype(x.dtype), correction=correction, weights_are=are)
    assert narrow == dtype_of(dtype).type(nearest(Fraction(float(result)), dtype)) or dtype == "float64"
    assert same(samesum.std(x, weights=w.astype(x.dtype), ddof=correction, weights_are=are), np.sqrt(narrow))


@pytest.mark.parametrize("dtype", DTYPES)
def test_frequencies_are_repetitions(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, w = numbers(rng, 300, dtype, 3), rng.integers(0, 5, 300)
    repeated, w = np.repeat(x, w), w.astype(x.dtype)
    assert same(samesum.sum(x, weights=w), samesum.sum(repeated))
    assert same(samesum.mean(x, weights=w), samesum.mean(repeated))
    assert same(samesum.average(x, weights=w), samesum.mean(repeated))
    for options in ({}, {"correction": 1}, {"ddof": 2}):
        assert same(samesum.var(x, weights=w, **options), samesum.var(repeated, **options))
        assert same(samesum.std(x, weights=w, **options), samesum.std(repeated, **options))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_of_one_change_no_bit(dtype: str) -> None:
    x = numbers(np.random.default_rng(4), (6, 7, 8), dtype)
    ones = np.ones_like(x)
    for axis in AXES:
        for name in ("sum", "mean", "var", "std"):
            function = getattr(samesum, name)
            assert same(function(x, axis, weights=ones), function(x, axis)), (name, axis)


def test_a_mean_is_not_the_quotient_of_two_rounded_sums() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.random((1000, 9)), rng.random((1000, 9))
    exact = samesum.mean(x, 1, weights=w)
    rounded_thrice = samesum.sum(x, 1, weights=w) / samesum.sum(w, 1)
    assert (exact != rounded_thrice).any() and exact == pytest.approx(rounded_thrice, rel=1e-15)


def test_large_vectors_are_summed_in_parts_and_by_threads() -> None:
    rng = np.random.default_rng(6)
    x, w = numbers(rng, 33_001, "float64", 40), abs(numbers(rng, 33_001, "float64", 40))
    value = nearest(variance_of(*rows_of(x, 0), *rows_of(w, 0), Fraction(1)), "float64")
    for threads in (0, 1, 3):
        assert samesum.var(x, weights=w, correction=1, threads=threads) == value
        order = rng.permutation(x.size)
        assert samesum.var(x[order], weights=w[order], correction=1, threads=threads) == value


@pytest.mark.parametrize("of_x", [-1070, -700, -300, 0, 300, 700, 1020])
@pytest.mark.parametrize("of_w", [-1070, -500, 0, 500, 1020])
def test_products_neither_overflow_nor_underflow(of_x: int, of_w: int) -> None:
    rng = np.random.default_rng(7)
    x, w = np.ldexp(rng.standard_normal((3, 20)), of_x), np.ldexp(rng.random((3, 20)), of_w)
    x[2], w[2] = rng.standard_normal(20) * 2.0 ** rng.integers(-1000, 1000, 20), 2.0 ** rng.integers(-1000, 1000, 20)
    assert as_list(samesum.mean(x, 1, weights=w)) == expected(mean_of, x, w, 1, "float64")
    assert as_list(samesum.var(x, 1, weights=w)) == expected(variance_of, x, w, 1, "float64", 0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([2**53 + 1, 1], "weights has integers that float64 does not hold"),
        (np.array([1j, 2]), "weights has elements of type complex128"),
        (["a", "b"], "weights has texts, not numbers"),
    ],
)
@pytest.mark.parametrize("function", [samesum.sum, samesum.mean, samesum.average])
def test_weights_that_are_refused_are_named_weights(function: Any, weights: Any, message: str) -> None:
    x = np.array([1.0, 2.0])
    for masked in ({}, {"where": [True, True]}, {"skipna": True}):
        with pytest.raises((OverflowError, TypeError), match=f"samesum: {message}"):
            function(x, weights=weights, **masked)


def test_weights_of_groups_that_are_refused_are_named_weights() -> None:
    groups = samesum.groupby(["a", "b"])
    with pytest.raises(OverflowError, match="samesum: weights has integers that float64 does not hold"):
        groups.sum([1.0, 2.0], weights=[2**53 + 1, 1])
    with pytest.raises(OverflowError, match="samesum: y has integers that float64 does not hold"):
        groups.dot([1.0, 2.0], [2**53 + 1, 1])


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FLOATS, FLOATS.map(abs)), min_size=1, max_size=6), st.integers(0, 2))
def test_any_finite_numbers_have_correctly_rounded_results(pairs: list[tuple[float, float]], correction: int) -> None:
    x, w = (np.array(a) for a in zip(*pairs))
    exact = rows_of(x, 0)[0], rows_of(w, 0)[0]
    if sum(exact[1]) == 0:
        with pytest.raises(ZeroDivisionError):
            samesum.mean(x, weights=w)
        return
    mean = mean_of(*exact)
    result = samesum.mean(x, weights=w)
    assert result == nearest(mean, "float64")
    assert mean != 0 or not math.copysign(1, result) < 0 or (np.signbit(x) != np.signbit(w)).all()
    if sum(exact[1]) > correction:
        assert samesum.var(x, weights=w, correction=correction) == nearest(variance_of(*exact, correction), "float64")
    else:
        assert math.isnan(samesum.var(x, weights=w, correction=correction))


LONG = st.integers(1, 2**80)


@given(LONG, LONG, st.integers(-1074, 900))
def test_quotients_are_rounded_to_nearest_with_ties_to_even(n: int, d: int, exponent: int) -> None:
    x = np.ldexp([float(n), n - int(float(n)), 0, 0, 0], exponent)
    w = [1, 1, -2, float(d), d - int(float(d))]
    exact = Fraction(n, d) * Fraction(2) ** exponent
    for format, dtype in (("fp16", "float16"), ("bf16", "bfloat16"), ("fp32", "float32"), ("fp64", "float64")):
        for sign in (1, -1):
            result = samesum.mean(sign * x, weights=w, method=f"exact/{format}")
            assert abs(result) == nearest(exact, dtype) and np.signbit(result) == (sign < 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_are_rounded_to_even(dtype: str) -> None:
    one = dtype_of(dtype).type(1)
    step = (
        np.finfo(np.float64).eps
        if dtype == "float64"
        else {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23}[dtype]
    )
    for low, even in ((0, 0), (1, 2), (2, 2), (3, 4)):
        x = np.array([1 + low * step, 1 + (low + 1) * step]).astype(one.dtype)
        assert samesum.mean(x, weights=np.array([one, one])) == one.dtype.type(1 + even * step)


# --- special numbers ------------------------------------------------------------------------------------------

SPECIAL = [1.0, -2.0, 0.0, -0.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_mean_of_special_numbers_is_that_of_ieee_arithmetic(dtype: str) -> None:
    checked = 0
    for a in SPECIAL:
        for b in SPECIAL:
            for v in SPECIAL:
                for w in (1.0, -3.0, 0.0, math.inf, math.nan):
                    x, weights = np.array([a, b]).astype(dtype_of(dtype)), np.array([v, w]).astype(dtype_of(dtype))
                    if v + w == 0:
                        with pytest.raises(ZeroDivisionError, match="weights sum to zero"):
                            samesum.mean(x, weights=weights)
                        continue
                    with np.errstate(all="ignore"):
                        reference = (np.float64(a) * v + np.float64(b) * w) / np.float64(v + w)
                    result = float(samesum.mean(x, weights=weights))
                    assert result == pytest.approx(reference, rel=1e-2, nan_ok=True), (a, b, v, w)
                    checked += 1
    assert checked > 500


def test_the_mean_of_negative_zeros_is_negative() -> None:
    assert same(samesum.mean([-0.0, -0.0], weights=[1, 2]), -0.0)
    assert same(samesum.mean([-0.0, 0.0], weights=[1, 2]), 0.0)
    assert same(samesum.mean([-0.0, -0.0], weights=[-1, -2]), -0.0)  # +0 / -3
    for n in (1, 15, 16, 20, 1000, 65_536, 65_537):  # each way to sum, also beside elements that take no part
        x, ones = np.full(n + 3, -0.0), np.ones(n + 3)
        for dtype in ("float32", "float64"):
            a, w = x.astype(dtype), ones.astype(dtype)
            assert same(samesum.mean(a[:n], weights=w[:n]), np.dtype(dtype).type(-0.0)), n
            assert same(samesum.mean(a, weights=w, where=np.arange(n + 3) < n), np.dtype(dtype).type(-0.0)), n


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_a_variance_with_a_special_number_is_nan_and_leaves_others_alone(special: float) -> None:
    x, w = np.arange(12.0).reshape(3, 4), np.arange(1.0, 13.0).reshape(3, 4)
    spoilt = x.copy()
    spoilt[1, 2] = special
    for name in ("var", "std"):
        function = getattr(samesum, name)
        result = function(spoilt, 1, weights=w)
        assert math.isnan(result[1]) and same(result[[0, 2]], function(x, 1, weights=w)[[0, 2]])
        if special > 0:  # weights that are infinite or NaN
            assert math.isnan(function(x, 1, weights=spoilt)[1])


def test_results_without_elements() -> None:
    assert same(samesum.sum([], weights=[]), 0.0)
    for name in ("mean", "average", "var", "std"):
        assert math.isnan(getattr(samesum, name)([], weights=[])), name
        assert np.isnan(getattr(samesum, name)(np.ones((3, 0)), axis=1, weights=np.ones(0))).tolist() == [True] * 3
        assert getattr(samesum, name)(np.ones((3, 0)), axis=0, weights=np.ones(3)).shape == (0,)
    assert math.isnan(samesum.var([3.0], weights=[2.0], correction=2))


# --- shapes, types and libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_weights_along_the_axis_are_those_of_numpys_average(axis: Any, keepdims: bool) -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal((3, 4, 5))
    axes = (0, 1, 2) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    w = rng.random([x.shape[a] for a in axes])
    ascending = np.transpose(w, np.argsort([a % 3 for a in axes])) if axes else w
    whole = np.broadcast_to(
        ascending.reshape([n if d in [a % 3 for a in axes] else 1 for d, n in enumerate(x.shape)]), x.shape
    )
    for name in ("sum", "mean", "var", "std", "average"):
        function = getattr(samesum, name)
        result = function(x, axis=axis, weights=w, keepdims=keepdims)
        assert same(result, function(x, axis=axis, weights=np.array(whole), keepdims=keepdims))
    if isinstance(axis, int) or axis is None:
        assert result == pytest.approx(
            np.average(x, axis, w if axis is not None else whole, keepdims=keepdims), rel=1e-12
        )


def test_weights_are_broadcast_along_axes_that_are_not_reduced() -> None:
    rng = np.random.default_rng(9)
    x, w = rng.standard_normal((3, 4, 5)), rng.random((1, 4, 1))
    for name in ("sum", "mean", "var"):
        function = getattr(samesum, name)
        assert same(function(x, 1, weights=w), function(x, 1, weights=np.tile(w, (3, 1, 5))))
        with pytest.raises(
            ValueError, match=r"weights has shape \(1, 4, 1\) and x \(3, 4, 5\); pass weights of the shape"
        ):
            function(x, 2, weights=w)


def layouts(a: Any) -> dict[str, Any]:
    padded = np.zeros((a.shape[0] + 1, 2 * a.shape[1]), a.dtype)
    padded[:-1, ::2] = a
    unaligned = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    unaligned[...] = a
    return {
        "contiguous": a, "by columns": np.asfortranarray(a), "with gaps": padded[:-1, ::2],
        "reversed": a[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": unaligned, "swapped": a if a.dtype.name == "bfloat16" else a.astype(a.dtype.newbyteorder()),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_layout_in_memory_changes_no_bit(dtype: str) -> None:
    rng = np.random.default_rng(10)
    x, w = numbers(rng, (6, 10), dtype), abs(numbers(rng, (6, 10), dtype))
    for axis in (None, 0, 1):
        for name in ("sum", "mean", "var", "average"):
            function = getattr(samesum, name)
            value = function(x, axis, weights=w)
            for layout, a in layouts(x).items():
                for b in layouts(w).values():
                    assert same(function(a, axis, weights=b), value), (name, layout)


@pytest.mark.parametrize("integer", ["bool", "int8", "uint16", "int32", "int64", "uint64"])
def test_integers_are_numbers_of_fp64(integer: str) -> None:
    rng = np.random.default_rng(11)
    x, w = rng.standard_normal(20), rng.integers(0, 2, 20).astype(integer)
    for name in ("sum", "mean", "var", "average"):
        function = getattr(samesum, name)
        assert same(function(x, weights=w), function(x, weights=w.astype(float)))
        assert same(function(w, weights=abs(x)), function(w.astype(float), weights=abs(x)))
        assert same(function(w, weights=w), function(w.astype(float), weights=w.astype(float)))
    assert samesum.mean(x.astype(np.float32), weights=w).dtype == np.float64


@pytest.mark.parametrize("of_w", DTYPES)
@pytest.mark.parametrize("of_x", DTYPES)
def test_a_result_has_the_widest_format_and_no_input_is_rounded(of_x: str, of_w: str) -> None:
    rng = np.random.default_rng(12)
    x, w = numbers(rng, 30, of_x, 3), abs(numbers(rng, 30, of_w, 3))
    widest = "float32" if {of_x, of_w} == {"float16", "bfloat16"} else max(of_x, of_w, key=DTYPES.index)
    mean, variance = samesum.mean(x, weights=w), samesum.var(x, weights=w)
    assert mean.dtype == variance.dtype == dtype_of(widest)
    assert [float(mean)] == expected(mean_of, x, w, 0, widest)
    assert [float(variance)] == expected(variance_of, x, w, 0, widest, 0)


def test_dtype_method_and_out_are_those_of_the_unweighted_functions() -> None:
    rng = np.random.default_rng(13)
    x, w = rng.standard_normal((4, 5)), rng.random((4, 5))
    narrow = samesum.mean(x, 1, weights=w, dtype="float32")
    assert same(narrow, samesum.mean(x.astype(np.float32), 1, weights=w.astype(np.float32)))
    assert as_list(samesum.mean(x, 1, weights=w, method="exact/fp16")) == expected(mean_of, x, w, 1, "float16")
    assert same(samesum.var(x, 1, weights=w, method="moments/exact"), samesum.var(x, 1, weights=w, method="exact"))
    for name in ("sum", "mean", "var", "std"):
        function, out = getattr(samesum, name), np.empty(4)
        assert function(x, 1, weights=w, out=out) is out and same(out, function(x, 1, weights=w))
        with pytest.raises(ValueError, match="out has shape"):
            function(x, 0, weights=w, out=out)


@pytest.mark.parametrize(
    "method", ["tree", "tree/kahan", "pairwise/plain", "fixed_point", "exact", "dot/tree/double_word"]
)
def test_a_sum_by_another_method_is_its_dot_product(method: str) -> None:
    rng = np.random.default_rng(14)
    x, w = rng.standard_normal((4, 500)), rng.random(500)
    assert same(samesum.sum(x, 1, weights=w, method=method), samesum.vecdot(x, w, method=method))
    assert same(samesum.sum(x, 0, weights=w[:4], method=method), samesum.vecdot(x, w[:4], axis=0, method=method))
    if method == "fixed_point":
        assert same(
            samesum.sum(x, 1, weights=w, method=method, grid=-20), samesum.vecdot(x, w, method=method, grid=-20)
        )


def test_pandas_lists_and_buffers() -> None:
    pandas = pytest.importorskip("pandas")
    x, w = [1.5, 2.5, -4.0], [1, 2, 3]
    frame = pandas.DataFrame({"x": x, "w": w})
    for name in ("sum", "mean", "var", "std", "average"):
        function = getattr(samesum, name)
        value = function(np.array(x), weights=np.array(w))
        assert same(function(frame["x"], weights=frame["w"]), value)
        with pytest.raises(TypeError, match="x is a frame; pass one of its columns"):
            function(frame, weights=frame["w"])
        found = function(x, weights=w)
        assert type(found) is float and found == value
        assert same(function(memoryview(np.array(x)), weights=w), value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(15)
    x, w = (torch.tensor(rng.random((3, 4))).to(getattr(torch, dtype)) for _ in range(2))
    a, b = (t.to(torch.float64).numpy().astype(dtype_of(dtype)) for t in (x, w))
    for name in ("sum", "mean", "var", "std", "average"):
        function = getattr(samesum, name)
        for axis in (None, 0, 1):
            result = function(x.T, axis, weights=w.T)
            assert isinstance(result, torch.Tensor) and result.dtype == x.dtype
            assert same(result.to(torch.float64), function(a.T, axis, weights=b.T).astype(np.float64))
        assert same(
            function(x, 0, weights=b[:, 0].tolist()).to(torch.float64), function(a, 0, weights=b[:, 0].tolist())
        )
    if dtype == "float64":
        extremes = x * torch.tensor([1e150, 1e-300, 1.0, 0.0], dtype=x.dtype)
        assert samesum.var(extremes, weights=w) == samesum.var(extremes.numpy(), weights=b)


def test_gradients_of_pytorch_go_through_sums_alone() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 5.0])
    samesum.sum(x, weights=w).backward()
    assert x.grad.tolist() == [3.0, 5.0]
    for name in ("mean", "var", "std", "average"):
        with pytest.raises(NotImplementedError, match=r"has no gradient.*pass x.detach\(\)"):
            getattr(samesum, name)(x, weights=w)
        with pytest.raises(NotImplementedError, match=r"pass weights.detach\(\)"):
            getattr(samesum, name)(w, weights=x)


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.array([1.0, 2.0, 4.0]), jax.numpy.array([2.0, 1.0, 1.0])
    for name in ("sum", "mean", "var", "average"):
        function = getattr(samesum, name)
        result = function(x, weights=w)
        assert isinstance(result, jax.Array) and same(
            np.asarray(result), function(np.asarray(x), weights=np.asarray(w))
        )
    with pytest.raises(NotImplementedError, match="not traced"):
        jax.jit(lambda a: samesum.mean(a, weights=w))(x)


# --- elements that take no part -------------------------------------------------------------------------------


def test_elements_that_take_no_part_are_as_if_absent() -> None:
    rng = np.random.default_rng(16)
    x, w = numbers(rng, (5, 40), "float32"), rng.random((5, 40)).astype(np.float32)
    where = rng.random((5, 40)) < 0.6
    where[3] = False
    for name in ("sum", "mean", "var", "std"):
        function = getattr(samesum, name)
        packed = [function(a[m], weights=b[m]) for a, b, m in zip(x, w, where)]
        for hole in (0.0, -1.0, math.nan, math.inf):
            a, b = np.where(where, x, np.float32(hole)), np.where(where, w, np.float32(hole))
            assert same(function(a, 1, weights=b, where=where), np.array(packed))
        a = np.where(where, x, np.float32(math.nan))
        assert same(function(a, 1, weights=w, skipna=True), np.array(packed))
        assert same(getattr(samesum, f"nan{name}")(a, 1, weights=w), np.array(packed))
        assert same(function(np.ma.array(x, mask=~where), 1, weights=w), np.array(packed))
    assert math.isnan(packed[3]) and same(samesum.mean([-0.0, 5.0], weights=[1, 1], where=[True, False]), -0.0)
    with pytest.raises(ZeroDivisionError):
        samesum.mean([1.0, 2.0], weights=[0, 1], where=[True, False])


# --- average --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_average_has_the_arguments_and_results_of_numpys(axis: Any) -> None:
    rng = np.random.default_rng(17)
    x, w = rng.standard_normal((4, 6)), rng.standard_normal((4, 6))
    assert same(samesum.average(x, axis), samesum.mean(x, axis)) and same(
        samesum.average(x, axis, w), samesum.mean(x, axis, weights=w)
    )
    for weights in (None, w):
        for keepdims in (False, True):
            found = samesum.average(x, axis, weights, True, keepdims=keepdims)
            theirs = np.average(x, axis, weights, True, keepdims=keepdims)
            assert isinstance(found, tuple)
            for a, b in zip(found, theirs):
                assert np.shape(a) == np.shape(b) and a.dtype == b.dtype and a == pytest.approx(b, rel=1e-9)
    assert same(samesum.average(x, axis, w, True)[1], samesum.sum(w, axis))
    assert list(inspect.signature(samesum.average).parameters)[1:5] == ["axis", "weights", "returned", "keepdims"]


def test_average_counts_without_weights_even_where_the_mean_is_nan() -> None:
    assert samesum.average([math.nan, 1.0], returned=True)[1] == 2.0
    assert samesum.average(np.ones((2, 3), np.float32), axis=1, returned=True)[1].tolist() == [3.0, 3.0]
    torch = pytest.importorskip("torch")
    mean, count = samesum.average(torch.ones(2, 3), axis=0, returned=True)
    assert mean.tolist() == [1.0, 1.0, 1.0] and count.tolist() == [2.0, 2.0, 2.0]


def test_average_leaves_out_what_takes_no_part() -> None:
    for n in (2, 15, 16, 100):
        assert same(samesum.average(np.ones(n), weights=np.ones(n), returned=True, where=False)[1], 0.0), n
    rng = np.random.default_rng(18)
    x, w, where = rng.standard_normal((3, 20)), rng.random((3, 20)), rng.random((3, 20)) < 0.5
    where[2] = False
    spoilt = np.where(where, x, math.nan)
    for weights in (None, w):
        packed = [
            samesum.average(a[m], None, b[m] if weights is not None else None, True) for a, b, m in zip(x, w, where)
        ]
        for a, options in (
            (x, {"where": where}), (spoilt, {"skipna": True}), (np.ma.array(spoilt, mask=~where), {}),
            (spoilt, {"where": where}),
        ):  # fmt: skip
            mean, total = samesum.average(a, 1, weights, True, **options)
            assert same(mean, np.array([m for m, _ in packed])) and same(total, np.array([t for _, t in packed]))
            assert same(samesum.average(a, 1, weights, **options), mean)
            assert samesum.average(a, 1, weights, True, keepdims=True, **options)[1].shape == (3, 1)
    assert samesum.average([1.0, math.nan], returned=True, skipna=True) == (1.0, 1.0)
    column = pytest.importorskip("pandas").array([1.0, None, 3.0], "Float64")
    assert samesum.average(column, returned=True) == (2.0, 2.0)


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: samesum.mean([1.0, 2.0], weights=[1, -1]),
            ZeroDivisionError, "weights sum to zero.*pass weights with",
        ),
        (lambda: samesum.var([1.0], weights=[0.0]), ZeroDivisionError, "weights sum to zero"),
        (
            lambda: samesum.var([1.0, 2.0], weights=[3, -1]),
            ValueError, "weights has negative numbers; pass weights of 0",
        ),
        (lambda: samesum.std([1.0, 2.0], weights=[3, -1]), ValueError, "weights has negative numbers"),
        (
            lambda: samesum.var([1.0], weights=[1], weights_are="aweights"),
            ValueError, "weights_are is 'aweights'; use 'frequencies'",
        ),
        (
            lambda: samesum.var([1.0], weights_are="aweights"),
            ValueError, "weights_are is 'aweights'; use 'frequencies'",
        ),
        (
            lambda: samesum.std([1.0], weights_are="aweights"),
            ValueError, "weights_are is 'aweights'; use 'frequencies'",
        ),
        (lambda: samesum.var([1.0], weights=[1], correction=-1), ValueError, "correction is -1.0; it must be"),
        (lambda: samesum.var([1.0], weights=[1], correction=math.nan), ValueError, "correction is nan; it must be"),
        (
            lambda: samesum.mean([1.0, 2.0], weights=[1, 2, 3]),
            ValueError, r"weights has shape \(3,\) and x \(2,\); pass",
        ),
        (
            lambda: samesum.sum([1.0, 2.0], weights=2.0),
            ValueError, r"weights has shape \(\) and x \(2,\); pass weights of",
        ),
        (
            lambda: samesum.mean(np.ones((2, 3)), 1, weights=[1, 2]),
            ValueError, r"or of the shape \(3,\): one for each index along axis 1",
        ),
        (lambda: samesum.average([1.0], 1, [1]), IndexError, "axis 1 is out of range"),
        (lambda: samesum.mean([1.0], weights=["a"]), TypeError, "weights has texts"),
        (lambda: samesum.var([1.0], weights=[1j]), TypeError, "weights has elements of type complex128"),
        (lambda: samesum.mean([1.0], weights=np.ma.array([1.0], mask=[True])), TypeError, "weights is a masked array"),
        (
            lambda: samesum.mean([1.0], weights=[1], method="tree"),
            ValueError, "mean/tree/plain/fp64@cpu takes no weights",
        ),
        (
            lambda: samesum.var([1.0], weights=[1], method="tree"),
            ValueError, "takes no weights; leave it out or pass 'exact'",
        ),
        (lambda: samesum.sum([1.0], weights=[1], method="sum/tree/plain"), ValueError, "computes sum, not dot"),
        (lambda: samesum.mean([1.0], weights=[1], grid=3), ValueError, "exact methods, which take no grid"),
        (lambda: samesum.mean([1.0], weights=[1], threads=-1), ValueError, "threads is -1"),
    ],
)  # fmt: skip
def test_an_error_names_the_argument_and_the_remedy(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
