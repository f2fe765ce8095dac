/// The literal reading of every order: what a variant's bits are, by definition. Every backend equals it bit
/// for bit.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "samesum/order/canonical.hpp"

namespace samesum {

/// Stride doubling: 0+1, 2+3, … then 0+2, 4+6, …
template <class A> A merge_by_stride_doubling(std::span<A> states) {
  for (std::size_t stride = 1; stride < states.size(); stride *= 2)
    for (std::size_t k = 0; k + stride < states.size(); k += 2 * stride) states[k].merge(states[k + stride]);
  return states.front();
}

/// One lane: elements begin, begin + stride, … below end.
template <class A, class At>
A read_lane(InTurn, std::size_t begin, std::size_t end, std::size_t stride, At at) {
  A sum;
  for (std::size_t i = begin; i < end; i += stride) sum.add(at(i));
  return sum;
}
template <class A, class At>
A read_lane(ByPairs, std::size_t begin, std::size_t end, std::size_t stride, At at) {
  std::vector<A> rows;
  for (std::size_t i = begin; i < end; i += stride) rows.emplace_back().add(at(i));
  return merge_by_stride_doubling(std::span{rows});
}

/// One leaf: its lanes, then lane l takes lane l + half until one is left.
template <class A, std::size_t Lanes, std::size_t Rows, class RowOrder, class At>
A read_leaf(Tree<Lanes, Rows, RowOrder>, std::size_t begin, std::size_t end, At at) {
  std::vector<A> lane;
  for (std::size_t l = 0; l < std::min(Lanes, end - begin); ++l)
    lane.push_back(read_lane<A>(RowOrder{}, begin + l, end, Lanes, at));
  for (std::size_t half = Lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half && l + half < lane.size(); ++l) lane[l].merge(lane[l + half]);
    lane.resize(std::min(lane.size(), half));
  }
  return lane.front();
}

/// The one leaf of a canonical tree: lanes by pairs, then lane 0+1, 2+3, … and so on.
template <class A, std::size_t Lanes, class At>
A read_leaf(CanonicalTree<Lanes>, std::size_t begin, std::size_t end, At at) {
  std::vector<A> lane;
  for (std::size_t l = 0; l < std::min(Lanes, end - begin); ++l)
    lane.push_back(read_lane<A>(ByPairs{}, begin + l, end, Lanes, at));
  return merge_by_stride_doubling(std::span{lane});
}

/// The state that accumulator A holds of elements at(0) … at(n - 1) in the order `Shape`; none where n = 0.
template <class A, class Shape, class At> std::optional<A> read(Shape shape, std::size_t n, At at) {
  std::vector<A> leaves;
  for (std::size_t k = 0; k < Shape::leaves(n); ++k)
    leaves.push_back(read_leaf<A>(shape, k * Shape::leaf,
                                  std::min(n - k * Shape::leaf, Shape::leaf) + k * Shape::leaf, at));
  if (leaves.empty()) return std::nullopt;
  return merge_by_stride_doubling(std::span{leaves});
}

}  // namespace samesum
