/// The names of the accumulators, for code that does not include them. accumulators.hpp checks the list.
#pragma once

#include <array>
#include <string_view>

namespace samesum {

/// Names in the order of `Accumulators`.
inline constexpr std::array<std::string_view, 4> accumulator_names{"plain", "kahan", "neumaier",
                                                                   "double_word"};

}  // namespace samesum
