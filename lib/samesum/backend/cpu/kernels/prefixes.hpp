/// Loops of scans, in the order prefix and exact.
#pragma once

#include <cstddef>

#include "samesum/backend/cpu/kernels/leaves.hpp"

namespace samesum::cpu {

/// Scans the first n <= 4096 elements of a tile of the order prefix, numbers of the carrier. Writes the state
/// of the n elements, and the result of each prefix, after `carry`, the state of the elements before the
/// tile; null if there are none. The last result of a whole tile is that of other merges: the caller replaces
/// it.
using ScanTile = void (*)(const void* x, std::size_t n, const void* carry, void* results, void* state);

/// Neighbouring columns of a tile of the order prefix.
struct ScannedColumns {
  const void* x;             ///< the first elements
  WriteTerms read;           ///< rounds elements to numbers of the carrier; null if they are such numbers
  std::size_t bytes, pitch;  ///< per element; elements between rows
  std::size_t n, count;      ///< rows, at most 4096, and columns
  const void* carry;         ///< the states of the columns before the tile; null if there are none
  void* out;                 ///< the results of the first row
  std::size_t out_pitch;     ///< results between rows
  void* exclusive;           ///< null, or the results of an exclusive scan for the first row
  void *scratch, *numbers;   ///< room for scratch_states per column, aligned, and for 4 rows of numbers
  void* states;              ///< where the states of the columns go, unless this is null
  static constexpr std::size_t pack =
      16;  ///< `scratch` and `numbers` have room for a multiple of these columns
  static constexpr std::size_t scratch_states = 17;
};
/// Writes the result of each prefix of each column, and its state. The last result of a whole tile is that of
/// other merges: the caller replaces it. In an exclusive scan the results of a row are written to the next
/// one, and those of the last row to `exclusive`.
using ScanColumns = void (*)(const ScannedColumns& columns);

/// Writes the exact prefix sums of elements, each rounded once to the format, from the first on, and returns
/// of how many: it stops before a block whose sums are unknown. `before` is the exact sum of the elements
/// before them, in two words, and becomes that of all; if `is_end`, it becomes nothing that is defined once
/// all elements are done. No result may be subnormal or too large.
using ScanExactly = std::size_t (*)(const void* x, std::size_t n, bool exclusive, bool is_end,
                                    double (&before)[2], void* out);

/// Writes the prefix sums of 1 to 4096 finite elements, each rounded once to the format, and the indices of
/// results that are not known, in ascending order, of which it returns the number. `before` is the sum of the
/// elements before them times 2^scale, but for less than 2^-104 of it, and 0 or at least 2^-900. Elements
/// that are doubles are multiplied by 2^scale, too, which must make them smaller than 2^900. For others the
/// scale is 0. `out` must not be x.
using ScanNearly = std::size_t (*)(const void* x, std::size_t n, bool exclusive, const double (&before)[2],
                                   int scale, void* out, std::uint16_t* unknown);

}  // namespace samesum::cpu
