#include "strided.hpp"

#include <cstring>

namespace samesum::python {
namespace {

/// Returns the axes that are reduced, or the others. Neighbours whose elements lie at one stride become one
/// axis; axes of length 1 are left out.
std::vector<StridedAxis> joined(std::span<const StridedAxis> axes, bool reduced) {
  std::vector<StridedAxis> all;
  for (const StridedAxis& axis : axes) {
    if (axis.reduced != reduced || axis.n == 1) continue;
    if (!all.empty() && all.back().stride == static_cast<std::ptrdiff_t>(axis.n) * axis.stride)
      all.back() = {all.back().n * axis.n, axis.stride, reduced};
    else
      all.push_back(axis);
  }
  return all;
}

std::size_t elements_of(std::span<const StridedAxis> axes, bool reduced) {
  std::size_t n = 1;
  for (const StridedAxis& axis : axes)
    if (axis.reduced == reduced) n *= axis.n;
  return n;
}

}  // namespace

std::optional<Layout> layout_of(std::span<const StridedAxis> axes) {
  const std::size_t count = elements_of(axes, false), n = elements_of(axes, true);
  if (count == 0 || n == 0) return Layout{count, n, 1, 0, 1};
  for (const StridedAxis& axis : axes)
    if (axis.n > 1 && axis.stride < 0) return {};
  const std::vector<StridedAxis> inside = joined(axes, true), outside = joined(axes, false);
  if (inside.size() > 1 || outside.size() > 2) return {};
  const std::size_t stride = inside.empty() ? 1 : static_cast<std::size_t>(inside[0].stride);
  if (outside.empty()) return Layout{1, n, 1, n, stride};
  const std::size_t size = outside.back().n, step = static_cast<std::size_t>(outside.back().stride);
  const bool are_columns = step == 1 && (n == 1 || stride == 0 || stride >= size);
  const std::size_t between_rows = n > 1 ? stride : size;
  if (outside.size() == 2) {
    if (!are_columns) return {};
    return Layout{outside[0].n, n, size, static_cast<std::size_t>(outside[0].stride), between_rows};
  }
  if (are_columns && stride != 1) return Layout{1, n, size, 0, between_rows};
  return Layout{size, n, 1, step, stride};
}

void pack_rows(std::span<const StridedAxis> axes, const void* from, std::size_t bytes, void* to) {
  std::vector<StridedAxis> order;  // the reduced axes last
  for (const bool reduced : {false, true})
    for (const StridedAxis& axis : axes)
      if (axis.reduced == reduced) order.push_back(axis);
  const std::size_t n = elements_of(axes, false) * elements_of(axes, true);
  std::vector<std::size_t> index(order.size(), 0);
  std::ptrdiff_t at = 0;
  for (std::size_t k = 0; k < n; ++k) {
    std::memcpy(static_cast<std::byte*>(to) + k * bytes,
                static_cast<const std::byte*>(from) + at * static_cast<std::ptrdiff_t>(bytes), bytes);
    for (std::size_t d = order.size(); d-- > 0;) {
      at += order[d].stride;
      if (++index[d] < order[d].n) break;
      at -= static_cast<std::ptrdiff_t>(order[d].n) * order[d].stride;
      index[d] = 0;
    }
  }
}

void bind_layouts(nb::module_& m) {
  using Fields = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>;
  m.def("layout_of",
        [](const std::vector<std::size_t>& shape, const std::vector<std::ptrdiff_t>& strides,
           const std::vector<std::size_t>& reduced) -> std::optional<Fields> {
          std::vector<StridedAxis> axes;
          for (std::size_t d = 0; d < shape.size(); ++d) axes.push_back({shape[d], strides.at(d), false});
          for (const std::size_t d : reduced) axes.at(d).reduced = true;
          const std::optional<Layout> l = layout_of(axes);
          if (!l) return {};
          return Fields{l->outer, l->n, l->inner, l->outer_stride, l->stride};
        });
}

}  // namespace samesum::python
