/// Kernel 4, sequential addressing: adds the upper half to the lower half until one element is left.
///
/// Lesson: a different tree avoids both divergence and scattered reads. The active threads are consecutive,
/// and so are the elements that they read. The sum has different bits because the tree is different.
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void sequential(const float* x, float* y, int n, float* out) {
  const int t = static_cast<int>(threadIdx.x);
  copy_by_block(x, y, n);
  for (int stride = static_cast<int>(blockDim.x); stride > 0; stride /= 2) {
    __syncthreads();  // makes the copy, or the sums of the previous step, visible to all threads
    if (t < stride && t + stride < n) y[t] += y[t + stride];
  }
  if (t == 0) *out = y[0];
}

}  // namespace samesum::ladder
