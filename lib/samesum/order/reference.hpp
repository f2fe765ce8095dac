/// The reference implementation of every order. It defines the bits of a method: every backend returns the
/// same.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "samesum/order/canonical.hpp"

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

/// State of accumulator A after elements at(0) … at(n - 1) in the order `Shape`; none if n = 0.
template <class A, class Shape, class At>
std::optional<A> reference_state(Shape shape, std::size_t n, At at) {
  std::vector<A> leaves;
  for (std::size_t k = 0; k < Shape::leaves(n); ++k)
    leaves.push_back(reference_leaf<A>(shape, k * Shape::leaf,
                                       std::min(n - k * Shape::leaf, Shape::leaf) + k * Shape::leaf, at));
  if (leaves.empty()) return std::nullopt;
  return merge_by_stride_doubling(std::span{leaves});
}

}  // namespace samesum
