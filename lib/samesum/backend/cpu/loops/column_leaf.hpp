/// One leaf of neighbouring columns.
#pragma once

#include <cstddef>

#include "samesum/bound/height.hpp"

namespace samesum::cpu {

/// The place of the elements of `count` columns of `n` rows.
struct ColumnLeaf {
  /// Columns that are reduced side by side. On the CPUs that were measured, parts of rows of 512 bytes are
  /// read fastest.
  static constexpr std::size_t least = 16, most = 128, row_bytes = 512;
  const void *x, *y;  ///< the first elements; y is null for one input
  std::size_t pitch;  ///< elements between rows
  std::size_t n, count;

  /// Whether the rows follow one another, as hardware prefetchers detect, or are all the same row.
  constexpr bool is_contiguous() const { return pitch <= count; }
  /// Room for the states of all lanes, in packs of up to `least` columns, and for those that wait if the rows
  /// of a lane are merged by pairs.
  template <class Shape> constexpr std::size_t scratch_states() const {
    const std::size_t whole_packs = (count + least - 1) / least * least;
    if (n <= Shape::lanes) return whole_packs * n;
    return whole_packs * Shape::lanes * (Shape::in_turn ? 1 : ceil_log2(Shape::rows) + 1);
  }
};

}  // namespace samesum::cpu
