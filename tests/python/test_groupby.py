"""groupby: its results are those of each group alone, for keys and values of every kind."""

from __future__ import annotations

import datetime
import math
import statistics
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samesum

NAN = math.nan
REDUCTIONS = ("sum", "mean", "var", "std", "min", "max")
AWKWARD = (0.0, -0.0, 1.5, -1e300, 1e300, 5e-324, math.inf, -math.inf, NAN, 1 / 3)


def same_bits(a, b):
    """Whether arrays have the same elements; one NaN is as good as another."""
    a, b = np.asarray(a), np.asarray(b)
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and a[a == a].tobytes() == b[b == b].tobytes()
        and ((a == a) == (b == b)).all()
    )


def rows_of(keys):
    """The rows of each key, in the order of the keys; those of missing keys left out."""
    rows = {}
    for row, key in enumerate(keys):
        if key is not None and key == key:
            rows.setdefault(key, []).append(row)
    return {key: rows[key] for key in sorted(rows)}


def pairs(n, count, *, seed=1, dtype=np.float64, inner=()):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, *inner)) * 2.0 ** rng.integers(-9, 9, (n, *inner))
    return rng.integers(-count, count, n) * 7, values.astype(dtype)


# --- each group alone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("inner", [(), (3,), (2, 2)])
def test_a_result_has_the_bits_of_the_reduction_of_its_group_alone(reduction, dtype, inner):
    keys, values = pairs(700, 20, dtype=dtype, inner=inner)
    groups = samesum.groupby(keys)
    result = getattr(groups, reduction)(values)
    assert groups.groups.tolist() == sorted({*keys.tolist()})
    for number, rows in enumerate(rows_of(keys.tolist()).values()):
        assert same_bits(result[number], getattr(samesum, reduction)(values[rows], axis=0))


@pytest.mark.parametrize(
    ("reduction", "method"),
    [
        *(("sum", m) for m in ("serial/plain", "tree/plain", "tree/kahan", "pairwise", "fixed_point", "exact/fp32")),
        *(("mean", m) for m in ("tree/plain", "tree/kahan", "fixed_point", "mean/exact")),
        *((r, "tree") for r in ("var", "std")),
        ("min", "min"),
    ],
)
def test_every_method_has_the_bits_of_each_group_alone(reduction, method):
    keys, values = pairs(30_000, 5, seed=3)
    result = getattr(samesum.groupby(keys), reduction)(values, method=method)
    expected = [getattr(samesum, reduction)(values[rows], method=method) for rows in rows_of(keys.tolist()).values()]
    assert same_bits(result, np.array(expected))


def test_a_grid_is_that_of_the_caller_or_of_each_group():
    keys, values = [0, 0, 1, 1], [0.75, 0.75, 2.0**60, 1.0]
    groups = samesum.groupby(keys)
    assert groups.sum(values, method="fixed_point", grid=0).tolist() == [2.0, 2.0**60]
    assert groups.sum(values, method="fixed_point").tolist() == [1.5, 2.0**60]
    assert groups.mean(values, method="fixed_point", grid=0).tolist() == [1.0, 2.0**59]
    with pytest.raises(ValueError, match="grid is only for"):
        groups.sum(values, grid=0)
    with pytest.raises(OverflowError, match="larger grid"):
        groups.sum([1e300] * 4, method="fixed_point", grid=0)


@pytest.mark.parametrize("ddof", [0, 1, 3])
def test_the_variance_and_the_deviation_of_each_group(ddof):
    keys, values = pairs(400, 9, seed=5)
    groups = samesum.groupby(keys)
    variances, deviations = groups.var(values, ddof=ddof), groups.std(values, ddof=ddof)
    for number, rows in enumerate(rows_of(keys.tolist()).values()):
        assert same_bits(variances[number], samesum.var(values[rows], ddof=ddof))
        assert same_bits(deviations[number], samesum.std(values[rows], ddof=ddof))
        if ddof == 0:
            numbers = [Fraction(x) for x in values[rows].tolist()]
            mean = sum(numbers) / len(numbers)
            assert variances[number] == float(sum((x - mean) ** 2 for x in numbers) / len(numbers))
    assert math.isnan(samesum.groupby([1]).var([2.0], ddof=1)[0])


@pytest.mark.parametrize("method", [None, "tree/kahan"])
@pytest.mark.parametrize("types", [(np.float64, np.float64), (np.float32, np.float64), (np.int64, np.float16)])
def test_the_dot_product_of_each_group(method, types):
    keys, x = pairs(400, 9, seed=6)
    x, y = (x * 8).astype(types[0]), pairs(400, 9, seed=7)[1].astype(types[1])
    result = samesum.groupby(keys).dot(x, y, method=method)
    for number, rows in enumerate(rows_of(keys.tolist()).values()):
        xs, ys = (a[rows].astype(np.float64) if a.dtype.kind == "i" else a[rows] for a in (x, y))
        assert same_bits(result[number], samesum.dot(xs, ys, method=method))
        if method is None and np.float64 in types:
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(xs.tolist(), ys.tolist()))
            assert result[number] == float(exact)


@pytest.mark.parametrize("inner", [(), (2,)])
@pytest.mark.parametrize("types", [(np.float64, np.float64), (np.float32, np.float16), (np.int64, np.float32)])
def test_weighted_results_are_those_of_each_group_alone(types, inner):
    keys, x = pairs(200, 9, seed=8, inner=inner)
    x, w = (x * 8).astype(types[0]), abs(pairs(200, 9, seed=9)[1]).astype(types[1])
    groups = samesum.groupby(keys)
    for name, options in (
        ("sum", {}), ("sum", {"method": "tree"}), ("mean", {}), ("std", {"ddof": 1}), ("var", {}),
        ("var", {"correction": 1, "weights_are": "reliabilities"}), ("mean", {"method": "exact/fp32"}),
    ):  # fmt: skip
        result = getattr(groups, name)(x, weights=w, **options)
        for number, rows in enumerate(rows_of(keys.tolist()).values()):
            assert same_bits(result[number], getattr(samesum, name)(x[rows], axis=0, weights=w[rows], **options)), name
        whole = np.broadcast_to(w.reshape(-1, *[1] * len(inner)), x.shape)
        assert same_bits(getattr(groups, name)(x, weights=whole, **options), result)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("types", [(np.float64, np.float64), (np.float32, np.float16), (np.int64, np.float32)])
def test_results_of_two_variables_are_those_of_each_group_alone(types, weighted):
    keys, x = pairs(160, 9, seed=10)
    x, y = (x * 8).astype(types[0]), pairs(160, 9, seed=11)[1].astype(types[1])
    w = abs(pairs(160, 9, seed=12)[1]) if weighted else None
    groups, of_rows = samesum.groupby(keys), rows_of(keys.tolist()).values()
    lines = groups.linear_regression(x, y, weights=w)
    assert isinstance(lines, samesum.LinearRegression)
    covariances = [
        (options, groups.cov(x, y, weights=w, **options))
        for options in ({}, {"ddof": 0}, {"weights_are": "reliabilities"})
    ]
    correlations = groups.corrcoef(x, y, weights=w)
    for number, rows in enumerate(of_rows):
        given = {"weights": None if w is None else w[rows]}
        for found, expected in zip(lines, samesum.linear_regression(x[rows], y[rows], **given)):
            assert same_bits(found[number], expected)
        for options, found in covariances:
            assert same_bits(found[number], samesum.cov(x[rows], y[rows], **given, **options)[0, 1])
        assert same_bits(correlations[number], samesum.corrcoef(x[rows], y[rows], **given)[0, 1])
    both = np.stack([x, x[::-1]], 1), np.stack([y, y[::-1]], 1)
    assert same_bits(groups.cov(*both, weights=w)[:, 0], covariances[0][1])
    assert same_bits(groups.linear_regression(*both, weights=w).slope[:, 0], lines.slope)


EIGHTHS = st.one_of(st.sampled_from([NAN, -0.0, 0.0]), st.integers(-40, 40).map(lambda i: i / 8))


@given(st.lists(st.tuples(st.integers(0, 2), EIGHTHS, EIGHTHS, st.integers(1, 4)), max_size=14))
def test_weighted_results_and_pairs_agree_with_fractions(rows):
    keys, x, y, w = (np.array([row[i] for row in rows], np.int64 if i in (0, 3) else np.float64) for i in range(4))
    groups = samesum.groupby(keys)
    means, variances = (getattr(groups, name)(x, weights=w, skipna=True) for name in ("mean", "var"))
    covariances = groups.cov(x, y, weights=w, ddof=0, skipna=True)
    slopes, intercepts = groups.linear_regression(x, y, weights=w, skipna=True)
    for number, key in enumerate(groups.groups.tolist()):
        kept = [(Fraction(a), Fraction(b), c) for k, a, b, c in rows if k == key and a == a and b == b]
        alone = [(Fraction(a), c) for k, a, _, c in rows if k == key and a == a]
        total = sum(c for _, c in alone)
        mean = sum(a * c for a, c in alone) / total if alone else NAN
        variance = sum(c * (a - mean) ** 2 for a, c in alone) / total if alone else NAN
        assert same_bits(means[number], np.float64(mean)) or means[number] == 0 == mean
        assert same_bits(variances[number], np.float64(variance))
        if not kept:
            assert math.isnan(covariances[number]) and math.isnan(slopes[number])
            continue
        total = sum(c for _, _, c in kept)
        of_x, of_y = (sum(row[i] * row[2] for row in kept) / total for i in (0, 1))
        xy = sum(c * (a - of_x) * (b - of_y) for a, b, c in kept)
        xx = sum(c * (a - of_x) ** 2 for a, _, c in kept)
        assert covariances[number] == float(xy / total)
        if xx:
            assert slopes[number] == float(xy / xx) and intercepts[number] == float(of_y - xy / xx * of_x)
        else:
            assert math.isnan(slopes[number])


def test_weights_and_pairs_of_no_groups_and_of_rows_left_out():
    none = samesum.groupby(np.zeros(0, np.int64))
    assert (
        none.mean([], weights=[]).shape == (0,) == none.cov([], []).shape == none.linear_regression([], []).slope.shape
    )
    groups = samesum.groupby([None, "a", "b", "a"])
    assert groups.mean([9.0, 1.0, 2.0, 5.0], weights=[NAN, 3, 1, 1]).tolist() == [2.0, 2.0]
    assert groups.linear_regression([9.0, 1.0, 2.0, 2.0], [NAN, 1.0, 2.0, 3.0]).slope.tolist()[0] == 2.0
    masked = np.ma.masked_array([1.0, 1.0, 2.0, 5.0], [0, 0, 1, 0])
    assert same_bits(groups.mean(masked, weights=[1, 3, 1, 1]), np.array([2.0, NAN]))
    with pytest.raises(ZeroDivisionError, match="weights sum to zero"):
        groups.mean([1.0] * 4, weights=[1, 0, 1, 0])
    with pytest.raises(ValueError, match="weights has negative numbers"):
        groups.var([1.0] * 4, weights=[1, -1, 1, 2])
    with pytest.raises(
        ValueError, match=r"weights has shape \(4, 2\) and the values \(4,\); pass a weight for each row"
    ):
        groups.mean([1.0] * 4, weights=np.ones((4, 2)))
    with pytest.raises(ValueError, match="weights_are is 'any'"):
        groups.var([1.0] * 4, weights_are="any")
    with pytest.raises(ValueError, match="takes no weights; leave it out"):
        groups.mean([1.0] * 4, weights=[1] * 4, method="tree")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_weights_and_pairs_of_frames_go_by_name(library):
    module = pytest.importorskip(library)
    data = {"k": ["b", "a", "a", "b"], "x": [1.0, 2.0, 4.0, NAN], "w": [1, 3, 1, 2], "y": [2.0, 3.0, 7.0, 1.0]}
    frame = (module.table if library == "pyarrow" else module.DataFrame)(data)
    by = samesum.groupby(frame, "k")

    def columns(result):
        if library == "pandas":
            return result.reset_index().to_dict("list")
        return result.to_dict(as_series=False) if library == "polars" else result.to_pydict()

    assert columns(by.mean("y", weights="w")) == {"k": ["a", "b"], "y": [4.0, 4 / 3]}
    assert [*columns(by.sum(weights="w"))] == ["k", "x", "y"]
    assert columns(by.sum(["y"], weights="w"))["y"] == [16.0, 4.0]
    covariance = by.cov("x", "y", skipna=True)
    values = [*columns(covariance.rename("cov") if library == "pandas" else covariance).values()]
    assert values[0] == ["a", "b"] and values[1][0] == 4.0 and math.isnan(values[1][1])
    for line, name, expected in zip(by.linear_regression("x", "y", weights="w"), ("slope", "intercept"), (2.0, -1.0)):
        assert columns(line.rename(name) if library == "pandas" else line)[name][0] == expected
    with pytest.raises(ValueError, match="y is a frame; pass one column"):
        by.cov("x", ["y"])


def test_names_of_columns_need_not_be_texts():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: [1, 2, 1], 1: [0.5, 2.0, 4.0], ("a", "b"): [1.0, 3.0, 5.0], 2.5: [1, 1, 1]})
    for by in (0, [0]):
        groups = samesum.groupby(frame, by)
        assert groups.sum(1).tolist() == [4.5, 2.0] and groups.sum(1).name == 1
        assert groups.max(("a", "b")).tolist() == [5.0, 3.0]
        assert groups.sum([1, 2.5]).to_dict("list") == {1: [4.5, 2.0], 2.5: [2, 1]}
        assert [*groups.sum().columns] == [1, ("a", "b"), 2.5]
        assert groups.dot(1, ("a", "b")).tolist() == [20.5, 6.0] and groups.mean(1, weights=2.5).tolist() == [2.25, 2.0]
        assert groups.sum(np.array([1, 0, 2.5])).tolist() == [3.5, 0.0] and groups.sum([7, 8, 9]).tolist() == [16, 8]
    with pytest.raises(
        ValueError, match="values is a list of a number for each row, which all are names of columns too"
    ):
        groups.sum([1, 0, 1])
    with pytest.raises(ValueError, match="'c', which the frame does not have; use one of 0, 1"):
        groups.sum("c")
    polars = pytest.importorskip("polars")
    keys = {0: polars.Series([1, 2]), "": polars.Series([3, 4])}
    assert samesum.groupby(keys).sum(polars.Series([1.0, 2.0])).columns == ["0", "key_1", "values"]


def test_the_first_value_and_the_number_of_values_of_each_group():
    groups = samesum.groupby([2, 1, 2, 1])
    assert groups.first([1.0, NAN, 3.0, 4.0]).tolist()[1:] == [1.0]
    assert groups.first([1.0, NAN, 3.0, 4.0], skipna=True).tolist() == [4.0, 1.0]
    assert groups.first(["a", "b", "c", "d"]).tolist() == ["b", "a"]
    assert groups.first(np.arange(8).reshape(4, 2)).tolist() == [[2, 3], [0, 1]]
    assert math.isnan(samesum.groupby([1, 1]).first([NAN, NAN], skipna=True)[0])
    assert groups.count().tolist() == [2, 2] and len(groups) == 2
    assert groups.count([1.0, NAN, 3.0, 4.0]).tolist() == [2, 2]
    assert groups.count([1.0, NAN, 3.0, 4.0], skipna=True).tolist() == [1, 2]
    assert groups.count([[1.0, 2.0], [NAN, 1.0], [NAN, NAN], [4.0, NAN]], skipna=True).tolist() == [[1, 1], [1, 1]]
    assert groups.count().dtype == np.int64
    texts = np.array(["a", None, "c", "d"], object)
    assert groups.count(texts, skipna=True).tolist() == [1, 2]
    assert groups.first(texts, skipna=True).tolist() == ["d", "a"]


def test_integers_stay_exact():
    keys = [0, 1, 0, 1, 0]
    groups = samesum.groupby(keys)
    values = np.array([2**62, 7, 2**62 - 1, -3, 1 - 2**62])
    assert groups.sum(values).tolist() == [2**62, 4] and groups.sum(values).dtype == np.int64
    assert groups.min(values).tolist() == [1 - 2**62, -3] and groups.max(values).tolist() == [2**62, 7]
    assert groups.mean(values).tolist() == [samesum.mean(values[[0, 2, 4]]), 2.0]
    assert groups.sum(np.array([2**63, 1, 2**63 - 1, 2, 0], np.uint64)).tolist() == [2**64 - 1, 3]
    assert groups.sum([True, True, True, False, False]).tolist() == [2, 1]
    assert groups.sum(np.full((5, 2), -1, np.int8)).tolist() == [[-3, -3], [-2, -2]]
    assert groups.sum(values, method="exact/fp64").dtype == np.float64
    for wide in (np.full(5, 2**62), np.full(5, 2**63, np.uint64), np.full(5, -(2**62) - 1)):
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            groups.sum(wide)


def test_nothing_of_other_groups_reaches_a_group():
    keys, values = [0, 1, 1, 2, 2, 3], [-0.0, math.inf, -math.inf, math.inf, 1e308, NAN]
    sums = samesum.groupby(keys).sum(values)
    assert same_bits(sums, np.array([-0.0, NAN, math.inf, NAN]))
    assert same_bits(samesum.groupby(keys).var([1.0, NAN, 1.0, 1.0, 3.0, math.inf]), np.array([0.0, NAN, 1.0, NAN]))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("spread", [1, 10**12])
def test_results_depend_neither_on_threads_nor_on_the_order_of_rows(threads, spread):
    rng = np.random.default_rng(4)
    keys, values = rng.integers(-5000, 5000, 400_000) * spread, rng.standard_normal(400_000)
    expected = samesum.groupby(keys, threads=1)
    groups = samesum.groupby(keys, threads=threads)
    assert same_bits(groups.groups, np.unique(keys))
    for reduction in ("sum", "var"):
        result = getattr(groups, reduction)(values, threads=threads)
        assert same_bits(result, getattr(expected, reduction)(values, threads=1))
        order = rng.permutation(len(keys))
        assert same_bits(result, getattr(samesum.groupby(keys[order]), reduction)(values[order]))
    unsorted = samesum.groupby(keys, sort=False, threads=threads)
    first = np.sort(np.unique(keys, return_index=True)[1])
    assert same_bits(unsorted.groups, keys[first])
    assert same_bits(unsorted.first(values), values[first])
    assert same_bits(unsorted.sum(values), expected.sum(values)[np.searchsorted(expected.groups, unsorted.groups)])


# --- keys -----------------------------------------------------------------------------------------------------

DAYS = [datetime.date(2020, 1, day) for day in (3, 1, 2, 1)]


def key_kinds():
    yield [3, 1, 2, 1]
    yield ["c", "a", "b", "a"]
    yield [0.5, -0.0, 0.25, 0.0]
    yield [2**70, 1, 2**65, 1]
    yield [("b", 1), ("a", 2), ("a", 3), ("a", 2)]
    yield [b"c", b"a", b"b", b"a"]
    yield DAYS
    yield (3, 1, 2, 1)
    yield np.array([3, 1, 2, 1], ">i4")
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16):
        yield np.array([3, 1, 2, 1], dtype)
    yield np.array([2**64 - 1, 0, 2**63, 0], np.uint64)
    yield np.array([2**63 - 1, -(2**63), 0, -(2**63)])
    yield np.array([2 + 1j, 1, 2, 1])
    yield np.array([1e-320, -math.inf, -1e-320, -math.inf], np.longdouble)
    yield np.array(["c", "a", "b", "a"])
    yield np.array(["c", "a", "b", "a"], object)
    yield np.array(DAYS, "datetime64[D]")
    yield np.array([3, 1, 2, 1], "timedelta64[s]")
    yield np.array([(2, 1.0), (1, 0.0), (1, 5.0), (1, 0.0)], "i4,f8")


@pytest.mark.parametrize("keys", [*key_kinds()], ids=str)
def test_keys_of_every_kind_are_sorted_or_in_order_of_appearance(keys):
    listed = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
    groups = samesum.groupby(keys)
    assert groups.groups.tolist() == [listed[1], listed[2], listed[0]]
    assert groups.sum([1, 2, 4, 8]).tolist() == [10, 4, 1]
    unsorted = samesum.groupby(keys, sort=False)
    assert unsorted.groups.tolist() == listed[:3]
    assert unsorted.sum([1, 2, 4, 8]).tolist() == [1, 10, 4]


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ([1.0, NAN, 2.0, NAN, -NAN], [1.0, 2.0]),
        (["a", None, "b", NAN, None], ["a", "b"]),
        ([1, None, 2, None, NAN], [1, 2]),
        (np.array(["2020-01-01", "NaT", "2020-01-02", "NaT", "NaT"], "datetime64[D]"), DAYS[1:3]),
        (np.array([1, NAN, 2, NAN, NAN], complex), [1, 2]),
    ],
    ids=str,
)
def test_missing_keys_are_left_out_or_are_the_last_group(keys, kept):
    values = [1.0, math.inf, 4.0, -math.inf, 2.0]
    groups = samesum.groupby(keys)
    assert groups.groups.tolist() == kept
    assert groups.sum(values).tolist() == [1, 4] and groups.count().tolist() == [1, 1]
    assert groups.first(values).tolist() == [1, 4] and groups.first(values, skipna=True).tolist() == [1, 4]
    assert groups.var(values).tolist() == [0, 0]
    all_groups = samesum.groupby(keys, dropna=False)
    assert all_groups.groups[:2].tolist() == kept and len(all_groups) == 3
    assert same_bits(all_groups.sum(values), np.array([1, 4, NAN]))
    assert all_groups.count().tolist() == [1, 1, 3]


def test_keys_of_several_columns():
    letters, numbers = ["b", "a", "b", "a", None], np.array([2, 1, 2, 3, 1])
    for keys in ([letters, numbers], (letters, numbers)):
        groups = samesum.groupby(keys)
        assert [column.tolist() for column in groups.groups] == [["a", "a", "b"], [1, 3, 2]]
        assert groups.sum([1, 2, 4, 8, 16]).tolist() == [2, 8, 5]
    named = samesum.groupby({"letter": letters, "number": numbers}, dropna=False, sort=False)
    assert {name: column.tolist() for name, column in named.groups.items()} == {
        "letter": ["b", "a", "a", None],
        "number": [2, 1, 3, 1],
    }
    assert named.sum([1, 2, 4, 8, 16]).tolist() == [5, 2, 8, 16]
    many = [np.random.default_rng(k).integers(0, 3, 1000) for k in range(4)]
    expected = np.unique(np.stack(many, 1), axis=0, return_counts=True)
    groups = samesum.groupby(many)
    assert (np.stack(groups.groups, 1) == expected[0]).all() and (groups.count() == expected[1]).all()


def frames_of(columns):
    """The same columns as frames of the libraries whose columns may have one name: not of polars."""
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    yield pandas.DataFrame(dict(enumerate(values for _, values in columns))).set_axis([n for n, _ in columns], axis=1)
    yield arrow.table([arrow.array(values) for _, values in columns], names=[n for n, _ in columns])


def columns_of(result):
    """The names and the elements of the columns of a result, without the keys of pandas."""
    if hasattr(result, "column_names"):
        return [(name, column.to_pylist()) for name, column in zip(result.column_names, result.columns)]
    return [(name, column.tolist()) for name, column in result.items()]


def test_columns_of_one_name_are_reduced_apart():
    for frame in frames_of([("k", [1, 2, 1]), ("a", [2.0, 5.0, 20.0]), ("a", [3.0, 7.0, 30.0])]):
        keys = [("k", [1, 2])] if hasattr(frame, "column_names") else []
        expected = [*keys, ("a", [22.0, 5.0]), ("a", [33.0, 7.0])]
        groups = samesum.groupby(frame, "k")
        for result in (groups.sum(), groups.sum(["a"]), groups.agg("sum"), groups.agg({"a": "sum"})):
            assert columns_of(result) == expected
        assert [values for _, values in columns_of(groups.sum(weights="k"))[-2:]] == [[22.0, 10.0], [33.0, 14.0]]
        for call in (lambda: groups.sum("a"), lambda: groups.dot("a", "k"), lambda: groups.mean("k", weights="a")):
            with pytest.raises(ValueError, match="names the column 'a', and the frame has 2 of this name; rename"):
                call()
        with pytest.raises(ValueError, match="by names the column 'a', and the frame has 2 of this name"):
            samesum.groupby(frame, ["k", "a"])


def test_keys_of_one_name_are_all_kept():
    for frame in frames_of([("k", [1, 1, 1]), ("k", [2, 3, 2])]):
        groups = samesum.groupby(frame)
        assert [np.asarray(column).tolist() for column in groups.groups] == [[1, 1], [2, 3]]
        assert np.asarray(groups.sum(np.array([1.0, 2.0, 4.0]))).tolist() == [5.0, 2.0]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    two = [pandas.Series(column, name="k") for column in ([1, 1, 1], [2, 3, 2])]
    result = samesum.groupby(two).sum(pandas.Series([1.0, 2.0, 4.0]))
    assert result.index.names == ["k", "k"] and result.to_dict() == {(1, 2): 5.0, (1, 3): 2.0}
    two = samesum.groupby([polars.Series("k", [1, 1]), polars.Series("k", [2, 3])])
    with pytest.raises(ValueError, match="the result of groupby has 2 columns of the name 'k', of the keys and values"):
        two.sum(polars.Series("v", [1.0, 2.0]))
    assert [c.to_list() for c in two.groups] == [[1, 1], [2, 3]]
    unnamed = samesum.groupby([pandas.Series([1, 1], name="k"), [2, 3], [4, 5]])
    assert [np.asarray(column).tolist() for column in unnamed.groups] == [[1, 1], [2, 3], [4, 5]]
    for keys in ([pandas.Series([1, 1], name="k"), [2, 3]], [[2, 3], pandas.Series([1, 1], name="k")]):
        found = samesum.groupby(keys).groups
        assert {n: np.asarray(c).tolist() for n, c in found.items()} == {"k": [1, 1], None: [2, 3]}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_keys_of_a_frame_are_names_or_columns(library):
    module = pytest.importorskip(library)
    data = {"city": ["R", "O", "R", "O"], "day": [1, 1, 2, 1], "price": [1e16, 2.0, 1.0, 3.0]}
    frame = (module.table if library == "pyarrow" else module.DataFrame)(data)
    for by in ([frame["city"], frame["day"]], ["city", frame["day"]], [np.array(data["city"]), "day"]):
        found = samesum.groupby(frame, by).sum(["price"])
        assert len(found) == 3 and np.asarray(found)[:, -1].tolist() == [5.0, 1e16, 1.0]
    one = samesum.groupby(frame, frame["city"])
    if library != "pyarrow":  # whose columns have no names
        both = samesum.groupby(frame, [frame["city"], frame["day"]])
        assert both.sum().equals(samesum.groupby(frame, ["city", "day"]).sum())
        assert one.max().equals(samesum.groupby(frame, "city").max())
    assert np.asarray(one.max(["day"]))[:, -1].tolist() == [1, 2]


def test_a_key_that_only_has_the_name_of_a_column_leaves_the_column_a_value():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"year": [2024.5, 2024.75, 2025.0], "x": [1.0, 2.0, 4.0]})
    groups = samesum.groupby(frame, frame["year"].astype(int))
    assert groups.sum().to_dict("list") == {"year": [4049.25, 2025.0], "x": [3.0, 4.0]}
    assert groups.sum().index.name == "year" and groups.size().to_dict() == {2024: 2, 2025: 1}


# --- sizes and several operations -----------------------------------------------------------------------------


def test_the_size_of_a_group_is_the_number_of_its_rows():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    data = {"k": ["b", "a", None, "b"], "x": [NAN, 1.0, 2.0, NAN]}
    frame = pandas.DataFrame(data)
    pandas.testing.assert_series_equal(samesum.groupby(frame, "k").size(), frame.groupby("k").size())
    pandas.testing.assert_series_equal(samesum.groupby(frame["k"]).size(), frame.groupby("k").size())
    expected = {"k": ["a", "b"], "size": [1, 2]}
    assert samesum.groupby(polars.DataFrame(data), "k").size().to_dict(as_series=False) == expected
    assert samesum.groupby(arrow.table(data), "k").size().to_pydict() == expected
    sizes = samesum.groupby(data["k"], dropna=False).size()
    assert sizes.tolist() == [1, 2, 1] and sizes.dtype == np.int64


def test_several_operations_have_the_results_of_their_methods_and_the_names_of_pandas():
    pandas = pytest.importorskip("pandas")
    keys, x = pairs(300, 5)
    frame = pandas.DataFrame({"k": keys, "x": x, "n": pandas.array([*range(299), None], "Int64")})
    ours, theirs = samesum.groupby(frame, "k"), frame.groupby("k")
    every = ["sum", "mean", "var", "std", "min", "max", "count", "size", "first"]
    for operations in (every, "mean", {"x": every, "n": "max"}, {"n": "sum", "x": "min"}, {"x": ["var"]}):
        found, known = ours.agg(operations, ddof=1), theirs.agg(operations)
        pandas.testing.assert_frame_equal(found, known, check_dtype=False)
        for name, column in found.items():
            of_one = operations if isinstance(operations, str) else operations[name] if name in frame else None
            column_name, operation = (name, of_one) if of_one else name
            options = {"ddof": 1} if operation in ("var", "std") else {}
            alone = ours.size() if operation == "size" else getattr(ours, operation)(column_name, **options)
            assert same_bits(column.to_numpy(), alone.to_numpy())
    pandas.testing.assert_frame_equal(ours.agg(["min", "max"], "x"), theirs["x"].agg(["min", "max"]))
    assert ours.agg("max", "x").equals(ours.max("x")) and ours.agg("std", ddof=0)["x"].equals(ours.std("x"))
    assert ours.agg(["sum"], "x", skipna=False)["sum"].equals(ours.sum("x", skipna=False))
    two_levels = pandas.DataFrame([[1, 2.0]], columns=pandas.MultiIndex.from_tuples([("k", "l"), ("x", "y")]))
    assert [*samesum.groupby(two_levels, ("k", "l")).agg(["sum"]).columns] == [("x", "y", "sum")]


def test_several_operations_of_arrays_and_of_other_frames():
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    data = {"k": ["b", "a", "b"], "x": [1.0, 2.0, 5.0], "y": [1, 2, 3]}
    expected = {"k": ["a", "b"], "x_sum": [2.0, 6.0], "x_max": [2.0, 5.0], "y_min": [2, 1]}
    operations = {"x": ["sum", "max"], "y": "min"}
    assert samesum.groupby(polars.DataFrame(data), "k").agg(operations).to_dict(as_series=False) == expected
    assert samesum.groupby(arrow.table(data), "k").agg(operations).to_pydict() == expected
    assert samesum.groupby(polars.DataFrame(data), "k").agg({"x": "sum"}).columns == ["k", "x"]
    assert samesum.groupby(polars.DataFrame(data), "k").agg(["sum", "size"], "x").columns == ["k", "sum", "size"]
    groups = samesum.groupby(data["k"])
    found = groups.agg(["sum", "mean"], np.array([[1.0, 10.0], [2.0, 20.0], [5.0, 50.0]]))
    assert {n: a.tolist() for n, a in found.items()} == {"sum": [[2, 20], [6, 60]], "mean": [[2, 20], [3, 30]]}
    assert groups.agg("sum", data["x"]).tolist() == [2.0, 6.0]
    for call, error, message in (
        (lambda: groups.agg("median", data["x"]), ValueError, "operations names 'median'; use sum, mean"),
        (lambda: groups.agg(["sum", "sum"], data["x"]), ValueError, "operations names 'sum' twice"),
        (lambda: groups.agg(np.sum, data["x"]), TypeError, "operations is <function sum.*; pass names such as 'sum'"),
        (
            lambda: groups.agg({"x": "sum"}),
            TypeError, r"operations is a dict of names of columns, which only groupby\(frame, by\)",
        ),
        (lambda: groups.agg("sum"), TypeError, "values is None"),
        (
            lambda: samesum.groupby(arrow.table(data), "k").agg({"z": "sum"}),
            ValueError, "operations names the column 'z', which",
        ),
    ):  # fmt: skip
        with pytest.raises(error, match="^samesum: groupby: " + message):
            call()


def test_no_rows_have_no_groups():
    for keys in ([], np.empty(0, np.int64), np.empty(0, object), [[], []]):
        groups = samesum.groupby(keys)
        assert len(groups) == 0
        for reduction in (*REDUCTIONS, "first", "count"):
            assert getattr(groups, reduction)(np.empty(0)).shape == (0,)
        assert groups.dot(np.empty(0), np.empty(0)).shape == (0,)
        assert groups.sum(np.empty((0, 3))).shape == groups.var(np.empty((0, 3))).shape == (0, 3)
    assert samesum.groupby([None, NAN]).sum([1.0, 2.0]).shape == (0,)


# --- missing values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [(), (3,)])
def test_skipped_values_are_as_if_absent(inner):
    rng = np.random.default_rng(8)
    keys, values = pairs(500, 40, seed=8, inner=inner)
    values[rng.random(values.shape) < 0.3] = NAN
    values[keys == keys[0]] = NAN
    groups = samesum.groupby(keys)
    other = values.copy()
    other[np.isnan(values)] = -NAN
    for reduction in (*REDUCTIONS, "count"):
        result = getattr(groups, reduction)(values, skipna=True)
        assert same_bits(result, getattr(groups, reduction)(other, skipna=True))
        for number, rows in enumerate(rows_of(keys.tolist()).values()):
            for column in np.ndindex(inner):
                own = values[rows][(slice(None), *column)]
                own = own[~np.isnan(own)]
                expected = len(own) if reduction == "count" else getattr(samesum, reduction)(own)
                if reduction in ("min", "max") and not len(own):
                    expected = NAN
                assert same_bits(result[(number, *column)], np.asarray(expected))
    dots = groups.dot(values, other[::-1], skipna=True)
    ok = ~np.isnan(values) & ~np.isnan(other[::-1])
    zero = np.where(ok, values, 0), np.where(ok, other[::-1], 0)
    np.testing.assert_array_equal(dots, groups.dot(*zero))
    assert np.isnan(groups.sum(values)).any()


# --- frames ---------------------------------------------------------------------------------------------------


def pandas_keys():
    pandas = pytest.importorskip("pandas")
    texts = ["b", "a", None, "b"]
    dates = ["2020-01-02", "2020-01-01", None, "2020-01-02"]
    yield pandas.Series(texts, name="key")
    yield pandas.Series(texts, name="key", dtype=object)
    yield pandas.Index(texts, name="key")
    yield pandas.Series([2, 1, None, 2], name="key")
    yield pandas.Series([2, 1, None, 2], name="key", dtype="Int64")
    yield pandas.Series([True, False, None, True], name="key", dtype="boolean")
    yield pandas.Series(pandas.to_datetime(dates), name="key")
    yield pandas.Series(pandas.to_datetime(dates).tz_localize("Asia/Tokyo"), name="key")
    yield pandas.Series(pandas.PeriodIndex(dates, freq="D"), name="key")
    yield pandas.Series(pandas.Categorical(texts, ["c", "a", "b"]), name="key")
    yield pandas.Series(pandas.Categorical(texts, ["b", "c", "a"], ordered=True), name="key")


@pytest.mark.parametrize("place", range(11))
@pytest.mark.parametrize("dropna", [True, False])
@pytest.mark.parametrize("sort", [True, False])
def test_keys_and_values_of_pandas(place, dropna, sort):
    keys = [*pandas_keys()][place]
    pandas = sys.modules["pandas"]
    values = pandas.DataFrame({"x": [1.0, 2.0, 4.0, NAN], "i": [1, 2, 4, 8]})
    groups = samesum.groupby(keys, dropna=dropna, sort=sort)
    frame = values.assign(key=keys if isinstance(keys, pandas.Series) else keys.array)
    expected = frame.groupby("key", dropna=dropna, sort=sort, observed=True)
    if sort or dropna or not isinstance(keys.dtype, pandas.CategoricalDtype):
        pandas.testing.assert_index_equal(groups.groups, expected.sum().index)
    for reduction in ("sum", "mean", "min", "max", "count", "first"):
        result, known = getattr(groups, reduction)(values), getattr(expected, reduction)()
        result, known = (table.reset_index(drop=not sort).sort_values("i") for table in (result, known))
        pandas.testing.assert_frame_equal(
            result.reset_index(drop=True), known.reset_index(drop=True), check_categorical=False
        )
    assert groups.count(values["x"]).name == "x"


def test_columns_of_pandas_have_their_names_and_skip_what_pandas_skips():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"k": ["b", "a", "b"], "l": [1, 1, 2], "x": [1.0, NAN, 2.0], "y": pandas.array([1, None, 2**60], "Int64")}
    )
    groups = samesum.groupby(frame, "k")
    assert groups.sum("x").to_dict() == {"a": 0.0, "b": 3.0} and groups.sum("x").index.name == "k"
    assert groups.sum("y").to_dict() == {"a": 0, "b": 2**60 + 1}
    assert groups.sum("y", skipna=False).isna().to_dict() == {"a": True, "b": False}
    assert [*groups.sum().columns] == ["l", "x", "y"] and [*groups.sum(["y", "l"]).columns] == ["y", "l"]
    assert groups.dot("x", "y").to_dict() == {"a": 0.0, "b": 1 + 2.0**61}
    texts = frame.assign(t=["c", None, "d"])
    assert samesum.groupby(texts, "l").first("t").to_dict() == {1: "c", 2: "d"}
    assert samesum.groupby(texts, "l").count(["t", "k"]).to_dict() == {"t": {1: 1, 2: 1}, "k": {1: 2, 2: 1}}
    assert groups.max("y").isna().to_dict() == {"a": True, "b": False}
    assert samesum.groupby(frame, ["k", "l"]).sum("x").to_dict() == {("a", 1): 0.0, ("b", 1): 1.0, ("b", 2): 2.0}
    assert samesum.groupby(frame[["k", "l"]]).sum(frame["x"]).index.names == ["k", "l"]
    assert same_bits(samesum.groupby(frame["k"]).sum(frame["x"].to_numpy()), np.array([NAN, 3.0]))
    assert samesum.groupby(["b", "a", "b"]).sum(frame["x"]).to_dict() == {"a": 0.0, "b": 3.0}


def test_keys_and_values_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"k": ["b", "a", None, "b"], "n": [2, 1, None, 2], "x": [1.0, None, 4.0, NAN], "i": [1, 2, 4, None]}
    )
    keys = [frame["k"], frame["n"], frame["k"].cast(polars.Categorical), frame["n"].cast(polars.Datetime)]
    keys += [frame["k"].cast(polars.Enum(["a", "b"])), frame["n"].cast(polars.Float32), frame["n"] == 2]
    for column in keys:
        groups = samesum.groupby(column)
        assert groups.groups.dtype == column.dtype and len(groups) == 2
        sums = groups.sum(frame[["x", "i"]])
        assert isinstance(sums, polars.DataFrame) and sums.columns == [column.name, "x", "i"]
        assert sums["i"].to_list() == [2, 1] and same_bits(sums["x"].to_numpy(), np.array([0.0, NAN]))
        assert groups.sum(frame["x"], skipna=True)["x"].to_list() == [0.0, 1.0]
        last = samesum.groupby(column, dropna=False).sum(frame["i"])
        assert last[column.name].to_list()[2] is None and last["i"].to_list() == [2, 1, 4]
    several = samesum.groupby(frame[["k", "n"]], sort=False).mean(frame["i"])
    assert several.to_dict(as_series=False) == {"k": ["b", "a"], "n": [2, 1], "i": [1.0, 2.0]}
    by = samesum.groupby(frame, ["k"])
    assert by.groups["k"].to_list() == ["a", "b"] and by.first()["i"].to_list() == [2, 1]
    assert by.dot("i", "i")["dot"].to_list() == [4.0, 1.0]
    texts = samesum.groupby([1, 1, 2, 2])
    assert texts.count(frame["k"])["k"].to_list() == [2, 1] and texts.first(frame["k"])["k"].to_list() == ["b", "b"]
    assert samesum.groupby([1, 2, 2, 1]).sum(frame["i"]).to_dict(as_series=False) == {"key": [1, 2], "i": [1, 6]}
    with pytest.raises(TypeError, match=r"a LazyFrame has no rows yet; pass what its collect\(\) returns"):
        samesum.groupby(frame.lazy())
    with pytest.raises(ValueError, match="2 columns of the name 'k', of the keys and values; rename"):
        samesum.groupby(frame["k"]).count(frame[["k"]].rename({}).with_columns(k=1.0))


def test_keys_and_values_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.array(["b", "a", None, "b"])
    repeated = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, None, 2]), arrow.array(["b", "a", "b"]))
    null = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 2, 0]), arrow.array(["b", "a", None]))
    chunks = arrow.chunked_array([texts[:1].dictionary_encode(), texts[1:].dictionary_encode()])
    numbers = arrow.array([2, 1, None, 2]), arrow.array([2.5, 1, None, 2.5]), arrow.chunked_array([[2, 1, 3], [2]])
    for keys in (texts, texts.dictionary_encode(), repeated, null, chunks, *numbers):
        groups = samesum.groupby(keys)
        values = arrow.array([1.0, None, 4.0, 8.0])
        assert groups.groups.type == keys.type and len(groups) == (3 if keys is numbers[2] else 2)
        assert groups.sum(values).tolist()[:2] == [0.0, 9.0]
        assert math.isnan(groups.sum(values, skipna=False)[0])
        assert groups.sum(arrow.chunked_array([[1], [2, None, 2**60]])).tolist()[:2] == [2, 2**60 + 1]
    table = arrow.table({"k": texts, "x": [1.0, 2.0, 3.0, 4.0], "b": [True, None, True, True]})
    result = samesum.groupby(table, "k").sum()
    assert result.to_pydict() == {"k": ["a", "b"], "x": [2.0, 5.0], "b": [0, 2]}
    assert samesum.groupby(arrow.chunked_array([], "string")).count().tolist() == []


@pytest.mark.parametrize(("name", "make"), [("torch", "tensor"), ("jax.numpy", "array")])
def test_values_of_another_library_have_results_of_it(name, make):
    module = pytest.importorskip(name)
    values = getattr(module, make)([1.0, 2.0, 4.0], dtype=module.float32)
    groups = samesum.groupby(getattr(module, make)([2, 1, 2]))
    for result in (groups.sum(values), groups.var(values), groups.first(values)):
        assert type(result) is type(values) and result.dtype == values.dtype
    assert groups.sum(values).tolist() == [2.0, 5.0]
    assert groups.dot(values, values).tolist() == [4.0, 17.0]


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.groupby([1, "a"]), TypeError, "keys has elements that do not compare .*pass keys of one kind"),
        (lambda s: s.groupby([[1, 2], [1, "a"]]), TypeError, r"keys\[1\] has elements that do not compare"),
        (lambda s: s.groupby(np.array([{}, {}], object)), TypeError, "keys has elements without a hash"),
        (lambda s: s.groupby([[1, 2], [1, 2, 3]]), ValueError, "columns of keys have the lengths {0: 2, 1: 3}"),
        (lambda s: s.groupby({}), ValueError, "keys has no columns"),
        (lambda s: s.groupby(7), ValueError, r"keys has shape \(\)"),
        (lambda s: s.groupby(np.zeros((2, 2))), ValueError, r"keys has shape \(2, 2\)"),
        (lambda s: s.groupby(np.ma.array([1, 2])), TypeError, "keys is a masked array"),
        (lambda s: s.groupby([1, 2], "k"), TypeError, "by names columns of a frame, and keys is a list"),
        (lambda s: s.groupby([1, 2]).sum([1.0]), ValueError, "values has 1 rows, and there are 2 keys"),
        (lambda s: s.groupby([1, 2]).sum(1.0), ValueError, "values has no rows"),
        (lambda s: s.groupby([1, 2]).first([1.0]), ValueError, "values has 1 rows, and there are 2 keys"),
        (lambda s: s.groupby([1, 2]).sum(), TypeError, "values is None; pass the values"),
        (lambda s: s.groupby([1, 2]).sum(["a", "b"]), TypeError, "values"),
        (lambda s: s.groupby([1, 2]).dot([1.0, 2.0], [1.0]), ValueError, "y has 1 rows, and there are 2 keys"),
        (lambda s: s.groupby([1, 2]).dot([1.0, 2.0], [[1.0], [2.0]]), ValueError, "pass arrays of one shape"),
        (lambda s: s.groupby([1, 2]).sum([1.0, 2.0], method="mean/exact"), ValueError, "computes mean, not sum"),
        (lambda s: s.groupby([1, 2]).sum([1.0, 2.0], threads=-1), ValueError, "threads is -1"),
        (lambda s: s.groupby([1, 2]).var([1.0, 2.0], ddof=0.5), ValueError, "ddof"),
        (lambda s: s.groupby([1, 2]).first([[1.0, NAN], [1.0, 1.0]], skipna=True), ValueError, "pass one column"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named_with_a_remedy(call, error, message):
    with pytest.raises(error, match=f"^samesum: .*{message}"):
        call(samesum)
    assert samesum.groupby([1, "a"], sort=False).sum([1.0, 2.0]).tolist() == [1.0, 2.0]


def test_columns_that_a_frame_does_not_have_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": [1, 2], "x": [1.0, 2.0], "t": ["a", "b"]})
    with pytest.raises(
        ValueError, match="by names the column 'z', which the frame does not have; use one of 'k', 'x', 't'"
    ):
        samesum.groupby(frame, ["k", "z"])
    with pytest.raises(ValueError, match="values names the column 'z'"):
        samesum.groupby(frame, "k").sum(["x", "z"])
    with pytest.raises(ValueError, match="y names the column 'z'"):
        samesum.groupby(frame, "k").dot("x", "z")
    with pytest.raises(TypeError, match=r"values\['t'\] has"):
        samesum.groupby(frame, "k").sum()


# --- against Python -------------------------------------------------------------------------------------------

NUMBERS = st.floats(width=32) | st.sampled_from(AWKWARD)
ELEMENTS = {
    "int64": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "float64": st.sampled_from([NAN, 0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, 5e-324]),
    "object": st.sampled_from(["b", "a", "", None, NAN]),
}


@st.composite
def tables(draw):
    """Columns of keys, and two of values."""
    n = draw(st.integers(0, 40))
    kinds = draw(st.lists(st.sampled_from([*ELEMENTS]), min_size=1, max_size=3))
    columns = [np.array(draw(st.lists(ELEMENTS[kind], min_size=n, max_size=n)), kind) for kind in kinds]
    x, y = (np.array(draw(st.lists(NUMBERS, min_size=n, max_size=n)), np.float64) for _ in range(2))
    return columns, x, y


def exact_sum(numbers):
    if all(map(math.isfinite, numbers)):
        total = sum(map(Fraction, numbers))
        if total == 0 and numbers:
            return -0.0 if all(x == 0 and math.copysign(1, x) < 0 for x in numbers) else 0.0
        return rounded(total)
    special = {x for x in numbers if not math.isfinite(x)}
    return special.pop() if len(special) == 1 else NAN


def rounded(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


@settings(max_examples=50)
@given(tables(), st.booleans(), st.booleans(), st.booleans())
def test_groups_are_those_of_python(table, sort, dropna, skipna):
    columns, x, y = table
    is_missing = lambda key: key is None or key != key
    rows = {}
    for row in range(len(x)):
        key = tuple((1, 0) if is_missing(k) else (0, k) for k in (c.tolist()[row] for c in columns))
        if not dropna or all(part[0] == 0 for part in key):
            rows.setdefault(key, []).append(row)
    expected = {key: rows[key] for key in (sorted(rows) if sort else rows)}
    groups = samesum.groupby(columns, sort=sort, dropna=dropna)
    keys = [
        tuple((1, 0) if is_missing(k) else (0, k) for k in key) for key in zip(*(c.tolist() for c in groups.groups))
    ]
    assert keys == [*expected]
    found = {name: getattr(groups, name)(x, skipna=skipna) for name in ("sum", "mean", "var", "min", "max", "count")}
    dots, first = groups.dot(x, y, skipna=skipna), groups.first(x, skipna=skipna)
    for number, own in enumerate(expected.values()):
        numbers = [v for v in x[own].tolist() if not (skipna and v != v)]
        assert found["count"][number] == len(numbers)
        total = exact_sum(numbers)
        assert same_bits(found["sum"][number], np.float64(total if numbers else 0.0))
        assert same_bits(first[number], np.float64(numbers[0] if numbers else x[own[0]]))
        if not numbers:
            assert all(math.isnan(found[name][number]) for name in ("mean", "var", "min", "max"))
            continue
        has_nan = any(v != v for v in numbers)
        assert same_bits(found["min"][number], np.float64(NAN if has_nan else samesum.min(numbers)))
        assert found["max"][number] == max(numbers) or has_nan
        if all(map(math.isfinite, numbers)):
            fractions = [*map(Fraction, numbers)]
            assert found["mean"][number] == rounded(sum(fractions) / len(numbers))
            assert found["var"][number] == rounded(statistics.pvariance(fractions))
        pairs_ = [(a, b) for a, b in zip(x[own].tolist(), y[own].tolist()) if not (skipna and (a != a or b != b))]
        if all(math.isfinite(a) and math.isfinite(b) for a, b in pairs_):
            assert dots[number] == rounded(sum(Fraction(a) * Fraction(b) for a, b in pairs_))


def test_missing_keys_are_apart_from_all_others() -> None:
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    groups = samesum.groupby(pyarrow.array([1, 2**63 - 1, None, 2**63 - 1]))
    assert groups.groups.to_pylist() == [1, 2**63 - 1] and groups.count().tolist() == [1, 2]
    for keys in ([1.0, np.nan], [1.0, np.nan, None]):
        assert len(samesum.groupby(polars.Series(keys, strict=False))) == 1


def test_extrema_of_nullable_integers_are_not_rounded_by_agg():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": [1, 2], "v": pd.array([None, 2**53 + 1], dtype="Int64")})
    groups = samesum.groupby(frame, "k")
    assert groups.agg("max")["v"].tolist()[1] == 2**53 + 1
    pd.testing.assert_frame_equal(groups.agg("max"), groups.max())
