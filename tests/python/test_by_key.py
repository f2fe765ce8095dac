"""The functions by key: their bits, shapes and types, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import samesum
from samesum import _arrays

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
    with pytest.raises(TypeError, match="values is a masked array"):
        samesum.scatter_add(np.zeros(3), [0], np.ma.array([1.0]))
    with pytest.raises(TypeError, match="keys is a masked array"):
        samesum.groupby_sum(np.ma.array([1]), [1.0])
    with pytest.raises(ValueError, match="minlength is -1"):
        samesum.bincount([0], minlength=-1)
    with pytest.raises(TypeError, match="minlength is 0.5"):
        samesum.bincount([0], minlength=0.5)
    with pytest.raises(ValueError, match="weights has 2 axes"):
        samesum.bincount([0], [[1.0]])
    with pytest.raises(ValueError, match="weights has shape"):
        samesum.bincount([0], [1.0, 2.0])
    with pytest.raises(TypeError, match="cannot be sorted"):
        samesum.groupby_sum(np.array([1, "a"], object), [1.0, 2.0])


def test_arrays_in_two_places_are_refused(monkeypatch):
    library = type(_arrays.library_of([]))
    of_host = library.view

    def view(self, a):
        return of_host(self, a)._replace(device=1 if a.dtype == np.float32 else -1)

    monkeypatch.setattr(library, "view", view)
    values = np.ones(1, np.float32)
    with pytest.raises(ValueError, match="out is on the host, keys is on the host, values is on GPU 1; move the arrays"):
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
        if m.has_result_per_element or m.takes_keys or m.operation == "sum_of_magnitudes":
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
        (([0], [1.0]), {"operation": "cumsum"}, "only contiguous rows and axes"),
        (([0], [1.0]), {"operation": "scatter_add"}, "takes keys"),
    ):
        with pytest.raises(ValueError, match=message):
            samesum.reduce_by_key(*arguments, **options)
    with pytest.raises(TypeError, match="add has no method"):
        samesum.reduce_by_key([0], [1.0], operation="add")
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.reduce_by_key([0], [1e300], method="fixed_point", grid=0)


def test_runs_of_tensors():
    torch = pytest.importorskip("torch")
    keys, values = torch.tensor([2, 2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    unique, sums = samesum.reduce_by_key(keys, values)
    assert unique.tolist() == [2, 0] and isinstance(sums, torch.Tensor) and sums.tolist() == [[4, 6], [5, 6]]
