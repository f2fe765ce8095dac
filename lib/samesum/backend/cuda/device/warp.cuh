/// Indices of threads and warps, shuffles of states, and merges of states across a warp and a block.
///
/// In all kernels, a tile is a range of neighbouring elements that one block, or some of its warps, work on
/// at a time.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <array>
#endif

#include "samesum/window/exponent_range.hpp"

namespace samesum::gpu {

using ::max;  // CUDA's, which samesum::max and samesum::min would hide
using ::min;

inline constexpr int warp = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

__device__ inline int thread() { return static_cast<int>(threadIdx.x) % warp; }      ///< index in the warp
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / warp; }  ///< index in the block
__device__ inline int warps() { return static_cast<int>(blockDim.x) / warp; }

/// a / b. A division of 32 bits takes a fraction of the time of one of 64 bits.
__device__ inline std::uint64_t quotient(std::uint64_t a, std::uint64_t b) {
  if (a < b) return 0;
  return (a | b) >> 32 == 0 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

/// The state of the thread whose index in the warp is higher by `delta`.
template <class State> __device__ State shuffle_down(const State& state, int delta) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(state);
  for (unsigned& word : words) word = __shfl_down_sync(whole_warp, word, delta);
  return std::bit_cast<State>(words);
}

/// condition ? a : b, word by word: selecting between structures would go through local memory.
template <class State> __device__ State chosen(bool condition, const State& a, const State& b) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(a);
  const auto others = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(b);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = condition ? words[i] : others[i];
  return std::bit_cast<State>(words);
}

/// The state of the thread whose index in the warp is this thread's XOR `delta`.
template <class State> __device__ State shuffle_xor(const State& state, int delta) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(state);
  for (unsigned& word : words) word = __shfl_xor_sync(whole_warp, word, delta);
  return std::bit_cast<State>(words);
}

/// Merges the ranges of the threads of a warp into a range in memory, given by its members.
__device__ inline void merge_of_warp(const ExponentRange& seen, std::uint32_t& above, std::uint32_t& below) {
  const std::uint32_t most = __reduce_max_sync(whole_warp, seen.above),
                      lowest = __reduce_max_sync(whole_warp, seen.below);
  if (thread() > 0) return;
  atomicMax(&above, most);
  atomicMax(&below, lowest);
}

/// The default reducer: merges states by their own merge().
struct OwnMerge {
  template <class State> __device__ void merge(State& state, const State& other) const { state.merge(other); }
};

/// Merges `other` into `state` if `other` exists.
template <class State, class Reducer = OwnMerge>
__device__ void merge_if(bool exists, State& state, const State& other, const Reducer& reducer = {}) {
  if constexpr (std::is_same_v<Reducer, OwnMerge>) {  // always merges, then selects: no branch
    State both = state;
    reducer.merge(both, other);
    if (exists) state = both;
  } else {  // `other` is undefined if it does not exist
    if (exists) reducer.merge(state, other);
  }
}

/// Merges up to 32 states, one per thread, by stride doubling; thread 0 gets the result.
template <class State, class Reducer = OwnMerge>
__device__ void merge_across(State& state, int count, const Reducer& reducer = {}) {
  for (int delta = 1; delta < count; delta *= 2)
    merge_if(thread() + delta < count, state, shuffle_down(state, delta), reducer);
}

/// Merges `count` states, one in thread 0 of each warp, by stride doubling; thread 0 of the block gets the
/// result. The whole block calls it; `shared` has room for one state per warp.
template <class State, class Reducer = OwnMerge>
__device__ void merge_warps(State& state, int count, State* shared, const Reducer& reducer = {}) {
  if (warps() == 1) return;
  __syncthreads();  // all threads have read the previous contents of `shared`
  if (thread() == 0) shared[warp_index()] = state;
  __syncthreads();  // all warps have written their states
  if (warp_index() > 0) return;
  if (thread() < count) state = shared[thread()];
  merge_across(state, count, reducer);
}

}  // namespace samesum::gpu
