"""Covariance, correlation and linear regression: correctly rounded, for every type, axis and library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from exact_statistics import DTYPES, dtype_of, fractions, is_nearest_root, nearest, numbers, rows_of, same  # noqa: E402

import samesum  # noqa: E402


def moment(x: list[Fraction], y: list[Fraction], w: list[Fraction]) -> Fraction:
    """Returns Σw(x - mean)(y - mean)."""
    total = sum(w)
    of_x, of_y = (sum(a * b for a, b in zip(v, w)) / total for v in (x, y))
    return sum(c * (a - of_x) * (b - of_y) for a, b, c in zip(x, y, w))


def covariance(x: Any, y: Any, w: Any, correction: Fraction, are: str = "frequencies") -> Fraction:
    lost = correction if are == "frequencies" else correction * sum(a * a for a in w) / sum(w)
    return moment(x, y, w) / (sum(w) - lost)


def line(x: Any, y: Any, w: Any) -> tuple[Fraction, Fraction]:
    slope = moment(x, y, w) / moment(x, x, w)
    return slope, (sum(b * c for b, c in zip(y, w)) - slope * sum(a * c for a, c in zip(x, w))) / sum(w)


def ones(n: int) -> list[Fraction]:
    return [Fraction(1)] * n


# --- covariance -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("correction", [0, 1, 2.5])
def test_a_covariance_is_the_exact_one_rounded_once(dtype: str, correction: float) -> None:
    rng = np.random.default_rng(1)
    x, y = numbers(rng, (3, 9), dtype, 4), numbers(rng, (2, 9), dtype, 4)
    rows = [*rows_of(x, 1), *rows_of(y, 1)]
    expected = [[nearest(covariance(a, b, ones(9), Fraction(correction)), dtype) for a in rows] for b in rows]
    found = samesum.cov(x, y, correction=correction)
    assert found.dtype == x.dtype and found.astype(float).tolist() == expected
    assert same(samesum.cov(x.T, y.T, axis=0, ddof=correction), found)
    assert same(samesum.cov(np.concatenate([x, y]), ddof=correction), found)
    assert same(samesum.cov(x[0], y[0], ddof=correction), found[[0, 3]][:, [0, 3]])
    assert same(samesum.cov(x, y[0], ddof=correction), found[:4, :4])
    assert same(samesum.cov(x[1], ddof=correction), found[1, 1])


@pytest.mark.parametrize("are", ["frequencies", "reliabilities"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_of_a_covariance_are_those_of_numpy(dtype: str, are: str) -> None:
    rng = np.random.default_rng(2)
    x, w = numbers(rng, (3, 20), dtype, 1), rng.integers(0, 6, 20)
    rows, weights = rows_of(x, 1), fractions(w)
    found = samesum.cov(x.astype(np.float64), weights=w, weights_are=are)
    assert found.tolist() == [[nearest(covariance(a, b, weights, 1, are), "float64") for a in rows] for b in rows]
    name = {"frequencies": "fweights", "reliabilities": "aweights"}[are]
    assert found == pytest.approx(np.cov(x.astype(np.float64), **{name: w}), rel=1e-10)
    narrow = samesum.cov(x, weights=w.astype(x.dtype), weights_are=are)
    assert narrow.astype(float).tolist() == [
        [nearest(covariance(a, b, weights, 1, are), dtype) for a in rows] for b in rows
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_diagonal_has_the_bits_of_the_variance(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, w = numbers(rng, (4, 200), dtype, 3), abs(numbers(rng, 200, dtype, 3))
    assert same(np.diag(samesum.cov(x)), samesum.var(x, 1, correction=1))
    assert same(np.diag(samesum.cov(x, correction=0)), samesum.var(x, 1))
    for are in ("frequencies", "reliabilities"):
        options = {"weights": w, "correction": 1, "weights_are": are}
        assert same(np.diag(samesum.cov(x, **options)), samesum.var(x, 1, **options))


def test_large_means_cost_no_accuracy() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-1000, 1000, (3, 500)).astype(float)
    assert same(samesum.cov(x + 2.0**52), samesum.cov(x))
    assert same(samesum.corrcoef(x + 2.0**52), samesum.corrcoef(x))


def test_the_order_of_observations_and_the_threads_change_no_bit() -> None:
    rng = np.random.default_rng(5)
    x, w = numbers(rng, (2, 70_000), "float64", 300), rng.random(70_000)
    order = rng.permutation(70_000)
    for function in (samesum.cov, samesum.corrcoef, lambda a, **options: samesum.linear_regression(*a, **options)):
        for options in ({}, {"weights": w}):
            permuted = {name: a[order] for name, a in options.items()}
            assert same(function(x, **options), function(x[:, order], threads=3, **permuted))


@pytest.mark.parametrize("power", [-1060, -600, 0, 600, 1020])
def test_products_neither_overflow_nor_underflow(power: int) -> None:
    rng = np.random.default_rng(6)
    x = np.ldexp(rng.standard_normal((2, 10)), power)
    y, w = rng.standard_normal(10) * 2.0 ** rng.integers(-1000, 1000, 10), 2.0 ** rng.integers(-1000, 1000, 10)
    rows, weights = [*rows_of(x, 1), fractions(y)], fractions(w)
    expected = [[nearest(covariance(a, b, weights, 0), "float64") for a in rows] for b in rows]
    assert samesum.cov(x, y, weights=w, correction=0).tolist() == expected
    assert samesum.linear_regression(x, y, weights=w).slope.tolist() == [
        nearest(line(row, rows[2], weights)[0], "float64") for row in rows[:2]
    ]
    assert abs(samesum.corrcoef(x)[0, 1]) < 1


# --- correlation ----------------------------------------------------------------------------------------------


def check_correlations(found: Any, rows: list[list[Fraction]], weights: list[Fraction], dtype: str) -> None:
    for i, x in enumerate(rows):
        for j, y in enumerate(rows):
            r, variances = float(found[i, j]), moment(x, x, weights) * moment(y, y, weights)
            exact = moment(x, y, weights)
            if variances == 0:
                assert math.isnan(r)
            elif exact == 0:
                assert same(r, 0.0)
            else:
                assert (r > 0) == (exact > 0) and is_nearest_root(abs(r), exact**2 / variances, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_correlation_is_the_exact_one_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(10):
        x, w = numbers(rng, (4, 8), dtype, 2), abs(numbers(rng, 8, dtype, 2))
        check_correlations(samesum.corrcoef(x), rows_of(x, 1), ones(8), dtype)
        check_correlations(samesum.corrcoef(x.T, weights=w, axis=0), rows_of(x, 1), fractions(w), dtype)
        assert samesum.corrcoef(x).dtype == x.dtype
        assert same(np.diag(samesum.corrcoef(x)), np.ones(4, x.dtype))


SMALL = st.integers(-4, 4).map(float)


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=6))
def test_correlations_of_small_integers_hit_ties_and_roots_that_are_exact(pairs: list[tuple[float, float]]) -> None:
    x = np.array(pairs).T
    for dtype in ("float16", "float64"):
        check_correlations(samesum.corrcoef(x, dtype=dtype), rows_of(x, 1), ones(len(pairs)), dtype)


def test_variables_on_a_line_have_the_correlation_one() -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal(1000)
    for factor in (1.0, 3.0, 1e-300, -1.0, -0.1):
        y = rng.integers(-(2**20), 2**20, 1000) * 2.0**-20
        assert samesum.corrcoef(y, 4.0 * math.copysign(1, factor) * y + 1)[0, 1] == math.copysign(1, factor)
        assert abs(samesum.corrcoef(x, factor * x)[0, 1]) <= 1


def test_a_constant_variable_has_no_correlation() -> None:
    r = samesum.corrcoef([[1.0, 2.0, 3.0], [0.1, 0.1, 0.1]])
    assert r[0, 0] == 1 and np.isnan(r).tolist() == [[False, True], [True, True]]
    assert same(samesum.corrcoef([1.0, 5.0]), 1.0) and math.isnan(samesum.corrcoef([3.0]))


# --- regression -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
@pytest.mark.parametrize("dtype", DTYPES)
def test_slope_and_intercept_are_the_exact_ones_rounded_once(dtype: str, axis: Any) -> None:
    rng = np.random.default_rng(9)
    x, y = numbers(rng, (3, 4, 5), dtype, 3), numbers(rng, (3, 4, 5), dtype, 3)
    w = abs(numbers(rng, (3, 4, 5), dtype, 3))
    for weights in (None, w):
        found = samesum.linear_regression(x, y, axis=axis, weights=weights)
        of_w = rows_of(np.ones_like(w) if weights is None else w, axis)
        lines = [line(a, b, c) for a, b, c in zip(rows_of(x, axis), rows_of(y, axis), of_w)]
        for result, exact in zip(found, zip(*lines)):
            assert result.dtype == x.dtype and result.shape == np.sum(x, axis).shape
            assert np.ravel(result).astype(float).tolist() == [nearest(v, dtype) for v in exact]


def test_a_line_through_points_on_it_is_found() -> None:
    x = np.arange(100.0)
    assert samesum.linear_regression(x, 3 * x - 7) == samesum.LinearRegression(slope=3.0, intercept=-7.0)
    assert samesum.linear_regression(x + 2.0**50, 3 * x - 7).intercept == -3 * 2.0**50 - 7
    slope, intercept = samesum.linear_regression(x, np.stack([x, 2 - x]))
    assert slope.tolist() == [1.0, -1.0] and intercept.tolist() == [0.0, 2.0]
    found = samesum.linear_regression(x, x**2)
    assert found == pytest.approx(np.polyfit(x, x**2, 1), rel=1e-12)


def test_other_axes_are_broadcast_and_weights_along_the_axis() -> None:
    rng = np.random.default_rng(10)
    x, y, w = rng.standard_normal(6), rng.standard_normal((2, 3, 6)), rng.random(6)
    found = samesum.linear_regression(x, y, weights=w)
    whole = samesum.linear_regression(np.tile(x, (2, 3, 1)), y, weights=np.tile(w, (2, 3, 1)))
    assert found.slope.shape == (2, 3) and all(map(same, found, whole))
    down = samesum.linear_regression(x, np.moveaxis(y, -1, 0), axis=0, weights=w)
    assert all(map(same, down, found))
    one = samesum.linear_regression(y[1, 2], x)
    assert all(map(same, one, [a[1, 2] for a in samesum.linear_regression(y, x)]))


def test_points_without_a_line_have_none() -> None:
    for x, y in (([], []), ([1.0], [2.0]), ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]), ([0.1] * 10, range(10))):
        assert all(map(math.isnan, samesum.linear_regression(x, y)))


# --- elements that take no part -------------------------------------------------------------------------------


def spoilt(x: Any, takes: Any) -> dict[str, Any]:
    """Variables whose elements take part where `takes` says so, in three ways, and the argument that tells it."""
    nan = np.where(takes, x, np.asarray(math.nan, x.dtype))
    return {
        "skipna": (nan, {"skipna": True}),
        "where": (nan, {"where": takes}),
        "mask": (np.ma.array(x, mask=~takes), {}),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_an_entry_is_that_of_the_observations_of_both_variables(dtype: str, weighted: bool) -> None:
    rng = np.random.default_rng(20)
    x, takes = numbers(rng, (4, 30), dtype, 3), rng.random((4, 30)) < 0.7
    takes[3] = False
    w = abs(numbers(rng, 30, "float32", 3)) if weighted else None
    calls = [(samesum.cov, {}), (samesum.cov, {"ddof": 0, "weights_are": "reliabilities"}), (samesum.corrcoef, {})]
    for function, options in calls:
        expected = np.empty((4, 4), np.result_type(x, np.float16 if w is None else w))
        for i, j in np.ndindex(4, 4):
            both = takes[i] & takes[j]
            given = {} if w is None else {"weights": w[both]}
            expected[i, j] = function(x[i][both], x[j][both], **given, **options)[0, 1]
        for a, told in spoilt(x, takes).values():
            found = function(a, weights=w, **told, **options)
            assert same(found, expected)
            told = {name: v.T if name == "where" else v for name, v in told.items()}
            assert same(function(a.T, axis=0, weights=w, **told, **options), expected)
        for name in ("skipna", "mask"):
            a, told = spoilt(x, takes)[name]
            assert same(function(a[:2], a[2:], weights=w, **told, **options), expected)
            assert same(function(a[1], weights=w, **told, **options), expected[1, 1])


def test_observations_may_be_left_out_of_all_variables() -> None:
    rng = np.random.default_rng(21)
    x, y, w, where = rng.standard_normal((3, 40)), rng.standard_normal(40), rng.random(40), rng.random(40) < 0.5
    assert same(samesum.cov(x, y, weights=w, where=where), samesum.cov(x[:, where], y[where], weights=w[where]))
    assert same(samesum.corrcoef(x.T, y, axis=0, where=where), samesum.corrcoef(x[:, where], y[where]))
    hole = np.where(where, w, math.nan)
    assert same(samesum.cov(x, weights=hole, skipna=True), samesum.cov(x[:, where], weights=w[where]))
    assert same(
        samesum.linear_regression(x[0], y, weights=hole, skipna=True).slope,
        samesum.linear_regression(x[0][where], y[where], weights=w[where]).slope,
    )
    assert np.isnan(samesum.cov(x, where=np.zeros(40, bool))).all() and samesum.cov(x, where=True).shape == (3, 3)
    assert same(samesum.cov(x, where=np.ones(40, bool)), samesum.cov(x)) and same(
        samesum.cov(x, skipna=True), samesum.cov(x)
    )
    for call, error, message in (
        (
            lambda: samesum.cov(x, y, where=np.ones((3, 40), bool)),
            ValueError, "where has 2 axes or more; with y, pass one flag",
        ),
        (
            lambda: samesum.cov(x, where=np.ones(3, bool)),
            ValueError, r"where has shape \(3,\); pass one flag for each of the 40 observations",
        ),
        (lambda: samesum.cov(x, where=np.ones(40)), TypeError, "where has elements of type float64; pass booleans"),
        (lambda: samesum.cov(x, where=np.ma.array(where)), TypeError, "where is a masked array"),
        (lambda: samesum.cov(x, y[:9], skipna=True), ValueError, "x has 40 observations and y 9"),
        (lambda: samesum.cov(x, weights=w[:9], skipna=True), ValueError, r"weights has shape \(9,\); pass one weight"),
        (
            lambda: samesum.cov(x, weights=np.where(where, 0.0, 1.0), where=where),
            ZeroDivisionError, "weights sum to zero",
        ),
        (
            lambda: samesum.cov(x, weights=np.where(where, -1.0, 1.0), where=where),
            ValueError, "weights has negative numbers",
        ),
        (
            lambda: samesum.cov(x, weights=np.ma.array(w)),
            TypeError, r"weights is a masked array; pass weights.filled\(0\)",
        ),
        (
            lambda: samesum.linear_regression(y, y, weights=np.where(where, 0.0, 1.0), where=where),
            ZeroDivisionError, "weights sum",
        ),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()
    hidden = np.ma.array(y, mask=~where), np.ma.array(x, mask=[[False] * 40, ~where, where])
    lines = [samesum.linear_regression(y[t], x[k][t]).slope for k, t in enumerate((where, where, np.zeros(40, bool)))]
    assert same(samesum.linear_regression(*hidden).slope, np.array(lines))
    assert same(
        samesum.linear_regression(hidden[0], x.T, axis=0).slope, samesum.linear_regression(y[where], x[:, where]).slope
    )
    assert same(
        samesum.cov(x, weights=np.where(where, w, -1.0), where=where), samesum.cov(x[:, where], weights=w[where])
    )


@pytest.mark.parametrize("axis", [1, 0, None, (0, 1)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_lines_go_through_the_pairs_that_take_part(dtype: str, axis: Any) -> None:
    rng = np.random.default_rng(22)
    x, y, w = numbers(rng, (6, 9), dtype, 3), numbers(rng, (6, 9), "float32", 3), abs(numbers(rng, (6, 9), dtype, 2))
    takes = rng.random((6, 9)) < 0.6
    takes[2] = False
    for weights in (None, w):
        rows = [a.reshape(-1, 54) if axis in (None, (0, 1)) else np.moveaxis(a, axis, -1) for a in (x, y, takes, w)]
        packed = [
            samesum.linear_regression(a[t], b[t], weights=None if weights is None else c[t])
            for a, b, t, c in zip(*rows)
        ]
        for a, told in spoilt(x, takes).values():
            found = samesum.linear_regression(a, y, axis=axis, weights=weights, **told)
            for result, expected in zip(found, zip(*packed)):
                assert same(np.ravel(result), np.array(expected))
    nan = np.where(takes, y, np.float32(math.nan))
    assert all(
        map(
            same,
            samesum.linear_regression(x, nan, axis=axis, skipna=True),
            samesum.linear_regression(x, y, axis=axis, where=takes),
        )
    )


ELEMENT = st.one_of(st.integers(-9, 9).map(lambda i: i / 4), st.sampled_from([math.nan, -0.0]))


@given(st.lists(st.tuples(ELEMENT, ELEMENT, st.integers(0, 2), st.booleans()), max_size=8))
def test_results_without_what_is_missing_agree_with_fractions(rows: list[tuple[float, float, int, bool]]) -> None:
    x, y, w, where = (np.array([row[i] for row in rows], t) for i, t in enumerate((float, float, float, bool)))
    kept = [(Fraction(a), Fraction(b), Fraction(c)) for a, b, c, m in rows if m and a == a and b == b]
    options = {"weights": w, "where": where, "skipna": True}
    of_x = [(a, c) for a, _, c, m in rows if m and a == a]
    of_y = [(b, c) for _, b, c, m in rows if m and b == b]
    if any(group and not sum(row[-1] for row in group) for group in (kept, of_x, of_y)):
        with pytest.raises(ZeroDivisionError):
            samesum.cov(x, y, ddof=0, **options)
        return
    found, lines = samesum.cov(x, y, ddof=0, **options), samesum.linear_regression(x, y, **options)
    if not kept:
        assert math.isnan(found[0, 1]) and all(map(math.isnan, lines))
        return
    xs, ys, ws = zip(*kept)
    assert found[0, 1] == found[1, 0] == nearest(covariance(xs, ys, ws, Fraction(0)), "float64")
    if moment(xs, xs, ws):
        assert [*lines] == [nearest(v, "float64") for v in line(xs, ys, ws)]
    else:
        assert all(map(math.isnan, lines))


def test_pairs_of_frames_leave_out_nulls() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"a": [1.0, 2.0, math.nan, 4.0], "b": [2.0, 3.0, 9.0, 7.0], "c": [1.0, math.nan, 2.0, 5.0]}
    )
    assert samesum.cov(frame, axis=0, skipna=True) == pytest.approx(frame.cov().to_numpy())
    assert samesum.corrcoef(frame, axis=0, skipna=True) == pytest.approx(frame.corr().to_numpy())
    column = pandas.array([1.0, 2.0, None, 4.0], "Float64")
    assert samesum.cov(column, frame["b"])[0, 1] == samesum.cov([1.0, 2.0, 4.0], [2.0, 3.0, 7.0])[0, 1]
    assert samesum.linear_regression(frame["b"], column) == samesum.linear_regression([2.0, 3.0, 7.0], [1.0, 2.0, 4.0])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_needs_to_say_whether_its_variables_are_rows(library: str) -> None:
    module = pytest.importorskip(library)
    data = {"a": [1.0, 2.0, 4.0], "b": [2.0, 3.0, 9.0]}
    frame = (module.table if library == "pyarrow" else module.DataFrame)(data)
    matrix = np.array([*data.values()])
    for function in (samesum.cov, samesum.corrcoef):
        expected = function(matrix)
        for options in ({"rowvar": False}, {"axis": 0}, {"axis": 0, "rowvar": False}):
            assert same(function(frame, **options), expected)
        for options in ({"rowvar": True}, {"axis": 1}, {"axis": -1, "rowvar": True}):
            assert same(function(frame, **options), function(matrix.T))
        assert same(function(frame, [5.0, 1.0, 2.0], rowvar=False), function(matrix, [5.0, 1.0, 2.0]))
        for call, name in ((lambda: function(frame), "x"), (lambda: function([5.0, 1.0], frame, skipna=True), "y")):
            with pytest.raises(
                TypeError, match=f"{function.__name__}: {name} is a frame; pass rowvar=False if its col"
            ):
                call()
        column = frame["a"]
        assert same(function(column, column), function(data["a"], data["a"]))
    with pytest.raises(TypeError, match="linear_regression: x is a frame; pass axis=0 for a line for each column, or"):
        samesum.linear_regression(frame, frame)
    assert samesum.linear_regression(frame, matrix.T, axis=0).slope.tolist() == [1, 1]


def test_rowvar_says_what_axis_says_for_arrays() -> None:
    x = np.array(rows_of_numbers := [[1.0, 2.0, 4.0], [3.0, 1.0, 9.0]])
    for function in (samesum.cov, samesum.corrcoef):
        for a in (x, rows_of_numbers):
            assert same(function(a, rowvar=False), function(a, axis=0)) and same(function(a, rowvar=True), function(a))
        assert same(function(x, rowvar=False, skipna=True), function(x.T)) and function(x, rowvar=False).shape == (3, 3)
        assert same(function([1.0, 2.0], [3.0, 5.0], rowvar=False), function([1.0, 2.0], [3.0, 5.0]))
        for axis, rowvar in ((0, True), (-2, True), (1, False), (-1, False)):
            with pytest.raises(
                ValueError, match=f"axis is {axis} and rowvar {rowvar}; axis, of the observations, is 0"
            ):
                function(x, axis=axis, rowvar=rowvar)


def test_all_pairs_of_variables_and_all_groups_of_a_size_take_one_call(monkeypatch: Any) -> None:
    calls, function = [], samesum._core.statistics
    monkeypatch.setattr(
        samesum._core, "statistics", lambda call: calls.append((call.operation, call.x.shape)) or function(call)
    )
    x = np.where(np.arange(240.0).reshape(12, 20) % 7 == 0, math.nan, np.sin(np.arange(240.0)).reshape(12, 20))
    samesum.corrcoef(x, skipna=True)
    assert calls == [("correlation_matrix", (12, 20))]
    samesum.cov(np.where(np.isnan(x).any(0), math.nan, x), skipna=True)  # of which all have the same observations
    assert calls[1:] == [("covariance_matrix", (12, int((~np.isnan(x).any(0)).sum())))]
    groups = samesum.groupby(np.arange(3000) % 1499)  # two of three rows, the others of two
    samesum.groupby(np.arange(3000) % 1499).cov(np.arange(3000.0), np.arange(3000.0) ** 0.5)
    groups.corrcoef(np.arange(3000.0), np.arange(3000.0) ** 0.5)
    assert calls[2:] == [(name, shape) for name in ("covariance", "correlation") for shape in ((1497, 2), (2, 3))]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_special_numbers_and_weights_of_pairs_are_those_of_the_observations_of_both(dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((5, 40)) * 2.0 ** rng.integers(-8, 8, (5, 40))).astype(dtype)
    x[rng.random(x.shape) < 0.3] = math.nan
    x[3, 4], x[4, :] = math.inf, math.nan  # which spoils its variable, and a variable without observations
    w = rng.integers(0, 4, 40).astype(dtype)
    w[np.isnan(x[0])] = -1  # not for the pairs of the first variable
    for function in (samesum.cov, samesum.corrcoef):
        for weights in (None, np.abs(w)):
            found = function(x, weights=weights, skipna=True)
            for i in range(5):
                for k in range(5):
                    both = ~np.isnan(x[i]) & ~np.isnan(x[k])
                    some = None if weights is None else weights[both]
                    assert same(found[i, k], function(x[i, both], x[k, both], weights=some)[0, 1])
        with pytest.raises(ValueError, match="weights has negative numbers"):
            function(x, weights=w, skipna=True)
        assert same(function(x[:1], weights=w, skipna=True), function(x[0, w >= 0], weights=w[w >= 0]))
    with pytest.raises(ZeroDivisionError, match="weights sum to zero"):
        samesum.cov([[1.0, math.nan, 2.0], [math.nan, 1.0, 2.0]], weights=[1, 1, 0], skipna=True)


def test_pairs_of_tensors_take_masks() -> None:
    torch = pytest.importorskip("torch")
    x, where = torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, math.nan]]), torch.tensor([True, True, False])
    assert samesum.cov(x, where=where).tolist() == samesum.cov(x[:, :2]).tolist()
    assert samesum.cov(x, skipna=True)[0, 1] == samesum.cov(x[:, :2])[0, 1]
    assert samesum.linear_regression(x[0], x[1], skipna=True).slope == -2.0


# --- special numbers, types and libraries ---------------------------------------------------------------------


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_a_special_number_spoils_the_results_of_its_variable_alone(special: float) -> None:
    x = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    spoilt = x.copy()
    spoilt[1, 1] = special
    for function in (samesum.cov, samesum.corrcoef):
        for options in ({}, {"weights": [1, 2, 3]}):
            found, others = function(spoilt, **options), function(x, **options)
            assert np.isnan(found[1]).all() and np.isnan(found[:, 1]).all()
            assert same(found[[0, 2]][:, [0, 2]], others[[0, 2]][:, [0, 2]])
        assert np.isnan(function(x, weights=[1, abs(special), 1])).all()
    for a, b in ((x, spoilt), (spoilt, x)):
        slope, intercept = samesum.linear_regression(a, b)
        assert np.isnan(slope).tolist() == np.isnan(intercept).tolist() == [False, True, False]


def test_few_observations() -> None:
    assert np.isnan(samesum.cov(np.ones((2, 1)))).all() and np.isnan(samesum.cov(np.ones((2, 0)))).all()
    assert samesum.cov(np.ones((2, 1)), correction=0).tolist() == [[0, 0], [0, 0]]
    assert samesum.cov(np.ones((0, 5))).shape == (0, 0)
    assert math.isnan(samesum.cov([1.0, 2.0], weights=[0.5, 0.25]))


def test_integers_mixed_types_and_results() -> None:
    pandas = pytest.importorskip("pandas")
    x, y = [1, 2, 5], [0.5, 1.5, -1.0]
    assert same(samesum.cov(x, y), samesum.cov(np.array(x, float), np.array(y)))
    assert same(samesum.cov(np.array(x, np.int8), np.array(y, np.float32)), samesum.cov(x, y))
    frame = pandas.DataFrame({"x": x, "y": y})
    for function in (samesum.cov, samesum.corrcoef):
        assert same(function(frame, axis=0), function(x, y)) and same(function(frame["x"], frame["y"]), function(x, y))
    assert same(samesum.linear_regression(frame["x"], frame["y"]), samesum.linear_regression(x, y))
    assert all(type(v) is float for v in samesum.linear_regression(x, y)) and type(samesum.cov(y)) is float
    assert samesum.linear_regression(np.array(x, np.float16), np.array(y, np.float32)).slope.dtype == np.float32
    assert samesum.cov(np.array(y), dtype="float16").dtype == np.float16
    for a in (np.asfortranarray(np.ones((2, 3)) * y), np.repeat(np.ones((2, 3)) * y, 2, 1)[:, ::2]):
        assert same(samesum.cov(a), samesum.cov(np.array([y, y])))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(np.random.default_rng(11).random((3, 7))).to(getattr(torch, dtype))
    a = x.to(torch.float64).numpy().astype(dtype_of(dtype))
    for function in (samesum.cov, samesum.corrcoef):
        found = function(x.T, axis=0, weights=x[0])
        assert isinstance(found, torch.Tensor) and found.dtype == x.dtype
        assert same(found.to(torch.float64), function(a, weights=a[0]).astype(np.float64))
    for found, expected in zip(samesum.linear_regression(x[0], x[1:]), samesum.linear_regression(a[0], a[1:])):
        assert isinstance(found, torch.Tensor) and same(found.to(torch.float64), expected.astype(np.float64))
    with pytest.raises(NotImplementedError, match="cov has no gradient"):
        samesum.cov(x.requires_grad_())


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    assert isinstance(samesum.cov(x), jax.Array) and same(np.asarray(samesum.cov(x)), samesum.cov(np.asarray(x)))
    assert isinstance(samesum.linear_regression(x[0], x[1]).slope, jax.Array)


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: samesum.cov(np.ones((2, 2, 2))),
            ValueError, "x has 3 axes; pass a vector, or a matrix with one variable",
        ),
        (lambda: samesum.cov(1.0), ValueError, "x has 0 axes; pass a vector"),
        (lambda: samesum.corrcoef([1.0], np.ones((2, 2, 1))), ValueError, "y has 3 axes; pass a vector"),
        (
            lambda: samesum.cov([1.0, 2.0], [1.0]),
            ValueError, "x has 2 observations and y 1; pass as many, or another axis=",
        ),
        (
            lambda: samesum.cov([1.0, 2.0], weights=[1]),
            ValueError, r"weights has shape \(1,\); pass one weight for each of the 2",
        ),
        (lambda: samesum.cov([1.0, 2.0], weights=[-1, 2]), ValueError, "weights has negative numbers"),
        (lambda: samesum.corrcoef([1.0, 2.0], weights=[0, 0]), ZeroDivisionError, "weights sum to zero"),
        (lambda: samesum.cov([1.0], weights_are="counts"), ValueError, "weights_are is 'counts'; use 'frequencies'"),
        (lambda: samesum.cov([1.0], correction=1, ddof=2), ValueError, "two names of one argument"),
        (lambda: samesum.cov([1.0], ddof=math.inf), ValueError, "correction is inf; it must be a finite number"),
        (lambda: samesum.cov(np.ones((2, 2)), axis=2), IndexError, "axis 2 is out of range"),
        (
            lambda: samesum.linear_regression([1.0, 2.0], [1.0]),
            ValueError, "x has 2 elements along axis -1 and y has 1",
        ),
        (lambda: samesum.linear_regression([1.0], None), TypeError, "y is None"),
        (
            lambda: samesum.linear_regression([1.0, 2.0], [1.0, 2.0], weights=[1]),
            ValueError, r"weights has shape \(1,\)",
        ),
        (
            lambda: samesum.linear_regression([1.0, 2.0], [1.0, 2.0], weights=[1, -2]),
            ValueError, "weights has negative",
        ),
        (lambda: samesum.linear_regression([1.0, 2.0], [1.0, 2.0], weights=[0, 0]), ZeroDivisionError, "sum to zero"),
        (lambda: samesum.linear_regression(["a"], [1.0]), TypeError, "x has texts"),
        (lambda: samesum.cov([1.0], threads=0.5), TypeError, "threads is 0.5"),
    ],
)  # fmt: skip
def test_an_error_names_the_argument_and_the_remedy(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
