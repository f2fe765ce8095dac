/// The same tree in shared memory: each element is read once, and the first addition is made on the way.
///
/// The lesson: what a block reads again belongs into memory of its own.
#pragma once

#include <cstddef>

namespace samesum::ladder {

/// -0 changes nothing that it is added to, unlike +0, which changes -0.
__device__ inline float element(const float* x, std::size_t n, std::size_t i) { return i < n ? x[i] : -0.0f; }

/// Thread 0 of the block gets the sum of what all its threads have.
template <int threads> __device__ float sum_of_block(float mine) {
  __shared__ float sum[threads];
  const int t = static_cast<int>(threadIdx.x);
  sum[t] = mine;
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();  // the sums of the level above
    if (t < stride) sum[t] += sum[t + stride];
  }
  return sum[t];
}

/// One block of 1024 threads.
__global__ void shared(const float* x, std::size_t n, float* out) {
  const std::size_t t = threadIdx.x;
  const float sum = sum_of_block<1024>(element(x, n, t) + element(x, n, t + 1024));
  if (t == 0) *out = sum;
}

}  // namespace samesum::ladder
