/// What the states of rolling methods share: moves of a window, and rounded means. A state adds the element
/// that enters a window and subtracts the one that leaves it, or, for extrema, meets chunks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/call/windows.hpp"
#include "samesum/operation/exact_reduction.hpp"
#include "samesum/operation/rolling.hpp"

namespace samesum::cpu {
namespace {

/// Moves of a window that are made together.
constexpr std::size_t moves_at_once = 512;

const Kernels& loops_of_doubles() { return kernels(Formats::index_of<fp64>()); }

/// Some moves of a window: in each, one element enters and one leaves; 0 stands for none.
struct Moves {
  const double *entering, *leaving;
  std::size_t n;
  const std::uint64_t* counts;  ///< number of elements after each move
  bool is_full;                 ///< whether all counts are the size of a window
};

/// The options of a call that states need.
struct RollingTask {
  RollingKind kind;
  Windows windows;
  std::uint64_t ddof;
  int grid;
  std::atomic<bool>* overflowed;
};

template <class F> F rounded_mean(const Exact& sum, std::uint64_t count) {
  ExactTerms terms;
  terms.sum = sum;
  return terms.quotient(format_info<F>(), std::max<std::uint64_t>(count, 1)).template as<F>();
}
/// Rounds (sum + rest) / n once to F, where |rest| is at most half a unit of the last place of the sum.
template <class F> F rounded_mean(double sum, double rest, std::uint64_t count) {
  const std::uint64_t n = std::max<std::uint64_t>(count, 1);
  const auto has_room = [](double x) { return x == 0 || std::abs(x) >= 0x1p-900; };
  if (std::has_single_bit(n) && has_room(sum) && has_room(rest)) {
    const double share = 1 / static_cast<double>(n);  // a division by a power of two is exact
    return rounded<F>(sum * share, rest * share);
  }
  if (F result; round_quotient<F>(sum, rest, static_cast<double>(n), result)) return result;
  Exact both;
  both.add(sum);
  both.add(rest);
  return rounded_mean<F>(both, n);
}

/// Writes means, as rounded_mean does. The quotient of a sum, and what it lacks, are found without a fused
/// multiply-add, which the baseline of instruction sets lacks: the products of a divisor below 2^26 and of
/// both halves of the quotient are exact.
void write_means(const double* sum, const double* rest, std::size_t n, const std::uint64_t* counts,
                 double* out) {
  double above[moves_at_once];
  for (std::size_t i = 0; i < n; ++i) {
    constexpr double halves = 0x1p27 + 1;
    const double divisor = static_cast<double>(static_cast<std::int64_t>(counts[i])),
                 first = sum[i] / divisor, far = first * halves, high = far - (far - first),
                 remainder = (sum[i] - high * divisor) - (first - high) * divisor + rest[i],
                 second = remainder / divisor, error = std::abs(second) * 0x1p-50;
    // Otherwise `second` may have lost bits, or a half overflowed.
    const bool is_sure = std::abs(first) > 0x1p-900 && std::abs(first) < 0x1p900 && divisor < 0x1p26;
    out[i] = first + (second - error);
    above[i] = is_sure ? first + (second + error) : std::numeric_limits<double>::quiet_NaN();
  }
  for (std::size_t i = 0; i < n; ++i)
    if (out[i] != above[i]) out[i] = rounded_mean<double>(sum[i], rest[i], counts[i]);
}

}  // namespace
}  // namespace samesum::cpu
