/// Sums in the canonical order, on one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "samesum/order/canonical.hpp"
#include "samesum/order/reference.hpp"

namespace samesum::cpu {

/// Merges rows of lanes pairwise and depth first: the tree of stride doubling splits its rows at the largest
/// power of two below their number. One row per level of the tree waits on the stack.
template <std::size_t lanes, class A, class At> class CanonicalRows {
 public:
  using Row = std::array<A, lanes>;
  CanonicalRows(std::size_t n, At at) : n_{n}, at_{at} {}

  Row sum(std::size_t first, std::size_t rows) const {
    Row left{};
    if (rows == 1) {
      for (std::size_t l = 0; l < members(first); ++l) left[l].add(at_(first * lanes + l));
      return left;
    }
    const std::size_t half = std::bit_floor(rows - 1);
    left = sum(first, half);
    const Row right = sum(first + half, rows - half);
    // Only the last row may be short. Lanes without an element in the right half skip the merge.
    for (std::size_t l = 0; l < members(first + half); ++l) left[l].merge(right[l]);
    return left;
  }

 private:
  std::size_t members(std::size_t row) const { return std::min(n_ - row * lanes, lanes); }

  std::size_t n_;
  At at_;
};

template <std::size_t lanes, class A, class At> std::optional<A> sum_canonical(std::size_t n, At at) {
  if (n == 0) return std::nullopt;
  auto all = CanonicalRows<lanes, A, At>{n, at}.sum(0, (n - 1) / lanes + 1);
  return merge_by_stride_doubling(std::span{all}.first(std::min(n, lanes)));
}

}  // namespace samesum::cpu
