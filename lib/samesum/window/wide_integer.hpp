/// Integers of many words: the state behind a window, which holds whatever does not fit it.
#pragma once

#include "samesum/window/rounding.hpp"

namespace samesum {

/// An integer in two's complement, in words of 64 bits, the lowest first. Sums wrap.
template <int count> struct WideInteger {
  static constexpr int words = count;
  std::uint64_t word[count];

  SAMESUM_HD void clear() {
    for (std::uint64_t& w : word) w = 0;
  }
  SAMESUM_HD bool is_negative() const { return word[count - 1] >> 63; }

  SAMESUM_HD void add(const WideInteger& other) {
    Wide carry = 0;
    for (int i = 0; i < count; ++i) {
      carry += Wide{word[i]} + other.word[i];
      word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
  /// Adds (-1)^negative · magnitude · 2^shift, which the words must be able to hold.
  SAMESUM_HD void add(bool negative, std::uint64_t magnitude, int shift) {
    const Wide shifted = Wide{magnitude} << shift % 64, part = negative ? Wide{0} - shifted : shifted;
    const std::uint64_t above = negative && magnitude != 0 ? ~std::uint64_t{0} : 0;  // sign extension
    Wide carry = 0;
    for (int i = shift / 64, k = 0; i < count; ++i, ++k) {
      carry += Wide{word[i]} + (k == 0   ? static_cast<std::uint64_t>(part)
                                : k == 1 ? static_cast<std::uint64_t>(part >> 64)
                                         : above);
      word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
  SAMESUM_HD void negate() {
    bool carry = true;
    for (std::uint64_t& w : word) {
      w = ~w + carry;
      carry = carry && w == 0;
    }
  }

  /// Divides a number that is not negative, rounding down. Returns whether there is a remainder.
  SAMESUM_HD bool divide(std::uint64_t divisor) {
    std::uint64_t rest = 0;
    for (int i = count - 1; i >= 0; --i) {
      const Wide digit = Wide{rest} << 64 | word[i];
      word[i] = static_cast<std::uint64_t>(digit / divisor);
      rest = static_cast<std::uint64_t>(digit % divisor);
    }
    return rest != 0;
  }

  /// Bit pattern of (-1)^negative·(number + ε)·2^exponent, correctly rounded to F (to nearest, ties to even),
  /// where 0 < ε < 1 if `more` is true, else ε = 0. The number is not negative.
  template <class F> SAMESUM_HD BitsOf<F> rounded(bool negative, bool more, int exponent) const {
    int top = count - 1;
    while (top > 0 && word[top] == 0) --top;
    for (int i = 0; i < top - 1; ++i) more = more || word[i] != 0;
    const Wide leading = Wide{word[top]} << 64 | (top > 0 ? word[top - 1] : 0);
    return round_wide<F, true>(negative, leading, more, exponent + 64 * (top - 1));
  }
};

/// Bit pattern of number·2^exponent / (a·b), correctly rounded to F (to nearest, ties to even); a, b >= 1.
template <class F, int count>
SAMESUM_HD BitsOf<F> rounded_quotient(WideInteger<count> number, std::uint64_t a, std::uint64_t b,
                                      int exponent) {
  constexpr int shift = 3;  // so that the quotient of a number other than 0 has at least 64 bits
  const bool negative = number.is_negative();
  if (negative) number.negate();
  WideInteger<count + shift> quotient;
  for (int i = 0; i < count + shift; ++i) quotient.word[i] = i < shift ? 0 : number.word[i - shift];
  bool more = false;
  if (a != 1) more = quotient.divide(a);
  if (b != 1) more = quotient.divide(b) || more;
  return quotient.template rounded<F>(negative, more, exponent - 64 * shift);
}

/// Returns n·squares - sum², where neither n·squares nor sum² exceeds the words of the result.
template <int of_sum, int of_squares>
SAMESUM_HD WideInteger<2 * of_sum> scaled_variance(std::uint64_t n, WideInteger<of_sum> sum,
                                                   const WideInteger<of_squares>& squares) {
  static_assert(of_squares < 2 * of_sum);
  WideInteger<2 * of_sum> all, square;
  all.clear();
  square.clear();
  if (sum.is_negative()) sum.negate();
  for (int i = 0; i < of_sum; ++i) {
    std::uint64_t carry = 0;
    for (int k = 0; k < of_sum; ++k) {
      const Wide part = Wide{sum.word[i]} * sum.word[k] + square.word[i + k] + carry;
      square.word[i + k] = static_cast<std::uint64_t>(part);
      carry = static_cast<std::uint64_t>(part >> 64);
    }
    square.word[i + of_sum] = carry;
  }
  std::uint64_t carry = 0;
  for (int i = 0; i < of_squares; ++i) {
    const Wide part = Wide{squares.word[i]} * n + carry;
    all.word[i] = static_cast<std::uint64_t>(part);
    carry = static_cast<std::uint64_t>(part >> 64);
  }
  all.word[of_squares] = carry;
  square.negate();
  all.add(square);
  return all;
}

}  // namespace samesum
