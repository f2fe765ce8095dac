/// Schedules the leaves of a sum over threads. The schedule cannot change the bits of a tree.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/order/reference.hpp"

namespace samesum::cpu {

/// The elements of a vector, and the loop that sums their leaves.
struct Input {
  SumLeaves sum_leaves;
  const std::byte* x;
  std::size_t element_bytes, n;

  /// Writes the states of the leaves of at most `most` elements, from element `begin` on.
  void sum(std::size_t begin, std::size_t most, void* states) const {
    sum_leaves(x + begin * element_bytes, std::min(most, n - begin), states);
  }
};

/// The state of a tree; nullopt if n = 0.
template <class Shape, class State> std::optional<State> sum_tree(const Input& input, int threads) {
  if (input.n == 0) return std::nullopt;
  const auto sum_group = [&input](std::size_t k) {
    std::array<State, Shape::leaf == unbounded ? 1 : group> leaves;
    const std::size_t first = Shape::leaf == unbounded ? 0 : k * group * Shape::leaf;
    const std::size_t most = Shape::leaf == unbounded ? unbounded : group * Shape::leaf;
    input.sum(first, most, leaves.data());
    const std::size_t count = Shape::leaves(std::min(most, input.n - first));
    return merge_by_stride_doubling(std::span{leaves}.first(count));
  };
  const std::size_t groups = (Shape::leaves(input.n) - 1) / group + 1;
  if (groups == 1) return sum_group(0);  // needs neither threads nor an allocation
  std::vector<State> states(groups);
  for_each_task(thread_count(threads, input.n, groups), groups,
                [&](std::size_t k) { states[k] = sum_group(k); });
  return merge_by_stride_doubling(std::span{states});
}

/// Sums in arrival order: adds the sum of each leaf to one shared cell.
template <class Shape, class F> std::optional<Plain<Scalar<F>>> sum_atomic(const Input& input, int threads) {
  if (input.n == 0) return std::nullopt;
  std::atomic<CarrierOf<F>> cell{Scalar<F>::minus_zero().v};
  const std::size_t leaves = Shape::leaves(input.n);
  for_each_task(thread_count(threads, input.n, leaves), leaves, [&](std::size_t k) {
    Plain<Scalar<F>> leaf;
    input.sum(k * Shape::leaf, Shape::leaf, &leaf);
    CarrierOf<F> seen = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(seen, (Scalar<F>{seen} + leaf.sum).v, std::memory_order_relaxed)) {
    }
  });
  return Plain<Scalar<F>>{{cell.load()}};
}

}  // namespace samesum::cpu
