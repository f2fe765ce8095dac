/// Checks of what callers pass. Each `validation_error` is a message that names the argument and the remedy,
/// or empty if the argument is valid.
#pragma once

#include <optional>
#include <string>

#include "samesum/format/value.hpp"
#include "samesum/operation/layout.hpp"

namespace samesum {

/// Whether the format is in the list, or a copy of one that is.
constexpr bool is_listed(const FormatInfo* format) {
  return format != nullptr && format->index < formats.size() && format->bytes == formats[format->index].bytes;
}

/// The size of an element and its alignment, in bytes.
struct ElementSize {
  std::size_t bytes, alignment;
  template <class T> static constexpr ElementSize of() { return {sizeof(T), alignof(T)}; }
};

/// Whether n elements at that place are an array that can exist: aligned, not null unless it is empty, and no
/// larger than the address space.
bool is_array(const void* data, std::size_t n, ElementSize element);

/// Elements in memory, `name` in messages.
std::string validation_error(const char* name, const void* data, std::size_t n, ElementSize element);
std::string validation_error(const char* name, const Values& x);

/// Throws std::invalid_argument with such a message.
void check(const char* name, const Values& x);

/// The arguments of the error bounds of `method`. Each throws std::invalid_argument: for a format that is not
/// in the list, and for a number of another format than the method's.
void check(std::string_view method, const FormatInfo& input);
void check(std::string_view method, const char* name, Number x, const FormatInfo& format);
/// Throws for a negative number. NaN, the Σ|x| of data with a NaN, says nothing: it becomes infinity.
double checked_magnitudes(std::string_view method, const char* name, double magnitudes);

/// The same layout, with a fixed value for each field that means nothing in it, so that backends need not
/// ask: segments are contiguous; and a layout without elements has no stride between its results, since an
/// address computed from it could lie outside the array.
constexpr Layout settled(Layout layout) {
  if (layout.offsets != nullptr) return Layout::segments(layout.offsets, layout.outer);
  if (layout.n == 0) layout.outer_stride = 0;
  return layout;
}

/// The number of elements from the first to the last one that the layout reads; none if it does not fit in 64
/// bits. Offsets are read only if they are in host memory; else they count as 0.
std::optional<std::size_t> extent(const Layout& layout, bool offsets_are_here);

/// Sizes, strides and offsets: every product fits in 63 bits, columns share no element, offsets do not fall.
/// Rows may share elements (sliding windows). The number of results is compared with `results`, where that is
/// known, before any offset is read.
std::string validation_error(const Layout& layout, std::optional<std::size_t> results, bool offsets_are_here);

}  // namespace samesum
