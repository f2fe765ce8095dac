/// Loops of sums on a grid: elements are rounded to integers and added.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/backend/cpu/kernels/leaves.hpp"

namespace samesum::cpu {

/// Returns the largest bit pattern of |x| among n numbers: at least that of infinity if one is not finite.
using LargestMagnitude = std::uint64_t (*)(const double* x, std::size_t n);
/// Rounds n <= 2048 numbers x·scale once to integers, to nearest, ties to even, and adds these to
/// sums[0] + sums[1]·2^50 + sums[2]·2^100, whose first `slices` are used: 1 for integers of up to 2^50, 2 up
/// to 2^100, and 3 up to 2^126. No x·scale may underflow, unless it is below 1/2. If `low` is not null, the
/// numbers are the unevaluated sums of x and `low`, of which x is the nearest double.
using AddSlices = void (*)(const double* x, const double* low, std::size_t n, double scale, int slices,
                           std::int64_t* sums);

/// Rounds each of n numbers of one format once to a multiple of 2^grid, to nearest, ties to even; the numbers
/// 2^(grid + p - 1) and 2^(grid + p), where p is the precision, must be normal.
using RoundToGrid = void (*)(void* x, std::size_t n, int grid);

/// Neighbouring columns whose elements, or terms, are summed on grids.
struct GridColumns {
  static constexpr std::size_t most = 32, rows = 64;  ///< columns, and rows per block
  const void *x, *y;                                  ///< the first elements; y is null for one input
  Term term;
  WriteTerms read;       ///< writes the terms as doubles; null if elements and magnitudes are read in place
  std::size_t count, n;  ///< columns, 1 to `most`, and rows, at least one
  std::size_t pitch, bytes;                 ///< elements between rows, and their size
  static constexpr int largest_grid = 900;  ///< and -900 the smallest: beyond, the sums are not known
  bool is_given;
  int grid;                ///< the grid of all columns, if it is given; otherwise each column finds its own
  int word_bits, quantum;  ///< see found_grid
  std::uint32_t* marks;    ///< room for a number per block
};
/// The sum of a column: exact[0] + exact[1] + exact[2], which are multiples of the grid, plus units[0] +
/// units[1]·2^50 + units[2]·2^100 units of it.
struct GridColumnSum {
  double exact[3];
  std::int64_t units[3];
  std::uint64_t largest;  ///< bits of the largest magnitude, in the format of the elements or terms
  int grid;
  bool known;     ///< false if an element is not finite or too large; then the sums are not valid
  bool is_exact;  ///< whether all units are 0
};
/// Writes the sum of each column.
using SumColumnsOnGrid = void (*)(const GridColumns& columns, GridColumnSum* out);

/// Rounds n <= 2048 numbers x·scale, of elements of one format, once to integers of up to 2^50, to nearest,
/// ties to even, and returns their sum. No x·scale may underflow, unless it is below 1/2.
using SumUnits = std::int64_t (*)(const void* x, std::size_t n, double scale);

/// Returns the largest bit pattern of |x| among n elements of one format, NaN and infinities included.
using LargestBits = std::uint64_t (*)(const void* x, std::size_t n);

}  // namespace samesum::cpu
