/// Privatisation: out[i] is the sum of the elements at most `window_radius` places from i, as many as there
/// are.
///
/// All three add in the same order, from left to right, and windows reach across the borders of blocks.
#pragma once

#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// The first and the last place of a window.
__device__ inline std::size_t window_begin(std::size_t i) {
  return i < window_radius ? 0 : i - window_radius;
}
__device__ inline std::size_t window_end(std::size_t i, std::size_t n) {
  return i + window_radius < n ? i + window_radius + 1 : n;
}

/// The sum lies in memory, where others might look at it: each addition is a load and a store.
__global__ void window_in_memory(const float* x, std::size_t n, volatile float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = -0.0f;
  for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) out[i] = out[i] + x[k];
}

/// The sum is the thread's own, in a register.
__global__ void window_in_register(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = -0.0f;
  for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) sum += x[k];
  out[i] = sum;
}

/// The elements too are the block's own, in shared memory: its own and `window_radius` more on both sides.
template <int threads> __global__ void window_in_tile(const float* x, std::size_t n, float* out) {
  __shared__ float tile[threads + 2 * window_radius];
  const int t = static_cast<int>(threadIdx.x);
  const std::size_t first = std::size_t{blockIdx.x} * threads, i = first + threadIdx.x;
  for (int k = t; k < threads + 2 * window_radius; k += threads) {
    const std::size_t from = first + static_cast<std::size_t>(k);  // window_radius too far to the right
    tile[k] = from >= window_radius && from - window_radius < n ? x[from - window_radius] : -0.0f;
  }
  __syncthreads();  // the tile is whole
  if (i >= n) return;
  float sum = -0.0f;
#pragma unroll
  for (int k = 0; k <= 2 * window_radius; ++k) sum += tile[t + k];
  out[i] = sum;
}

}  // namespace samesum::ladder
