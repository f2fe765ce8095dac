/// Options of a call.
#pragma once

#include <optional>
#include <ranges>
#include <type_traits>

#include "samesum/format/formats.hpp"

namespace samesum {

/// R is a contiguous range of bool, or of other integers of one byte.
template <class R>
concept FlagRange = std::ranges::contiguous_range<R> && std::is_integral_v<std::ranges::range_value_t<R>> &&
                    sizeof(std::ranges::range_value_t<R>) == 1;

/// A view of flags, one byte for each element of an array: those whose flag is not 0 take part. Without flags
/// all do. It does not own them.
struct Mask {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;

  /// No flags.
  Mask() = default;
  /// Views the flags of a range.
  template <FlagRange R> Mask(const R& flags) : Mask{std::ranges::data(flags), std::ranges::size(flags)} {}
  /// Views n flags from `first` on.
  Mask(const void* first, std::size_t n) : data{static_cast<const std::uint8_t*>(first)}, size{n} {}

  /// Whether there are flags.
  bool is_given() const { return data != nullptr || size != 0; }
};

/// Options of a call. `threads` never changes the bits of a method that promises `everywhere`.
struct Options {
  /// 0: one thread per 2^17 elements, at most one per processor. A positive number is a limit: there are
  /// never more threads than pieces of work, nor more than four per processor. Threads come from a pool that
  /// lives as long as the process. Backends without threads ignore this option.
  int threads = 0;
  double ddof = 0;  ///< for moments: the divisor of the sum of squares is n - ddof; 1 for a sample
  /// For scans: result i is that of the first i elements, without element i. Result 0 is the one for no
  /// elements.
  bool exclusive = false;
  /// For the accumulator fixed_point: terms are rounded to multiples of 2^grid. If it is not given, each
  /// result has the finest grid on which no sum of n terms as large as its largest one can overflow: its bits
  /// then depend on its own elements alone. A scan has one grid for each vector, found from all its elements:
  /// a result then depends on the elements behind it, too. By key, there is one grid, found from all
  /// elements, and n is the number of keys, which is the most elements of a result also where elements are
  /// rows: the bits of a result then depend on the elements of other keys. On a given grid a sum may
  /// overflow, by key if it would for n terms; only sums of elements that a result contains count.
  std::optional<int> grid = {};
  /// For sums, counts and extrema by key: each result is combined with the number that `out` holds, which
  /// counts as one more element, before the others. A key without elements leaves its number as it is.
  bool combine = false;
  /// For reductions, scans and reductions by key: flag i says whether element i of x takes part, one flag for
  /// each element of x (for scatter_count, of keys); the flags lie where x may. The other elements are as if
  /// absent: each result has the bits of the same call on its elements that take part, packed in their order.
  /// n of every bound, divisor and grid is their number; for a grid by key, the number of keys with an
  /// element that takes part. An index of argmin or argmax is that in x as given. A scan's result at another
  /// place is that of the elements before it. The keys of others are not read.
  Mask where = {};
  /// As if `where` were false wherever x, or y, is NaN. A rolling operation counts NaNs as empty places.
  bool skip_nan = false;
  /// For rolling operations: number of places of a window, at least 1. Window i ends with element i, or, if
  /// it is `centred`, (window - 1) / 2 elements behind it. Places before the first or behind the last element
  /// are empty.
  std::size_t window = 0;
  bool centred = false;  ///< for rolling operations: whether element i is in the middle of window i
  /// For rolling operations: the least number of elements for a result; with fewer it is NaN. If it is not
  /// given, that is `window`. A window without elements has the sum 0; other operations give NaN for it.
  std::optional<std::size_t> min_periods = {};
};
/// Whether only some elements may take part.
inline bool selects(const Options& options) { return options.where.is_given() || options.skip_nan; }
/// Limits of Options::grid: below each product of two numbers, and above it.
inline constexpr int lowest_grid = 2 * Format<fp64>::min_quantum,
                     highest_grid = 2 * (Format<fp64>::max_exponent + 1);

}  // namespace samesum
