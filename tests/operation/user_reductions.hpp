/// Custom reductions, as a user would write them.
#pragma once

#include "samesum/reducer.hpp"

namespace samesum::testing_support {

/// Finds the index of the first largest gap between neighbours of x.
struct LargestGap {
  static constexpr bool commutative = true;
  struct State {
    float gap;
    std::uint32_t at;
  };
  const float* x;
  std::uint64_t n;

  SAMESUM_HD State identity() const { return {-1, 0}; }
  SAMESUM_HD State map(float element, std::uint64_t i) const {
    if (i + 1 == n) return identity();
    const float gap = x[i + 1] - element;
    return {gap < 0 ? -gap : gap, static_cast<std::uint32_t>(i)};
  }
  SAMESUM_HD State combine(State a, State b) const {
    return b.gap > a.gap || (b.gap == a.gap && b.at < a.at) ? b : a;
  }
  SAMESUM_HD std::uint64_t finish(State s, std::uint64_t) const { return s.at; }
};

/// Polynomial hash Σ x_i·B^(n-1-i) modulo 2^64, which depends on the order of the elements.
struct PolynomialHash {
  static constexpr bool commutative = false;
  static constexpr std::uint64_t base = 0x9e3779b97f4a7c15u;
  struct State {
    std::uint64_t hash, power;
  };
  SAMESUM_HD State identity() const { return {0, 1}; }
  SAMESUM_HD State map(std::uint32_t x, std::uint64_t) const { return {x + std::uint64_t{1}, base}; }
  SAMESUM_HD State combine(State a, State b) const { return {a.hash * b.power + b.hash, a.power * b.power}; }
  SAMESUM_HD std::uint64_t finish(State s, std::uint64_t n) const { return s.hash ^ n; }
};

/// A sum with roundings, whose bits depend on the order.
struct RoundingSum {
  static constexpr bool commutative = true;
  using State = float;
  SAMESUM_HD float identity() const { return -0.0f; }
  SAMESUM_HD float map(float x, std::uint64_t) const { return x; }
  SAMESUM_HD float combine(float a, float b) const { return a + b; }
  SAMESUM_HD float finish(float s, std::uint64_t) const { return s; }
};

}  // namespace samesum::testing_support
