/// Orders of arrival, which differ from run to run.
#pragma once

#include "samesum/order/tree.hpp"

namespace samesum {

namespace detail {
/// Reason why a backend has no method in arrival order; empty if it has.
constexpr std::string_view arrival_refusal(std::string_view backend) {
  return backend == "reference" ? "arrival order has no reference implementation" : "";
}
}  // namespace detail

/// Arrival order of chunks: the sum of each finished chunk is added to one shared cell. On a CPU, threads
/// take the chunks from a shared counter. On a GPU, each block has a fixed range of one to eight chunks,
/// merges their sums as a tree does, and adds the merged sum to the cell. The order within a chunk is fixed;
/// the order of arrival at the cell is not, so the promise is `none`.
struct Atomic {
  static constexpr std::string_view name = "atomic";
  static constexpr Promise promise = Promise::none;
  using Shape = Tree<128, 32, InTurn>;  ///< order within a chunk
  static constexpr std::string_view refusal(std::string_view backend) {
    return detail::arrival_refusal(backend);
  }

  /// The height if the chunks are added to the empty cell one by one; merging some of them first makes the
  /// tree lower.
  static constexpr Height height(std::size_t n) {
    const Height chunk = Shape::height(std::min(n, Shape::leaf));
    const std::size_t chunks = Shape::leaves(n);
    return {chunk.adds, chunk.merges + (chunks == 0 ? 0 : chunks - 1)};
  }
  static std::string height_formula() {
    const Height chunk = Shape::height(Shape::leaf);
    return std::to_string(chunk.adds) + " + " + std::to_string(chunk.merges) + " + ceil(n / " +
           std::to_string(Shape::leaf) + ") - 1";
  }
};

/// Arrival order with chunks of one element: the worst case of many threads and one cell.
struct AtomicElement {
  static constexpr std::string_view name = "atomic_element";
  static constexpr Promise promise = Promise::none;
  using Shape = Tree<1, 1, InTurn>;
  static constexpr std::string_view refusal(std::string_view backend) {
    return backend == "cpu" ? "atomic_element exists only to show the worst case on a GPU"
                            : detail::arrival_refusal(backend);
  }
  static constexpr Height height(std::size_t n) { return {0, n == 0 ? 0 : n - 1}; }
  static std::string height_formula() { return "n - 1"; }
};

}  // namespace samesum
