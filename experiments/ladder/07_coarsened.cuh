/// Thread coarsening: each thread first adds 2·factor elements by itself, then the block meets.
///
/// The lesson: a tree of threads costs barriers and leaves most of them idle, so threads should do as much as
/// they can alone; but only as long as there are blocks enough for all multiprocessors.
#pragma once

#include "ladder/05_shared.cuh"

namespace samesum::ladder {

inline constexpr int threads_of_block = 256;

/// What this thread adds by itself: elements that are a block apart, so that a warp reads neighbours.
template <int factor> __device__ float sum_of_thread(const float* x, std::size_t n) {
  constexpr int count = 2 * factor;
  const std::size_t first = std::size_t{blockIdx.x} * count * threads_of_block + threadIdx.x;
  float sum = element(x, n, first);
#pragma unroll
  for (int k = 1; k < count; ++k)
    sum += element(x, n, first + static_cast<std::size_t>(k) * threads_of_block);
  return sum;
}

/// *out is 0 before, as from here on.
template <int factor> __global__ void coarsened(const float* x, std::size_t n, float* out) {
  const float sum = sum_of_block<threads_of_block>(sum_of_thread<factor>(x, n));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
