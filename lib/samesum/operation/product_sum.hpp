/// Exact sums of elements, and of products of up to three of them, which are added one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "samesum/accumulator/dyadic.hpp"
#include "samesum/window/sum_flags.hpp"

namespace samesum {

/// An exact sum of elements or of products. The flags, a combination of SumFlags::Flag, tell of NaN,
/// infinities and -0.
struct SumOfProducts {
  Dyadic value;
  std::uint32_t flags = 0;

  /// Whether a NaN or an infinity was added.
  bool is_special() const { return (flags & SumFlags::special_flags) != 0; }
  bool is_zero() const { return !is_special() && value.is_zero(); }
  /// Returns NaN, an infinity or zero if the sum is one, else a number of its sign.
  double representative() const {
    if (is_special()) return from_bits<double>(special_bits<double>(flags));
    if (value.is_zero()) return flags == SumFlags::seen_any ? -0.0 : 0.0;
    return value.is_positive() ? 1 : -1;
  }
};

/// A sum of products of doubles. Positive and negative products are added apart, so that carries are short.
class ProductSum {
 public:
  /// Adds the product of up to three factors.
  template <std::size_t factors> void add(const std::array<double, factors>& x) {
    bool negative = false, is_finite = true, is_zero = false;
    for (const double factor : x) {
      negative = negative != std::signbit(factor);
      is_finite = is_finite && std::abs(factor) <= std::numeric_limits<double>::max();
      is_zero = is_zero || factor == 0;
    }
    if (!is_finite) {
      double product = 1;
      for (const double factor : x) product *= factor;
      flags_ |= seen_flags(product);
    } else if (is_zero) {
      flags_ |= seen_flags(negative ? -0.0 : 0.0);
    } else {
      flags_ |= SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
      std::uint64_t product[factors] = {1};
      int exponent = 0;
      for (const double factor : x) {
        const Decomposed d = decompose<double>(to_bits(factor));
        exponent += d.exponent;
        std::uint64_t carry = 0;
        for (std::uint64_t& word : product) {
          const Wide part = Wide{word} * d.significand + carry;
          word = word_of(part, 0);
          carry = word_of(part, 1);
        }
      }
      add_to(magnitude_[negative], product, exponent - 64 * place);
    }
  }
  /// Moves the sum out: then that of no products is left.
  SumOfProducts take() {
    SumOfProducts sum{of_sign(false) + of_sign(true), flags_};
    for (auto& words : magnitude_) std::fill(words + first_, words + std::max(first_, end_), 0);
    first_ = count, end_ = 0, flags_ = 0;
    return sum;
  }

 private:
  // Products are multiples of 2^-3222, and 2^64 of them are below 2^3136.
  static constexpr int place = -51;
  static constexpr std::size_t count = 104;

  static std::uint64_t word_of(Wide x, int i) { return static_cast<std::uint64_t>(x >> 64 * i); }
  template <std::size_t factors>
  void add_to(std::uint64_t* words, const std::uint64_t (&product)[factors], int shift) {
    std::size_t at = static_cast<std::size_t>(shift / 64);
    std::uint64_t carry = 0;
    const auto add = [&](Wide shifted) {
      const Wide sum = Wide{words[at]} + word_of(shifted, 0) + carry;
      words[at++] = word_of(sum, 0);
      carry = word_of(sum, 1) + word_of(shifted, 1);
    };
    first_ = std::min(first_, at);
    for (const std::uint64_t word : product) add(Wide{word} << shift % 64);
    while (carry != 0) add(0);
    end_ = std::max(end_, at);
  }
  Dyadic of_sign(bool negative) const {
    if (first_ >= end_) return {};
    return {negative, {magnitude_[negative] + first_, end_ - first_}, place + static_cast<int>(first_)};
  }

  std::uint64_t magnitude_[2][count] = {};
  std::size_t first_ = count, end_ = 0;  ///< of the words that are not 0
  std::uint32_t flags_ = 0;
};

}  // namespace samesum
