#pragma once

#include <cstdint>

#include "samesum/format/value.hpp"

namespace samesum {

/// How many different numbers x has: +0 and -0 are one, and so are all NaNs. Sorted by the standard library;
/// on a GPU (gpu::count_distinct of gpu_reduction.hpp) by CUB.
std::uint64_t count_distinct(Values x);

}  // namespace samesum
