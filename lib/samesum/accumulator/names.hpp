/// The names of the accumulators, for code that does not include them. accumulators.hpp checks the list.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace samesum {

/// Names in the order of `Accumulators`.
inline constexpr std::array<std::string_view, 4> accumulator_names{"plain", "kahan", "neumaier",
                                                                   "double_word"};

/// Names of the accumulators that take no order: two add integers, in any order; `hopper` has its own order.
inline constexpr std::array<std::string_view, 3> accumulators_without_order{"exact", "fixed_point", "hopper"};

/// Whether a word names an accumulator that takes no order.
constexpr bool takes_no_order(std::string_view word) {
  return std::ranges::find(accumulators_without_order, word) != accumulators_without_order.end();
}

}  // namespace samesum
