/// The number of different values in an array.
#pragma once

#include <cstdint>

#include "samesum/call/values.hpp"

namespace samesum {

/// Returns the number of different values in x, an array in host memory. +0 and -0 count as one value, and so
/// do all NaNs.
///
/// Sorts a copy of the values: O(n log n) time, O(n) memory. gpu::count_distinct (gpu.hpp) counts on a GPU.
/// @throws std::invalid_argument if x is null but not empty, is misaligned, or has an unknown format.
std::uint64_t count_distinct(Values x);

}  // namespace samesum
