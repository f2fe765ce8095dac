#pragma once

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// Neumaier (1974), branch-free by TwoSum (Ogita, Rump, Oishi 2005, algorithm 4.4, "Sum2"): a plain sum, and
/// beside it the plain sum of everything that its roundings lost.
template <class V> struct Neumaier {
  static constexpr std::string_view name = "neumaier";
  static constexpr int operations_per_element = 7;
  static constexpr bool adds_as_it_merges = true;

  V sum = V::minus_zero(), correction = V::zero();
  SAMESUM_HD void add(V x) {
    const auto [t, error] = two_sum(sum, x);
    correction = correction + select(is_finite(error), error, V::zero());  // else inf would turn into NaN
    sum = t;
  }
  SAMESUM_HD void merge(const Neumaier& other) {
    const auto [t, error] = two_sum(sum, other.sum);
    correction = (correction + other.correction) + select(is_finite(error), error, V::zero());
    sum = t;
  }
  SAMESUM_HD V result() const { return select(is_finite(sum), corrected(), sum); }

  /// u|result| + γ_h·γ_{h+m}·Σ|x| for a tree of height h, m of it merges (the tree form of Ogita, Rump, Oishi
  /// 2005, proposition 4.5): sum + Σ errors is exact, the magnitudes of the errors add up to at most ((1+u)^h
  /// - 1)·Σ|x| <= γ_h·Σ|x|, and they are summed plainly, in one addition an add and two a merge.
  static double bound(double u, Height height, double magnitudes, double result) {
    const double h = static_cast<double>(height.total()), m = static_cast<double>(height.merges);
    return height.total() == 0 ? 0 : u * result + gamma(h, u) * gamma(h + m, u) * magnitudes;
  }

  /// The same with `probable_gamma` in the place of both γ, each of which takes half of `failing`: of the n -
  /// 1 sums of errors, which are what is added, and of at most 2(n - 1) additions of these. The last rounding
  /// stays u|result|.
  static double probable_bound(double u, Height height, std::uint64_t n, double magnitudes, double result,
                               double failing) {
    if (height.total() == 0) return 0;
    const double h = static_cast<double>(height.total()), m = static_cast<double>(height.merges);
    const double nodes = static_cast<double>(n - 1);
    return u * result + probable_gamma(h, u, nodes, failing / 2) *
                            probable_gamma(h + m, u, 2 * nodes, failing / 2) * magnitudes;
  }

 private:
  SAMESUM_HD V corrected() const { return select(correction == V::zero(), sum, sum + correction); }
};

}  // namespace samesum
