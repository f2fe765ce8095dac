/// Who sums which leaf, and when. None of it can change the bits of a tree.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "samesum/accumulator/plain.hpp"
#include "samesum/backend/cpu/leaf.hpp"
#include "samesum/backend/cpu/threads.hpp"
#include "samesum/reading.hpp"

namespace samesum::cpu {

/// Calls task(k) once for each k < tasks, from several threads, in no particular order.
template <class Task> void for_each_task(int threads, std::size_t tasks, Task task) {
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&] {
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) task(k);
  });
}

/// Calls visit(k, state of leaf k) for each leaf, from several threads, in no particular order.
template <class Shape, template <class> class A, class F, class T, class Visit>
void for_each_leaf(const T* x, std::size_t n, int threads, Visit visit) {
  const std::size_t leaves = Shape::leaves(n);
  for_each_task(thread_count(threads, n, leaves), leaves, [&](std::size_t k) {
    const std::size_t begin = k * Shape::leaf;
    visit(k, Leaf<Shape, A, F, T>::sum(x + begin, std::min(n - begin, Shape::leaf)));
  });
}

/// The state of a tree; none where n = 0.
template <class Shape, template <class> class A, class F, class T>
std::optional<A<Scalar<F>>> sum_tree(const T* x, std::size_t n, int threads) {
  if (n == 0) return std::nullopt;
  if (n <= Shape::leaf) return Leaf<Shape, A, F, T>::sum(x, n);  // without a thread or an allocation
  std::vector<A<Scalar<F>>> leaves(Shape::leaves(n));
  for_each_leaf<Shape, A, F>(x, n, threads,
                             [&](std::size_t k, const A<Scalar<F>>& leaf) { leaves[k] = leaf; });
  return merge_by_stride_doubling(std::move(leaves));
}

/// Adds each chunk's sum to one shared cell as it comes.
template <class Shape, class F, class T>
std::optional<Plain<Scalar<F>>> sum_atomic(const T* x, std::size_t n, int threads) {
  if (n == 0) return std::nullopt;
  std::atomic<CarrierOf<F>> cell{Scalar<F>::minus_zero().v};
  for_each_leaf<Shape, Plain, F>(x, n, threads, [&](std::size_t, const Plain<Scalar<F>>& chunk) {
    CarrierOf<F> seen = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(seen, (Scalar<F>{seen} + chunk.sum).v, std::memory_order_relaxed)) {
    }
  });
  return Plain<Scalar<F>>{{cell.load()}};
}

}  // namespace samesum::cpu
