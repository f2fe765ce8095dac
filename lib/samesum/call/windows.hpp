/// The windows of rolling operations.
#pragma once

#include "samesum/call/options.hpp"

namespace samesum {

/// The windows of a vector of n elements.
struct Windows {
  std::size_t n, size;
  std::size_t ahead;  ///< the number of places of window i behind element i
  std::size_t least;  ///< the least number of elements for a result
  bool skips_nan;

  Windows(std::size_t elements, const Options& options)
      : n{elements},
        size{options.window},
        ahead{options.centred ? (options.window - 1) / 2 : 0},
        least{options.min_periods.value_or(options.window)},
        skips_nan{options.skip_nan} {}

  /// Window i has the elements from first(i) up to but not including end(i): at least element i.
  SAMESUM_HD std::size_t first(std::size_t i) const {
    return i + ahead + 1 > size ? i + ahead + 1 - size : 0;
  }
  SAMESUM_HD std::size_t end(std::size_t i) const { return i + ahead + 1 < n ? i + ahead + 1 : n; }
  /// Whether a window with `count` elements, without those that are skipped, has a result other than NaN.
  SAMESUM_HD bool has_result(std::size_t count, bool is_sum) const {
    return count >= least && (count > 0 || is_sum);
  }
};

}  // namespace samesum
