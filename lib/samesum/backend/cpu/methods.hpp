/// The parts of the CPU backend.
#pragma once

#include <vector>

#include "samesum/accumulator/exact.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::cpu {

// Methods in the format at place `index` of the list, a translation unit each:
template <std::size_t index> std::vector<Entry> sums();
template <std::size_t index> std::vector<Entry> reductions();
std::vector<Entry> softmaxes();

/// The exact state of all elements. `threads` as in Options. The state, and so its bytes, is the same as if
/// they had been added one by one.
Exact sum_exact(Values x, int threads);

/// An exact reduction of any layout.
void reduce_exactly(ExactKind kind, const FormatInfo& format, const Call& call);

}  // namespace samesum::cpu
