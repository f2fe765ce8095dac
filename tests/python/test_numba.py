"""Functions of Numba that add to cells: by threads of a CPU, and in kernels on a GPU."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
HOW = "run it by 'pip install numba ml_dtypes && python -m pytest tests/python/test_numba.py'"
numba = pytest.importorskip("numba", reason=HOW)
pytest.importorskip("ml_dtypes", reason=HOW)

import samesum.numba  # noqa: E402
from cells_cases import CASES, bits, case, filled  # noqa: E402

FLOATS = [(dtype, grid) for dtype, grid in CASES if dtype in ("float32", "float64")]


@numba.njit(parallel=True)
def add(cells, i, x):
    for k in numba.prange(len(x)):
        samesum.numba.atomic_add(cells, i[k], x[k])


@pytest.mark.parametrize(("dtype", "grid"), FLOATS)
def test_threads_give_the_sums_of_fractions_and_the_bytes_of_calls_in_any_order(dtype, grid):
    c = case(dtype, grid, seed=8)
    order = np.random.default_rng(9).permutation(len(c.x))
    cells = samesum.cells(len(c.sums), dtype, grid=grid)
    add(samesum.numba.cells(cells), c.i[order], c.x[order])
    assert (bits(cells.finish()) == bits(c.sums)).all()
    assert cells.to_bytes() == filled(c, c.i, c.x).to_bytes()


@pytest.mark.parametrize(("cells", "dtype"), [("float64", "float32"), ("float16", "float32"), ("float32", "float64")])
def test_cells_take_other_types_that_they_hold_and_a_grid_takes_all(cells, dtype):
    c = case(dtype, -30, seed=10)
    for grid in (None, -30) if cells == "float64" else (-30,):
        filled, expected = samesum.cells(len(c.sums), cells, grid=grid), samesum.cells(len(c.sums), cells, grid=grid)
        add(samesum.numba.cells(filled), c.i, c.x)
        expected.add(c.i, c.x)
        assert filled.to_bytes() == expected.to_bytes()


def test_threads_that_meet_in_one_cell_lose_nothing_and_carry_through_digits():
    x = np.full(2**18, 2.0**127, np.float32)
    x[1::2] = -(2.0**-149)
    cells, expected = samesum.cells(1, "float32"), samesum.cells(1, "float32")
    i = np.zeros(len(x), int)
    for y in (x, x, -x):
        add(samesum.numba.cells(cells), i, y)
        expected.add(i, y)
    assert cells.to_bytes() == expected.to_bytes()
    on_grid, expected = samesum.cells(1, "float64", grid=-10), samesum.cells(1, "float64", grid=-10)
    y = np.full(2**18, 2.0**51)
    add(samesum.numba.cells(on_grid), i, y)
    expected.add(i, y)
    assert on_grid.to_bytes() == expected.to_bytes() and on_grid.finish()[0] == 2.0**69


@pytest.mark.parametrize(("arguments", "message"), [
    (lambda c: (samesum.numba.cells(c), 0, 1.0), "x is float64, and the cells hold float32"),
    (lambda c: (samesum.numba.cells(c), 0, 1), "x is int64; use float32 or float64"),
    (lambda c: (c.words, 0, np.float32(1)), r"the first argument of atomic_add must be samesum.numba.cells\(c\)"),
])  # fmt: skip
def test_bad_arguments_are_refused_when_a_function_is_compiled(arguments, message):
    @numba.njit
    def add_one(cells, i, x):
        samesum.numba.atomic_add(cells, i, x)

    with pytest.raises(numba.core.errors.TypingError, match=message):
        add_one(*arguments(samesum.cells(3, "float32")))


def test_bad_uses_in_python_are_refused():
    with pytest.raises(TypeError, match="the cells hold float16, and Numba adds float32 and float64"):
        samesum.numba.cells(samesum.cells(3, "float16"))
    with pytest.raises(TypeError, match="in a function that Numba compiles"):
        samesum.numba.atomic_add(samesum.numba.cells(samesum.cells(3, "float32")), 0, 1.0)


@pytest.mark.parametrize(("dtype", "grid"), FLOATS)
def test_kernels_give_the_sums_of_fractions_and_the_bytes_of_a_cpu(dtype, grid):
    torch = pytest.importorskip("torch", reason="needs a GPU, numba-cuda and torch")
    pytest.importorskip("numba.cuda.extending", reason="needs a GPU, numba-cuda and torch")
    from numba import cuda

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    @cuda.jit
    def kernel(cells, i, x):
        k = cuda.grid(1)
        if k < x.size:
            samesum.numba.atomic_add(cells, i[k], x[k])

    c = case(dtype, grid, seed=11)
    cells = samesum.cells(len(c.sums), dtype, like=torch.empty(0, device="cuda"), grid=grid)
    for order in (np.arange(len(c.x)), np.random.default_rng(12).permutation(len(c.x))):
        cells.reset()
        kernel[-(-len(c.x) // 128), 128](samesum.numba.cells(cells), c.i[order], c.x[order])
        torch.cuda.synchronize()
        assert cells.to_bytes() == filled(c, c.i, c.x).to_bytes()
    assert (bits(cells.finish().cpu().numpy()) == bits(c.sums)).all()
