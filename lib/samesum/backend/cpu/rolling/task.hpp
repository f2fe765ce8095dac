/// What the states of rolling methods share: moves of a window, and rounded means. A state adds the element
/// that enters a window and subtracts the one that leaves it, or meets chunks.
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

/// How a window begins, with no elements.
struct Beginning {
  std::size_t place;  ///< of the first element
  double largest;     ///< the largest magnitude of the elements that follow, as far as they are known
  double centre;      ///< one of them if all places have elements, else 0
};

/// The options of a call that states need.
struct RollingTask {
  RollingKind kind;
  Windows windows;
  std::uint64_t ddof;
  int grid;
  std::atomic<bool>* overflowed;
  std::uint64_t counts[moves_at_once] = {};  ///< of elements in windows that are full
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

/// The divisors of results, as RolledMoves has them: of each result, or of all.
template <std::size_t results> struct Divisors {
  static constexpr std::size_t pack = 8;  ///< numbers of a vector, or more
  static constexpr bool vary = results > 1;
  double divisor[results + pack - 1], share[results + pack - 1], count[results + pack - 1];

  /// Divisors for windows with so many elements.
  Divisors(RollingKind kind, std::uint64_t ddof, const std::uint64_t* counts, std::size_t n) {
    constexpr std::uint64_t most = 1u << 26;  // then a double holds all divisors
    for (std::size_t i = 0; i < n + pack - 1; ++i) {
      const std::uint64_t elements = i < n ? counts[i] : counts[n - 1],
                          least = kind == RollingKind::variance ? ddof + 1 : 1;
      count[i] = static_cast<double>(elements);
      divisor[i] = kind == RollingKind::variance ? count[i] * static_cast<double>(elements - ddof) : count[i];
      share[i] =
          elements < least || elements > most ? std::numeric_limits<double>::quiet_NaN() : 1 / divisor[i];
    }
  }
  Divisors(RollingKind kind, std::uint64_t ddof, std::uint64_t count) : Divisors{kind, ddof, &count, 1} {}

  template <class F> RolledMoves of(const Moves& m, RollingKind kind) const {
    constexpr bool to_odd = !std::is_same_v<F, fp64>;
    return {kind, m.entering, m.leaving, m.n, divisor, share, count, vary, to_odd};
  }
};
/// Room for bounds of results.
template <class F> struct Bounds {
  /// For fp64, the lower ones are the results if both are equal.
  double* lower(F* out) { return std::is_same_v<F, fp64> ? reinterpret_cast<double*>(out) : below; }
  double below[moves_at_once], upper[moves_at_once];
};
/// Writes results whose bounds round to the same number of F. Calls undecided(i) for the others.
template <class F, class Undecided>
void write_decided(const double* lower, const double* upper, std::size_t n, F* out, Undecided undecided) {
  for (std::size_t i = 0; i < n; ++i) {
    const double low = lower[i], high = upper[i];
    const F result = rounded<F>(low);
    out[i] = result;
    if (low == high) continue;
    if (!(low < high) || to_bits(result) != to_bits(rounded<F>(high))) undecided(i);
  }
}

/// Writes means, as rounded_mean does.
template <class F> class MeanWriter {
 public:
  explicit MeanWriter(const RollingTask& task) : full_{RollingKind::mean, 0, task.windows.size} {}

  void write(const double* sum, const double* rest, const Moves& m, F* out) const {
    if (m.is_full) return write(sum, rest, m, full_, out);
    write(sum, rest, m, Divisors<moves_at_once>{RollingKind::mean, 0, m.counts, m.n}, out);
  }

 private:
  template <std::size_t results>
  static void write(const double* sum, const double* rest, const Moves& m, const Divisors<results>& by,
                    F* out) {
    Bounds<F> bounds;
    double* const lower = bounds.lower(out);
    const bool sure = loops_of_doubles().round_means(by.template of<F>(m, RollingKind::mean), sum, rest,
                                                     lower, bounds.upper);
    if (std::is_same_v<F, fp64> && sure) return;
    write_decided<F>(lower, bounds.upper, m.n, out,
                     [&](std::size_t i) { out[i] = rounded_mean<F>(sum[i], rest[i], m.counts[i]); });
  }

  Divisors<1> full_;
};

}  // namespace
}  // namespace samesum::cpu
