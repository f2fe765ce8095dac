/// The truth: exact sums with Boost.Multiprecision, and exact distances from them.
///
/// Tests compare the library with this code, so it shares none of the library's arithmetic. It uses only
/// `decompose`, which converts the bits of a number to an integer times a power of two.
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

/// numerator / denominator, correctly rounded to a double. Both must be positive, or the numerator 0.
double quotient(const BigInteger& numerator, const BigInteger& denominator);

/// The distance between a result and the exact sum; infinite if there is no finite distance.
struct Error {
  double ulps;      ///< in units in the last place of the correctly rounded sum, in the result's format
  double relative;  ///< to the unrounded sum
  double absolute;  ///< rounded up
};

/// The exact sum of an array, and properties of the array.
class Truth {
 public:
  Truth() = default;
  explicit Truth(Values x) { add(x); }

  /// Takes in further elements.
  void add(Values x);

  std::size_t size() const { return size_; }
  std::size_t nans() const { return nans_; }
  std::size_t infinities() const { return plus_infinities_ + minus_infinities_; }
  /// Whether all elements are finite. sum() and magnitudes() cover finite elements only.
  bool finite() const { return nans() + infinities() == 0; }
  const BigInteger& sum() const { return sum_; }                ///< of the finite elements
  const BigInteger& magnitudes() const { return magnitudes_; }  ///< sum of |x| of the finite elements

  /// The exact sum, correctly rounded to nearest, ties to even. No elements give +0; elements that are all -0
  /// give -0; a NaN or inf - inf gives the canonical NaN.
  Number rounded(const FormatInfo& format) const;

  /// The unit in the last place of rounded(format); infinite if that is not finite.
  double ulp(const FormatInfo& format) const;

  /// Sum of |x|, rounded up; infinite if an element is not finite.
  double magnitudes_rounded_up() const;

  /// Condition number κ = Σ|x| / |Σx|: infinite for total cancellation, NaN if it is undefined (no data, only
  /// zeros, not finite).
  double condition() const;

  /// The error of a result. All fields are zero if the data give a special value and the result is that
  /// value. If the finite sum is beyond the range of the result's format, and the result is the infinity to
  /// which it rounds, only `ulps` is zero.
  Error error_of(Number result) const;

  /// result - sum, in multiples of 2^-1074. Both must be finite.
  BigInteger signed_error_of(Number result) const { return exact_value(result) - sum_; }

  /// Whether |result - sum| <= bound, computed without rounding. Every result is within an infinite bound.
  bool within(double bound, Number result) const;

 private:
  template <class F> void add_chunk(std::span<const F> x);

  std::size_t size_ = 0, nans_ = 0, plus_infinities_ = 0, minus_infinities_ = 0;
  bool only_minus_zero_ = true;
  BigInteger sum_, magnitudes_;
};

}  // namespace samesum::harness
