/// Loops over integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/base/type_list.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum::cpu {

/// Types of integers that have loops. Booleans are those of 8 bits.
using IntegerTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                              std::uint16_t, std::uint32_t, std::uint64_t>;
/// Rows of `count` neighbouring integers.
struct IntegerRows {
  const void* x;
  std::ptrdiff_t pitch;  ///< integers between rows
  std::size_t rows, count;
};
/// The loops over integers of one type.
struct IntegerLoops {
  /// Returns the sum of n < 2^32 integers.
  Int128 (*sum)(const void* x, std::size_t n);
  /// Adds the columns of fewer than 2^32 rows to the sums.
  void (*sum_columns)(const IntegerRows& rows, Int128* sums);
  /// Replaces `best` by the largest, or [1] smallest, of it and n integers. The next one does so for each
  /// column.
  void (*extremum[2])(const void* x, std::size_t n, void* best);
  void (*extremum_columns[2])(const IntegerRows& rows, void* best);
  /// Returns the index of the first of n integers that equals `value`; n if there is none.
  std::size_t (*find)(const void* x, std::size_t n, const void* value);
  /// Copies n integers, with `stand_in` in place of those whose flag is 0.
  void (*keep)(const void* x, const std::uint8_t* where, std::size_t n, const void* stand_in, void* out);
};

}  // namespace samesum::cpu
