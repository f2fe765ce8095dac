/// Merges the states of the parts of each result in any order, for reducers whose states may meet in any
/// order.
#pragma once

#include <algorithm>
#include <bit>

#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/segments.cuh"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

inline constexpr int part_threads = 512;

/// Merges `count` states in memory into the first one, on so many threads of a block, a power of two. All
/// threads of the block call it; afterwards thread 0 of those can read the result.
template <class Reducer>
__device__ void merge_in_place(const Reducer& reducer, typename Reducer::State* states, std::size_t count,
                               int threads, int thread) {
  const auto own = static_cast<std::size_t>(thread);
  for (std::size_t k = own + static_cast<std::size_t>(threads); k < count;
       k += static_cast<std::size_t>(threads))
    reducer.merge(states[own], states[k]);
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();  // all states of the upper half are complete
    const std::size_t other = own + static_cast<std::size_t>(half);
    if (thread < half && other < count) reducer.merge(states[own], states[other]);
  }
}

/// Merges `count` states per result, on `threads` threads each.
template <class Reducer>
__global__ void __launch_bounds__(part_threads)
    merge_parts(Reducer reducer, typename Reducer::State* states, std::size_t results, std::size_t count,
                int threads, std::size_t n, Destination out) {
  const std::size_t all = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x,
                    at = all >> (__ffs(threads) - 1);
  const int thread = static_cast<int>(threadIdx.x) & (threads - 1);
  states += at * count;
  merge_in_place(reducer, states, at < results ? count : 0, threads, thread);
  if (thread == 0 && at < results) out.write(reducer, *states, n, at);
}
/// Launches merge_parts.
template <class Reducer>
cudaError_t launch_merge_parts(const Reducer& reducer, typename Reducer::State* states, std::size_t results,
                               std::size_t count, std::size_t n, Destination out, cudaStream_t stream) {
  constexpr std::size_t most = part_threads, small_block = 128;
  const std::size_t threads = std::clamp<std::size_t>(std::bit_floor(count / 2), 1, most),
                    block = std::max(threads, small_block);
  return launch(merge_parts<Reducer>, (results * threads - 1) / block + 1, static_cast<int>(block), stream,
                reducer, states, results, count, static_cast<int>(threads), n, out);
}

/// Finishes the segments of more than one leaf. Each thread checks one segment; the block merges the states
/// of those found one after another.
template <std::size_t leaf, class Reducer>
__global__ void __launch_bounds__(part_threads)
    merge_segment_parts(Reducer reducer, Layout l, typename Reducer::State* states, Destination out) {
  __shared__ int count, segment[part_threads];
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x, own = first + threadIdx.x;
  if (thread == 0) count = 0;
  __syncthreads();  // thread 0 has cleared the count
  if (own < l.outer && l.length(own) > leaf) segment[atomicAdd(&count, 1)] = thread;
  __syncthreads();  // all threads have checked their segments
  for (int s = 0; s < count; ++s) {
    const std::size_t o = first + static_cast<std::size_t>(segment[s]), n = l.length(o);
    typename Reducer::State* const of_segment = states + first_slot<leaf>(l, o);
    merge_in_place(reducer, of_segment, (n - 1) / leaf + 1, threads, thread);
    if (thread == 0) out.write(reducer, *of_segment, n, o);
  }
}

}  // namespace samesum::gpu
