/// The truth: exact sums by Boost.Multiprecision, and exact distances from them.
///
/// This is what the library is tested against, so it shares none of the library's arithmetic; of a number it
/// only asks which integer times which power of two its bits spell (`decompose`).
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstddef>

#include "samesum/format/value.hpp"

namespace samesum::harness {

/// An exact number as a multiple of 2^-1074. Every finite value of every format is one, and so is every sum.
using BigInteger =
    boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>, boost::multiprecision::et_off>;
inline constexpr int exact_unit = Format<fp64>::min_quantum;

bool is_finite(Number x);

/// The exact value of a finite number.
BigInteger exact_value(Number finite);

/// numerator / denominator, both positive or the numerator 0, correctly rounded to a double.
double quotient(const BigInteger& numerator, const BigInteger& denominator);

/// How far a result is from the truth. Infinite where there is no finite distance.
struct Error {
  double ulps;      ///< in units in the last place of the correctly rounded sum, in the result's format
  double relative;  ///< to the unrounded sum
  double absolute;  ///< rounded up
};

/// The exact sum of an array and what belongs to it.
class Truth {
 public:
  explicit Truth(Values x);

  std::size_t size() const { return size_; }
  std::size_t nans() const { return nans_; }
  std::size_t infinities() const { return plus_infinities_ + minus_infinities_; }
  /// Whether each element is: only then are the following two the whole story.
  bool finite() const { return nans() + infinities() == 0; }
  const BigInteger& sum() const { return sum_; }                ///< of the finite elements
  const BigInteger& magnitudes() const { return magnitudes_; }  ///< sum of |x| of the finite elements

  /// The sum, correctly rounded: to nearest, ties to even; the special values of the exact sum are:
  /// nothing gives +0, only -0 gives -0, NaN or inf - inf gives the canonical NaN.
  Number rounded(const FormatInfo& format) const;

  /// The unit in the last place of rounded(format); infinite where that is not finite.
  double ulp(const FormatInfo& format) const;

  /// Sum of |x| rounded up; infinite where an element is not finite.
  double magnitudes_rounded_up() const;

  /// κ = Σ|x| / |Σx|: infinite for total cancellation, NaN where it means nothing (no data, only zeros, not
  /// finite).
  double condition() const;

  /// All zero where the result is the same special value that the data give. Where the finite sum is beyond
  /// the result's format and the result is the infinity that it rounds to, only `ulps` is zero.
  Error error_of(Number result) const;

  /// result - sum, in multiples of 2^-1074. Both must be finite.
  BigInteger signed_error_of(Number result) const { return exact_value(result) - sum_; }

  /// |result - sum| <= bound, without any rounding. An infinite bound claims nothing, so everything is within
  /// it.
  bool within(double bound, Number result) const;

 private:
  template <class F> void add(std::span<const F> x);

  std::size_t size_, nans_ = 0, plus_infinities_ = 0, minus_infinities_ = 0;
  bool only_minus_zero_ = true;
  BigInteger sum_, magnitudes_;
};

}  // namespace samesum::harness
