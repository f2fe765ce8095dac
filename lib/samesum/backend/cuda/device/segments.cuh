/// Maps segments to the slots of their leaves, and slots to segments.
#pragma once

#include "samesum/call/layout.hpp"

namespace samesum::gpu {

/// Slot of the first leaf of segment o. Leaf k has slot (offsets[o] - offsets[0]) / leaf + o + k, so that no
/// leaves need to be counted.
template <std::size_t leaf> __device__ std::size_t first_slot(const Layout& l, std::size_t o) {
  return static_cast<std::size_t>(l.offsets[o] - l.offsets[0]) / leaf + o;
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

}  // namespace samesum::gpu
