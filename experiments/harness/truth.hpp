/// The truth: exact results of operations with Boost.Multiprecision, and exact distances from them.
///
/// Tests compare the library with this code, so it shares none of the library's arithmetic. It uses only
/// `decompose`, which converts the bits of a number to an integer times a power of two.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "samesum/call/values.hpp"

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

/// The distance between a result and the exact one; infinite if there is no finite distance.
struct Error {
  double ulps;      ///< in units in the last place of the correctly rounded result, in the result's format
  double relative;  ///< to the unrounded result
  double absolute;  ///< rounded up
};

/// The exact result of an operation on one vector, a sum unless it comes from `of`, and properties of the
/// data.
class Truth {
 public:
  Truth() = default;
  explicit Truth(Values x) { add(x); }

  /// The result of an operation on x, for dot on x and y. A result that is not a dyadic fraction is
  /// truncated, some 60 bits below the smallest subnormal of a product, and a last bit says that it was: it
  /// rounds correctly. prod, logsumexp and softmax are computed with a relative error below 2^-300.
  /// `result_index`: as in BoundOptions; for softmax, the element. Throws std::invalid_argument for an
  /// operation that is not one of those of `operations`.
  static Truth of(const std::string& operation, Values x, std::optional<Values> y = {},
                  std::size_t result_index = 0);

  /// The operations for which `of` has a truth: all with one number per vector, moments and softmax.
  static std::vector<std::string> operations();

  /// Takes in further elements of a sum.
  void add(Values x);
  /// Takes in terms that are parts of elements that have been counted.
  void add_parts(Values x) {
    const std::size_t counted = size_;
    add(x);
    size_ = counted;
  }

  std::size_t size() const { return size_; }
  std::size_t nans() const { return nans_; }
  std::size_t infinities() const { return plus_infinities_ + minus_infinities_; }
  /// Whether the result is finite before it is rounded. For a sum: whether all elements are finite; value()
  /// and magnitudes() then cover finite elements only.
  bool finite() const { return nans() + infinities() == 0; }
  const BigInteger& value() const { return value_; }            ///< in multiples of 2^unit()
  const BigInteger& magnitudes() const { return magnitudes_; }  ///< in the same unit
  int unit() const { return unit_; }

  /// The exact result, correctly rounded to nearest, ties to even. A sum of no elements is +0, one of
  /// elements that are all -0 is -0; a NaN or inf - inf gives the canonical NaN.
  Number rounded(const FormatInfo& format) const;

  /// The unit in the last place of rounded(format); infinite if that is not finite.
  double ulp(const FormatInfo& format) const;

  /// What bounds are relative to, rounded up: Σ|x| for sum, mean and moments, Σ|xy| for dot, the largest
  /// minus the smallest element for softmax, |result| for other operations; infinite if the result is not
  /// finite.
  double magnitudes_rounded_up() const;

  /// Condition number: the largest relative change of the result per relative change of the elements, to
  /// first order. Infinite for total cancellation, NaN if it is undefined (no data, only zeros, not finite).
  ///
  /// sum, mean: κ = Σ|x| / |Σx| (Higham, Accuracy and Stability of Numerical Algorithms, 2002, §4.2). dot: κ
  /// = Σ|xy| / |Σxy|, half of that of Ogita, Rump and Oishi 2005, who change both vectors. The others by the
  /// same definition, κ = Σ|x ∂f/∂x| / |f| (Higham 2002, §1.6): 1 for norm, sum_of_magnitudes, min and max, 2
  /// for squared_norm, n for prod, Σ|x|exp(x) / (Σexp(x)·|f|) for logsumexp. softmax: |xᵢ|(1 - fᵢ) +
  /// Σ|xⱼ|fⱼ over the other elements. Variance: κ = √(n·Σx² / (n·Σx² - (Σx)²)), the normwise condition number
  /// of the standard deviation (Chan and Lewis 1979, Computing standard deviations: accuracy); a change of x
  /// by ε‖x‖ changes the variance by up to 2κε of itself, to first order.
  double condition() const;

  /// The error of a result. All fields are zero if the data give a special value and the result is that
  /// value. If the finite truth is beyond the range of the result's format, and the result is the infinity to
  /// which it rounds, only `ulps` is zero.
  Error error_of(Number result) const;

  /// Whether |result - value| <= bound, computed without rounding. Every result is within an infinite bound.
  bool within(double bound, Number result) const;

 private:
  template <class F> void add_chunk(std::span<const F> x);
  BigInteger scaled(Number finite) const;

  friend struct OperationTruth;

  std::size_t size_ = 0, nans_ = 0, plus_infinities_ = 0, minus_infinities_ = 0;
  bool only_minus_zero_ = true;  ///< a zero is -0, if there are elements
  int unit_ = exact_unit;
  BigInteger value_, magnitudes_;
  std::optional<double> condition_;  ///< empty: magnitudes / |value|
};

}  // namespace samesum::harness
