/// An exact sum that is rounded after each element: neither an addition nor a rounding passes over all words.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "samesum/accumulator/canonical_digits.hpp"

namespace samesum {

/// A sum of fewer than 2^64 elements: a wide integer in two's complement, in units of the smallest subnormal
/// of fp64. Carries are always propagated: a sum rarely changes its sign, so they rarely run far. Masks tell
/// which words are 0 and which are sign extension.
/// @tparam Words memory of `words` words, such as std::array: words[i] is word i, the lowest first.
template <class Words> class RunningExact {
 public:
  static constexpr int words = Exact::digit_count / 2;

  /// A sum whose words must all be set.
  SAMESUM_HD explicit RunningExact(Words memory) : word_{memory} {}

  SAMESUM_HD void set(int i, std::uint64_t value) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    word_[at(i)] = value;
    not_zero_ = value == 0 ? not_zero_ & ~bit : not_zero_ | bit;
    not_ones_ = ~value == 0 ? not_ones_ & ~bit : not_ones_ | bit;
  }
  SAMESUM_HD std::uint64_t word(int i) const { return word_[at(i)]; }
  /// Adds flags of elements, a combination of SumFlags::Flag.
  SAMESUM_HD void add_flags(std::uint32_t flags) { flags_ |= flags; }
  SAMESUM_HD std::uint32_t flags() const { return flags_; }
  /// Adds a finite number, but not its flags.
  SAMESUM_HD void add_finite(double x) {
    const Decomposed d = decompose<double>(to_bits(x));
    const int place = d.exponent - Exact::lowest_exponent;
    const Wide term = Wide{d.significand} << place % 64;
    if (d.significand != 0) d.negative ? subtract(place / 64, term) : add(place / 64, term);
  }

  /// Writes two doubles whose sum is that of the finite elements times 2^scale, but for less than 2^-105 of
  /// it. Returns whether they lack nothing; false also if they would be very large or very small, and then
  /// writes NaN.
  SAMESUM_HD bool leading(double& high, double& low, int scale = 0) const {
    high = low = 0;
    if (not_zero_ == 0) return true;
    const bool negative = word_[at(words - 1)] >> 63;
    const std::uint64_t has_bits = negative ? not_ones_ : not_zero_;
    const int top = has_bits == 0 ? 0 : 63 - leading_zeros(has_bits);
    const auto word = [&](int i) { return i < 0 ? 0 : negative ? ~word_[at(i)] : word_[at(i)]; };
    std::uint64_t a = word(top), b = word(top - 1), c = word(top - 2);
    const bool more = top > 2 && (not_zero_ << (66 - top)) != 0;
    if (negative && !more) {  // the magnitude is one more than the complement
      if (top >= 2) b += ++c == 0, a += c == 0 && b == 0;
      if (top == 1) a += ++b == 0;
      if (top == 0) ++a;
      if (a == 0) return high = low = std::numeric_limits<double>::quiet_NaN(), false;
    }
    const int zeros = leading_zeros(a), exponent = scale + Exact::lowest_exponent + 64 * top + 11 - zeros;
    if (exponent < -900 || exponent > 900)
      return high = low = std::numeric_limits<double>::quiet_NaN(), false;
    if (zeros > 0) {
      a = a << zeros | b >> (64 - zeros);
      b = b << zeros | c >> (64 - zeros);
      c <<= zeros;
    }
    const double unit = negative ? -power_of_two(exponent) : power_of_two(exponent);
    high = static_cast<double>(a >> 11) * unit;
    low = static_cast<double>((a & 0x7ff) << 42 | b >> 22) * (unit * 0x1p-53);
    return !more && (b << 42 | c) == 0;
  }

  /// Bit pattern of the sum, correctly rounded to F: that of Exact::result.
  template <class F> SAMESUM_HD BitsOf<F> rounded() const {
    if (flags_ & SumFlags::special_flags) return special_bits<F>(flags_);
    if (not_zero_ == 0) return flags_ == SumFlags::seen_any ? Format<F>::sign_bit : BitsOf<F>{0};
    // The highest word that is not sign extension, the one below it, and whether there are bits below both.
    const bool negative = word_[at(words - 1)] >> 63;
    const std::uint64_t has_bits = negative ? not_ones_ : not_zero_;
    const int top = has_bits == 0 ? 0 : 63 - leading_zeros(has_bits);
    Wide leading = Wide{word_[at(top)]} << 64 | (top == 0 ? 0 : word_[at(top - 1)]);
    const bool more = top > 1 && (not_zero_ << (65 - top)) != 0;
    int exponent = Exact::lowest_exponent + 64 * (top - 1);
    if (negative) {
      leading = ~leading + Wide{!more};
      if (leading == 0) {  // the magnitude is 2^128 units of the lower word
        leading = Wide{1} << 127;
        ++exponent;
      }
    }
    return LeadingBits{negative, more, leading, exponent}.template rounded<F>();
  }

 private:
  SAMESUM_HD static constexpr auto at(int i) { return static_cast<std::size_t>(i); }

  SAMESUM_HD void add(int i, Wide term) {
    const Wide low = Wide{word_[at(i)]} + static_cast<std::uint64_t>(term),
               high = Wide{word_[at(i + 1)]} + static_cast<std::uint64_t>(term >> 64) + (low >> 64);
    set(i, static_cast<std::uint64_t>(low));
    set(i + 1, static_cast<std::uint64_t>(high));
    bool carry = high >> 64 != 0;
    for (int k = i + 2; carry && k < words; ++k) {
      set(k, word_[at(k)] + 1);
      carry = word_[at(k)] == 0;
    }
  }
  SAMESUM_HD void subtract(int i, Wide term) {
    const Wide low = Wide{word_[at(i)]} - static_cast<std::uint64_t>(term),
               high = Wide{word_[at(i + 1)]} - static_cast<std::uint64_t>(term >> 64) - Wide{low >> 64 != 0};
    set(i, static_cast<std::uint64_t>(low));
    set(i + 1, static_cast<std::uint64_t>(high));
    bool borrow = high >> 64 != 0;
    for (int k = i + 2; borrow && k < words; ++k) {
      borrow = word_[at(k)] == 0;
      set(k, word_[at(k)] - 1);
    }
  }

  Words word_;
  std::uint64_t not_zero_ = 0, not_ones_ = 0;  ///< a bit for each word
  std::uint32_t flags_ = 0;                    ///< those of Exact
};

/// A running sum in host memory.
class RunningSum {
 public:
  RunningSum() : RunningSum{Exact{}} {}
  explicit RunningSum(const Exact& sum) {
    const auto digits = canonical_digits(sum);
    for (std::size_t i = 0; i < digits.size() / 2; ++i)
      sum_.set(static_cast<int>(i), word_of_digits(digits, i));
    sum_.add_flags(sum.flags());
  }

  /// Adds an element.
  template <class T> void add(T x) {
    sum_.add_flags(seen_flags(x));
    if (special_flags_of(x) == 0) sum_.add_finite(convert<double>(x));
  }
  /// Returns the same sum as a superaccumulator.
  Exact exact() const {
    std::array<std::int64_t, Exact::digit_count> digits;
    for (std::size_t i = 0; i < digits.size() / 2; ++i) {
      const std::uint64_t word = sum_.word(static_cast<int>(i));
      digits[2 * i] = static_cast<std::uint32_t>(word);
      digits[2 * i + 1] = static_cast<std::uint32_t>(word >> 32);
    }
    digits.back() = static_cast<std::int32_t>(digits.back());
    return {digits, sum_.flags()};
  }
  /// Returns the sum of the finite elements as two doubles: see RunningExact::leading.
  bool leading(double& high, double& low, int scale = 0) const { return sum_.leading(high, low, scale); }
  /// Flags of the elements, a combination of SumFlags::Flag.
  std::uint32_t flags() const { return sum_.flags(); }
  /// Returns the sum, correctly rounded to F.
  template <class F> F result() const { return from_bits<F>(sum_.template rounded<F>()); }

 private:
  RunningExact<std::array<std::uint64_t, Exact::digit_count / 2>> sum_{{}};
};

}  // namespace samesum
