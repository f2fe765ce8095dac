/// The state of rolling variances.
#pragma once

#include <array>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/rolling/exact_sum.hpp"

namespace samesum::cpu {
namespace {

/// Exact variances, from exact sums of the elements, and of the high and low words of their squares.
template <class F> class RollingVariance {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingVariance(const RollingTask& task) : ddof_{task.ddof}, size_{task.windows.size} {}

  void move(const Moves& m, F* out) {
    const Terms entering{m.entering, m.n}, leaving{m.leaving, m.n};
    if (extremes_ == 0 && !entering.has_extreme && !leaving.has_extreme)
      return move_streams(m, entering, leaving, out);
    for (std::size_t i = 0; i < m.n; ++i) {
      move_in_integers(sum_, entering, leaving, i);
      if (Terms::is_extreme(m.entering[i])) extreme_.add_product(m.entering[i], m.entering[i]), ++extremes_;
      if (Terms::is_extreme(m.leaving[i])) extreme_.add_product(m.leaving[i], -m.leaving[i]), --extremes_;
      if (extremes_ == 0) extreme_ = {};
      see(m.entering[i]);
      if (out) out[i] = exactly(sum_, m.counts[i]);
    }
  }

 private:
  static constexpr std::size_t streams = 3;

  /// Elements, and their squares in two words each.
  struct Terms {
    Terms(const double* elements, std::size_t n) : x{elements} {
      loops_of_doubles().write_terms[Formats::index_of<fp64>()](Term::square, x, nullptr, n, high, low);
      for (std::size_t i = 0; i < n; ++i) has_extreme |= is_extreme(x[i]);
    }
    /// Whether two doubles may not hold the square of x.
    static bool is_extreme(double x) {
      const double size = std::abs(x);
      return size != 0 && !(size > 0x1p-450 && size < 0x1p500);
    }
    double term(std::size_t stream, std::size_t i) const {
      return stream == 0 ? x[i] : is_extreme(x[i]) ? 0.0 : (stream == 1 ? high : low)[i];
    }
    const double* stream(std::size_t k) const { return k == 0 ? x : k == 1 ? high : low; }

    const double* x;
    bool has_extreme = false;
    double high[moves_at_once], low[moves_at_once];
  };

  struct TwoWords {
    double high, low;
  };

  /// Makes moves of elements that are not extreme. Variances that words do not tell are found from the sums
  /// before the moves.
  void move_streams(const Moves& m, const Terms& entering, const Terms& leaving, F* out) {
    const std::array<SlidingSum, streams> before = sum_;
    double high[streams][moves_at_once], low[streams][moves_at_once];
    for (std::size_t k = 0; k < streams; ++k)
      sum_[k].move_all(entering.stream(k), leaving.stream(k), m.n, high[k], low[k]);
    std::array<SlidingSum, streams> integers;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < m.n; ++i) {
      see(m.entering[i]);
      if (!out) continue;
      const auto two = [&](std::size_t k) { return TwoWords{high[k][i], low[k][i]}; };
      if (round(two(0), two(1), two(2), m.counts[i], out[i])) continue;
      if (moved == 0) integers = before;
      for (; moved <= i; ++moved) move_in_integers(integers, entering, leaving, moved);
      out[i] = exactly(integers, m.counts[i]);
    }
  }
  static void move_in_integers(std::array<SlidingSum, streams>& sums, const Terms& entering,
                               const Terms& leaving, std::size_t i) {
    for (std::size_t k = 0; k < streams; ++k)
      sums[k].move_in_integer(entering.term(k, i), leaving.term(k, i));
  }

  /// Rounds the variance of `count` elements with these sums. Returns false if that needs integers.
  ///
  /// What Σx lacks, less than 2^-105 of it, changes (Σx)² by less than 2^-104·n·Σx², and what Σx² lacks
  /// changes n·Σx² by as much: with the error of ExactWords::round_variance, below 40·2^-106·n·Σx², that
  /// stays below its bound, 2^-100·n·Σx².
  bool round(TwoWords of_x, TwoWords of_high, TwoWords of_low, std::uint64_t count, F& result) const {
    if (count <= ddof_ || equals_ >= size_) {
      result = count <= ddof_ ? from_bits<F>(samesum::Format<F>::canonical_nan) : F{};
      return true;
    }
    double square = of_high.high;
    const double rest = two_sum(square, of_low.high) + (of_high.low + of_low.low);
    const ExactSums sums{{of_x.high, of_x.low, 0}, {square, rest, 0}, 0, 0, 0, {}};
    return std::isfinite(square) && round_variance<F>(sums, count, ddof_, result);
  }
  F exactly(const std::array<SlidingSum, streams>& sums, std::uint64_t count) const {
    ExactTerms terms, squares = extreme_;
    terms.sum = sums[0].integer().exact();
    for (std::size_t k = 1; k < streams; ++k) squares.sum.merge(sums[k].integer().exact());
    return exact_moments(terms, squares, count, ddof_, format_info<F>())[1].template as<F>();
  }

  /// Counts the last elements that are equal: a window of such elements has the variance 0.
  void see(double x) {
    equals_ = x == last_ ? equals_ + 1 : 1;
    last_ = x;
  }

  std::uint64_t ddof_, size_, equals_ = 0;
  double last_ = 0;
  std::array<SlidingSum, streams> sum_;
  std::uint64_t extremes_ = 0;  ///< elements in the window whose squares are in `extreme_`
  ExactTerms extreme_;
};

}  // namespace
}  // namespace samesum::cpu
