/// Trees that are a function of n alone, and the orders made of them. reference.hpp defines their meaning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "samesum/bound/height.hpp"
#include "samesum/call/promise.hpp"

namespace samesum {

/// Row order in turn: ((row 0 + row 1) + row 2) + …
struct InTurn {};
/// Row order by pairs, that is by stride doubling: 0+1, 2+3, … then 0+2, 4+6, …
struct ByPairs {};

/// Value of the template parameter Rows for a tree that is a single leaf of any length.
inline constexpr std::size_t unbounded = SIZE_MAX;

/// A tree of leaves, lanes and rows.
///
/// The input is cut into leaves of Lanes × Rows elements; element i of a leaf goes to lane i mod Lanes. A
/// lane combines its rows by RowOrder. The lanes of a leaf are halved (lane l merges lane l + half) until one
/// is left. Leaves are merged by stride doubling. Lanes, rows and leaves without elements are skipped.
template <std::size_t Lanes, std::size_t Rows, class RowOrder> struct Tree {
  static_assert((Lanes & (Lanes - 1)) == 0,
                "samesum: lanes are halved, so their number must be a power of two");
  static constexpr std::size_t lanes = Lanes, rows = Rows;
  static constexpr std::size_t leaf = Rows == unbounded ? unbounded : Lanes * Rows;
  static constexpr bool in_turn = std::is_same_v<RowOrder, InTurn>;
  /// Whether only neighbours are combined, as reducers that are not commutative need.
  static constexpr bool combines_only_neighbours = Lanes == 1;
  static constexpr Promise promise = Promise::everywhere;
  using Shape = Tree;

  /// Number of leaves of n elements.
  static constexpr std::size_t leaves(std::size_t n) { return n == 0 ? 0 : (n - 1) / leaf + 1; }

  /// Height of the tree of n elements. The first lane of the first leaf has the most rows. The first element
  /// of a lane needs no addition.
  static constexpr Height height(std::size_t n) {
    const std::size_t first = std::min(n, leaf);
    const std::size_t full_rows = first == 0 ? 0 : (first - 1) / Lanes + 1;
    const std::size_t across = ceil_log2(std::min(n, Lanes)) + ceil_log2(leaves(n));
    if (full_rows == 0) return {};
    return in_turn ? Height{full_rows - 1, across} : Height{0, ceil_log2(full_rows) + across};
  }

  /// The height as a formula in n.
  static std::string height_formula() {
    if (Rows == unbounded && Lanes == 1) return "n - 1";
    const std::size_t within = in_turn ? Rows - 1 : ceil_log2(Rows);
    return std::to_string(within) + " + " + std::to_string(ceil_log2(Lanes)) + " + ceil(log2(n / " +
           std::to_string(leaf) + "))";
  }
};

// The numbers are frozen: changing one changes bits. In fp32, a row of 128 lanes is 16 bytes for each
// thread of a warp, or eight AVX-512 registers. 32 rows per leaf keep the memory busy.

/// Sequential order: the textbook loop.
struct Serial : Tree<1, unbounded, InTurn> {
  static constexpr std::string_view name = "serial";
};

/// The order of a thread-coarsened GPU kernel, as a function of n alone.
struct CoarsenedTree : Tree<128, 32, InTurn> {
  static constexpr std::string_view name = "tree";
};

/// Pairwise order: a tree of height ⌈log2 n⌉.
struct Pairwise : Tree<128, 32, ByPairs> {
  static constexpr std::string_view name = "pairwise";
};

/// Stride doubling over consecutive elements: in a + b, all elements of a precede those of b. For reducers
/// that are not commutative.
struct Blocked : Tree<1, 4096, ByPairs> {
  static constexpr std::string_view name = "blocked";
};

}  // namespace samesum
