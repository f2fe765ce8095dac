/// Grids of the results of a call on a GPU.
#pragma once

#include "samesum/operation/grid_reduction.hpp"

namespace samesum::gpu {

/// What determines the grid of each result.
struct GridSource {
  int given;                      ///< the grid of all results if `exponents` is null
  const std::int32_t* exponents;  ///< largest exponent of each result
  int word_bits, quantum;         ///< arguments of found_grid

  __device__ int grid(std::size_t at, std::uint64_t n) const {
    return exponents == nullptr ? given : found(exponents[at], n);
  }
  /// The grid of n terms with that largest exponent.
  __device__ int found(int exponent, std::uint64_t n) const {
    return found_grid(exponent, n, word_bits, quantum);
  }
};

}  // namespace samesum::gpu
