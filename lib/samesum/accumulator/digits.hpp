/// Wide integers as 32-bit digits in 64-bit words, so that carries can be propagated late (Neal 2015). Digit
/// i has 2^(32 i) times the weight of digit 0, and the value is the weighted sum of the digits.
#pragma once

#include "samesum/window/rounding.hpp"

namespace samesum {

/// The three digits of an integer of up to 64 bits that is shifted left by up to 31 bits.
struct ThreeDigits {
  std::int64_t digit[3];
  SAMESUM_HD ThreeDigits(bool negative, std::uint64_t magnitude, int shift) {
    const std::uint64_t low = magnitude << shift, high = shift == 0 ? 0 : magnitude >> (64 - shift);
    const std::int64_t sign = negative ? -1 : 1;
    digit[0] = sign * std::int64_t(low & 0xffffffffu);
    digit[1] = sign * std::int64_t(low >> 32);
    digit[2] = sign * std::int64_t(high);
  }
};

/// Adds (-1)^negative · magnitude · 2^exponent to digits, of which digit 0 counts units of 2^lowest_exponent:
/// add(i, part) adds to digit i.
template <class Add>
SAMESUM_HD void add_to_digits(bool negative, std::uint64_t magnitude, int exponent, int lowest_exponent,
                              Add add) {
  const int offset = exponent - lowest_exponent;
  const ThreeDigits three{negative, magnitude, offset % 32};
  for (int i = 0; i < 3; ++i)
    if (three.digit[i] != 0) add(offset / 32 + i, three.digit[i]);
}

/// Propagates carries until all digits but the last are in [0, 2^32). The last digit keeps the sign.
SAMESUM_HD inline void propagate_carries(std::int64_t* digit, int count) {
  std::int64_t carry = 0;
  for (int i = 0; i + 1 < count; ++i) {
    const std::int64_t sum = digit[i] + carry;
    carry = sum >> 32;  // rounds down, so the digit that remains is not negative
    digit[i] = sum & 0xffffffff;
  }
  digit[count - 1] += carry;
}

/// Returns the leading bits of the digits times 2^exponent: more than 96, so that their quotient by a divisor
/// below 2^39 has more than 57. Overwrites the digits. The last digit must leave room for the sign: |last| <
/// 2^32 after carries are propagated.
SAMESUM_HD inline LeadingBits leading_of_digits(std::int64_t* digit, int count, int exponent) {
  propagate_carries(digit, count);
  const bool negative = digit[count - 1] < 0;
  if (negative) {
    for (int i = 0; i < count; ++i) digit[i] = -digit[i];
    propagate_carries(digit, count);
  }
  int top = count - 1;
  while (top >= 0 && digit[top] == 0) --top;
  if (top < 0) return {};
  Wide leading = 0;
  for (int i = 0; i < 4; ++i)
    leading = leading << 32 | static_cast<std::uint64_t>(top < i ? 0 : digit[top - i]);
  bool more = false;
  for (int i = 0; i <= top - 4; ++i) more = more || digit[i] != 0;
  return {negative, more, leading, exponent + 32 * (top - 3)};
}

}  // namespace samesum
