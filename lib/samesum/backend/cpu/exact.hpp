#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/value.hpp"

namespace samesum::cpu {

/// The exact state of all elements. `threads` as in Options. The state, and so its bytes, is the same as if
/// they had been added one by one.
Exact sum_exact(Values x, int threads);

}  // namespace samesum::cpu
