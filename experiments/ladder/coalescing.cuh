/// Coalesced and strided reads: every element is read once, but consecutive threads read elements that lie
/// `stride` apart. Memory is read in sectors of 32 bytes, so a warp that uses 4 bytes of each sector moves 8
/// times as much data. n must be a multiple of the stride.
#pragma once

#include <cstddef>

namespace samesum::ladder {

/// The grid has `stride` rows of blocks. Row r reads the elements r, r + stride, r + 2 * stride, …
__global__ void strided_reads(const float* x, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x, stride = gridDim.y,
                    rows = n / stride;
  if (i < rows) out[blockIdx.y * rows + i] = x[i * stride + blockIdx.y];
}

}  // namespace samesum::ladder
