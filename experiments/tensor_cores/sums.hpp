/// Sums by matrix units: elements of fp16 or bf16 times ones, with results in fp32. The order as an
/// executable definition, its error bound, and how kernels divide the work.
///
/// Vectors, rows and columns have the same order. A tile is 128 consecutive elements, the last one padded
/// with zeros. Eight instructions sum a tile: each adds 16 products and the result of the one before, the
/// first adds to 0. Of each 32 consecutive elements, the first instruction adds those of the quadruples 0, 2,
/// 4 and 6, the second those of the others. An instruction is the model in fused_sum.hpp, in which the order
/// of its products does not matter. The sums of eight consecutive tiles are added in sequence in fp32, so
/// are eight of these sums, and so on until one is left.
///
/// So the bits depend on the elements and on n alone, on every machine whose matrix unit is this model.
///
/// Error bound. Let u = 2^-24, the unit roundoff of fp32, and let T be the sum of |x| over all elements.
///
/// The instruction cuts all terms, and then their sum, towards zero. So |c| <= A for its result c, where
/// A <= T is the sum of |x| over its elements and those of the instructions before it in the tile: errors
/// make no result larger. Let 2^e be the power of two to which the instruction aligns its 17 terms. The term
/// with the exponent e loses nothing, and each of the other 16 less than 2^(e-25). If a term loses a bit,
/// then a term is 2^e or more in magnitude, and 2^e <= A: elements are multiples of 2^-24 in fp16 and of
/// 2^-133 in bf16, and so are all sums of them. An alignment to a subnormal element or to the smallest
/// exponent of the model keeps bits down to 2^-39 and 2^-151, so that it loses nothing. Hence cutting the
/// terms costs less than 16 2^(e-25) <= 8uA, and cutting the sum to 24 bits less than 2uA; a subnormal sum
/// keeps all its bits. L instructions err by less than 10Lu times the sum of |x| over their tile, and all
/// tiles together by less than 10LuT.
///
/// The magnitudes of the sums of tiles add up to at most T, so h additions in fp32 on the longest path cost
/// at most γ_h T with γ_h = hu / (1 - hu) (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
/// §4.2; sums that are subnormal are exact). Hence |result - sum| <= (10Lu + γ_h) T. This holds if
/// (1 + γ_h) T does not overflow fp32, since no intermediate magnitude is larger. Sums of fp16 do not
/// overflow for n <= 2^111.
///
/// The bound is tight within a factor of 2: in fp16, 127 elements just below 2^-14 after 2^11 are lost, which
/// is 63u of the sum, and the bound is 80u.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "samesum/accumulator/fused_sum.hpp"
#include "samesum/bound/bound.hpp"

namespace samesum::tensor_cores {

// --- the order ---------------------------------------------------------------------------------------

constexpr std::size_t of_instruction = 16, of_step = 32, of_tile = 128;  ///< elements
constexpr int steps_of_tile = 4, instructions_of_tile = 8;
constexpr std::size_t arity = 8;  ///< sums that are added in sequence

/// Number of parts of m things with at most `most` in each, at least one part.
SAMESUM_HD constexpr std::size_t parts_of(std::size_t m, std::size_t most) {
  return m == 0 ? 1 : (m - 1) / most + 1;
}

/// Number, in a tile, of the instruction that adds element i of the tile.
SAMESUM_HD constexpr int instruction_of(std::size_t i) { return int(i / of_step * 2 + i / 4 % 2); }

/// Facts about the matrix unit and a format of elements.
template <class T> struct UnitInput;
template <> struct UnitInput<fp16> {
  using Element = element::fp16;
  static constexpr std::uint32_t two_ones = 0x3c003c00;
  static constexpr FusedSum model{};
};
template <> struct UnitInput<bf16> {
  using Element = element::bf16;
  static constexpr std::uint32_t two_ones = 0x3f803f80;
  static constexpr FusedSum model{.keeps_sign_of_underflow = false};
};

/// Adds up to 16 elements to c as one instruction does.
template <class T> float add_by_unit(float c, std::span<const T> x) {
  std::uint32_t words[8] = {}, ones[8];
  for (std::size_t i = 0; i < x.size(); ++i) words[i / 2] |= std::uint32_t(x[i].bits) << (i % 2 * 16);
  std::ranges::fill(ones, UnitInput<T>::two_ones);
  return from_bits<float>(fused_dot<typename UnitInput<T>::Element, float, int{of_instruction}>(
      words, ones, to_bits(c), UnitInput<T>::model));
}

/// Sums up to 128 elements.
template <class T> float tile_sum_by_unit(std::span<const T> x) {
  float sum = 0;
  for (int instruction = 0; instruction < instructions_of_tile; ++instruction) {
    T chosen[of_instruction];
    std::size_t n = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (instruction_of(i) == instruction) chosen[n++] = x[i];
    if (n > 0) sum = add_by_unit(sum, std::span<const T>{chosen, n});
  }
  return sum;
}

/// The definition: the sum of x in the order above. NaN is returned as the matrix unit writes it.
template <class T> float sum_by_unit_model(std::span<const T> x) {
  std::vector<float> sums;
  for (std::size_t at = 0; at < x.size(); at += of_tile)
    sums.push_back(tile_sum_by_unit(x.subspan(at, std::min(of_tile, x.size() - at))));
  while (sums.size() > 1) {
    std::vector<float> added(parts_of(sums.size(), arity));
    for (std::size_t k = 0; k < sums.size(); ++k) added[k / arity] += sums[k];
    sums = std::move(added);
  }
  if (sums.empty()) return 0;
  return sums[0] == sums[0] ? sums[0] : from_bits<float>(FusedSum{}.nan);
}

/// Largest |result - sum| / sum of |x| for n elements, from the proof above.
inline double unit_sum_bound(std::size_t n) {
  constexpr double u = 0x1p-24;
  const std::size_t chain =
      n <= 4 ? 1 : std::min<std::size_t>(2 * parts_of(n, of_step), instructions_of_tile);
  std::size_t additions = 0;
  for (std::size_t sums = parts_of(n, of_tile); sums > 1; sums = parts_of(sums, arity))
    additions += std::min(sums, arity) - 1;
  return rounded_up(10 * static_cast<double>(chain) * u + gamma(static_cast<double>(additions), u));
}

// --- how kernels divide the work ------------------------------------------------------------------------

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
