/// An exact sum that is rounded after each element: neither an addition nor a rounding passes over all words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "samesum/accumulator/exact.hpp"

namespace samesum::cpu {

/// A sum of fewer than 2^64 elements, as a wide integer in two's complement in units of the smallest
/// subnormal of fp64. Carries are always propagated: a sum rarely changes its sign, so they rarely run far.
class RunningExact {
 public:
  RunningExact() = default;
  explicit RunningExact(const Exact& sum) : flags_{sum.flags()} {
    std::array<std::int64_t, Exact::digit_count> digits;
    std::ranges::copy(sum.digits(), digits.begin());
    propagate_carries(digits.data(), Exact::digit_count);
    for (int i = 0; i < words; ++i)
      set(i, static_cast<std::uint64_t>(digits[std::size_t(2 * i)]) |
                 static_cast<std::uint64_t>(digits[std::size_t(2 * i + 1)]) << 32);
  }

  /// Adds an element.
  template <class T> void add(T x) {
    flags_ |= seen_flags(x);
    if (special_flags_of(x) != 0) return;
    const Decomposed d = decompose<T>(to_bits(x));
    const int place = d.exponent - Exact::lowest_exponent;
    const Wide term = Wide{d.significand} << place % 64;
    d.negative ? subtract(place / 64, term) : add(place / 64, term);
  }

  /// Returns the sum, correctly rounded to F, with the bits of Exact::result.
  template <class F> F result() const {
    if (flags_ & SumFlags::special_flags) return from_bits<F>(special_bits<F>(flags_));
    if (not_zero_ == 0)
      return from_bits<F>(flags_ == SumFlags::seen_any ? Format<F>::sign_bit : BitsOf<F>{0});
    // The highest word that is not sign extension, the one below it, and whether there are bits below both.
    const bool negative = word_[words - 1] >> 63;
    const std::uint64_t has_bits = negative ? not_ones_ : not_zero_;
    const int top = has_bits == 0 ? 0 : 63 - std::countl_zero(has_bits);
    Wide leading = Wide{word_[std::size_t(top)]} << 64 | (top == 0 ? 0 : word_[std::size_t(top - 1)]);
    const bool more = top > 1 && (not_zero_ << (65 - top)) != 0;
    int exponent = Exact::lowest_exponent + 64 * (top - 1);
    if (negative) {
      leading = ~leading + Wide{!more};
      if (leading == 0) {  // the magnitude is 2^128 units of the lower word
        leading = Wide{1} << 127;
        ++exponent;
      }
    }
    return from_bits<F>(round_wide<F, true>(negative, leading, more, exponent));
  }

 private:
  static constexpr int words = Exact::digit_count / 2;

  void set(int i, std::uint64_t value) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    word_[std::size_t(i)] = value;
    not_zero_ = value == 0 ? not_zero_ & ~bit : not_zero_ | bit;
    not_ones_ = ~value == 0 ? not_ones_ & ~bit : not_ones_ | bit;
  }
  void add(int i, Wide term) {
    const Wide low = Wide{word_[std::size_t(i)]} + static_cast<std::uint64_t>(term),
               high = Wide{word_[std::size_t(i + 1)]} + static_cast<std::uint64_t>(term >> 64) + (low >> 64);
    set(i, static_cast<std::uint64_t>(low));
    set(i + 1, static_cast<std::uint64_t>(high));
    bool carry = high >> 64 != 0;
    for (int k = i + 2; carry && k < words; ++k) {
      set(k, word_[std::size_t(k)] + 1);
      carry = word_[std::size_t(k)] == 0;
    }
  }
  void subtract(int i, Wide term) {
    const Wide low = Wide{word_[std::size_t(i)]} - static_cast<std::uint64_t>(term),
               high = Wide{word_[std::size_t(i + 1)]} - static_cast<std::uint64_t>(term >> 64) -
                      (low >> 64 != 0 ? 1 : 0);
    set(i, static_cast<std::uint64_t>(low));
    set(i + 1, static_cast<std::uint64_t>(high));
    bool borrow = high >> 64 != 0;
    for (int k = i + 2; borrow && k < words; ++k) {
      borrow = word_[std::size_t(k)] == 0;
      set(k, word_[std::size_t(k)] - 1);
    }
  }

  std::array<std::uint64_t, words> word_{};
  std::uint64_t not_zero_ = 0, not_ones_ = (std::uint64_t{1} << words) - 1;  ///< a bit for each word
  std::uint32_t flags_ = 0;                                                  ///< those of Exact
};

}  // namespace samesum::cpu
