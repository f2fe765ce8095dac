/// A number whose format is selected at run time.
#pragma once

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

}  // namespace samesum
