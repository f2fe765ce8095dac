/// Strided arrays: which elements of them each result reduces.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "module.hpp"

namespace samesum::python {

/// An axis of an array: its length, its stride in elements, and whether it is reduced.
struct StridedAxis {
  std::size_t n;
  std::ptrdiff_t stride;
  bool reduced;
};

/// Returns the layout that reduces the reduced axes in row-major order; nothing if no layout does. Results
/// are in row-major order of the other axes.
std::optional<Layout> layout_of(std::span<const StridedAxis> axes);

/// Copies the elements of an array, of `bytes` bytes each, so that those of each result follow each other, in
/// row-major order of the reduced axes.
void pack_rows(std::span<const StridedAxis> axes, const void* from, std::size_t bytes, void* to);

void bind_layouts(nb::module_& m);

}  // namespace samesum::python
