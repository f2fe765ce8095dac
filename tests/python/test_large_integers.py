"""An integer that a double does not hold is exact, or refused, or rounded with a bound that covers it. Keys are as they
came.
"""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any, Callable

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402
from samesum._calls.arguments import Call  # noqa: E402
from samesum._calls.integers import EXACT_OPERATIONS, reduce_integers  # noqa: E402
from samesum._elements.library import library  # noqa: E402

B = 2**53
LARGE = np.array([B + 1, -B, 3, B + 3, -B - 1], np.int64)
UNSIGNED = np.array([2**64 - 1, 2**63 + 1, 5, 2**53 + 1], np.uint64)


def exact_mean(x: Any) -> float:
    return float(Fraction(sum(map(int, x)), len(x)))


def columns(values: list[int | None]) -> list[Any]:
    """Returns a column of nullable integers of each library that is installed, and a list and an array of objects."""
    found: list[Any] = [values, np.array(values, object)]
    for name, make in (
        ("pandas", lambda pd: pd.Series(values, dtype="Int64")),
        ("pandas", lambda pd: pd.array(values, dtype="Int64")),
        ("polars", lambda pl: pl.Series(values)),
        ("pyarrow", lambda pa: pa.array(values)),
        ("pyarrow", lambda pa: pa.chunked_array([values[:1], values[1:]])),
    ):
        try:
            found.append(make(__import__(name)))
        except ImportError:
            pass
    return found


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(columns([B, B + 1, None]))))
def test_identifiers_beside_a_null_stay_apart(place: int) -> None:
    keys = columns([B, B + 1, None])[place]
    unique, sums = samesum.groupby_sum(keys, [1.0, 2.0, 4.0])
    assert unique.tolist() == [B, B + 1, None] and sums.tolist() == [1, 2, 4]
    runs, sums = samesum.reduce_by_key(keys, [1.0, 2.0, 4.0])
    assert runs.tolist() == [B, B + 1, None] and sums.tolist() == [1, 2, 4]


@pytest.mark.parametrize("place", range(len(columns([1, None]))))
def test_counts_of_keys_with_a_null_are_refused_by_that_name(place: int) -> None:
    with pytest.raises(TypeError, match="bincount: keys has elements of type object, of which 1 is null"):
        samesum.bincount(columns([1, None])[place])


def test_unsigned_and_boolean_keys_beside_a_null_keep_their_values() -> None:
    pd = pytest.importorskip("pandas")
    unique, _ = samesum.groupby_sum(pd.array([2**63, 2**63 + 1, None], "UInt64"), [1.0, 2.0, 4.0])
    assert unique.tolist() == [2**63, 2**63 + 1, None]
    unique, _ = samesum.groupby_sum(pd.array([True, None, False], "boolean"), [1.0, 2.0, 4.0])
    assert [type(key) for key in unique] == [bool, bool, type(None)]


# --- groups -----------------------------------------------------------------------------------------------------------


def first_and_last(result: Any) -> tuple[Any, Any]:
    if type(result).__module__.startswith("polars"):
        rows = result.rows()
        return rows[0][-1], rows[-1][-1]
    return result.tolist()[0], result.tolist()[-1]


@pytest.mark.parametrize("name", ["min", "max"])
def test_an_extremum_of_a_group_is_exact_though_another_group_has_none(name: str) -> None:
    large = 2**62 + 1
    masked = np.ma.array([large, 5], mask=[False, True])
    assert first_and_last(getattr(samesum.groupby([1, 2]), name)(masked)) == (large, None)
    matrix = np.ma.array([[large, 1], [5, large]], mask=[[False, True], [True, True]])
    assert getattr(samesum.groupby([1, 2]), name)(matrix).tolist() == [[large, None], [None, None]]
    for column in columns([large, None])[2:]:
        first, last = first_and_last(getattr(samesum.groupby([1, 2]), name)(column))
        assert first == large and (last is None or str(last) == "<NA>")


def test_extrema_of_groups_of_frames_are_nullable_integers() -> None:
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    large = 2**62 + 1
    frame = pd.DataFrame({"k": [1, 2], "v": pd.array([large, None], "Int64"), "b": pd.array([True, None], "boolean")})
    result = samesum.groupby(frame, "k").max()
    assert [str(dtype) for dtype in result.dtypes] == ["Int64", "boolean"] and result["v"].iloc[0] == large
    frame = pl.DataFrame({"k": [1, 2], "v": pl.Series([3, None], dtype=pl.Int8)})
    assert samesum.groupby(frame, "k").min().rows() == [(1, 3), (2, None)]
    assert samesum.groupby(pa.table({"k": [1, 2], "v": [large, None]}), "k").max()["v"].to_pylist() == [large, None]


def test_nulls_that_are_not_skipped_round_no_other_group() -> None:
    masked = np.ma.array([B + 1, 2**62], mask=[False, True])
    with pytest.raises(OverflowError, match="values has integers that float64 does not hold"):
        samesum.groupby([1, 2]).sum(masked, skipna=False)
    held = np.ma.array([B, B + 1], mask=[False, True])  # what stands at a null means nothing
    np.testing.assert_array_equal(samesum.groupby([1, 2]).sum(held, skipna=False), [B, np.nan])


# --- exact results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [LARGE, UNSIGNED], ids=["int64", "uint64"])
def test_means_of_integers_are_exact_and_rounded_once(x: Any) -> None:
    expected = exact_mean(x)
    assert samesum.mean(x) == samesum.mean(x.tolist()) == samesum.average(x) == samesum.groupby([0] * len(x)).mean(x)[0]
    assert samesum.mean(x) == expected
    both = np.stack([x, x[::-1]])
    assert samesum.mean(both, axis=1, keepdims=True).tolist() == [[expected], [expected]]
    shown = np.arange(len(x)) % 2 == 0
    assert samesum.mean(both, axis=1, where=shown).tolist() == [exact_mean(x[shown]), exact_mean(x[::-1][shown])]
    assert samesum.mean(np.ma.array(x, mask=~shown)) == exact_mean(x[shown])
    out = np.empty(2)
    assert samesum.mean(both, axis=1, out=out) is out and out.tolist() == [expected] * 2
    assert samesum.sum(x, method="exact/fp64") == float(sum(map(int, x)))
    assert samesum.mean(x, method="exact/fp32") == np.float32(expected)


def test_sums_by_key_of_integers_are_exact() -> None:
    x, keys = np.array([B + 1, -B, B + 1, 7]), [0, 0, 1, 1]
    rounded = float(B + 8)
    for values, where in ((x, None), (np.stack([x, -x], 1), None), (np.append(x, 9), [True] * 4 + [False])):
        of_rows = keys if len(values) == 4 else [*keys, 0]
        sums = samesum.groupby_sum(of_rows, values, where=where)[1]
        assert sums.reshape(2, -1)[:, 0].tolist() == [1, rounded]
        added = samesum.scatter_add(np.ones(sums.shape), of_rows, values, where=where)
        assert added.reshape(2, -1)[:, 0].tolist() == [2, float(B + 9)]
    assert samesum.bincount(keys, weights=x).tolist() == [1, rounded]
    assert samesum.groupby_sum(keys, x, method="serial/plain")[1][0] == 0  # a method that rounds


def test_a_sum_of_integers_of_any_kind_in_a_list_is_exact() -> None:
    assert samesum.Exact([np.int64(B + 1), -B, True]).value() == 2
    assert samesum.Exact(np.array([B + 1, -B])).value() == 1
    assert samesum.sum([np.int64(B + 1), -B]) == 1


def test_partials_of_exact_methods_refuse_what_they_would_round() -> None:
    for x in (LARGE, UNSIGNED):
        with pytest.raises(OverflowError, match="x has integers that float64 does not hold"):
            samesum.Partial("exact/fp64").add(x)
        samesum.Partial("tree/plain/fp64").add(x)
    partial = samesum.Partial("exact/fp64")
    partial.add(np.array([B, -B, 2**60], np.int64))
    assert partial.finish() == 2**60
    with pytest.raises(OverflowError, match="y has integers"):
        samesum.Partial("dot/exact/fp64").add(np.ones(5, np.int64), LARGE)


# --- what would be rounded is refused ---------------------------------------------------------------------------------

CORRECTLY_ROUNDED: dict[str, Callable[..., Any]] = {
    "var": samesum.var,
    "dot": lambda x, **o: samesum.dot(x, x, **o),
    "dot with floats": lambda x, **o: samesum.dot(x, np.ones(len(x)), **o),
    "floats dot": lambda x, **o: samesum.dot(np.ones(len(x)), x, **o),
    "weighted sum": lambda x, **o: samesum.sum(np.ones(len(x)), weights=x, **o),
    "weighted mean": lambda x, **o: samesum.mean(x, weights=np.ones(len(x)), **o),
    "cov": samesum.cov,
    "linear_regression": lambda x, **o: samesum.linear_regression(x, np.ones(len(x)), **o),
    "softmax": samesum.softmax,
    "cumsum": samesum.cumsum,
    "cummax": samesum.cummax,
    "nancumsum": samesum.nancumsum,
    "rolling_sum": lambda x, **o: samesum.rolling_sum(x, 2, **o),
    "rolling_max": lambda x, **o: samesum.rolling_max(x, 2, **o),
}


@pytest.mark.parametrize("name", CORRECTLY_ROUNDED)
def test_a_correctly_rounded_function_refuses_integers_that_it_would_round(name: str) -> None:
    function = CORRECTLY_ROUNDED[name]
    for x in (LARGE, UNSIGNED, LARGE.tolist()):
        with pytest.raises(
            OverflowError, match="samesum: (x|y|weights) has integers that float64 does not hold; convert"
        ):
            function(x)
        function(x, dtype="float64")  # the caller rounds
    held = np.array([2**62, -(2**63), B, 3])
    np.testing.assert_array_equal(function(held), function(held.astype(float)))


def test_a_run_of_keys_refuses_integers_that_it_would_round() -> None:
    for operation in ("sum", "mean", "max", "moments"):
        with pytest.raises(OverflowError, match="values has integers"):
            samesum.reduce_by_key([1] * 5, LARGE, operation=operation)
    samesum.reduce_by_key([1] * 5, LARGE, method="tree/plain")


def test_integers_beside_floats_in_a_list_or_a_frame_are_not_rounded_unseen() -> None:
    for x in (
        [B + 1, 0.5],
        [-float(B), B + 1],
        [[1.0, 2.0], [0.5, B + 1]],
        (np.int64(B + 1), 0.5),
        [float("nan"), B + 1],
    ):
        with pytest.raises(OverflowError, match="x has integers that float64 does not hold"):
            samesum.sum(x)
        samesum.sum(x, dtype="float64")
        samesum.sum(x, weights=x, dtype="float64")
    assert samesum.sum([B, 0.5]) == B and samesum.sum([1e300, 2]) == 1e300
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [B + 1, -B], "b": [0.5, 1.0]})
    with pytest.raises(OverflowError, match="x has integers"):
        samesum.sum(frame, axis=1)
    assert samesum.sum(frame.assign(a=[B, -B]), axis=(0, 1)) == 1.5
    null = frame.assign(a=pd.arrays.IntegerArray(np.array([B + 1, 3]), np.array([True, False])))
    assert samesum.sum(null, axis=1).tolist() == [0.5, 4]


def test_integers_are_not_rounded_to_a_narrower_type_of_the_other_input() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(OverflowError, match="x has integers that float32 does not hold"):
        samesum.dot(torch.tensor([2**24 + 1]), torch.ones(1))
    weights = torch.ones(1, requires_grad=True)
    with pytest.raises(OverflowError, match="x has integers that float32 does not hold"):
        samesum.vecdot(torch.tensor([2**24 + 1]), weights)
    assert samesum.mean(torch.tensor([B + 1, -B])) == 0.5


# --- what a mask hides does not count ---------------------------------------------------------------------------------

SHOWN = np.array([True, True, False, True, True])
HIDDEN = {"int64": B + 1, "int64 ": 2**63 - 1, "uint64": 2**64 - 1, "object": 2**70, "object ": -(2**70)}
SELECTING = [
    (name, argument)
    for name in samesum.__all__
    if inspect.isfunction(getattr(samesum, name)) and "where" in inspect.signature(getattr(samesum, name)).parameters
    for argument in ("x", "y", "values", "weights")
    if argument in inspect.signature(getattr(samesum, name)).parameters
]
"""All functions that take a mask, and each of their arguments that may hold integers."""


def numbers(hidden: int, dtype: str) -> Any:
    return np.array([3, 1, hidden, 2, 4], dtype.strip())


def called(name: str, argument: str, a: Any, **options: Any) -> list[Any]:
    """Returns the results of a function with an array as one of its arguments; the others are floats and keys."""
    function, floats = getattr(samesum, name), np.array([1.0, 2.0, 4.0, 0.5, 3.0])
    needed = {"x": floats, "y": floats, "values": floats, "keys": [0, 0, 1, 1, 1], "out": np.zeros(2)}
    parameters = inspect.signature(function).parameters.items()
    given = {n: needed[n] for n, p in parameters if p.default is p.empty} | {argument: a} | options
    if (name, argument) == ("reduce_by_key", "y"):
        given["operation"] = "dot"
    positional = [given.pop(n) for n, p in parameters if p.kind is p.POSITIONAL_ONLY and n in given]
    result = function(*positional, **given)
    return [*result] if isinstance(result, tuple) else [result]


def hiding_columns(a: Any) -> list[Any]:
    """Returns columns that hide an element of an array, below whose mask it still stands."""
    found = [np.ma.array(a, mask=~SHOWN)]
    if a.dtype.hasobject:
        return found
    try:
        import pandas as pd

        found += [pd.arrays.IntegerArray(a, ~SHOWN), pd.Series(pd.arrays.IntegerArray(a, ~SHOWN))]
    except ImportError:
        pass
    try:
        import pyarrow as pa

        buffers = [pa.py_buffer(np.packbits(SHOWN, bitorder="little").tobytes()), pa.py_buffer(a.tobytes())]
        found.append(pa.Array.from_buffers(pa.from_numpy_dtype(a.dtype), len(a), buffers))
    except ImportError:
        pass
    try:
        import polars as pl

        found.append(pl.from_arrow(found[-1]) if type(found[-1]).__module__.startswith("pyarrow") else pl.Series(a))
    except ImportError:
        pass
    return found


@pytest.mark.parametrize("dtype", HIDDEN)
@pytest.mark.parametrize(("name", "argument"), SELECTING)
def test_an_integer_that_a_mask_hides_is_as_if_absent(name: str, argument: str, dtype: str) -> None:
    a, usual = numbers(HIDDEN[dtype], dtype), numbers(7, dtype)
    for x, small in ((a, usual), (a.tolist(), usual.tolist())):
        expected = called(name, argument, small, where=SHOWN)
        for one, other in zip(called(name, argument, x, where=SHOWN), expected):
            np.testing.assert_array_equal(one, other)
    if argument != "weights":
        for column, small in zip(hiding_columns(a), hiding_columns(usual)):
            for one, other in zip(called(name, argument, column), called(name, argument, small)):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_an_integer_that_the_mask_of_a_tensor_hides_is_as_if_absent(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    a, usual, shown = (torch.from_numpy(x) for x in (numbers(HIDDEN[dtype], dtype), numbers(7, dtype), SHOWN))
    for function in (
        samesum.sum,
        samesum.mean,
        samesum.var,
        samesum.norm,
        samesum.cumsum,
        samesum.average,
        samesum.cov,
    ):
        np.testing.assert_array_equal(function(a, where=shown), function(usual, where=shown))
    floats = torch.ones(5)
    assert samesum.dot(a, floats, where=shown) == samesum.dot(floats, a, where=shown) == 10


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int64", "bool"])
@pytest.mark.parametrize("operation", EXACT_OPERATIONS)
def test_the_way_of_a_gpu_selects_integers_of_all_types(operation: str, dtype: str, monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    tensors = library("torch")
    most = 1 if dtype == "bool" else np.iinfo(dtype).max
    a = torch.from_numpy(np.array([3, 1, most, 2, 4], dtype))
    masks = [torch.from_numpy(SHOWN), torch.from_numpy(~SHOWN)]
    call = Call(operation, a, check=True, library=tensors, axes=(0,))
    expected = []
    for call.where in masks:
        expected.append(reduce_integers(call))
    view = type(tensors).view
    monkeypatch.setattr(type(tensors), "view", lambda self, a: view(self, a)._replace(device=0))
    for call.where, on_host in zip(masks, expected):
        found = reduce_integers(call)
        assert found.item() == on_host.item() and found.dtype == on_host.dtype


@pytest.mark.parametrize(
    ("name", "argument"), [("vecdot", "x"), ("vecdot", "y"), ("cov", "y"), ("linear_regression", "x"), ("average", "x")]
)
def test_an_integer_beside_a_nan_that_is_skipped_is_as_if_absent(name: str, argument: str) -> None:
    a, usual = numbers(B + 1, "int64"), numbers(7, "int64")
    other = {"average": "weights"}.get(name, "y" if argument == "x" else "x")
    options = {other: np.array([1.0, 2.0, np.nan, 0.5, 3.0]), "skipna": True}
    if name == "cov":  # whose entry for the integers alone has all of them
        with pytest.raises(OverflowError, match="y has integers"):
            called(name, argument, a, **options)
    else:
        for one, expected in zip(called(name, argument, a, **options), called(name, argument, usual, **options)):
            np.testing.assert_array_equal(one, expected)
    with pytest.raises(OverflowError, match=f"{argument} has integers that float64 does not hold"):
        called(name, argument, a, **{**options, "skipna": False})


def test_an_integer_that_is_hidden_from_some_results_only_is_refused() -> None:
    x, shown = np.array([[B + 1, 1]]), np.array([[False, True], [True, True]])
    with pytest.raises(OverflowError, match="x has integers"):
        samesum.vecdot(x, np.ones((2, 2)), where=shown)
    weights = np.array([B + 1, 1])
    with pytest.raises(OverflowError, match="weights has integers"):
        samesum.mean(np.ones((2, 2)), axis=1, weights=weights, where=shown)
    hidden = np.array([[False, True], [False, True]])
    assert samesum.vecdot(x, np.ones((2, 2)), where=hidden).tolist() == [1, 1]
    assert samesum.mean(np.ones((2, 2)), axis=1, weights=weights, where=hidden).tolist() == [1, 1]


def test_objects_beyond_64_bits_are_refused_by_that_name_with_and_without_masks() -> None:
    pd = pytest.importorskip("pandas")
    x = np.array([2**70, 1, 2], object)
    for given in (x, x.tolist(), pd.Series(x), np.ma.array(x, mask=[False, True, False])):
        for call in (
            samesum.var,
            samesum.cov,
            lambda x, **o: samesum.linear_regression(x, x, **o),
            lambda x, **o: samesum.average(x, weights=np.ones(3), **o),
        ):
            for options in ({}, {"skipna": True}, {"where": [True, True, False]}):
                with pytest.raises(OverflowError, match="x has integers beyond 64 bits; convert them to floats first"):
                    call(given, **options)


def test_groups_leave_out_integers_that_masks_hide() -> None:
    for dtype, hidden in HIDDEN.items():
        a, usual = (np.ma.array(numbers(n, dtype), mask=~SHOWN) for n in (hidden, 7))
        for name in ("sum", "mean", "var", "max", "count"):
            groups = samesum.groupby([0, 0, 1, 1, 1])
            np.testing.assert_array_equal(getattr(groups, name)(a), getattr(groups, name)(usual))


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x", [[B + 1, -B], LARGE, UNSIGNED, np.full(300, 2**62 + 255)], ids=["list", "i8", "u8", "many"]
)
def test_the_bound_of_an_estimate_covers_the_rounding_of_integers(x: Any) -> None:
    exact = {"sum": Fraction(sum(map(int, x))), "mean": Fraction(sum(map(int, x)), len(x))}
    exact["sum_of_magnitudes"] = Fraction(sum(abs(int(v)) for v in x))
    for operation, truth in exact.items():
        for m in samesum.methods(f"{operation}/*/fp64@cpu"):
            if m.promise == "none" or m.name == "sum_of_magnitudes/exact/fp64@cpu":
                continue
            found = samesum.estimate(x, m)
            assert abs(Fraction(found.value) - truth) <= Fraction(found.bound), m.name
            assert Fraction(found.magnitudes) >= exact["sum_of_magnitudes"]
    for name in ("sum_of_magnitudes/exact", "squared_norm/exact", "squared_norm/tree"):
        with pytest.raises(OverflowError, match="x has integers"):
            samesum.estimate(x, name)


def test_an_estimate_of_an_exact_sum_of_integers_has_its_value() -> None:
    for x in columns([B + 1, -B])[::2] + columns([B + 1, None, -B])[2:]:
        found = samesum.estimate(x)
        assert found.value == 1 and found.bound < 1e-15


def test_errors_of_a_comparison_of_integers_are_those_of_their_exact_sum() -> None:
    rows = samesum.compare(np.array([B + 1, -B]))
    assert len(rows) > 5 and all(row.error == abs(row.value - 1) <= row.bound for row in rows)
    assert [row.value for row in rows if row.method == "sum/exact/fp64@cpu"] == [1]


# --- functions of floats convert integers -----------------------------------------------------------------------------


def test_scans_and_windows_convert_integers_and_booleans() -> None:
    flags, small = np.array([True, False, True]), np.array([3, 1, 2], np.int8)
    for x in (flags, small, small.astype(np.uint64), small.tolist()):
        floats = np.asarray(x, float)
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "cumulative_sum", "nancumsum"):
            result = getattr(samesum, name)(x)
            assert result.dtype == np.float64
            np.testing.assert_array_equal(result, getattr(samesum, name)(floats))
        for name in ("rolling_sum", "rolling_mean", "rolling_var", "rolling_min", "rolling_max"):
            np.testing.assert_array_equal(getattr(samesum, name)(x, 2), getattr(samesum, name)(floats, 2))
