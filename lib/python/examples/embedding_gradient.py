"""The gradient of an embedding, in Triton: rows that share a token are added to one row of cells.

Prints how many gradients 20 runs gave, with cells and with PyTorch's index_add. Needs Triton, PyTorch and a GPU, or
TRITON_INTERPRET=1.
"""

import torch
import triton
import triton.language as tl

import samesum
import samesum.triton


@triton.jit
def add_rows(token, gradient, cells, n, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column, mask = tl.arange(0, COLUMNS)[None, :], (row < n)[:, None]
    i = tl.load(token + row, row < n)[:, None] * COLUMNS + column
    samesum.triton.atomic_add(cells, i, tl.load(gradient + row[:, None] * COLUMNS + column, mask), mask)


def embedding_gradient(token, gradient, tokens):
    """Returns the gradient of the table. The number of columns is a power of 2."""
    n, columns = gradient.shape
    cells = samesum.cells((tokens, columns), "float32", like=gradient)
    add_rows[(triton.cdiv(n, 16),)](token, gradient, samesum.triton.cells(cells), n, columns, 16)
    return cells.finish()


def main(runs=20, device="cuda" if torch.cuda.is_available() else "cpu", n=4096):
    torch.manual_seed(1)
    token = (torch.rand(n) ** 3 * 50).to(torch.int64).to(device)
    gradient = torch.randn(n, 64).to(device)
    found = {embedding_gradient(token, gradient, 50).cpu().numpy().tobytes() for _ in range(runs)}
    of_floats = {torch.zeros(50, 64, device=device).index_add_(0, token, gradient).cpu().numpy().tobytes()
                 for _ in range(runs)}
    print(f"{runs} runs: index_add gave {len(of_floats)} gradients, cells {len(found)}")
    return len(found), len(of_floats), token, gradient


if __name__ == "__main__":
    main()
