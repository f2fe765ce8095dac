/// The states of rolling methods on a GPU: what is known of the elements of a window. They are merged in any
/// order, and elements are read as doubles, which hold those of every format.
#pragma once

#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/call/windows.hpp"
#include "samesum/operation/extremum.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/operation/rolling.hpp"
#include "samesum/window/exponent_range.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum::gpu {

/// Whether the sums of any window of elements of that range fit NarrowExact: windows have fewer than 2^39
/// elements, so that n·Σx² has at most 2·140 + 78 bits.
SAMESUM_HD inline bool is_narrow_range(const ExponentRange& range) {
  constexpr int most = 140;
  return range.top() - range.lowest() <= most;
}

/// The unit of sums of such elements.
SAMESUM_HD inline int unit_of(const ExponentRange& range) { return range.is_empty() ? 0 : range.lowest(); }

/// What states need to know of a call.
struct RollingTask {
  RollingKind kind;
  Windows windows;
  std::uint64_t ddof;
  GridOfDoubles grid;
  const ExponentRange* range;  ///< null if the method needs none
  KeyStatus* status;           ///< may be null
};

/// A finite number as ±significand·2^exponent, where the significand is odd, or 0.
struct OddSignificand {
  bool negative;
  std::uint64_t significand;
  int exponent;

  SAMESUM_HD explicit OddSignificand(double x) {
    const Decomposed d = decompose<double>(to_bits(x));
    const std::uint64_t lowest_bit = d.significand & (~d.significand + 1);
    const int zeros = d.significand == 0 ? 0 : 63 - leading_zeros(lowest_bit);
    negative = d.negative;
    significand = d.significand >> zeros;
    exponent = d.exponent + zeros;
  }
};

/// Adds ±magnitude·2^shift. Few words stay in registers, since no index depends on the shift.
template <int words>
SAMESUM_HD void add_to(WideInteger<words>& sum, bool negative, Wide magnitude, int shift) {
  const auto low = static_cast<std::uint64_t>(magnitude), high = static_cast<std::uint64_t>(magnitude >> 64);
  if constexpr (words > 12) {
    sum.add(negative, low, shift);
    if (high != 0) sum.add(negative, high, shift + 64);
  } else {
    sum.add_through(negative, magnitude, shift);
  }
}

/// The elements of a window that are skipped.
struct Skipped {
  std::uint64_t skipped = 0;

  /// Whether an element is skipped, which is then counted.
  SAMESUM_HD bool skips(double x, const RollingTask& task) {
    const bool is_skipped = task.windows.skips_nan && x != x;
    skipped += is_skipped;
    return is_skipped;
  }
};

/// The exact sum of elements, in units of 2^unit, and, if wanted, of their squares, in twice as many words.
/// @tparam is_narrow whether the unit depends on the elements; else it is that of the format.
template <int sum_words, bool has_squares, bool is_narrow> struct RollingExact : Skipped {
  static constexpr bool is_long = sum_words > 12;  ///< whether it is too long for the memory of a thread
  /// Elements of a group. Long states are kept for larger groups, since there are many of them.
  static constexpr std::size_t base = is_narrow ? 8 : 32;
  static constexpr int format_unit = sum_words < 12 ? Format<fp32>::min_quantum : Format<fp64>::min_quantum;

  std::uint32_t flags = 0;
  WideInteger<sum_words> sum{};
  WideInteger<has_squares ? 2 * sum_words : 1> squares{};

  SAMESUM_HD static bool computes(const RollingTask& task) {
    return is_narrow_range(*task.range) == is_narrow;
  }
  SAMESUM_HD static int unit(const RollingTask& task) {
    return is_narrow ? unit_of(*task.range) : format_unit;
  }

  SAMESUM_HD void add(double x, const RollingTask& task) {
    if (skips(x, task)) return;
    flags |= seen_flags(x);
    if (special_flags_of(x) != 0) return;
    const OddSignificand odd{x};
    if (odd.significand == 0) return;
    const int shift = odd.exponent - unit(task);
    add_to(sum, odd.negative, odd.significand, shift);
    if constexpr (has_squares) add_to(squares, false, Wide{odd.significand} * odd.significand, 2 * shift);
  }
  SAMESUM_HD void merge(const RollingExact& other) {
    skipped += other.skipped;
    flags |= other.flags;
    sum.add(other.sum);
    if constexpr (has_squares) squares.add(other.squares);
  }
  /// Bit pattern of the result for n elements. The sums become intermediate results.
  template <class F> SAMESUM_HD BitsOf<F> result(const RollingTask& task, std::uint64_t n) {
    if (has_squares && ((flags & SumFlags::special_flags) || n <= task.ddof)) return Format<F>::canonical_nan;
    if (flags & SumFlags::special_flags) return special_bits<F>(flags);
    if (!has_squares && flags == SumFlags::seen_any) return Format<F>::sign_bit;  // only -0
    if constexpr (has_squares) {
      scale_variance(n, sum, squares);
      return rounded_quotient<F>(squares, n, n - task.ddof, 2 * unit(task));
    } else if (is_long || task.kind == RollingKind::mean) {
      return rounded_quotient<F>(sum, task.kind == RollingKind::mean ? n : 1, 1, unit(task));
    } else {
      return sum.leading(unit(task)).template rounded<F>();
    }
  }
};

/// The sum of elements on a grid.
struct RollingOnGrid : Skipped {
  static constexpr bool is_long = false;
  static constexpr std::size_t base = 8;
  GridSum sum;

  SAMESUM_HD static bool computes(const RollingTask&) { return true; }
  SAMESUM_HD void add(double x, const RollingTask& task) {
    if (!skips(x, task)) task.grid.add(sum, x);
  }
  SAMESUM_HD void merge(const RollingOnGrid& other) {
    skipped += other.skipped;
    sum.merge(other.sum);
  }
  template <class F> SAMESUM_HD BitsOf<F> result(const RollingTask& task, std::uint64_t n) const {
    F value;
    const bool mean = task.kind == RollingKind::mean;
    if (!finish_on_grid<F>(sum, mean, n, task.grid.exponent(), 0, &value) && task.status)
      task.status->overflowed = 1;
    return to_bits(value);
  }
};

/// The key of the extremum of elements.
struct RollingExtremum : Skipped {
  static constexpr bool is_long = false;
  static constexpr std::size_t base = 8;
  using Key = KeyOf<fp64>;
  Extremum<fp64> best;

  SAMESUM_HD static bool computes(const RollingTask&) { return true; }
  SAMESUM_HD void add(double x, const RollingTask& task) {
    if (!skips(x, task)) best.merge({Key::of(x, task.kind == RollingKind::min)});
  }
  SAMESUM_HD void merge(const RollingExtremum& other) {
    skipped += other.skipped;
    best.merge(other.best);
  }
  template <class F> SAMESUM_HD BitsOf<F> result(const RollingTask& task, std::uint64_t) const {
    if (best.key == Key::nan) return Format<F>::canonical_nan;
    return to_bits(convert<F>(Key::number(best.key, task.kind == RollingKind::min)));
  }
};

}  // namespace samesum::gpu
