/// Vector addition, out = x + y: with blocks of any size, and with 1 to 8 elements per thread (coarsening).
#pragma once

#include <cstddef>

namespace samesum::ladder {

/// One element per thread.
__global__ void add_vectors(const float* x, const float* y, std::size_t n, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

/// `factor` elements per thread, blockDim.x apart.
template <int factor> __global__ void add_several(const float* x, const float* y, std::size_t n, float* out) {
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x * factor + threadIdx.x;
#pragma unroll
  for (int k = 0; k < factor; ++k)
    if (const std::size_t i = first + static_cast<std::size_t>(k) * blockDim.x; i < n) out[i] = x[i] + y[i];
}

}  // namespace samesum::ladder
