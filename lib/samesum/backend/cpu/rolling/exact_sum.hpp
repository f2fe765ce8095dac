/// The state of exact rolling sums and means.
#pragma once

#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cpu/rolling/task.hpp"

namespace samesum::cpu {
namespace {

/// The exact sum of the elements of a window: two doubles while these hold it, else a wide integer.
class SlidingSum {
 public:
  /// Makes the moves from the first on as long as two doubles hold the sum. Returns their number, and the sum
  /// after each of them.
  std::size_t move(const double* entering, const double* leaving, std::size_t n, double* high, double* low) {
    if (is_wide_) narrow();
    return is_wide_ ? 0 : loops_of_doubles().roll_exactly(entering, leaving, n, words_, high, low);
  }
  /// Makes one move in the wide integer.
  void move_in_integer(double entering, double leaving) {
    if (!is_wide_) {
      wide_ = {};
      for (const double word : words_) wide_.add(word);
      is_wide_ = true;
    }
    wide_.add(entering);
    wide_.add(-leaving);
  }
  /// Makes all moves. Writes the sum after each of them in two doubles, which lack less than 2^-105 of it, or
  /// are NaN.
  void move_all(const double* entering, const double* leaving, std::size_t n, double* high, double* low) {
    for (std::size_t i = move(entering, leaving, n, high, low); i < n; ++i) {
      move_in_integer(entering[i], leaving[i]);
      wide_.leading(high[i], low[i]);
    }
  }
  /// The sum in the wide integer, if the last move was made in it.
  const RunningSum& integer() const { return wide_; }

 private:
  /// Moves the sum into two doubles, if they hold it.
  void narrow() { is_wide_ = !wide_.leading(words_[0], words_[1]); }

  double words_[2] = {};
  bool is_wide_ = false;
  RunningSum wide_;
};

/// Exact sums and means.
template <class F> class RollingExactSum {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = true;  ///< whether the result for elements that are all -0 is -0
  explicit RollingExactSum(const RollingTask& task) : is_mean_{task.kind == RollingKind::mean} {}

  /// Makes some moves. Writes their results unless `out` is null.
  void move(const Moves& m, F* out) {
    double high[moves_at_once], low[moves_at_once];
    const std::size_t done = sum_.move(m.entering, m.leaving, m.n, high, low);
    if (out) write(high, low, done, m.counts, out);
    for (std::size_t i = done; i < m.n; ++i) {
      sum_.move_in_integer(m.entering[i], m.leaving[i]);
      if (out)
        out[i] = is_mean_ ? rounded_mean<F>(sum_.integer().exact(), m.counts[i]) : sum_.integer().result<F>();
    }
  }

 private:
  void write(const double* high, const double* low, std::size_t n, const std::uint64_t* counts,
             F* out) const {
    if constexpr (std::is_same_v<F, fp64>)
      is_mean_ ? write_means(high, low, n, counts, out) : static_cast<void>(std::copy_n(high, n, out));
    else
      for (std::size_t i = 0; i < n; ++i)
        out[i] = is_mean_ ? rounded_mean<F>(high[i], low[i], counts[i]) : rounded<F>(high[i], low[i]);
  }
  bool is_mean_;
  SlidingSum sum_;
};

}  // namespace
}  // namespace samesum::cpu
