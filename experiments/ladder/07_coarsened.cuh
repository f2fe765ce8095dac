/// Kernel 7, thread coarsening: each thread first adds 2 * factor elements in a register, then the block sums
/// the values of its threads.
///
/// Lesson: the tree over threads costs barriers and leaves most threads idle, so each thread should add as
/// much as possible on its own, as long as enough blocks remain to occupy all multiprocessors.
#pragma once

#include "ladder/05_shared.cuh"

namespace samesum::ladder {

inline constexpr int threads_of_block = 256;

/// Partial sum of this thread. Its elements are threads_of_block apart: a warp reads consecutive elements.
template <int factor> __device__ float sum_of_thread(const float* x, std::size_t n) {
  constexpr int count = 2 * factor;
  const std::size_t first = std::size_t{blockIdx.x} * count * threads_of_block + threadIdx.x;
  float sum = element(x, n, first);
#pragma unroll
  for (int k = 1; k < count; ++k)
    sum += element(x, n, first + static_cast<std::size_t>(k) * threads_of_block);
  return sum;
}

/// *out must be 0 before the launch, as for kernels 8 and 9.
template <int factor> __global__ void coarsened(const float* x, std::size_t n, float* out) {
  const float sum = sum_of_block<threads_of_block>(sum_of_thread<factor>(x, n));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
