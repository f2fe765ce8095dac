/// Loops over the rows of one key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samesum::cpu {

/// Rows of one key: `count` rows of `inner` elements of one format, at any places of an array.
struct RowsOfKey {
  static constexpr std::size_t ahead = 4;   ///< this many indices behind the last one are read
  static constexpr std::size_t least = 16;  ///< smallest `inner`
  const void* x;
  const std::uint32_t* index;  ///< the row of x
  std::size_t count, inner;
};

/// How elements are rounded to integers.
struct GridOfRows {
  double scale;         ///< an element x becomes x·scale, which must not underflow unless it is below 1/2
  std::uint64_t limit;  ///< bit pattern of the number that |x| must stay below
  bool few;             ///< whether the integers have up to 2^51, else 2^62
  bool exactly;         ///< whether no rounding may change a number; then no x·scale may underflow
};
/// Writes the sums of the columns of these rows, of elements rounded to integers. Returns false, and the sums
/// are not valid, if an element reaches the limit or, with `exactly`, is not an integer.
using SumUnitRows = bool (*)(const RowsOfKey& rows, const GridOfRows& grid, std::int64_t* sums);
/// Writes n sums of units as numbers sum·unit of one format, each rounded once; `unit` is a power of two. Of
/// a format of 32 or 64 bits no result may be subnormal or infinite. A negative number that rounds to zero
/// becomes -0 if `signed_zero`.
using RoundUnits = void (*)(const std::int64_t* sums, std::size_t n, double unit, bool signed_zero,
                            void* out);
/// Writes the sums of columns of rows of one format, which are added in turn to `held`; if that is null, to
/// no elements. NaN becomes the canonical one.
using SumRowsInTurn = void (*)(const RowsOfKey& rows, const void* held, void* sums);
/// Adds n rows of `inner` elements each to a table, row r to the words from place[r] on. An element x becomes
/// the integer nearest to x·scale, ties to even, of up to 2^51 if `few`, else 2^62; no x·scale may underflow,
/// unless it is below 1/2.
using AddUnitRows = void (*)(const void* x, const std::size_t* place, std::size_t n, std::size_t inner,
                             double scale, bool few, std::int64_t* table);

}  // namespace samesum::cpu
