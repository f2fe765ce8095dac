/// The state of an exact sum in device memory.
#pragma once

#include "samesum/accumulator/exact_state.hpp"

namespace samesum::gpu {

/// An exact state in device memory, for elements of any format. All bytes zero (cudaMemsetAsync) is the empty
/// state.
using ExactState = samesum::ExactState<fp64>;
static_assert(ExactState::digit_count == Exact::digit_count && ExactState::first_digit == 0);

}  // namespace samesum::gpu
