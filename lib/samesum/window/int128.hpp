/// Integers of 128 bits, on host and device.
#pragma once

#include <cstdint>

#include "samesum/format/format.hpp"

namespace samesum {

__extension__ using Wide = unsigned __int128;  ///< a number modulo 2^128

/// Number of leading zeros of a number of 128 bits.
SAMESUM_HD constexpr int leading_zeros(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? leading_zeros(high) : 64 + leading_zeros(static_cast<std::uint64_t>(x));
}

/// An integer of 128 bits in two's complement, as two words. Sums wrap.
struct Int128 {
  std::uint64_t low = 0;
  std::int64_t high = 0;

  using Wide = samesum::Wide;

  SAMESUM_HD static constexpr Int128 of(Wide x) {
    return {static_cast<std::uint64_t>(x), static_cast<std::int64_t>(static_cast<std::uint64_t>(x >> 64))};
  }
  SAMESUM_HD static constexpr Int128 of(bool negative, Wide magnitude) {
    return of(negative ? Wide{0} - magnitude : magnitude);
  }
  SAMESUM_HD static constexpr Int128 of(std::int64_t x) { return {static_cast<std::uint64_t>(x), x >> 63}; }

  SAMESUM_HD constexpr Wide wide() const { return Wide{static_cast<std::uint64_t>(high)} << 64 | low; }
  SAMESUM_HD constexpr bool is_negative() const { return high < 0; }
  SAMESUM_HD constexpr bool is_zero() const { return (static_cast<std::uint64_t>(high) | low) == 0; }
  SAMESUM_HD constexpr Wide magnitude() const { return is_negative() ? Wide{0} - wide() : wide(); }
  /// The number times 2^shift, for 0 <= shift < 128.
  SAMESUM_HD constexpr Int128 shifted(int shift) const { return of(wide() << shift); }
  SAMESUM_HD constexpr void add(Int128 other) { *this = of(wide() + other.wide()); }
  SAMESUM_HD constexpr void merge(Int128 other) { add(other); }

  SAMESUM_HD friend constexpr bool operator==(Int128 a, Int128 b) {
    return a.low == b.low && a.high == b.high;
  }
};

}  // namespace samesum
