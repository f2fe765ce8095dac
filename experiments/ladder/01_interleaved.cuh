/// Kernel 1, interleaved addressing: one block, two elements per thread. The tree adds neighbours first; the
/// stride between the two operands of an addition doubles in each step.
///
/// Lesson: divergence. Each step halves the number of active threads in a warp, and the idle threads wait for
/// the active ones. After five steps one thread per warp is active, but all 32 warps execute every step.
#pragma once

namespace samesum::ladder {

/// Copies x to y with all threads of the block. The kernels sum y in place and leave the input unchanged.
__device__ inline void copy_by_block(const float* x, float* y, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) y[i] = x[i];
}

__global__ void interleaved(const float* x, float* y, int n, float* out) {
  const int t = static_cast<int>(threadIdx.x), i = 2 * t;
  copy_by_block(x, y, n);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();  // makes the copy, or the sums of the previous step, visible to all threads
    if (t % stride == 0 && i + stride < n) y[i] += y[i + stride];
  }
  if (t == 0) *out = y[0];
}

}  // namespace samesum::ladder
