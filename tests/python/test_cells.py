"""Cells: their sums are those of fractions in any order, of scatter_add, and travel as bytes."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402
from samesum._cells.words import in_order  # noqa: E402
from samesum._elements.library import View  # noqa: E402
from cells_cases import CASES, bits, case, dtype_of, filled  # noqa: E402

pytest.importorskip("ml_dtypes")  # for bfloat16


@pytest.mark.parametrize(("dtype", "grid"), CASES)
def test_sums_are_those_of_fractions_in_any_order_and_any_parts(dtype, grid):
    c = case(dtype, grid)
    whole = filled(c, c.i, c.x)
    assert (bits(whole.finish()) == bits(c.sums)).all()
    order = np.random.default_rng(7).permutation(len(c.x))
    parts = [filled(c, c.i[part], c.x[part]) for part in np.array_split(order, 5)]
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].to_bytes() == whole.to_bytes()
    assert (bits(parts[0].finish()) == bits(c.sums)).all()


@pytest.mark.parametrize("grid", [None, -50])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_have_the_bits_of_scatter_add(dtype, grid):
    random = np.random.default_rng(3)
    i = random.integers(0, 50, 3000)
    x = np.ldexp(random.standard_normal(3000), random.integers(-20, 5, 3000)).astype(dtype)
    before = random.integers(-99, 99, 50).astype(dtype)
    cells = samesum.cells(50, dtype, grid=grid)
    cells.add(i, x)
    cells.add(np.arange(50), before)
    method = "exact" if grid is None else "fixed_point"
    expected = samesum.scatter_add(before, i, x, method=method, grid=grid)
    assert (bits(cells.finish()) == bits(expected)).all()


@pytest.mark.parametrize(("state", "element"), [
    ("float32", "float16"), ("float32", "bfloat16"), ("float64", "float16"), ("float64", "float32"),
])  # fmt: skip
def test_cells_take_elements_of_all_types_that_they_hold_and_round_to_any(state, element):
    c = case(element, None, 60)
    cells = samesum.cells(60, state)
    cells.add(c.i, c.x)
    assert (bits(cells.finish(element)) == bits(c.sums)).all()
    on_grid = samesum.cells(60, state, grid=-40)
    on_grid.add(c.i, c.x)
    assert on_grid.finish("float64").dtype == np.float64


def test_rows_of_cells_add_rows():
    random = np.random.default_rng(5)
    i, x = random.integers(0, 9, (4, 50)), random.standard_normal((4, 50, 3, 2))
    cells = samesum.cells((9, 3, 2), "float64")
    cells.add(i, x)
    expected = samesum.scatter_add(np.zeros((9, 3, 2)), i.ravel(), x.reshape(-1, 3, 2))
    assert (cells.finish() == expected).all() and cells.finish().shape == (9, 3, 2)


@pytest.mark.parametrize(("dtype", "grid", "nbytes"), [
    ("float16", None, 48), ("bfloat16", None, 96), ("float32", None, 104), ("float64", None, 552), ("float32", 0, 24),
])  # fmt: skip
def test_a_cell_has_the_bytes_of_its_state(dtype, grid, nbytes):
    cells = samesum.cells((5, 2), dtype, grid=grid)
    assert cells.words.nbytes == 10 * nbytes and cells.words.dtype == np.int64 and not cells.words.any()


class Reader:
    """A library that notes for which array it waits."""

    def __init__(self, stream, noted):
        self.stream, self.noted = stream, noted

    def view(self, a):
        return View(0, (), (), 0, self.stream)

    def wait(self, a):
        self.noted.append(a)


class OfAnotherLibrary:
    def __dlpack__(self):
        raise BufferError


@pytest.mark.parametrize(("streams", "x", "waits"), [
    ((0, 0), np.empty(0), False), ((7, 7), np.empty(0), False), ((7, 0), np.empty(0), True),
    ((7, 7), OfAnotherLibrary(), True),
])  # fmt: skip
def test_arrays_in_several_streams_are_waited_for_before_and_after_a_call(streams, x, waits):
    noted = []
    readers = [Reader(stream, noted) for stream in streams]
    with in_order((np.empty(0), readers[0], "cells"), (x, readers[1], "x")):
        noted.append("call")
    both = ["cells", "x"] * waits
    assert noted == [*both, "call", *both]


@pytest.mark.parametrize("owner", ["torch", "cupy"])
def test_cells_of_pytorch_and_cupy_take_elements_of_each_other_in_any_streams(owner):
    torch, cupy = (pytest.importorskip(name, reason="needs PyTorch, CuPy and a GPU") for name in ("torch", "cupy"))
    if not (torch.cuda.is_available() and samesum._core.has_cuda):
        pytest.skip("needs a GPU and a samesum that was built with CUDA")
    c = case("float32", None, 1000)
    i, x = np.tile(c.i, 100), np.tile(c.x, 100)
    with torch.cuda.stream(torch.cuda.Stream()), cupy.cuda.Stream(non_blocking=True):
        of_torch, of_cupy = (lambda a: torch.from_numpy(a).cuda()), cupy.asarray
        mine, theirs = (of_torch, of_cupy) if owner == "torch" else (of_cupy, of_torch)
        cells, other = (samesum.cells(len(c.sums), "float32", like=of(x)) for of in (mine, theirs))
        for _ in range(5):
            cells.add(theirs(i), theirs(x))
            other.add(mine(i), mine(x))
        cells.merge(other)
        assert cells.to_bytes() == filled(c, np.tile(i, 10), np.tile(x, 10)).to_bytes()


def test_threads_may_add_at_the_same_time():
    c = case("float32", None)
    cells = samesum.cells(len(c.sums), c.dtype)
    threads = [threading.Thread(target=cells.add, args=(c.i[k::4], c.x[k::4])) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (bits(cells.finish()) == bits(c.sums)).all()


def test_a_sum_beyond_the_grid_is_nan_and_float64_has_64_bits_more():
    for dtype, count, is_nan in (("float32", 4, False), ("float32", 5, True), ("float64", 5, False)):
        cells = samesum.cells(1, dtype, grid=0)
        cells.add(np.zeros(count, int), np.full(count, 2.0**60, np.float32))
        assert np.isnan(cells.finish()[0]) == is_nan, (dtype, count)
        assert is_nan or cells.finish()[0] == count * 2.0**60
    for x in (2.0**62, np.nextafter(2.0**62, 2.0**63)):
        cells = samesum.cells(1, "float64", grid=0)
        cells.add([0, 0], [x, -x])
        assert np.isnan(cells.finish()[0]) == (x > 2.0**62)


def test_reset_empties_cells():
    cells = samesum.cells(3, "float32")
    cells.add([1, 2], np.array([1, np.nan], np.float32))
    cells.reset()
    assert cells.to_bytes() == samesum.cells(3, "float32").to_bytes()


@pytest.mark.parametrize(("dtype", "grid"), CASES)
def test_bytes_restore_cells(dtype, grid):
    c = case(dtype, grid, 40)
    cells = filled(c, c.i, c.x)
    again = samesum.Cells.from_bytes(cells.to_bytes())
    assert (again.shape, again.dtype, again.grid) == (cells.shape, cells.dtype, cells.grid)
    assert again.to_bytes() == cells.to_bytes()
    for copied in (copy.deepcopy(cells), pickle.loads(pickle.dumps(cells))):
        copied.add([0], np.ones(1, dtype_of(dtype)))
        assert cells.to_bytes() == again.to_bytes() != copied.to_bytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_bytes_are_those_of_the_sums_and_not_of_the_padding(dtype):
    cells = samesum.cells(2, dtype)
    expected = cells.to_bytes()
    cells.words[:, -1] += 1 << 32  # behind the flags, which have 32 bits
    assert cells.to_bytes() == expected


def test_damaged_bytes_are_refused():
    data = samesum.cells(2, "float32").to_bytes()
    for wrong in (b"", data[:-1], data + b"0", data[:30] + b"\1" + data[31:], samesum.Exact(1.0).to_bytes()):
        with pytest.raises(ValueError, match="not a serialised state"):
            samesum.Cells.from_bytes(wrong)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: samesum.cells(3, "int32"), TypeError, "dtype is int32; use float16, bfloat16"),
    (lambda: samesum.cells(3, "complex64"), TypeError, "dtype is complex64"),
    (lambda: samesum.cells(-1, "float32"), ValueError, "shape is -1"),
    (lambda: samesum.cells((), "float32"), ValueError, r"shape is \(\); pass at least one"),
    (lambda: samesum.cells("3", "float32"), TypeError, "shape is '3'"),
    (lambda: samesum.cells(3, "float32", grid=0.5), TypeError, "grid is 0.5; use a whole number"),
    (lambda: samesum.cells(3, "float32", grid=128), ValueError, "grid is 128; for results of float32 choose"),
    (lambda: samesum.cells(3, "float64", grid=-1075), ValueError, "grid is -1075"),
])  # fmt: skip
def test_bad_arguments_are_refused_when_cells_are_made(make, error, message):
    with pytest.raises(error, match=f"samesum: {message}"):
        make()


@pytest.mark.parametrize(("i", "x", "error", "message"), [
    ([0, 3], np.ones(2, "f4"), IndexError, "index out of range; use 0 to 2"),
    ([0, -1], np.ones(2, "f4"), IndexError, "index out of range"),
    ([0, 1], np.ones(2), TypeError, "x has elements of type float64, and the cells hold float32"),
    ([0, 1], np.ones(2, int), TypeError, "x has elements of type int64"),
    ([0.0, 1.0], np.ones(2, "f4"), TypeError, "i has elements that are no integers"),
    ([True, True], np.ones(2, "f4"), TypeError, "i has elements that are no integers"),
    ([0, 1], np.ones(3, "f4"), ValueError, r"x has shape \(3,\)"),
])  # fmt: skip
def test_bad_elements_are_refused_and_nothing_is_added(i, x, error, message):
    cells = samesum.cells(3, "float32")
    with pytest.raises(error, match=message):
        cells.add(i, x)
    assert not cells.words.any()


@pytest.mark.parametrize("use", [
    np.asarray, float, int, bool, len, list, lambda c: c + 1, lambda c: np.ones(3) * c, lambda c: c == 0,
    lambda c: c[0], np.sum, samesum.sum,
])  # fmt: skip
def test_cells_are_no_numbers(use):
    with pytest.raises(TypeError, match=r"cells are sums in progress, not numbers; call cells.finish\(\)"):
        use(samesum.cells(3, "float32"))


@pytest.mark.parametrize(("other", "error"), [
    (samesum.cells(3, "float32", grid=-3), ValueError), (samesum.cells(4, "float32"), ValueError),
    (samesum.cells(3, "float64"), ValueError), (np.zeros(3), TypeError),
])  # fmt: skip
def test_only_cells_of_the_same_kind_merge(other, error):
    with pytest.raises(error, match="samesum: (cells merge with|other is)"):
        samesum.cells(3, "float32").merge(other)


@pytest.mark.parametrize("grid", [None, -52])
def test_cells_merge_with_themselves(grid):
    x = np.full(400, np.nextafter(2.0, 0.0))  # their digits carry
    cells, twice = (samesum.cells(1, "float64", grid=grid) for _ in range(2))
    cells.add(np.zeros(400, np.int64), x)
    twice.add(np.zeros(800, np.int64), np.tile(x, 2))
    cells.merge(cells)
    assert cells.to_bytes() == twice.to_bytes()
