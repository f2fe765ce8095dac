"""Columns and frames: of pandas, polars, pyarrow, Dask, xarray, and of whatever has Arrow's protocols."""

from __future__ import annotations

import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

import samesum

np = pytest.importorskip("numpy")

FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REDUCTIONS = ["sum", "mean", "var", "std", "min", "max", "argmin", "argmax", "norm", "logsumexp", "prod"]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed; pip install {name}")


def wanted(function: str, values: list[Any], dtype: str, **options: Any) -> Any:
    """The result for the elements that are there, as an array; indices count the others too."""
    there = [i for i, v in enumerate(values) if v is not None]
    result = getattr(samesum, function)(np.array([values[i] for i in there], dtype), **options)
    return result if not function.startswith("arg") or not there else there[int(result)]


# --- columns of each library, made from a list with None for nulls ---------------------------------------------


def pandas_masked(values: list[Any], dtype: str) -> Any:
    pd = library("pandas")
    if dtype == "float16":
        pytest.skip("pandas has no nullable type of floats with 16 bits")
    name = "boolean" if dtype == "bool" else "UI" + dtype[2:] if dtype[0] == "u" else dtype.capitalize()
    return pd.Series(values, dtype=name)


def pandas_arrow(values: list[Any], dtype: str) -> Any:
    pd, pa = library("pandas"), library("pyarrow")
    return pd.Series(pd.array(pyarrow_array(values, dtype), dtype=pd.ArrowDtype(pyarrow_type(pa, dtype))))


def pyarrow_type(pa: Any, dtype: str) -> Any:
    return {"bool": pa.bool_(), "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}.get(
        dtype
    ) or getattr(pa, dtype)()


def pyarrow_array(values: list[Any], dtype: str) -> Any:
    pa = library("pyarrow")
    if dtype == "float16":
        values = [None if v is None else np.float16(v) for v in values]
    return pa.array(values, pyarrow_type(pa, dtype))


def pyarrow_slice(values: list[Any], dtype: str) -> Any:
    one, zero = (True, False) if dtype == "bool" else (1, 0)
    return pyarrow_array([None, one, zero, *values, one, None], dtype)[3 : 3 + len(values)]


def pyarrow_chunks(values: list[Any], dtype: str) -> Any:
    pa, middle = library("pyarrow"), len(values) // 3
    parts = [pyarrow_array(part, dtype) for part in (values[:middle], [], values[middle:])]
    return pa.chunked_array(parts)


def polars_series(values: list[Any], dtype: str) -> Any:
    pl = library("polars")
    names = {"bool": "Boolean", **{f"uint{b}": f"UInt{b}" for b in (8, 16, 32, 64)}}
    return pl.Series("x", values, getattr(pl, names.get(dtype, dtype.capitalize())))


def polars_chunks(values: list[Any], dtype: str) -> Any:
    pl, middle = library("polars"), len(values) // 2
    return pl.concat([polars_series(p, dtype) for p in (values[:middle], values[middle:])], rechunk=False)


class OnlyArray:
    """Has the protocol of arrays and nothing else."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.a.__arrow_c_array__(requested_schema)


class OnlyStream:
    """Has the protocol of streams, which are read once."""

    def __init__(self, a: Any) -> None:
        self.capsule = a.__arrow_c_stream__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        capsule, self.capsule = self.capsule, None
        return capsule


COLUMNS = {
    "pandas, masked": pandas_masked, "pandas, arrow": pandas_arrow, "pyarrow": pyarrow_array,
    "pyarrow, slice": pyarrow_slice, "pyarrow, chunks": pyarrow_chunks, "polars": polars_series,
    "polars, chunks": polars_chunks, "protocol of arrays": lambda v, d: OnlyArray(pyarrow_slice(v, d)),
    "protocol of streams": lambda v, d: OnlyStream(pyarrow_chunks(v, d)),
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_nulls_of_a_column_are_left_out(kind: str, dtype: str) -> None:
    numbers = [3, None, 0, 2, None, 7, 1] if dtype != "bool" else [True, None, False, True, None, True, False]
    for values in (numbers, [v for v in numbers if v is not None], numbers[::-1]):
        for function in REDUCTIONS:
            if function == "prod" and dtype not in FLOATS:
                continue
            found = getattr(samesum, function)(COLUMNS[kind](values, dtype))
            expected = wanted(function, values, dtype)
            assert same(found, np.asarray(expected, np.asarray(found).dtype)), (function, values)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_nulls_alone_has_the_results_of_no_elements(kind: str) -> None:
    for values in ([None, None], []):
        def column() -> Any:
            return COLUMNS[kind](values, "float64")

        assert samesum.sum(column()) == 0 and samesum.prod(column()) == 1
        assert math.isnan(samesum.mean(column())) and math.isnan(samesum.var(column()))
        assert samesum.max(column()) == -math.inf and samesum.argmin(column()) == -1
        with pytest.raises(ValueError, match="min of no integers"):
            samesum.min(COLUMNS[kind](values, "int32"))


elements = st.one_of(st.none(), st.floats(allow_nan=True, width=64))


@pytest.mark.parametrize("kind", [k for k in COLUMNS if k != "pandas, masked"])  # in which NaN may become a null
@hypothesis.settings(max_examples=60)
@hypothesis.given(st.lists(elements, max_size=40), st.sampled_from(["exact", "tree/kahan", "serial/plain"]))
def test_any_column_has_the_sum_of_its_elements(kind: str, values: list[Any], method: str) -> None:
    found = samesum.sum(COLUMNS[kind](values, "float64"), method=method)
    assert same(found, wanted("sum", values, "float64", method=method)) or (
        math.isnan(found) and math.isnan(wanted("sum", values, "float64", method=method))
    )
    there = [v for v in values if v is not None]
    if method == "exact" and all(map(math.isfinite, there)) and there:
        exact = sum(map(Fraction, there))
        try:
            assert found == float(exact)
        except OverflowError:
            assert math.isinf(found)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    st.lists(st.one_of(st.none(), st.integers(-(2**60), 2**60)), max_size=50), st.integers(0, 9), st.integers(0, 60)
)
def test_slices_begin_and_end_at_any_bit(values: list[Any], first: int, n: int) -> None:
    library("pyarrow")
    column, kept = pyarrow_array(values, "int64")[first : first + n], values[first : first + n]
    assert samesum.sum(OnlyArray(column)) == sum(v for v in kept if v is not None)
    flags = pyarrow_array([None if v is None else v % 2 == 1 for v in values], "bool")[first : first + n]
    assert samesum.sum(flags) == sum(v % 2 for v in kept if v is not None)


# --- memory ----------------------------------------------------------------------------------------------------


def address_of(column: Any) -> int:
    from samesum._frames.reading import values_and_mask

    values, valid = values_and_mask(column)
    assert valid is None
    return values.__array_interface__["data"][0]


def test_elements_are_read_where_they_are() -> None:
    x = np.arange(1000.0)
    place = x.__array_interface__["data"][0]
    pd = library("pandas")
    assert address_of(pd.Series(x, copy=False)) == place
    masked = pd.arrays.FloatingArray(x, np.zeros(1000, bool))
    assert address_of(pd.Series(masked, copy=False)) == address_of(masked) == place
    pa = library("pyarrow")
    assert address_of(pa.array(x)) == place and address_of(pa.array(x)[7:]) == place + 56
    assert address_of(pa.chunked_array([pa.array(x)])) == address_of(OnlyArray(pa.array(x))) == place
    assert address_of(pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(x)])))) == place
    series = library("polars").Series(x)
    assert address_of(series) == series.to_numpy(allow_copy=False).__array_interface__["data"][0]


@pytest.mark.parametrize("kind", ["pandas, masked", "pandas, arrow", "pyarrow", "polars", "protocol of arrays"])
def test_a_long_column_without_nulls_costs_no_memory(kind: str) -> None:
    column = COLUMNS[kind]([0.5] * 300_000, "float64")
    samesum.sum(COLUMNS[kind]([0.5], "float64"))
    tracemalloc.start()
    assert samesum.sum(column) == 150_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_arrays_outlive_the_columns_whose_memory_they_are() -> None:
    from samesum._frames.reading import values_and_mask

    library("pyarrow")
    for make in (OnlyArray, lambda a: OnlyStream(library("pyarrow").chunked_array([a]))):
        values, valid = values_and_mask(make(pyarrow_array([float(i) for i in range(5000)] + [None], "float64")))
        others = [pyarrow_array([-1.0] * 5000, "float64") for _ in range(20)]
        assert values[:5000].tolist() == [float(i) for i in range(5000)] and len(others) == 20
        assert valid.tolist() == [True] * 5000 + [False]


def test_what_a_stream_gives_is_released() -> None:
    pa = library("pyarrow")
    before = pa.total_allocated_bytes()
    for _ in range(20):
        column = OnlyStream(pa.chunked_array([pyarrow_array([0.5] * 10_000, "float64")] * 2))
        samesum.sum(column)
        samesum.sum(OnlyStream(pa.table({"a": pyarrow_array([0.5] * 10_000, "float64")})))
    del column
    assert pa.total_allocated_bytes() <= before + 100_000


def test_errors_of_a_stream_are_raised() -> None:
    pa = library("pyarrow")

    def batches() -> Any:
        yield pa.record_batch({"a": [1.0]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), batches())
    with pytest.raises(OSError, match="samesum: x could not be read: .*the disk is gone"):
        samesum.sum(reader)


def test_no_library_is_imported_for_frames() -> None:
    code = """
import sys, numpy, samesum
class Column:
    def __array__(self, dtype=None, copy=None): return numpy.ones(3)
assert samesum.sum(numpy.ones(3)) == samesum.sum(Column()) == 3
assert not {"pandas", "polars", "pyarrow", "xarray", "dask"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- frames ----------------------------------------------------------------------------------------------------

COLUMNS_OF_FRAMES = {
    "a": ("float64", [0.1, 0.2, 0.3, 1e16]), "b": ("int64", [2**60, None, 3, 2**60]),
    "c": ("float32", [1.5, None, None, 2.0]), "d": ("bool", [True, False, None, True]),
}  # fmt: skip


def pandas_frame() -> Any:
    pd = library("pandas")
    made = {n: (pandas_masked if None in v else lambda v, d: np.array(v, d))(v, d) for n, (d, v) in ITEMS}
    return pd.DataFrame(made)


ITEMS = COLUMNS_OF_FRAMES.items()
FRAMES = {
    "pandas": pandas_frame,
    "polars": lambda: library("polars").DataFrame({n: polars_series(v, d) for n, (d, v) in ITEMS}),
    "pyarrow": lambda: library("pyarrow").table({n: pyarrow_chunks(v, d) for n, (d, v) in ITEMS}),
    "batch": lambda: library("pyarrow").record_batch({n: pyarrow_slice(v, d) for n, (d, v) in ITEMS}),
    "stream": lambda: OnlyStream(library("pyarrow").table({n: pyarrow_chunks(v, d) for n, (d, v) in ITEMS})),
}


def as_dict(kind: str, result: Any) -> dict[str, Any]:
    if kind == "pandas":
        return result.to_dict()
    if kind == "polars":
        return result.row(0, named=True)
    return result if kind == "stream" else result.to_pylist()[0]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("function", [f for f in REDUCTIONS if f != "prod"])
def test_a_frame_is_reduced_by_column(function: str, kind: str) -> None:
    for axis in (None, 0, -2, (0,)):
        found = getattr(samesum, function)(FRAMES[kind](), axis=axis)
        expected = {n: wanted(function, v, d) for n, (d, v) in ITEMS}
        if kind != "stream":
            assert type(found).__name__ == {"pandas": "Series", "polars": "DataFrame", "pyarrow": "Table"}.get(
                kind, "RecordBatch"
            )
        assert as_dict(kind, found) == {n: v if isinstance(v, int) else v.item() for n, v in expected.items()}


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_of_a_frame_and_whole_frames_leave_out_nulls(kind: str) -> None:
    rows = [[v for v in row if v is not None] for row in zip(*(v for _, v in COLUMNS_OF_FRAMES.values()))]
    found = samesum.sum(FRAMES[kind](), axis=1)
    assert list(found.to_list() if hasattr(found, "to_list") else found.to_pylist() if hasattr(found, "to_pylist") else
                found) == [float(sum(map(Fraction, row))) for row in rows]  # fmt: skip
    assert samesum.sum(FRAMES[kind](), axis=(0, 1)) == float(sum(Fraction(v) for row in rows for v in row))
    places = samesum.argmax(FRAMES[kind](), axis=1)
    assert np.asarray(places).tolist() == [1, 0, 1, 1]
    assert samesum.Exact(FRAMES[kind]()).value() == float(sum(Fraction(v) for row in rows for v in row))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_columns_in_chunks_have_the_bits_of_the_joined_column_without_a_copy(dtype: str) -> None:
    pa, pl = library("pyarrow"), library("polars")
    rng = np.random.default_rng(7)
    values = (rng.standard_normal(9000) * 2.0 ** rng.integers(-9, 9, 9000)).astype(dtype)
    valid = rng.random(9000) < 0.7
    cuts = [0, 1, 4099, 4099, 8200, 9000]
    whole, parts = (
        [pa.array(values[i:j], mask=~valid[i:j]) for i, j in ends] for ends in ([(0, 9000)], zip(cuts, cuts[1:]))
    )
    plain = [pa.array(values[i:j]) for i, j in zip(cuts, cuts[1:])]
    for name in ("sum", "mean", "var", "std", "min", "norm", "logsumexp", "prod", "argmax"):
        function = getattr(samesum, name)
        methods = {"sum": (None, "tree/kahan", "serial/plain", "exact/fp32", "fixed_point"), "var": (None, "tree")}
        for method in methods.get(name, (None,)):
            for chunks, arrays in ((parts, whole), (plain, [pa.array(values)])):
                for options in ({}, {"skipna": True, "axis": 0}):
                    found = function(pa.chunked_array(chunks), method=method, **options)
                    assert same(found, function(arrays[0], method=method, **options)), (name, method)
    spoilt = np.where(valid, values, np.asarray(np.nan, dtype))
    assert same(samesum.sum(pa.chunked_array([spoilt[:99], spoilt[99:]]), skipna=True), samesum.sum(values[valid]))
    table = pa.table({"a": pa.chunked_array(parts), "b": pa.chunked_array(plain)})
    assert samesum.var(table, ddof=1).to_pydict() == {
        "a": [samesum.var(values[valid], ddof=1)],
        "b": [samesum.var(values, ddof=1)],
    }
    if dtype != "float16":
        series = pl.concat([pl.Series(values[:9]), pl.Series(values[9:])], rechunk=False)
        assert series.n_chunks() == 2 and same(samesum.sum(series, method="tree"), samesum.sum(values, method="tree"))
    with pytest.raises(OverflowError, match="grid"):
        samesum.sum(pa.chunked_array(plain), method="fixed_point", grid=-900)
    with pytest.raises(ValueError, match=r"out has shape \(3,\)"):
        samesum.sum(pa.chunked_array(plain), out=np.zeros(3, dtype))
    one = pa.chunked_array([values, values])
    before, copied = np.concatenate, []
    try:
        np.concatenate = lambda *a, **k: copied.append(a) or before(*a, **k)
        samesum.sum(one), samesum.std(one)
        assert not copied and samesum.sum(one, where=np.ones(18_000, bool)) == samesum.sum(one) and len(copied) == 1
    finally:
        np.concatenate = before


def test_results_of_pandas_keep_labels_and_every_bit() -> None:
    pd = library("pandas")
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3), index=["x", "y"], columns=columns)
    assert samesum.sum(frame).equals(pd.Series([3.0, 5.0, 7.0], index=columns))
    assert samesum.sum(frame, axis=1).equals(pd.Series([3.0, 12.0], index=["x", "y"]))
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    assert samesum.sum(twice).tolist() == [4, 6] and samesum.sum(twice).dtype == np.int64
    mixed = samesum.sum(pd.DataFrame({"a": [2**62, 1], "b": [0.5, 0.5]}))
    assert mixed.tolist() == [2**62 + 1, 1.0] and mixed.dtype == object
    assert samesum.sum(pd.DataFrame({"a": [2, 1], "b": [0.5, 0.5]})).dtype == np.float64
    assert samesum.sum(pd.DataFrame()).empty
    assert samesum.sum(pd.Index([1, 2, 3])) == 6


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "Float64"])
def test_wide_frames_have_the_results_of_narrow_ones(dtype: str) -> None:
    pd = library("pandas")
    x = np.random.default_rng(3).integers(0, 2, (7, 50)).astype(dtype.lower())
    wide = pd.DataFrame(x, columns=[f"c{i}" for i in range(50)], index=[f"r{i}" for i in range(7)]).astype(dtype)
    for function in (f for f in REDUCTIONS if f != "prod"):
        call = getattr(samesum, function)
        parts = [call(wide.iloc[:, i : i + 10]) for i in range(0, 50, 10)]
        assert call(wide).equals(pd.concat(parts)) and call(wide, axis=1).index.tolist() == list(wide.index)
        assert same(call(wide, axis=1).to_numpy(), call(x, axis=1)) and same(call(wide, axis=(0, 1)), call(x))
    if dtype == "Float64":
        wide.iloc[3, 40] = pd.NA
        assert samesum.sum(wide)["c40"] == np.delete(x[:, 40], 3).sum()
    elif "float" in dtype:
        assert same(samesum.softmax(wide), samesum.softmax(x))


def test_pandas_calls_samesum() -> None:
    pd = library("pandas")
    frame = pd.DataFrame({"k": [1, 2, 1, 1], "x": [1e16, 5.0, 1.0, -1e16], "n": pd.array([1, None, 2, 3], "Int64")})
    assert frame.groupby("k")["x"].agg(samesum.sum).tolist() == [1.0, 5.0]
    assert frame.groupby("k")["n"].agg(samesum.sum).tolist() == [6, 0]
    assert frame[["x", "n"]].agg(samesum.sum).tolist() == [6.0, 6.0]
    assert frame[["x"]].apply(samesum.sum).tolist() == [6.0]
    assert frame["x"].rolling(2).apply(samesum.sum, raw=True).tolist()[1:] == [1e16 + 5, 6.0, 1 - 1e16]


def test_polars_calls_samesum() -> None:
    pl = library("polars")
    frame = pl.DataFrame({"k": [1, 2, 1, 1], "x": [1e16, 5.0, 1.0, -1e16]})
    total = pl.col("x").map_batches(samesum.sum, return_dtype=pl.Float64, returns_scalar=True)
    assert frame.select(total).item() == 6.0
    assert frame.group_by("k", maintain_order=True).agg(total)["x"].to_list() == [1.0, 5.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda pd, pl, pa: samesum.sum(pd.DataFrame({"a": [1], "t": ["x"]})),
            TypeError, "column 't' of x has texts, .*choose columns",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.DataFrame({"a": [1], "t": ["x"]})),
            TypeError, "column 't' of x has texts, .*choose columns",
        ),
        (lambda pd, pl, pa: samesum.sum(pa.table({"t": ["x"]})), TypeError, "column 't' of x has texts"),
        (lambda pd, pl, pa: samesum.sum(pl.Series(["a"])), TypeError, "x has texts"),
        (lambda pd, pl, pa: samesum.sum(pd.Series(["a", None])), TypeError, "x has texts"),
        (
            lambda pd, pl, pa: samesum.sum(pd.DataFrame({"d": np.zeros(2, "M8[s]")})),
            TypeError, "column 'd' of x has elements of type datetime64",
        ),
        (lambda pd, pl, pa: samesum.sum(pl.Series([1], dtype=pl.Date)), TypeError, "x has dates or times.*cast"),
        (
            lambda pd, pl, pa: samesum.sum(pl.Series([1], dtype=pl.Int128)),
            TypeError, "x has values of Arrow's type .*cast",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pa.array([1]).cast(pa.decimal128(21, 2))),
            TypeError, "x has decimal numbers .*cast",
        ),
        (lambda pd, pl, pa: samesum.sum(pa.array([[1.0]])), TypeError, "x has lists or records"),
        (
            lambda pd, pl, pa: samesum.sum(pa.array(["a"]).dictionary_encode()),
            TypeError, "x is dictionary-encoded; decode",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.DataFrame({"a": [1]}).lazy()),
            TypeError, r"x is a lazy query; pass x\.collect\(\)",
        ),
        (
            lambda pd, pl, pa: samesum.softmax(pl.Series([1.0, None])),
            ValueError, r"x has 1 null, .*pass x\.drop_nulls\(\), or x\.fill_null\(0\)",
        ),
        (
            lambda pd, pl, pa: samesum.softmax(pa.array([1.0, None, None])),
            ValueError, r"x has 2 nulls, .*x\.drop_null\(\)",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.Series([1.0, None]), where=[True, False, True]),
            ValueError, r"where has shape \(3,\), and the mask of x \(2,\)",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.Series([1.0, None]), where=[1, 0]),
            TypeError, "where has elements of type int64; pass booleans",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.Series([1.0]), where=pl.Series([None], dtype=pl.Boolean)),
            ValueError, r"where has 1 null, .*where\.fill_null",
        ),
        (
            lambda pd, pl, pa: samesum.softmax(pd.array([1.0, None], "Float64")),
            ValueError, r"x has 1 null, .*x\.dropna\(\)",
        ),
        (lambda pd, pl, pa: samesum.softmax(pa.table({"a": [1.0, None]})), ValueError, "x has 1 null"),
        (
            lambda pd, pl, pa: samesum.Partial("dot/exact/fp64").add([1.0, 2.0], pl.Series([1.0, None])),
            ValueError, r"y has 1 null, .*pass y\.fill_null\(0\)$",
        ),
        (
            lambda pd, pl, pa: samesum.cumsum(pa.table({"a": [1.0]})),
            TypeError, "cumsum: x is a frame; pass one of its columns",
        ),
        (
            lambda pd, pl, pa: samesum.mean(pa.record_batch({"a": [1.0]}), weights=[1.0]),
            TypeError, "mean with weights: x is a frame; pass one of its columns",
        ),
        (
            lambda pd, pl, pa: samesum.cumsum(OnlyStream(pa.table({"a": [1.0]}))),
            TypeError, "cumsum: x is a frame; pass one of its columns",
        ),
        (
            lambda pd, pl, pa: samesum.cummax(pl.DataFrame({"a": [1.0]}).lazy()),
            TypeError, r"cummax: x is a lazy query; pass a column of x\.collect\(\)",
        ),
        (
            lambda pd, pl, pa: samesum.cumsum(pd.DataFrame({"a": [1.0]})),
            TypeError, r"x is a frame; pass one of its columns, or x\.to_numpy\(\)",
        ),
        (
            lambda pd, pl, pa: samesum.dot(pl.Series([1.0, None]), [1.0, 2.0, 3.0]),
            ValueError, "x has 2 elements and y 3; pass vectors of one length",
        ),
        (lambda pd, pl, pa: samesum.Partial("sum/exact/fp64").add(pa.array([1.0, None])), ValueError, "x has 1 null"),
        (
            lambda pd, pl, pa: samesum.sum(pd.DataFrame({"a": [1.0]}), keepdims=True),
            TypeError, "keepdims does not go with a frame",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pd.DataFrame({"a": [1.0]}), out=np.zeros(1)),
            TypeError, "out does not go with a frame",
        ),
        (
            lambda pd, pl, pa: samesum.sum(pl.DataFrame({"a": [1.0]}), axis=2),
            IndexError, "axis 2 is out of range for a frame with 2 axes",
        ),
        (lambda pd, pl, pa: samesum.sum(pl.DataFrame({"a": [1.0]}), axis=()), ValueError, r"axis is \(\)"),
        (lambda pd, pl, pa: samesum.sum(pl.Series([1.0, None]), axis=1), IndexError, "axis 1 is out of range"),
    ],
)  # fmt: skip
def test_an_error_names_the_column_and_the_remedy(make: Any, error: Any, message: str) -> None:
    packages = [library(name) for name in ("pandas", "polars", "pyarrow")]
    with pytest.raises(error, match="samesum: .*" + message):
        make(*packages)


@pytest.mark.parametrize("argument", ["weights", "where", "y"])
def test_the_remedy_for_nulls_beside_x_keeps_the_length(argument: str) -> None:
    pd, pl = library("pandas"), library("polars")
    calls = {
        "weights": lambda a: samesum.average([1.0, 2.0], weights=a),
        "where": lambda a: samesum.sum([1.0, 2.0], where=a),
        "y": lambda a: samesum.Partial("dot/exact/fp64").add([1.0, 2.0], a),
    }
    values = [True, None] if argument == "where" else [1, None]
    fill = "False" if argument == "where" else "0"
    for column, name in (
        (pd.array(values, "boolean" if argument == "where" else "Int64"), "fillna"),
        (pl.Series(values), "fill_null"),
    ):
        with pytest.raises(ValueError, match=rf"{argument} has 1 null, .*pass {argument}\.{name}\({fill}\)") as error:
            calls[argument](column)
        assert "drop" not in str(error.value)


# --- results without elements ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "nanmin", "nanmax"])
def test_a_column_without_integers_is_null_beside_others(name: str) -> None:
    pd, pl, pa = map(library, ("pandas", "polars", "pyarrow"))
    frame = pd.DataFrame({"x": [2.0, 2.0], "n": pd.array([None, None], "Int64"), "large": [2**53 + 1] * 2})
    x, large = (0, 0) if "arg" in name else (2, 2**53 + 1)
    function = getattr(samesum, name)
    result = function(frame)
    assert result["x"] == x and np.isnan(result["n"]) and result["large"] == large
    assert function(pl.from_pandas(frame)).rows() == [(x, None, large)]
    assert function(pa.Table.from_pandas(frame)).to_pylist() == [{"x": x, "n": None, "large": large}]
    with pytest.raises(ValueError, match="of no integers has no value") as raised:
        function(frame["n"])
    assert raised.type is ValueError


def test_extrema_of_frames_without_rows_are_those_of_no_elements() -> None:
    pd = library("pandas")
    assert samesum.max(pd.DataFrame({"a": np.empty(0), "b": np.empty(0, int)})).tolist()[0] == -np.inf
    assert samesum.min(pd.DataFrame(np.empty((0, 40), int))).isna().all()


def test_rows_without_columns_have_the_results_of_no_elements() -> None:
    pd = library("pandas")
    rows = pd.DataFrame(index=["a", "b"])
    for function, of_nothing in ((samesum.sum, 0), (samesum.prod, 1), (samesum.mean, np.nan), (samesum.max, -np.inf)):
        result = function(rows, axis=1)
        assert result.index.tolist() == ["a", "b"]
        np.testing.assert_array_equal(result, [of_nothing] * 2)
        np.testing.assert_array_equal(function(rows, axis=(0, 1)), of_nothing)
    assert len(samesum.sum(rows)) == 0


# --- options, second inputs and other functions ------------------------------------------------------------------


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_take_the_options_of_arrays(kind: str) -> None:
    def column() -> Any:
        return COLUMNS[kind]([3.0, None, 0.1, 0.1, 9.0], "float64")

    assert samesum.var(column(), ddof=1) == samesum.var([3.0, 0.1, 0.1, 9.0], ddof=1)
    assert samesum.sum(column(), method="fixed_point", grid=0) == 12
    assert same(samesum.sum(column(), dtype="float32"), samesum.sum(np.array([3, 0.1, 0.1, 9], "float32")))
    assert same(samesum.max(column(), keepdims=True), np.array([9.0]))
    assert same(samesum.argmax(column(), keepdims=True), np.array([4]))
    out, place = np.zeros(()), np.zeros((), np.int64)
    assert samesum.sum(column(), 0, out=out) is out and out == samesum.sum([3.0, 0.1, 0.1, 9.0])
    assert samesum.argmin(column(), out=place) is place and place == 2
    assert samesum.Exact(column()).value() == samesum.sum([3.0, 0.1, 0.1, 9.0])
    assert samesum.estimate(column(), "tree/plain").value == samesum.sum([3.0, 0.1, 0.1, 9.0], method="tree/plain")


@pytest.mark.parametrize("kind", COLUMNS)
def test_where_and_skipna_leave_out_more_than_nulls(kind: str) -> None:
    values, mask = [1.0, None, math.nan, 4.0, 0.1], np.array([True, True, True, False, True])
    if kind.startswith("pandas, masked"):
        values[2] = 8.0  # pandas may take NaN for a null
    there = [v for v, m in zip(values, mask) if m and v is not None and v == v]
    for where in (mask, mask.tolist(), COLUMNS[kind](mask.tolist(), "bool")):
        for function in ("sum", "mean", "var", "max", "norm"):
            found = getattr(samesum, function)(COLUMNS[kind](values, "float64"), where=where, skipna=True)
            assert same(found, getattr(samesum, function)(np.array(there))), function
            where = mask if kind == "protocol of streams" else where  # which is read once
    assert samesum.nanmax(COLUMNS[kind](values, "float64")) == (8 if kind.startswith("pandas, masked") else 4)
    assert samesum.argmin(COLUMNS[kind](values, "float64"), skipna=True) == 4
    assert samesum.nanargmax(COLUMNS[kind](values, "float64"), where=mask) == (2 if values[2] == 8 else 0)
    assert [*samesum.cumsum(COLUMNS[kind]([1.0, None, 2.0], "float64"))] == [1.0, 1.0, 3.0]
    assert samesum.dot(COLUMNS[kind]([1.0, None, 2.0], "float64"), [1.0, 1.0, 3.0], where=[False, True, True]) == 6


@pytest.mark.parametrize("kind", FRAMES)
def test_masks_of_a_frame_have_a_flag_for_each_row_or_element(kind: str) -> None:
    rows = np.array([True, True, False, True])
    there = {n: [None if not m else v for v, m in zip(vs, rows)] for n, (_, vs) in ITEMS}
    for where in (rows, rows[:, None], np.repeat(rows[:, None], 4, 1)):
        found = as_dict(kind, samesum.sum(FRAMES[kind](), where=where))
        assert found == {n: wanted("sum", there[n], d).item() for n, (d, _) in ITEMS}
        whole = samesum.sum(FRAMES[kind](), axis=(0, 1), where=where)
        assert whole == float(sum(Fraction(v) for vs in there.values() for v in vs if v is not None))


def frame_of(kind: str, columns: dict[str, list[Any]]) -> Any:
    """A frame of a library, with its own null for None."""
    table = library("pyarrow").table(columns)
    if kind == "pandas":
        return library("pandas").DataFrame({n: library("pandas").array(v) for n, v in columns.items()})
    if kind == "polars":
        return library("polars").from_arrow(table)
    return {"batch": lambda: table.to_batches()[0], "stream": lambda: OnlyStream(table)}.get(kind, lambda: table)()


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("kind_of_mask", FRAMES)
def test_columns_of_a_mask_and_of_a_second_frame_go_by_their_names(kind: str, kind_of_mask: str) -> None:
    def x() -> Any:
        return frame_of(kind, {"a": [1.0, None, 4.0], "b": [10.0, 20.0, 40.0]})

    def where(**columns: list[bool]) -> Any:
        return frame_of(kind_of_mask, columns)

    b, a = [True, True, False], [False, True, True]
    assert as_dict(kind, samesum.sum(x(), where=where(b=b, a=a))) == {"a": 4, "b": 30}
    assert as_dict(kind, samesum.sum(x(), where=where(a=a, b=b))) == {"a": 4, "b": 30}
    assert samesum.sum(x(), axis=(0, 1), where=where(b=b, a=a)) == 34
    assert samesum.scatter_add(np.zeros((1, 2)), [0] * 3, x(), where=where(b=b, a=a)).tolist() == [[4, 30]]
    y = frame_of(kind_of_mask, {"b": [1.0, 2.0, 3.0], "a": [5.0, 6.0, 7.0]})
    assert samesum.vecdot(x(), y, axis=0).tolist() == [33, 170]
    y = frame_of(kind_of_mask, {"d": [1.0, 2.0, 3.0], "c": [5.0, 6.0, 7.0]})  # which has other variables
    assert samesum.vecdot(x(), y, axis=0).tolist() == [13, 450]
    y = frame_of(kind_of_mask, {"b": [1.0, 2.0, 3.0], "a": [5.0, 6.0, 7.0]})
    found = samesum.linear_regression(x(), y, axis=0, where=where(b=b, a=[True] * 3))
    assert found.slope.tolist() == [2 / 3, 0.1]
    found = samesum.cov(x(), rowvar=False, where=where(b=[True] * 3, a=[True, True, True]))
    assert found[0, 0] == 4.5 and found[1, 1] == 700 / 3
    with pytest.raises(ValueError, match=r"where has the columns \['a', 'c'\] and x \['a', 'b'\]; pass a mask with"):
        samesum.sum(x(), where=where(a=a, c=b))
    with pytest.raises(ValueError, match=r"where has the columns \['b'\] and x \['a', 'b'\]; .*one column of flags"):
        samesum.sum(x(), where=where(b=b))
    with pytest.raises(ValueError, match="where has 1 null"):
        samesum.sum(x(), where=where(b=[True, None, False], a=a))


def test_columns_of_one_name_are_reduced_apart_or_named() -> None:
    pandas, arrow = library("pandas"), library("pyarrow")
    frame = pandas.DataFrame([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], columns=["a", "b", "a"])
    table = arrow.table([arrow.array(frame.iloc[:, i]) for i in range(3)], names=["a", "b", "a"])
    assert samesum.sum(frame).tolist() == [11, 22, 33] and [*samesum.sum(frame).index] == ["a", "b", "a"]
    for x in (table, table.to_batches()[0]):
        assert [c[0].as_py() for c in samesum.sum(x).columns] == [11, 22, 33]
    for x in (frame, table):
        assert samesum.sum(x, axis=(0, 1), where=frame > 2) == 63
    for call in (lambda: samesum.sum(OnlyStream(table)), lambda: samesum.max(OnlyStream(table), axis=0)):
        with pytest.raises(ValueError, match="x has 2 columns of the name 'a', and its results are a dict; give"):
            call()
    assert samesum.sum(OnlyStream(table), axis=1).tolist() == [6, 60]
    with pytest.raises(ValueError, match="x has 2 columns of the name 'a', and where has them in another order"):
        samesum.sum(frame, where=(frame > 2).iloc[:, [1, 0, 2]])
    wide = pandas.DataFrame(np.arange(80.0).reshape(2, 40))
    assert (samesum.sum(wide, where=(wide > 5)[wide.columns[::-1]]) == samesum.sum(wide, where=wide > 5)).all()


# --- a result for each element, and what is missing --------------------------------------------------------------

PER_ELEMENT = {
    **{name: lambda x, f=getattr(samesum, name): f(x) for name in (
        "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "cumulative_sum", "cumulative_prod", "nancumsum",
        "softmax", "log_softmax",
    )},
    **{f"rolling_{name}": lambda x, f=getattr(samesum, f"rolling_{name}"): f(x, 2, min_periods=1) for name in (
        "sum", "mean", "var", "std", "min", "max",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", PER_ELEMENT)
def test_a_result_for_each_element_of_a_series_is_a_series_with_its_labels(name: str) -> None:
    pandas, polars = library("pandas"), library("polars")
    values = np.array([1.5, -2.0, 4.0])
    expected = PER_ELEMENT[name](values)
    for x in (values, pandas.array(values), pandas.Index(values), library("pyarrow").array(values)):
        found = PER_ELEMENT[name](x)
        assert type(found) is np.ndarray and same(found, expected)
    for dtype in ("float64", "Float64"):
        series = pandas.Series(values, index=["c", "a", "b"], name="load", dtype=dtype)
        found = PER_ELEMENT[name](series)
        assert type(found) is pandas.Series and found.index is series.index and found.name == "load"
        assert same(found.to_numpy(), expected)
    found = PER_ELEMENT[name](polars.Series("load", values))
    assert type(found) is polars.Series and found.name == "load" and same(found.to_numpy(), expected)


def test_results_that_have_a_place_of_their_own_are_there() -> None:
    pandas, polars = library("pandas"), library("polars")
    series, out = pandas.Series([1.0, 2.0], index=[7, 8]), np.zeros(2)
    assert samesum.cumsum(series, out=out) is out and out.tolist() == [1, 3]
    assert samesum.rolling_std(series, 2, out=out) is out and out[1] == 0.5
    longer = samesum.cumulative_sum(series, include_initial=True)  # for which there is no label
    assert type(longer) is np.ndarray and longer.tolist() == [0, 1, 3]
    longer = samesum.cumulative_sum(polars.Series("x", [1.0, 2.0]), include_initial=True)
    assert longer.name == "x" and longer.to_list() == [0, 1, 3]


def test_nulls_are_missing_and_nan_is_where_the_caller_or_the_groupby_of_pandas_says_so() -> None:
    nan, pandas, polars, arrow = math.nan, library("pandas"), library("polars"), library("pyarrow")
    with_nan = [1.0, nan, 4.0]
    columns = {  # with NaN, and with null
        "pandas": (pandas.Series(with_nan), pandas.Series([1.0, None, 4.0], dtype="Float64")),
        "polars": (polars.Series(with_nan), polars.Series([1.0, None, 4.0])),
        "arrow": (arrow.array(with_nan), arrow.array([1.0, None, 4.0])),
        "numpy": (np.array(with_nan), np.ma.array([1.0, 9.0, 4.0], mask=[False, True, False])),
    }
    one = samesum.groupby([0, 0, 0])

    def of_group(method: str, x: Any, **options: Any) -> float:
        return float(np.asarray(getattr(one, method)(x, **options)).ravel()[-1])

    for kind, (numbers, nulls) in columns.items():
        for name, value in (("sum", 5.0), ("mean", 2.5), ("var", 2.25), ("std", 1.5), ("min", 1.0), ("max", 4.0)):
            function = getattr(samesum, name)
            assert math.isnan(function(numbers)) and function(nulls) == value
            assert function(numbers, skipna=True) == value == function(nulls, skipna=True)
            assert of_group(name, numbers, skipna=True) == value == of_group(name, nulls, skipna=True)
            assert of_group(name, nulls) == value
            assert math.isnan(of_group(name, numbers, skipna=False)) and math.isnan(of_group(name, nulls, skipna=False))
            by_default = of_group(name, numbers)
            assert by_default == value if kind == "pandas" else math.isnan(by_default)


# --- pairs of frames -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", COLUMNS)
def test_of_two_columns_pairs_without_nulls_are_reduced(first: str) -> None:
    for second in COLUMNS:
        x = COLUMNS[first]([1e20, None, 2.0, -1e20, 5.0], "float64")
        y = COLUMNS[second]([1.0, 7.0, 3.0, 1.0, None], "float64")
        assert samesum.dot(x, y) == 6
    assert samesum.vecdot(COLUMNS[first]([1.0, None, 2.0], "float64"), np.array([1.0, 1.0, 10.0])) == 21
    assert samesum.vecdot(np.array([1.0, 1.0, 10.0]), COLUMNS[first]([1.0, 5.0, 2.0], "float64")) == 26


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_without_nulls_go_wherever_arrays_go(kind: str) -> None:
    def column(values: list[float]) -> Any:
        return COLUMNS[kind](values, "float64")

    assert [*samesum.cumsum(column([1e16, 1.0, 1.0]))] == [1e16, 1e16, 1e16 + 2]
    assert [*samesum.softmax(column([0.0, 0.0]))] == [0.5, 0.5]
    assert samesum.scatter_add(np.zeros(2), [1, 1], column([1.0, 2.0])).tolist() == [0, 3]
    keys, sums = samesum.groupby_sum(np.array([7, 2, 7]), column([1.0, 2.0, 3.0]))
    assert keys.tolist() == [2, 7] and sums.tolist() == [2, 4]
    partial = samesum.Partial("sum/exact/fp64")
    partial.add(column([1e16, 1.0, -1e16]))
    assert partial.finish() == 1


# --- xarray and Dask ---------------------------------------------------------------------------------------------


def test_arrays_of_xarray_are_reduced_over_named_dimensions() -> None:
    xr = library("xarray")
    x = np.random.default_rng(0).standard_normal((4, 5, 6)).astype("float32")
    array = xr.DataArray(x, dims=("time", "lat", "lon"), coords={"lat": np.arange(5)}, name="t")
    found = array.reduce(samesum.sum, dim="time")
    assert found.dims == ("lat", "lon") and found.lat.values.tolist() == [0, 1, 2, 3, 4]
    assert same(found.values, samesum.sum(x, axis=0))
    assert same(array.reduce(samesum.mean, dim=("time", "lon")).values, samesum.mean(x, axis=(0, 2)))
    assert same(array.reduce(samesum.var, dim="lat", ddof=1).values, samesum.var(x, axis=1, ddof=1))
    kept = array.reduce(samesum.max, dim="lat", keepdims=True)
    assert kept.sizes == {"time": 4, "lat": 1, "lon": 6}
    assert array.reduce(samesum.norm).item() == samesum.norm(x) and samesum.sum(array) == samesum.sum(x)
    assert array.to_dataset().reduce(samesum.sum)["t"].item() == samesum.sum(x)


def test_arrays_of_xarray_in_chunks_stay_lazy() -> None:
    xr, da = library("xarray"), library("dask.array")
    import samesum.dask

    x = np.random.default_rng(0).standard_normal((4, 6))
    array = xr.DataArray(da.from_array(x, chunks=(2, 3)), dims=("time", "lat"))
    found = array.reduce(samesum.dask.sum, dim="time")
    assert isinstance(found.data, da.Array) and found.dims == ("lat",)
    assert same(found.compute().values, samesum.sum(x, axis=0))


def dask_frames() -> Any:
    """A frame of pandas, and the same in partitions of unknown lengths."""
    pd, _ = library("pandas"), library("pyarrow")
    dd = library("dask.dataframe")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.standard_normal(500), "c": np.arange(500, dtype="float32")})
    frame["b"] = pd.array(np.arange(500) % 7, "Int64").copy()
    frame.loc[::3, "b"] = pd.NA
    return frame[frame.a > -0.5], (lambda cut: cut[cut.a > -0.5])(dd.from_pandas(frame, npartitions=6))


@pytest.mark.parametrize("function", ["sum", "mean", "var", "std", "min", "max", "norm", "logsumexp"])
def test_frames_of_dask_have_the_bits_of_the_whole(function: str) -> None:
    here, cut = dask_frames()
    import samesum.dask

    ours, whole = getattr(samesum.dask, function), getattr(samesum, function)
    for method in (None,) if function in ("min", "max") else (None, "tree"):
        for name in here:
            lazy = ours(cut[name], method=method)
            assert lazy.dtype == np.asarray(whole(here[name], method=method)).dtype
            assert same(lazy.compute(scheduler="sync"), whole(here[name], method=method)), (name, method)
        found, expected = ours(cut, method=method).compute(scheduler="sync"), whole(here, method=method)
        assert found.equals(expected) and list(found.index) == ["a", "c", "b"]
    assert same(ours(cut["a"], dtype="float32").compute(scheduler="sync"), whole(here["a"], dtype="float32"))


def test_frames_of_dask_count_indices_over_partitions_and_leave_out_what_is_missing() -> None:
    here, cut = dask_frames()
    import samesum.dask

    assert samesum.dask.argmax(cut["a"]).compute(scheduler="sync") == samesum.argmax(here["a"])
    assert samesum.dask.argmax(cut["b"]).compute(scheduler="sync") == samesum.argmax(here["b"])
    spoilt, whole = (frame.assign(a=frame.a.where(frame.a < 1)) for frame in (cut, here))
    for function in ("sum", "argmax"):
        found = getattr(samesum.dask, function)(spoilt, skipna=True).compute(scheduler="sync")
        assert found.equals(getattr(samesum, function)(whole, skipna=True))
    repeated = here[["a", "b"]].set_axis(["a", "a"], axis=1)
    with pytest.raises(ValueError, match="x has 2 columns of the name 'a', which Dask tells apart by their names"):
        samesum.dask.sum(library("dask.dataframe").from_pandas(repeated, npartitions=2))
    with pytest.raises(TypeError, match="where does not go with a frame of Dask; select its rows"):
        samesum.dask.sum(cut, where=True)
    with pytest.raises(TypeError, match=r"cumsum: x is a Series of Dask; pass x\.compute\(\)$"):
        samesum.cumsum(cut["a"])
    with pytest.raises(TypeError, match=r"a Series of Dask has no rows yet; pass what its compute\(\) returns"):
        samesum.groupby(cut["b"])
    with pytest.raises(TypeError, match=r"dot takes no frames of Dask; pass x\.to_dask_array\(lengths=True\)"):
        samesum.dask.dot(cut["a"], cut["a"])
    with pytest.raises(ValueError, match="sum reduces a frame of Dask over its rows; leave out axis and keepdims"):
        samesum.dask.sum(cut, axis=1)
    assert samesum.sum(cut).equals(samesum.sum(here)) and samesum.sum(cut["a"]) == samesum.sum(here["a"])
