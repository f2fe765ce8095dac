/// The height of a summation tree.
#pragma once

#include <bit>
#include <cstddef>

namespace samesum {

/// Operations on the longest path from an element to the result: first `add`s that round, then `merge`s.
struct Height {
  std::size_t adds = 0, merges = 0;
  /// Length of the path.
  constexpr std::size_t total() const { return adds + merges; }
};

/// ⌈log2 n⌉, and 0 for n = 0.
constexpr std::size_t ceil_log2(std::size_t n) {
  return n < 2 ? 0 : static_cast<std::size_t>(std::bit_width(n - 1));
}

}  // namespace samesum
