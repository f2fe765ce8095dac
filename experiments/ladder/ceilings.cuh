/// What no kernel can beat: reading alone, and additions (or multiplications and additions, fused) of
/// registers alone.
#pragma once

#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// 16 bytes a load, eight under way, nothing kept: what is looked for is in no element between 0 and 1.
__global__ void __launch_bounds__(256) read_alone(const uint4* x, std::size_t n, unsigned* never) {
  unsigned any = 0;
  const std::size_t stride = std::size_t{gridDim.x} * 8 * 256;
  for (std::size_t i = std::size_t{blockIdx.x} * 8 * 256 + threadIdx.x; i < n; i += stride) {
    uint4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = i + k * 256 < n ? x[i + k * 256] : uint4{};
#pragma unroll
    for (int k = 0; k < 8; ++k) any |= v[k].x & v[k].y & v[k].z & v[k].w & 0x80000001u;
  }
  if (any == 0x12345678u) *never = any;
}

/// Chain c counts from c by `one` (1, which the compiler does not know); what it gives is the sum of the
/// chains.
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
