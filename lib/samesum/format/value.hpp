/// Numbers and arrays whose format is known at run time.
#pragma once

#include <concepts>
#include <ranges>
#include <span>

#include "samesum/format/formats.hpp"

namespace samesum {

/// One number: its format and its bits.
struct Number {
  const FormatInfo* format;
  std::uint64_t bits;

  template <class F> static Number of(F x) { return {&format_info<F>(), to_bits(x)}; }
  template <class F> F as() const { return from_bits<F>(static_cast<BitsOf<F>>(bits)); }
  /// Exact: every value of every format is a double.
  double to_double() const {
    return with_format(*format, [&]<class F>() { return convert<double>(as<F>()); });
  }
  friend bool operator==(const Number&, const Number&) = default;
};

template <class T>
concept Element = Formats::contains<T>;

/// A view of n elements of one format. It owns nothing; element alignment is enough.
struct Values {
  const FormatInfo* format;
  const void* data;
  std::size_t size;

  template <Element T>
  Values(std::span<const T> x) : format{&format_info<T>()}, data{x.data()}, size{x.size()} {}
  template <std::ranges::contiguous_range R>
  requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>> Values(const R& x)
      : Values{std::span<const std::ranges::range_value_t<R>>{x}} {}
  Values(const FormatInfo& f, const void* first, std::size_t n) : format{&f}, data{first}, size{n} {}

  template <Element T> std::span<const T> as() const { return {static_cast<const T*>(data), size}; }
};

}  // namespace samesum
