/// The compact state of an exact reduction, and its results.
#pragma once

#include "samesum/window/sum_flags.hpp"
#include "samesum/window/window.hpp"

namespace samesum {

/// What is added: elements, products of two elements, or elements and their squares (for moments).
enum class ExactlySummed { elements, products, elements_and_squares };

/// Bits of a wide integer that holds 2^64 numbers between 2^lowest and 2^highest, and a sign.
constexpr int words_for(int lowest, int highest) { return (highest - lowest + 65 + 63) / 64; }
/// The sum of terms of `factors` factors of format T.
template <class T, int factors, int words = 2>
using CompactSumOf =
    CompactSum<factors * Format<T>::min_quantum,
               words_for(factors* Format<T>::min_quantum, factors*(Format<T>::max_exponent + 1)), words>;

/// What remains to be known of a result once its terms are added.
struct ExactResult {
  std::uint64_t n = 0;  ///< number of elements
  bool mean = false;    ///< whether the sum is divided by n
  std::uint64_t ddof = 0;

  /// Bit pattern of the sum, or the mean, rounded once to F. `flags` is a combination of SumFlags::Flag.
  template <class F> SAMESUM_HD BitsOf<F> bits(std::uint64_t flags, const LeadingBits& quotient) const {
    if (mean && n == 0) return Format<F>::canonical_nan;
    if (flags & SumFlags::special_flags) return special_bits<F>(static_cast<std::uint32_t>(flags));
    if (flags == SumFlags::seen_any) return Format<F>::sign_bit;
    return quotient.template rounded<F>();
  }
  /// Bit pattern of the variance, rounded once to F.
  template <class F>
  SAMESUM_HD BitsOf<F> variance_bits(std::uint64_t flags, const LeadingBits& quotient) const {
    if ((flags & SumFlags::special_flags) || n <= ddof) return Format<F>::canonical_nan;
    return quotient.template rounded<F>();
  }
};

/// Exact sums in a few words each: of the terms, and for moments of the squares. Results that more bits would
/// not change may have errors.
template <int of_terms, int of_squares = of_terms> struct ExactWords {
  double term[of_terms] = {}, square[of_squares] = {};
  std::uint32_t flags = 0;  ///< a combination of SumFlags::Flag

  /// Rounds the sum, or the mean, once to F. Returns false if that needs integers.
  template <class F> SAMESUM_HD bool round_sum(const ExactResult& of, F& result) const {
    if (flags != plain) {  // no elements, none but -0, or special ones
      result = from_bits<F>(of.bits<F>(flags, {}));
      return true;
    }
    if (of.mean && of.n > most_divisor) return false;
    const auto n = static_cast<double>(of.n);
    double high = term[0], low = term[1];
    if constexpr (of_terms == 2) {
      if (of.mean) {
        low = two_sum(high, low);
        return round_quotient<F>(high, low, n, result);
      }
      result = rounded<F>(high, low);
      return true;
    } else {
      // Two words, and a bound of the others, decide nearly all results.
      low = two_sum(high, low);
      double error = 0;
      for (int w = 2; w < of_terms; ++w) error += std::fabs(term[w]);
      if (error != 0) error = (error + std::fabs(low) * 0x1p-50) * (1 + 0x1p-50);
      if (of.mean ? round_quotient<F>(high, low, 0, error, n, result)
                  : round_if_sure<F>(high, low, error, result))
        return true;
      double word[of_terms];
      for (int w = 0; w < of_terms; ++w) word[w] = term[w];
      if (!distill(word)) return false;
      const double third = third_of(word);
      if (of.mean) return round_quotient<F>(word[0], word[1], third, 0, n, result);
      result = rounded<F>(word[0], third == 0 ? word[1] : rounded_to_odd(word[1], third));
      return true;
    }
  }

  /// Rounds the variance, (n·Σx² - (Σx)²) / (n·(n - ddof)), once to F. Returns false as round_sum does.
  ///
  /// In two words: with Σx = s + s', Σx² = q + q' and u = 2^-53, n·q and s² are exact in two words each, n·q'
  /// and 2·s·s' are rounded with errors below u²·n·Σx² and u²·(Σx)², and s'² <= u²·(Σx)² is left out.
  /// (Σx)² <= n·Σx² (Cauchy, Schwarz), so all terms below the leading ones are at most 4·u·n·Σx², and each of
  /// the four roundings of their sum adds at most 8·u²·n·Σx²: the error is below 40·u²·n·Σx² < 2^-100·n·Σx².
  /// If the elements have few bits, there is no error: then ties, and a variance of 0, are decided here, but
  /// not with `approximate` words, whose own error must be within that bound too.
  template <class F>
  SAMESUM_HD bool round_variance(const ExactResult& of, F& result, bool approximate = false) const {
    if (flags != plain || of.n <= of.ddof) {
      result = from_bits<F>(of.variance_bits<F>(flags, {}));
      return true;
    }
    if (of.n > most_count) return false;
    const double n = static_cast<double>(of.n), divisor = n * static_cast<double>(of.n - of.ddof);
    if constexpr (of_squares > 2 && of_terms > 2) return round_in_three_words<F>(n, divisor, result);
    double s = term[0], q = square[0], q_low;
    const double s_low = two_sum(s, term[1]);
    if constexpr (of_squares > 2) {
      double word[of_squares];
      for (int w = 0; w < of_squares; ++w) word[w] = square[w];
      if (!distill(word)) return false;
      q = word[0];
      q_low = word[1];
      approximate = approximate || word[2] != 0;
    } else {
      q_low = two_sum(q, square[1]);
    }
    const double nq = n * q, ss = s * s;
    const double products_low = (std::fma(n, q, -nq) - std::fma(s, s, -ss)) + (n * q_low - 2 * s * s_low);
    double difference = nq;
    double rest = two_sum(difference, -ss) + products_low;
    rest = two_sum(difference, rest);
    const double error = nq * 0x1p-100;
    if (!approximate && is_exact(error, {s, s_low}, {q, q_low}))
      return round_numerator<F>(difference, rest, 0, 0, divisor, result);
    if (!(difference > 0)) return false;
    const double first = difference / divisor,
                 second = (std::fma(-first, divisor, difference) + rest) / divisor;
    return round_if_sure<F>(first, second, std::fabs(second) * 0x1p-50 + error / divisor, result);
  }

 private:
  static constexpr std::uint32_t plain = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
  static constexpr std::uint64_t most_divisor = std::uint64_t{1} << 52, most_count = 1u << 26;

  /// Whether n·Σx² - (Σx)², computed in words with an error of at most `error`, has none: all terms and
  /// roundings are multiples of the smaller of the lowest bit of Σx² and the square of that of Σx, and so is
  /// the error.
  template <int of_s, int of_q>
  SAMESUM_HD static bool is_exact(double error, const double (&s)[of_s], const double (&q)[of_q]) {
    const double bit_of_s = lowest_bit(s), bit_of_q = lowest_bit(q);
    return bit_of_q == 0 || (error < bit_of_q && (bit_of_s == 0 || error < bit_of_s * bit_of_s));
  }
  /// Rounds the variance, (first + second + third + e) / divisor with |e| <= error, once to F.
  template <class F>
  SAMESUM_HD static bool round_numerator(double first, double second, double third, double error,
                                         double divisor, F& result) {
    if (first == 0 && error == 0) {
      result = F{};
      return true;
    }
    return first >= 0x1p-800 && round_quotient<F>(first, second, third, error, divisor, result);
  }

  /// For elements of fp64, whose variances need more bits. With Σx = s + s' + s'' and Σx² = q + q' + q'',
  /// n·q, n·q', s² and 2·s·s' are exact in two words each. All that is left, and the errors of the sums of
  /// the leading words, are at most 24·u²·n·Σx² together; adding them in ten roundings, and leaving out what
  /// is below s'' and q'', has an error below 400·u³·n·Σx² < 2^-150·n·Σx².
  template <class F> SAMESUM_HD bool round_in_three_words(double n, double divisor, F& result) const {
    double s[of_terms], q[of_squares];
    for (int w = 0; w < of_terms; ++w) s[w] = term[w];
    for (int w = 0; w < of_squares; ++w) q[w] = square[w];
    if (!distill(s) || !distill(q)) return false;
    const double nq = n * q[0], ss = s[0] * s[0], more_q = n * q[1], more_s = 2 * s[0] * s[1];
    // So that no error underflows: that of s² is a multiple of 2^-1074, as windows of squares hold no numbers
    // but multiples of 2^-537.
    if (nq != 0 && !(nq >= 0x1p-800 && nq <= 0x1p1000)) return false;
    double difference = nq, rest = two_sum(difference, -ss), low = 0;
    for (const double x : {std::fma(n, q[0], -nq), -std::fma(s[0], s[0], -ss), more_q, -more_s})
      low += two_sum(rest, x);
    low += (std::fma(n, q[1], -more_q) - std::fma(2 * s[0], s[1], -more_s)) +
           (n * q[2] - 2 * s[0] * s[2] - s[1] * s[1]);
    double numerator[] = {difference, rest, low};
    if (!distill(numerator)) return false;
    const double error = nq * 0x1p-150;
    return round_numerator<F>(numerator[0], numerator[1], numerator[2], is_exact(error, s, q) ? 0 : error,
                              divisor, result);
  }
};

/// Words of the sums of a result: enough for elements of any 60 binades, and for products of such elements.
template <class T, ExactlySummed what>
inline constexpr int words_of_terms = what == ExactlySummed::products ? (sizeof(T) == 8 ? 5 : 4)
                                                                      : (sizeof(T) == 8 ? 3 : 2);
template <class T> inline constexpr int words_of_squares = sizeof(T) == 8 ? 5 : 4;

/// The sum of terms, and the flags of the elements.
template <class T, ExactlySummed what> struct CompactExact {
  static constexpr bool moments = what == ExactlySummed::elements_and_squares;
  static constexpr int of_terms = words_of_terms<T, what>, of_squares = words_of_squares<T>;
  using Terms = CompactSumOf<T, what == ExactlySummed::products ? 2 : 1, of_terms>;
  using Words = ExactWords<of_terms, moments ? of_squares : 1>;
  struct None {
    SAMESUM_HD void merge(None) {}
  };
  using Squares = std::conditional_t<moments, CompactSumOf<T, 2, of_squares>, None>;

  Terms terms;
  [[no_unique_address]] Squares squares;
  std::uint64_t flags = 0;  ///< a combination of SumFlags::Flag

  SAMESUM_HD constexpr CompactExact() {}
  SAMESUM_HD explicit CompactExact(const Words& words) : terms{words.term}, flags{words.flags} {
    if constexpr (moments) squares = Squares{words.square};
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
  SAMESUM_HD Words words() const {
    Words all;
    for (int w = 0; w < of_terms; ++w) all.term[w] = terms.word(w);
    if constexpr (moments)
      for (int w = 0; w < of_squares; ++w) all.square[w] = squares.word(w);
    all.flags = static_cast<std::uint32_t>(flags);
    return all;
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
};

}  // namespace samesum
