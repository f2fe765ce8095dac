/// The kernels of exact scans besides those that write results from integers: the windows, the sums of
/// segments and of parts of columns, and the fallback with all digits.
#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/scan/exact_columns.cuh"
#include "samesum/backend/cuda/scan/exact_tiles.cuh"

namespace samesum::gpu {
namespace {

constexpr int window_threads = 256;

/// Merges an element into a window.
template <class T> __device__ void look_at(T x, ScanWindow& seen) {
  if (special_flags_of(x) != 0) seen.missed = 1;
  seen.range.merge(ExponentRange::of<T>(to_bits(x)));
}

/// Finds the window of a sample, one element of each `step`, or, if step = 1 and the sample has not given the
/// results, that of all elements. The places of a sample are pseudorandom, so that they lie in all columns of
/// rows of any length. The elements of a result and of its neighbours along `inner` are contiguous.
__global__ void __launch_bounds__(window_threads)
    find_window(ScanInput in, Layout l, ExactScan call, std::size_t step) {
  ScanWindow* const window = step > 1 ? &call.windows->sample : &call.windows->all;
  if (step == 1 && call.samples && call.narrow_fits()) return;
  const std::size_t width = l.n * l.inner, all = l.outer * width,
                    first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x,
                    threads = std::size_t{gridDim.x} * blockDim.x;
  ScanWindow seen{};
  visit_format(in.format, [&]<class T>() {
    const T* x = static_cast<const T*>(in.x);
    const bool has_gaps = l.outer > 1 && l.outer_stride != width;
#pragma unroll 8
    for (std::size_t k = first; k * step < all; k += threads) {
      const std::uint32_t within =
          __umulhi(static_cast<std::uint32_t>(k) * 0x9e3779b9u, static_cast<std::uint32_t>(step));
      const std::size_t i = min(k * step + within, all - 1);
      look_at(x[has_gaps ? i / width * l.outer_stride + i % width : i], seen);
    }
    for (std::size_t i = first; i < l.results(); i += threads)
      if (to_bits(x[i / l.inner * l.outer_stride + i % l.inner]) == Format<T>::sign_bit) seen.missed = 1;
  });
  merge_of_warp(seen.range, window->range.above, window->range.below);
  if (__any_sync(whole_warp, seen.missed != 0) && thread() == 0) window->missed = 1;
}

// --- the sums of segments ----------------------------------------------------------------------------------

/// A sum in shared memory, which holds no types with constructors.
template <class Sum> using WordsOfSum = std::array<std::uint32_t, sizeof(Sum) / 4>;

/// Sums the segments of a group. A block has one group, a warp one segment.
template <class C, int rows, class Sum>
__device__ void sum_group(const ScanInput& in, const Layout& l, const ExactScan& call,
                          const ScanSegments<Sum>& segments) {
  const std::size_t group = blockIdx.x, first = group * static_cast<std::size_t>(segments.in_group),
                    index = first + static_cast<std::size_t>(warp_index());
  const ScanSegment s{l, segments, index};
  WindowRows<C, rows> held;
  held.load(in, s.first, l.stride, s.count);
  const UnitsFor<C, Sum> units{call};
  const bool common = held.are_common(units);
  const Sum sum = held.sum(units, common);
  if (segments.is_common != nullptr && thread() == 0) segments.is_common[index] = common;
  __shared__ WordsOfSum<Sum> sums[ScanSegments<Sum>::most_in_group];
  if (thread() == 0) sums[warp_index()] = std::bit_cast<WordsOfSum<Sum>>(sum);
  __syncthreads();  // all sums are written
  if (warp_index() > 0 || thread() >= segments.in_group) return;
  Sum before;
  for (int w = 0; w < thread(); ++w) before = before + std::bit_cast<Sum>(sums[w]);
  if (segments.sum != nullptr) segments.sum[first + static_cast<std::size_t>(thread())] = before;
  if (segments.group != nullptr && thread() == segments.in_group - 1)
    segments.group[group] = before + std::bit_cast<Sum>(sums[thread()]);
}

constexpr int most_segment_threads = ScanSegments<WindowSum>::most_in_group * warp;
/// Sums the segments of each group in 128 bits, if they may give the results. Whether an element exceeds
/// their window must not be read while that may change: all threads of a block must reach the barrier or
/// none.
template <class C, int rows>
__global__ void __launch_bounds__(most_segment_threads)
    sum_segments(ScanInput in, Layout l, ExactScan call, ScanSegments<WindowSum> segments) {
  if (call.tries_narrow()) sum_group<C, rows>(in, l, call, segments);
}
/// Sums the segments of each group in more bits, if these give the results.
template <class C>
__global__ void __launch_bounds__(most_segment_threads)
    sum_wide_segments(ScanInput in, Layout l, ExactScan call, ScanSegments<WidestSum> segments) {
  const int words = call.wide_words();
  if (words == 3) sum_group<C, few_rows>(in, l, call, segments.with<WideSum<3>>());
  if (words == 5) sum_group<C, few_rows>(in, l, call, segments);
}

constexpr int group_threads = 1024;
/// Replaces the sum of each group by that of the groups before it in the same result. A block has a result.
template <class Sum> __device__ void sum_before_groups(const ScanSegments<Sum>& segments) {
  __shared__ WordsOfSum<Sum> sums[warp];
  Sum* const group = segments.group + blockIdx.x * segments.of_result;
  const std::size_t of_thread = (segments.of_result - 1) / group_threads + 1,
                    first = min(threadIdx.x * of_thread, segments.of_result),
                    last = min(first + of_thread, segments.of_result);
  Sum groups;
  for (std::size_t g = first; g < last; ++g) groups = groups + group[g];
  const Sum of_warp = sum_up_to(groups);
  if (thread() == warp - 1) sums[warp_index()] = std::bit_cast<WordsOfSum<Sum>>(of_warp);
  __syncthreads();  // the sums of all warps are written
  const Sum of_warps = sum_up_to(std::bit_cast<Sum>(sums[thread()])),
            of_others = shuffled(of_warps, max(warp_index() - 1, 0));
  Sum before{of_warp.units - groups.units};
  if (warp_index() > 0) before = before + of_others;
  for (std::size_t g = first; g < last; ++g) {
    const Sum sum = group[g];
    group[g] = before;
    before = before + sum;
  }
}

/// Replaces the sums of groups as sum_before_groups does: those that give the results.
__global__ void __launch_bounds__(group_threads)
    sum_groups(ExactScan call, ScanSegments<WindowSum> narrow, ScanSegments<WidestSum> wide) {
  if (call.narrow_fits()) {
    if (narrow.group != nullptr) sum_before_groups(narrow);
  } else if (wide.group != nullptr) {
    const int words = call.wide_words();
    if (words == 3) sum_before_groups(wide.with<WideSum<3>>());
    if (words == 5) sum_before_groups(wide);
  }
}

// --- the sums of parts of columns --------------------------------------------------------------------------

template <class C>
__global__ void __launch_bounds__(scan_column_threads)
    sum_parts(ScanInput in, Layout l, ExactScan call, ColumnSums<WindowSum> sums) {
  if (call.tries_narrow()) sum_part<C>(in, l, call, sums);
}
template <class C>
__global__ void __launch_bounds__(scan_column_threads)
    sum_wide_parts(ScanInput in, Layout l, ExactScan call, ColumnSums<WidestSum> sums) {
  const int words = call.wide_words();
  if (words == 3) sum_part<C>(in, l, call, sums.with<WideSum<3>>());
  if (words == 5) sum_part<C>(in, l, call, sums);
}
/// Calls visit(sums) with those that give the results, if there are any.
template <class Visit>
__device__ void with_sums(const ExactScan& call, const ColumnSums<WindowSum>& narrow,
                          const ColumnSums<WidestSum>& wide, Visit visit) {
  if (call.narrow_fits()) return visit(narrow);
  const int words = call.wide_words();
  if (words == 3) visit(wide.with<WideSum<3>>());
  if (words == 5) visit(wide);
}
__global__ void __launch_bounds__(scan_column_threads)
    sum_before_parts(Layout l, ExactScan call, ColumnSums<WindowSum> narrow, ColumnSums<WidestSum> wide) {
  with_sums(call, narrow, wide, [&](const auto& sums) { sum_before_parts_of(l, sums); });
}
__global__ void __launch_bounds__(scan_column_threads)
    sum_before_part_groups(Layout l, ExactScan call, ColumnSums<WindowSum> narrow,
                           ColumnSums<WidestSum> wide) {
  with_sums(call, narrow, wide, [&](const auto& sums) { sum_before_groups_of(l, sums); });
}

/// Enqueues what finds the windows of a call, and sum_narrow(): sums in a sample's window also tell whether
/// elements exceed it.
template <class SumNarrow>
cudaError_t find_windows(const Launch& work, const ExactScan& scan, std::size_t step, SumNarrow sum_narrow) {
  const Layout& l = work.call.layout;
  cudaError_t error = cudaMemsetAsync(scan.windows, 0, sizeof *scan.windows, work.stream);
  const auto find = [&](std::size_t apart) {
    constexpr std::size_t most_blocks = 132 * 8;
    if (error == cudaSuccess)
      error =
          launch(find_window,
                 std::clamp<std::size_t>(l.results() * l.n / apart / (8 * window_threads), 1, most_blocks),
                 window_threads, work.stream, ScanInput{work.call.x}, l, scan, apart);
  };
  find(scan.samples ? step : 1);
  if (error == cudaSuccess) error = sum_narrow();
  if (scan.samples) find(1);
  return error;
}

template <class C>
cudaError_t sum_segments_of(const Launch& work, const ExactScan& scan, const ScanSegments<WindowSum>& narrow,
                            const ScanSegments<WidestSum>& wide, std::size_t step) {
  const ScanInput in{work.call.x};
  const Layout& l = work.call.layout;
  cudaError_t error = find_windows(work, scan, step, [&] {
    if (!scan.samples && narrow.sum == nullptr) return cudaSuccess;
    return launch(narrow.length == few_rows * PrefixTree::lanes ? sum_segments<C, few_rows>
                                                                : sum_segments<C, segment_rows<C>>,
                  narrow.groups, narrow.in_group * warp, work.stream, in, l, scan, narrow);
  });
  const auto enqueue = [&](auto kernel, std::size_t blocks, int threads, auto... argument) {
    if (error == cudaSuccess) error = launch(kernel, blocks, threads, work.stream, argument...);
  };
  if (wide.sum != nullptr)
    enqueue(sum_wide_segments<C>, wide.groups, wide.in_group * warp, in, l, scan, wide);
  if (narrow.group != nullptr || wide.group != nullptr)
    enqueue(sum_groups, l.results(), group_threads, scan, narrow, wide);
  return error;
}

template <class C>
cudaError_t sum_parts_of(const Launch& work, const ExactScan& scan, const ColumnSums<WindowSum>& narrow,
                         const ColumnSums<WidestSum>& wide, std::size_t step) {
  const ScanInput in{work.call.x};
  const Layout& l = work.call.layout;
  const auto launch_for = [&](std::size_t of_column, auto kernel, auto... argument) {
    return launch(kernel, (l.results() * of_column - 1) / scan_column_threads + 1, scan_column_threads,
                  work.stream, argument...);
  };
  cudaError_t error = find_windows(work, scan, step, [&] {
    if (!scan.samples && narrow.part == nullptr) return cudaSuccess;
    return launch_for(narrow.parts, sum_parts<C>, in, l, scan, narrow);
  });
  if (wide.part != nullptr && error == cudaSuccess)
    error = launch_for(wide.parts, sum_wide_parts<C>, in, l, scan, wide);
  if (narrow.part != nullptr && error == cudaSuccess)
    error = launch_for(narrow.groups(), sum_before_parts, l, scan, narrow, wide);
  if (narrow.group != nullptr && error == cudaSuccess)
    error = launch_for(1, sum_before_part_groups, l, scan, narrow, wide);
  return error;
}

}  // namespace

cudaError_t sum_exact_segments(const Launch& work, const ExactScan& scan,
                               const ScanSegments<WindowSum>& narrow, const ScanSegments<WidestSum>& wide,
                               std::size_t step) {
  return work.call.x.format->bytes == 8 ? sum_segments_of<fp64>(work, scan, narrow, wide, step)
                                        : sum_segments_of<fp32>(work, scan, narrow, wide, step);
}

cudaError_t sum_exact_parts(const Launch& work, const ExactScan& scan, const ColumnSums<WindowSum>& narrow,
                            const ColumnSums<WidestSum>& wide, std::size_t step) {
  return work.call.x.format->bytes == 8 ? sum_parts_of<fp64>(work, scan, narrow, wide, step)
                                        : sum_parts_of<fp32>(work, scan, narrow, wide, step);
}

cudaError_t scan_with_digits(const Launch& work, const ExactScan& scan, TileDigits* digits,
                             const ScanDestination& out, std::size_t format) {
  const Layout& l = work.call.layout;
  const TileList tiles{l};
  std::size_t blocks = 0;
  const cudaError_t error = resident_blocks(scan_digits, digit_warps * warp, blocks);
  if (error != cudaSuccess) return error;
  blocks = std::min(blocks, (tiles.count - 1) / digit_warps + 1);
  return launch_cooperative(scan_digits, blocks, digit_warps * warp, work.stream, ScanInput{work.call.x}, l,
                            tiles, scan, digits, out, format);
}

}  // namespace samesum::gpu
