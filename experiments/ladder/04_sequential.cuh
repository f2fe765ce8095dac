/// Sequential addressing: the upper half is added to the lower half, until one element is left.
///
/// The lesson: another tree cures both: threads that add are neighbours, and so is what they read. The sum
/// has other bits, since it is another tree.
#pragma once

#include "ladder/01_interleaved.cuh"

namespace samesum::ladder {

__global__ void sequential(const float* x, float* y, int n, float* out) {
  const int t = static_cast<int>(threadIdx.x);
  copy_by_block(x, y, n);
  for (int stride = static_cast<int>(blockDim.x); stride > 0; stride /= 2) {
    __syncthreads();  // what other threads copied, or added one level above
    if (t < stride && t + stride < n) y[t] += y[t + stride];
  }
  if (t == 0) *out = y[0];
}

}  // namespace samesum::ladder
