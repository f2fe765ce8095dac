/// The order whose prefixes are sums in the same order, and the walkers that visit these prefixes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "samesum/base/config.hpp"
#include "samesum/bound/height.hpp"
#include "samesum/call/promise.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {

/// A tree whose prefixes are trees of the same kind. reference.hpp defines its meaning.
///
/// The elements form runs of 4, rows of 32 runs, and tiles of 32 rows. Whole units come first: n elements are
/// whole tiles, then whole rows, then whole runs, then up to 3 elements. The elements of a run are added in
/// turn; the runs of a row and the rows of a tile are merged by stride doubling. The tiles form the groups
/// that the bits of their number name, the largest first; a group merges its tiles by stride doubling. All
/// parts are merged: groups from the left, and what follows the last whole tile from the right. Parts without
/// elements are skipped.
///
/// So the tree of the first i elements is a part of the tree of more elements, except for its last merges,
/// and a scan finds all of them with about three merges for each element.
struct PrefixTree {
  // The numbers are frozen: changing one changes bits.
  static constexpr std::size_t run = 4, runs = 32, rows_of_tile = 32;
  static constexpr std::size_t lanes = run * runs;  ///< elements of a row
  static constexpr std::size_t leaf = lanes * rows_of_tile;
  static constexpr bool combines_only_neighbours = true;
  /// Whether groups of leaves are merged from the left, largest first, and not by stride doubling.
  static constexpr bool merges_from_left = true;

  /// Number of leaves, which are the tiles, of n elements.
  static constexpr std::size_t leaves(std::size_t n) { return n == 0 ? 0 : (n - 1) / leaf + 1; }
};

/// The order of PrefixTree: result i of a scan has the bits of the sum of the first i + 1 elements.
struct Prefix {
  static constexpr std::string_view name = "prefix";
  static constexpr Promise promise = Promise::everywhere;
  using Shape = PrefixTree;

  /// The height of the tree of n elements. It does not grow steadily with n: it depends on the number of
  /// groups.
  static constexpr Height height(std::size_t n) {
    const std::size_t tiles = n / Shape::leaf, rows = n % Shape::leaf / Shape::lanes,
                      runs = n % Shape::lanes / Shape::run, elements = n % Shape::run;
    constexpr std::size_t of_row = ceil_log2(Shape::runs), of_tile = of_row + ceil_log2(Shape::rows_of_tile);
    std::size_t merges = 0;
    bool any = elements > 0;
    const auto before = [&](std::size_t part) {
      merges = any ? std::max(part, merges) + 1 : part;
      any = true;
    };
    if (runs > 0) before(ceil_log2(runs));
    if (rows > 0) before(of_row + ceil_log2(rows));
    if (tiles > 0)
      before(of_tile + static_cast<std::size_t>(std::bit_width(tiles)) - 1 +
             static_cast<std::size_t>(std::popcount(tiles)) - 1);
    return {n == 0 ? 0 : std::min(n, Shape::run) - 1, merges};
  }
  static std::string height_formula() {
    return "max(15, 14 + 2 floor(log2(n / " + std::to_string(Shape::leaf) + ")))";
  }
};

/// Whether each prefix of a sum in this order is a sum in the same order, so that the order has scans.
template <class Order>
inline constexpr bool is_closed_under_prefixes =
    std::is_same_v<Order, Serial> || std::is_same_v<Order, Prefix>;

/// Visits the prefixes of a sequence in the order serial.
template <class Reducer> class SerialWalker {
 public:
  using State = typename Reducer::State;
  SAMESUM_HD explicit SerialWalker(const Reducer& reducer) : reducer_{reducer} {}
  /// Goes on after `count` elements with that state.
  SAMESUM_HD SerialWalker(const Reducer& reducer, const State& state, std::size_t count)
      : reducer_{reducer}, state_{state}, count_{count} {}

  /// Adds the next element, and returns the state of all so far.
  SAMESUM_HD const State& push(const typename Reducer::Item& item) {
    if (count_ == 0)
      state_ = reducer_.start(item);
    else
      reducer_.add(state_, item, count_);
    ++count_;
    return state_;
  }
  /// The state of all elements so far; a fresh state if there are none.
  SAMESUM_HD const State& state() const { return state_; }

 private:
  const Reducer& reducer_;
  State state_{};
  std::size_t count_ = 0;
};

/// Visits the prefixes of a sequence of up to `most` units, such as the runs of a row, that are merged by
/// stride doubling.
template <class Reducer, std::size_t most> class DoublingWalker {
 public:
  using State = typename Reducer::State;
  SAMESUM_HD explicit DoublingWalker(const Reducer& reducer) : reducer_{reducer} {}

  /// Appends unit k, and returns the state of the first k + 1 units: aligned groups of units are merged from
  /// the last, smallest one on. Unit 0 begins another sequence. Complexity: one merge per set bit of k.
  SAMESUM_HD const State& push(std::size_t k, const State& unit) {
    State whole = unit;
    std::size_t level = 0;
    for (; k >> level & 1; ++level) whole = merged(group_[level], whole);
    group_[level] = whole;
    state_ = whole;
    for (++level; k >> level != 0; ++level)
      if (k >> level & 1) state_ = merged(group_[level], state_);
    return state_;
  }
  /// The state of all units so far.
  SAMESUM_HD const State& state() const { return state_; }

 private:
  SAMESUM_HD State merged(State left, const State& right) const {
    reducer_.merge(left, right);
    return left;
  }

  const Reducer& reducer_;
  State state_{};
  State group_[ceil_log2(most) + 1];
};

/// Visits the prefixes of a tile in the order prefix: an addition and at most two merges for each element,
/// and at most five for each run and for each row.
template <class Reducer> class TileWalker {
 public:
  using State = typename Reducer::State;
  SAMESUM_HD explicit TileWalker(const Reducer& reducer)
      : reducer_{reducer}, runs_{reducer}, rows_{reducer} {}

  /// Adds the next element, and returns the state of all elements of the tile so far.
  SAMESUM_HD const State& push(const typename Reducer::Item& item) {
    const std::size_t j = count_ % PrefixTree::run, k = count_ / PrefixTree::run % PrefixTree::runs,
                      r = count_ / PrefixTree::lanes;
    ++count_;
    if (j == 0)
      run_ = reducer_.start(item);
    else
      reducer_.add(run_, item, j);
    if (j + 1 == PrefixTree::run)
      state_ = runs_.push(k, run_);
    else
      state_ = k > 0 ? merged(runs_.state(), run_) : run_;
    if (count_ % PrefixTree::lanes == 0)
      state_ = rows_.push(r, state_);
    else if (r > 0)
      state_ = merged(rows_.state(), state_);
    return state_;
  }
  SAMESUM_HD const State& state() const { return state_; }
  SAMESUM_HD bool is_whole() const { return count_ == PrefixTree::leaf; }
  /// Begins another tile.
  SAMESUM_HD void restart() { count_ = 0; }

 private:
  SAMESUM_HD State merged(State left, const State& right) const {
    reducer_.merge(left, right);
    return left;
  }

  const Reducer& reducer_;
  State run_{}, state_{};                                   ///< of the run, and of all
  DoublingWalker<Reducer, PrefixTree::runs> runs_;          ///< the whole runs of the row
  DoublingWalker<Reducer, PrefixTree::rows_of_tile> rows_;  ///< the whole rows of the tile
  std::size_t count_ = 0;
};

/// Visits the prefixes of a sequence of tiles in the order prefix. The tiles may also be aligned groups of
/// tiles of one size, fewer than 2^levels. 2^64 elements are 2^52 tiles.
template <class Reducer, std::size_t levels = 52> class TileGroups {
 public:
  using State = typename Reducer::State;
  SAMESUM_HD explicit TileGroups(const Reducer& reducer) : reducer_{reducer} {}

  /// Appends a tile. Complexity: two merges on average.
  SAMESUM_HD void push(const State& tile) {
    State whole = tile;
    std::size_t level = 0;
    for (; count_ >> level & 1; ++level) whole = merged(group_[level], whole);
    ++count_;
    std::size_t larger = level + 1;
    while (count_ >> larger != 0 && !(count_ >> larger & 1)) ++larger;
    const bool follows_group = count_ >> larger != 0;
    group_[level] = whole;
    up_to_[level] = follows_group ? merged(up_to_[larger], whole) : begins_ ? merged(before_, whole) : whole;
    carry_ = up_to_[level];
    any_ = true;
  }
  /// Whether there are elements before the next tile.
  SAMESUM_HD bool any() const { return any_; }
  /// The state of all elements before the next tile.
  SAMESUM_HD const State& carry() const { return carry_; }
  SAMESUM_HD State after(const State& part) const { return any_ ? merged(carry_, part) : part; }
  /// Begins another sequence.
  SAMESUM_HD void restart() {
    count_ = 0;
    any_ = begins_ = false;
  }
  /// Begins within a sequence, at a multiple of a power of two of tiles; fewer tiles than that follow.
  /// `before` is the state of the elements before.
  SAMESUM_HD void restart(const State& before) {
    count_ = 0;
    any_ = begins_ = true;
    before_ = carry_ = before;
  }

 private:
  SAMESUM_HD State merged(State left, const State& right) const {
    reducer_.merge(left, right);
    return left;
  }

  const Reducer& reducer_;
  std::uint64_t count_ = 0;
  bool any_ = false, begins_ = false;
  State before_{}, carry_{};
  State group_[levels], up_to_[levels];  ///< a group for each bit of count_, and all up to its end
};

/// Visits the prefixes of a sequence in the order prefix.
template <class Reducer> class PrefixWalker {
 public:
  using State = typename Reducer::State;
  SAMESUM_HD explicit PrefixWalker(const Reducer& reducer) : tile_{reducer}, groups_{reducer} {}

  /// Adds the next element, and returns the state of all so far.
  SAMESUM_HD const State& push(const typename Reducer::Item& item) {
    const State& part = tile_.push(item);
    if (tile_.is_whole()) {
      groups_.push(part);
      tile_.restart();
      state_ = groups_.carry();
    } else {
      state_ = groups_.after(part);
    }
    return state_;
  }
  /// The state of all elements so far; a fresh state if there are none.
  SAMESUM_HD const State& state() const { return state_; }

 private:
  TileWalker<Reducer> tile_;
  TileGroups<Reducer> groups_;
  State state_{};
};

}  // namespace samesum
