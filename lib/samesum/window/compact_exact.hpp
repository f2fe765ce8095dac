/// The compact state of an exact reduction of elements of up to 32 bits, and its results.
#pragma once

#include "samesum/window/sum_flags.hpp"
#include "samesum/window/window.hpp"

namespace samesum {

/// What is added: elements, products of two elements, or elements and their squares (for moments).
enum class ExactlySummed { elements, products, elements_and_squares };

/// Bits of a wide integer that holds 2^64 numbers between 2^lowest and 2^highest, and a sign.
constexpr int words_for(int lowest, int highest) { return (highest - lowest + 65 + 63) / 64; }
/// The sum of terms of `factors` factors of format T.
template <class T, int factors>
using CompactSumOf =
    CompactSum<factors * Format<T>::min_quantum,
               words_for(factors* Format<T>::min_quantum, factors*(Format<T>::max_exponent + 1))>;

/// What remains to be known of a result once its terms are added.
struct ExactResult {
  std::uint64_t n = 0;  ///< number of elements
  bool mean = false;    ///< whether the sum is divided by n
  std::uint64_t ddof = 0;
};

/// Exact sums in two words each: of the terms, and for moments of the squares.
struct ExactWords {
  double high = 0, low = 0, square_high = 0, square_low = 0;
  std::uint32_t flags = 0;  ///< a combination of SumFlags::Flag

  /// Rounds the sum, or the mean, once to F. Returns false if that needs integers, or if there are special
  /// elements, or none but -0.
  template <class F> SAMESUM_HD bool round_sum(const ExactResult& of, F& result) const {
    if (flags != (SumFlags::seen_any | SumFlags::seen_other_than_minus_zero)) return false;
    if (!of.mean) {
      result = rounded<F>(high, low);
      return true;
    }
    double sum = high;
    const double rest = two_sum(sum, low);
    return of.n <= most_divisor && round_quotient<F>(sum, rest, static_cast<double>(of.n), result);
  }

  /// Rounds the variance, (n·Σx² - (Σx)²) / (n·(n - ddof)), once to F. Returns false as round_sum does.
  ///
  /// With Σx = s + s', Σx² = q + q' and u = 2^-53: n·q and s² are exact in two words each, n·q' and 2·s·s'
  /// are rounded with errors below u²·n·Σx² and u²·(Σx)², and s'² <= u²·(Σx)² is left out. (Σx)² <= n·Σx²
  /// (Cauchy, Schwarz), so all terms below the leading ones are at most 4·u·n·Σx², and each of the four
  /// roundings of their sum adds at most 8·u²·n·Σx²: the error is below 40·u²·n·Σx² < 2^-100·n·Σx². Of few
  /// elements with few bits, doubles hold all products: then there is no error, and a tie is decided here.
  /// With `approximate` words, whose own error must be within that bound too, it is not.
  template <class F>
  SAMESUM_HD bool round_variance(const ExactResult& of, F& result, bool approximate = false) const {
    if (flags != (SumFlags::seen_any | SumFlags::seen_other_than_minus_zero)) return false;
    if (of.n <= of.ddof || of.n > most_count) return false;
    const double n = static_cast<double>(of.n), divisor = n * static_cast<double>(of.n - of.ddof);
    double s = high, q = square_high;
    const double s_low = two_sum(s, low), q_low = two_sum(q, square_low);
    const double nq = n * q, ss = s * s;
    const double products_low = (std::fma(n, q, -nq) - std::fma(s, s, -ss)) + (n * q_low - 2 * s * s_low);
    double difference = nq;
    double rest = two_sum(difference, -ss) + products_low;
    rest = two_sum(difference, rest);
    if (!(difference > 0)) return false;
    const double first = difference / divisor,
                 second = (std::fma(-first, divisor, difference) + rest) / divisor;
    const bool is_exact = !approximate && s_low == 0 && q_low == 0 && products_low == 0;
    const double error = is_exact ? 0 : nq * 0x1p-100 / divisor;
    return round_if_sure<F>(first, second, std::fabs(second) * 0x1p-50 + error, result);
  }

 private:
  static constexpr std::uint64_t most_divisor = std::uint64_t{1} << 53, most_count = 1u << 26;
};

/// The sum of terms, and the flags of the elements.
template <class T, ExactlySummed what> struct CompactExact {
  static constexpr bool moments = what == ExactlySummed::elements_and_squares;
  using Terms = CompactSumOf<T, what == ExactlySummed::products ? 2 : 1>;
  struct None {
    SAMESUM_HD void merge(None) {}
  };
  using Squares = std::conditional_t<moments, CompactSumOf<T, 2>, None>;

  Terms terms;
  [[no_unique_address]] Squares squares;
  std::uint64_t flags = 0;  ///< a combination of SumFlags::Flag

  SAMESUM_HD constexpr CompactExact() {}
  SAMESUM_HD explicit CompactExact(const ExactWords& words)
      : terms{words.high, words.low}, flags{words.flags} {
    if constexpr (moments) squares = {words.square_high, words.square_low};
  }

  SAMESUM_HD void merge(const CompactExact& other) {
    terms.merge(other.terms);
    squares.merge(other.squares);
    flags |= other.flags;
  }
  SAMESUM_HD bool is_wide() const {
    if constexpr (moments) return terms.is_wide() || squares.is_wide();
    return terms.is_wide();
  }
  /// The sums in words, unless one is wide.
  SAMESUM_HD ExactWords words() const {
    const auto seen = static_cast<std::uint32_t>(flags);
    if constexpr (moments) return {terms.high(), terms.low(), squares.high(), squares.low(), seen};
    return {terms.high(), terms.low(), 0, 0, seen};
  }

  /// The sum, or the mean, before it is rounded to a format. The value of a mean of no elements is not used.
  SAMESUM_HD LeadingBits quotient(const ExactResult& of) const {
    return leading_quotient(terms.integer(), of.mean && of.n > 0 ? of.n : 1, 1, Terms::lowest);
  }
  /// The variance before it is rounded to a format. If n <= ddof, the value is not used.
  SAMESUM_HD LeadingBits variance_quotient(const ExactResult& of) const {
    if (of.n <= of.ddof) return {};
    const auto numerator = scaled_variance(of.n, terms.integer(), squares.integer());
    return leading_quotient(numerator, of.n, of.n - of.ddof, 2 * Terms::lowest);
  }
  /// Bit pattern of the sum, or the mean, rounded once to F.
  template <class F> SAMESUM_HD BitsOf<F> bits(const ExactResult& of, const LeadingBits& quotient) const {
    if (of.mean && of.n == 0) return Format<F>::canonical_nan;
    if (flags & SumFlags::special_flags) return special_bits<F>(static_cast<std::uint32_t>(flags));
    if (flags == SumFlags::seen_any) return Format<F>::sign_bit;
    return quotient.template rounded<F>();
  }
  /// Bit pattern of the variance, rounded once to F.
  template <class F>
  SAMESUM_HD BitsOf<F> variance_bits(const ExactResult& of, const LeadingBits& quotient) const {
    if ((flags & SumFlags::special_flags) || of.n <= of.ddof) return Format<F>::canonical_nan;
    return quotient.template rounded<F>();
  }
};

}  // namespace samesum
