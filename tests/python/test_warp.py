"""Kernels of Warp that add to cells, on a CPU and, where there is one, on a GPU."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
HOW = "run it by 'pip install warp-lang ml_dtypes && python -m pytest tests/python/test_warp.py'"
wp = pytest.importorskip("warp", reason=HOW)
pytest.importorskip("ml_dtypes", reason=HOW)

import samesum.warp  # noqa: E402
from cells_cases import CASES, bits, case, filled  # noqa: E402

FLOATS = [(dtype, grid) for dtype, grid in CASES if dtype != "bfloat16"]
DEVICES = ["cpu", *(["cuda:0"] if wp.is_cuda_available() else [])]
ELEMENTS = {"float16": wp.float16, "float32": wp.float32, "float64": wp.float64}


def kernel_for(dtype, grid):
    kind, element = getattr(samesum.warp, f"{'Exact' if grid is None else 'Grid'}{dtype.capitalize()}"), ELEMENTS[dtype]

    def add(cells: kind, i: wp.array(dtype=int), x: wp.array(dtype=element)):
        k = wp.tid()
        samesum.warp.atomic_add(cells, i[k], x[k])

    add.__annotations__ = {"cells": kind, "i": wp.array(dtype=int), "x": wp.array(dtype=element)}
    return wp.kernel(add, module="unique")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "grid"), FLOATS)
def test_kernels_give_the_sums_of_fractions_and_the_bytes_of_calls_in_any_order(dtype, grid, device):
    c, add = case(dtype, grid, seed=13), kernel_for(dtype, grid)
    expected = filled(c, c.i, c.x)
    for order in (np.arange(len(c.x)), np.random.default_rng(14).permutation(len(c.x))):
        i, x = wp.array(c.i[order].astype(np.int32), device=device), wp.array(c.x[order], device=device)
        cells = samesum.cells(len(c.sums), dtype, like=x, grid=grid)
        wp.launch(add, len(x), inputs=[samesum.warp.cells(cells), i, x], device=device)
        assert cells.to_bytes() == expected.to_bytes()
        sums = cells.finish()
        assert isinstance(sums, wp.array) and (bits(sums.numpy()) == bits(c.sums)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grid", [None, -40])
def test_a_backward_pass_gathers_the_gradients_and_adds_nothing(grid, device):
    kind = samesum.warp.ExactFloat32 if grid is None else samesum.warp.GridFloat32

    def add_squares(cells: kind, i: wp.array(dtype=int), x: wp.array(dtype=float)):
        k = wp.tid()
        samesum.warp.atomic_add(cells, i[k], x[k] * x[k])

    def square_sum(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
        wp.atomic_add(loss, 0, y[wp.tid()] * y[wp.tid()])

    numbers, integers = wp.array(dtype=float), wp.array(dtype=int)
    add_squares.__annotations__ = {"cells": kind, "i": integers, "x": numbers}
    square_sum.__annotations__ = {"y": numbers, "loss": numbers}
    add_squares, square_sum = (wp.kernel(f, module="unique") for f in (add_squares, square_sum))
    x = wp.array([1.0, 2.0, 3.0, -4.0], dtype=float, requires_grad=True, device=device)
    i = wp.array([2, 0, 2, 0], dtype=int, device=device)
    y, loss = (wp.zeros(n, dtype=float, requires_grad=True, device=device) for n in (3, 1))
    cells = samesum.cells(3, "float32", like=x, grid=grid)
    with wp.Tape() as tape:
        wp.launch(add_squares, 4, inputs=[samesum.warp.cells(cells, y), i, x], device=device)
        y.assign(cells.finish())
        wp.launch(square_sum, 3, inputs=[y, loss], device=device)
    before = cells.to_bytes()
    tape.backward(loss)
    assert y.numpy().tolist() == [20, 0, 10] and loss.numpy().tolist() == [500]
    assert x.grad.numpy().tolist() == [2 * 10 * 2 * 1, 2 * 20 * 2 * 2, 2 * 10 * 2 * 3, 2 * 20 * 2 * -4]
    assert cells.to_bytes() == before


def test_elements_without_a_result_have_no_gradient():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True, device="cpu")
    i = wp.array([0, 1], dtype=int, device="cpu")
    cells = samesum.cells(2, "float32", like=x)
    with wp.Tape() as tape:
        wp.launch(kernel_for("float32", None), 2, inputs=[samesum.warp.cells(cells), i, x], device="cpu")
    tape.backward(grads={x: wp.ones(2, dtype=float, device="cpu")})
    assert x.grad.numpy().tolist() == [1, 1]


def test_many_additions_carry_through_digits():
    x = np.full(4096, 2.0**127, np.float32)
    x[1::2] = -(2.0**-149)
    expected = samesum.cells(1, "float32")
    cells = samesum.cells(1, "float32", like=wp.zeros(1, device="cpu"))
    i = wp.zeros(4096, dtype=int, device="cpu")
    for y in (x, x, -x):
        wp.launch(kernel_for("float32", None), 4096, device="cpu",
                  inputs=[samesum.warp.cells(cells), i, wp.array(y, device="cpu")])
        expected.add(i.numpy(), y)
    assert cells.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda x: samesum.warp.cells(samesum.cells(3, "float32")), TypeError, "Warp takes its own arrays"),
    (lambda x: samesum.warp.cells(samesum.cells(3, "bfloat16", like=x)), TypeError, "for Warp make cells of float16"),
    (lambda x: samesum.warp.cells(samesum.cells(3, "float64", like=x), x), TypeError, r"result must be .* \(3,\)"),
    (lambda x: samesum.warp.cells(samesum.cells(3, "float32", like=x), x), ValueError, "requires_grad=True"),
])  # fmt: skip
def test_bad_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(wp.zeros(3, dtype=float, device="cpu"))
