/// The one rounding of sums that are known exactly: wide integers, and sums of a few doubles.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cmath>
#endif

#include "samesum/window/wide.hpp"

namespace samesum {

/// What a rounding needs to know of a number: it is (-1)^negative·(bits + ε)·2^exponent, where 0 < ε < 1 if
/// `more` is true, else ε = 0. Every exact sum in integers ends here: whatever its representation, its
/// leading bits are rounded once.
struct LeadingBits {
  bool negative, more;
  Wide bits;  ///< with `more`, at least 2^56
  std::int64_t exponent;

  // Always inlined on a CPU: then the leading bits stay in registers.

  /// The number over a divisor >= 1. With `more`, the quotient must be at least 2^56, too.
  [[gnu::always_inline]] SAMESUM_HD constexpr LeadingBits over(std::uint64_t divisor) const {
    if (divisor == 1) return *this;
    const int zeros = more || bits == 0 ? 0 : leading_zeros(bits);  // so the quotient has at least 64 bits
    const Wide number = bits << zeros, quotient = number / divisor;
    return {negative, more || quotient * divisor != number, quotient, exponent - zeros};
  }

  /// Bit pattern, correctly rounded to F (to nearest, ties to even); +0 for zero. A negative number that
  /// rounds to zero gives -0, or +0 without `signed_zero`.
  template <class F, bool signed_zero = true>
  [[gnu::always_inline]] SAMESUM_HD constexpr BitsOf<F> rounded() const {
    if (bits == 0) return 0;
    const int zeros = leading_zeros(bits);
    const Wide aligned = bits << zeros;
    const bool sticky = more || static_cast<std::uint64_t>(aligned) != 0;
    const auto leading = static_cast<std::uint64_t>(aligned >> 64) | std::uint64_t{sticky};
    const BitsOf<F> result = round_to_bits<F>(negative, leading, exponent + 64 - zeros);
    return !signed_zero && result == Format<F>::sign_bit ? BitsOf<F>{0} : result;
  }
};

/// integer·2^exponent, where the integer has at most 62 bits. Formats of at most 60 bits round it, as an
/// instruction does that converts integers, to the same value as the number that it stands for: if it has 62
/// bits, the last one is sticky.
struct ShortNumber {
  std::int64_t integer;
  int exponent;

  /// For ±(magnitude + ε), where 0 < ε < 1 if `more` is true, else ε = 0. With `more`, the magnitude has at
  /// least 62 bits.
  SAMESUM_HD static constexpr ShortNumber of(bool negative, Wide magnitude, bool more) {
    const int excess = 66 - leading_zeros(magnitude), shift = excess > 0 ? excess : 0;
    const auto kept = static_cast<std::int64_t>(magnitude >> shift);
    const bool lost = more || Wide{static_cast<std::uint64_t>(kept)} << shift != magnitude;
    const std::int64_t integer = kept | std::int64_t{lost};
    return {negative ? -integer : integer, shift};
  }
};

/// TwoSum (Knuth 1969): replaces a by the sum of both, rounded, and returns the rounding error.
SAMESUM_HD inline double two_sum(double& a, double b) {
  const double before = a;
  a = before + b;
  const double of_b = a - before;
  return (before - (a - of_b)) + (b - of_b);
}

/// Rounds a double once to F. The current rounding mode must be to nearest.
template <class F> SAMESUM_HD F rounded(double x) {
  if constexpr (std::is_same_v<F, fp32>)
    return static_cast<float>(x);
  else
    return convert<F>(x);
}

/// Rounds high + low to odd: to `high` if that is exact or its last bit is 1, else to its neighbour towards
/// the sum. |low| is at most half a unit of the last place of high, which is not 0 unless low is.
SAMESUM_HD inline double rounded_to_odd(double high, double low) {
  const std::uint64_t bits = to_bits(high);
  if (low == 0 || bits % 2 != 0) return high;
  return from_bits<double>((low > 0) == (high > 0) ? bits + 1 : bits - 1);
}

/// Rounds sum + rest once to F: to a narrower format by way of the double that is rounded to odd (Boldo and
/// Melquiond 2008).
template <class F> SAMESUM_HD F rounded(double sum, double rest) {
  if (rest == 0) return rounded<F>(sum);  // +0 would change a sum of -0
  const double error = two_sum(sum, rest);
  return rounded<F>(std::is_same_v<F, fp64> ? sum : rounded_to_odd(sum, error));
}

/// Rounds the sum of three words once to F. Their sum is not 0 unless the first is. The rounding to odd keeps
/// the second word off the midpoints between two numbers of F, and on the side of them where the sum is.
template <class F> SAMESUM_HD F rounded(double first, double second, double third) {
  second = two_sum(first, second);
  double rest = two_sum(first, third);
  third = two_sum(second, rest);
  second = two_sum(first, second);
  third = two_sum(second, third);
  return rounded<F>(first, rounded_to_odd(second, third));
}

/// Rounds (sum + rest + e) once to F, where |e| <= error. Returns false if that is too close to a tie, or no
/// number.
template <class F> SAMESUM_HD bool round_if_sure(double sum, double rest, double error, F& result) {
  result = rounded<F>(sum, rest - error);
  return rest == rest && to_bits(result) == to_bits(rounded<F>(sum, rest + error));
}

/// Rounds (sum + rest) / n once to F. Returns false if the quotient is too close to a tie, or too small, to
/// tell. 1 <= n <= 2^53, and |rest| is at most half a unit of the last place of the sum.
template <class F> SAMESUM_HD bool round_quotient(double sum, double rest, double n, F& result) {
  const double first = sum / n, remainder = std::fma(-first, n, sum) + rest;  // of the right sign
  result = rounded<F>(first);
  if (remainder == 0) return true;
  if (!(std::fabs(first) >= 0x1p-900)) return false;  // `second` may have lost bits
  const double second = remainder / n;
  return round_if_sure(first, second, std::fabs(second) * 0x1p-50, result);
}
/// Rounds (sum + rest + third + e) / n likewise, where |third| is at most half a unit of the last place of
/// the rest and |e| <= error. If that is 0, n < 2^50, and two doubles hold the remainder, it decides a tie,
/// too: then both words of the quotient leave remainders that are exact, and the second is rounded to odd.
template <class F>
SAMESUM_HD bool round_quotient(double sum, double rest, double third, double error, double n, F& result) {
  const double share = 1 / n, first = sum * share;
  double remainder = std::fma(-first, n, sum), below = two_sum(remainder, rest);
  const double lost = two_sum(below, third);
  if (remainder == 0 && below == 0 && error == 0) {
    result = rounded<F>(first);
    return true;
  }
  if (!(std::fabs(first) >= 0x1p-850)) return false;  // words of the quotient may have lost bits
  double second = (remainder + below) * share;
  if (!(std::fabs(second) >= 0x1p-960) && (remainder != 0 || below != 0)) return false;
  if (error == 0 && lost == 0 && n < 0x1p50) {
    second += (std::fma(-second, n, remainder) + below) * share;  // within half a unit of the last place
    const double left = std::fma(-second, n, remainder) + below;  // only its sign matters
    result = rounded<F>(first, rounded_to_odd(second, left));
    return true;
  }
  error = (std::fabs(second) + std::fabs(third * share)) * 0x1p-50 + 2 * error * share;
  return round_if_sure(first, second, error, result);
}

/// Words whose sum is that of the given ones, each at most half a unit of the last place of the one before:
/// by passes of TwoSum from the last word to the first, which change nothing then. Returns false if that is
/// not so after a few passes.
template <int count> SAMESUM_HD bool distill(double (&word)[count]) {
  bool has_more = false;
  for (int w = 2; w < count; ++w) has_more = has_more || word[w] != 0;
  if (!has_more) {
    if (count > 1) word[count > 1] = two_sum(word[0], word[count > 1]);
    return true;
  }
  for (int pass = 0; pass < count + 2; ++pass) {
    bool changed = false;
    for (int w = count - 2; w >= 0; --w) {
      const double before = word[w];
      word[w + 1] = two_sum(word[w], word[w + 1]);
      changed = changed || word[w] != before;
    }
    if (!changed) return true;
  }
  return false;
}
/// The lowest bit of the sum of distilled words, as a number; 0 if they are 0.
template <int count> SAMESUM_HD double lowest_bit(const double (&word)[count]) {
  double last = word[0];
  for (int w = 1; w < count; ++w) last = word[w] == 0 ? last : word[w];
  last = std::fabs(last);
  const std::uint64_t bits = to_bits(last), without = bits & (bits - 1);
  constexpr int fraction_bits = Format<double>::precision - 1;
  return bits << (64 - fraction_bits) == 0 ? last : last - from_bits<double>(without);
}
/// The sum of the words after the second one of distilled words, rounded to odd.
template <int count> SAMESUM_HD double third_of(const double (&word)[count]) {
  double sum = count > 2 ? word[count - 1] : 0;
  for (int w = count - 2; w > 1; --w) sum = word[w] == 0 ? 0 : rounded_to_odd(word[w], sum);
  return sum;
}

}  // namespace samesum
