/// The layout of a batch: where the elements of each reduction lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "samesum/base/config.hpp"

namespace samesum {

/// A batch of reductions over one array. All counts and strides are in elements.
///
/// There are `outer` × `inner` results, stored in that order without gaps. Result (o, i) reduces the elements
/// o·outer_stride + k·stride + i for 0 <= k < n: one axis of a C-ordered array. A stride of 0 repeats an
/// element n times, as broadcasting does, and an outer_stride of 0 repeats results.
///
/// With `offsets` the batch consists of segments, like the rows of a sparse matrix in CSR form: result o
/// reduces the elements from offsets[o] up to but not including offsets[o + 1]. Then `inner` must be 1, and
/// `n` and the strides are ignored.
struct Layout {
  std::size_t outer = 1, n = 0, inner = 1;
  std::size_t outer_stride = 0, stride = 1;
  const std::uint64_t* offsets = nullptr;

  /// One reduction of n contiguous elements.
  static constexpr Layout vector(std::size_t n) { return {1, n, 1, n, 1, nullptr}; }
  /// One reduction for each row of a matrix whose rows begin `row_stride` elements apart.
  static constexpr Layout rows(std::size_t rows, std::size_t columns, std::size_t row_stride) {
    return {rows, columns, 1, row_stride, 1, nullptr};
  }
  /// One reduction for each row of a contiguous matrix.
  static constexpr Layout rows(std::size_t rows, std::size_t columns) {
    return Layout::rows(rows, columns, columns);
  }
  /// One reduction for each pair (o, i), along the middle axis of a C-ordered array of shape
  /// outer × n × inner. axis(1, rows, columns) reduces each column of a matrix.
  static constexpr Layout axis(std::size_t outer, std::size_t n, std::size_t inner) {
    return {outer, n, inner, n * inner, inner, nullptr};
  }
  /// One reduction for each of `count` segments. `offsets` points to count + 1 offsets that never decrease;
  /// they are not copied.
  /// @throws std::invalid_argument if offsets is null.
  static constexpr Layout segments(const std::uint64_t* offsets, std::size_t count) {
    if (offsets == nullptr)
      throw std::invalid_argument("samesum: Layout::segments: offsets is null; pass count + 1 offsets");
    return {count, 0, 1, 0, 1, offsets};
  }

  /// Number of results.
  SAMESUM_HD constexpr std::size_t results() const { return outer * inner; }
  /// Number of elements of each result (o, ·).
  SAMESUM_HD constexpr std::size_t length(std::size_t o) const {
    return offsets ? static_cast<std::size_t>(offsets[o + 1] - offsets[o]) : n;
  }
  /// Index of the first element of result (o, 0).
  SAMESUM_HD constexpr std::size_t first(std::size_t o) const {
    return offsets ? static_cast<std::size_t>(offsets[o]) : o * outer_stride;
  }
};

/// Returns the layout with a fixed value in each field that it does not use, so that backends need no special
/// cases. Segments are contiguous. A layout without results has `outer` = 0, so that no loop counts vectors
/// that do not exist. A layout without elements has no stride between its results, and one of single elements
/// none between elements, since an address computed from it could lie outside the array.
constexpr Layout normalised(Layout layout) {
  if (layout.offsets != nullptr) return Layout::segments(layout.offsets, layout.outer);
  if (layout.inner == 0) layout.outer = 0;
  if (layout.n == 0) layout.outer_stride = 0;
  if (layout.n <= 1) layout.stride = layout.inner;
  return layout;
}

/// Whether the layout is one vector of contiguous elements.
constexpr bool is_vector(const Layout& l) {
  return l.outer == 1 && l.inner == 1 && l.stride == 1 && l.offsets == nullptr;
}

}  // namespace samesum
