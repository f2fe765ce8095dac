/// Integers of any size times a power of two, on the host. Exact states are converted to them where several
/// operations must end in a single rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samesum/accumulator/digits.hpp"
#include "samesum/format/number.hpp"

namespace samesum {

/// A number ±magnitude · 2^exponent. The magnitude has digits of 32 bits, the lowest first.
class Dyadic {
 public:
  /// Zero.
  Dyadic() = default;
  /// Converts digits such as those of Exact: the first has weight 2^exponent, and each |digit| is below 2^62.
  Dyadic(std::span<const std::int64_t> digits, std::int64_t exponent);

  /// Exact products and differences.
  friend Dyadic operator*(const Dyadic& a, const Dyadic& b);
  friend Dyadic operator*(const Dyadic& a, std::uint64_t b);
  friend Dyadic operator-(Dyadic a, Dyadic b);

  bool is_zero() const;

  /// Value of the format nearest to the number divided by a·b, ties to even; +0 for zero. a and b are
  /// positive.
  Number rounded_quotient(const FormatInfo& format, std::uint64_t a, std::uint64_t b = 1) const;

 private:
  void lower_to(std::int64_t exponent);
  bool divide(std::uint64_t divisor);

  bool negative_ = false;
  std::vector<std::uint32_t> digits_;
  std::int64_t exponent_ = 0;
};

}  // namespace samesum
