/// The same tree; now neighbouring threads add, each at a place that grows with the stride.
///
/// The lesson: whole warps are done or busy, so no thread waits for its neighbours; but what a warp reads
/// lies ever farther apart (Harris 2007, Optimizing Parallel Reduction in CUDA, kernel 2).
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void strided_index(const float* x, float* y, int n, float* out) {
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // what other threads copied, or added one level below
    const int i = 2 * stride * static_cast<int>(threadIdx.x);
    if (i + stride < n) y[i] += y[i + stride];
  }
  if (threadIdx.x == 0) *out = y[0];
}

}  // namespace samesum::ladder
