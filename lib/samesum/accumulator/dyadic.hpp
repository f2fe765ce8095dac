/// Integers of any size times a power of two, on the host. Exact sums are converted to them where several
/// operations must end in a single rounding.
#pragma once

#include <cstdint>
#include <span>

#include "samesum/accumulator/words.hpp"
#include "samesum/format/number.hpp"
#include "samesum/window/rounding.hpp"

namespace samesum {

/// A number ±Σ word[i] · 2^(64·(place + i)), with words of 64 bits, of which neither the first nor the last
/// is 0. Sums, differences and products are exact.
class Dyadic {
 public:
  /// Zero.
  Dyadic() = default;
  explicit Dyadic(std::uint64_t integer) : Dyadic{false, {&integer, 1}, 0} {}
  /// Converts a finite number.
  explicit Dyadic(double number);
  /// Converts digits such as those of Exact: the first has weight 2^exponent, and each |digit| is below 2^62.
  Dyadic(std::span<const std::int64_t> digits, std::int64_t exponent);
  /// Converts the words of a magnitude, the lowest first, which has weight 2^(64·place).
  Dyadic(bool negative, std::span<const std::uint64_t> words, std::int64_t place);

  friend Dyadic operator*(const Dyadic& a, const Dyadic& b);
  friend Dyadic operator+(const Dyadic& a, const Dyadic& b) { return sum(a, b, b.negative_); }
  friend Dyadic operator-(const Dyadic& a, const Dyadic& b) { return sum(a, b, !b.negative_); }

  bool is_zero() const { return words_.empty(); }
  bool is_positive() const { return !is_zero() && !negative_; }

  /// Returns the value of the format nearest to the number divided by a divisor other than 0, ties to even;
  /// +0 for zero.
  Number rounded_quotient(const FormatInfo& format, const Dyadic& divisor) const;
  /// Returns the value of the format nearest to the number divided by the root of a positive number,
  /// likewise.
  Number rounded_ratio_to_root(const FormatInfo& format, const Dyadic& square) const;

 private:
  /// Returns a + b if b were `negative` as told.
  static Dyadic sum(const Dyadic& a, const Dyadic& b, bool negative);
  static LeadingBits quotient(const Dyadic& a, const Dyadic& b);

  std::int64_t end() const { return place_ + static_cast<std::int64_t>(words_.size()); }
  void trim();
  Words normalised(std::size_t size) const;

  bool negative_ = false;
  Words words_;
  std::int64_t place_ = 0;
};

}  // namespace samesum
