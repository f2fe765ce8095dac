/// The kernels of exact scans besides scan_segments: the window, the sums of the segments, and the fallback.
#include "samesum/backend/cuda/exact_scan.cuh"
#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/methods.hpp"

namespace samesum::gpu {
namespace {

constexpr int window_threads = 256;

/// Takes in what ExactWindow says about an element.
template <class T> __device__ void look_at(T x, ExactWindow& seen) {
  const BitsOf<T> magnitude = BitsOf<T>(to_bits(x) & ~Format<T>::sign_bit);
  if (magnitude >= Format<T>::infinity) seen.missed = 1;
  const Decomposed d = decompose<T>(magnitude);
  if (d.significand == 0) return;
  const int top = d.exponent + 64 - leading_zeros(d.significand),
            lowest = d.exponent + 63 - leading_zeros(d.significand & (0 - d.significand));
  seen.top = max(seen.top, static_cast<unsigned>(top + ExactWindow::bias));
  seen.below = max(seen.below, static_cast<unsigned>(ExactWindow::bias - lowest));
}

/// Finds the window of the sample, elements at multiples of `step`, or, if step = 1 and the sample has not
/// given the results, that of all elements. The elements of a result and of its neighbours along `inner` are
/// contiguous.
__global__ void __launch_bounds__(window_threads)
    find_window(ScanInput in, Layout l, ExactScan call, std::size_t step) {
  ExactWindow* const window = step > 1 ? &call.windows->sample : &call.windows->all;
  if (step == 1 && call.sample_fits()) return;
  const std::size_t width = l.n * l.inner, all = l.outer * width,
                    first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x,
                    threads = std::size_t{gridDim.x} * blockDim.x;
  ExactWindow seen{};
  visit_format(in.format, [&]<class T>() {
    const T* x = static_cast<const T*>(in.x);
    const bool has_gaps = l.outer > 1 && l.outer_stride != width;
#pragma unroll 8
    for (std::size_t i = first * step; i < all; i += threads * step)
      look_at(x[has_gaps ? i / width * l.outer_stride + i % width : i], seen);
    for (std::size_t i = first; i < l.results(); i += threads)
      if (to_bits(x[i / l.inner * l.outer_stride + i % l.inner]) == Format<T>::sign_bit) seen.missed = 1;
  });
  seen.top = __reduce_max_sync(whole_warp, seen.top);
  seen.below = __reduce_max_sync(whole_warp, seen.below);
  seen.missed = __reduce_max_sync(whole_warp, seen.missed);
  if (thread() > 0) return;
  atomicMax(&window->top, seen.top);
  atomicMax(&window->below, seen.below);
  if (seen.missed != 0) window->missed = 1;
}

// --- the sums of segments ----------------------------------------------------------------------------------

/// Sums the segments of a group. A block has one group, a warp one segment.
template <class C, int rows>
__global__ void __launch_bounds__(ScanSegments::most_in_group* warp)
    sum_segments(ScanInput in, Layout l, ExactScan call, bool sampled, ScanSegments segments) {
  // If the sample misses the window, all sums are unused. That other blocks exceed it must not be read here:
  // it changes while they run, and all threads of a block must reach the barrier or none.
  if (sampled ? call.windows->sample.missed != 0 : call.sample_fits() || !call.all_fit()) return;
  const std::size_t group = blockIdx.x, first = group * static_cast<std::size_t>(segments.in_group),
                    index = first + static_cast<std::size_t>(warp_index());
  const ScanSegment s{l, segments, index};
  WindowRows<C, rows> held;
  held.load(in, s.first, l.stride, s.count);
  const WindowUnits<C> units{call, sampled};
  const bool common = held.are_common(units);
  const WindowSum own = held.sum(units, common);
  if (segments.is_common != nullptr && thread() == 0) segments.is_common[index] = common;
  __shared__ WindowSum sums[ScanSegments::most_in_group];
  if (thread() == 0) sums[warp_index()] = own;
  __syncthreads();  // all sums are written
  if (warp_index() > 0 || thread() >= segments.in_group) return;
  WindowSum before;
  for (int w = 0; w < thread(); ++w) before = before + sums[w];
  if (segments.sum != nullptr) segments.sum[first + static_cast<std::size_t>(thread())] = before;
  if (segments.group != nullptr && thread() == segments.in_group - 1)
    segments.group[group] = before + sums[thread()];
}

constexpr int group_threads = 1024;
/// Replaces the sum of each group by that of the groups before it in the same result. A block has a result.
__global__ void __launch_bounds__(group_threads) sum_before_groups(ScanSegments segments) {
  __shared__ WindowSum sums[warp];
  WindowSum* const group = segments.group + blockIdx.x * segments.of_result;
  const std::size_t of_thread = (segments.of_result - 1) / group_threads + 1,
                    first = min(threadIdx.x * of_thread, segments.of_result),
                    last = min(first + of_thread, segments.of_result);
  WindowSum own;
  for (std::size_t g = first; g < last; ++g) own = own + group[g];
  const WindowSum of_warp = sum_up_to(own);
  if (thread() == warp - 1) sums[warp_index()] = of_warp;
  __syncthreads();  // the sums of all warps are written
  const WindowSum of_warps = sum_up_to(sums[thread()]);
  WindowSum before{of_warp.units - own.units};
  if (warp_index() > 0) before = before + shuffled(of_warps, warp_index() - 1);
  for (std::size_t g = first; g < last; ++g) {
    const WindowSum sum = group[g];
    group[g] = before;
    before = before + sum;
  }
}

// --- the fallback ------------------------------------------------------------------------------------------

/// Tiles of a call: tile t is tile t % of_result of result t / of_result.
struct TileList {
  std::size_t of_result, count;
};

/// An element, exactly, and its flags.
struct ExactElement {
  double value;
  unsigned flags;
};
__device__ inline ExactElement exact_element(const ScanInput& in, std::size_t at) {
  ExactElement e{0, Exact::seen_any};
  visit_format(in.format, [&]<class T>() {
    const T x = static_cast<const T*>(in.x)[at];
    const BitsOf<T> bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    if (bits != Format<T>::sign_bit) e.flags |= Exact::seen_other_than_minus_zero;
    if (magnitude < Format<T>::infinity)
      e.value = static_cast<double>(widen(x));
    else
      e.flags |= magnitude > Format<T>::infinity ? Exact::seen_nan
                 : magnitude == bits             ? Exact::seen_plus_infinity
                                                 : Exact::seen_minus_infinity;
  });
  return e;
}

__device__ inline bool is_done(const ExactScan& call) { return call.sample_fits() || call.all_fit(); }

/// Sums each tile. A block is one warp.
__global__ void __launch_bounds__(warp)
    sum_tiles(ScanInput in, Layout l, TileList tiles, ExactScan call, TileDigits* sums) {
  if (is_done(call)) return;
  __shared__ Digits digits;
  for (std::size_t t = blockIdx.x; t < tiles.count; t += gridDim.x) {
    const std::size_t result = t / tiles.of_result, begin = t % tiles.of_result * PrefixTree::leaf,
                      end = min(begin + PrefixTree::leaf, l.n),
                      first = l.first(result / l.inner) + result % l.inner;
    for (int i = thread(); i < Digits::count; i += warp) digits.digit[i] = 0;
    __syncwarp();  // all digits are 0
    unsigned flags = 0;
    for (std::size_t k = begin + static_cast<std::size_t>(thread()); k < end; k += warp) {
      const ExactElement e = exact_element(in, first + k * l.stride);
      flags |= e.flags;
      if (e.value != 0) digits.deposit(e.value);
    }
    flags = __reduce_or_sync(whole_warp, flags);
    __syncwarp();  // all elements are added
    for (int i = thread(); i < Digits::count; i += warp) sums[t].digit[i] = digits.carried(i);
    if (thread() == 0) sums[t].flags = flags;
    __syncwarp();  // all digits are read before the next tile overwrites them
  }
}

constexpr int digit_threads = 96;
static_assert(Exact::digit_count < digit_threads);

/// Replaces the sum of each tile by that of all tiles before it. A thread has one digit, or the flags.
__global__ void __launch_bounds__(digit_threads)
    sum_before_tiles(std::size_t results, TileList tiles, ExactScan call, TileDigits* sums) {
  if (is_done(call) || threadIdx.x > Exact::digit_count) return;
  const bool is_digit = threadIdx.x < Exact::digit_count;
  for (std::size_t result = blockIdx.x; result < results; result += gridDim.x) {
    std::int64_t sum = 0;
    TileDigits* of_result = sums + result * tiles.of_result;
#pragma unroll 8
    for (std::size_t t = 0; t < tiles.of_result; ++t) {
      std::int64_t& word = is_digit ? of_result[t].digit[threadIdx.x] : of_result[t].flags;
      const std::int64_t own = word;
      word = sum;
      sum = is_digit ? sum + own : sum | own;
    }
  }
}

/// Writes the sum in a warp's digits, rounded once.
__device__ inline void write_rounded(const Digits& digits, unsigned flags, std::uint32_t* words,
                                     std::size_t format, void* out, std::size_t at) {
  const Magnitude magnitude{digits};
  visit_format(format, [&]<class F>() {
    const BitsOf<F> bits = rounded<F>(magnitude, flags, words);
    if (thread() == 0) static_cast<BitsOf<F>*>(out)[at] = bits;
  });
}

/// Scans each tile with all digits, one element after another. A block is one warp. `before` is null if no
/// result has more than one tile.
__global__ void __launch_bounds__(warp)
    scan_digits(ScanInput in, Layout l, TileList tiles, ExactScan call, const TileDigits* before,
                ScanDestination out, std::size_t format) {
  if (is_done(call)) return;
  __shared__ Digits digits;
  __shared__ std::uint32_t words[3 * warp];
  for (std::size_t t = blockIdx.x; t < tiles.count; t += gridDim.x) {
    const std::size_t result = t / tiles.of_result, begin = t % tiles.of_result * PrefixTree::leaf,
                      end = min(begin + PrefixTree::leaf, l.n), o = result / l.inner, i = result % l.inner,
                      first = l.first(o) + i, to = o * out.row_stride + i;
    for (int d = thread(); d < Digits::count; d += warp)
      digits.digit[d] = before == nullptr ? 0 : before[t].digit[d];
    unsigned flags = before == nullptr ? 0 : static_cast<unsigned>(before[t].flags);
    __syncwarp();  // all digits are written
    for (std::size_t k = begin; k < end; ++k) {
      const ExactElement e = exact_element(in, first + k * l.stride);
      if (out.exclusive) write_rounded(digits, flags, words, format, out.out, to + k * l.inner);
      __syncwarp();  // all threads have read the element and the digits
      flags |= e.flags;
      if (thread() == 0 && e.value != 0) digits.deposit(e.value);
      __syncwarp();  // the element is added
      if (!out.exclusive) write_rounded(digits, flags, words, format, out.out, to + k * l.inner);
    }
    __syncwarp();  // all digits are read before the next tile overwrites them
  }
}

/// About as many warps as a large GPU runs at once.
constexpr std::size_t fallback_warps = 132 * 16;

template <class C>
cudaError_t sum_segments_of(const Launch& work, const ExactScan& scan, const ScanSegments& segments,
                            std::size_t step) {
  const ScanInput in{work.call.x};
  const Layout& l = work.call.layout;
  const auto kernel = segments.length == few_rows * PrefixTree::lanes ? sum_segments<C, few_rows>
                                                                      : sum_segments<C, segment_rows<C>>;
  cudaError_t error = cudaMemsetAsync(scan.windows, 0, sizeof *scan.windows, work.stream);
  const auto enqueue = [&](auto of, std::size_t blocks, int threads, auto... argument) {
    if (error == cudaSuccess) error = launch(of, blocks, threads, work.stream, argument...);
  };
  for (const bool sampled : {true, false}) {
    if (sampled && !scan.samples) continue;
    const std::size_t apart = sampled ? step : 1, looked_at = l.results() * l.n / apart,
                      blocks =
                          std::clamp<std::size_t>(looked_at / (8 * window_threads), 1, fallback_warps / 2);
    enqueue(find_window, blocks, window_threads, in, l, scan, apart);
    // Sums of a sample's window also tell whether elements exceed it.
    if (sampled || segments.sum != nullptr)
      enqueue(kernel, segments.groups, segments.in_group * warp, in, l, scan, sampled, segments);
  }
  if (segments.group != nullptr)
    enqueue(sum_before_groups, segments.groups / segments.of_result, group_threads, segments);
  return error;
}

}  // namespace

cudaError_t sum_exact_segments(const Launch& work, const ExactScan& scan, const ScanSegments& segments,
                               std::size_t step) {
  return work.call.x.format->bytes == 8 ? sum_segments_of<fp64>(work, scan, segments, step)
                                        : sum_segments_of<fp32>(work, scan, segments, step);
}

cudaError_t scan_with_digits(const Launch& work, const ExactScan& scan, TileDigits* digits,
                             const ScanDestination& out, std::size_t format) {
  const Layout& l = work.call.layout;
  const ScanInput in{work.call.x};
  const TileList tiles{PrefixTree::leaves(l.n), l.results() * PrefixTree::leaves(l.n)};
  const std::size_t blocks = std::min(tiles.count, fallback_warps);
  cudaError_t error = cudaSuccess;
  if (tiles.of_result > 1) {
    error = launch(sum_tiles, blocks, warp, work.stream, in, l, tiles, scan, digits);
    if (error == cudaSuccess)
      error = launch(sum_before_tiles, std::min(l.results(), fallback_warps), digit_threads, work.stream,
                     l.results(), tiles, scan, digits);
  }
  if (error != cudaSuccess) return error;
  return launch(scan_digits, blocks, warp, work.stream, in, l, tiles, scan,
                tiles.of_result > 1 ? digits : nullptr, out, format);
}

}  // namespace samesum::gpu
