/// The state of rolling variances.
#pragma once

#include <array>

#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/rolling/bounded_window.hpp"

namespace samesum::cpu {
namespace {

/// Exact sums of the elements of a window, and of the high and low words of their squares, in integers.
template <class F> class VarianceInIntegers {
 public:
  explicit VarianceInIntegers(std::uint64_t ddof) : ddof_{ddof} {}

  /// Makes some moves. Writes their results unless `out` is null.
  void move(const Moves& m, F* out) {
    const Terms entering{m.entering, m.n}, leaving{m.leaving, m.n};
    for (std::size_t i = 0; i < m.n; ++i) {
      for (std::size_t k = 0; k < streams; ++k) {
        sum_[k].add(entering.term(k, i));
        sum_[k].add(-leaving.term(k, i));
      }
      if (entering.is_extreme(i)) extreme_.add_product(m.entering[i], m.entering[i]), ++extremes_;
      if (leaving.is_extreme(i)) extreme_.add_product(m.leaving[i], -m.leaving[i]), --extremes_;
      if (extremes_ == 0) extreme_ = {};
      if (out && !round(m.counts[i], out[i])) out[i] = exactly(m.counts[i]);
    }
  }

 private:
  static constexpr std::size_t streams = 3;

  /// Elements, and their squares in two words each.
  struct Terms {
    Terms(const double* elements, std::size_t n) : x{elements} {
      loops_of_doubles().write_terms[Formats::index_of<fp64>()](Term::square, x, nullptr, n, high, low);
    }
    /// Whether two doubles may not hold the square of element i.
    bool is_extreme(std::size_t i) const {
      const double size = std::abs(x[i]);
      return size != 0 && !(size > 0x1p-450 && size < 0x1p500);
    }
    double term(std::size_t stream, std::size_t i) const {
      return stream == 0 ? x[i] : is_extreme(i) ? 0.0 : (stream == 1 ? high : low)[i];
    }

    const double* x;
    double high[moves_at_once], low[moves_at_once];
  };

  /// Rounds the variance of `count` elements, from the leading words of the sums. Returns false if they do
  /// not tell it.
  ///
  /// What Σx lacks, less than 2^-105 of it, changes (Σx)² by less than 2^-104·n·Σx², and what Σx² lacks
  /// changes n·Σx² by as much: with the error of ExactWords::round_variance, below 40·2^-106·n·Σx², that
  /// stays below its bound, 2^-100·n·Σx².
  bool round(std::uint64_t count, F& result) const {
    if (extremes_ != 0) return false;
    double high[streams], low[streams];
    for (std::size_t k = 0; k < streams; ++k) sum_[k].leading(high[k], low[k]);
    double square = high[1];
    const double rest = two_sum(square, high[2]) + (low[1] + low[2]);
    const ExactSums sums{{high[0], low[0], 0}, {square, rest, 0}, 0, 0, 0, {}};
    return std::isfinite(square) && round_variance<F>(sums, count, ddof_, result);
  }
  F exactly(std::uint64_t count) const {
    ExactTerms terms, squares = extreme_;
    terms.sum = sum_[0].exact();
    for (std::size_t k = 1; k < streams; ++k) squares.sum.merge(sum_[k].exact());
    return exact_moments(terms, squares, count, ddof_, format_info<F>())[1].template as<F>();
  }

  std::uint64_t ddof_;
  std::array<RunningSum, streams> sum_;
  std::uint64_t extremes_ = 0;  ///< elements in the window whose squares are in `extreme_`
  ExactTerms extreme_;
};

/// Exact variances: in words while their bounds decide, otherwise in integers.
template <class F> class RollingVariance {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingVariance(const RollingTask& task)
      : ddof_{task.ddof}, size_{task.windows.size}, words_{task}, integers_{task.ddof} {}

  /// Begins with no elements; see BoundedWindow::begin.
  void begin(std::size_t place, double largest) {
    equals_ = 0;
    last_ = 0;
    // Elements that are scaled in another way may be decided by words.
    in_integers_ = is_undecided_ && words_.has_scale_of(largest);
    is_undecided_ = false;
    moves_left_ = std::max<std::size_t>(size_, moves_at_once);
    if (in_integers_)
      integers_ = VarianceInIntegers<F>{ddof_};
    else
      words_.begin(place, largest);
  }
  std::size_t next_moves(std::size_t place) const { return words_.next_moves(place); }
  std::size_t leaving(std::size_t place, std::size_t n) const { return words_.leaving(place, n); }

  /// Adds elements; none leaves.
  bool enter(const Moves& m) {
    see(m);
    in_integers_ ? integers_.move(m, nullptr) : words_.enter(m);
    return true;
  }
  /// Makes some moves, and writes their results. Returns false if the window must begin again.
  bool move(const Moves& m, F* out) {
    if (in_integers_) {
      if (moves_left_ == 0) return false;
      moves_left_ -= std::min(moves_left_, m.n);
      integers_.move(m, out);
    } else {
      bool is_undecided[moves_at_once] = {}, any = false;
      words_.move(m, out, [&](std::size_t i) { is_undecided[i] = any = true; });
      if (any && !decide(m, is_undecided, out)) {
        is_undecided_ = true;
        return false;
      }
    }
    see(m);
    return true;
  }

 private:
  /// Writes results that words do not tell. Returns false if they need integers.
  bool decide(const Moves& m, const bool* is_undecided, F* out) const {
    std::uint64_t equals = equals_;
    double last = last_;
    for (std::size_t i = 0; i < m.n; ++i) {
      equals = m.entering[i] == last ? equals + 1 : 1;
      last = m.entering[i];
      if (!is_undecided[i]) continue;
      if (m.counts[i] > ddof_ && equals < size_) return false;
      out[i] = m.counts[i] > ddof_ ? F{} : from_bits<F>(samesum::Format<F>::canonical_nan);
    }
    return true;
  }
  /// Counts the last elements that are equal: a window of such elements has the variance 0.
  void see(const Moves& m) {
    std::size_t i = m.n;
    const double last = m.entering[m.n - 1];
    while (i > 0 && m.entering[i - 1] == last) --i;
    equals_ = m.n - i + (i == 0 && last == last_ ? equals_ : 0);
    last_ = last;
  }

  std::uint64_t ddof_, size_, equals_ = 0;
  double last_ = 0;
  bool in_integers_ = false, is_undecided_ = false;
  std::size_t moves_left_ = 0;  ///< in integers
  BoundedWindow<F> words_;
  VarianceInIntegers<F> integers_;
};

}  // namespace
}  // namespace samesum::cpu
