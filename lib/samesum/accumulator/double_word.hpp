/// The accumulator "double_word": a sum in twice the precision.
#pragma once

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// Sum in twice the precision, as an unevaluated pair hi + lo with hi = RN(hi + lo). `add` is algorithm 4 and
/// `merge` algorithm 6 ("accurate") of Joldes, Muller, Popescu 2017 (Tight and rigorous error bounds for
/// basic building blocks of double-word arithmetic).
template <class V> struct DoubleWord {
  static constexpr std::string_view name = "double_word";
  static constexpr int operations_per_element = 10;
  static constexpr bool adds_as_it_merges = true;

  V hi = V::minus_zero(), lo = V::zero();
  SAMESUM_HD void add(V x) {
    const auto [sum, error] = two_sum(hi, x);
    *this = renormalised(sum, lo + error);
  }
  SAMESUM_HD void merge(const DoubleWord& other) {
    const auto [sum, error] = two_sum(hi, other.hi);
    const auto [low_sum, low_error] = two_sum(lo, other.lo);
    const DoubleWord high = renormalised(sum, error + low_sum);
    *this = renormalised(high.hi, high.lo + low_error);
  }
  SAMESUM_HD V result() const { return hi; }

  /// u|result| + ((1+w)^h - 1)·Σ|x|, where w = 3u²/(1-4u) bounds the relative error of both operations
  /// (theorem 3.1 of the same paper, proved for every precision from 3 bits on; Muller and Rideau 2022
  /// checked it formally). Additions that underflow are exact, so the theorem holds in the subnormal range
  /// too.
  static Loss bound(const Summed& s) {
    const double w = 3 * s.u * s.u / (1 - 4 * s.u);
    const double relative = std::expm1(static_cast<double>(s.height.total()) * std::log1p(w)) * (1 + 0x1p-40);
    return loss_of_two_words(s, s.u * s.result + relative * s.magnitudes);
  }

  /// Equal to `bound`: the theorem bounds the error of an operation, but makes no statement about its mean.
  static Loss probable_bound(const Summed& s, double) { return bound(s); }

 private:
  /// Dekker's FastTwoSum. If the low word is 0, `high` is kept, with the sign of a zero. A low word beside an
  /// infinity or NaN is meaningless and becomes 0.
  SAMESUM_HD static DoubleWord renormalised(V high, V low) {
    const V l = select(is_finite(low), low, V::zero());
    const V sum = select(l == V::zero(), high, high + l);
    const V error = l - (sum - high);
    return {sum, select(is_finite(error), error, V::zero())};
  }
};

}  // namespace samesum
