/// The leading bits of sums whose terms have any exponents: enough to round nearly all sums, in a few
/// registers.
#pragma once

#include "samesum/window/compact_exact.hpp"

namespace samesum {

/// A term ±magnitude·2^exponent, with a magnitude below 2^127.
struct IntegerTerm {
  bool negative;
  Wide magnitude;
  int exponent;

  /// The least exponent e with |term| < 2^e; for zeros that of the smallest term there can be.
  SAMESUM_HD int top() const {
    return magnitude == 0 ? 2 * Format<fp64>::min_quantum : exponent + 128 - leading_zeros(magnitude);
  }
  SAMESUM_HD IntegerTerm square() const { return {false, magnitude * magnitude, 2 * exponent}; }
};

/// The leading bits of a sum: an integer of units that the largest term determines. Each term is cut off at
/// the unit, so that a sum of n terms is off by less than n units.
template <int count> struct LeadingSum {
  WideInteger<count> units{};
  int unit = 0;            ///< the exponent of a unit
  std::uint32_t lost = 0;  ///< whether any term was cut off

  /// The exponent of a unit for at most 2^log2_terms terms below 2^top, with one bit to spare.
  SAMESUM_HD static int unit_for(int top, int log2_terms) { return top + log2_terms + 2 - 64 * count; }

  SAMESUM_HD void add(const IntegerTerm& term) {
    const int shift = term.exponent - unit, up = shift > 0 ? shift : 0,
              down = shift > 0      ? 0
                     : shift > -127 ? -shift
                                    : 127;
    const Wide kept = term.magnitude >> down;
    lost |= kept << down != term.magnitude;
    units.add(WideInteger<count>::of(term.negative, kept, up));
  }
};

/// The leading bits of the sums of an exact reduction.
template <ExactlySummed what> struct LeadingExact {
  static constexpr bool moments = what == ExactlySummed::elements_and_squares;
  LeadingSum<2> terms;
  LeadingSum<moments ? 4 : 1> squares;  ///< only for moments
  std::uint32_t flags = 0;              ///< a combination of SumFlags::Flag

  /// For at most 2^log2_terms terms below 2^top. The unit of the squares is that of the terms squared: their
  /// sum, at most 2^(2·top + log2_terms), has at most 252 - log2_terms bits.
  SAMESUM_HD void place(int top, int log2_terms) {
    terms.unit = terms.unit_for(top, log2_terms);
    squares.unit = 2 * terms.unit;
  }
  SAMESUM_HD void add(const IntegerTerm& term) {
    terms.add(term);
    if constexpr (moments) squares.add(term.square());
  }

  /// A lower (side = -1) or an upper bound (1) of the sum or the mean. They are equal if nothing was lost.
  SAMESUM_HD LeadingBits quotient(const ExactResult& of, int side) const {
    const auto error = terms.lost ? static_cast<std::int64_t>(of.n) : 0;
    const Int128 sum = terms.units + Int128::of(side * error);
    return sum.leading(terms.unit).over(of.mean && of.n > 0 ? of.n : 1);
  }
  /// A lower or an upper bound of the variance of fewer than 2^32 elements. If n <= ddof, it is not used.
  ///
  /// With s and q units of both sums, and Σx = s + e, Σx² = q + d units, |e| and |d| are at most n, so that
  /// n·(q + d) - (s + e)² differs from n·q - s² by at most n² + 2·n·|s| + n² = 2·n·(|s| + n). No square is
  /// cut off unless its term is.
  SAMESUM_HD LeadingBits variance_quotient(const ExactResult& of, int side) const {
    if (of.n <= of.ddof) return {};
    WideInteger<4> numerator = squares.units;
    scale_variance(of.n, terms.units, numerator);
    if (terms.lost) {
      const int bits_of_n = 65 - leading_zeros(of.n),  // of 2·n
          bits_of_sum = 128 - leading_zeros(terms.units.magnitude().wide() + of.n);
      numerator.add(WideInteger<4>::of(side < 0, 1, bits_of_n + bits_of_sum));
    }
    return leading_quotient(numerator, of.n, of.n - of.ddof, squares.unit);
  }
};

}  // namespace samesum
