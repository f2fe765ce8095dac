/// Exact scans on a GPU: sums are integers of 128 bits, in units that a sample of the elements suggests. If
/// an element does not fit, all elements are looked at to find better units; if there are none, a fallback
/// scans with all digits, tile by tile.
///
/// Integers may be added in any order. So the elements are read twice: once for the sums of segments, and
/// once to scan the segments, each from the sum of all before it. No warp waits for another one. Most
/// elements are common: they fit the middle of the window, 64 bits hold the sums of the rows of a warp, and
/// one instruction converts an element, another one a result.
#pragma once

#include "samesum/backend/cuda/digits.cuh"
#include "samesum/backend/cuda/scan.cuh"

namespace samesum::gpu {

/// What some elements of a call have in common. All bytes 0 is the window of no elements.
struct ExactWindow {
  static constexpr int bias = 2048;
  /// Magnitudes are below 2^(top - bias), and whole numbers of units of 2^(bias - below). 0 for zeros.
  unsigned top, below;
  /// Whether integers cannot give the results: if an element is infinite or NaN, or if the first element of a
  /// result is -0, since integers have no -0.
  unsigned missed;
  unsigned exceeded;  ///< whether a scan in this window met an element that does not fit it
};

/// Common elements are whole numbers of units of 2^(unit + common_shift), and less than 2^common_bits units.
constexpr int common_shift = 32, common_bits = 49;

/// One call. If it is long, it tries the window of a sample first; that of all elements is found only if an
/// element exceeds it.
struct ExactScan {
  struct Windows {
    ExactWindow sample, all;
  };
  Windows* windows;
  bool samples;
  int log2_length;  ///< of the results, rounded up
  int least_unit;   ///< a lower bound of unit(), low enough for all numbers

  /// Sums are integers in units of 2^unit, of at most 126 bits.
  __device__ int unit(bool sampled) const {
    constexpr int headroom = 3;  // binades that a common element may exceed the largest of the sample
    const ExactWindow& w = sampled ? windows->sample : windows->all;
    const int top = static_cast<int>(w.top) - ExactWindow::bias - common_bits - common_shift,
              lowest = ExactWindow::bias - static_cast<int>(w.below);
    return max(sampled ? top + headroom : min(top, lowest), least_unit);
  }
  /// Whether the window of the sample has given the results.
  __device__ bool sample_fits() const {
    return samples && windows->sample.missed == 0 && windows->sample.exceeded == 0;
  }
  /// Whether the window of all elements gives the results.
  __device__ bool all_fit() const {
    return windows->all.missed == 0 &&
           static_cast<int>(windows->all.top) - ExactWindow::bias - unit(false) + log2_length <= 126;
  }
};

/// A sum as a whole number of units.
struct WindowSum {
  __int128 units = 0;
};
/// A sum of common elements, in units of 2^common_shift units.
struct CommonSum {
  std::int64_t units = 0;
  __device__ WindowSum widened() const { return {static_cast<__int128>(units) << common_shift}; }
};
__device__ inline WindowSum operator+(WindowSum a, WindowSum b) { return {a.units + b.units}; }
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
template <class Units> __device__ SplitSum<Units> operator+(SplitSum<Units> a, CommonSum b) {
  return {a.units + b.units, a.below, a.shift};
}
template <> inline constexpr bool fresh_is_neutral<WindowSum> = true;

/// 2^exponent, a normal number.
template <class C> __device__ CarrierOf<C> power_of_two(int exponent) {
  constexpr int fraction_bits = Format<C>::precision - 1;
  return from_bits<C>(BitsOf<C>(exponent + Format<C>::max_exponent) << fraction_bits);
}

/// integer · 2^exponent, rounded once to F. The number is a sum of numbers of format C.
template <class F, class C> __device__ F rounded_integer(std::int64_t integer, int exponent) {
  // A format that holds all of C rounds no subnormal number, so the scaling is exact unless the result
  // overflows. It takes two steps to stay within the exponents of F.
  if constexpr (std::is_same_v<F, fp32> && std::is_same_v<C, fp32>)
    return __ll2float_rn(integer) * power_of_two<F>(exponent / 2) * power_of_two<F>(exponent - exponent / 2);
  if constexpr (std::is_same_v<F, fp64>)
    return __ll2double_rn(integer) * power_of_two<F>(exponent / 2) * power_of_two<F>(exponent - exponent / 2);
  if (integer == 0) return from_bits<F>(BitsOf<F>{0});
  const auto magnitude = static_cast<std::uint64_t>(integer < 0 ? -integer : integer);
  return from_bits<F>(round_to_bits<F>(integer < 0, magnitude, exponent));
}
/// units · 2^unit, rounded once to F.
template <class F, class C> __device__ __noinline__ F rounded_sum(__int128 units, int unit) {
  const bool negative = units < 0;
  const auto magnitude = static_cast<unsigned __int128>(negative ? -units : units);
  const auto high = static_cast<std::uint64_t>(magnitude >> 62);
  auto leading = static_cast<std::int64_t>(magnitude & ((std::uint64_t{1} << 62) - 1));
  int shift = 0;
  if (high != 0) {  // the leading 62 bits; the last one is sticky
    shift = 64 - leading_zeros(high);
    leading = static_cast<std::int64_t>(magnitude >> shift);
    if ((static_cast<unsigned __int128>(leading) << shift) != magnitude) leading |= 1;
  }
  return rounded_integer<F, C>(negative ? -leading : leading, unit + shift);
}

/// x as a whole number of units of 2^unit, below 2^bits. If it is none, reports that and returns 0.
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

/// The integers of a call whose elements format C holds.
template <class C> class WindowUnits {
 public:
  /// In the window of the sample, or of all elements.
  __device__ WindowUnits(const ExactScan& call, bool sampled) : call_{call}, unit_{call.unit(sampled)} {
    if constexpr (sizeof(C) < 8) {
      using Info = Format<C>;
      constexpr int fraction_bits = Info::precision - 1;
      const int common = unit_ + common_shift, first = common - Info::min_quantum + 1,  // fields of exponents
          last = min(first + common_bits - Info::precision, 2 * Info::max_exponent);
      scale_ = power_of_two<C>(-common);
      lowest_ = static_cast<BitsOf<C>>(first) << fraction_bits;
      span_ = static_cast<BitsOf<C>>(last + 1 - first) << fraction_bits;
      // Otherwise the compiler computes them again for each element, to save registers.
      asm volatile("" : "+f"(scale_), "+r"(lowest_), "+r"(span_));
    }
  }
  __device__ int unit() const { return unit_; }
  __device__ bool is_common(CarrierOf<C> x) const {
    const auto magnitude = static_cast<BitsOf<C>>(to_bits(x) & ~Format<C>::sign_bit);
    return (sizeof(C) < 8) & ((magnitude - lowest_ < span_) | (magnitude == 0));  // without branches
  }
  __device__ CommonSum common(CarrierOf<C> x) const {
    if constexpr (sizeof(C) < 8)
      return {__float2ll_rn(x * scale_)};
    else
      return {};
  }
  /// Any element. Reports one outside of the window, and returns 0 for it.
  __device__ WindowSum exactly(CarrierOf<C> x) const {
    return {exact_units<C>(x, unit_, 126 - call_.log2_length, &call_.windows->sample.exceeded)};
  }

 private:
  const ExactScan& call_;
  int unit_;
  CarrierOf<C> scale_ = 0;           // 2^-(unit + common_shift)
  BitsOf<C> lowest_ = 0, span_ = 0;  // magnitudes of common elements except 0, as bits, are in this range
};

/// Rounds sums once to F.
template <class F, class C> class SumRounder {
 public:
  /// For sums with the same `shift`, unless they are of the type WindowSum.
  __device__ SumRounder(const WindowUnits<C>& units, int shift)
      : unit_{units.unit()}, exponent_{unit_ + common_shift + shift - 1} {
    if constexpr (is_scaled) scale_ = power_of_two<F>(exponent_);
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

/// Rows of a long segment; a short one has few_rows of them.
template <class C> inline constexpr int segment_rows = sizeof(C) < 8 ? 16 : 8;

/// Segments: consecutive elements of a result, which one warp scans. A group of them is summed by one block.
struct ScanSegments {
  static constexpr int most_in_group = 16;
  std::size_t length;     ///< elements of a segment
  int in_group;           ///< segments of a group, a power of two
  std::size_t of_result;  ///< groups of a result
  std::size_t groups;
  WindowSum* sum;    ///< of the segments before each one, in its group; null if a result has one segment
  WindowSum* group;  ///< of the groups before each one, in its result; null if a result has one group
  bool* is_common;   ///< whether all elements of a segment are common; null if `sum` is

  std::size_t count() const { return groups * static_cast<std::size_t>(in_group); }
};

/// A segment of a warp.
struct ScanSegment {
  std::size_t outer, inner, begin;
  std::size_t first;  ///< place of its first element
  int count;          ///< of its elements

  __device__ ScanSegment(const Layout& l, const ScanSegments& all, std::size_t index) {
    const std::size_t group = index / all.in_group, result = group / all.of_result;
    outer = result / l.inner;
    inner = result % l.inner;
    begin = (group % all.of_result * all.in_group + index % all.in_group) * all.length;
    first = l.first(outer) + inner + begin * l.stride;
    count = begin < l.n ? static_cast<int>(min(l.n - begin, all.length)) : 0;
  }
};

/// Rows of a segment whose sums are integers.
template <class C, int rows> class WindowRows : public LoadedRows<C, rows> {
  using LoadedRows<C, rows>::element_;

 public:
  using LoadedRows<C, rows>::run;
  using LoadedRows<C, rows>::row;

  /// Loads up to `count` elements, `stride` apart. Absent ones are 0.
  __device__ void load(const ScanInput& in, std::size_t first, std::size_t stride, int count) {
    if (count < LoadedRows<C, rows>::elements)
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int j = 0; j < run; ++j) element_[r][j] = Scalar<C>::zero();
    std::size_t index = 0;
    Formats::for_each([&]<class T>() {
      if constexpr (can_read<T, C>)
        if (index == in.format) LoadedRows<C, rows>::load(static_cast<const T*>(in.x) + first, stride, count);
      ++index;
    });
  }

  __device__ bool are_common(const WindowUnits<C>& units) const {
    bool common = true;
    each([&](CarrierOf<C> x) { common = common & units.is_common(x); });
    return __all_sync(whole_warp, common);
  }
  /// The sum of all rows; are_common() is `common`.
  __device__ WindowSum sum(const WindowUnits<C>& units, bool common) const {
    if (common) {
      CommonSum sum;
      each([&](CarrierOf<C> x) { sum = sum + units.common(x); });
      return sum_of_warp(sum).widened();
    }
    WindowSum sum;
    each([&](CarrierOf<C> x) { sum = sum + units.exactly(x); });
    return sum_of_warp(sum);
  }
  /// Writes the results of the rows after `before`, rounded to F; are_common() is `common`.
  template <class F>
  __device__ void scan(const WindowUnits<C>& units, bool common, int count, WindowSum before,
                       RowWriter<F> writer) const {
    if (!common)
      return scan_rows(
          count, before, SumRounder<F, C>{units, 0}, [&](CarrierOf<C> x) { return units.exactly(x); },
          writer);
    constexpr int most = 60;  // bits of a sum without a shift; those of the rows have as many
    const __int128 all = before.units >> common_shift;
    const auto below = static_cast<std::uint32_t>(before.units);
    const auto magnitude = static_cast<std::uint64_t>((all < 0 ? ~all : all) >> most);
    const int shift = magnitude == 0 ? 0 : 64 - leading_zeros(magnitude);
    const SumRounder<F, C> round{units, shift};
    const auto of = [&](CarrierOf<C> x) { return units.common(x); };
    if (shift == 0)
      scan_rows(count, SplitSum<std::int64_t>{static_cast<std::int64_t>(all), below, 0}, round, of, writer);
    else
      scan_rows(count, SplitSum<__int128>{all, below, shift}, round, of, writer);
  }

 private:
  template <class Visit> __device__ void each(Visit visit) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int j = 0; j < run; ++j) visit(element_[r][j].v);
  }
  template <class Sum> __device__ static Sum sum_of_warp(Sum sum) {
#pragma unroll
    for (int delta = 1; delta < warp; delta *= 2) sum = sum + shuffle_xor(sum, delta);
    return sum;
  }
  template <class Base, class Round, class Of, class Writer>
  __device__ void scan_rows(int count, Base before, const Round& round, Of of, Writer& writer) const {
    using Sum = decltype(of(element_[0][0].v));
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
      Sum sum[run], own;
#pragma unroll
      for (int j = 0; j < run; ++j) sum[j] = own = own + of(element_[r][j].v);
      Sum up_to = own;
#pragma unroll
      for (int delta = 1; delta < warp; delta *= 2) {
        const Sum left = shuffled(up_to, max(thread() - delta, 0));
        if (thread() >= delta) up_to = up_to + left;
      }
      const Base start = before + Sum{up_to.units - own.units};
#pragma unroll
      for (int j = 0; j < run; ++j) writer.set(j, round(start + sum[j]));
      writer.write(r);
      before = before + shuffled(up_to, warp - 1);
    }
  }
};

constexpr int segment_warps = 4;  ///< of a block that scans segments

/// Scans each segment, and rounds each sum once to F.
template <class C, class F, int rows>
__global__ void __launch_bounds__(segment_warps* warp, 4)
    scan_segments(ScanInput in, Layout l, ExactScan call, ScanSegments segments, ScanDestination out) {
  const bool sampled = call.sample_fits();
  if (!sampled && !call.all_fit()) return;
  const std::size_t index = std::size_t{blockIdx.x} * segment_warps + static_cast<std::size_t>(warp_index());
  if (index >= segments.groups * static_cast<std::size_t>(segments.in_group)) return;
  const ScanSegment s{l, segments, index};
  if (s.count == 0) return;
  WindowRows<C, rows> held;
  held.load(in, s.first, l.stride, s.count);
  WindowSum before;
  if (segments.sum != nullptr) before = segments.sum[index];
  if (segments.group != nullptr) before = before + segments.group[index / segments.in_group];
  const WindowUnits<C> units{call, sampled};
  const bool common = segments.is_common != nullptr ? segments.is_common[index] : held.are_common(units);
  F* const to = static_cast<F*>(out.out) + s.outer * out.row_stride + s.inner + s.begin * l.inner;
  held.scan(units, common, s.count, before,
            RowWriter<F>{to, l.inner, s.count, out.exclusive, rounded_sum<F, C>(before.units, units.unit())});
}

/// The digits of a sum, and the flags of its elements (Exact::Flag).
struct TileDigits {
  std::int64_t digit[Exact::digit_count];
  std::int64_t flags;
};

}  // namespace samesum::gpu
