/// The reference implementation of every order. It defines the bits of a method: every backend returns the
/// same.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "samesum/order/canonical.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum {

/// Merges states by stride doubling: 0+1, 2+3, … then 0+2, 4+6, …
template <class A> A merge_by_stride_doubling(std::span<A> states) {
  for (std::size_t stride = 1; stride < states.size(); stride *= 2)
    for (std::size_t k = 0; k + stride < states.size(); k += 2 * stride) states[k].merge(states[k + stride]);
  return states.front();
}

/// State of one lane, of the elements begin, begin + stride, … below end, with rows in turn.
template <class A, class At>
A reference_lane(InTurn, std::size_t begin, std::size_t end, std::size_t stride, At at) {
  A sum;
  for (std::size_t i = begin; i < end; i += stride) sum.add(at(i));
  return sum;
}
/// State of one lane with rows combined by pairs.
template <class A, class At>
A reference_lane(ByPairs, std::size_t begin, std::size_t end, std::size_t stride, At at) {
  std::vector<A> rows;
  for (std::size_t i = begin; i < end; i += stride) rows.emplace_back().add(at(i));
  return merge_by_stride_doubling(std::span{rows});
}

/// State of one leaf: its lanes are reduced, then lane l merges lane l + half until one lane is left.
template <class A, std::size_t Lanes, std::size_t Rows, class RowOrder, class At>
A reference_leaf(Tree<Lanes, Rows, RowOrder>, std::size_t begin, std::size_t end, At at) {
  std::vector<A> lane;
  for (std::size_t l = 0; l < std::min(Lanes, end - begin); ++l)
    lane.push_back(reference_lane<A>(RowOrder{}, begin + l, end, Lanes, at));
  for (std::size_t half = Lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half && l + half < lane.size(); ++l) lane[l].merge(lane[l + half]);
    lane.resize(std::min(lane.size(), half));
  }
  return lane.front();
}

/// State of the only leaf of a canonical tree: the rows of each lane by pairs, then the lanes.
template <class A, std::size_t Lanes, class At>
A reference_leaf(CanonicalTree<Lanes>, std::size_t begin, std::size_t end, At at) {
  std::vector<A> lane;
  for (std::size_t l = 0; l < std::min(Lanes, end - begin); ++l)
    lane.push_back(reference_lane<A>(ByPairs{}, begin + l, end, Lanes, at));
  return merge_by_stride_doubling(std::span{lane});
}

/// Merges `right`, the state of all that follows `left`; none if nothing does.
template <class A> A before(A left, const std::optional<A>& right) {
  if (right) left.merge(*right);
  return left;
}

/// State of a tile, or of its first elements: whole rows by stride doubling, then the whole runs of a row by
/// stride doubling, then the elements of a run in turn. These three are merged from the right.
template <class A, class At> A reference_leaf(PrefixTree, std::size_t begin, std::size_t end, At at) {
  const auto state_of_runs = [&](std::size_t first, std::size_t last) {
    std::vector<A> runs;
    for (; first < last; first += PrefixTree::run)
      runs.push_back(reference_lane<A>(InTurn{}, first, first + PrefixTree::run, 1, at));
    return merge_by_stride_doubling(std::span{runs});
  };
  const std::size_t rows_end = end - (end - begin) % PrefixTree::lanes,
                    runs_end = end - (end - begin) % PrefixTree::run;
  std::vector<A> rows;
  for (std::size_t row = begin; row < rows_end; row += PrefixTree::lanes)
    rows.push_back(state_of_runs(row, row + PrefixTree::lanes));
  std::optional<A> rest;
  if (runs_end < end) rest = reference_lane<A>(InTurn{}, runs_end, end, 1, at);
  if (rows_end < runs_end) rest = before(state_of_runs(rows_end, runs_end), rest);
  return rows.empty() ? *rest : before(merge_by_stride_doubling(std::span{rows}), rest);
}

/// Merges the leaves of n elements by stride doubling.
template <class A, class Shape> A merge_leaves(Shape, std::size_t, std::span<A> leaves) {
  return merge_by_stride_doubling(leaves);
}
/// Merges the tiles of n elements: each group of whole tiles by stride doubling, then the groups, the largest
/// first, and a last tile that is not whole from the left.
template <class A> A merge_leaves(PrefixTree, std::size_t n, std::span<A> tiles) {
  const std::size_t whole = n / PrefixTree::leaf;
  std::optional<A> all;
  const auto append = [&](const A& part) { all = all ? before(*all, std::optional{part}) : part; };
  std::size_t first = 0;
  for (std::size_t size = std::bit_floor(whole); size > 0; size /= 2)
    if (whole & size) {
      append(merge_by_stride_doubling(tiles.subspan(first, size)));
      first += size;
    }
  if (first < tiles.size()) append(tiles[first]);
  return *all;
}

/// State of accumulator A after elements at(0) … at(n - 1) in the order `Shape`; none if n = 0.
template <class A, class Shape, class At>
std::optional<A> reference_state(Shape shape, std::size_t n, At at) {
  std::vector<A> leaves;
  for (std::size_t k = 0; k < Shape::leaves(n); ++k)
    leaves.push_back(reference_leaf<A>(shape, k * Shape::leaf,
                                       std::min(n - k * Shape::leaf, Shape::leaf) + k * Shape::leaf, at));
  if (leaves.empty()) return std::nullopt;
  return merge_leaves(shape, n, std::span{leaves});
}

}  // namespace samesum
