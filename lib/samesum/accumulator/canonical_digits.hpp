/// The digits of exact sums after all carries, and the words that they make.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "samesum/accumulator/digits.hpp"
#include "samesum/accumulator/exact.hpp"

namespace samesum {

/// The digits of a sum after all carries: those of equal sums are equal.
inline std::array<std::int64_t, Exact::digit_count> canonical_digits(const Exact& sum) {
  std::array<std::int64_t, Exact::digit_count> digits;
  std::ranges::copy(sum.digits(), digits.begin());
  propagate_carries(digits.data(), Exact::digit_count);
  return digits;
}

/// Word i, of 64 bits, of the integer whose digits after all carries are given.
inline std::uint64_t word_of_digits(std::span<const std::int64_t> digits, std::size_t i) {
  return static_cast<std::uint64_t>(digits[2 * i]) | static_cast<std::uint64_t>(digits[2 * i + 1]) << 32;
}

}  // namespace samesum
