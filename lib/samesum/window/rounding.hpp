/// The one rounding of sums that are known exactly: wide integers, and sums of two doubles.
#pragma once

#include <cmath>

#include "samesum/window/int128.hpp"

namespace samesum {

/// Bit pattern of the value of F nearest to a wide integer, ties to even. `first` is the highest digit that
/// is not 0, of weight 2^exponent; `second` and `third` follow it. `more` says whether any lower digit is not
/// 0.
template <class F>
SAMESUM_HD BitsOf<F> round_leading(bool negative, std::uint64_t first, std::uint64_t second,
                                   std::uint64_t third, bool more, int exponent) {
  // The 64 bits from the leading 1 down. The last one is sticky: it is also 1 if any bit below is.
  const int zeros = leading_zeros(first) - 32;
  std::uint64_t leading = ((first << 32) | second) << zeros;
  if (zeros > 0) leading |= third >> (32 - zeros);
  more = more || ((third << zeros) & 0xffffffff) != 0;
  return round_to_bits<F>(negative, leading | std::uint64_t{more}, exponent - 32 - zeros);
}

/// Bit pattern of (-1)^negative·(magnitude + ε)·2^exponent, correctly rounded to F (to nearest, ties to
/// even), where 0 < ε < 1 if `more` is true, else ε = 0. With `more`, the magnitude has at least 57 bits. A
/// zero is +0, unless `signed_zero` keeps the sign of a number that rounds to zero.
template <class F, bool signed_zero>
SAMESUM_HD constexpr BitsOf<F> round_wide(bool negative, Wide magnitude, bool more, std::int64_t exponent) {
  if (magnitude == 0) return 0;
  const int zeros = leading_zeros(magnitude);
  magnitude <<= zeros;
  const bool sticky = more || static_cast<std::uint64_t>(magnitude) != 0;
  const auto leading = static_cast<std::uint64_t>(magnitude >> 64) | std::uint64_t{sticky};
  const BitsOf<F> bits = round_to_bits<F>(negative, leading, exponent + 64 - zeros);
  return !signed_zero && bits == Format<F>::sign_bit ? BitsOf<F>{0} : bits;
}

/// Bit pattern of units·2^grid, correctly rounded to F (to nearest, ties to even); +0 for zero. With
/// `signed_zero`, a negative number that rounds to zero gives -0, as in an exact sum.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid) {
  return round_wide<F, signed_zero>(units.is_negative(), units.magnitude(), false, grid);
}

/// Bit pattern of units·2^grid / divisor, correctly rounded to F, as round_units. divisor >= 1.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_quotient(Int128 units, int grid, std::uint64_t divisor) {
  Int128::Wide magnitude = units.magnitude();
  if (magnitude == 0) return 0;
  const int zeros = leading_zeros(magnitude);
  magnitude <<= zeros;  // so the quotient has at least 64 bits
  const Int128::Wide quotient = magnitude / divisor;
  return round_wide<F, signed_zero>(units.is_negative(), quotient, magnitude != quotient * divisor,
                                    grid - zeros);
}

/// Bit pattern of units·2^grid + held, correctly rounded to F; +0 for zero. `held` is finite.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid, F held) {
  const Decomposed d = decompose<F>(to_bits(held));
  if (d.significand == 0) return round_units<F, signed_zero>(units, grid);
  if (units.is_zero()) return to_bits(held);
  // Both magnitudes with the leading bit at 2^126, and the exponent of the bit 2^0.
  struct Aligned {
    bool negative;
    Wide magnitude;
    int exponent;
  };
  const auto aligned = [](bool negative, Wide magnitude, int exponent) {
    const int zeros = leading_zeros(magnitude);
    if (zeros == 0) return Aligned{negative, magnitude >> 1, exponent + 1};  // -2^127, the only such number
    return Aligned{negative, magnitude << (zeros - 1), exponent - (zeros - 1)};
  };
  Aligned a = aligned(units.is_negative(), units.magnitude(), grid),
          b = aligned(d.negative, d.significand, d.exponent);
  if (b.exponent > a.exponent || (b.exponent == a.exponent && b.magnitude > a.magnitude)) {
    const Aligned other = a;
    a = b;
    b = other;
  }
  // b as high + low·2^-128 + less than 2^-256.
  const int down = a.exponent - b.exponent;
  Wide high = 0, low = 0;
  bool more = false;
  if (down == 0) {
    high = b.magnitude;
  } else if (down < 128) {
    high = b.magnitude >> down;
    low = b.magnitude << (128 - down);
  } else if (down < 256) {
    low = b.magnitude >> (down - 128);
    more = low << (down - 128) != b.magnitude;
  } else {
    more = true;
  }
  if (a.negative == b.negative) {
    high = a.magnitude + high;
  } else {
    const Wide subtracted = low + Wide{more};  // with a remainder, low is far below its largest value
    high = a.magnitude - high - Wide{subtracted != 0};
    low = Wide{0} - subtracted;
  }
  int exponent = a.exponent;
  if (high == 0) {
    high = low;
    low = 0;
    exponent -= 128;
    if (high == 0) return 0;
  }
  const int zeros = leading_zeros(high);
  if (zeros > 0) {
    high = high << zeros | low >> (128 - zeros);
    low <<= zeros;
  }
  return round_wide<F, signed_zero>(a.negative, high, low != 0 || more, std::int64_t{exponent} - zeros);
}

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
/// the sum. |low| is at most half a unit of the last place of high.
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

/// Rounds (sum + rest + e) once to F, where |e| <= error. Returns false if that is too close to a tie.
template <class F> SAMESUM_HD bool round_if_sure(double sum, double rest, double error, F& result) {
  result = rounded<F>(sum, rest - error);
  return to_bits(result) == to_bits(rounded<F>(sum, rest + error));
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

}  // namespace samesum
