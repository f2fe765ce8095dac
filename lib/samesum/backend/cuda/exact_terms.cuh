/// The kernel of exact reductions: blocks add terms exactly.
#pragma once

#include "samesum/backend/cuda/exact_finish.cuh"
#include "samesum/operation/layout.hpp"

namespace samesum::gpu {
namespace {  // internal linkage: the compiler fits functions that it does not inline to their only callers

using SharedTermDigits = SharedDigitsOf<TermDigits::count>;

/// Runs of each input that a thread has in flight.
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

/// The digits that terms of such elements may touch, and one for carries.
template <class T>
constexpr int first_digit = (2 * Format<T>::min_quantum - TermDigits::lowest_exponent) / 32;
template <class T>
constexpr int last_digit = (2 * Format<T>::max_exponent + 2 + 64 - TermDigits::lowest_exponent) / 32 + 2;
static_assert(last_digit<fp64> < TermDigits::count);

/// Propagates carries by one digit. Each thread of the block owns a digit.
template <class T> __device__ __forceinline__ void propagate_one_carry(TermDigits& d) {
  const int i = static_cast<int>(threadIdx.x), last = last_digit<T>;
  const std::int64_t carried = i <= last ? d.carried(i, last) : 0;
  __syncthreads();  // all threads have read the digits
  if (i <= last) d.digit[i] = carried;
}

/// A batch: a block a result; or all blocks for the one that there is, which then meet.
template <class T, bool moments>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 2 : 3)
    reduce_terms(TermReader<T> reader, Layout l, Ending end, SharedTermDigits* shared_digits) {
  constexpr int sums_of_result = moments ? 2 : 1, ahead = in_flight<T>;
  __shared__ TermDigits digits[sums_of_result];
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  TermSums<T, moments> sums{digits, reader.term};
  const bool together = l.results() == 1;
  for (std::size_t at = together ? 0 : blockIdx.x; at < l.results(); at += gridDim.x) {
    const std::size_t n = l.length(at / l.inner), place = l.first(at / l.inner) + at % l.inner;
    const std::size_t stride = l.stride, runs = n / run_length;
    const bool aligned = stride == 1 && reader.is_aligned(place);
    const bool two = !moments && reader.term == Term::product;
    const T *x = reader.x + place, *y = two ? reader.y + place : x;
    // A block reads tiles of neighbouring runs, each thread some runs of a tile.
    constexpr std::size_t of_tile = std::size_t{exact_threads} * ahead;
    const std::size_t tiles = (runs + of_tile - 1) / of_tile, blocks = together ? gridDim.x : 1;
    const auto load = [&](const T* from) {
      return aligned ? *reinterpret_cast<const Run<T>*>(from) : reader.load(from, stride);
    };
    const auto load_all = [&](const T* from, Run<T>(&of)[ahead]) {
      if (aligned)
        for (int k = 0; k < ahead; ++k) of[k] = reinterpret_cast<const Run<T>*>(from)[k * exact_threads];
      else
        for (int k = 0; k < ahead; ++k)
          of[k] = reader.load(from + k * exact_threads * run_length * stride, stride);
    };
    for (TermDigits& d : digits) d.clear();
    __syncthreads();  // anybody may add to them

    sums.start();
    std::size_t tile = together ? blockIdx.x : 0;
    if (const std::size_t i = runs * run_length + threadIdx.x; tile == 0 && i < n)
      sums.add(x[i * stride], y[i * stride]);
    for (;;) {
#pragma unroll 1
      for (int b = 0; b < sums.most / (ahead * run_length) && tile < tiles; ++b, tile += blocks) {
        const std::size_t first = tile * of_tile + threadIdx.x;
        if ((tile + 1) * of_tile <= runs) {
          Run<T> of_x[ahead], of_y[ahead];
          load_all(x + first * run_length * stride, of_x);
          if (two)
            load_all(y + first * run_length * stride, of_y);
          else
            for (int k = 0; k < ahead; ++k) of_y[k] = of_x[k];
          if (sums.add(of_x, of_y)) continue;
        }
#pragma unroll 1
        for (std::size_t run = first; run < runs && run < first + of_tile; run += exact_threads) {
          const T *from_x = x + run * run_length * stride, *from_y = y + run * run_length * stride;
          const Run<T> a[] = {load(from_x)}, c[] = {two ? load(from_y) : a[0]};
          if (sums.add(a, c)) continue;
#pragma unroll 1
          for (int i = 0; i < run_length; ++i) sums.add(from_x[i * stride], from_y[i * stride]);
        }
      }
      sums.empty();
      __syncthreads();  // the digits are complete
      if (tile >= tiles) break;
      for (TermDigits& d : digits) propagate_one_carry<T>(d);
      __syncthreads();  // anybody may add to them again
    }

    unsigned flags = __reduce_or_sync(whole_warp, sums.flags() | (n > 0 ? Exact::seen_any : 0));
    if (thread() == 0) flags_of_warp[warp_index()] = flags;
    __syncthreads();  // the flags of all warps
    if (warp_index() == 0) {
      flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
      bool last = true;
      for (int s = 0; s < sums_of_result && together && gridDim.x > 1; ++s)
        last = arrive_is_last(digits[s], first_digit<T>, last_digit<T>, flags, shared_digits[s]);
      if (last) finish(end, digits, flags, n, at);
    }
    __syncthreads();  // what is shared may change
  }
}

}  // namespace
}  // namespace samesum::gpu
