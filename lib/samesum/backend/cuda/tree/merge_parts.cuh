/// Merges the states of the parts of each result in any order, for reducers whose states may meet in any
/// order.
#pragma once

#include <algorithm>
#include <bit>

#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/device/segments.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

inline constexpr int part_threads = 512;

/// Merges `count` states, each `apart` states after the previous one, into the first one by halving, on so
/// many threads of a block, a power of two. A thread has completed its own state, if there is one. All
/// threads of the block call it.
template <class Reducer>
__device__ void merge_halves(const Reducer& reducer, typename Reducer::State* states, std::size_t count,
                             std::size_t apart, int threads, int thread) {
  const auto index = static_cast<std::size_t>(thread);
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();  // all states of the upper half are complete
    const std::size_t other = index + static_cast<std::size_t>(half);
    if (thread < half && other < count) reducer.merge(states[index * apart], states[other * apart]);
  }
}

/// Merges states in memory as merge_halves, but any number of them. Afterwards thread 0 can read the result.
template <class Reducer>
__device__ void merge_in_place(const Reducer& reducer, typename Reducer::State* states, std::size_t count,
                               std::size_t apart, int threads, int thread) {
  using State = typename Reducer::State;
  const auto first = static_cast<std::size_t>(thread), step = static_cast<std::size_t>(threads);
  if constexpr (sizeof(State) <= 32) {  // small states meet in registers and in shared memory
    __shared__ alignas(16) unsigned char memory[part_threads * sizeof(State)];
    State* const held = reinterpret_cast<State*>(memory) + (static_cast<int>(threadIdx.x) - thread);
    __syncthreads();  // all threads have read the states of an earlier call
    if (first < count) {
      State state = states[first * apart];
      for (std::size_t k = first + step; k < count; k += step) reducer.merge(state, states[k * apart]);
      held[first] = state;
    }
    merge_halves(reducer, held, count, 1, threads, thread);
    if (thread == 0 && count > 0) *states = *held;
  } else {
    for (std::size_t k = first + step; k < count; k += step)
      reducer.merge(states[first * apart], states[k * apart]);
    merge_halves(reducer, states, count, apart, threads, thread);
  }
}

/// Merges every `apart`-th of `count` states per result, on `threads` threads each, in groups of `group`:
/// into the first state of each group, or into the result if there is one group.
template <class Reducer>
__global__ void __launch_bounds__(part_threads)
    merge_parts(Reducer reducer, typename Reducer::State* states, std::size_t results, std::size_t count,
                std::size_t group, std::size_t apart, int threads, std::size_t n, Destination out) {
  const std::size_t groups = (count - 1) / (group * apart) + 1,
                    all = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) >> (__ffs(threads) - 1),
                    at = quotient(all, groups), first = (all - at * groups) * group * apart;
  const int thread = static_cast<int>(threadIdx.x) & (threads - 1);
  states += at * count + first;
  const std::size_t left = at < results ? min((count - first - 1) / apart + 1, group) : 0;
  merge_in_place(reducer, states, left, apart, threads, thread);
  if (thread == 0 && at < results && groups == 1) out.write(reducer, *states, n, at);
}
/// Launches merge_parts: for many states twice, so that many blocks share them.
template <class Reducer>
cudaError_t launch_merge_parts(const Reducer& reducer, typename Reducer::State* states, std::size_t results,
                               std::size_t count, std::size_t n, Destination out, cudaStream_t stream) {
  constexpr std::size_t most = part_threads, small_block = 128, of_group = 128;
  const auto merge = [&](std::size_t group, std::size_t apart) {
    const std::size_t groups = (count - 1) / (group * apart) + 1,
                      threads = std::clamp<std::size_t>(std::bit_floor(group / 2), 1, most),
                      block = std::max(threads, small_block);
    return launch(merge_parts<Reducer>, (results * groups * threads - 1) / block + 1, static_cast<int>(block),
                  stream, reducer, states, results, count, group, apart, static_cast<int>(threads), n, out);
  };
  if (count <= 4 * most) return merge(count, 1);
  const cudaError_t error = merge(of_group, 1);
  return error == cudaSuccess ? merge((count - 1) / of_group + 1, of_group) : error;
}

/// Finishes the segments of more than one leaf. Each thread checks one segment, and merges its states if they
/// are few; the block merges those of longer ones, one segment after another.
template <std::size_t leaf, class Reducer>
__global__ void __launch_bounds__(part_threads)
    merge_segment_parts(Reducer reducer, Layout l, typename Reducer::State* states, Destination out) {
  __shared__ int count, segment[part_threads];
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x, checked = first + threadIdx.x,
                    n = checked < l.outer ? l.length(checked) : 0, leaves = (n + leaf - 1) / leaf;
  if (thread == 0) count = 0;
  __syncthreads();  // thread 0 has cleared the count
  if (leaves > most_leaves_of_thread) {
    segment[atomicAdd(&count, 1)] = thread;
  } else if (leaves > 1) {
    typename Reducer::State* const of_segment = states + first_state<leaf>(l, checked);
    for (std::size_t k = 1; k < leaves; ++k) reducer.merge(of_segment[0], of_segment[k]);
    out.write(reducer, of_segment[0], n, checked);
  }
  __syncthreads();  // all threads have checked their segments
  for (int s = 0; s < count; ++s) {
    const std::size_t o = first + static_cast<std::size_t>(segment[s]);
    typename Reducer::State* const of_segment = states + first_state<leaf>(l, o);
    merge_in_place(reducer, of_segment, (l.length(o) - 1) / leaf + 1, 1, threads, thread);
    if (thread == 0) out.write(reducer, *of_segment, l.length(o), o);
  }
}

}  // namespace samesum::gpu
