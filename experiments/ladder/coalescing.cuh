/// Coalesced against strided reads: the same elements, each read once, by neighbouring threads from places
/// that lie `stride` elements apart. Memory is read in sectors of 32 bytes, so a warp that uses 4 of them
/// asks for 8 times as much. n is a multiple of the stride.
#pragma once

#include <cstddef>

namespace samesum::ladder {

/// A row of blocks for each of the `stride` places to begin at.
__global__ void strided_reads(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x, stride = gridDim.y,
                    rows = n / stride;
  if (i < rows) out[blockIdx.y * rows + i] = x[i * stride + blockIdx.y];
}

}  // namespace samesum::ladder
