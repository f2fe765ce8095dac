/// How kernels divide the work of sums by matrix units, in the order of samesum/accumulator/hopper.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "samesum/accumulator/hopper.hpp"

namespace samesum::tensor_cores {

using namespace hopper;

/// Adds up to 64 sums in two levels of the order: sums 0 to 7, 8 to 15, and so on, then these eight. Sums
/// that are missing count as 0, which changes no bits.
template <class Sum> SAMESUM_HD constexpr float add_two_levels(std::size_t n, const Sum& sum) {
  float total = 0;
  for (std::size_t a = 0; a < arity * arity && a < n; a += arity) {
    float eight = 0;
    for (std::size_t b = a; b < a + arity; ++b) eight += b < n ? sum(b) : 0;
    total += eight;
  }
  return total;
}

/// First of the eight consecutive elements of a tile that a thread loads for a row in a step. Words 0 and 1
/// of them are for the first instruction of the step, words 2 and 3 for the second.
SAMESUM_HD constexpr std::size_t element_in_row(int step, int thread_of_four) {
  return std::size_t(step) * of_step + std::size_t(thread_of_four) * 8;
}

/// Element of a column in a tile that is number r < 4 of those that a thread holds for an instruction.
SAMESUM_HD constexpr std::size_t element_in_column(int instruction, int thread_of_four, int r) {
  return std::size_t(instruction) / 2 * of_step + std::size_t(thread_of_four) * 8 +
         std::size_t(instruction) % 2 * 4 + std::size_t(r);
}

/// Elements of one row, from `begin` to before `end`.
struct Slot {
  std::size_t row = 0, begin = 0, end = 0;
};

/// Division of rows over blocks. A warp sums 16 slots at once, each of up to 1 or 8 tiles of a row, and the
/// block adds up to 64 slots to the sum of a piece of a row. Neither the tiles of a slot nor the warps of a
/// block change bits. The constructor computes all that needs divisions.
struct RowWork {
  std::size_t outer, n;
  int tiles;              ///< of a slot that is in the row
  std::size_t slot_size;  ///< elements
  int log2_slots = 0;     ///< of a piece
  std::size_t pieces;     ///< of a row
  int pieces_of_block;
  std::size_t blocks;

  /// `tiles_of_slot` is 1 or 8, `warps` is 4 or 8.
  constexpr RowWork(std::size_t rows, std::size_t elements, int tiles_of_slot, int warps)
      : outer{rows},
        n{elements},
        tiles{int(std::min(std::size_t(tiles_of_slot), parts_of(n, of_tile)))},
        slot_size{std::size_t(tiles_of_slot) * of_tile} {
    while (slots() < int(arity * arity) && std::size_t(slots()) * slot_size < n) ++log2_slots;
    pieces = parts_of(n, std::size_t(slots()) * slot_size);
    pieces_of_block = 16 * warps / slots();
    blocks = parts_of(all_pieces(), std::size_t(pieces_of_block));
  }
  SAMESUM_HD constexpr int slots() const { return 1 << log2_slots; }
  SAMESUM_HD constexpr std::size_t all_pieces() const { return outer * pieces; }
  /// Slot i of a block; empty if the rows have fewer.
  SAMESUM_HD constexpr Slot slot(std::size_t block, int i) const {
    const std::size_t piece = block * std::size_t(pieces_of_block) + std::size_t(i >> log2_slots);
    const std::size_t row = pieces == 1 ? piece : piece / pieces;
    const std::size_t of_row = ((piece - row * pieces) << log2_slots) + std::size_t(i & (slots() - 1));
    const std::size_t begin = of_row * slot_size;
    if (row >= outer || begin >= n) return {};
    return {row, begin, begin + slot_size < n ? begin + slot_size : n};
  }
};

/// Division of columns over blocks: a block sums 8 tiles of 64 columns.
struct ColumnWork {
  static constexpr std::size_t columns = 64;
  std::size_t n, inner;
  std::uint32_t groups;  ///< of columns
  std::uint32_t pieces;  ///< of a column
  std::size_t blocks;

  constexpr ColumnWork(std::size_t outer, std::size_t elements, std::size_t width)
      : n{elements},
        inner{width},
        groups{std::uint32_t(parts_of(inner, columns))},
        pieces{std::uint32_t(parts_of(n, arity * of_tile))},
        blocks{outer * pieces * groups} {}
  struct Place {
    std::size_t array, piece, first_column;
  };
  SAMESUM_HD constexpr Place place(std::uint32_t block) const {
    return {block / groups / pieces, block / groups % pieces, block % groups * columns};
  }
};

/// Division of the sums of pieces over threads: each adds up to 64 of outer × n × inner sums.
struct SumWork {
  std::size_t outer, n, inner, parts = parts_of(n, arity*arity);
  struct Sums {
    std::size_t first, n, stride;
  };
  SAMESUM_HD constexpr std::size_t size() const { return outer * parts * inner; }
  SAMESUM_HD constexpr Sums sums(std::size_t at) const {
    const std::size_t array = at / inner / parts, first = at / inner % parts * (arity * arity);
    const std::size_t left = n - first;
    return {(array * n + first) * inner + at % inner, left < arity * arity ? left : arity * arity, inner};
  }
};

}  // namespace samesum::tensor_cores
