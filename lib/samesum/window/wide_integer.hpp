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

/// The words of the magnitude of an integer, without a copy of it.
template <int count> class Magnitude {
 public:
  SAMESUM_HD explicit Magnitude(const WideInteger<count>& number)
      : number_{number}, is_negative_{number.is_negative()} {
    while (lowest_ < count - 1 && number.word[lowest_] == 0) ++lowest_;
  }
  SAMESUM_HD bool is_negative() const { return is_negative_; }
  SAMESUM_HD std::uint64_t operator[](int i) const {
    const std::uint64_t word = number_.word[i];
    return !is_negative_ || i < lowest_ ? word : i == lowest_ ? 0 - word : ~word;
  }

 private:
  const WideInteger<count>& number_;
  bool is_negative_;
  int lowest_ = 0;  ///< the first word that is not 0
};

/// Divides rest·2^64 + digit, where rest < divisor. Returns the quotient, and leaves the remainder in `rest`.
SAMESUM_HD inline std::uint64_t divide_digit(std::uint64_t& rest, std::uint64_t digit,
                                             std::uint64_t divisor) {
  if (divisor == 1) return digit;
  const Wide number = Wide{rest} << 64 | digit;
  rest = static_cast<std::uint64_t>(number % divisor);
  return static_cast<std::uint64_t>(number / divisor);
}

/// (-1)^negative·(leading + ε)·2^exponent, where 0 < ε < 1 if `more` is true, else ε = 0.
struct LeadingQuotient {
  bool negative, more;
  Wide leading;
  int exponent;

  /// Bit pattern, correctly rounded to F (to nearest, ties to even).
  template <class F> SAMESUM_HD BitsOf<F> rounded() const {
    return round_wide<F, true>(negative, leading, more, exponent);
  }
};

/// Returns number·2^exponent / (a·b); `leading` has at least 65 bits unless the number is 0. a, b >= 1.
template <int count>
SAMESUM_HD LeadingQuotient leading_quotient(const WideInteger<count>& number, std::uint64_t a,
                                            std::uint64_t b, int exponent) {
  constexpr int below = 3;  // digits, so that the quotient of a number other than 0 has at least two
  const Magnitude<count> magnitude{number};
  Wide leading = 0;
  int kept = 0, last = 0;  // digits of the quotient that are in `leading`; the place of the last one
  bool more = false;
  std::uint64_t rest_of_a = 0, rest_of_b = 0;
  for (int i = count - 1; i >= -below; --i) {
    std::uint64_t digit = i < 0 ? 0 : magnitude[i];
    if ((digit | rest_of_a | rest_of_b) != 0)
      digit = divide_digit(rest_of_b, divide_digit(rest_of_a, digit, a), b);
    if (kept == 2) {
      more = more || digit != 0;
    } else if (kept > 0 || digit != 0) {
      leading = leading << 64 | digit;
      ++kept;
      last = i;
    }
  }
  more = more || (rest_of_a | rest_of_b) != 0;
  return {magnitude.is_negative(), more, leading, exponent + 64 * last};
}
/// Bit pattern of number·2^exponent / (a·b), correctly rounded to F (to nearest, ties to even); a, b >= 1.
template <class F, int count>
SAMESUM_HD BitsOf<F> rounded_quotient(const WideInteger<count>& number, std::uint64_t a, std::uint64_t b,
                                      int exponent) {
  return leading_quotient(number, a, b, exponent).template rounded<F>();
}

/// Replaces `squares` by n·squares - sum², where neither n·squares nor sum² exceeds its words.
template <int count>
SAMESUM_HD void scale_variance(std::uint64_t n, const WideInteger<count>& sum,
                               WideInteger<2 * count>& squares) {
  std::uint64_t carry = 0;
  for (std::uint64_t& word : squares.word) {
    const Wide part = Wide{word} * n + carry;
    word = static_cast<std::uint64_t>(part);
    carry = static_cast<std::uint64_t>(part >> 64);
  }
  const Magnitude<count> magnitude{sum};
  for (int i = 0; i < count; ++i) {
    // Subtracts word i times the sum. The carry includes what is borrowed: a product of two words leaves
    // room for two more.
    const std::uint64_t factor = magnitude[i];
    carry = 0;
    for (int k = i; k < 2 * count; ++k) {
      const Wide part = (k - i < count ? Wide{factor} * magnitude[k - i] : 0) + carry;
      const auto low = static_cast<std::uint64_t>(part);
      carry = static_cast<std::uint64_t>(part >> 64) + (squares.word[k] < low);
      squares.word[k] -= low;
    }
  }
}

/// Returns n·squares - sum², where neither n·squares nor sum² exceeds the words of the result.
template <int of_sum, int of_squares>
SAMESUM_HD WideInteger<2 * of_sum> scaled_variance(std::uint64_t n, const WideInteger<of_sum>& sum,
                                                   const WideInteger<of_squares>& squares) {
  static_assert(of_squares < 2 * of_sum);
  WideInteger<2 * of_sum> all;
  for (int i = 0; i < 2 * of_sum; ++i) all.word[i] = i < of_squares ? squares.word[i] : 0;
  scale_variance(n, sum, all);
  return all;
}

}  // namespace samesum
