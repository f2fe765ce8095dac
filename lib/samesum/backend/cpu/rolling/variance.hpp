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

  /// Adds elements; none leaves.
  void enter(const double* x, std::size_t n) {
    const Terms entering{x, n};
    for (std::size_t i = 0; i < n; ++i) add(entering, i, 1);
  }
  /// Makes some moves, and writes their results.
  void move(const Moves& m, F* out) {
    const Terms entering{m.entering, m.n}, leaving{m.leaving, m.n};
    for (std::size_t i = 0; i < m.n; ++i) {
      add(entering, i, 1);
      add(leaving, i, -1);
      if (extremes_ == 0) extreme_ = {};
      if (!round(m.counts[i], out[i])) out[i] = exactly(m.counts[i]);
    }
  }
  /// The variance of the window, which has `count` elements.
  F exactly(std::uint64_t count) const {
    ExactTerms terms, squares = extreme_;
    terms.sum = sum_[0].exact();
    for (std::size_t k = 1; k < streams; ++k) squares.sum.merge(sum_[k].exact());
    return exact_moments(terms, squares, count, ddof_, format_info<F>())[1].template as<F>();
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

  /// Adds the terms of element i, times ±1.
  void add(const Terms& from, std::size_t i, double sign) {
    for (std::size_t k = 0; k < streams; ++k) sum_[k].add(sign * from.term(k, i));
    if (!from.is_extreme(i)) return;
    extreme_.add_product(from.x[i], sign * from.x[i]);
    extremes_ += sign > 0 ? 1 : ~std::uint64_t{0};
  }
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

  void begin(const Beginning& from) {
    equals_ = 0;
    last_ = 0;
    // Elements that are scaled in another way, or without what they have in common, may be decided by words.
    const bool may_centre = from.centre != 0 && !words_.is_centred() && !in_integers_;
    const bool is_centred = is_undecided_ && words_.has_scale_of(from.largest) && may_centre;
    in_integers_ = is_undecided_ && words_.has_scale_of(from.largest) && !may_centre;
    is_undecided_ = false;
    moves_left_ = std::max(size_, moves_at_once);
    if (in_integers_)
      integers_ = VarianceInIntegers<F>{ddof_};
    else
      words_.begin(from, is_centred);
  }
  std::size_t next_moves(std::size_t place) const { return words_.next_moves(place); }
  std::size_t leaving(std::size_t place, std::size_t n) const { return words_.leaving(place, n); }

  /// Adds elements; none leaves.
  bool enter(const Moves& m) {
    see(m);
    in_integers_ ? integers_.enter(m.entering, m.n) : words_.enter(m);
    return true;
  }
  /// Makes some moves, and writes their results. Returns false if the window must begin again.
  /// @param visit visit(i, add) calls add(x, n) with the elements of the window after move i.
  template <class Visit> bool move(const Moves& m, F* out, Visit visit) {
    if (in_integers_) {
      if (moves_left_ == 0) return false;
      moves_left_ -= std::min(moves_left_, m.n);
      integers_.move(m, out);
    } else if (words_.is_centred() && !m.is_full) {
      return false;
    } else if (m.is_full && are_equal(m)) {
      words_.enter(m);
      std::fill_n(out, m.n, F{});
    } else {
      bool is_undecided[moves_at_once] = {}, any = false;
      words_.move(m, out, [&](std::size_t i) { is_undecided[i] = any = true; });
      if (any && !decide(m, is_undecided, out, visit)) {
        is_undecided_ = true;
        return false;
      }
    }
    see(m);
    return true;
  }

 private:
  /// Writes results that words do not tell. Returns false if they need integers.
  template <class Visit> bool decide(const Moves& m, const bool* is_undecided, F* out, Visit visit) {
    std::uint64_t equals = equals_;
    double last = last_;
    for (std::size_t i = 0; i < m.n; ++i) {
      equals = m.entering[i] == last ? equals + 1 : 1;
      last = m.entering[i];
      if (!is_undecided[i]) continue;
      if (m.counts[i] <= ddof_) {
        out[i] = from_bits<F>(samesum::Format<F>::canonical_nan);
      } else if (equals >= size_) {
        out[i] = F{};
      } else {
        if (!words_.may_add_window()) return false;
        VarianceInIntegers<F> window{ddof_};
        visit(i, [&](const double* x, std::size_t n) { window.enter(x, n); });
        out[i] = window.exactly(m.counts[i]);
      }
    }
    return true;
  }
  /// Whether all elements are equal in windows that are full, before and after some moves, and give 0.
  bool are_equal(const Moves& m) const {
    return equals_ >= size_ && size_ > ddof_ &&
           std::all_of(m.entering, m.entering + m.n, [&](double x) { return x == last_; });
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
