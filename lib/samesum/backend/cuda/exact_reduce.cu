/// Exact reductions of elements of one format: in a window, by the kernels for batches, or, of 64 bits, by a
/// kernel in which blocks add terms and one for short columns.
#include <algorithm>

#include "samesum/backend/cuda/batch.cuh"
#include "samesum/backend/cuda/exact_columns.cuh"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/backend/cuda/window_batches.cuh"

namespace samesum::gpu {
namespace {

using GridTermDigits = GridDigitsOf<TermDigits::count>;

/// Runs per input that a thread has in flight.
template <class T> constexpr int in_flight = sizeof(T) == 8 ? 2 : 4;

template <class T> struct TermReader {
  const T *x, *y;
  Term term;

  __device__ bool is_aligned(std::size_t place) const {
    const auto is = [place](const T* p) {
      return reinterpret_cast<std::uintptr_t>(p + place) % alignof(Run<T>) == 0;
    };
    return is(x) && (term != Term::product || is(y));
  }
  __device__ static Run<T> load(const T* from, std::size_t stride) {
    Run<T> run;
    for (int i = 0; i < run_length; ++i) run.element[i] = from[i * stride];
    return run;
  }
};

/// First and last digit that terms of elements of T may touch, including one for carries.
template <class T>
constexpr int first_digit = (2 * Format<T>::min_quantum - TermDigits::lowest_exponent) / 32;
template <class T>
constexpr int last_digit = (2 * Format<T>::max_exponent + 2 + 64 - TermDigits::lowest_exponent) / 32 + 2;
static_assert(last_digit<fp64> < TermDigits::count);

/// Propagates carries by one digit. Each thread of the block owns a digit.
template <class T> __device__ __forceinline__ void propagate_one_carry(TermDigits& d) {
  const int i = static_cast<int>(threadIdx.x), last = last_digit<T>;
  const std::int64_t carried = i <= last ? d.carried(i, last) : 0;
  __syncthreads();  // all threads have read the digits before they are overwritten
  if (i <= last) d.digit[i] = carried;
}

/// Combines the flags of a block's threads; then one block rounds the sums and writes the result: the only
/// block of the result, or the last block of the grid, which waits until all others have added theirs.
template <class T, bool as_state>
__device__ __forceinline__ void finish_block(TermDigits* digits, int sums_of_result, unsigned flags,
                                             unsigned* flags_of_warp, bool blocks_share_result,
                                             GridTermDigits* grid_digits, const ExactFinish& end,
                                             std::size_t n, std::size_t at) {
  flags = __reduce_or_sync(whole_warp, flags);
  if (thread() == 0) flags_of_warp[warp_index()] = flags;
  __syncthreads();  // all warps have written their flags
  if (warp_index() == 0) {
    flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
    bool last = true;
    for (int s = 0; s < sums_of_result && blocks_share_result && gridDim.x > 1; ++s)
      last = add_to_grid_digits(digits[s], first_digit<T>, last_digit<T>, flags, grid_digits[s]);
    if constexpr (as_state) {
      if (last) write_digits(digits, sums_of_result, flags, static_cast<ExactDigits*>(end.out));
    } else {
      if (last) finish(end, digits, flags, n, at);
    }
  }
}

/// Loads runs of elements.
template <class T> struct RunLoader {
  std::size_t stride;  ///< elements between neighbours
  bool aligned;        ///< whether runs are aligned and contiguous: each is one vector load
  __device__ Run<T> load(const T* from) const {
    return aligned ? *reinterpret_cast<const Run<T>*>(from) : TermReader<T>::load(from, stride);
  }
  /// Loads the runs of a thread in a tile.
  __device__ void load_all(const T* from, Run<T> (&of)[in_flight<T>]) const {
    if (aligned)
      for (int k = 0; k < in_flight<T>; ++k) of[k] = reinterpret_cast<const Run<T>*>(from)[k * exact_threads];
    else
      for (int k = 0; k < in_flight<T>; ++k)
        of[k] = TermReader<T>::load(from + k * exact_threads * run_length * stride, stride);
  }
};

/// Reduces a batch: one block per result, or all blocks for a single result, whose sums are then merged.
/// With `as_state`, `end.out` receives the sums of a single result as ExactDigits.
template <class T, bool moments, bool as_state>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 2 : 3)
    reduce_terms(TermReader<T> reader, Layout l, ExactFinish end, GridTermDigits* grid_digits) {
  constexpr int sums_of_result = moments ? 2 : 1, ahead = in_flight<T>;
  __shared__ TermDigits digits[sums_of_result];
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  TermSums<T, moments> sums{digits, reader.term};
  const bool blocks_share_result = l.results() == 1;
  for (std::size_t at = blocks_share_result ? 0 : blockIdx.x; at < l.results(); at += gridDim.x) {
    const std::size_t n = l.length(at / l.inner), place = l.first(at / l.inner) + at % l.inner;
    const std::size_t stride = l.stride, runs = n / run_length;
    const bool aligned = stride == 1 && reader.is_aligned(place);
    const bool two = !moments && reader.term == Term::product;
    const T *x = reader.x + place, *y = two ? reader.y + place : x;
    // A block reads tiles of neighbouring runs, and each thread `ahead` runs of a tile.
    constexpr std::size_t of_tile = std::size_t{exact_threads} * ahead;
    const std::size_t tiles = (runs + of_tile - 1) / of_tile, blocks = blocks_share_result ? gridDim.x : 1;
    const RunLoader<T> loader{stride, aligned};
    for (TermDigits& d : digits) d.clear();
    __syncthreads();  // the digits are zero before any thread adds to them

    sums.start();
    std::size_t tile = blocks_share_result ? blockIdx.x : 0;
    if (const std::size_t i = runs * run_length + threadIdx.x; tile == 0 && i < n)
      sums.add(x[i * stride], y[i * stride]);
    for (;;) {
#pragma unroll 1
      for (int b = 0; b < sums.most / (ahead * run_length) && tile < tiles; ++b, tile += blocks) {
        const std::size_t first = tile * of_tile + threadIdx.x;
        if ((tile + 1) * of_tile <= runs) {
          Run<T> of_x[ahead], of_y[ahead];
          loader.load_all(x + first * run_length * stride, of_x);
          if (two)
            loader.load_all(y + first * run_length * stride, of_y);
          else
            for (int k = 0; k < ahead; ++k) of_y[k] = of_x[k];
          if (sums.add(of_x, of_y)) continue;
        }
#pragma unroll 1
        for (std::size_t run = first; run < runs && run < first + of_tile; run += exact_threads) {
          const T *from_x = x + run * run_length * stride, *from_y = y + run * run_length * stride;
          const Run<T> a[] = {loader.load(from_x)}, c[] = {two ? loader.load(from_y) : a[0]};
          if (sums.add(a, c)) continue;
#pragma unroll 1
          for (int i = 0; i < run_length; ++i) sums.add(from_x[i * stride], from_y[i * stride]);
        }
      }
      sums.flush();
      __syncthreads();  // all warps have added to the digits
      if (tile >= tiles) break;
      for (TermDigits& d : digits) propagate_one_carry<T>(d);
      __syncthreads();  // the digits are carried before any thread adds to them
    }

    finish_block<T, as_state>(digits, sums_of_result, sums.flags() | (n > 0 ? Exact::seen_any : 0),
                              flags_of_warp, blocks_share_result, grid_digits, end, n, at);
    __syncthreads();  // the first warp has read the digits and flags before the next result overwrites them
  }
}

template <class T, bool moments, bool as_state> cudaError_t launch_exactly(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  std::size_t at_once = 0;
  cudaError_t error = resident_blocks(reduce_terms<T, moments, as_state>, exact_threads, at_once);
  constexpr std::size_t shared_bytes = (moments ? 2 : 1) * sizeof(GridTermDigits);
  if (error != cudaSuccess || !accept_workspace(work, header_bytes + shared_bytes, error) || l.results() == 0)
    return error;
  const std::size_t n = l.offsets ? work.call.x.size : l.n,
                    of_block = std::size_t{exact_threads} * in_flight<T> * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{GridTermDigits::most_blocks}});
  auto* grid_digits = static_cast<GridTermDigits*>(states(work.workspace));
  error = cudaMemsetAsync(grid_digits, 0, shared_bytes, work.stream);
  if (error != cudaSuccess) return error;
  const TermReader<T> reader{static_cast<const T*>(work.call.x.data), static_cast<const T*>(work.call.y.data),
                             end.kind.term};
  return launch(reduce_terms<T, moments, as_state>, blocks, exact_threads, work.stream, reader, l, end,
                grid_digits);
}

template <class T> cudaError_t sum_columns(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  cudaError_t error;
  if (!accept_workspace(work, size_if_none_needed, error)) return error;
  const std::size_t threads = l.outer * ((l.inner - 1) / columns_of_thread<T> + 1);
  return launch(sum_columns_exactly<T>, (threads - 1) / exact_threads + 1, exact_threads, work.stream,
                static_cast<const T*>(work.call.x.data), l, end.kind.term, end);
}

/// Reduces elements of 64 bits.
template <class T> cudaError_t reduce_wide(ExactKind kind, Launch& work) {
  const ExactFinish end{kind, work.call.method->format->index, whole(work.call.options.ddof),
                        work.call.out.data};
  if (is_for_columns(kind, work.call.layout)) return sum_columns<T>(end, work);
  if (work.as_state)
    return kind.moments ? launch_exactly<T, true, true>(end, work)
                        : launch_exactly<T, false, true>(end, work);
  return kind.moments ? launch_exactly<T, true, false>(end, work)
                      : launch_exactly<T, false, false>(end, work);
}

template <class T, ExactlySummed what> cudaError_t reduce_in_window(ExactKind kind, Launch& work) {
  BatchCall of{work.call.layout, work.call.x.size, {work.call.out.data},
               work.workspace,   work.bytes,       work.stream};
  const WindowReducer<T, what> reducer{kind, work.call.method->format->index, whole(work.call.options.ddof),
                                       work.as_state};
  const cudaError_t error =
      reduce<CoarsenedTree::Shape>(reducer, Reader<T, T>{work.call.x.data, work.call.y.data}, of);
  work.bytes = of.bytes;
  return error;
}

}  // namespace

template <> cudaError_t reduce_exactly_of<SAMESUM_FORMAT_INDEX>(ExactKind kind, Launch& work) {
  using T = Formats::at<SAMESUM_FORMAT_INDEX>;
  if constexpr (sizeof(T) > sizeof(float))
    return reduce_wide<T>(kind, work);
  else if (kind.moments)
    return reduce_in_window<T, ExactlySummed::elements_and_squares>(kind, work);
  else if (kind.term >= Term::square)
    return reduce_in_window<T, ExactlySummed::products>(kind, work);
  else
    return reduce_in_window<T, ExactlySummed::elements>(kind, work);
}

}  // namespace samesum::gpu
