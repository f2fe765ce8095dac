/// Interleaved addressing: one block, two elements a thread; neighbours meet first.
///
/// The lesson: of the 32 threads of a warp ever fewer add, and the others wait for them. After five levels
/// one thread a warp is left, and no warp is done: all 32 warps still walk through every level.
#pragma once

namespace samesum::ladder {

/// A copy to work in, so that the input stays what it is.
__device__ inline void copy_by_block(const float* x, float* y, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) y[i] = x[i];
}

__global__ void interleaved(const float* x, float* y, int n, float* out) {
  const int t = static_cast<int>(threadIdx.x), i = 2 * t;
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // what other threads copied, or added one level below
    if (t % stride == 0 && i + stride < n) y[i] += y[i + stride];
  }
  if (t == 0) *out = y[0];
}

}  // namespace samesum::ladder
