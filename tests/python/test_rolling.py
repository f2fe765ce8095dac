"""The rolling operations: their bits against the functions for one window, exact fractions and pandas."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import samesum

ROLLING = {
    "rolling_sum": samesum.sum, "rolling_mean": samesum.mean, "rolling_var": samesum.var, "rolling_std": samesum.std,
    "rolling_min": samesum.min, "rolling_max": samesum.max,
}  # fmt: skip


def data(*shape, seed=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)


def same(a, b):
    return np.asarray(a).dtype == np.asarray(b).dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def windows(n, window, center):
    ahead = (window - 1) // 2 if center else 0
    return [range(max(0, i + ahead + 1 - window), min(n, i + ahead + 1)) for i in range(n)]


def alone(name, x, window, min_periods=None, center=False, skipna=False, **options):
    """The results of a vector by the function for each window."""
    least = window if min_periods is None else min_periods
    results = []
    for places in windows(len(x), window, center):
        some = x[list(places)]
        some = some[~np.isnan(some)] if skipna else some
        enough = len(some) >= least and (len(some) > 0 or name == "rolling_sum")
        results.append(ROLLING[name](some, **options) if enough else x.dtype.type(np.nan))
    return np.array(results, x.dtype)


@pytest.mark.parametrize("name", ROLLING)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_each_result_has_the_bits_of_the_function_for_its_window(name, dtype):
    x = data(60).astype(dtype)
    x[[5, 6, 30]], x[12], x[[40, 41, 42]] = np.nan, np.inf, -0.0
    for window in (1, 2, 5, 60, 100):
        for min_periods in (None, 0, 1, 3):
            if (min_periods is None and window > 60) or (min_periods or 0) > window:
                continue
            for center in (False, True):
                for skipna in (False, True):
                    options = dict(min_periods=min_periods, center=center, skipna=skipna)
                    rolled = getattr(samesum, name)(x, window, **options)
                    assert same(rolled, alone(name, x, window, **options)), (window, options)


@pytest.mark.parametrize("name", ["rolling_sum", "rolling_mean"])
def test_sums_on_a_grid_have_the_bits_of_the_function_for_each_window(name):
    x = data(300)
    for window in (1, 7, 300):
        rolled = getattr(samesum, name)(x, window, method="fixed_point", grid=-30, min_periods=1)
        assert same(rolled, alone(name, x, window, min_periods=1, method="fixed_point", grid=-30))
    with pytest.raises(ValueError, match="grid is missing"):
        getattr(samesum, name)(x, 7, method="fixed_point")
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.rolling_sum([1e300, 1.0], 1, method="fixed_point", grid=0)


def test_results_are_the_exact_ones_rounded_once():
    x = data(500, seed=8)
    exact = [Fraction(e) for e in x.tolist()]
    for window in (1, 3, 10, 77):
        sums, means = samesum.rolling_sum(x, window), samesum.rolling_mean(x, window)
        variances = samesum.rolling_var(x, window, ddof=1)
        for i, places in enumerate(windows(500, window, False)):
            if i + 1 < window:
                assert math.isnan(sums[i]) and math.isnan(means[i]) and math.isnan(variances[i])
                continue
            some = [exact[j] for j in places]
            total = sum(some)
            assert sums[i] == float(total) and means[i] == float(total / window)
            if window > 1:
                assert variances[i] == float(sum((e - total / window) ** 2 for e in some) / (window - 1))
            else:
                assert math.isnan(variances[i])


def test_variances_near_zero_are_exact():
    x = np.repeat([0.1, 1e9, 1e9 + 2**-20, 0.0], 40)
    exact = [Fraction(e) for e in x.tolist()]
    variances = samesum.rolling_var(x, 30)
    for i in range(29, len(x)):
        some = exact[i - 29 : i + 1]
        assert variances[i] == float(sum(e * e for e in some) / 30 - (sum(some) / 30) ** 2), i


def test_nothing_drifts():
    x = np.ones(5000)
    x[100], x[200], x[300] = 1e300, np.nan, np.inf
    sums = samesum.rolling_sum(x, 10)
    assert (sums[310:] == 10).all() and (sums[110:200] == 10).all()


def test_windows_move_along_any_axis():
    x = data(4, 50, 6)
    for name, function in ROLLING.items():
        for axis in (0, 1, 2, -1):
            rolled = getattr(samesum, name)(x, 3, axis, min_periods=2)
            moved = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
            expected = [getattr(samesum, name)(row, 3, min_periods=2) for row in np.ascontiguousarray(moved)]
            assert rolled.shape == x.shape
            np.testing.assert_array_equal(np.moveaxis(rolled, axis, -1).reshape(moved.shape), expected)
    strided = x[:, ::-2]
    np.testing.assert_array_equal(samesum.rolling_sum(strided, 3, 1), samesum.rolling_sum(strided.copy(), 3, 1))


def test_threads_do_not_change_the_bits():
    x = data(300_000)
    x[::9999] = np.nan
    for name in ROLLING:
        for window in (3, 5000, 200_000):
            one = getattr(samesum, name)(x, window, skipna=True, min_periods=2, threads=1)
            assert same(one, getattr(samesum, name)(x, window, skipna=True, min_periods=2, threads=3))


def test_results_have_the_format_of_the_method_and_go_to_out():
    x = data(40).astype(np.float32)
    assert samesum.rolling_sum(x, 4, method="exact/fp64").dtype == np.float64
    assert samesum.rolling_sum(x.tolist(), 4).dtype == np.float64
    assert samesum.rolling_sum([1, 2, 3], 2, dtype="float64").tolist()[1:] == [3, 5]
    out = np.empty_like(x)
    expected = samesum.rolling_sum(x, 4)
    assert samesum.rolling_sum(x, 4, out=out) is out and same(out, expected)
    assert same(samesum.rolling_sum(x, 4, out=x), expected) and same(x, expected)
    y = data(50)
    expected = samesum.rolling_sum(y[:40], 4)
    samesum.rolling_sum(y[:40], 4, out=y[10:])
    assert same(y[10:], expected)


def test_bad_arguments_are_refused():
    x = data(10)
    for window in (0, -3):
        with pytest.raises(ValueError, match=f"window is {window}; use 1 or more, the number of elements"):
            samesum.rolling_sum(x, window)
    for window in (2.5, "3D", None):
        with pytest.raises(TypeError, match="window is .*; use a whole number, the number of elements"):
            samesum.rolling_sum(x, window)
    with pytest.raises(ValueError, match="window is 11, but there are 10 .*pass a smaller window, or min_periods"):
        samesum.rolling_sum(x, 11)
    assert np.isfinite(samesum.rolling_sum(x, 11, min_periods=1)).all()
    with pytest.raises(ValueError, match="min_periods is 4, more than the window of 3"):
        samesum.rolling_sum(x, 3, min_periods=4)
    with pytest.raises(ValueError, match="min_periods is -1; use 0 or more, or None for the window"):
        samesum.rolling_sum(x, 3, min_periods=-1)
    with pytest.raises(TypeError, match="takes one axis"):
        samesum.rolling_sum(x, 3, axis=None)
    with pytest.raises(IndexError, match="axis 1 is out of range"):
        samesum.rolling_sum(x, 3, 1)
    with pytest.raises(ValueError, match="x is a number"):
        samesum.rolling_sum(1.0, 3)
    with pytest.raises(ValueError, match="only a sum of integers loses nothing .* use exact"):
        samesum.rolling_sum(x, 3, method="tree/kahan")
    with pytest.raises(ValueError, match="use exact"):
        samesum.rolling_var(x, 3, method="fixed_point")
    with pytest.raises(ValueError, match="two names of one argument"):
        samesum.rolling_var(x, 3, ddof=1, correction=0)
    with pytest.raises(ValueError, match="must be a whole number"):
        samesum.rolling_var(x, 3, ddof=0.5)
    with pytest.raises(ValueError, match="out has shape"):
        samesum.rolling_sum(x, 3, out=np.empty(9))
    with pytest.raises(TypeError, match="where"):
        samesum.rolling_sum(x, 3, where=x > 0)


def test_arrays_without_elements_have_no_results():
    assert samesum.rolling_sum(np.empty((3, 0)), 2).shape == (3, 0)
    assert samesum.rolling_max(np.empty((0, 3)), 2).shape == (0, 3)
    assert samesum.rolling_var([], 2, min_periods=1).tolist() == []


def test_tensors_of_pytorch_stay_tensors():
    torch = pytest.importorskip("torch")
    x = torch.tensor(data(3, 50))
    rolled = samesum.rolling_mean(x, 7)
    assert isinstance(rolled, torch.Tensor) and same(rolled.numpy(), samesum.rolling_mean(x.numpy(), 7))
    with pytest.raises(NotImplementedError, match="has no gradient"):
        samesum.rolling_sum(x.requires_grad_(), 7)


def test_nan_is_where_pandas_has_it():
    pd = pytest.importorskip("pandas")
    x = data(80)
    x[[0, 1, 20, 21, 22, 23, 50, 79]] = np.nan
    series = pd.Series(x)
    for window in (1, 2, 3, 8, 80, 200):
        for min_periods in (None, 0, 1, 2, 3):
            if (min_periods is None and window > 80) or (min_periods or 0) > window:
                continue
            for center in (False, True):
                options = dict(min_periods=min_periods, center=center)
                theirs = series.rolling(window, **options)
                for name, expected in {
                    "rolling_sum": theirs.sum(), "rolling_mean": theirs.mean(), "rolling_var": theirs.var(ddof=1),
                    "rolling_min": theirs.min(), "rolling_max": theirs.max(), "rolling_std": theirs.std(ddof=1),
                }.items():  # fmt: skip
                    more = {"ddof": 1} if name in ("rolling_var", "rolling_std") else {}
                    ours = getattr(samesum, name)(x, window, skipna=True, **options, **more)
                    np.testing.assert_array_equal(
                        np.isnan(ours), np.isnan(expected), err_msg=f"{name}, {window}, {options}"
                    )
                    if name in ("rolling_min", "rolling_max"):
                        np.testing.assert_array_equal(ours, expected)
                    else:
                        if name == "rolling_std":  # squared, as pandas' variance loses digits
                            ours, expected = ours**2, expected**2
                        largest = np.nanmax(np.abs(x)) ** (2 if name in ("rolling_var", "rolling_std") else 1)
                        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9 * largest)


def test_any_data_and_options_have_the_bits_of_the_windows_alone():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.settings(max_examples=150, deadline=None)
    @hypothesis.given(
        st.sampled_from(sorted(ROLLING)), st.lists(st.floats(width=64), max_size=30), st.integers(1, 40),
        st.integers(0, 40), st.booleans(), st.booleans(),
    )  # fmt: skip
    def check(name, elements, window, min_periods, center, skipna):
        x = np.array(elements, np.float64)
        options = dict(min_periods=min(min_periods, window), center=center, skipna=skipna)
        assert same(getattr(samesum, name)(x, window, **options), alone(name, x, window, **options))

    check()


# --- nulls ------------------------------------------------------------------------------------------------------

LARGE = 2**53 + 1


def columns_with_nulls(values, at):
    """Returns columns of each library whose element `at` is missing, and how its error says so."""
    shown = np.arange(len(values)) != at
    with_none = [v if i != at else None for i, v in enumerate(values)]
    found = [(np.ma.array(values, mask=~shown), "hides 1 element")]
    dtype = "Int64" if isinstance(values[0], int) else "Float64"
    for name, make in (
        ("pandas", lambda pd: pd.Series(pd.array(with_none, dtype), index=range(5, 5 + len(values)), name="v")),
        ("polars", lambda pl: pl.Series("v", with_none)),
        ("pyarrow", lambda pa: pa.array(with_none)),
        ("pyarrow", lambda pa: pa.chunked_array([with_none[:2], with_none[2:]])),
    ):
        try:
            found.append((make(__import__(name)), "has 1 null"))
        except ImportError:
            pass
    return found


@pytest.mark.parametrize(
    "name", ["rolling_sum", "rolling_mean", "rolling_var", "rolling_std", "rolling_min", "rolling_max"]
)
@pytest.mark.parametrize("values", [[3, 1, LARGE, 2, 4], [3.0, 1.0, math.nan, 2.0, 4.0]], ids=["integers", "floats"])
def test_windows_leave_out_nulls_at_their_places_if_they_skip_nan(name, values):
    function = getattr(samesum, name)
    expected = function([3.0, 1.0, math.nan, 2.0, 4.0], 2, min_periods=1, skipna=True)
    for column, message in columns_with_nulls(values, 2):
        with pytest.raises(
            ValueError, match=f"samesum: {name}: x {message}; pass skipna=True, with which windows leave"
        ):
            function(column, 2)
        result = function(column, 2, min_periods=1, skipna=True)
        np.testing.assert_array_equal(np.asarray(result), expected)
        if hasattr(column, "index") and hasattr(column, "name"):
            assert list(result.index) == list(column.index) and result.name == column.name
    nothing_hidden = np.ma.array([1.0, 2.0], mask=False)
    assert function(nothing_hidden, 1).tolist() == function([1.0, 2.0], 1).tolist()
