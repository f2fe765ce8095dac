/// Exact sums of rows and columns in words, and their results.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::cpu {

/// Writes the sums of `count` rows, or of as many columns, of n elements each, with bounds of what they lack:
/// see ExactResults.
template <class T>
void sum_exactly(ExactKind kind, bool rows, const T* x, const T* y, std::size_t count, std::size_t n,
                 std::size_t pitch, ExactSums* sums, bool nearly = false) {
  const auto what = static_cast<std::size_t>(kind.moments            ? ExactlySummed::elements_and_squares
                                             : is_product(kind.term) ? ExactlySummed::products
                                                                     : ExactlySummed::elements);
  const Kernels& loops = kernels(Formats::index_of<T>());
  const SumExactly sum = (rows ? loops.sum_rows_exactly : loops.sum_columns_exactly)[what];
  sum({x, y ? y : x, kind.term, count, n, pitch, nearly}, sums);
}

/// Whether sums of elements of format T that one double does not hold tell results of format F nonetheless,
/// if they lack bits.
template <class T, class F>
inline constexpr bool suffice_nearly = !std::is_same_v<T, fp64> && !std::is_same_v<F, fp64>;

/// Three words and a bound of what they lack, to which others are added.
struct BoundedWords {
  double (&word)[3];
  double& error;

  /// Multiplies by 2^k, for k <= 0.
  void scale(int k) {
    if (k == 0) return;
    for (double& x : word) x = std::ldexp(x, k);
    error = std::ldexp(error, k) + 0x1p-1000;  // the words may have lost bits
  }
  void add(double x) {
    for (double& part : word) x = two_sum(part, x);
    error += std::abs(x);
  }
  /// Adds other words times 2^k, for k <= 0.
  void add(BoundedWords other, int k) {
    other.scale(k);
    for (const double x : other.word) add(x);
    error += other.error;
    for (int i = 0; i < 2; ++i) {  // each word is below the last place of the one before it
      word[2] = two_sum(word[1], word[2]);
      word[1] = two_sum(word[0], word[1]);
    }
  }
};
/// Adds the sums of other terms, also of squares. The range of terms is not merged.
inline void merge(ExactSums& to, ExactSums other) {
  const int exponent = std::max(to.exponent, other.exponent), down = to.exponent - exponent,
            k = other.exponent - exponent;
  to.exponent = exponent;
  BoundedWords sum{to.sum, to.error}, square{to.square, to.square_error};
  sum.scale(down);
  sum.add({other.sum, other.error}, k);
  square.scale(2 * down);
  if (other.square[0] != 0 || other.square_error != 0)  // there are squares
    square.add({other.square, other.square_error}, 2 * k);
}
/// Calls visit(sums, x, y, n) with the sums of each of the rows into which n contiguous elements are split.
template <class T, class Visit>
void for_each_row_of(ExactKind kind, const T* x, const T* y, std::size_t n, bool nearly, Visit visit) {
  // Rows as long as a block are read in turn. Longer ones have fewer sums to merge, but memory is then read
  // at half the speed.
  constexpr std::size_t most = sizeof(T) == 8 ? 512 : 2048;
  while (n > 0) {
    const std::size_t count = n < 8 ? 1 : 8,  // 8 are a pack of rows in every instruction set
        each = std::min(n / count, most);
    ExactSums sums[8];
    sum_exactly(kind, true, x, y, count, each, each, sums, nearly);
    for (std::size_t k = 0; k < count; ++k) visit(sums[k], x + k * each, y ? y + k * each : nullptr, each);
    x += count * each;
    if (y) y += count * each;
    n -= count * each;
  }
}
/// The sums of n contiguous elements, without the range of terms.
template <class T> ExactSums sums_of(ExactKind kind, const T* x, const T* y, std::size_t n, bool nearly) {
  ExactSums all{};
  for_each_row_of(kind, x, y, n, nearly, [&](const ExactSums& sums, auto...) { merge(all, sums); });
  return all;
}
/// Whether the first elements of a vector span so many powers of two that no window holds their bits; if
/// `nearly`, no double, and not because of one outlier.
template <class T> bool spans_many(const T* x, std::size_t n, bool nearly) {
  const std::size_t parts = nearly ? 2 : 1, each = std::min<std::size_t>(n / parts, 512);
  if (each == 0) return false;
  for (std::size_t part = 0; part < parts; ++part) {
    ExactSums sums;
    sum_exactly<T>({}, true, x + part * each, nullptr, 1, each, each, &sums, nearly);
    if (!(sums.error > 0 && std::isfinite(sums.error))) return false;
  }
  return true;
}

/// Rounds (sum + rest + e)·2^exponent once to F, where |e| <= error and |rest| is at most half a unit of the
/// last place of the sum. Returns false if that is too close to a tie, or too small, to tell. exponent >= 0.
template <class F> bool round_scaled(double sum, double rest, double error, int exponent, F& result) {
  if (!(std::abs(sum) >= 0x1p-900) || !(error <= std::abs(sum)) || std::isinf(sum)) return false;
  error += std::abs(rest) * 0x1p-50;  // the rounding error of rest - error
  if (exponent == 0) return round_if_sure(sum, rest, error, result);
  double nearest;
  if (!round_if_sure(sum, rest, error, nearest)) return false;
  if (nearest = std::ldexp(nearest, exponent); std::isinf(nearest) || std::is_same_v<F, fp64>) {
    result = samesum::rounded<F>(nearest);  // by_key has a function of this name
    return true;
  }
  return round_if_sure(std::ldexp(sum, exponent), std::ldexp(rest, exponent), std::ldexp(error, exponent),
                       result);
}

/// Rounds a sum, or a mean of n elements, once to F. Returns false if that needs integers.
template <class F> bool round_sum(const ExactSums& of, std::uint64_t n, bool mean, F& result) {
  if (!of.is_exact() || (mean && of.sum[2] != 0)) {
    double sum = of.sum[0], rest = of.sum[1], error = of.error + std::abs(of.sum[2]);
    if (mean) {
      const double divisor = static_cast<double>(n), first = sum / divisor;
      rest = (std::fma(-first, divisor, sum) + rest) / divisor;
      error = error / divisor * 1.001 + std::abs(rest) * 0x1p-50;
      sum = first;
      if (n > std::uint64_t{1} << 53) return false;
    }
    return round_scaled(sum, rest, error, of.exponent, result);
  }
  ExactWords<2> words{{of.sum[0], rounded_to_odd(of.sum[1], of.sum[2])},
                      {},
                      SumFlags::seen_any | SumFlags::seen_other_than_minus_zero};
  if (!mean) return words.round_sum<F>({}, result);
  const auto has_room = [](double x) { return x == 0 || std::abs(x) >= 0x1p-900; };
  if (!std::has_single_bit(n) || !has_room(words.term[0]) || !has_room(words.term[1]))
    return words.round_sum<F>({n, true}, result);
  const double share = 1 / static_cast<double>(n);  // a division by a power of two is exact
  for (double& word : words.term) word *= share;
  return words.round_sum<F>({}, result);
}

/// The words of a variance, without the third ones.
inline ExactWords<2> variance_words(const ExactSums& of) {
  return {{of.sum[0], of.sum[1]},
          {of.square[0], of.square[1]},
          SumFlags::seen_any | SumFlags::seen_other_than_minus_zero};
}
/// Rounds the variance of sums that are not exact, or scaled, as round_variance().
///
/// The errors of the words may change n·Σx² - (Σx)² by 2^-104·n·Σx² at most: see ExactWords::round_variance.
template <class F>
[[gnu::noinline]] bool round_bounded_variance(const ExactSums& of, std::uint64_t n, std::uint64_t ddof,
                                              F& result) {
  const double count = static_cast<double>(n), squares = count * of.square[0],
               lacking = count * of.square_error + of.error * (2 * std::abs(of.sum[0]) + of.error);
  if (!(lacking <= squares * 0x1p-104)) return false;
  if (of.exponent == 0) return variance_words(of).round_variance<F>({n, false, ddof}, result, true);
  // Squares of numbers above 2^400: a variance that their words tell is far above the largest of a shorter
  // format.
  double variance;
  if (!variance_words(of).round_variance<double>({n, false, ddof}, variance, true)) return false;
  result = samesum::rounded<F>(std::ldexp(variance, 2 * of.exponent));
  return true;
}
/// Rounds a variance once to F. Returns false if that needs integers.
template <class F> bool round_variance(const ExactSums& of, std::uint64_t n, std::uint64_t ddof, F& result) {
  if (of.is_exact() && of.square_error == 0)
    return variance_words(of).round_variance<F>({n, false, ddof}, result, true);
  return round_bounded_variance(of, n, ddof, result);
}

}  // namespace samesum::cpu
