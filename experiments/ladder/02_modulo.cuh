/// Kernel 2, one thread per element: the tree of kernel 1, but a thread adds only if its element's index is a
/// multiple of 2 * stride.
///
/// Lesson: half of the threads never add, and an integer remainder costs more than a floating-point addition.
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void modulo(const float* x, float* y, int n, float* out) {
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // makes the copy, or the sums of the previous step, visible to all threads
    for (int i = static_cast<int>(threadIdx.x); i + stride < n; i += static_cast<int>(blockDim.x))
      if (i % (2 * stride) == 0) y[i] += y[i + stride];
  }
  if (threadIdx.x == 0) *out = y[0];
}

}  // namespace samesum::ladder
