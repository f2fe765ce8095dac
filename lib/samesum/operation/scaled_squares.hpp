#pragma once

#include <algorithm>

#include "samesum/operation/term.hpp"

namespace samesum {

/// The sum of squares whose root is taken later: of elements scaled so that none overflows or vanishes
/// (Lawson, Hanson, Kincaid, Krogh 1979, the BLAS's nrm2; Hammarling's update), by powers of two, so that
/// scaling rounds nothing. The state stands for sum / scale²: scale·(the largest element) is in [2, 4).
template <class V> struct ScaledSquares {
  using C = typename V::Carrier;
  using Storage = typename V::Storage;
  static constexpr int fraction_bits = samesum::Format<C>::precision - 1;
  using Word = WordOf<C>;
  using Words = Register<Word, V::width>;
  static constexpr Word one = Word(samesum::Format<C>::max_exponent) << fraction_bits;  ///< the bits of 1
  static constexpr Word least = Word{1} << fraction_bits;  ///< of the smallest normal number

  V sum = V::zero(), scale = {Storage{} + __builtin_bit_cast(C, Word(2 * one))};

  SAMESUM_HD void add(V x, std::size_t) {
    // 2^(1 - e) for |x| in [2^e, 2^(e+1)): exponent fields are integers. Special values scale nothing.
    const Words exponent = same_bits<Words>(x.v) & Word(samesum::Format<C>::infinity);
    const Words field = exponent > least ? exponent : Words{} + least;
    const Words own =
        exponent == Word(samesum::Format<C>::infinity) ? Words{} + 2 * one : (2 * one + least) - field;
    const Words before = same_bits<Words>(scale.v);
    const Words now = own < before ? own : before;
    const Words change = one + now;  // of the scale, were it not for `before`
    const Words ratio = change > before + least ? change - before : Words{} + least;
    const V by = {same_bits<Storage>(ratio)};
    scale = {same_bits<Storage>(now)};
    const V scaled = x * scale;
    sum = (sum * by) * by + select(is_finite(x), scaled * scaled, magnitude(x));
  }

  /// The smaller scale is that of both; and where the sum would leave the range of a narrow format, it goes
  /// down.
  SAMESUM_HD void merge(const ScaledSquares& other) {
    const V least_scale = select(other.scale.v < scale.v, other.scale, scale);
    const V by = {least_scale.v / scale.v}, other_by = {least_scale.v / other.scale.v};
    const V both = (sum * by) * by + (other.sum * other_by) * other_by;
    const V down = {Storage{} + C(0x1p-4)}, same = {Storage{} + C(1)};
    const V factor = select(both.v >= Storage{} + C(4096), down, same);
    sum = (both * factor) * factor;
    scale = {least_scale.v * factor.v};
  }
};

/// √Σx², rounded to F: the root and the last scaling round once each. NaN where an element is NaN, else
/// infinite where one is infinite.
template <class F> SAMESUM_HD F root(const ScaledSquares<Scalar<F>>& x) {
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
