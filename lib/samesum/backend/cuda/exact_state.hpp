/// The state of an exact sum in device memory.
#pragma once

#include "samesum/accumulator/exact.hpp"

namespace samesum::gpu {

/// An exact state in device memory. All bytes zero (cudaMemsetAsync) is the empty state.
struct ExactState {
  std::int64_t digits[Exact::digit_count];
  std::uint32_t flags;
};

}  // namespace samesum::gpu
