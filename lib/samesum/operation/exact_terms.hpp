/// Exact sums of elements, magnitudes, squares and products, and results that are rounded once.
#pragma once

#include "samesum/accumulator/dyadic.hpp"
#include "samesum/accumulator/exact.hpp"
#include "samesum/format/number.hpp"
#include "samesum/operation/term.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// An exact sum of terms in two parts. `sum` holds terms that are given as doubles. A second, wider integer
/// holds products of elements, which a backend adds here if they overflow as doubles or if their low word
/// would underflow.
class ExactTerms {
 public:
  static constexpr int lowest_exponent =
      Exact::lowest_exponent - 32 * 34;    ///< below the exponent of a product of subnormals
  static constexpr int digit_count = 136;  ///< up to 2^2112, and 64 bits for carries

  using Digits = std::array<std::int64_t, digit_count>;
  using Integer = WideInteger<digit_count / 2>;  ///< in units of 2^lowest_exponent

  ExactTerms() = default;
  /// The sum with these digits and the flags of an Exact. Carries need not be propagated.
  ExactTerms(const Digits& digits, std::uint32_t flags);

  /// Adds x·y exactly, for any format.
  template <class T> void add_product(T x, T y) {
    const double a = convert<double>(x), b = convert<double>(y);
    const auto is_finite = [](double v) { return v - v == 0; };
    if (!is_finite(a) || !is_finite(b) || a == 0 || b == 0) return sum.add(a * b);  // exact, or special
    const Decomposed p = decompose<double>(to_bits(a)), q = decompose<double>(to_bits(b));
    add_integers(p.negative != q.negative, p.significand, q.significand, p.exponent + q.exponent);
  }
  template <class T> void add(Term term, T x, T y) {
    if (is_product(term)) return add_product(x, second_factor(term, x, y));
    sum.add(element_term(term, x));
  }
  void merge(const ExactTerms& other);

  /// Returns the sum divided by `divisor`, correctly rounded. Special values are those of Exact::result.
  Number quotient(const FormatInfo& format, std::uint64_t divisor) const;
  /// Returns the exact value of both parts together, without special values.
  Dyadic value() const;

  /// The digits of both parts together, carries propagated: digit i counts units of
  /// 2^(lowest_exponent + 32 i).
  Digits digits() const;
  /// Returns (n·Σx² - (Σx)²) / (n·(n - ddof)) of the sum of n elements and that of their squares, which it
  /// overwrites.
  SAMESUM_HD static LeadingBits variance_quotient(const Integer& sum, Integer& squares, std::uint64_t n,
                                                  std::uint64_t ddof) {
    // The square of a sum in units of 2^(lowest_exponent / 2) is counted in those of Σx².
    constexpr int words = digit_count / 4, at = -lowest_exponent / 2, shift = at % 64;
    static_assert(lowest_exponent % 2 == 0 && shift != 0);
    WideInteger<words> half;
    for (int i = 0; i < words; ++i)
      half.word[i] = sum.word[at / 64 + i] >> shift | sum.word[at / 64 + i + 1] << (64 - shift);
    scale_variance(n, half, squares);
    return leading_quotient(squares, n, n - ddof, lowest_exponent);
  }
  /// The flags of all terms, a combination of Exact::Flag.
  std::uint32_t flags() const {
    return sum.flags() | (wide_.empty() ? 0 : Exact::seen_any | Exact::seen_other_than_minus_zero);
  }

  Exact sum;

 private:
  void add_integers(bool negative, std::uint64_t a, std::uint64_t b, int exponent);

  std::vector<std::int64_t> wide_;  ///< empty, or digit_count digits
  std::uint64_t pending_ = 0;
};

/// Returns the mean Σx/n and the variance (n·Σx² - (Σx)²) / (n·(n - ddof)), each rounded once. They are NaN
/// in the same cases as the results of MomentsReducer.
std::array<Number, 2> exact_moments(const ExactTerms& terms, const ExactTerms& squares, std::uint64_t n,
                                    std::uint64_t ddof, const FormatInfo& format);

}  // namespace samesum
