/// The states of rolling methods: each adds the element that enters a window, and subtracts the one that
/// leaves it, or, for extrema, meets chunks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/call/windows.hpp"
#include "samesum/operation/grid_reduction.hpp"
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

/// Sums and means on a grid.
template <class F> class RollingGridSum {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingGridSum(const RollingTask& task)
      : task_{task},
        grid_{task.grid},
        // Then 2^grid, 2^-grid and all results are normal numbers of F, or 0.
        has_fast_results_{(std::is_same_v<F, fp64> || std::is_same_v<F, fp32>)&&task.grid >= -100 &&
                          task.grid <= 60} {}

  void move(const Moves& m, F* out) {
    const bool mean = task_.kind == RollingKind::mean;
    if (larges_ == 0 && has_fast_results_ && move_fast(m, mean, out)) return;
    for (std::size_t i = 0; i < m.n; ++i) {
      const GridTerm in = term(m.entering[i]), old = term(m.leaving[i]);
      units_ += in.units.wide() - old.units.wide();
      if (in.bits > most_harmless_bits) ++large_[index(in)], ++larges_;
      if (old.bits > most_harmless_bits) --large_[index(old)], --larges_;
      if (!out) continue;
      const GridSum sum{Int128::of(units_), 0, larges_ == 0 ? 0 : largest_bits()};
      if (!finish_on_grid<F>(sum, mean, m.counts[i], grid_.exponent(), i, out) &&
          task_.windows.has_result(m.counts[i], !mean))
        *task_.overflowed = true;
    }
  }

 private:
  /// Makes the moves in integers of 64 bits. Returns false, and makes none, if terms or sums may be too
  /// large. Adding the anchor rounds units to integers; converting an integer rounds it once.
  bool move_fast(const Moves& m, bool mean, F* out) {
    constexpr double anchor = 0x1.8p52;
    constexpr std::int64_t most_sum = std::int64_t{1} << 60;
    const double scale = power_of_two(-task_.grid), most = power_of_two(50 + task_.grid);
    const auto before = static_cast<std::int64_t>(static_cast<std::uint64_t>(units_));
    bool fits = Int128::of(units_) == Int128::of(before) && before <= most_sum && before >= -most_sum;
    for (std::size_t i = 0; i < m.n; ++i)
      fits = fits & (std::abs(m.entering[i]) <= most) & (std::abs(m.leaving[i]) <= most);
    if (!fits) return false;
    std::int64_t sums[moves_at_once];
    for (std::size_t i = 0; i < m.n; ++i)
      sums[i] = std::bit_cast<std::int64_t>(m.entering[i] * scale + anchor) -
                std::bit_cast<std::int64_t>(m.leaving[i] * scale + anchor);
    std::int64_t sum = before;
    for (std::size_t i = 0; i < m.n; ++i) sums[i] = sum += sums[i];
    units_ = Int128::of(sum).wide();
    if (!out) return true;
    const double unit = power_of_two(task_.grid);
    if constexpr (std::is_same_v<F, fp64> || std::is_same_v<F, fp32>) {
      if (!mean) {
        const F of_format = static_cast<F>(unit);
        for (std::size_t i = 0; i < m.n; ++i) out[i] = static_cast<F>(sums[i]) * of_format;
        return true;
      }
      double high[moves_at_once], low[moves_at_once];
      for (std::size_t i = 0; i < m.n; ++i) {
        high[i] = static_cast<double>(sums[i]);
        low[i] = static_cast<double>(sums[i] - static_cast<std::int64_t>(high[i])) * unit;
        high[i] *= unit;
      }
      if constexpr (std::is_same_v<F, fp64>)
        write_means(high, low, m.n, m.counts, out);
      else
        for (std::size_t i = 0; i < m.n; ++i) out[i] = rounded_mean<F>(high[i], low[i], m.counts[i]);
      for (std::size_t i = 0; i < m.n; ++i)
        if (sums[i] == 0) out[i] = F{};  // +0
    }
    return true;
  }

  /// Terms with more bits may be too large for their grid, whatever their sum. Windows have fewer than 2^39.
  static constexpr std::int32_t most_harmless_bits = most_term_bits(std::uint64_t{1} << 39);

  GridTerm term(double x) const {
    GridSum one;
    grid_.add(one, x);
    return {one.units, one.bits};
  }
  static std::size_t index(const GridTerm& term) { return static_cast<std::size_t>(term.bits); }
  std::int32_t largest_bits() const {
    std::int32_t bits = GridTerm::beyond;
    while (large_[static_cast<std::size_t>(bits)] == 0) --bits;
    return bits;
  }

  const RollingTask& task_;
  GridOfDoubles grid_;
  bool has_fast_results_;
  Wide units_ = 0;
  std::uint64_t large_[GridTerm::beyond + 1] = {}, larges_ = 0;  ///< large terms in the window, by their bits
};

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
    const ExactSums sums{{of_x.high, of_x.low, 0}, {square, rest, 0}, true, true, 0, 0};
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

/// Extrema (van Herk 1992; Gil and Werman 1993): chunks have the length of a window, so that each window is
/// the end of a chunk and the beginning of the next one.
template <class F> class RollingExtremum {
  using Key = KeyOf<fp64>;

 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingExtremum(const RollingTask& task)
      // A chunk that is longer than all moves never ends.
      : smallest_{task.kind == RollingKind::min},
        chunk_(std::min(task.windows.size, 2 * task.windows.n + 1)),
        ends_(chunk_.size() + 1) {}

  /// Every other element is better than this, or equal.
  static double replacement(bool smallest) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return smallest ? infinity : -infinity;
  }
  void move(const Moves& m, F* out) {
    for (std::size_t i = 0; i < m.n;) {
      const std::size_t count = std::min(m.n - i, chunk_.size() - at_);
      for (std::size_t k = i; k < i + count; ++k) {
        const std::uint64_t key = Key::of(m.entering[k], smallest_);
        chunk_[at_++] = key;
        best_ = std::max(best_, key);
        if (out) out[k] = number(std::max(best_, ends_[at_]));
      }
      i += count;
      if (at_ == chunk_.size()) begin_chunk();
    }
  }

 private:
  void begin_chunk() {
    best_ = at_ = 0;
    for (std::size_t k = chunk_.size(); k-- > 0;) ends_[k] = std::max(ends_[k + 1], chunk_[k]);
  }
  F number(std::uint64_t key) const {
    return key == Key::nan ? from_bits<F>(samesum::Format<F>::canonical_nan)
                           : convert<F>(Key::number(key, smallest_));
  }

  bool smallest_;
  std::vector<std::uint64_t> chunk_;  ///< keys of the elements of this chunk
  /// For each element of the last chunk the largest key from it on; the last one, of no element, is 0.
  std::vector<std::uint64_t> ends_;
  std::uint64_t best_ = 0;  ///< the largest key of this chunk
  std::size_t at_ = 0;
};

}  // namespace
}  // namespace samesum::cpu
