/// Checks of arguments. Each `validation_error` returns a message that names the argument and the remedy, or
/// an empty string if the argument is valid.
#pragma once

#include <optional>
#include <string>

#include "samesum/call/keys.hpp"
#include "samesum/call/layout.hpp"
#include "samesum/call/options.hpp"
#include "samesum/call/values.hpp"

namespace samesum {

/// Whether the format is in the list, or is a copy of one that is.
constexpr bool is_listed(const FormatInfo* format) {
  return format != nullptr && format->index < formats.size() && format->bytes == formats[format->index].bytes;
}

/// Size and alignment of an element, in bytes.
struct ElementSize {
  std::size_t bytes, alignment;
  template <class T> static constexpr ElementSize of() { return {sizeof(T), alignof(T)}; }
};

/// Whether n elements at `data` can be an array: aligned, not null unless empty, and no larger than the
/// address space.
bool is_array(const void* data, std::size_t n, ElementSize element);

/// Checks an array of elements; `name` is its name in the message.
std::string validation_error(const char* name, const void* data, std::size_t n, ElementSize element);
std::string validation_error(const char* name, const Values& x);
/// Checks the array of keys, not their values.
std::string validation_error(const Keys& keys);

/// Checks flags, of which there must be one for each of n elements or keys (`of`).
std::string validation_error(const Mask& where, std::size_t n, const char* of);

/// Whether two arrays share a byte.
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes);

/// Throws std::invalid_argument with the message of validation_error, if there is one.
void check(const char* name, const Values& x);

/// Check arguments of the error bounds of `method`. They throw std::invalid_argument for a format that is not
/// in the list, and for a number in another format than `format`.
void check(std::string_view method, const FormatInfo& input);
void check(std::string_view method, const char* name, Number x, const FormatInfo& format);
/// Returns `magnitudes`, or infinity for NaN, the Σ|x| of data with a NaN. Throws std::invalid_argument if it
/// is negative.
double checked_magnitudes(std::string_view method, const char* name, double magnitudes);

/// Returns the number of elements from the first to the last one that the layout reads; std::nullopt if it
/// exceeds 2^63 - 1. Offsets are read only if they are in host memory; otherwise they count as 0.
std::optional<std::size_t> extent(const Layout& layout, bool offsets_on_host);

/// Checks sizes, strides and offsets: every product fits in 63 bits, columns share no element, offsets do not
/// decrease. Rows may share elements (sliding windows). If the number of results is known (`results`), it is
/// checked before any offset is read.
std::string validation_error(const Layout& layout, std::optional<std::size_t> results, bool offsets_on_host);

}  // namespace samesum
