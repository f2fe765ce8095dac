/// One leaf of neighbouring columns.
#pragma once

#include <cstddef>

namespace samesum::cpu {

/// Where the elements lie: `count` columns of `n` rows.
struct ColumnLeaf {
  /// Columns that are reduced side by side. On the CPUs that were measured, parts of rows of 512 bytes are
  /// read fastest.
  static constexpr std::size_t least = 16, most = 128, row_bytes = 512;
  const void *x, *y;  ///< the first elements; y is null for one input
  std::size_t pitch;  ///< elements between rows
  std::size_t n, count;
};

}  // namespace samesum::cpu
