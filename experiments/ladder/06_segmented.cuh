/// Kernel 6, many blocks: each block sums a segment as in kernel 5 and adds its sum to *out atomically.
///
/// Lesson: a sum of any length then keeps all multiprocessors busy. But the blocks finish in no fixed order,
/// so the bits may differ from run to run.
#pragma once

#include "ladder/05_shared.cuh"

namespace samesum::ladder {

/// Launch blocks of 1024 threads. *out must be 0 before the launch.
__global__ void segmented(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * 2048 + threadIdx.x;
  const float sum = sum_of_block<1024>(element(x, n, i) + element(x, n, i + 1024));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
