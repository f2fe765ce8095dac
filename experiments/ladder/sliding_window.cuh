/// Privatisation: out[i] is the sum of the elements at most `window_radius` places from i; windows at the
/// ends of the array are shorter.
///
/// All three kernels add in the same order, from left to right. Windows extend beyond the borders of a block.
#pragma once

#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// The window of i is the half-open range from window_begin(i) to window_end(i, n).
__device__ inline std::size_t window_begin(std::size_t i) {
  return i < window_radius ? 0 : i - window_radius;
}
__device__ inline std::size_t window_end(std::size_t i, std::size_t n) {
  return i + window_radius < n ? i + window_radius + 1 : n;
}

/// Accumulates in memory. out[i] is volatile, as if other threads could read it: each addition loads and
/// stores it.
__global__ void window_in_memory(const float* x, std::size_t n, volatile float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = -0.0f;
  for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) out[i] = out[i] + x[k];
}

/// Accumulates in a register, which is private to the thread.
__global__ void window_in_register(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = -0.0f;
  for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) sum += x[k];
  out[i] = sum;
}

/// Also keeps the elements in shared memory, which is private to the block: the elements of the block and
/// `window_radius` more on each side.
template <int threads> __global__ void window_in_tile(const float* x, std::size_t n, float* out) {
  __shared__ float tile[threads + 2 * window_radius];
  const int t = static_cast<int>(threadIdx.x);
  const std::size_t first = std::size_t{blockIdx.x} * threads, i = first + threadIdx.x;
  for (int k = t; k < threads + 2 * window_radius; k += threads) {
    const std::size_t from = first + static_cast<std::size_t>(k);  // index in x, plus window_radius
    tile[k] = from >= window_radius && from - window_radius < n ? x[from - window_radius] : -0.0f;
  }
  __syncthreads();  // makes the whole tile visible to all threads
  if (i >= n) return;
  float sum = -0.0f;
#pragma unroll
  for (int k = 0; k <= 2 * window_radius; ++k) sum += tile[t + k];
  out[i] = sum;
}

}  // namespace samesum::ladder
