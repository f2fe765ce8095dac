#pragma once

#include <algorithm>

#include "samesum/operation/term.hpp"

namespace samesum {

/// The sum of squares whose root is taken later: of elements scaled so that none overflows or vanishes
/// (Lawson, Hanson, Kincaid, Krogh 1979, the BLAS's nrm2; Hammarling's update), by powers of two, so that
/// scaling rounds nothing. The state stands for sum / scale²: scale·(the largest element) is in [2, 4).
template <class F> struct ScaledSquares {
  using V = Scalar<F>;
  using C = CarrierOf<F>;
  using Word = WordOf<C>;
  static constexpr int fraction_bits = samesum::Format<C>::precision - 1;
  static constexpr Word one = Word(samesum::Format<C>::max_exponent) << fraction_bits;  ///< the bits of 1
  static constexpr Word least = Word{1} << fraction_bits;  ///< of the smallest normal number

  V sum = V::zero(), scale = {__builtin_bit_cast(C, Word(2 * one))};

  SAMESUM_HD void add(V x, std::size_t) {
    // 2^(1 - e) for |x| in [2^e, 2^(e+1)): exponent fields are integers. Special values scale nothing.
    const Word exponent = same_bits<Word>(x.v) & Word(samesum::Format<C>::infinity);
    const bool special = exponent == Word(samesum::Format<C>::infinity);
    const Word own = 2 * one + least - (exponent > least ? exponent : least), now = same_bits<Word>(scale.v);
    if (own < now && !special) {
      const V by = {same_bits<C>(one + own > now + least ? one + own - now : least)};
      sum = (sum * by) * by;
      scale = {same_bits<C>(own)};
    }
    const V scaled = x * scale;
    sum = sum + (special ? magnitude(x) : scaled * scaled);
  }

  /// The smaller scale is that of both; and where the sum would leave the range of a narrow format, it goes
  /// down.
  SAMESUM_HD void merge(const ScaledSquares& other) {
    const C least_scale = other.scale.v < scale.v ? other.scale.v : scale.v;
    const V by = {least_scale / scale.v}, other_by = {least_scale / other.scale.v};
    const V both = (sum * by) * by + (other.sum * other_by) * other_by;
    const V down = {both.v >= C{4096} ? C(0x1p-4) : C{1}};
    sum = (both * down) * down;
    scale = {least_scale * down.v};
  }
};

/// √Σx², rounded to F: the root and the last scaling round once each. NaN where an element is NaN, else
/// infinite where one is infinite.
template <class F> SAMESUM_HD F root(const ScaledSquares<F>& x) {
  using C = CarrierOf<F>;
  if (!(x.sum.v < std::numeric_limits<C>::infinity())) return to_format<F>(x.sum);
  const C root = round_lanes<F, C, 1>(std::sqrt(x.sum.v));
  if constexpr (sizeof(C) == 4) {
    return convert<F>(double{root} / double{x.scale.v});
  } else {
    const Decomposed d = decompose<C>(to_bits(root)), s = decompose<C>(to_bits(x.scale.v));
    const int shift = 63 - leading_zeros(s.significand);  // the scale is 2^(exponent + shift)
    return from_bits<F>(
        round_to_bits<F>(false, d.significand, std::int64_t{d.exponent} - s.exponent - shift));
  }
}

}  // namespace samesum
