/// The elements of a call: arrays whose format is selected at run time.
#pragma once

#include <ranges>
#include <span>

#include "samesum/format/number.hpp"

namespace samesum {

/// A view of contiguous elements of one format, or no input at all. It does not own the elements.
struct Values {
  const FormatInfo* format = nullptr;  ///< one of samesum::formats; null for no input
  const void* data = nullptr;  ///< the first element, aligned to format->bytes; may be null if size is 0
  std::size_t size = 0;        ///< number of elements

  /// No input.
  Values() = default;
  /// Views the elements of a span.
  template <Element T>
  Values(std::span<const T> x) : format{&format_info<T>()}, data{x.data()}, size{x.size()} {}
  /// Views the elements of a contiguous range.
  template <std::ranges::contiguous_range R>
  requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>> Values(const R& x)
      : Values{std::span<const std::ranges::range_value_t<R>>{x}} {}
  /// Views n elements of format f from `first` on.
  Values(const FormatInfo& f, const void* first, std::size_t n) : format{&f}, data{first}, size{n} {}

  /// Whether there is an input, perhaps without elements.
  bool is_given() const { return format != nullptr; }
  /// The elements as a span of T, which must be their format.
  template <Element T> std::span<const T> as() const { return {static_cast<const T*>(data), size}; }
};

}  // namespace samesum
