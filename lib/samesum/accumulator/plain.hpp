#pragma once

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
};

}  // namespace samesum
