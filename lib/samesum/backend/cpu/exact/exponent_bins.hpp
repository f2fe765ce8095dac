/// Exact sums of elements that span too many powers of two for a few doubles.
#pragma once

#include <array>
#include <bit>
#include <memory>

#include "samesum/accumulator/exact.hpp"

namespace samesum::cpu {

/// Sums of significands, one for each sign and exponent of fp64, so that nothing is shifted (Neal 2015, the
/// large superaccumulator). 64 KiB; adding takes a quarter of the time of adding to a superaccumulator, and
/// moving the sums there as long as adding an element per bin that is used.
class ExponentBins {
 public:
  /// Most elements that can be added before the sums are moved.
  static constexpr std::size_t capacity = std::size_t{1} << 20;

  /// The bins of this thread, which are empty.
  static ExponentBins& of_this_thread() {
    thread_local std::unique_ptr<ExponentBins> bins;
    if (!bins) bins = std::make_unique<ExponentBins>();
    return *bins;
  }

  /// Adds n elements.
  template <class T> void add(const T* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = to_bits(widened(x[i]));
      Bin& bin = bins_[bits >> fraction_bits];
      bin.low += bits & 0xffffffff;
      bin.high_and_count += (bits >> 32 & 0xfffff) + one;
      is_used_[bits >> 58] = true;
    }
    for (const std::size_t special : {infinity, infinity | minus})
      if (bins_[special].high_and_count != 0) {
        bins_[special] = {};
        for (std::size_t i = 0; i < n; ++i) flags_ |= special_flags_of(x[i]);
      }
  }

  /// Adds the sums to `sum`, and empties the bins. Whether all elements are -0 is not known.
  void move_to(Exact& sum) {
    std::array<std::int64_t, Exact::digit_count> digits{};
    for (std::size_t group = 0; group < is_used_.size(); ++group) {
      if (!is_used_[group]) continue;
      is_used_[group] = false;
      for (std::size_t i = group * group_size; i < (group + 1) * group_size; ++i) {
        if (bins_[i].high_and_count == 0) continue;
        const auto exponent = static_cast<int>(i % minus);
        const Wide magnitude = bins_[i].magnitude(exponent != 0);
        const auto add = [&](std::uint64_t part, int e) {
          add_to_digits(i >= minus, part, e, Exact::lowest_exponent,
                        [&](int at, std::int64_t digit) { digits[std::size_t(at)] += digit; });
        };
        const int unit = Exact::lowest_exponent + (exponent == 0 ? 0 : exponent - 1);
        add(static_cast<std::uint64_t>(magnitude), unit);
        if (magnitude >> 64 != 0) add(static_cast<std::uint64_t>(magnitude >> 64), unit + 64);
        bins_[i] = {};
      }
    }
    if (flags_ != 0) flags_ |= SumFlags::seen_other_than_minus_zero;
    sum.merge(Exact{digits, flags_ | SumFlags::seen_any});
    flags_ = 0;
  }

 private:
  template <class T> static double widened(T x) { return convert<double>(x); }
  static double widened(float x) { return x; }  // in one instruction

  static constexpr int fraction_bits = Format<fp64>::precision - 1;
  static constexpr std::uint64_t one = std::uint64_t{1} << 40;  ///< an element, in Bin::high_and_count
  static constexpr std::size_t minus = 2048, infinity = 2047, group_size = 64;

  /// Sums of the lower 32 bits and of the upper 20 bits of fractions, and the number of elements.
  struct Bin {
    std::uint64_t low = 0, high_and_count = 0;

    Wide magnitude(bool normal) const {
      return low + (Wide{high_and_count % one} << 32) +
             (normal ? Wide{high_and_count / one} << fraction_bits : Wide{0});
    }
  };

  std::array<Bin, 2 * minus> bins_;
  std::array<bool, 2 * minus / group_size> is_used_{};
  std::uint32_t flags_ = 0;
};

}  // namespace samesum::cpu
