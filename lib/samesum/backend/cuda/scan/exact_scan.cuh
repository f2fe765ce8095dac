/// Exact scans on a GPU: sums are integers of 128 bits, in units that a sample of the elements suggests. If
/// an element does not fit, the window of all elements replaces that of the sample, and sums are integers of
/// 192 or 320 bits. If these do not suffice, a fallback scans with all digits, tile by tile.
///
/// Integers may be added in any order. So the elements are read twice: once for the sums of segments, and
/// once to scan the segments, each from the sum of all before it. No warp waits for another one. Most
/// elements are common: they fit the middle of the window, 64 bits hold the sums of the rows of a warp, and
/// one instruction converts an element, another one a result.
#pragma once

#include <algorithm>
#include <bit>

#include "samesum/backend/cuda/exact/digits.cuh"
#include "samesum/backend/cuda/scan/exact_window.cuh"
#include "samesum/backend/cuda/scan/rows.cuh"

namespace samesum::gpu {

/// Rows of a long segment; a short one has few_rows of them.
template <class C> inline constexpr int segment_rows = sizeof(C) < 8 ? 16 : 8;

/// Segments: consecutive elements of a result, which one warp scans. A group of them is summed by one block.
template <class Sum> struct ScanSegments {
  static constexpr int most_in_group = 16;
  std::size_t length;     ///< elements of a segment
  int in_group;           ///< segments of a group, a power of two
  std::size_t of_result;  ///< groups of a result
  std::size_t groups;
  Sum* sum;         ///< sum of the segments before each one in its group; null if a result has one segment
  Sum* group;       ///< sum of the groups before each one in its result; null if a result has one group
  bool* is_common;  ///< whether all elements of a segment are common; null if `sum` is, or if none is common

  std::size_t count() const { return groups * static_cast<std::size_t>(in_group); }
  /// These segments, with sums of a shorter type in the memory of the longer ones.
  template <class Shorter> __device__ ScanSegments<Shorter> with() const {
    static_assert(sizeof(Shorter) <= sizeof(Sum));
    return {length,
            in_group,
            of_result,
            groups,
            reinterpret_cast<Shorter*>(sum),
            reinterpret_cast<Shorter*>(group),
            is_common};
  }
};

/// A segment of a warp.
struct ScanSegment {
  std::size_t outer, inner, begin;
  std::size_t first;  ///< place of its first element
  int count;          ///< number of its elements

  template <class Sum>
  __device__ ScanSegment(const Layout& l, const ScanSegments<Sum>& all, std::size_t index) {
    const std::size_t group = index / all.in_group, result = group / all.of_result;
    outer = result / l.inner;
    inner = result % l.inner;
    begin = (group % all.of_result * all.in_group + index % all.in_group) * all.length;
    first = l.first(outer) + inner + begin * l.stride;
    count = begin < l.n ? static_cast<int>(min(l.n - begin, all.length)) : 0;
  }
};

/// The sum over the threads of a warp up to this one.
template <class Sum> __device__ __forceinline__ Sum sum_up_to(Sum sum) {
#pragma unroll
  for (int delta = 1; delta < warp; delta *= 2) {
    const Sum left = shuffled(sum, max(thread() - delta, 0));
    if (thread() >= delta) sum = sum + left;
  }
  return sum;
}

/// Rows of a segment whose sums are integers.
template <class C, int rows> class WindowRows : public LoadedRows<C, rows> {
  using LoadedRows<C, rows>::element_;

 public:
  using LoadedRows<C, rows>::run;
  using LoadedRows<C, rows>::row;

  /// Loads up to `count` elements, `stride` apart. Absent ones are 0.
  __device__ void load(const ScanInput& in, std::size_t first, std::size_t stride, int count) {
    LoadedRows<C, rows>::clear_unless_full(count);
    visit_format(in.format, [&]<class T>() {
      if constexpr (can_read<T, C>)
        LoadedRows<C, rows>::load(static_cast<const T*>(in.x) + first, stride, count);
    });
  }

  template <class Units> __device__ bool are_common(const Units& units) const {
    if constexpr (!Units::has_common) return false;
    bool common = true;
    each([&](CarrierOf<C> x) { common = common & units.is_common(x); });
    return __all_sync(whole_warp, common);
  }
  /// The sum of all rows; are_common() is `common`.
  template <class Units> __device__ typename Units::Sum sum(const Units& units, bool common) const {
    if constexpr (Units::has_common)
      if (common) {
        CommonSum sum;
        each([&](CarrierOf<C> x) { sum = sum + units.common(x); });
        return sum_of_warp(sum).widened();
      }
    typename Units::Sum sum;
    each([&](CarrierOf<C> x) {
      sum = sum + (Units::has_common ? units.exactly(x) : units.exactly_inlined(x));
    });
    return sum_of_warp(sum);
  }
  /// Writes the results of the rows after `before`, rounded to F; are_common() is `common`.
  template <class F, class Units>
  __device__ void scan(const Units& units, bool common, int count, typename Units::Sum before,
                       RowWriter<F> writer) const {
    if (!common) {
      // What is rare stays out of the kernel.
      const auto round = [&](const auto& sum) {
        return Units::has_common ? units.template rounded<F>(sum) : units.template rounded_inlined<F>(sum);
      };
      const auto units_of = [&](CarrierOf<C> x) {
        return Units::has_common ? units.exactly(x) : units.exactly_inlined(x);
      };
      return scan_rows(count, before, round, units_of, writer);
    }
    if constexpr (Units::has_common) scan_common<F>(units, count, before, writer);
  }

 private:
  template <class F>
  __device__ void scan_common(const WindowUnits<C>& units, int count, WindowSum before,
                              RowWriter<F>& writer) const {
    with_split(before, [&](const auto& split) {
      const SumRounder<F, C> round{units, split.shift};
      scan_rows(
          count, split, round, [&](CarrierOf<C> x) { return units.common(x); }, writer);
    });
  }
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
  template <class Base, class Round, class UnitsOf, class Writer>
  __device__ void scan_rows(int count, Base before, const Round& round, UnitsOf units_of,
                            Writer& writer) const {
    using Sum = decltype(units_of(element_[0][0].v));
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
      Sum sum[run], whole;
#pragma unroll
      for (int j = 0; j < run; ++j) sum[j] = whole = whole + units_of(element_[r][j].v);
      const Sum up_to = sum_up_to(whole);
      const Base start = before + Sum{up_to.units - whole.units};
#pragma unroll
      for (int j = 0; j < run; ++j) writer.set(j, round(start + sum[j]));
      writer.write(r);
      before = before + shuffled(up_to, warp - 1);
    }
  }
};

constexpr int segment_warps = 4;  ///< warps of a block that scans segments

/// Scans the segment of a warp in sums of that type, and rounds each sum once to F.
template <class C, class F, int rows, class Sum>
__device__ void scan_segment(const ScanInput& in, const Layout& l, const ExactScan& call,
                             const ScanSegments<Sum>& segments, const ScanDestination& out) {
  const std::size_t index = std::size_t{blockIdx.x} * segment_warps + static_cast<std::size_t>(warp_index());
  if (index >= segments.groups * static_cast<std::size_t>(segments.in_group)) return;
  const ScanSegment s{l, segments, index};
  if (s.count == 0) return;
  WindowRows<C, rows> held;
  held.load(in, s.first, l.stride, s.count);
  Sum before;
  if (segments.sum != nullptr) before = segments.sum[index];
  if (segments.group != nullptr) before = before + segments.group[index / segments.in_group];
  const UnitsFor<C, Sum> units{call};
  const bool common = segments.is_common != nullptr ? segments.is_common[index] : held.are_common(units);
  F* const to = static_cast<F*>(out.out) + s.outer * out.row_stride + s.inner + s.begin * l.inner;
  held.template scan<F>(
      units, common, s.count, before,
      RowWriter<F>{to, l.inner, s.count, out.exclusive, rounded_sum<F, C>(before.units, units.unit())});
}
/// Scans each segment in sums of 128 bits, if they give the results.
template <class C, class F, int rows>
__global__ void __launch_bounds__(segment_warps* warp, 4)
    scan_segments(ScanInput in, Layout l, ExactScan call, ScanSegments<WindowSum> segments,
                  ScanDestination out) {
  if (call.narrow_fits()) scan_segment<C, F, rows>(in, l, call, segments, out);
}
/// Scans each segment in sums of more bits, if these give the results.
template <class C, class F>
__global__ void __launch_bounds__(segment_warps* warp, 4)
    scan_wide_segments(ScanInput in, Layout l, ExactScan call, ScanSegments<WidestSum> segments,
                       ScanDestination out) {
  const int words = call.wide_words();
  if (words == 3) scan_segment<C, F, few_rows>(in, l, call, segments.with<WideSum<3>>(), out);
  if (words == 5) scan_segment<C, F, few_rows>(in, l, call, segments, out);
}

/// Tiles of a call that is scanned digit by digit: tile t is tile t % of_result of result t / of_result. A
/// thread has `length` / warp elements, one after another, so that only long calls have long tiles.
struct TileList {
  std::size_t length, of_result, count;

  explicit TileList(const Layout& l) {
    constexpr std::size_t shortest = 1024, longest = 4096, threads = std::size_t{1} << 19;
    length = std::clamp(std::bit_floor(l.results() * l.n / threads) * warp, shortest, longest);
    of_result = (l.n + length - 1) / length;
    count = l.results() * of_result;
  }
};

/// The digits of a sum, and the flags of its elements (Exact::Flag).
struct TileDigits {
  std::int64_t digit[Exact::digit_count];
  std::int64_t flags;
};

}  // namespace samesum::gpu
