/// Where the leaves and subtrees of a range of elements begin and end.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace samesum {

/// A range ends before this element.
inline constexpr std::uint64_t most_elements = std::uint64_t{1} << 63;

/// Number of elements from `first` on to the next beginning of a leaf.
inline std::uint64_t distance_to_leaf(std::uint64_t first, std::uint64_t leaf) {
  const std::uint64_t used = first % leaf;
  return used == 0 ? 0 : leaf - used;
}

/// The largest subtree that begins at element `first`, a multiple of `leaf`, and ends at `end` or before.
inline std::uint64_t subtree_size(std::uint64_t first, std::uint64_t end, std::uint64_t leaf) {
  const std::uint64_t k = first / leaf, fits = std::bit_floor((end - first) / leaf);
  return leaf * (k == 0 ? fits : std::min(fits, k & (~k + 1)));
}

}  // namespace samesum
