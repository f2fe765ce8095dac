#pragma once

#include "samesum/order/tree.hpp"

namespace samesum {

/// The canonical tree of WG21 P4016R0 (2026): element i goes to lane i mod Lanes; each lane is reduced by
/// pairing neighbours again and again, and then the lanes likewise. Of an odd number the last moves up
/// unchanged. Across lanes Tree halves instead: this order has other bits.
template <std::size_t Lanes> struct CanonicalTree {
  static constexpr std::size_t lanes = Lanes, leaf = unbounded;
  static constexpr std::size_t leaves(std::size_t n) { return n == 0 ? 0 : 1; }
};

template <std::size_t Lanes> struct Canonical {
  static constexpr Promise promise = Promise::everywhere;
  using Shape = CanonicalTree<Lanes>;
  static constexpr std::string_view refusal(std::string_view backend) {
    return backend == "cuda" ? "no kernel combines lanes by neighbours" : "";
  }
  static constexpr Height height(std::size_t n) {
    return {0, n == 0 ? 0 : ceil_log2((n - 1) / Lanes + 1) + ceil_log2(std::min(n, Lanes))};
  }
  static std::string height_formula() {
    return "ceil(log2(n / " + std::to_string(Lanes) + ")) + " + std::to_string(ceil_log2(Lanes));
  }
};
struct Canonical16 : Canonical<16> {
  static constexpr std::string_view name = "canonical16";
};
struct Canonical128 : Canonical<128> {
  static constexpr std::string_view name = "canonical128";
};

}  // namespace samesum
