/// Maps segments to the slots of their leaves, and slots to segments; divides slots among warps.
#pragma once

#include <algorithm>
#include <bit>

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/call/layout.hpp"

namespace samesum::gpu {

/// Slot of the first leaf of segment o. Leaf k has slot (offsets[o] - offsets[0]) / leaf + o + k, so that no
/// leaves need to be counted.
template <std::size_t leaf> __device__ std::size_t first_slot(const Layout& l, std::size_t o) {
  return static_cast<std::size_t>(l.offsets[o] - l.offsets[0]) / leaf + o;
}
/// Number of slots of segments that hold so many elements, or fewer.
inline std::size_t count_slots(const Layout& l, std::size_t elements, std::size_t leaf) {
  return elements / leaf + l.outer;
}

/// Index of the state of the first leaf of segment o, if it has more than one leaf: others need no state. Two
/// states for every `leaf` elements suffice: a segment of x > 1 times `leaf` elements has at most floor(2x)
/// leaves.
template <std::size_t leaf> __device__ std::size_t first_state(const Layout& l, std::size_t o) {
  return static_cast<std::size_t>(l.offsets[o] - l.offsets[0]) * 2 / leaf;
}
/// Number of the states of segments that hold so many elements, or fewer.
inline std::size_t count_segment_states(std::size_t elements, std::size_t leaf) {
  return elements > leaf ? elements * 2 / leaf + 1 : 0;
}
/// Returns the segment of a slot: the last one whose first slot is not above it.
template <class Shape> __device__ std::size_t segment_of(const Layout& l, std::size_t slot) {
  std::size_t low = 0, high = l.outer - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (first_slot<Shape::leaf>(l, middle) <= slot)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// The part of a row, or the leaf of a segment, that has a slot.
struct RowPart {
  std::size_t row = 0, part = 0, n = 0;  ///< row, index of the part in it, and number of elements of the row
  bool exists = false;

  /// The leaf of a slot of that segment. It does not exist if the segment has fewer leaves, or fewer than
  /// `least` elements.
  template <class Shape>
  __device__ static RowPart of_slot(const Layout& l, std::size_t slot, std::size_t segment,
                                    std::size_t least) {
    RowPart leaf{segment, slot - first_slot<Shape::leaf>(l, segment), l.length(segment)};
    leaf.exists = (leaf.part == 0 || leaf.part * Shape::leaf < leaf.n) && leaf.n >= least;
    return leaf;
  }
  /// The part of thread t. All threads of the warp call it.
  __device__ RowPart of_thread(int t) const {
    return {__shfl_sync(whole_warp, row, t), __shfl_sync(whole_warp, part, t), __shfl_sync(whole_warp, n, t),
            true};
  }
};

/// Leaves of a segment that one thread merges: a block would merge one short segment after another.
inline constexpr std::size_t most_leaves_of_thread = 8;

/// Returns the number of slots per warp, at most `most`. It is small enough that the warps occupy the GPU,
/// and that each has at most about 8192 of the elements.
inline int slots_per_warp(std::size_t slots, std::size_t elements, std::size_t most) {
  constexpr std::size_t enough_warps = 8192, most_elements = 8192;
  const std::size_t of_slot = std::max<std::size_t>(elements / std::max<std::size_t>(slots, 1), 1);
  return static_cast<int>(
      std::clamp<std::size_t>(std::min(slots / enough_warps, most_elements / of_slot), 1, most));
}

/// The most elements of a short segment, a power of two, if a kernel for short segments is worth its launch,
/// else 0: those of the longest segment if that is known (not 0), or twice the mean length if there are many
/// segments; at most `most`.
inline std::size_t longest_short_segment(const Layout& l, std::size_t elements, std::size_t known,
                                         std::size_t most) {
  constexpr std::size_t many = 256, least = 16;
  if (known > 0 && known <= most) return std::max(std::bit_ceil(known), least);
  if (l.outer < many) return 0;
  const std::size_t longest = std::max(std::bit_ceil(2 * elements / l.outer + 1), least);
  return longest <= most ? longest : 0;
}

}  // namespace samesum::gpu
