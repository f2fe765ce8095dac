/// Sums in registers, for rows.cuh.
#pragma once

#include "samesum/backend/cuda/by_key/cells.cuh"

namespace samesum::gpu {

/// The sum of the elements that a thread has of a run in one column, in registers.
template <Cells cells> class ColumnSum {
 public:
  static constexpr int skipped = skipped_bits(cells);

  __device__ void add_common(std::int64_t units) {
    if constexpr (cells == Cells::counted)
      wide_.add(Int128::of(units));
    else
      high_ += units;
  }
  __device__ void add(const Units& u) {
    if constexpr (cells == Cells::of_192) {
      widest_ = widest_ + u.wide();
      return;
    }
    const Int128 units = Int128::of(u.negative, Wide{u.magnitude} << u.shift);
    if constexpr (cells == Cells::of_64) {
      high_ += static_cast<std::int64_t>(units.word[0]);
    } else if constexpr (cells == Cells::of_96) {
      high_ += static_cast<std::int64_t>(units.wide() >> skipped);
      low_ += static_cast<std::uint32_t>(units.word[0]);
    } else {
      wide_.add(units);
    }
  }
  __device__ WideInteger<3> units() const {
    if constexpr (cells == Cells::of_192) return widest_;
    if constexpr (cells >= Cells::of_128 || cells == Cells::counted) return WideInteger<3>::of(wide_);
    Int128 sum = Int128::of(high_).shifted(skipped);
    sum.add(Int128::of(static_cast<std::int64_t>(low_)));
    return WideInteger<3>::of(sum);
  }

  /// A sum as units of 2^(grid + shift), with a sticky last bit if there is a shift. It rounds to at most 24
  /// bits as the sum does, unless it is `none`.
  struct Leading {
    static constexpr std::int64_t none = INT64_MIN;
    std::int64_t units;
    int shift;
  };
  /// The shift of all sums, or -1 if each has its own.
  static constexpr int common_shift = cells == Cells::of_128 ? -1 : cells == Cells::of_96 ? skipped - 1 : 0;
  __device__ Leading leading() const {
    constexpr std::int64_t most = std::int64_t{1} << 62, least = std::int64_t{1} << 26;
    if constexpr (cells == Cells::of_64) return {high_, 0};
    if constexpr (cells == Cells::of_192) return {Leading::none, 0};
    if constexpr (cells == Cells::counted) {
      const auto low = static_cast<std::int64_t>(wide_.word[0]);
      return {Int128::of(low) == wide_ && low <= most && low >= -most ? low : Leading::none, 0};
    }
    if constexpr (cells == Cells::of_128) {
      const auto rounded = ShortNumber::of(wide_.is_negative(), wide_.magnitude().wide(), false);
      return {rounded.integer, rounded.exponent};
    }
    const std::int64_t high = high_ + static_cast<std::int64_t>(low_ >> skipped);
    const bool is_whole = static_cast<std::uint32_t>(low_) == 0,
               fits = high < most && high >= -most && (is_whole || high >= least || high < -least);
    return {fits ? 2 * high + !is_whole : Leading::none, common_shift};
  }

 private:
  std::int64_t high_ = 0;  ///< units of 2^(grid + skipped)
  std::uint64_t low_ = 0;  ///< what is below them
  Int128 wide_{};
  WideInteger<3> widest_{};
};

}  // namespace samesum::gpu
