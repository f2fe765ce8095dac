/// The accumulator "neumaier": compensated summation with a separate sum of the errors.
#pragma once

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// Neumaier's summation (1974), made branch-free by TwoSum (Ogita, Rump, Oishi 2005, algorithm 4.4, "Sum2"):
/// a plain sum, and beside it the plain sum of its rounding errors.
template <class V> struct Neumaier {
  static constexpr std::string_view name = "neumaier";
  static constexpr int operations_per_element = 7;
  static constexpr bool adds_as_it_merges = true;

  V sum = V::minus_zero(), correction = V::zero();
  SAMESUM_HD void add(V x) {
    const auto [t, error] = two_sum(sum, x);
    correction = correction + select(is_finite(error), error, V::zero());  // otherwise inf would become NaN
    sum = t;
  }
  SAMESUM_HD void merge(const Neumaier& other) {
    const auto [t, error] = two_sum(sum, other.sum);
    correction = (correction + other.correction) + select(is_finite(error), error, V::zero());
    sum = t;
  }
  SAMESUM_HD V result() const { return select(is_finite(sum), corrected(), sum); }

  /// u|result| + γ_h·γ_{h+m}·Σ|x| for a tree of height h, including m merges (the tree form of Ogita, Rump,
  /// Oishi 2005, proposition 4.5).
  ///
  /// sum + Σ errors is exact. The magnitudes of the errors add up to at most ((1+u)^h - 1)·Σ|x| <= γ_h·Σ|x|.
  /// The errors are summed plainly, with one addition per add and two per merge. Either γ may be replaced by
  /// (n-1)u, for any n: the proof of Jeannerod and Rump 2013, theorem 3.1, bounds the sum of the magnitudes
  /// of the n-1 errors, and applies to the sum of these errors as well.
  static Loss bound(const Summed& s) {
    const double h = static_cast<double>(s.height.total()), m = static_cast<double>(s.height.merges);
    const double any = static_cast<double>(s.n - 1) * s.u;
    return with_error(s, std::min(gamma(h, s.u), any) * std::min(gamma(h + m, s.u), any));
  }

  /// `bound` with `probable_gamma` in place of both γ, each with half of `failing`. The first bounds the
  /// n - 1 sums of errors, one per node; the second covers the at most 2(n - 1) additions that compute them.
  /// The last rounding remains u|result|.
  static Loss probable_bound(const Summed& s, double failing) {
    const double h = static_cast<double>(s.height.total()), m = static_cast<double>(s.height.merges);
    const double nodes = static_cast<double>(s.n - 1);
    if (s.height.total() == 0) return with_error(s, 0);
    return with_error(
        s, probable_gamma(h, s.u, nodes, failing / 2) * probable_gamma(h + m, s.u, 2 * nodes, failing / 2));
  }

 private:
  static Loss with_error(const Summed& s, double relative) {
    return loss_of_two_words(s, s.u * s.result + relative * s.magnitudes);
  }
  SAMESUM_HD V corrected() const { return select(correction == V::zero(), sum, sum + correction); }
};

}  // namespace samesum
