#pragma once

#include <algorithm>
#include <cmath>

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// One addition an element and nothing else.
template <class V> struct Plain {
  static constexpr std::string_view name = "plain";
  static constexpr int operations_per_element = 1;
  static constexpr bool adds_as_it_merges = true;

  V sum = V::minus_zero();  // -0 is the identity of addition
  SAMESUM_HD void add(V x) { sum = sum + x; }
  SAMESUM_HD void merge(const Plain& other) { sum = sum + other.sum; }
  SAMESUM_HD V result() const { return sum; }

  /// γ_h·Σ|x|, h the height of the tree (Higham, Accuracy and Stability, §4.2, eq. 4.6). An addition that
  /// underflows is exact, so no other term is needed.
  static double bound(double u, Height height, double magnitudes, double) {
    return gamma(static_cast<double>(height.total()), u) * magnitudes;
  }

  /// λ·√h·u·(1+φ)·Σ|x|, λ = √(2 ln(2/failing)) (Higham and Mary 2019, theorem 3.1, for any tree as Hallman
  /// and Ipsen 2022): `probable_gamma` for the last node alone, 1+φ bounding what an unrounded sum can be
  /// over the Σ|x| below it. That is (1+u)^(h-1) for certain, which serves while hu <= 1/2, or a
  /// `probable_gamma` that takes half of `failing`.
  static double probable_bound(double u, Height height, std::uint64_t n, double magnitudes, double,
                               double failing) {
    if (height.total() == 0) return 0;
    const double h = static_cast<double>(height.total()), nodes = static_cast<double>(n - 1);
    const auto first_order = [=](double f) { return std::sqrt(2 * std::log(2 / f) * h) * u; };
    const double certainly = h * u <= 0.5 ? std::pow(1 + u, h - 1) : unbounded_error;
    const double probably = 1 + probable_gamma(h, u, nodes, failing / 2);
    return std::min(first_order(failing) * certainly, first_order(failing / 2) * probably) * magnitudes;
  }
};

}  // namespace samesum
