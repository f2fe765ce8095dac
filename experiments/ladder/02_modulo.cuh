/// The same, but each element has a thread of its own, and the remainder of its place says whether it is its
/// turn.
///
/// The lesson: half of the threads never add, and a remainder of integers costs more than the addition of
/// floats.
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void modulo(const float* x, float* y, int n, float* out) {
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // what other threads copied, or added one level below
    for (int i = static_cast<int>(threadIdx.x); i + stride < n; i += static_cast<int>(blockDim.x))
      if (i % (2 * stride) == 0) y[i] += y[i + stride];
  }
  if (threadIdx.x == 0) *out = y[0];
}

}  // namespace samesum::ladder
