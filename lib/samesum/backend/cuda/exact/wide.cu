/// Exact reductions of fp64: the kernel in which blocks add terms, and the one for short columns.
#include <algorithm>

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/exact/columns.cuh"

namespace samesum::gpu {
namespace {

using GridTermDigits = GridDigitsOf<TermDigits::count>;

constexpr int in_flight = 2;  ///< runs per input that a thread has in flight

struct TermReader {
  const fp64 *x, *y;
  Term term;

  __device__ bool is_aligned(std::size_t place) const {
    const auto is = [place](const fp64* p) {
      return reinterpret_cast<std::uintptr_t>(p + place) % alignof(Run) == 0;
    };
    return is(x) && (term != Term::product || is(y));
  }
  __device__ static Run load(const fp64* from, std::size_t stride) {
    Run run;
    for (int i = 0; i < run_length; ++i) run.element[i] = from[i * stride];
    return run;
  }
};

/// First and last digit that terms may touch, including one for carries.
constexpr int first_digit = (2 * Format<fp64>::min_quantum - TermDigits::lowest_exponent) / 32;
constexpr int last_digit = (2 * Format<fp64>::max_exponent + 2 + 64 - TermDigits::lowest_exponent) / 32 + 2;
static_assert(last_digit < TermDigits::count);

/// Propagates carries by one digit. Each thread of the block owns a digit.
__device__ __forceinline__ void propagate_one_carry(TermDigits& d) {
  const int i = static_cast<int>(threadIdx.x), last = last_digit;
  const std::int64_t carried = i <= last ? d.carried(i, last) : 0;
  __syncthreads();  // all threads have read the digits before they are overwritten
  if (i <= last) d.digit[i] = carried;
}

/// Combines the flags of a block's threads; then one block rounds the sums and writes the result: the only
/// block of the result, or the last block of the grid, which waits until all others have added theirs.
template <bool as_state>
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
      last = add_to_grid_digits(digits[s], first_digit, last_digit, flags, grid_digits[s]);
    if constexpr (as_state) {
      if (last) write_digits(digits, sums_of_result, flags, static_cast<ExactDigits*>(end.out));
    } else {
      if (last) finish(end, digits, flags, n, at);
    }
  }
}

/// Loads runs of elements.
struct RunLoader {
  std::size_t stride;  ///< elements between neighbours
  bool aligned;        ///< whether runs are aligned and contiguous: each is one vector load
  __device__ Run load(const fp64* from) const {
    return aligned ? *reinterpret_cast<const Run*>(from) : TermReader::load(from, stride);
  }
  /// Loads the runs of a thread in a tile.
  __device__ void load_all(const fp64* from, Run (&runs)[in_flight]) const {
    if (aligned)
      for (int k = 0; k < in_flight; ++k) runs[k] = reinterpret_cast<const Run*>(from)[k * exact_threads];
    else
      for (int k = 0; k < in_flight; ++k)
        runs[k] = TermReader::load(from + k * exact_threads * run_length * stride, stride);
  }
};

/// Reduces a batch: one block per result, or all blocks for a single result, whose sums are then merged.
/// With `as_state`, `end.out` receives the sums of a single result as ExactDigits.
template <bool moments, bool as_state>
__global__ void __launch_bounds__(exact_threads, 2)
    reduce_terms(TermReader reader, Layout l, ExactFinish end, GridTermDigits* grid_digits) {
  constexpr int sums_of_result = moments ? 2 : 1, ahead = in_flight;
  __shared__ TermDigits digits[sums_of_result];
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  TermSums<moments> sums{digits, reader.term};
  const bool blocks_share_result = l.results() == 1;
  for (std::size_t at = blocks_share_result ? 0 : blockIdx.x; at < l.results(); at += gridDim.x) {
    const std::size_t n = l.length(at / l.inner), place = l.first(at / l.inner) + at % l.inner;
    const std::size_t stride = l.stride, runs = n / run_length;
    const bool aligned = stride == 1 && reader.is_aligned(place);
    const bool two = !moments && reader.term == Term::product;
    const fp64 *x = reader.x + place, *y = two ? reader.y + place : x;
    // A block reads tiles of neighbouring runs, and each thread `ahead` runs of a tile.
    constexpr std::size_t of_tile = std::size_t{exact_threads} * ahead;
    const std::size_t tiles = (runs + of_tile - 1) / of_tile, blocks = blocks_share_result ? gridDim.x : 1;
    const RunLoader loader{stride, aligned};
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
          Run of_x[ahead], of_y[ahead];
          loader.load_all(x + first * run_length * stride, of_x);
          if (two)
            loader.load_all(y + first * run_length * stride, of_y);
          else
            for (int k = 0; k < ahead; ++k) of_y[k] = of_x[k];
          if (sums.add(of_x, of_y)) continue;
        }
#pragma unroll 1
        for (std::size_t run = first; run < runs && run < first + of_tile; run += exact_threads) {
          const fp64 *from_x = x + run * run_length * stride, *from_y = y + run * run_length * stride;
          const Run a[] = {loader.load(from_x)}, c[] = {two ? loader.load(from_y) : a[0]};
          if (sums.add(a, c)) continue;
#pragma unroll 1
          for (int i = 0; i < run_length; ++i) sums.add(from_x[i * stride], from_y[i * stride]);
        }
      }
      sums.flush();
      __syncthreads();  // all warps have added to the digits
      if (tile >= tiles) break;
      for (TermDigits& d : digits) propagate_one_carry(d);
      __syncthreads();  // the digits are carried before any thread adds to them
    }

    finish_block<as_state>(digits, sums_of_result, sums.flags() | (n > 0 ? Exact::seen_any : 0),
                           flags_of_warp, blocks_share_result, grid_digits, end, n, at);
    __syncthreads();  // the first warp has read the digits and flags before the next result overwrites them
  }
}

template <bool moments, bool as_state> cudaError_t launch_exactly(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  std::size_t at_once = 0;
  cudaError_t error = resident_blocks(reduce_terms<moments, as_state>, exact_threads, at_once);
  constexpr std::size_t shared_bytes = (moments ? 2 : 1) * sizeof(GridTermDigits);
  if (error != cudaSuccess || !accept_workspace(work, header_bytes + shared_bytes, error) || l.results() == 0)
    return error;
  const std::size_t n = l.offsets ? work.call.x.size : l.n,
                    of_block = std::size_t{exact_threads} * in_flight * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{GridTermDigits::most_blocks}});
  auto* grid_digits = static_cast<GridTermDigits*>(states(work.workspace));
  error = cudaMemsetAsync(grid_digits, 0, shared_bytes, work.stream);
  if (error != cudaSuccess) return error;
  const TermReader reader{static_cast<const fp64*>(work.call.x.data),
                          static_cast<const fp64*>(work.call.y.data), end.kind.term};
  return launch(reduce_terms<moments, as_state>, blocks, exact_threads, work.stream, reader, l, end,
                grid_digits);
}

cudaError_t sum_columns(ExactFinish end, Launch& work) {
  const Layout& l = work.call.layout;
  cudaError_t error;
  if (!accept_workspace(work, size_if_none_needed, error)) return error;
  const std::size_t threads = l.outer * ((l.inner - 1) / columns_of_thread + 1);
  return launch(sum_columns_exactly, (threads - 1) / exact_threads + 1, exact_threads, work.stream,
                static_cast<const fp64*>(work.call.x.data), l, end.kind.term, end);
}

}  // namespace

cudaError_t reduce_wide(ExactKind kind, Launch& work) {
  const ExactFinish end{kind, work.call.method->format->index, whole(work.call.options.ddof),
                        work.call.out.data};
  if (is_for_columns(kind, work.call.layout)) return sum_columns(end, work);
  if (work.as_state)
    return kind.moments ? launch_exactly<true, true>(end, work) : launch_exactly<false, true>(end, work);
  return kind.moments ? launch_exactly<true, false>(end, work) : launch_exactly<false, false>(end, work);
}

}  // namespace samesum::gpu
