/// Kernel 3, strided index: the tree of kernel 1, but consecutive threads are active. Thread t adds at index
/// 2 * stride * t.
///
/// Lesson: whole warps are active or idle, so no thread waits for its neighbours. But the elements that a
/// warp reads lie farther apart in each step (Harris 2007, Optimizing Parallel Reduction in CUDA, kernel 2).
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void strided_index(const float* x, float* y, int n, float* out) {
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // makes the copy, or the sums of the previous step, visible to all threads
    const int i = 2 * stride * static_cast<int>(threadIdx.x);
    if (i + stride < n) y[i] += y[i + stride];
  }
  if (threadIdx.x == 0) *out = y[0];
}

}  // namespace samesum::ladder
