/// A window whose results are bounded by words.
#pragma once

#include <vector>

#include "samesum/backend/cpu/rolling/task.hpp"

namespace samesum::cpu {
namespace {

/// The sums of a window in words that lack little. Bounds decide most results.
template <class F> class BoundedWindow {
 public:
  explicit BoundedWindow(const RollingTask& task)
      // A window that is longer than all moves is never left.
      : size_{std::min(task.windows.size, 2 * task.windows.n + 1)},
        unit_{(size_ - 1) / ((size_ - 1) / RolledWindow::most_in_unit + 1) + 1},
        ddof_{task.ddof},
        kind_{task.kind},
        full_{task.kind, task.ddof, task.windows.size} {}

  /// Begins. Variances may leave out most of numbers that have much in common: with `is_centred`, of all
  /// elements less `centre`, as long as these differences are exact.
  void begin(const Beginning& from, bool is_centred = false) {
    exponent_ = scale_of(from.largest);
    centre_ = is_centred ? from.centre : 0;
    credit_ = size_;
    units_.assign((size_ - 1) / unit_ + 1, {});
    window_ = {size_, unit_, power_of_two(-exponent_), from.place % size_, {}, {}, units_.data(), {}};
  }
  bool is_centred() const { return centre_ != 0; }
  /// Whether begin() would scale elements as now.
  bool has_scale_of(double largest) const { return scale_of(largest) == exponent_; }

  /// Whether a result that words do not decide is to be found from all elements of its window: if such
  /// windows have few elements compared with the moves. Otherwise integers that move take less time.
  bool may_add_window() {
    if (credit_ < size_) return false;
    credit_ -= size_;
    return true;
  }

  /// The number of moves at once, from a place on: up to the end of a unit.
  std::size_t next_moves(std::size_t place) const {
    return is_short() ? moves_at_once : up_to_unit_end(place, unit_ < size_ ? 1 : moves_at_once - size_ + 1);
  }
  /// The number of elements that n moves read of those that leave.
  std::size_t leaving(std::size_t place, std::size_t n) const {
    return is_short() ? n : up_to_unit_end(place, n);
  }

  /// Makes some moves.
  void enter(const Moves& m) { roll(m, full_, nullptr, nullptr); }
  /// Makes some moves, and writes those results that bounds decide. Calls undecided(i) for the others.
  template <class Undecided> void move(const Moves& m, F* out, Undecided undecided) {
    credit_ = std::min(credit_ + 4 * m.n, 4 * std::max(size_, moves_at_once));
    Bounds<F> bounds;
    double* const lower = bounds.lower(out);
    const bool sure =
        m.is_full || kind_ == RollingKind::sum
            ? roll(m, full_, lower, bounds.upper)
            : roll(m, Divisors<moves_at_once>{kind_, ddof_, m.counts, m.n}, lower, bounds.upper);
    if (exponent_ != 0) {
      unscale(lower, m.n);
      unscale(bounds.upper, m.n);
    } else if (std::is_same_v<F, fp64> && sure) {
      return;
    }
    write_decided<F>(lower, bounds.upper, m.n, out, undecided);
  }

 private:
  bool is_short() const { return size_ <= RolledWindow::short_window; }
  /// The first end of a unit that is n elements behind a place, or more.
  std::size_t up_to_unit_end(std::size_t place, std::size_t n) const {
    place %= size_;
    const std::size_t in_unit = std::min(unit_ - place % unit_, size_ - place);
    return n <= in_unit ? in_unit : in_unit + (n - in_unit + size_ - 1) / size_ * size_;
  }
  /// The exponent of the unit of scaled elements: their sums, or those of their squares, and the errors of
  /// these neither overflow nor underflow.
  int scale_of(double largest) const {
    const bool is_variance = kind_ == RollingKind::variance;
    const int exponent = largest == 0 ? 0 : std::ilogb(largest);
    return exponent > (is_variance ? -300 : -2000) && exponent < (is_variance ? 400 : 900)
               ? 0
               : std::clamp(exponent, -1000, 1000);
  }
  /// Multiplies results by their unit. Those of fp64 that may be subnormal become NaN.
  void unscale(double* results, std::size_t n) const {
    const double unit = power_of_two(exponent_), other = kind_ == RollingKind::variance ? unit : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const double result = results[i] * unit * other;
      if (!std::is_same_v<F, fp64> || std::abs(result) >= 0x1p-1000)
        results[i] = result;
      else if (results[i] > 0 && std::ilogb(results[i]) + 2 * exponent_ < -1080)
        results[i] = 0;  // a variance: only they have small units
      else
        results[i] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  template <std::size_t results>
  bool roll(const Moves& m, const Divisors<results>& by, double* lower, double* upper) {
    const RolledMoves moves = by.template of<F>(m, kind_);
    return is_centred() ? roll_centred(moves, lower, upper)
                        : loops_of_doubles().roll_in_words(moves, window_, lower, upper);
  }
  /// Results of windows with a difference that is not exact are NaN.
  [[gnu::noinline]] bool roll_centred(RolledMoves moves, double* lower, double* upper) {
    double entering[moves_at_once], leaving[moves_at_once];
    bool is_exact = true;
    const auto centre = [&](const double* x, std::size_t n, double* to) {
      for (std::size_t i = 0; i < n; ++i) {
        to[i] = x[i];
        is_exact = is_exact & (two_sum(to[i], -centre_) == 0);
      }
    };
    centre(moves.entering, moves.n, entering);
    if (lower) centre(moves.leaving, this->leaving(window_.place, moves.n), leaving);
    if (!is_exact) std::fill_n(entering, moves.n, std::numeric_limits<double>::quiet_NaN());
    moves.entering = entering;
    moves.leaving = leaving;
    return loops_of_doubles().roll_in_words(moves, window_, lower, upper);
  }

  std::size_t size_, unit_;
  std::uint64_t ddof_;
  RollingKind kind_;
  Divisors<1> full_;
  int exponent_ = 0;
  double centre_ = 0;
  std::size_t credit_ = 0;  ///< elements that may be added for single results
  RolledWindow window_{};
  std::vector<RolledSums> units_;
};

}  // namespace
}  // namespace samesum::cpu
