/// Ceilings of arithmetic, which no kernel can exceed: additions, or fused multiply-adds, on registers alone.
/// The ceiling of reading is in harness/gpu_place.cu.
#pragma once

#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// Each thread advances independent chains: chain c starts at c and adds `one` in each step. The result is
/// the sum of the chains. `one` is 1; as an argument it prevents the compiler from folding the loop.
template <bool fused>
__global__ void __launch_bounds__(256) count_up(std::size_t n, int steps, float one, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
  float v[chains];
#pragma unroll
  for (int c = 0; c < chains; ++c) v[c] = static_cast<float>(c) * one;
  for (int k = 0; k < steps; k += 16)
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (float& chain : v) chain = fused ? __fmaf_rn(chain, one, one) : __fadd_rn(chain, one);
  float sum = 0;
  for (const float chain : v) sum += chain;
  if (i < n) out[i] = sum;
}

}  // namespace samesum::ladder
