/// The range of exponents that some numbers need: which integers hold their sums, and where a window lies.
#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

/// All numbers are below 2^top(), and multiples of 2^lowest(). The range of each number is merged into that
/// of all, in any order, by the larger of both members; memory whose bytes are 0 is the range of no number.
struct ExponentRange {
  static constexpr int bias = 4096;
  std::uint32_t above = 0;  ///< bias + top(); 0 for zeros
  std::uint32_t below = 0;  ///< bias - lowest(); 0 for zeros

  /// The range of |x| < 2^top that is a multiple of 2^lowest.
  SAMESUM_HD static constexpr ExponentRange between(int lowest, int top) {
    return {static_cast<std::uint32_t>(bias + top), static_cast<std::uint32_t>(bias - lowest)};
  }
  /// The range of infinities and NaN where they count: no window holds it.
  SAMESUM_HD static constexpr ExponentRange unbounded() { return between(1 - bias, bias - 1); }
  /// The range of the bits of a number; empty if it is 0, infinite or NaN.
  template <class T> SAMESUM_HD static constexpr ExponentRange of(BitsOf<T> x) {
    const auto magnitude = static_cast<BitsOf<T>>(x & ~Format<T>::sign_bit);
    if (magnitude == 0 || magnitude >= Format<T>::infinity) return {};
    const Decomposed d = decompose<T>(magnitude);
    return between(d.exponent + 63 - leading_zeros(d.significand & (0 - d.significand)),
                   d.exponent + 64 - leading_zeros(d.significand));
  }

  SAMESUM_HD constexpr void merge(const ExponentRange& other) {
    above = above > other.above ? above : other.above;
    below = below > other.below ? below : other.below;
  }

  /// The range of the products of numbers of this range and numbers of another one.
  SAMESUM_HD constexpr ExponentRange times(const ExponentRange& other) const {
    if (!is_bounded() || !other.is_bounded()) return unbounded();
    if (is_empty() || other.is_empty()) return {};
    return between(lowest() + other.lowest(), top() + other.top());
  }

  /// Whether no number but zeros was merged. Then top() is below all exponents, and lowest() above them.
  SAMESUM_HD constexpr bool is_empty() const { return below == 0; }
  SAMESUM_HD constexpr bool is_bounded() const { return top() < bias - 1; }
  SAMESUM_HD constexpr int top() const { return static_cast<int>(above) - bias; }
  SAMESUM_HD constexpr int lowest() const { return bias - static_cast<int>(below); }
  /// The number of bits from 2^lowest() to 2^top().
  SAMESUM_HD constexpr int bits() const { return top() - lowest(); }
};

}  // namespace samesum
