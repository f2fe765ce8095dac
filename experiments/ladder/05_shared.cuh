/// Kernel 5, shared memory: the tree of kernel 4. Each element is read from global memory once, and each
/// thread performs the first addition while it loads its two elements.
///
/// Lesson: data that a block reads more than once belong in shared memory.
#pragma once

#include <cstddef>

namespace samesum::ladder {

/// Element i, or -0 if i is out of range. Adding -0 changes no number; adding +0 would change -0 to +0.
__device__ inline float element(const float* x, std::size_t n, std::size_t i) { return i < n ? x[i] : -0.0f; }

/// Sums one value per thread of the block. Only the result in thread 0 is the whole sum.
template <int threads> __device__ float sum_of_block(float mine) {
  __shared__ float sum[threads];
  const int t = static_cast<int>(threadIdx.x);
  sum[t] = mine;
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();  // makes the sums of the previous step visible to all threads
    if (t < stride) sum[t] += sum[t + stride];
  }
  return sum[t];
}

/// Launch one block of 1024 threads; n <= 2048.
__global__ void shared(const float* x, std::size_t n, float* out) {
  const std::size_t t = threadIdx.x;
  const float sum = sum_of_block<1024>(element(x, n, t) + element(x, n, t + 1024));
  if (t == 0) *out = sum;
}

}  // namespace samesum::ladder
