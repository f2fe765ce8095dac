/// The state of exact rolling sums and means.
#pragma once

#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cpu/rolling/bounded_window.hpp"

namespace samesum::cpu {
namespace {

/// Exact sums and means: in two words while these hold the sum, else in words while their bounds decide, else
/// in integers.
template <class F> class RollingExactSum {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = true;  ///< whether the result for elements that are all -0 is -0
  explicit RollingExactSum(const RollingTask& task)
      : is_mean_{task.kind == RollingKind::mean}, size_{task.windows.size}, means_{task}, bounded_{task} {}

  void begin(const Beginning& from) {
    // Elements that are scaled in another way may be decided by bounds.
    const bool may_be_bounded =
        way_ == Way::two_words || (way_ == Way::bounded && !bounded_.has_scale_of(from.largest));
    way_ = !has_failed_ ? Way::two_words : may_be_bounded ? Way::bounded : Way::integers;
    has_failed_ = false;
    const std::size_t size = std::max(size_, moves_at_once);
    // Where bounds decide, two words are tried again seldom: they may fail at once.
    moves_left_ = way_ == Way::bounded ? 8 * size : size;
    if (way_ == Way::two_words) sum_[0] = sum_[1] = 0;
    if (way_ == Way::bounded) bounded_.begin(from);
    if (way_ == Way::integers) integer_ = {};
  }
  std::size_t next_moves(std::size_t place) const {
    return way_ == Way::bounded ? bounded_.next_moves(place) : moves_at_once;
  }
  std::size_t leaving(std::size_t place, std::size_t n) const {
    return way_ == Way::bounded ? bounded_.leaving(place, n) : n;
  }

  /// Adds elements; none leaves. Returns false if the window must begin again.
  bool enter(const Moves& m) {
    if (way_ == Way::two_words) return move_two_words(m, nullptr);
    if (way_ == Way::bounded) bounded_.enter(m);
    if (way_ == Way::integers) move_integer(m, nullptr);
    return true;
  }
  /// Makes some moves, and writes their results. Returns false if the window must begin again.
  /// @param visit visit(i, add) calls add(x, n) with the elements of the window after move i.
  template <class Visit> bool move(const Moves& m, F* out, Visit visit) {
    if (way_ == Way::two_words) return move_two_words(m, out);
    if (moves_left_ == 0) return false;
    moves_left_ -= std::min(moves_left_, m.n);
    if (way_ == Way::bounded)
      bounded_.move(m, out, [&](std::size_t i) {
        has_failed_ = has_failed_ || !bounded_.may_add_window();
        if (has_failed_) return;
        out[i] = result_of(m.counts[i], [&](auto add) { visit(i, add); });
      });
    else
      move_integer(m, out);
    return !has_failed_;
  }

 private:
  enum class Way { two_words, bounded, integers };

  bool move_two_words(const Moves& m, F* out) {
    double room[moves_at_once], low[moves_at_once], *high = room;
    float* narrow = nullptr;
    if constexpr (std::is_same_v<F, fp32>) narrow = is_mean_ ? nullptr : out;
    if constexpr (std::is_same_v<F, fp64>) high = out && !is_mean_ && m.n % 8 == 0 ? out : room;
    has_failed_ = loops_of_doubles().roll_exactly(m.entering, m.leaving, m.n, sum_, high, low, narrow) < m.n;
    if (has_failed_ || !out || narrow) return !has_failed_;
    if (is_mean_)
      means_.write(high, low, m, out);
    else if constexpr (std::is_same_v<F, fp64>)
      high == out ? out : std::copy_n(high, m.n, out);
    else
      for (std::size_t i = 0; i < m.n; ++i) out[i] = rounded<F>(high[i], low[i]);
    return true;
  }
  void move_integer(const Moves& m, F* out) {
    for (std::size_t i = 0; i < m.n; ++i) {
      integer_.add(m.entering[i]);
      integer_.add(-m.leaving[i]);
      if (out) out[i] = result(integer_, m.counts[i]);
    }
  }
  /// The result for the elements with which visit(add) calls add(x, n).
  template <class Visit> F result_of(std::uint64_t count, Visit visit) const {
    const double none[moves_at_once] = {};
    double word[2] = {}, high[moves_at_once], low[moves_at_once];
    bool holds = true;
    visit([&](const double* x, std::size_t n) {
      holds = holds && loops_of_doubles().roll_exactly(x, none, n, word, high, low, nullptr) == n;
    });
    if (holds) return is_mean_ ? rounded_mean<F>(word[0], word[1], count) : rounded<F>(word[0], word[1]);
    RunningSum sum;
    visit([&](const double* x, std::size_t n) {
      for (std::size_t k = 0; k < n; ++k) sum.add(x[k]);
    });
    return result(sum, count);
  }
  F result(const RunningSum& sum, std::uint64_t count) const {
    return is_mean_ ? rounded_mean<F>(sum.exact(), count) : sum.result<F>();
  }

  bool is_mean_, has_failed_ = false;
  std::size_t size_, moves_left_ = 0;  ///< before another way is tried
  Way way_ = Way::two_words;
  double sum_[2] = {};
  MeanWriter<F> means_;
  BoundedWindow<F> bounded_;
  RunningSum integer_;
};

}  // namespace
}  // namespace samesum::cpu
