/// Integers of any size times a power of two, on the host: what the exact states are turned into when more
/// than one rounding is to be avoided.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samesum/accumulator/digits.hpp"
#include "samesum/format/value.hpp"

namespace samesum {

/// ±magnitude · 2^exponent; the magnitude in digits of 32 bits, the lowest first.
class Dyadic {
 public:
  Dyadic() = default;
  /// Digits as those of Exact, the first of weight 2^exponent, each below 2^62 in magnitude.
  Dyadic(std::span<const std::int64_t> digits, std::int64_t exponent);

  friend Dyadic operator*(const Dyadic& a, const Dyadic& b);
  friend Dyadic operator*(const Dyadic& a, std::uint64_t b);
  friend Dyadic operator-(Dyadic a, Dyadic b);

  bool is_zero() const;

  /// The value of the format nearest to the number over a·b, both positive; to nearest, ties to even; +0 for
  /// zero.
  Number rounded_quotient(const FormatInfo& format, std::uint64_t a, std::uint64_t b = 1) const;

 private:
  void lower_to(std::int64_t exponent);
  bool divide(std::uint64_t divisor);

  bool negative_ = false;
  std::vector<std::uint32_t> digits_;
  std::int64_t exponent_ = 0;
};

}  // namespace samesum
