/// Loops of rolling operations.
#pragma once

#include <cstddef>

#include "samesum/operation/rolling.hpp"

namespace samesum::cpu {

/// Moves a window over elements, from the first on, and returns how many it has moved: it stops before a
/// block with elements that are not finite, or with sums that two words cannot hold. Each move adds an
/// element of `entering` to the sum, which has two words, and subtracts one of `leaving`. Writes the sum
/// after each move as a rounded number, `high`, and what that lacks, `low`, each in memory for n numbers,
/// rounded up to a multiple of 8; and rounded once to fp32, unless `narrow` is null.
using RollExactly = std::size_t (*)(const double* entering, const double* leaving, std::size_t n,
                                    double (&sum)[2], double* high, double* low, float* narrow);
/// Returns whether one of n numbers is -0, infinite or NaN.
using HasSpecial = bool (*)(const double* x, std::size_t n);

/// Sums of elements, and of their squares (for variances) or magnitudes, in three words each.
struct RolledSums {
  double sum[3] = {}, more[3] = {};
};
/// A window that moves over elements without a subtraction (van Herk 1992): a chunk has as many elements as
/// a window, which is the end of a chunk and the beginning of the next one. A chunk consists of units.
struct RolledWindow {
  static constexpr std::size_t most_in_unit = 256, short_window = 16;

  std::size_t size;       ///< elements per window
  std::size_t unit;       ///< elements per unit, but for the last one of a chunk
  double scale = 1;       ///< a power of two, by which elements are multiplied
  std::size_t place = 0;  ///< elements of this chunk that have entered
  RolledSums chunk{};     ///< of these elements
  RolledSums of_unit{};   ///< of those in their last unit, unless it is whole
  /// For each unit of this chunk that is whole, its sums; for all others, those of the units of the last
  /// chunk that follow theirs.
  RolledSums* units;
  double last[short_window] = {};  ///< the last elements; of short windows nothing else is used
};
/// Some moves of such a window: up to the end of a unit of it, or fewer. So far `leaving` can be read; of a
/// window of one unit there may be moves up to the end of several chunks.
struct RolledMoves {
  RollingKind kind;  ///< sum, mean or variance
  const double *entering, *leaving;
  std::size_t n;
  /// The divisor of each result, its reciprocal, and the number of elements: in turn, or, without `vary`, 8
  /// times the same. Not used for sums.
  const double *divisor, *share, *count;
  bool vary;
  bool to_odd;  ///< whether bounds are rounded to odd; otherwise to nearest
};
/// Moves a window. Writes bounds of each result, unless `lower` is null. Returns whether all pairs of bounds
/// are equal. Bounds that say nothing are NaN.
using RollInWords = bool (*)(const RolledMoves& moves, RolledWindow& window, double* lower, double* upper);
/// Divides the sums after some moves, high + low, in memory as RollExactly has it. Writes bounds of the
/// quotients, as RollInWords.
using RoundMeans = bool (*)(const RolledMoves& moves, const double* high, const double* low, double* lower,
                            double* upper);

}  // namespace samesum::cpu
