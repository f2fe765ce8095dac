/// What an order-free sum remembers of its elements beside their sum.
#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

/// The kinds of elements that have been added. Flags are combined by bitwise or.
struct SumFlags {
  enum Flag : std::uint8_t {
    seen_any = 1,                    ///< any element
    seen_other_than_minus_zero = 2,  ///< an element other than -0
    seen_nan = 4,                    ///< a NaN
    seen_plus_infinity = 8,          ///< +infinity
    seen_minus_infinity = 16         ///< -infinity
  };
  /// The flags of elements that are not finite.
  static constexpr std::uint32_t special_flags = seen_nan | seen_plus_infinity | seen_minus_infinity;
};

/// Bit pattern of a sum whose flags, a combination of SumFlags::Flag, contain one of SumFlags::special_flags:
/// an infinity, or NaN.
template <class F> SAMESUM_HD constexpr BitsOf<F> special_bits(std::uint32_t flags) {
  constexpr std::uint32_t both = SumFlags::seen_plus_infinity | SumFlags::seen_minus_infinity;
  if ((flags & SumFlags::seen_nan) || (flags & both) == both) return Format<F>::canonical_nan;
  return BitsOf<F>(Format<F>::infinity | (flags & SumFlags::seen_minus_infinity ? Format<F>::sign_bit : 0));
}

/// The flags of an element that is not finite; 0 if it is.
template <class F> SAMESUM_HD constexpr std::uint32_t special_flags_of(F x) {
  const BitsOf<F> bits = to_bits(x), magnitude = BitsOf<F>(bits & ~Format<F>::sign_bit);
  if (magnitude < Format<F>::infinity) return 0;
  return magnitude > Format<F>::infinity ? SumFlags::seen_nan
         : bits == magnitude             ? SumFlags::seen_plus_infinity
                                         : SumFlags::seen_minus_infinity;
}
/// All flags of an element.
template <class F> SAMESUM_HD constexpr std::uint32_t seen_flags(F x) {
  const std::uint32_t flags = SumFlags::seen_any | special_flags_of(x);
  return to_bits(x) == Format<F>::sign_bit ? flags : flags | SumFlags::seen_other_than_minus_zero;
}

}  // namespace samesum
