"""The scans: their bits, axes and keywords, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import samesum

SCANS = {
    "cumsum": samesum.sum, "cumprod": samesum.prod, "cummax": samesum.max, "cummin": samesum.min,
    "cumlogsumexp": samesum.logsumexp,
}  # fmt: skip


def data(*shape):
    rng = np.random.default_rng(3)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)).astype(np.float32)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_each_result_is_that_of_the_elements_up_to_it(name, axis):
    x = data(3, 40, 5)
    order = "exact" if name == "cumsum" else "" if name in ("cummax", "cummin") else "prefix"
    method = order or name[3:]
    scanned = getattr(samesum, name)(x, axis)
    left_out = getattr(samesum, name)(x, axis, exclusive=True)
    flat = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else axis
    assert scanned.shape == left_out.shape == flat.shape and scanned.dtype == np.float32
    for i in range(flat.shape[along]):
        some = np.take(flat, range(i + 1), along)
        expected = SCANS[name](some, axis=along, method=method)
        np.testing.assert_array_equal(np.take(scanned, i, along), expected)
        if i + 1 < flat.shape[along]:
            np.testing.assert_array_equal(np.take(left_out, i + 1, along), expected)
    nothing = SCANS[name](np.take(flat, [], along), axis=along)
    np.testing.assert_array_equal(np.take(left_out, 0, along), nothing)


def test_a_sequential_scan_has_the_bits_of_numpy():
    x = data(1000).astype(np.float64)
    np.testing.assert_array_equal(samesum.cumsum(x, method="serial/plain"), np.cumsum(x))
    np.testing.assert_array_equal(samesum.cummax(x), np.maximum.accumulate(x))


def test_long_arrays_have_the_bits_of_short_ones():
    x = data(2, 100_000)
    for threads in (1, 2, 3):
        rows = samesum.cumsum(x, 1, method="prefix/kahan", threads=threads)
        for r in (0, 1):
            np.testing.assert_array_equal(rows[r], samesum.cumsum(x[r], method="prefix/kahan", threads=1))
    columns = samesum.cumsum(np.ascontiguousarray(x.T), 0, method="prefix/kahan")
    np.testing.assert_array_equal(columns.T, rows)
    np.testing.assert_array_equal(samesum.cumsum(x.T, 0, method="prefix/kahan").T, rows)


def test_a_cumsum_may_have_a_grid_for_the_whole_vector():
    x = [2.0**70, 1.0, -2.0**70, 1.0]
    assert samesum.cumsum(x, method="fixed_point").tolist() == [2.0**70, 2.0**70, 1, 2]
    assert samesum.cumsum(np.float32(x), method="fixed_point").tolist() == [2.0**70, 2.0**70, 0, 0]


def test_a_given_grid_makes_each_prefix_the_sum_of_its_elements():
    x = data(500).astype(np.float64)
    prefixes = samesum.cumsum(x, method="fixed_point", grid=-20)
    for n in (1, 2, 77, 500):
        assert prefixes[n - 1] == samesum.sum(x[:n], method="fixed_point", grid=-20)
    np.testing.assert_array_equal(samesum.cumulative_sum(x, method="fixed_point", grid=-20), prefixes)
    with pytest.raises(OverflowError, match="give a larger grid"):
        samesum.cumsum([1e300], method="fixed_point", grid=0)
    with pytest.raises(ValueError, match="grid is only for"):
        samesum.cumsum(x, grid=0)


def test_results_have_the_format_of_the_method():
    x = np.full(5000, 0.1, np.float16)
    assert samesum.cumsum(x).dtype == np.float16
    wide = samesum.cumsum(x, method="prefix/plain/fp32")
    assert wide.dtype == np.float32
    assert wide[-1] == samesum.sum(x, method="prefix/plain/fp32")


def test_results_are_written_to_out():
    x = data(4, 6)
    out = np.empty_like(x)
    assert samesum.cumsum(x, 1, out=out) is out
    np.testing.assert_array_equal(out, samesum.cumsum(x, 1))
    strided = np.zeros((4, 12), np.float32)[:, ::2]
    samesum.cumsum(x, 1, out=strided)
    np.testing.assert_array_equal(strided, out)
    assert samesum.cumsum(x, 0, out=x) is x
    with pytest.raises(ValueError, match="out has shape"):
        samesum.cumsum(x, out=out)


def test_the_array_api_has_an_initial_value():
    x = data(3, 7, 2)
    for axis in (0, 1, 2):
        sums = samesum.cumulative_sum(x, axis=axis, include_initial=True)
        np.testing.assert_array_equal(np.delete(sums, 0, axis), samesum.cumsum(x, axis))
        assert not np.take(sums, 0, axis).any()
        products = samesum.cumulative_prod(x, axis=axis, include_initial=True)
        np.testing.assert_array_equal(np.delete(products, 0, axis), samesum.cumprod(x, axis))
        assert (np.take(products, 0, axis) == 1).all()
    np.testing.assert_array_equal(samesum.cumulative_sum(x[0, :, 0]), samesum.cumsum(x[0, :, 0]))
    assert samesum.cumulative_sum(np.empty(0), include_initial=True).tolist() == [0]
    with pytest.raises(ValueError, match="x has 3 axes; pass axis="):
        samesum.cumulative_sum(x)


def test_arrays_without_elements_and_numbers():
    assert samesum.cumsum(np.empty((3, 0))).shape == (0,)
    assert samesum.cumsum(np.empty((3, 0)), 1).shape == (3, 0)
    assert samesum.cumsum([]).tolist() == []
    assert samesum.cumsum(np.float32(3)).tolist() == [3]
    assert samesum.cumulative_sum(np.float32(3)).tolist() == samesum.cumulative_sum(3.0).tolist() == [3]


def test_what_is_not_supported_is_refused():
    x = data(4, 6)
    with pytest.raises(TypeError, match="takes one axis"):
        samesum.cumsum(x, (0, 1))
    with pytest.raises(IndexError, match="axis 2 is out of range"):
        samesum.cumsum(x, 2)
    with pytest.raises(ValueError, match="use prefix"):
        samesum.cumsum(x, method="tree/plain")
    with pytest.raises(ValueError, match="computes sum, not cumsum"):
        samesum.cumsum(x, method="sum/tree/plain")


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.tensor(data(3, 50))
    result = samesum.cumsum(x, 1, method="prefix/plain")
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), samesum.cumsum(x.numpy(), 1, method="prefix/plain"))
    halves = samesum.cumsum(x.bfloat16(), 1)
    assert halves.dtype == torch.bfloat16 and halves.shape == x.shape
    with pytest.raises(NotImplementedError, match="no gradient"):
        samesum.cumsum(x.requires_grad_(), 1)


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(data(3, 50))
    np.testing.assert_array_equal(np.asarray(samesum.cumsum(x, 0)), samesum.cumsum(data(3, 50), 0))
    with pytest.raises(NotImplementedError, match="not traced"):
        jax.jit(samesum.cumsum)(x)
