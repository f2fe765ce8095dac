/// Divergence: the operations on an element depend on its value. If the threads of a warp take different
/// branches, the warp executes both, one after the other.
#pragma once

#include "ladder/kernel.hpp"

namespace samesum::ladder {

/// `steps` is a run-time argument, so that the compiler cannot turn the branch into a selection.
__global__ void branching(const float* x, std::size_t n, int steps, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v < 0.5f)
    for (int k = 0; k < steps; ++k) v = v * step_below.a + step_below.b;
  else
    for (int k = 0; k < steps; ++k) v = v * step_above.a + step_above.b;
  out[i] = v;
}

/// Selects the coefficients once; after that all threads execute the same instructions.
__global__ void branch_free(const float* x, std::size_t n, int steps, float* out) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  const bool below = v < 0.5f;
  const float a = below ? step_below.a : step_above.a, b = below ? step_below.b : step_above.b;
  for (int k = 0; k < steps; ++k) v = v * a + b;
  out[i] = v;
}

}  // namespace samesum::ladder
