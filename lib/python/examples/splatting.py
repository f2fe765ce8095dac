"""Points that are splatted on an image, and the gradient of their weights, in Triton.

Prints how many images 20 runs gave, with cells and with float atomics. Needs Triton, PyTorch and a GPU, or
TRITON_INTERPRET=1.
"""

import torch
import triton
import triton.language as tl

import samesum
import samesum.triton

SIZE = 64
"""Pixels of a side."""
BLOCK = 256


@triton.jit
def splat(x, y, weight, n, image, cells, SIZE: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    px, py, w = tl.load(x + k, k < n), tl.load(y + k, k < n), tl.load(weight + k, k < n)
    column, row = px.to(tl.int32), py.to(tl.int32)
    for corner in tl.static_range(4):
        dx, dy = corner % 2, corner // 2
        share = (1 - tl.abs(px - column - dx)) * (1 - tl.abs(py - row - dy))
        pixel = (row + dy) * SIZE + column + dx
        if EXACT:
            samesum.triton.atomic_add(cells, pixel, share * w, k < n)
        else:
            tl.atomic_add(image + pixel, share * w, k < n)


@triton.jit
def gather(x, y, image_gradient, n, gradient, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    px, py = tl.load(x + k, k < n), tl.load(y + k, k < n)
    column, row = px.to(tl.int32), py.to(tl.int32)
    sum = tl.zeros([BLOCK], tl.float32)
    for corner in tl.static_range(4):
        dx, dy = corner % 2, corner // 2
        share = (1 - tl.abs(px - column - dx)) * (1 - tl.abs(py - row - dy))
        sum += share * tl.load(image_gradient + (row + dy) * SIZE + column + dx, k < n)
    tl.store(gradient + k, sum, k < n)


class Splat(torch.autograd.Function):
    """The image of points with weights. Each pixel is a cell; each weight gathers the gradients of its four pixels."""

    @staticmethod
    def forward(context, x, y, weight, exact=True):
        context.save_for_backward(x, y)
        image, n = torch.zeros(SIZE, SIZE, device=x.device), len(x)
        cells = samesum.cells((SIZE, SIZE), "float32", like=x, grid=-30)
        splat[(triton.cdiv(n, BLOCK),)](x, y, weight, n, image, samesum.triton.cells(cells), SIZE, BLOCK, exact)
        return cells.finish() if exact else image

    @staticmethod
    def backward(context, image_gradient):
        x, y = context.saved_tensors
        gradient, n = torch.empty_like(x), len(x)
        gather[(triton.cdiv(n, BLOCK),)](x, y, image_gradient.contiguous(), n, gradient, SIZE, BLOCK)
        return None, None, gradient, None


def points(device, n=20_000):
    torch.manual_seed(1)
    x, y = (torch.rand(2, n) * (SIZE - 2)).to(device)
    return x, y, torch.rand(n).to(device).requires_grad_()


def main(runs=20, device="cuda" if torch.cuda.is_available() else "cpu", n=20_000):
    x, y, weight = points(device, n)
    images = [{Splat.apply(x, y, weight, exact).detach().cpu().numpy().tobytes() for _ in range(runs)}
              for exact in (True, False)]
    print(f"{runs} runs: float atomics gave {len(images[1])} images, cells {len(images[0])}")
    return len(images[0]), len(images[1])


if __name__ == "__main__":
    main()
