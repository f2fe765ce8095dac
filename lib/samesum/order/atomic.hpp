#pragma once

#include "samesum/order/tree.hpp"

namespace samesum {

/// Arrival order: chunks are taken from a shared counter, and each chunk's sum is added to one shared cell
/// when it is done. Within a chunk the order is fixed; which chunk comes when is not, so it promises nothing.
struct Atomic {
  static constexpr std::string_view name = "atomic";
  static constexpr Promise promise = Promise::none;
  using Shape = Tree<256, 16, InTurn>;  ///< of a chunk

  /// The cell starts empty and takes the chunks one by one.
  static constexpr Height height(std::size_t n) {
    const Height chunk = Shape::height(std::min(n, Shape::leaf));
    const std::size_t chunks = Shape::leaves(n);
    return {chunk.adds, chunk.merges + (chunks == 0 ? 0 : chunks - 1)};
  }
  static std::string height_formula() { return "15 + 8 + ceil(n / 4096) - 1"; }
};

}  // namespace samesum
