/// Exact sums of rows and columns in words, and their results.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::cpu {

/// Writes the exact sums of `count` rows, or of as many columns, of n elements each.
template <class T>
void sum_exactly(ExactKind kind, bool rows, const T* x, const T* y, std::size_t count, std::size_t n,
                 std::size_t pitch, ExactSums* sums) {
  const auto what = static_cast<std::size_t>(kind.moments            ? ExactlySummed::elements_and_squares
                                             : is_product(kind.term) ? ExactlySummed::products
                                                                     : ExactlySummed::elements);
  const Kernels& loops = kernels(Formats::index_of<T>());
  const SumExactly sum = (rows ? loops.sum_rows_exactly : loops.sum_columns_exactly)[what];
  sum({x, y ? y : x, kind.term, count, n, pitch}, sums);
}

/// Rounds a sum, or a mean of n elements, once to F. Returns false if that needs integers.
template <class F> bool round_sum(const ExactSums& of, std::uint64_t n, bool mean, F& result) {
  if (!of.known || (mean && of.sum[2] != 0)) return false;
  ExactWords words{of.sum[0], rounded_to_odd(of.sum[1], of.sum[2]), 0, 0,
                   SumFlags::seen_any | SumFlags::seen_other_than_minus_zero};
  if (!mean) return words.round_sum<F>({}, result);
  const auto has_room = [](double x) { return x == 0 || std::abs(x) >= 0x1p-900; };
  if (!std::has_single_bit(n) || !has_room(words.high) || !has_room(words.low))
    return words.round_sum<F>({n, true}, result);
  const double share = 1 / static_cast<double>(n);  // a division by a power of two is exact
  words.high *= share;
  words.low *= share;
  return words.round_sum<F>({}, result);
}

/// Rounds a variance once to F, without the third words. Returns false if that needs integers.
template <class F> bool round_variance(const ExactSums& of, std::uint64_t n, std::uint64_t ddof, F& result) {
  const ExactWords words{of.sum[0], of.sum[1], of.square[0], of.square[1],
                         SumFlags::seen_any | SumFlags::seen_other_than_minus_zero};
  return of.known && words.round_variance<F>({n, false, ddof}, result, true);
}

}  // namespace samesum::cpu
