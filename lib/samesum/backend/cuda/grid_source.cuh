/// The grids of the results of a call on a GPU.
#pragma once

#include "samesum/operation/grid_reduction.hpp"

namespace samesum::gpu {

/// What determines the grid of each result.
struct GridSource {
  int given;                      ///< if `exponents` is null
  const std::int32_t* exponents;  ///< the largest of each result
  int word_bits, quantum;         ///< as for found_grid

  __device__ int grid(std::size_t at, std::uint64_t n) const {
    return exponents == nullptr ? given : found_grid(exponents[at], n, word_bits, quantum);
  }
};

}  // namespace samesum::gpu
