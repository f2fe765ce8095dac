/// The names of the accumulators, for code that does not include them. accumulators.hpp checks the list.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace samesum {

/// Names in the order of `Accumulators`.
inline constexpr std::array<std::string_view, 4> accumulator_names{"plain", "kahan", "neumaier",
                                                                   "double_word"};

/// Names of the accumulators that take no order: they add integers, in any order.
inline constexpr std::array<std::string_view, 2> order_free_accumulators{"exact", "fixed_point"};

/// Whether a word names an accumulator that takes no order.
constexpr bool takes_no_order(std::string_view word) {
  return std::ranges::find(order_free_accumulators, word) != order_free_accumulators.end();
}

}  // namespace samesum
