#pragma once

#include "samesum/accumulator/exact.hpp"

namespace samesum::gpu {

/// An exact state in a GPU's memory. All bytes zero is the empty state (cudaMemsetAsync).
struct ExactState {
  std::int64_t digits[Exact::digit_count];
  std::uint32_t flags;
};

}  // namespace samesum::gpu
