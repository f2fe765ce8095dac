/// Merges of states in memory, by one block or one after another by one thread; and the kernels that merge
/// the states of leaves and tiles.
#pragma once

#include "samesum/backend/cuda/device/segments.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

inline constexpr int states_per_thread = 8;

/// Number of states that a block of `threads` threads merges.
__host__ __device__ constexpr std::size_t group_size(int threads) {
  return static_cast<std::size_t>(threads) * states_per_thread;
}

/// Merges 1 to group_size states in memory by stride doubling; thread 0 of the block gets the result.
template <class State, class Reducer = OwnMerge>
__device__ State merge_group(const State* states, int count, State* shared, const Reducer& reducer = {}) {
  constexpr int mine = states_per_thread;
  const int first = static_cast<int>(threadIdx.x) * mine, left = count - first;
  std::array<State, mine> state;
  for (int i = 0; i < mine; ++i)
    if (i < left) state[i] = states[first + i];
  for (int stride = 1; stride < mine; stride *= 2)
    for (int i = 0; i + stride < mine; i += 2 * stride)
      merge_if(i + stride < left, state[i], state[i + stride], reducer);
  const int left_of_warp = count - warp_index() * warp * mine;
  merge_across(state[0], min((left_of_warp + mine - 1) / mine, warp), reducer);
  merge_warps(state[0], (count - 1) / (warp * mine) + 1, shared, reducer);
  return state[0];
}

/// Merges fewer than 2^levels states that arrive one after another by stride doubling. level[i] is the merge
/// of the preceding 2^i states if bit i of the number of states is set.
template <class State, int levels = 40> struct WaitingStates {
  State level[levels];

  template <class Reducer> __device__ void put(const Reducer& reducer, std::size_t index, State state) {
    int i = 0;
    for (; index >> i & 1; ++i) {
      reducer.merge(level[i], state);
      state = level[i];
    }
    level[i] = state;
  }
  /// The merge of all `count` >= 1 states.
  template <class Reducer> __device__ State merged(const Reducer& reducer, std::size_t count) {
    int i = 0;
    while (!(count >> i & 1)) ++i;
    State state = level[i];
    while (count >> ++i)
      if (count >> i & 1) {
        reducer.merge(level[i], state);
        state = level[i];
      }
    return state;
  }
};

/// Threads per block that merges few states, and at most. Without these launch bounds, large states would
/// need more registers than a large block has.
inline constexpr int few_merge_threads = 128, merge_threads = 1024;

/// Merges one level of `count` states per result: each block merges a group of them.
template <class Reducer>
__global__ void __launch_bounds__(merge_threads)
    merge_states(Reducer reducer, const typename Reducer::State* from, std::size_t count, std::size_t groups,
                 std::size_t n, typename Reducer::State* to, Destination out) {
  using State = typename Reducer::State;
  __shared__ alignas(16) unsigned char memory[warp * sizeof(State)];
  const std::size_t at = blockIdx.x / groups, g = blockIdx.x % groups,
                    begin = g * group_size(static_cast<int>(blockDim.x));
  const std::size_t members = min(count - begin, group_size(static_cast<int>(blockDim.x)));
  const State state = merge_group(from + at * count + begin, static_cast<int>(members),
                                  reinterpret_cast<State*>(memory), reducer);
  if (threadIdx.x > 0) return;
  if (groups == 1)
    out.write(reducer, state, n, at);
  else
    to[at * groups + g] = state;
}

/// Finishes the segments of more than one leaf. Each thread checks one segment, and merges its states if they
/// are few; the block merges those of longer ones, one segment after another.
template <std::size_t leaf, class Reducer>
__global__ void __launch_bounds__(few_merge_threads)
    merge_segments(Reducer reducer, Layout l, const typename Reducer::State* states, Destination out) {
  using State = typename Reducer::State;
  using Waiting = WaitingStates<State>;
  constexpr std::size_t size = group_size(few_merge_threads);
  __shared__ alignas(16) unsigned char memory[warp * sizeof(State)], waiting_memory[sizeof(Waiting)];
  __shared__ int count, segment[few_merge_threads];
  Waiting& waiting = *reinterpret_cast<Waiting*>(waiting_memory);
  const std::size_t first = std::size_t{blockIdx.x} * few_merge_threads, checked = first + threadIdx.x,
                    of_checked = checked < l.outer ? (l.length(checked) + leaf - 1) / leaf : 0;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();  // thread 0 has cleared the count
  if (of_checked > most_leaves_of_thread) {
    segment[atomicAdd(&count, 1)] = static_cast<int>(threadIdx.x);
  } else if (of_checked > 1) {
    const State* of_leaf = states + first_state<leaf>(l, checked);
    WaitingStates<State, std::bit_width(most_leaves_of_thread)> of_thread;
    for (std::size_t k = 0; k < of_checked; ++k) of_thread.put(reducer, k, of_leaf[k]);
    out.write(reducer, of_thread.merged(reducer, of_checked), l.length(checked), checked);
  }
  __syncthreads();  // all threads have checked their segments
  for (int s = 0; s < count; ++s) {
    const std::size_t o = first + static_cast<std::size_t>(segment[s]), n = l.length(o),
                      leaves = (n - 1) / leaf + 1;
    const std::size_t groups = (leaves - 1) / size + 1;
    const State* of_leaf = states + first_state<leaf>(l, o);
    for (std::size_t g = 0; g < groups; ++g) {
      const State state = merge_group(of_leaf + g * size, static_cast<int>(min(leaves - g * size, size)),
                                      reinterpret_cast<State*>(memory), reducer);
      __syncthreads();  // all threads have read `memory` before the next group overwrites it
      if (threadIdx.x == 0) waiting.put(reducer, g, state);
    }
    if (threadIdx.x == 0) out.write(reducer, waiting.merged(reducer, groups), n, o);
  }
}

}  // namespace samesum::gpu
