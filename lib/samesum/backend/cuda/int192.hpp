/// An integer of 192 bits, for sums whose terms span more exponents than 128 bits hold.
#pragma once

#include <type_traits>

#include "samesum/accumulator/fixed_point.hpp"

namespace samesum {

/// An integer of 192 bits in two's complement, as three words, the lowest first. Sums wrap.
struct Int192 {
  std::uint64_t word[3] = {};

  SAMESUM_HD static constexpr Int192 of(Int128 x) {
    return {{x.low, static_cast<std::uint64_t>(x.high), static_cast<std::uint64_t>(x.high >> 63)}};
  }
  /// ±magnitude·2^shift, for 0 <= shift < 192.
  SAMESUM_HD static constexpr Int192 of(bool negative, std::uint64_t magnitude, int shift) {
    const int bit = shift & 63, first = shift >> 6;
    const std::uint64_t low = magnitude << bit, high = bit == 0 ? 0 : magnitude >> (64 - bit);
    const Int192 x{{first == 0 ? low : 0,
                    first == 1   ? low
                    : first == 0 ? high
                                 : 0,
                    first == 2   ? low
                    : first == 1 ? high
                                 : 0}};
    return negative ? x.negated() : x;
  }

  SAMESUM_HD constexpr bool is_negative() const { return word[2] >> 63 != 0; }
  SAMESUM_HD constexpr bool is_zero() const { return (word[0] | word[1] | word[2]) == 0; }
  /// Whether 128 bits hold the number.
  SAMESUM_HD constexpr bool fits_128() const {
    return word[2] == (word[1] >> 63 != 0 ? ~std::uint64_t{0} : 0);
  }
  SAMESUM_HD constexpr Int128 low_128() const { return {word[0], static_cast<std::int64_t>(word[1])}; }

  SAMESUM_HD constexpr Int192 operator+(const Int192& other) const {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      Int192 sum;
      // "&": no output shares a register with a word that a later instruction reads.
      asm("add.cc.u64 %0, %3, %6;\n\taddc.cc.u64 %1, %4, %7;\n\taddc.u64 %2, %5, %8;"
          : "=&l"(sum.word[0]), "=&l"(sum.word[1]), "=&l"(sum.word[2])
          : "l"(word[0]), "l"(word[1]), "l"(word[2]), "l"(other.word[0]), "l"(other.word[1]),
            "l"(other.word[2]));
      return sum;
    }
#endif
    const Wide low = Wide{word[0]} + other.word[0],
               middle = Wide{word[1]} + other.word[1] + static_cast<std::uint64_t>(low >> 64);
    return {{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(middle),
             word[2] + other.word[2] + static_cast<std::uint64_t>(middle >> 64)}};
  }
  SAMESUM_HD constexpr Int192 negated() const {
    const std::uint64_t low = ~word[0] + 1, middle = ~word[1] + (low == 0);
    return {{low, middle, ~word[2] + (low == 0 && middle == 0)}};
  }
  SAMESUM_HD constexpr Int192 operator-(const Int192& other) const { return *this + other.negated(); }
  SAMESUM_HD constexpr Int192 magnitude() const { return is_negative() ? negated() : *this; }

  /// The leading 128 bits of a magnitude that is not 0: it is (bits + ε)·2^shift with 0 <= ε < 1, and `more`
  /// tells whether ε > 0. The first bit is 1.
  struct Leading {
    Wide bits;
    int shift;
    bool more;
  };
  SAMESUM_HD constexpr Leading leading() const {
    const Wide upper = Wide{word[2]} << 64 | word[1];
    if (word[2] == 0) {
      const Wide lower = Wide{word[1]} << 64 | word[0];
      const int zeros = leading_zeros(lower);
      return {lower << zeros, -zeros, false};
    }
    const int zeros = leading_zeros(word[2]);
    if (zeros == 0) return {upper, 64, word[0] != 0};
    return {upper << zeros | word[0] >> (64 - zeros), 64 - zeros, word[0] << zeros != 0};
  }
};

/// Bit pattern of (units·2^grid + held) / divisor, correctly rounded to F (to nearest, ties to even); +0 for
/// zero. A negative number that rounds to zero gives -0. 1 <= divisor < 2^39; if `held` is not zero, it is
/// finite, the divisor is 1, and 128 bits do not hold the units.
template <class F>
SAMESUM_HD constexpr BitsOf<F> round_units(Int192 units, int grid, F held, std::uint64_t divisor) {
  const Decomposed d = decompose<F>(to_bits(held));
  bool more = false;  // the sum is units + ε, 0 < ε < 1
  if (d.significand != 0) {
    std::uint64_t low = 0;  // the word below, if the number that is held needs words above
    bool has_low = false;
    for (; d.exponent - grid > 190 - Format<F>::precision; grid += 64) {
      more = more || low != 0;
      low = units.word[0];
      units = {{units.word[1], units.word[2], units.is_negative() ? ~std::uint64_t{0} : 0}};
      has_low = true;
    }
    const int below = grid - d.exponent;
    if (below <= 0) {
      units = units + Int192::of(d.negative, d.significand, -below);
    } else {
      const std::uint64_t kept = below < 64 ? d.significand >> below : 0;
      const bool lost = below >= 64 || kept << below != d.significand;
      units = units + Int192::of(d.negative, kept + (d.negative && lost), 0);
      more = more || lost;
    }
    if (has_low && units.fits_128()) {  // the leading bits may have cancelled
      units = {{low, units.word[0], units.word[1]}};
      grid -= 64;
    } else {
      more = more || low != 0;
    }
  }
  if (units.is_zero()) return 0;
  const bool negative = units.is_negative();
  if (negative && more) units = units + Int192{{1, 0, 0}};  // the magnitude is that of units + 1, plus 1 - ε
  const Int192::Leading leading = units.magnitude().leading();
  const Wide quotient = divisor == 1 ? leading.bits : leading.bits / divisor;
  return round_wide<F, true>(negative, quotient, more || leading.more || quotient * divisor != leading.bits,
                             grid + leading.shift);
}

}  // namespace samesum
