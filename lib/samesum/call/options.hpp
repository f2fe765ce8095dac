/// Options of a call.
#pragma once

#include <optional>

#include "samesum/format/formats.hpp"

namespace samesum {

/// Options of a call. `threads` never changes the bits of a method that promises `everywhere`.
struct Options {
  /// 0: one thread per 2^17 elements, at most one per processor. A positive number is a limit: there are
  /// never more threads than pieces of work, nor more than four per processor. Threads come from a pool that
  /// lives as long as the process. Backends without threads ignore this option.
  int threads = 0;
  double ddof = 0;  ///< for moments: the divisor of the sum of squares is n - ddof; 1 for a sample
  /// For scans: result i is that of the first i elements, without element i. Result 0 is the one for no
  /// elements.
  bool exclusive = false;
  /// For the accumulator fixed_point: terms are rounded to multiples of 2^grid. If it is not given, each
  /// result has the finest grid on which no sum of n terms as large as its largest one can overflow: its bits
  /// then depend on its own elements alone. A scan has one grid for each vector, found from all its elements:
  /// a result then depends on the elements behind it, too. By key, there is one grid, found from all elements
  /// and the number of keys: the bits of a result then depend on the elements of other keys.
  std::optional<int> grid = {};
  /// For sums, counts and extrema by key: each result is combined with the number that `out` holds, which
  /// counts as one more element, before the others. A key without elements leaves its number as it is.
  bool combine = false;
};
/// Limits of Options::grid: below each product of two numbers, and above it.
inline constexpr int lowest_grid = 2 * Format<fp64>::min_quantum,
                     highest_grid = 2 * (Format<fp64>::max_exponent + 1);

}  // namespace samesum
