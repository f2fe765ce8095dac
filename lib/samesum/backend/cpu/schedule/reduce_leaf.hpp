/// Reduces leaves with any reducer, in plain loops over lanes. The loops of leaf.hpp and terms.hpp are
/// faster, and serve the common reducers.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "samesum/order/tree.hpp"

namespace samesum::cpu {

/// Merges states by stride doubling: 0+1, 2+3, … then 0+2, 4+6, …
template <class Reducer, class State>
State reduce_by_stride_doubling(const Reducer& reducer, std::span<State> states) {
  for (std::size_t stride = 1; stride < states.size(); stride *= 2)
    for (std::size_t k = 0; k + stride < states.size(); k += 2 * stride)
      reducer.merge(states[k], states[k + stride]);
  return states.front();
}

/// The lanes of one leaf of n >= 1 elements at(0) … at(n - 1), read row by row.
template <class Shape, class Reducer> class LeafLanes {
 public:
  using State = typename Reducer::State;
  using Lanes = std::array<State, Shape::lanes>;

  LeafLanes(const Reducer& reducer, std::size_t n) : reducer_{reducer}, n_{n} {}

  template <class At> void combine_rows(At at, Lanes& lane) const {
    if constexpr (Shape::in_turn)
      combine_in_turn(at, lane);
    else
      combine_by_pairs(at, lane);
  }

  /// Halves the lanes: lane l merges lane l + half until one lane is left.
  State halve(Lanes& lane) const {
    std::size_t count = std::min(n_, Shape::lanes);
    for (std::size_t half = Shape::lanes / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l + half < count && l < half; ++l) reducer_.merge(lane[l], lane[l + half]);
      count = std::min(count, half);
    }
    return lane[0];
  }

 private:
  std::size_t rows() const { return (n_ - 1) / Shape::lanes + 1; }
  std::size_t elements_of_row(std::size_t row) const {
    return std::min(n_ - row * Shape::lanes, Shape::lanes);
  }

  template <class At> void start_row(std::size_t row, At at, Lanes& lane) const {
    for (std::size_t l = 0; l < elements_of_row(row); ++l)
      lane[l] = reducer_.start(reducer_.item(at(row * Shape::lanes + l)));
  }

  template <class At> void combine_in_turn(At at, Lanes& lane) const {
    start_row(0, at, lane);
    for (std::size_t r = 1; r < rows(); ++r)
      for (std::size_t l = 0; l < elements_of_row(r); ++l)
        reducer_.add(lane[l], reducer_.item(at(r * Shape::lanes + l)), r);
  }

  /// Level i of `waiting` holds the merge of 2^i earlier rows if bit i of the number of rows read is set.
  template <class At> void combine_by_pairs(At at, Lanes& sum) const {
    std::array<Lanes, ceil_log2(Shape::rows) + 1> waiting;
    const auto merge = [&](std::size_t level, std::size_t first_row) {
      for (std::size_t l = 0; l < elements_of_row(first_row); ++l) reducer_.merge(waiting[level][l], sum[l]);
      std::copy_n(waiting[level].begin(), Shape::lanes, sum.begin());
    };
    const std::size_t all = rows();
    for (std::size_t r = 0; r < all; ++r) {
      start_row(r, at, sum);
      std::size_t level = 0;
      for (; r >> level & 1; ++level) merge(level, r + 1 - (std::size_t{1} << level));
      waiting[level] = sum;
    }
    // Merges the waiting rows from the last to the first.
    std::size_t level = 0, first_row = all;
    while (!(all >> level & 1)) ++level;
    sum = waiting[level];
    first_row -= std::size_t{1} << level;
    while (all >> ++level)
      if (all >> level & 1) {
        merge(level, first_row);
        first_row -= std::size_t{1} << level;
      }
  }

  const Reducer& reducer_;
  std::size_t n_;
};

/// The state of a leaf of n >= 1 elements at(0) … at(n - 1), with the bits of the reference.
template <class Shape, class Reducer, class At>
typename Reducer::State reduce_leaf(const Reducer& reducer, std::size_t n, At at) {
  const LeafLanes<Shape, Reducer> lanes{reducer, n};
  typename LeafLanes<Shape, Reducer>::Lanes lane{};
  lanes.combine_rows(at, lane);
  return lanes.halve(lane);
}

}  // namespace samesum::cpu
