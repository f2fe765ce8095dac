/// The integers of exact scans: a window of exponents that suits the elements, elements as whole numbers of
/// its units, and sums of them, rounded once.
#pragma once

#include "samesum/accumulator/digits.hpp"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/window/exponent_range.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum::gpu {

/// Facts about some elements of a call from which their window follows. With all bytes 0 there are none.
struct ScanWindow {
  ExponentRange range;
  /// Whether integers cannot give the results: if an element is infinite or NaN, or if the first element of a
  /// result is -0, since integers have no -0.
  unsigned missed = 0;
  unsigned exceeded = 0;  ///< whether a scan in this window met an element that does not fit it
};

/// Common elements are whole numbers of units of 2^(unit + common_shift), and less than
/// 2^ExactScan::common_bits units.
constexpr int common_shift = 32;
/// Bits of a sum of common elements: those that a warp or a thread adds between two looks at the sum, and
/// those that a sum has before it is shifted.
constexpr int common_sum_bits = 60;

/// One call. Its sums have 128 bits, in a window that a sample suggests if the call is long. If an element
/// exceeds it, the sums have 192 or 320 bits, in the window of all elements. All sums of fp32 have fewer.
struct ExactScan {
  struct Windows {
    ScanWindow sample, all;
  };
  Windows* windows;
  bool samples;
  bool has_wide;    ///< whether sums of more than 128 bits are tried
  int log2_length;  ///< log2 of the length of the results, rounded up
  int log2_step;    ///< log2 of the elements for each one of the sample
  int least_unit;   ///< a lower bound of unit(), low enough for all numbers
  int common_bits;  ///< as many as let common_sum_bits hold the sums of common elements

  /// The window of sums of 128 bits.
  __device__ const ScanWindow& window() const { return samples ? windows->sample : windows->all; }
  /// Sums of 128 bits are integers in units of 2^unit, of at most 126 bits. In the window of a sample, the
  /// elements may need more than the sample does.
  __device__ int unit() const {
    const int top = window().range.top(), common = top - common_bits - common_shift;
    if (!samples) return max(min(common, window().range.lowest()), least_unit);
    // In the first unit the largest elements are common. In the second one, sums have as much room for large
    // elements as for small ones.
    const int first = common + headroom, second = (lowest_unit() + expected_lowest()) / 2;
    return max(first <= expected_lowest() - margin ? first : min(first, second), least_unit);
  }
  /// Whether to try sums of 128 bits. The facts that it reads do not change while these sums are computed.
  __device__ bool tries_narrow() const {
    if (window().missed != 0) return false;
    return samples ? expected_lowest() >= lowest_unit() : window().range.top() - unit() + log2_length <= 126;
  }
  /// Whether sums of 128 bits have given the results.
  __device__ bool narrow_fits() const { return tries_narrow() && window().exceeded == 0; }
  /// Number of words of 64 bits per sum, if 128 bits do not give the results: 3, 5, or 0 if 5 do not suffice.
  /// All elements are multiples of the unit of these sums.
  __device__ int wide_words() const {
    if (!has_wide || narrow_fits() || windows->all.missed != 0) return 0;
    const int bits = windows->all.range.top() - wide_unit() + log2_length;
    return bits <= 190 ? 3 : bits <= 318 ? 5 : 0;
  }
  __device__ int wide_unit() const { return windows->all.range.lowest(); }

 private:
  static constexpr int headroom = 3;  ///< binades that an element may exceed the largest of the sample
  static constexpr int margin = 8;    ///< binades below the lowest bit that is expected
  /// The lowest unit of sums of 126 bits.
  __device__ int lowest_unit() const { return window().range.top() + headroom - (126 - log2_length); }
  /// If small elements are rare, the lowest bit of all elements is about that much below that of the sample.
  __device__ int expected_lowest() const { return window().range.lowest() - log2_step; }
};

/// A sum as a whole number of units.
struct WindowSum {
  __int128 units = 0;
};
/// A sum of 192 or 320 bits as a whole number of units.
template <int words> struct WideSum { WideInteger<words> units{}; };
using WidestSum = WideSum<5>;
/// A sum of common elements, in units of 2^common_shift units.
struct CommonSum {
  std::int64_t units = 0;
  __device__ WindowSum widened() const { return {static_cast<__int128>(units) << common_shift}; }
};
__device__ inline WindowSum operator+(WindowSum a, WindowSum b) { return {a.units + b.units}; }
template <int words> __device__ WideSum<words> operator+(WideSum<words> a, WideSum<words> b) {
  return {a.units + b.units};
}
__device__ inline CommonSum operator+(CommonSum a, CommonSum b) { return {a.units + b.units}; }

/// A sum in two parts, as long as only common elements are added: units of 2^common_shift units, and what is
/// below them. If `Units` has 128 bits, a rounded result needs no more than units >> shift, and whether
/// anything is lost.
template <class Units> struct SplitSum {
  Units units;
  std::uint32_t below;
  int shift;

  __device__ WindowSum widened() const { return {(static_cast<__int128>(units) << common_shift) + below}; }
};
/// Calls visit(sum) with a sum in two parts.
template <class Visit> __device__ __forceinline__ auto with_split(const WindowSum& sum, Visit visit) {
  const __int128 all = sum.units >> common_shift;
  const auto below = static_cast<std::uint32_t>(sum.units);
  const auto magnitude = static_cast<std::uint64_t>((all < 0 ? ~all : all) >> common_sum_bits);
  if (magnitude == 0) return visit(SplitSum<std::int64_t>{static_cast<std::int64_t>(all), below, 0});
  return visit(SplitSum<__int128>{all, below, 64 - leading_zeros(magnitude)});
}
template <class Units> __device__ SplitSum<Units> operator+(SplitSum<Units> a, CommonSum b) {
  return {a.units + b.units, a.below, a.shift};
}

/// integer · 2^exponent, rounded once to F. The number is a sum of numbers of format C.
template <class F, class C> __device__ F rounded_integer(std::int64_t integer, int exponent) {
  // A format that holds all of C rounds no subnormal number, so the scaling is exact unless the result
  // overflows. It takes two steps to stay within the exponents of F.
  if constexpr (std::is_same_v<F, fp32> && std::is_same_v<C, fp32>)
    return __ll2float_rn(integer) * scale_of<F>(exponent / 2) * scale_of<F>(exponent - exponent / 2);
  if constexpr (std::is_same_v<F, fp64>)
    return __ll2double_rn(integer) * scale_of<F>(exponent / 2) * scale_of<F>(exponent - exponent / 2);
  if (integer == 0) return from_bits<F>(BitsOf<F>{0});
  const auto magnitude = static_cast<std::uint64_t>(integer < 0 ? -integer : integer);
  return from_bits<F>(round_to_bits<F>(integer < 0, magnitude, exponent));
}
/// units · 2^unit, rounded once to F.
template <class F, class C, int words>
__device__ __noinline__ F rounded_sum(WideInteger<words> units, int unit) {
  const LeadingBits all = units.leading(unit);
  const auto leading = ShortNumber::of(all.negative, all.bits, all.more);
  return rounded_integer<F, C>(leading.integer, static_cast<int>(all.exponent) + leading.exponent);
}
template <class F, class C> __device__ F rounded_sum(__int128 units, int unit) {
  return rounded_sum<F, C>(Int128::of(static_cast<Wide>(units)), unit);
}
/// units · 2^unit, rounded once to F, for kernels in which most sums are rounded so. The leading 62 bits, and
/// one for all others, decide.
template <class F, class C> __device__ __forceinline__ F rounded_sum_inlined(__int128 units, int unit) {
  const bool negative = units < 0;
  const auto magnitude = static_cast<unsigned __int128>(negative ? -units : units);
  auto high = static_cast<std::uint64_t>(magnitude >> 64), low = static_cast<std::uint64_t>(magnitude);
  int exponent = unit + 66;
  if (high == 0) {
    high = low;
    low = 0;
    exponent -= 64;
  }
  const int up = leading_zeros(high) & 63;
  high = high << up | low >> 1 >> (63 - up);
  const bool lost = ((high & 3) | low << up) != 0;
  const std::int64_t kept = static_cast<std::int64_t>(high >> 2) | lost;
  return rounded_integer<F, C>(negative ? -kept : kept, exponent - up);
}

/// magnitude · 2^shift, 0 <= shift < 128, as far as it fits 128 bits.
__device__ inline unsigned __int128 shifted_left(std::uint64_t magnitude, int shift) {
  const bool is_high = shift >= 64;
  const int by = shift & 63;
  const std::uint64_t low = magnitude << by, over = magnitude >> 1 >> (63 - by);
  return static_cast<unsigned __int128>(is_high ? low : over) << 64 | (is_high ? 0 : low);
}
/// Returns x as a whole number of units of 2^unit, below 2^bits. If x is not such a number, reports it and
/// returns 0.
template <class C>
__device__ __noinline__ __int128 exact_units(CarrierOf<C> x, int unit, int bits, unsigned* exceeded) {
  const Decomposed d = decompose<C>(to_bits(x));
  if (d.significand == 0) return 0;
  const int shift = d.exponent - unit, below = min(max(-shift, 0), 63);
  const bool is_finite = abs(x) < CarrierOf<C>(INFINITY),
             fits = shift + 64 - leading_zeros(d.significand) <= bits,
             is_whole = (d.significand >> below) << below == d.significand;
  if (!is_finite || !fits || !is_whole) {
    *exceeded = 1;
    return 0;
  }
  const auto magnitude = static_cast<__int128>(d.significand >> below) << max(shift, 0);
  return d.negative ? -magnitude : magnitude;
}

/// The lower bound of units for elements that format C holds: 2^(unit + common_shift - 1) must be normal in
/// it.
template <class C>
inline constexpr int least_unit =
    (sizeof(C) < 8 ? 2 - Format<C>::max_exponent : Format<C>::min_quantum) - common_shift;

/// The sums of 128 bits of a call whose elements format C holds.
template <class C> class WindowUnits {
 public:
  using Sum = WindowSum;
  static constexpr bool has_common = sizeof(C) < 8;

  __device__ explicit WindowUnits(const ExactScan& call) : call_{call}, unit_{call.unit()} {
    if constexpr (sizeof(C) < 8) {
      using Info = Format<C>;
      constexpr int fraction_bits = Info::precision - 1;
      const int common = unit_ + common_shift, first = common - Info::min_quantum + 1,  // fields of exponents
          last = min(first + call.common_bits - Info::precision, 2 * Info::max_exponent);
      scale_ = scale_of<C>(-common);
      lowest_ = static_cast<BitsOf<C>>(first) << fraction_bits;
      span_ = static_cast<BitsOf<C>>(last + 1 - first) << fraction_bits;
      // Otherwise the compiler computes them again for each element, to save registers.
      asm volatile("" : "+f"(scale_), "+r"(lowest_), "+r"(span_));
    }
  }
  __device__ int unit() const { return unit_; }
  __device__ bool is_common(CarrierOf<C> x) const {
    const auto magnitude = static_cast<BitsOf<C>>(to_bits(x) & ~Format<C>::sign_bit);
    return has_common & ((magnitude - lowest_ < span_) | (magnitude == 0));  // without branches
  }
  __device__ CommonSum common(CarrierOf<C> x) const {
    if constexpr (sizeof(C) < 8)
      return {__float2ll_rn(x * scale_)};
    else
      return {};
  }
  /// Returns any element in units. Reports an element outside the window, and returns 0 for it.
  __device__ WindowSum exactly(CarrierOf<C> x) const {
    ScanWindow& window = call_.samples ? call_.windows->sample : call_.windows->all;
    return {exact_units<C>(x, unit_, 126 - call_.log2_length, &window.exceeded)};
  }
  /// What exactly() does, for kernels in which most elements are added so.
  __device__ __forceinline__ WindowSum exactly_inlined(CarrierOf<C> x) const {
    using Info = Format<C>;
    constexpr int fraction_bits = Info::precision - 1;
    const BitsOf<C> bits = to_bits(x), magnitude = bits & ~Info::sign_bit;
    const int shift = static_cast<int>(magnitude >> fraction_bits) - 1 + Info::min_quantum - unit_;
    if (magnitude == 0) return {};
    // A normal number whose last bit is a whole number of units.
    if (magnitude >> fraction_bits != 0 && shift >= 0 && shift <= 126 - Info::precision - call_.log2_length &&
        magnitude < Info::infinity) {
      constexpr BitsOf<C> hidden = BitsOf<C>{1} << fraction_bits;
      const auto units = static_cast<__int128>(shifted_left((magnitude & (hidden - 1)) | hidden, shift));
      return {bits == magnitude ? units : -units};
    }
    return exactly(x);
  }
  template <class F> __device__ F rounded(const WindowSum& sum) const {
    return rounded_sum<F, C>(sum.units, unit_);
  }
  template <class F> __device__ __forceinline__ F rounded_inlined(const WindowSum& sum) const {
    return rounded_sum_inlined<F, C>(sum.units, unit_);
  }

 private:
  const ExactScan& call_;
  int unit_;
  CarrierOf<C> scale_ = 0;           // 2^-(unit + common_shift)
  BitsOf<C> lowest_ = 0, span_ = 0;  // magnitudes of common elements except 0, as bits, are in this range
};

/// The wide sums of a call whose elements format C holds. All of them fit.
template <class C, class WideSum> class WideUnits {
 public:
  using Sum = WideSum;
  static constexpr bool has_common = false;

  __device__ explicit WideUnits(const ExactScan& call) : unit_{call.wide_unit()} {}
  __device__ int unit() const { return unit_; }
  __device__ bool is_common(CarrierOf<C>) const { return false; }
  __device__ WideSum exactly(CarrierOf<C> x) const {
    const Decomposed d = decompose<C>(to_bits(x));
    if (d.significand == 0) return {};
    const int below = max(unit_ - d.exponent, 0);  // these bits are 0
    return {decltype(Sum::units)::of(d.negative, d.significand >> below, d.exponent + below - unit_)};
  }
  __device__ WideSum exactly_inlined(CarrierOf<C> x) const { return exactly(x); }
  template <class F> __device__ F rounded(const WideSum& sum) const {
    return rounded_sum<F, C>(sum.units, unit_);
  }
  template <class F> __device__ F rounded_inlined(const WideSum& sum) const { return rounded<F>(sum); }

 private:
  int unit_;
};
template <class C, class Sum>
using UnitsFor = std::conditional_t<std::is_same_v<Sum, WindowSum>, WindowUnits<C>, WideUnits<C, Sum>>;

/// Rounds sums once to F.
template <class F, class C> class SumRounder {
 public:
  /// For sums with the same `shift`, unless they are of the type WindowSum.
  __device__ SumRounder(const WindowUnits<C>& units, int shift)
      : unit_{units.unit()}, exponent_{unit_ + common_shift + shift - 1} {
    if constexpr (is_scaled) scale_ = scale_of<F>(exponent_);
  }
  __device__ F operator()(const WindowSum& sum) const { return rounded_sum<F, C>(sum.units, unit_); }
  template <class Units> __device__ F operator()(const SplitSum<Units>& sum) const {
    std::int64_t kept;
    bool lost = sum.below != 0;
    if constexpr (sizeof(Units) == 8) {
      kept = sum.units;
    } else {  // 0 < shift < 64
      const auto low = static_cast<std::uint64_t>(sum.units),
                 high = static_cast<std::uint64_t>(sum.units >> 64);
      kept = static_cast<std::int64_t>(low >> sum.shift | high << (64 - sum.shift));
      lost = lost | (low << (64 - sum.shift) != 0);
    }
    const std::int64_t sticky = 2 * kept + lost;
    // With two bits more than the format, the last bit decides as all lost ones do.
    constexpr std::int64_t least = std::int64_t{1} << (Format<F>::precision + 2);
    if (lost && sticky < least && sticky > -least) return (*this)(sum.widened());
    if constexpr (!is_scaled)
      return rounded_integer<F, C>(sticky, exponent_);
    else if constexpr (std::is_same_v<F, fp32>)
      return __ll2float_rn(sticky) * scale_;  // exact, or infinite: the unit of `sticky` is a normal number
    else
      return __ll2double_rn(sticky) * scale_;
  }

 private:
  static constexpr bool is_scaled = sizeof(C) == 4 && sizeof(F) >= 4;
  int unit_, exponent_;
  F scale_{};
};

}  // namespace samesum::gpu
