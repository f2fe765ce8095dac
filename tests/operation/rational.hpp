/// Rational numbers as the truth, and what correct rounding of them is.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "samesum/format/formats.hpp"

namespace samesum::testing_support {

using Rational = boost::multiprecision::cpp_rational;

inline Rational magnitude_of(const Rational& x) { return x < 0 ? Rational{-x} : x; }

/// Whether the result is the truth rounded to nearest, ties to even: no neighbour is nearer, or equally near
/// and even.
template <class F> bool is_nearest(F result, const Rational& truth) {
  const double value = convert<double>(result);
  if (!std::isfinite(value))
    return magnitude_of(truth) >=
           Rational{Format<F>::max_finite} * (1 + Rational{Format<F>::unit_roundoff} / 2);
  const Rational error = magnitude_of(Rational{value} - truth);
  for (const int step : {-1, 1}) {
    const BitsOf<F> bits = to_bits(result), magnitude = BitsOf<F>(bits & ~Format<F>::sign_bit);
    const double neighbour = magnitude == 0
                                 ? step * Format<F>::smallest_subnormal
                                 : convert<double>(from_bits<F>(BitsOf<F>(bits + (step > 0 ? 1 : -1))));
    if (!std::isfinite(neighbour)) continue;
    const Rational other = magnitude_of(Rational{neighbour} - truth);
    if (other < error || (other == error && bits % 2 != 0)) return false;
  }
  return true;
}

}  // namespace samesum::testing_support
