"""A kernel of C++ that adds to cells, compiled by CuPy through NVRTC. Needs CuPy and a GPU.

Prints how many results 20 runs gave, with cells and with float atomics.
"""

import cupy
import numpy as np

import samesum

SOURCE = r"""
#include <samesum/states.cuh>

extern "C" __global__ void add(samesum::FixedPointState* cells, int grid, const long long* i, const float* x, int n) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) cells[i[k]].atomic_add(x[k], grid);
}

extern "C" __global__ void add_floats(float* sums, const long long* i, const float* x, int n) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) atomicAdd(sums + i[k], x[k]);
}
"""
OPTIONS = ("-std=c++20", "-default-device", "-device-int128", *(f"-I{d}" for d in samesum.include_dirs()))


def sums(i, x, count):
    cells = samesum.cells(count, "float32", like=x, grid=-40)
    add = cupy.RawKernel(SOURCE, "add", options=OPTIONS)
    add((-(-len(x) // 256),), (256,), (cells.words, np.int32(cells.grid), i, x, np.int32(len(x))))
    return cells.finish()


def float_sums(i, x, count):
    result = cupy.zeros(count, np.float32)
    add = cupy.RawKernel(SOURCE, "add_floats", options=OPTIONS)
    add((-(-len(x) // 256),), (256,), (result, i, x, np.int32(len(x))))
    return result


def main(runs=20, n=100_000):
    random = np.random.default_rng(1)
    i, x = cupy.asarray(random.integers(0, 50, n)), cupy.asarray(random.standard_normal(n).astype(np.float32))
    found, of_floats = ({f(i, x, 50).get().tobytes() for _ in range(runs)} for f in (sums, float_sums))
    print(f"{runs} runs: float atomics gave {len(of_floats)} results, cells {len(found)}")
    return len(found), len(of_floats), i, x


if __name__ == "__main__":
    main()
