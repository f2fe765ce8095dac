/// Where the elements of each reduction lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "samesum/base/config.hpp"

namespace samesum {

/// A batch of reductions over one array, all counts in elements: `outer` × `inner` results, one after the
/// other in that order. Result (o, i) is of the elements o·outer_stride + k·stride + i for k < n: one axis of
/// a C-ordered array. With `offsets` it is of the elements from offsets[o] to before offsets[o + 1], and
/// `inner`, `n` and the strides mean nothing: segments, as the rows of a sparse matrix in CSR form.
struct Layout {
  std::size_t outer = 1, n = 0, inner = 1;
  std::size_t outer_stride = 0, stride = 1;
  const std::uint64_t* offsets = nullptr;

  /// One reduction of n elements.
  static constexpr Layout vector(std::size_t n) { return {1, n, 1, n, 1, nullptr}; }
  /// The last axis of rows × columns, rows `row_stride` elements apart.
  static constexpr Layout rows(std::size_t rows, std::size_t columns, std::size_t row_stride) {
    return {rows, columns, 1, row_stride, 1, nullptr};
  }
  static constexpr Layout rows(std::size_t rows, std::size_t columns) {
    return Layout::rows(rows, columns, columns);
  }
  /// The middle axis of outer × n × inner: the first axis of a matrix is axis(1, rows, columns).
  static constexpr Layout axis(std::size_t outer, std::size_t n, std::size_t inner) {
    return {outer, n, inner, n * inner, inner, nullptr};
  }
  /// `count` segments; there are count + 1 offsets, which never fall. Throws std::invalid_argument for null.
  static constexpr Layout segments(const std::uint64_t* offsets, std::size_t count) {
    if (offsets == nullptr)
      throw std::invalid_argument("samesum: Layout::segments: offsets is null; pass count + 1 offsets");
    return {count, 0, 1, 0, 1, offsets};
  }

  SAMESUM_HD constexpr std::size_t results() const { return outer * inner; }
  /// How many elements result (o, ·) has, and where its first one lies.
  SAMESUM_HD constexpr std::size_t length(std::size_t o) const {
    return offsets ? static_cast<std::size_t>(offsets[o + 1] - offsets[o]) : n;
  }
  SAMESUM_HD constexpr std::size_t first(std::size_t o) const {
    return offsets ? static_cast<std::size_t>(offsets[o]) : o * outer_stride;
  }
};

}  // namespace samesum
