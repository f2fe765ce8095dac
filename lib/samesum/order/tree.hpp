/// Orders that are a function of n alone. See reading.hpp for their meaning, word for word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "samesum/base/promise.hpp"
#include "samesum/bound/height.hpp"

namespace samesum {

/// How a lane combines its rows.
struct InTurn {};   ///< ((row 0 + row 1) + row 2) + …
struct ByPairs {};  ///< by stride doubling: 0+1, 2+3, … then 0+2, 4+6, …

inline constexpr std::size_t unbounded = SIZE_MAX;

/// The input is cut into leaves of Lanes × Rows elements; element i of a leaf goes to lane i mod Lanes. A
/// lane combines its rows by RowOrder; the lanes of a leaf are halved (lane l takes lane l + half) until one
/// is left; leaves are merged by stride doubling. What has no element is skipped.
template <std::size_t Lanes, std::size_t Rows, class RowOrder> struct Tree {
  static_assert((Lanes & (Lanes - 1)) == 0, "samesum: lanes are halved, so their number is a power of two");
  static constexpr std::size_t lanes = Lanes, rows = Rows;
  static constexpr std::size_t leaf = Rows == unbounded ? unbounded : Lanes * Rows;
  static constexpr bool in_turn = std::is_same_v<RowOrder, InTurn>;
  static constexpr bool joins_neighbours = Lanes == 1;  ///< and nothing else: for what is not commutative
  static constexpr Promise promise = Promise::everywhere;
  using Shape = Tree;

  static constexpr std::size_t leaves(std::size_t n) { return n == 0 ? 0 : (n - 1) / leaf + 1; }

  /// The first leaf is the fullest, and its first lane. The first element of a lane is taken as it is.
  static constexpr Height height(std::size_t n) {
    const std::size_t first = std::min(n, leaf);
    const std::size_t full_rows = first == 0 ? 0 : (first - 1) / Lanes + 1;
    const std::size_t across = ceil_log2(std::min(n, Lanes)) + ceil_log2(leaves(n));
    if (full_rows == 0) return {};
    return in_turn ? Height{full_rows - 1, across} : Height{0, ceil_log2(full_rows) + across};
  }

  static std::string height_formula() {
    if (Rows == unbounded && Lanes == 1) return "n - 1";
    const std::size_t within = in_turn ? Rows - 1 : ceil_log2(Rows);
    return std::to_string(within) + " + " + std::to_string(ceil_log2(Lanes)) + " + ceil(log2(n / " +
           std::to_string(leaf) + "))";
  }
};

// The numbers are frozen: a change of them changes bits. A leaf of 128 lanes is one warp of a GPU that reads
// 16 bytes a thread, and eight AVX-512 registers; 32 rows of it are what keeps memory busy.

/// The textbook loop.
struct Serial : Tree<1, unbounded, InTurn> {
  static constexpr std::string_view name = "serial";
};

/// What a thread-coarsened GPU kernel does, made a function of n.
struct CoarsenedTree : Tree<128, 32, InTurn> {
  static constexpr std::string_view name = "tree";
};

/// A tree of height ⌈log2 n⌉.
struct Pairwise : Tree<128, 32, ByPairs> {
  static constexpr std::string_view name = "pairwise";
};

/// Stride doubling over consecutive elements: a + b always has all elements of a before those of b. For
/// reductions whose combination is not commutative.
struct Blocked : Tree<1, 4096, ByPairs> {
  static constexpr std::string_view name = "blocked";
};

}  // namespace samesum
