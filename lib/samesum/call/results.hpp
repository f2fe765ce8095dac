/// Where a call writes its results.
#pragma once

#include <cstdint>
#include <span>

#include "samesum/call/layout.hpp"
#include "samesum/format/number.hpp"

namespace samesum {

/// The array for the results of a call: numbers in the format of the results, or std::int64_t for indices.
struct Results {
  const FormatInfo* format;  ///< nullptr for std::int64_t
  void* data;
  std::size_t size;  ///< number of elements in `data`
  /// Row stride of the results, in elements, for operations with one result per element. 0 means the row
  /// stride of the input.
  std::size_t row_stride = 0;

  template <Element T>
  Results(std::span<T> out, std::size_t stride = 0)
      : format{&format_info<T>()}, data{out.data()}, size{out.size()}, row_stride{stride} {}
  Results(std::span<std::int64_t> out) : format{nullptr}, data{out.data()}, size{out.size()} {}
  Results(const FormatInfo* f, void* first, std::size_t n, std::size_t stride = 0)
      : format{f}, data{first}, size{n}, row_stride{stride} {}

  /// Returns `row_stride`, or the stride of the input if that is 0.
  std::size_t stride_of(const Layout& input) const {
    return row_stride == 0 ? input.outer_stride : row_stride;
  }
};

}  // namespace samesum
