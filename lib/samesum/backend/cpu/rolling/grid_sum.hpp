/// The state of rolling sums and means on a grid.
#pragma once

#include "samesum/backend/cpu/rolling/task.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::cpu {
namespace {

/// Sums and means on a grid.
template <class F> class RollingGridSum {
 public:
  using Format = F;
  static constexpr bool has_minus_zero = false;
  explicit RollingGridSum(const RollingTask& task)
      : task_{task},
        grid_{task.grid},
        means_{task},
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
  /// large. Converting an integer rounds it once.
  bool move_fast(const Moves& m, bool mean, F* out) {
    constexpr std::int64_t most_sum = std::int64_t{1} << 60;
    const double scale = power_of_two(-task_.grid), most = power_of_two(50 + task_.grid);
    const auto before = static_cast<std::int64_t>(static_cast<std::uint64_t>(units_));
    bool fits = Int128::of(units_) == Int128::of(before) && before <= most_sum && before >= -most_sum;
    for (std::size_t i = 0; i < m.n; ++i)
      fits = fits & (std::abs(m.entering[i]) <= most) & (std::abs(m.leaving[i]) <= most);
    if (!fits) return false;
    std::int64_t sums[moves_at_once];
    for (std::size_t i = 0; i < m.n; ++i)
      sums[i] = units_above(m.leaving[i] * scale + whole_anchor, m.entering[i] * scale + whole_anchor);
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
      means_.write(high, low, m, out);
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
  MeanWriter<F> means_;
  bool has_fast_results_;
  Wide units_ = 0;
  std::uint64_t large_[GridTerm::beyond + 1] = {}, larges_ = 0;  ///< large terms in the window, by their bits
};

}  // namespace
}  // namespace samesum::cpu
