/// Orders that combine neighbours only: the rows of each lane, then the lanes.
#pragma once

#include "samesum/order/tree.hpp"

namespace samesum {

/// The canonical tree of WG21 P4016R0 (2026). Element i goes to lane i mod Lanes. The rows of each lane, and
/// then the lanes, are reduced by combining neighbours level by level. If their number is odd, the last one
/// moves up unchanged. The bits differ from those of Tree, which combines lanes by halving.
template <std::size_t Lanes> struct CanonicalTree {
  static constexpr std::size_t lanes = Lanes, leaf = unbounded;
  static constexpr std::size_t leaves(std::size_t n) { return n == 0 ? 0 : 1; }
};

/// The order of a canonical tree.
template <std::size_t Lanes> struct Canonical {
  static constexpr Promise promise = Promise::everywhere;
  using Shape = CanonicalTree<Lanes>;
  static constexpr std::string_view refusal(std::string_view backend) {
    return backend == "cuda" ? "this order has no GPU kernel" : "";
  }
  static constexpr Height height(std::size_t n) {
    return {0, n == 0 ? 0 : ceil_log2((n - 1) / Lanes + 1) + ceil_log2(std::min(n, Lanes))};
  }
  static std::string height_formula() {
    return "ceil(log2(n / " + std::to_string(Lanes) + ")) + " + std::to_string(ceil_log2(Lanes));
  }
};
/// The canonical tree with 16 lanes.
struct Canonical16 : Canonical<16> {
  static constexpr std::string_view name = "canonical16";
};
/// The canonical tree with 128 lanes.
struct Canonical128 : Canonical<128> {
  static constexpr std::string_view name = "canonical128";
};

}  // namespace samesum
