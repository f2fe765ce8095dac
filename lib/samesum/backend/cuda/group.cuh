/// Merges of states in memory by one block, or one after another by one thread.
#pragma once

#include "samesum/backend/cuda/warp.cuh"

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

/// Merges states that arrive one after another by stride doubling. level[i] is the merge of the preceding 2^i
/// states if bit i of the number of states is set.
template <class State> struct WaitingStates {
  State level[40];

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

}  // namespace samesum::gpu
