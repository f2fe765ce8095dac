"""Kernels of Triton that add to cells: compiled on a GPU, interpreted elsewhere."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
HOW = "run it by 'pip install torch triton ml_dtypes && python -m pytest tests/python/test_triton.py'"
torch = pytest.importorskip("torch", reason=HOW)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytest.importorskip("ml_dtypes", reason=HOW)
triton = pytest.importorskip("triton", reason=HOW)

import triton.language as tl  # noqa: E402

import samesum.triton  # noqa: E402
from cells_cases import CASES, bits, case, filled  # noqa: E402


@triton.jit
def add(i, x, n, cells, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    samesum.triton.atomic_add(cells, tl.load(i + k, k < n), tl.load(x + k, k < n), k < n)


@triton.jit
def add_row_sums(i, x, m, cells, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < m)[:, None] & (at % 5 != 0)
    samesum.triton.atomic_add_sum(cells, tl.load(i + row, row < m, 0), tl.load(x + at, mask, 0), mask, 1)


@triton.jit
def add_all(x, n, cells, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    samesum.triton.atomic_add_sum(cells, tl.program_id(0) % 2, tl.load(x + k, k < n), k < n)


@triton.jit
def add_everything_to_one(x, cells, BLOCK: tl.constexpr):
    samesum.triton.atomic_add(cells, 1, tl.load(x + tl.arange(0, BLOCK)))


def tensor(a):
    if a.dtype.name == "bfloat16":
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16).to(DEVICE)
    return torch.from_numpy(a).to(DEVICE)


def array(t):
    t = t.cpu()
    if t.dtype == torch.bfloat16:
        return t.view(torch.int16).numpy().view(samesum.cells(1, "bfloat16").finish().dtype)
    return t.numpy()


@pytest.mark.parametrize(("dtype", "grid"), CASES)
def test_atomic_add_gives_the_sums_of_fractions_and_the_bytes_of_a_cpu_in_any_order(dtype, grid):
    c = case(dtype, grid, seed=1)
    n, expected = len(c.x), filled(c, c.i, c.x).to_bytes()
    mixed = np.random.default_rng(2).permutation(n)
    for block, index, order in ((128, np.int32, np.arange(n)), (1024, np.int64, mixed)):
        i, x = tensor(c.i[order].astype(index)), tensor(c.x[order])
        cells = samesum.cells(len(c.sums), dtype, like=x, grid=grid)
        for part in (slice(0, n // 3), slice(n // 3, n)):  # launches
            add[(triton.cdiv(n, block),)](i[part], x[part], len(x[part]), samesum.triton.cells(cells), block)
        assert (bits(array(cells.finish())) == bits(c.sums)).all()
        assert cells.to_bytes() == expected


@pytest.mark.parametrize(("dtype", "grid"), CASES)
def test_sums_of_blocks_and_rows_are_added_as_their_elements(dtype, grid):
    c = case(dtype, grid, 100, seed=2)
    x = c.x[:576]
    i = c.i[:72]
    keep = (np.arange(576) % 5 != 0).reshape(72, 8)
    by_row = filled(c, np.repeat(i, 8)[keep.ravel()], x[keep.ravel()])
    cells = samesum.cells(100, dtype, like=tensor(x), grid=grid)
    add_row_sums[(5,)](tensor(i), tensor(x), 72, samesum.triton.cells(cells), 16, 8)
    assert cells.to_bytes() == by_row.to_bytes()
    by_block = filled(c, np.arange(576) // 256 % 2, x, 2)
    cells = samesum.cells(2, dtype, like=tensor(x), grid=grid)
    add_all[(3,)](tensor(x), 576, samesum.triton.cells(cells), 256)
    assert cells.to_bytes() == by_block.to_bytes()


def test_one_index_serves_a_block_and_a_mask_may_be_left_out():
    x = torch.arange(64, dtype=torch.float32, device=DEVICE)
    cells = samesum.cells(3, "float32", like=x)
    add_everything_to_one[(2,)](x, samesum.triton.cells(cells), 64)
    assert cells.finish().tolist() == [0, 2 * 63 * 32, 0]


def test_many_additions_carry_through_digits():
    x = torch.full((4096,), 2.0**127, device=DEVICE)
    x[1::2] = 2.0**-149
    i = torch.zeros(4096, dtype=torch.int64, device=DEVICE)
    cells, expected = (samesum.cells(1, "float32", like=x) for _ in range(2))
    for _ in range(40):
        add[(4,)](i, x, 4096, samesum.triton.cells(cells), 1024)
        expected.add(i, x)
    add[(4,)](i, -x, 4096, samesum.triton.cells(cells), 1024)
    expected.add(i, -x)
    assert cells.to_bytes() == expected.to_bytes()
    assert cells.finish("float64").item() == 39 * 2048 * 2.0**127


def test_cells_that_hold_carries_of_a_kernel_take_more_on_the_cpu_and_merge():
    c = case("float32", None, 64, seed=3)
    x, i = tensor(c.x), tensor(c.i)
    cells = samesum.cells(64, "float32", like=x)
    add[(triton.cdiv(len(x), 128),)](i, x, len(x), samesum.triton.cells(cells), 128)
    host = samesum.Cells.from_bytes(cells.to_bytes())
    host.add(c.i, c.x)
    host.merge(samesum.Cells.from_bytes(cells.to_bytes()))
    assert host.to_bytes() == filled(c, np.tile(c.i, 3), np.tile(c.x, 3)).to_bytes()


def test_cells_in_memory_of_numpy_are_refused():
    with pytest.raises(TypeError, match="Triton takes tensors of PyTorch; make the cells with like=x"):
        samesum.triton.cells(samesum.cells(3, "float32"))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: the calls run there")
@pytest.mark.parametrize(("dtype", "grid"), CASES)
def test_calls_on_a_gpu_have_the_bytes_of_a_cpu(dtype, grid):
    if not samesum._core.has_cuda:
        pytest.skip("samesum was built without CUDA")
    c = case(dtype, grid, seed=4)
    i, x = tensor(c.i), tensor(c.x)
    cells, other = (samesum.cells(len(c.sums), dtype, like=x, grid=grid) for _ in range(2))
    cells.add(i, x)
    assert (bits(array(cells.finish())) == bits(c.sums)).all()
    other.merge(cells)
    other.merge(cells)
    twice = filled(c, np.tile(c.i, 2), np.tile(c.x, 2))
    assert other.to_bytes() == twice.to_bytes()
    with pytest.raises(IndexError):
        cells.add(i + 10**6, x)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: graphs are captured there")
def test_kernels_are_captured_in_graphs():
    c = case("float32", -50, seed=5)
    i, x = tensor(c.i), tensor(c.x)
    cells = samesum.cells(len(c.sums), "float32", like=x, grid=-50)

    def launch():
        add[(triton.cdiv(len(x), 1024),)](i, x, len(x), samesum.triton.cells(cells), 1024)

    launch()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        cells.reset()
        launch()
    for _ in range(3):
        graph.replay()
    assert (bits(array(cells.finish())) == bits(c.sums)).all()
