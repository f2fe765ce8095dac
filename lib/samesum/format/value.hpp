/// Numbers and arrays whose format is selected at run time.
#pragma once

#include <concepts>
#include <ranges>
#include <span>

#include "samesum/format/formats.hpp"

namespace samesum {

/// One number of a format that is selected at run time.
struct Number {
  const FormatInfo* format;  ///< one of samesum::formats
  std::uint64_t bits;        ///< bit pattern, in the low bits

  /// The number x.
  template <class F> static Number of(F x) { return {&format_info<F>(), to_bits(x)}; }
  /// The number as a value of F, which must be its format.
  template <class F> F as() const { return from_bits<F>(static_cast<BitsOf<F>>(bits)); }
  /// The number as a double. Exact: a double holds every value of every format.
  double to_double() const {
    return with_format(*format, [&]<class F>() { return convert<double>(as<F>()); });
  }
  /// Whether format and bit pattern are equal: +0 differs from -0.
  friend bool operator==(const Number&, const Number&) = default;
};

/// T is a format of the library: fp16, bf16, fp32 or fp64.
template <class T>
concept Element = Formats::contains<T>;

/// A view of contiguous elements of one format. It does not own them.
struct Values {
  const FormatInfo* format;  ///< one of samesum::formats
  const void* data;          ///< the first element, aligned to format->bytes; may be null if size is 0
  std::size_t size;          ///< number of elements

  /// Views the elements of a span.
  template <Element T>
  Values(std::span<const T> x) : format{&format_info<T>()}, data{x.data()}, size{x.size()} {}
  /// Views the elements of a contiguous range.
  template <std::ranges::contiguous_range R>
  requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>> Values(const R& x)
      : Values{std::span<const std::ranges::range_value_t<R>>{x}} {}
  /// Views n elements of format f from `first` on.
  Values(const FormatInfo& f, const void* first, std::size_t n) : format{&f}, data{first}, size{n} {}

  /// The elements as a span of T, which must be their format.
  template <Element T> std::span<const T> as() const { return {static_cast<const T*>(data), size}; }
};

}  // namespace samesum
