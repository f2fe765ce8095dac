/// The accumulator "plain": uncompensated summation.
#pragma once

#include <algorithm>
#include <cmath>

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// Plain summation, with one addition per element.
template <class V> struct Plain {
  static constexpr std::string_view name = "plain";
  static constexpr int operations_per_element = 1;
  static constexpr bool adds_as_it_merges = true;

  V sum = V::minus_zero();  // -0 is the identity of addition
  SAMESUM_HD void add(V x) { sum = sum + x; }
  SAMESUM_HD void merge(const Plain& other) { sum = sum + other.sum; }
  SAMESUM_HD V result() const { return sum; }

  /// The smaller of γ_h·Σ|x|, h the height of the tree (Higham, Accuracy and Stability, §4.2, eq. 4.6), and
  /// (n-1)u·Σ|x|, which holds for any order and any n (Rump 2012; Jeannerod and Rump 2013, Improved error
  /// bounds for inner products in floating-point arithmetic, theorem 3.1). An addition that underflows is
  /// exact, so no other term is needed.
  ///
  /// No partial sum exceeds Σ|x| plus this bound. Nor does the sum of a lane exceed 2Σ|x|, since the error of
  /// adding x is at most |x|; merges let it grow by `merged_growth`.
  static Loss bound(const Summed& s) {
    return with_error(
        s, std::min(gamma(static_cast<double>(s.height.total()), s.u), static_cast<double>(s.n - 1) * s.u));
  }

  /// λ·√h·u·(1+φ)·Σ|x|, λ = √(2 ln(2/failing)) (Higham and Mary 2019, theorem 3.1, and Connolly, Higham and
  /// Mary 2021; for any tree as in Hallman and Ipsen 2022).
  ///
  /// This is `probable_gamma` for the last node alone. 1+φ bounds the ratio of an unrounded sum to the Σ|x|
  /// below it. Either 1+φ = (1+u)^(h-1) <= exp((h-1)u), which is certain and is used while hu <= 1/2, or φ is
  /// a `probable_gamma` with half of `failing`.
  static Loss probable_bound(const Summed& s, double failing) {
    if (s.height.total() == 0) return with_error(s, 0);
    const double h = static_cast<double>(s.height.total()), nodes = static_cast<double>(s.n - 1), u = s.u;
    const auto first_order = [=](double f) { return std::sqrt(2 * std::log(2 / f) * h) * u; };
    const double certainly = h * u <= 0.5 ? std::exp((h - 1) * u) : unbounded_error;
    const double probably = 1 + probable_gamma(h, u, nodes, failing / 2);
    return with_error(s, std::min(first_order(failing) * certainly, first_order(failing / 2) * probably));
  }

 private:
  static Loss with_error(const Summed& s, double relative) {
    return {relative * s.magnitudes, std::min(1 + relative, 2 * merged_growth(s)) * s.magnitudes};
  }
};

}  // namespace samesum
