/// The names of the accumulators, for code that needs no accumulator itself. accumulators.hpp checks them.
#pragma once

#include <array>
#include <string_view>

namespace samesum {

inline constexpr std::array<std::string_view, 4> accumulator_names{"plain", "kahan", "neumaier",
                                                                   "double_word"};

}  // namespace samesum
