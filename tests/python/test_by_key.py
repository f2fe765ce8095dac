"""The functions by key: their bits, shapes and types, and what they refuse."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import samesum
from samesum._elements.library import library_of
from samesum._keys import equality
from samesum._keys.reading import taken

KEYS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def pairs(n, count, *inner, seed=5, dtype=np.float64):
    """Keys below `count`, of which some do not occur, and values whose sums cancel."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, *inner)) * 2.0 ** rng.integers(-8, 8, (n, *inner))
    return rng.integers(0, count, n) // 2 * 2, values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("inner", [(), (3,), (2, 5)])
def test_a_serial_sum_has_the_bits_of_numpy(dtype, inner):
    keys, values = pairs(2000, 37, *inner, dtype=dtype)
    out = pairs(37, 37, *inner, seed=1, dtype=dtype)[1]
    before, expected = out.copy(), out.copy()
    np.add.at(expected, keys, values)
    result = samesum.scatter_add(out, keys, values, method="serial/plain")
    assert result.dtype == dtype and result is not out
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(out, before)


def test_an_exact_sum_is_rounded_once():
    keys, values = pairs(3000, 20)
    out = pairs(20, 20, seed=1)[1]
    result = samesum.scatter_add(out, keys, values)
    weights = samesum.bincount(keys, values, minlength=20)
    unique, sums = samesum.groupby_sum(keys, values)
    assert unique.tolist() == sorted(set(keys))
    for k in range(20):
        own = values[keys == k]
        assert result[k] == math.fsum([out[k], *own])
        assert weights[k] == math.fsum(own)
    np.testing.assert_array_equal(sums, weights[unique])


@pytest.mark.parametrize("method", [None, "exact", "fixed_point"])
def test_sums_do_not_depend_on_the_order_of_the_pairs(method):
    keys, values = pairs(5000, 11, 4, dtype=np.float32)
    out = np.zeros((11, 4), np.float32)
    expected = samesum.scatter_add(out, keys, values, method=method, threads=1)
    order = np.random.default_rng(2).permutation(5000)
    for threads in (0, 1, 3):
        result = samesum.scatter_add(out, keys[order], values[order], method=method, threads=threads)
        np.testing.assert_array_equal(result, expected)


def test_a_grid_rounds_each_value():
    result = samesum.scatter_add(np.zeros(2), [0, 0, 1], [0.75, 0.75, 3], method="fixed_point", grid=0)
    assert result.tolist() == [2, 3]
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.scatter_add(np.zeros(1), [0], [1e300], method="fixed_point", grid=0)
    with pytest.raises(ValueError, match="grid is only for"):
        samesum.scatter_add(np.zeros(1), [0], [1.0], grid=0)
    with pytest.raises(TypeError, match="grid is 0.5"):
        samesum.scatter_add(np.zeros(1), [0], [1.0], method="fixed_point", grid=0.5)
    assert samesum.bincount([0, 0, 1], [0.75, 0.75, 3], method="fixed_point", grid=0).tolist() == [2, 3]
    assert samesum.groupby_sum([0, 0, 1], [0.75, 0.75, 3], method="fixed_point", grid=0)[1].tolist() == [2, 3]
    with pytest.raises(ValueError, match="grid is only for weights"):
        samesum.bincount([0], grid=0)


@pytest.mark.parametrize("dtype", KEYS)
def test_keys_have_any_integer_type(dtype):
    keys, values = pairs(500, 9)
    expected = samesum.scatter_add(np.zeros(9), keys, values)
    typed = keys.astype(dtype)
    np.testing.assert_array_equal(samesum.scatter_add(np.zeros(9), typed, values), expected)
    np.testing.assert_array_equal(samesum.bincount(typed), np.bincount(keys))
    unique, sums = samesum.groupby_sum(typed, values)
    assert unique.dtype == dtype
    np.testing.assert_array_equal(sums, expected[unique.astype(int)])


def test_arrays_need_not_be_contiguous():
    keys, values = pairs(600, 8, 6)
    expected = samesum.scatter_add(np.zeros((8, 3)), keys[::2].copy(), values[::2, ::2].copy())
    result = samesum.scatter_add(np.zeros((3, 8)).T, keys[::2], values[::2, ::2])
    np.testing.assert_array_equal(result, expected)
    swapped = samesum.scatter_add(np.zeros((8, 3)), keys[::2].astype(">i4"), values[::2, ::2].astype(">f8"))
    np.testing.assert_array_equal(swapped, expected)


def test_results_have_the_type_of_out_or_of_the_method():
    wide = samesum.scatter_add(np.zeros(2), [1, 1], np.array([1, 2], np.float32))
    assert wide.dtype == np.float64 and wide.tolist() == [0, 3]
    narrow = samesum.scatter_add(np.zeros(2, np.float32), [1, 1], np.array([0.1, 0.2]))
    assert narrow.dtype == np.float32 and narrow[1] == np.float32(math.fsum([0.1, 0.2]))
    x = np.array([0.1, 0.2], np.float32)
    assert samesum.bincount([0, 0], x).dtype == np.float32
    assert samesum.groupby_sum([0, 0], x, method="exact/fp64")[1].dtype == np.float64
    assert samesum.bincount([0, 0], [1, 2]).dtype == np.float64
    assert samesum.scatter_add(np.zeros(1), [0], [True]).tolist() == [1]


def test_counts_are_those_of_numpy():
    keys = pairs(1000, 50)[0]
    counts = samesum.bincount(keys, minlength=60)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, np.bincount(keys, minlength=60))
    assert samesum.bincount([]).tolist() == []
    assert samesum.bincount([], minlength=2).tolist() == [0, 0]
    assert samesum.bincount([], [], minlength=2).tolist() == [0, 0]


def test_groups_have_keys_that_numpy_sorts():
    values = [1.0, 2.0, 4.0, 8.0]
    for keys, expected in (
        (["b", "a", "b", "c"], {"a": 2, "b": 5, "c": 8}),
        ([2.5, -1.0, 2.5, math.inf], {-1: 2, 2.5: 5, math.inf: 8}),
        ([True, False, True, True], {False: 2, True: 13}),
    ):
        unique, sums = samesum.groupby_sum(keys, values)
        assert dict(zip(unique.tolist(), sums.tolist())) == expected
    days = np.array(["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-02"], "datetime64[D]")
    unique, sums = samesum.groupby_sum(days, np.outer(values, [1.0, 10.0]))
    assert unique.dtype == days.dtype and sums.tolist() == [[2, 20], [13, 130]]


def is_one_key(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return all(map(is_one_key, a, b))
    return bool(a == b or (a != a and b != b))


def members(keys):
    """Returns the sums of 2^place over each group, in order of first appearance, and over each run, by equality."""
    groups, runs = [], []
    for place, key in enumerate(keys):
        for parts, same in ((groups, groups), (runs, runs[-1:])):
            found = next((part for part in same if is_one_key(part[0], key)), None)
            if found is None:
                parts.append(found := [key, 0.0])
            found[1] += 2.0**place
    return [total for _, total in groups], [total for _, total in runs]


def groups_and_runs_are_right(keys):
    """Checks the groups and runs of keys, and returns the different keys as the function does."""
    groups, runs = members(keys)
    values = 2.0 ** np.arange(len(keys))
    unique, sums = samesum.groupby_sum(keys, values)
    assert sorted(sums.tolist()) == sorted(groups)
    found, results = samesum.reduce_by_key(keys, values)
    assert results.tolist() == runs and found.dtype == unique.dtype
    return unique


NAN = math.nan
FLOATS = [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128, object]


def added_types(*names):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return [getattr(ml_dtypes, name) for name in names if hasattr(ml_dtypes, name)]


@pytest.mark.parametrize("numbers", [[0.5, 1, NAN, NAN], [NAN, 1, NAN, 1, 1, 0.5, NAN, NAN, 0.5, 1]], ids=str)
def test_nan_is_one_key_of_every_type(numbers):
    added = added_types(
        "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32", "bcomplex32",
    )  # fmt: skip
    for dtype in FLOATS + added:
        keys = np.array(numbers).astype(dtype)
        unique = groups_and_runs_are_right(keys)
        assert unique.dtype == keys.dtype and unique.shape == (3,), dtype
        assert unique[0] == 0.5 and unique[1] == 1 and unique[2] != unique[2], dtype
    signed = np.copysign(numbers, [-1, 1] * (len(numbers) // 2))  # NaN of other bits
    for keys in (np.where(np.isnan(numbers), signed, numbers), numbers, tuple(map(np.float32, numbers))):
        assert str(groups_and_runs_are_right(keys).tolist()) == "[0.5, 1.0, nan]"


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[ns]", "m8[s]"])
def test_nat_is_one_key(dtype):
    keys = np.array([5, "NaT", 5, "NaT", "NaT", 3], dtype if dtype[0] == "m" else "m8[D]").astype("i8").astype(dtype)
    unique = groups_and_runs_are_right(keys)
    assert unique.dtype == dtype and unique[:2].astype(int).tolist() == [3, 5] and np.isnat(unique[2])


def test_types_that_other_packages_add_are_sorted():
    for dtype in added_types("int4", "uint4", "int2", "float4_e2m1fn", "float6_e2m3fn", "float8_e8m0fnu"):
        keys = np.array([1, 0.5, 1, 1, 0.5]).astype(dtype)
        unique = groups_and_runs_are_right(keys)
        assert unique.dtype == dtype and unique.tolist() == sorted({*keys.tolist()})


def test_texts_of_variable_length_may_be_missing():
    kind = getattr(getattr(np, "dtypes", None), "StringDType", None) or pytest.skip("only NumPy 2 has this type")
    for missing in (math.nan, None):
        keys = np.array(["bc", missing, missing, "a", "bc"], kind(na_object=missing))
        unique = groups_and_runs_are_right(keys)
        assert unique.dtype == keys.dtype and str(unique.tolist()) == f"['a', 'bc', {missing}]"


def test_records_are_grouped_field_by_field():
    pairs = [(1, NAN), (1, NAN), (0, 2.5), (1, 0.5), (1, NAN), (2, NAN)]
    values = 2.0 ** np.arange(6)
    for keys in (
        np.array(pairs, "i4,f8"), np.array(pairs, [("a", "i4"), ("b", object)]),
        np.array([((0, p), [p[1], 1]) for p in pairs], [("a", [("x", "i1"), ("y", "i2,f2")]), ("b", "f4", 2)]),
    ):  # fmt: skip
        unique, sums = samesum.groupby_sum(keys, values)
        assert unique.dtype == keys.dtype and sums.tolist() == [4, 8, 1 + 2 + 16, 32]
        assert str(unique) == str(keys[[2, 3, 0, 5]])
        assert samesum.reduce_by_key(keys, values)[1].tolist() == [3, 4, 8, 16, 32]
        assert samesum.groupby_sum(keys[:0], [])[0].shape == samesum.reduce_by_key(keys[:0], [])[0].shape == (0,)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["b", NAN, "a", NAN], "['a', 'b', nan]"),
        (["b", None, "a", None], "['a', 'b', None]"),
        ([2, None, NAN, 1.5, None, float("nan"), NAN], "[1.5, 2, None, nan]"),
        ([frozenset({1}), frozenset({2}), frozenset({1})], "[frozenset({1}), frozenset({2})]"),
        ([frozenset({1}), frozenset({2}), frozenset()], "[frozenset({1}), frozenset({2}), frozenset()]"),
        ([frozenset({1, 2}), frozenset(), frozenset({2, 1})], "[frozenset(), frozenset({1, 2})]"),
        ([2, "a", 1, "a", NAN, 2], "[2, 'a', 1, nan]"),
        ([2j, 1j, 2j, 3], "[3, 2j, 1j]"),
        ([Fraction(1, 2), 0.5, Decimal("1"), Decimal("nan"), NAN], "[Fraction(1, 2), Decimal('1'), Decimal('NaN')]"),
        ([("b", NAN), ("b", float("nan")), ("a", 2), ("b", 1)], "[('b', nan), ('a', 2), ('b', 1)]"),
        ([("b", 1), ("a", 2), ("b", 1)], "[('a', 2), ('b', 1)]"),
    ],
    ids=str,
)
def test_keys_that_do_not_compare_come_last_and_keys_without_an_order_as_they_appear(keys, expected):
    objects = np.empty(len(keys), object)
    objects[:] = keys
    assert str(groups_and_runs_are_right(objects).tolist()) == expected


@pytest.mark.parametrize("kind", [list, tuple])
def test_keys_of_a_list_stay_apart_where_one_type_would_make_them_equal(kind):
    for keys, expected in (
        ([2**53, 2**53 + 1, 0.5], [0.5, 2**53, 2**53 + 1]), ([2**63, 2**63 + 1, -1], [-1, 2**63, 2**63 + 1]),
        ([2**64, 2**64 + 1, 0.5], [0.5, 2**64, 2**64 + 1]), ([2**53 + 1, 1j, 2**53], [2**53, 2**53 + 1, 1j]),
        ([1, "1", b"1", "1"], [1, "1", b"1"]), (["nan", NAN, NAN], ["nan", NAN]), (["a", "a\0"], ["a", "a\0"]),
        ([b"a\0", b"a"], [b"a", b"a\0"]), ([2**53 + 1, NAN, 2**53, NAN], [2**53, 2**53 + 1, NAN]),
    ):  # fmt: skip
        unique = groups_and_runs_are_right(kind(keys))
        assert unique.dtype == object and str(unique.tolist()) == str(expected)
    keys = kind([np.int64(2**53 + 1), 0.5, 2**53])
    assert samesum.groupby_sum(keys, [1.0, 2.0, 4.0])[1].tolist() == [2, 4, 1]
    for keys, dtype in (
        ([1, 2.5, True], np.float64), ([2**63, -1], np.float64), ([0.5, NAN], np.float64), ([2**64 - 1], np.uint64),
        (["a", "bc"], "U2"), ([np.float32(0.1), 1], np.float64), ([np.datetime64("2026-01-01T00:00:00.5")], "M8[ms]"),
    ):  # fmt: skip
        assert groups_and_runs_are_right(kind(keys)).dtype == dtype


def test_missing_elements_of_pandas_are_one_key():
    pd = pytest.importorskip("pandas")
    values = [1.0, 2.0, 4.0, 8.0]
    for keys in (
        pd.Series(["b", None, "a", None]), pd.array(["b", None, "a", None], dtype="string"),
        pd.Categorical([2, None, 1, None]),
        pd.array([1, None, 0, None], dtype="Int64"), pd.array([True, None, False, None], dtype="boolean"),
        pd.to_datetime(["2026-01-02", None, "2026-01-01", None], utc=True),
        pd.MultiIndex.from_arrays([["b", math.nan, "a", math.nan], [1, 1, 1, 1]]),
    ):  # fmt: skip
        for given in (keys, np.asarray(keys, object)):
            assert sorted(samesum.groupby_sum(given, values)[1].tolist()) == [1, 4, 10]
            assert samesum.reduce_by_key(given, values)[1].tolist() == values
        assert samesum.reduce_by_key(keys.take([0, 1, 3, 2]), values)[1].tolist() == [1, 6, 8]
    both = np.array([pd.NaT, math.nan, np.datetime64("NaT"), pd.NA, pd.NA, None], object)
    assert samesum.groupby_sum(both, 2.0 ** np.arange(6))[1].tolist() == [5, 2, 24, 32]
    assert samesum.reduce_by_key(both, 2.0 ** np.arange(6))[1].tolist() == [1, 2, 4, 24, 32]


def test_groups_need_keys_with_a_hash_and_runs_keys_that_compare():
    keys = np.empty(3, object)
    for place, key in enumerate(([1], [2], [2])):
        keys[place] = key
    with pytest.raises(TypeError, match=r"groupby_sum: keys\[0\] has no hash \(.*list.*\); pass numbers, .* or tuples"):
        samesum.groupby_sum(keys, [1.0, 2.0, 4.0])
    assert samesum.reduce_by_key(keys, [1.0, 2.0, 4.0])[1].tolist() == [1, 6]
    for place in range(3):
        keys[place] = np.zeros(2)
    for function in (samesum.groupby_sum, samesum.reduce_by_key):
        with pytest.raises(TypeError, match=f"{function.__name__}: keys has elements that do not compare"):
            function(keys, [1.0, 2.0, 4.0])


def test_arrays_without_elements():
    out = np.array([1.0, 2.0])
    assert samesum.scatter_add(out, [], []).tolist() == [1, 2]
    assert samesum.scatter_add(np.empty(0), [], []).shape == (0,)
    assert samesum.scatter_add(np.empty((2, 0)), [1], np.empty((1, 0))).shape == (2, 0)
    unique, sums = samesum.groupby_sum([], [])
    assert unique.shape == sums.shape == (0,)


def test_bad_keys_are_named():
    with pytest.raises(ValueError, match=r"keys\[1\] is 3; it must be less than 3"):
        samesum.scatter_add(np.zeros(3), [0, 3], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"keys\[2\] is -1; it must not be negative"):
        samesum.scatter_add(np.zeros(3), [0, 1, -1], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"keys\[0\] is 0; it must be less than 0"):
        samesum.scatter_add(np.empty(0), [0], [1.0])
    for keys in ([-2], [4, -2]):
        with pytest.raises(ValueError, match="is -2; it must not be negative"):
            samesum.bincount(keys)
    for keys in ([0.0], [True], ["a"]):
        with pytest.raises(TypeError, match="keys has elements of type"):
            samesum.scatter_add(np.zeros(3), np.array(keys), [1.0])


def test_integer_keys_beyond_64_bits_are_named_as_they_are():
    def by_key(keys):
        yield "scatter_add", lambda: samesum.scatter_add(np.zeros(3), keys, np.ones(len(keys)))
        yield "bincount", lambda: samesum.bincount(keys)
        yield "bincount", lambda: samesum.bincount(keys, np.ones(len(keys)))

    for keys, message in (
        ([1, 2**63], r"keys\[1\] is 9223372036854775808; it must be less than 2\^63"),
        ((2**63, -1), r"keys\[0\] is 9223372036854775808; it must be less than 2\^63"),
        ([1, 2**64 + 5], r"keys\[1\] is 18446744073709551621; it must be less than 2\^63"),
        ([-(2**63) - 1], r"keys\[0\] is -9223372036854775809; it must not be negative"),
        (np.array([0, 1, 2**64 - 1], np.uint64), r"keys\[2\] is 18446744073709551615; it must be less than 2\^63"),
        (np.array([0, 2**63], object), r"keys\[1\] is 9223372036854775808; it must be less than 2\^63"),
        ([np.uint64(2**63), np.int64(1)], r"keys\[0\] is 9223372036854775808; it must be less than 2\^63"),
    ):
        for name, call in by_key(keys):
            with pytest.raises(ValueError, match=f"{name}: {message}"):
                call()


def test_objects_and_lists_of_integers_are_integer_keys():
    for keys in (
        np.array([2, 0, 2], object), np.array([np.int8(2), 0, np.uint64(2)], object), [np.uint64(2), np.int64(0), 2],
        (2, 0, 2), np.array([2, 0, 2], np.uint64), np.array([2, 0, 2], ">u8"), np.array([2, 0, 2], ">i4"),
    ):  # fmt: skip
        assert samesum.bincount(keys).tolist() == [1, 0, 2]
        assert samesum.scatter_add(np.zeros(3), keys, [1.0, 2.0, 4.0]).tolist() == [2, 0, 5]
    assert samesum.bincount(np.array([], object)).tolist() == []
    for keys in (np.array([True, False], object), np.array([1, 2.0], object), [1, None], [1, 0.5], [2**64, 0.5]):
        with pytest.raises(TypeError, match="bincount: keys has elements of type"):
            samesum.bincount(keys)


def test_what_does_not_fit_together_is_refused():
    out = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"keys has shape \(1, 1\)"):
        samesum.scatter_add(out, [[0]], [[1.0, 1.0]])
    with pytest.raises(ValueError, match=r"values has shape \(2,\), and there are 3 keys"):
        samesum.scatter_add(out, [0, 1, 2], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"out has shape \(3, 2\) and values \(1, 3\)"):
        samesum.scatter_add(out, [0], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match=r"out has shape \(\)"):
        samesum.scatter_add(np.float64(1), [0], [1.0])
    with pytest.raises(TypeError, match="out has elements of type int64"):
        samesum.scatter_add(np.zeros(3, int), [0], [1.0])
    with pytest.raises(TypeError, match="method scatter_add/exact/fp32@cpu adds to float32"):
        samesum.scatter_add(np.zeros(3), [0], [1.0], method="exact/fp32")
    with pytest.raises(TypeError, match="values has elements of type float64.*convert values to float32"):
        samesum.scatter_add(np.zeros(3, np.float32), [0], [1.0], method="serial/plain")
    with pytest.raises(ValueError, match="computes sum, not scatter_add"):
        samesum.scatter_add(np.zeros(3), [0], [1.0], method="sum/exact")
    by_key = {
        "scatter_add": lambda keys: samesum.scatter_add(np.zeros(3), keys, [1.0]), "bincount": samesum.bincount,
        "groupby_sum": lambda keys: samesum.groupby_sum(keys, [1.0]),
        "reduce_by_key": lambda keys: samesum.reduce_by_key(keys, [1.0]),
    }  # fmt: skip
    for name, function in by_key.items():
        for masked in (np.ma.array([1]), np.ma.masked_equal([1], 1), np.ma.array(["a"])):
            with pytest.raises(TypeError, match=rf"{name}: keys is a masked array; pass keys\.compressed\(\), and"):
                function(masked)
        for keys, what in (((k for k in [1]), "generator"), ({1}, "set"), ({1: 2}, "dict")):
            with pytest.raises(TypeError, match=f"{name}: keys is a {what}; pass a list or an array"):
                function(keys)
    with pytest.raises(ValueError, match="minlength is -1"):
        samesum.bincount([0], minlength=-1)
    with pytest.raises(TypeError, match="minlength is 0.5"):
        samesum.bincount([0], minlength=0.5)
    with pytest.raises(ValueError, match="weights has 2 axes"):
        samesum.bincount([0], [[1.0]])
    with pytest.raises(ValueError, match="weights has shape"):
        samesum.bincount([0], [1.0, 2.0])


def test_arrays_in_two_places_are_refused(monkeypatch):
    library = type(library_of([]))
    of_host = library.view

    def view(self, a):
        return of_host(self, a)._replace(device=1 if a.dtype == np.float32 else -1)

    monkeypatch.setattr(library, "view", view)
    values = np.ones(1, np.float32)
    with pytest.raises(
        ValueError, match="out is on the host, keys is on the host, values is on GPU 1; move the arrays"
    ):
        samesum.scatter_add(np.zeros(1), [0], values)
    with pytest.raises(ValueError, match="bincount: keys is on the host, weights is on GPU 1"):
        samesum.bincount([0], values)
    with pytest.raises(ValueError, match="groupby_sum: keys is on the host, values is on GPU 1"):
        samesum.groupby_sum([0], values)


@pytest.mark.parametrize("method", samesum.methods("scatter_add/*@cpu"), ids=lambda m: m.name)
def test_every_method_sums_small_integers(method):
    dtype = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}.get(method.format)
    if dtype is None:
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    result = samesum.scatter_add(np.ones(3, dtype), [2, 0, 2], np.array([1, 2, 4], dtype), method=method)
    assert result.dtype == dtype and result.tolist() == [3, 1, 6]


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    keys, values = pairs(300, 7, 2, dtype=np.float32)
    out = torch.zeros(7, 2)
    result = samesum.scatter_add(out, torch.tensor(keys), torch.tensor(values))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), samesum.scatter_add(out.numpy(), keys, values))
    np.testing.assert_array_equal(samesum.bincount(torch.tensor(keys)).numpy(), np.bincount(keys))
    unique, sums = samesum.groupby_sum(torch.tensor(keys), torch.tensor(values))
    np.testing.assert_array_equal(sums.numpy(), result.numpy()[unique])
    with pytest.raises(NotImplementedError, match="no gradient"):
        samesum.scatter_add(out, torch.tensor(keys), torch.tensor(values).requires_grad_())


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    keys, values = pairs(300, 7, 2, dtype=np.float32)
    result = samesum.scatter_add(jax.numpy.zeros((7, 2)), jax.numpy.asarray(keys), jax.numpy.asarray(values))
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), samesum.scatter_add(np.zeros((7, 2), np.float32), keys, values))
    with pytest.raises(NotImplementedError, match="not traced"):
        jax.jit(samesum.scatter_add)(result, keys, values)
    for function in (samesum.groupby_sum, samesum.reduce_by_key):
        unique, sums = function(jax.numpy.asarray([2, NAN, NAN], "bfloat16"), [1.0, 2.0, 4.0])
        assert str(unique.tolist()) == "[2.0, nan]" and sums.tolist() == [1, 6]


def runs_of(keys):
    starts = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]]
    return starts, [*starts[1:], len(keys)]


@pytest.mark.parametrize("inner", [(), (3,), (2, 5)])
def test_runs_of_equal_keys_have_the_results_of_their_values_alone(inner):
    keys, values = pairs(900, 7, *inner, dtype=np.float32)
    keys = np.repeat(keys[:90], 10)
    starts, ends = runs_of(keys)
    other = pairs(900, 7, *inner, seed=6, dtype=np.float32)[1]
    for m in samesum.methods("*/fp32@cpu"):
        if m.has_result_per_element or m.takes_keys or m.operation == "sum_of_magnitudes" or not m.accepts("fp32"):
            continue
        y = other if m.inputs == 2 else None
        function = getattr(samesum, {"moments": "var", "dot": "vecdot"}.get(m.operation, m.operation), None)
        unique, results = samesum.reduce_by_key(keys, values, y, operation=m.operation, method=m)
        assert unique.tolist() == keys[starts].tolist()
        if function is None:
            continue
        if m.operation == "moments":
            assert results.shape[-1] == 2
            results = results[..., 1]
        for i, (begin, end) in enumerate(zip(starts, ends)):
            both = (values[begin:end],) if y is None else (values[begin:end], y[begin:end])
            np.testing.assert_array_equal(results[i], function(*both, axis=0, method=m), err_msg=m.name)
        assert results.dtype == (np.int64 if m.returns_index else np.float32)


def test_keys_of_runs_have_any_type():
    values = [1.0, 2.0, 4.0, 8.0]
    for keys, expected in (
        (["b", "b", "a", "b"], ["b", "a", "b"]), ([2.5, 2.5, -1.0, 2.5], [2.5, -1.0, 2.5]), ([1, 1, 0, 1], [1, 0, 1]),
        (np.array([1, 1, 0, 1], np.uint8), [1, 0, 1]), (np.array(["b", "b", None, "b"], object), ["b", None, "b"]),
    ):  # fmt: skip
        unique, sums = samesum.reduce_by_key(keys, values)
        assert unique.tolist() == expected and sums.tolist() == [3, 4, 8]
    assert samesum.reduce_by_key(np.array([1, 1, 0, 1])[::-1], values)[1].tolist() == [1, 2, 12]
    assert samesum.reduce_by_key([0, 0], [1, 2], operation="argmax")[1].tolist() == [1]
    assert samesum.reduce_by_key([0, 0], [0.75, 0.75], method="fixed_point", grid=0)[1].tolist() == [2]


def test_no_keys_have_no_runs():
    unique, sums = samesum.reduce_by_key([], [])
    assert unique.shape == sums.shape == (0,)
    assert samesum.reduce_by_key([], np.empty((0, 3)))[1].shape == (0, 3)
    assert samesum.reduce_by_key([1, 1, 2], np.empty((3, 0)))[1].shape == (2, 0)
    assert samesum.reduce_by_key([1], [2.0], operation="moments")[1].tolist() == [[2, 0]]


def test_runs_refuse_what_does_not_fit():
    for arguments, options, message in (
        (([0], [1.0, 2.0]), {}, "values has shape"),
        (([[0]], [1.0]), {}, "keys has shape"),
        (([0], [1.0]), {"operation": "dot"}, "dot takes 2 inputs"),
        (([0], [1.0], [1.0]), {}, "sum takes 1 inputs"),
        (([0], [1.0], [1]), {"operation": "dot", "method": "exact", "grid": 0}, "grid is only for"),
        (([0], np.ones(1), np.ones(1, np.float32)), {"operation": "dot"}, "y differs from values"),
        *((([0], [1.0]), {"operation": name}, "operation is .*; use one of sum, mean, .*moments") for name in (
            "cumsum", "scatter_add", "softmax", "rolling_sum", "var", "summ", ["sum"], None,
        )),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            samesum.reduce_by_key(*arguments, **options)
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.reduce_by_key([0], [1e300], method="fixed_point", grid=0)


def test_runs_of_tensors():
    torch = pytest.importorskip("torch")
    keys, values = torch.tensor([2, 2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    unique, sums = samesum.reduce_by_key(keys, values)
    assert unique.tolist() == [2, 0] and isinstance(sums, torch.Tensor) and sums.tolist() == [[4, 6], [5, 6]]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float16", "float32", "float64"])
def test_keys_of_pytorch_have_any_float_type(name):
    torch = pytest.importorskip("torch")
    keys = torch.tensor([2, math.nan, 2, math.nan, math.nan]).to(getattr(torch, name))
    unique, sums = samesum.groupby_sum(keys, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert str(unique.tolist()) == "[2.0, nan]" and sums.tolist() == [5, 26]
    unique, sums = samesum.reduce_by_key(keys, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert str(unique.tolist()) == "[2.0, nan, 2.0, nan]" and sums.tolist() == [1, 2, 4, 24]
    with pytest.raises(TypeError, match=f"keys has elements of type {name}"):
        samesum.bincount(keys)


def test_unsigned_keys_of_pytorch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        keys = torch.tensor([2, 0, 2]).to(dtype)
        assert samesum.bincount(keys).tolist() == [1, 0, 2]
        assert samesum.groupby_sum(keys, [1.0, 2.0, 4.0])[1].tolist() == [2, 5]
        assert samesum.reduce_by_key(keys, [1.0, 2.0, 4.0])[1].tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match=r"bincount: keys\[1\] is 18446744073709551615; it must be less than 2\^63"):
        samesum.bincount(torch.tensor([0, -1]).to(torch.uint64))


def test_the_functions_for_gpus_find_equal_keys():
    torch = pytest.importorskip("torch")
    library = library_of(torch.tensor([]))
    bits = torch.tensor([0x7FC00000, 0, -0x400000, 0x3F800000, 0x7FC00001, -0x80000000], dtype=torch.int32)
    for keys in (bits.view(torch.float32), torch.tensor([NAN, 0, -NAN, 1, NAN, 0]).to(torch.float8_e5m2)):
        unique, numbers = equality.groups("f", library, keys)
        assert unique.dtype == keys.dtype and str(unique.float().abs().tolist()) == "[0.0, 1.0, nan]"
        assert numbers.tolist() == [2, 0, 2, 1, 2, 0] and numbers.dtype == torch.int64
        assert equality.starts_of_runs("f", library, keys[[0, 2, 4, 1, 5, 0]]).tolist() == [0, 3, 5]
    for dtype in (torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.bool):
        keys = torch.tensor([1, 1, 0]).to(dtype)
        starts = equality.starts_of_runs("f", library, keys)
        assert starts.tolist() == [0, 2] and taken(library, keys, starts).tolist() == [1, 0]
    with pytest.raises(TypeError, match="f: keys has elements of type complex64, which are not sorted on a GPU"):
        equality.groups("f", library, torch.tensor([1j]))
