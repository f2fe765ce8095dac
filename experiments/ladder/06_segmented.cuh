/// Many blocks: each sums a segment like the one block before, and adds its sum to one number in memory.
///
/// The lesson: this is how a sum of any length keeps all multiprocessors busy. But the blocks come in no
/// particular order, so the bits are no longer the same in every run.
#pragma once

#include "ladder/05_shared.cuh"

namespace samesum::ladder {

/// Blocks of 1024 threads; *out is 0 before.
__global__ void segmented(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * 2048 + threadIdx.x;
  const float sum = sum_of_block<1024>(element(x, n, i) + element(x, n, i + 1024));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
