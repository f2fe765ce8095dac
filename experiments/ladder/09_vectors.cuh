/// Kernel 9, vector loads: each load reads 16 bytes, and each thread has eight loads in flight.
///
/// Lesson: fewer and wider loads keep more bytes in flight, which the memory needs to reach its bandwidth.
#pragma once

#include "ladder/08_shuffled.cuh"

namespace samesum::ladder {

/// x must be aligned to 16 bytes. Block 0 also adds the last n % 4 elements.
__global__ void __launch_bounds__(threads_of_block) vectors(const float* x, std::size_t n, float* out) {
  constexpr int count = 8;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  const std::size_t whole = n / 4, first = std::size_t{blockIdx.x} * count * threads_of_block + threadIdx.x;
  float4 v[count];
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const std::size_t i = first + static_cast<std::size_t>(k) * threads_of_block;
    v[k] = i < whole ? x4[i] : float4{-0.0f, -0.0f, -0.0f, -0.0f};
  }
  float sum = -0.0f;
#pragma unroll
  for (int k = 0; k < count; ++k) sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  if (blockIdx.x == 0) sum += element(x, n, 4 * whole + threadIdx.x);
  sum = sum_of_warps(sum);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace samesum::ladder
