/// Exact scans on a GPU: sums are integers of 128 bits, in units that a sample of the elements suggests. If
/// an element does not fit, all elements are looked at to find better units; if there are none, a fallback
/// scans with all digits, tile by tile.
///
/// Most elements are common: they fit the middle of the window, 64 bits hold the sums of the rows of a warp,
/// and one instruction converts an element, another one a result.
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
  int min_quantum;  ///< of the format that holds the elements

  /// Sums are integers in units of 2^unit, of at most 126 bits.
  __device__ int unit(bool sampled) const {
    constexpr int headroom = 3;  // binades that a common element may exceed the largest of the sample
    const ExactWindow& w = sampled ? windows->sample : windows->all;
    const int top = static_cast<int>(w.top) - ExactWindow::bias - common_bits - common_shift,
              lowest = ExactWindow::bias - static_cast<int>(w.below);
    return max(sampled ? top + headroom : min(top, lowest), min_quantum - common_shift);
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
template <> inline constexpr bool fresh_is_neutral<WindowSum> = true;

/// 2^exponent, a normal number.
template <class C> __device__ CarrierOf<C> power_of_two(int exponent) {
  constexpr int fraction_bits = samesum::Format<C>::precision - 1;
  return from_bits<C>(BitsOf<C>(exponent + samesum::Format<C>::max_exponent) << fraction_bits);
}

/// integer · 2^exponent, rounded once to F, where no multiple of 2^exponent that is subnormal needs rounding.
template <class F> __device__ F rounded_integer(std::int64_t integer, int exponent) {
  // Scaling in two steps stays within the exponents of F, and is exact unless the result overflows.
  if constexpr (std::is_same_v<F, fp32>)
    return __ll2float_rn(integer) * power_of_two<F>(exponent / 2) * power_of_two<F>(exponent - exponent / 2);
  else if constexpr (std::is_same_v<F, fp64>)
    return __ll2double_rn(integer) * power_of_two<F>(exponent / 2) * power_of_two<F>(exponent - exponent / 2);
  else
    return from_bits<F>(integer == 0
                            ? BitsOf<F>{0}
                            : round_to_bits<F>(integer < 0,
                                               static_cast<std::uint64_t>(integer < 0 ? -integer : integer),
                                               exponent));
}
/// units · 2^unit, rounded once to F.
template <class F> __device__ __noinline__ F rounded_sum(__int128 units, int unit) {
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
  return rounded_integer<F>(negative ? -leading : leading, unit + shift);
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

/// Sums elements of format C, or of a format that C contains, exactly; rounds each sum once to F.
template <class C, class F> struct WindowReducer {
  using Format = C;
  using Result = F;
  using State = WindowSum;

  ExactScan call;
  bool sampled;  ///< whether the window is that of the sample
  int unit = 0;
  CarrierOf<C> scale[2] = {};      ///< their product is 2^-(unit + common_shift)
  BitsOf<C> lowest = 0, span = 0;  ///< magnitudes of common elements except 0, as bits, are in this range

  /// Whether this reducer can compute the results, as far as is known. Every thread of a kernel calls it
  /// first.
  __device__ bool begin() {
    // `exceeded` is no reason to stop a scan that may have begun: other blocks wait for this one.
    if (sampled ? call.windows->sample.missed != 0 : call.sample_fits() || !call.all_fit()) return false;
    unit = call.unit(sampled);
    if constexpr (sizeof(C) < 8) {
      using Info = samesum::Format<C>;
      const int common = unit + common_shift, first = max(common - Info::min_quantum + 1, 0),
                last = min(common + common_bits - Info::min_quantum - Info::precision + 1,
                           2 * Info::max_exponent);
      scale[0] = power_of_two<C>(-common / 2);
      scale[1] = power_of_two<C>(-common - -common / 2);
      lowest = common <= Info::min_quantum ? 0 : static_cast<BitsOf<C>>(first) << (Info::precision - 1);
      span = (static_cast<BitsOf<C>>(last + 1) << (Info::precision - 1)) - lowest;
      // Otherwise the compiler computes them again for each element, to save registers.
      asm volatile("" : "+f"(scale[0]), "+f"(scale[1]), "+r"(lowest), "+r"(span));
    }
    return true;
  }
  __device__ bool is_common(CarrierOf<C> x) const {
    const auto magnitude = static_cast<BitsOf<C>>(to_bits(x) & ~samesum::Format<C>::sign_bit);
    return sizeof(C) < 8 && (magnitude - lowest < span || magnitude == 0);
  }
  __device__ CommonSum common(CarrierOf<C> x) const {
    if constexpr (sizeof(C) < 8)
      return {__float2ll_rn(x * scale[0] * scale[1])};
    else
      return {};
  }
  /// Any element. Reports one outside of the window, and returns 0 for it.
  __device__ WindowSum exactly(CarrierOf<C> x) const {
    return {exact_units<C>(x, unit, 126 - call.log2_length, &call.windows->sample.exceeded)};
  }
  __device__ void merge(State& state, const State& other) const { state.units += other.units; }
  __device__ void finish(const State& sum, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = rounded_sum<F>(sum.units, unit);
  }
  __device__ void finish(const CommonSum& sum, std::uint64_t, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = rounded_integer<F>(sum.units, unit + common_shift);
  }
};

/// Rows of a tile whose sums are integers: they may be added in any order, so a warp needs only their sum
/// before it knows what comes before them.
template <class C, class F, int rows> class WindowRows : public LoadedRows<C, rows> {
  using Reducer = WindowReducer<C, F>;
  using LoadedRows<C, rows>::run;
  using LoadedRows<C, rows>::row;
  using LoadedRows<C, rows>::element_;

 public:
  template <class T> __device__ void load(const T* x, std::size_t stride, int count) {
    if (count < LoadedRows<C, rows>::elements)  // absent elements add 0
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int j = 0; j < run; ++j) element_[r][j] = Scalar<C>::zero();
    LoadedRows<C, rows>::load(x, stride, count);
  }

  /// Sums all rows; in `of_row`, the sum is that of the first one.
  __device__ void scan(const Reducer& reducer, int count, WindowSum* of_row) {
    bool is_common = true;
    CommonSum sum;
    each(count, [&](CarrierOf<C> x) {
      is_common = is_common && reducer.is_common(x);
      sum = sum + reducer.common(x);
    });
    is_common_ = __all_sync(whole_warp, is_common);
    WindowSum all;
    if (is_common_) {
      all = sum_of_warp(sum).widened();
    } else {
      each(count, [&](CarrierOf<C> x) { all = all + reducer.exactly(x); });
      all = sum_of_warp(all);
    }
    if (thread() < rows) of_row[thread()] = thread() == 0 ? all : WindowSum{};
  }

  /// As WarpRows::visit.
  template <class Visit, class Finish>
  __device__ void visit(const Reducer& reducer, int, int count, int first_row, const WindowSum* of_rows,
                        const ScanCarry<Reducer>& carry, const WindowSum&, Visit visit, Finish finish) const {
    WindowSum before = carry.state;
    if (first_row > 0) before = before + of_rows[first_row - 1];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
      if (is_common_) {
        const CommonSum all = sums_of_row(
            r, [&](CarrierOf<C> x) { return reducer.common(x); },
            [&](const CommonSum(&sum)[run]) {
              constexpr std::int64_t most = std::int64_t{1} << 61;
              const auto common = static_cast<std::int64_t>(before.units >> common_shift);
              if (CommonSum{common}.widened().units == before.units && common < most && common > -most)
                for (int j = 0; j < run; ++j) visit(r, j, CommonSum{common} + sum[j]);
              else
                for (int j = 0; j < run; ++j) visit(r, j, before + sum[j].widened());
            });
        before = before + all.widened();
      } else {
        before = before + sums_of_row(
                              r, [&](CarrierOf<C> x) { return reducer.exactly(x); },
                              [&](const WindowSum(&sum)[run]) {
                                for (int j = 0; j < run; ++j) visit(r, j, before + sum[j]);
                              });
      }
      finish(r);
    }
  }

 private:
  template <class Visit> __device__ void each(int count, Visit visit) const {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
#pragma unroll
      for (int j = 0; j < run; ++j) visit(element_[r][j].v);
    }
  }
  template <class Sum> __device__ static Sum sum_of_warp(Sum sum) {
#pragma unroll
    for (int delta = 1; delta < warp; delta *= 2) sum = sum + shuffle_xor(sum, delta);
    return sum;
  }
  /// Calls use(sum) with the sums of the elements of row r up to each one of the thread. Returns that of the
  /// row.
  template <class Of, class Use> __device__ auto sums_of_row(int r, Of of, Use use) const {
    using Sum = decltype(of(element_[r][0].v));
    Sum sum[run], own;
#pragma unroll
    for (int j = 0; j < run; ++j) sum[j] = own = own + of(element_[r][j].v);
    Sum up_to = own;
#pragma unroll
    for (int delta = 1; delta < warp; delta *= 2) {
      const Sum left = shuffled(up_to, max(thread() - delta, 0));
      if (thread() >= delta) up_to = up_to + left;
    }
    const Sum before{up_to.units - own.units};
#pragma unroll
    for (int j = 0; j < run; ++j) sum[j] = before + sum[j];
    use(sum);
    return shuffled(up_to, warp - 1);
  }

  bool is_common_ = false;
};
template <class C, class F, int rows> struct RowsOf<WindowReducer<C, F>, rows> {
  using type = WindowRows<C, F, rows>;
};

/// The digits of a sum, and the flags of its elements (Exact::Flag).
struct TileDigits {
  std::int64_t digit[Exact::digit_count];
  std::int64_t flags;
};

}  // namespace samesum::gpu
