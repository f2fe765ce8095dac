/// States of a scan: merges within a warp, states that one block publishes for others, and states that may
/// have no elements yet.
#pragma once

#include <cuda/atomic>

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/operation/operations.hpp"

namespace samesum::gpu {

/// A state that one block publishes and others wait for. Each word of 32 bits carries its own flag, in the
/// upper half of 64 bits, so that neither side needs a fence. All bits are 0 before.
template <class State> struct Published {
  static constexpr int words = sizeof(State) / 4;
  using Word = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_device>;
  using Words = std::array<std::uint64_t, words>;
  std::uint64_t word[words];

  __device__ void put(const State& state) {
    const auto bits = std::bit_cast<std::array<std::uint32_t, words>>(state);
    for (int i = 0; i < words; ++i)
      Word{word[i]}.store(std::uint64_t{1} << 32 | bits[i], ::cuda::memory_order_relaxed);
  }
  /// The words as published so far.
  __device__ Words seen() {
    Words now;
    for (int i = 0; i < words; ++i) now[i] = Word{word[i]}.load(::cuda::memory_order_relaxed);
    return now;
  }
  /// Waits for the state; `now` holds the words of the last call of seen().
  __device__ State wait(Words now) {
    const auto is_there = [&] {
      bool all = true;
      for (int i = 0; i < words; ++i) all = all && now[i] >> 32 != 0;
      return all;
    };
    while (!is_there()) now = seen();
    std::array<std::uint32_t, words> bits;
    for (int i = 0; i < words; ++i) bits[i] = static_cast<std::uint32_t>(now[i]);
    return std::bit_cast<State>(bits);
  }
};

/// Whether a fresh state, merged from the left, changes no bit of another state, and merging it costs less
/// than a branch.
template <class State> inline constexpr bool fresh_is_neutral = false;
template <class V> inline constexpr bool fresh_is_neutral<Plain<V>> = true;
template <class F> inline constexpr bool fresh_is_neutral<Extremum<F>> = true;

/// Whether states may be merged in any order and grouping, with the same bits.
template <class State> inline constexpr bool is_order_free = false;

/// The state of thread `from` of each aligned group of `width` threads.
template <class State> __device__ State shuffled(const State& state, int from, int width = warp) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(state);
  for (unsigned& word : words) word = __shfl_sync(whole_warp, word, from, width);
  return std::bit_cast<State>(words);
}

template <class Reducer>
__device__ typename Reducer::State merged(const Reducer& reducer, typename Reducer::State left,
                                          const typename Reducer::State& right) {
  reducer.merge(left, right);
  return left;
}
/// Merges `left` before `state` if it exists; otherwise, if fresh states are neutral, it must be fresh.
template <class Reducer>
__device__ void merge_before(const Reducer& reducer, bool exists, const typename Reducer::State& left,
                             typename Reducer::State& state) {
  if (fresh_is_neutral<typename Reducer::State> || exists) state = merged(reducer, left, state);
}

/// One step of a scan by stride doubling: the threads of each right half of 2^(d + 1) units merge the whole
/// left half before their own units. After five steps thread k has the state of units 0 to k.
template <class Reducer>
__device__ void scan_step(const Reducer& reducer, int d, typename Reducer::State& state) {
  const auto left = shuffled(state, (1 << d) - 1, 2 << d);
  if (thread() >> d & 1) state = merged(reducer, left, state);
}

/// Merges the units of threads by stride doubling. Stores the aligned groups of 2^d units, d < log2, in
/// group[d][first unit of the group], and returns the state of all 2^log2 units. The units of threads beyond
/// repeat the first ones.
template <int width, class Reducer>
__device__ typename Reducer::State make_groups(const Reducer& reducer, typename Reducer::State unit, int log2,
                                               typename Reducer::State (*group)[width]) {
  using State = typename Reducer::State;
#pragma unroll 5
  for (int d = 0; d < log2; ++d) {
    if (thread() < width) group[d][thread()] = unit;
    const State other = shuffle_xor(unit, 1 << d);
    const bool is_right = thread() >> d & 1;
    State left = chosen(is_right, other, unit);
    reducer.merge(left, chosen(is_right, unit, other));
    unit = left;
  }
  return unit;
}

/// A state that may have no elements yet.
template <class Reducer> struct ScanCarry {
  typename Reducer::State state{};
  bool any = false;

  __device__ void append(const Reducer& reducer, const typename Reducer::State& next) {
    state = any ? merged(reducer, state, next) : next;
    any = true;
  }
  /// Appends the groups of the first `units` units, the largest first.
  template <int width, int log2>
  __device__ void append_groups(const Reducer& reducer, unsigned units,
                                const typename Reducer::State (*group)[width]) {
    typename Reducer::State of_bit[log2];  // loaded before they are merged one after another
#pragma unroll
    for (int d = 0; d < log2; ++d) of_bit[d] = group[d][(units >> (d + 1) << (d + 1)) % width];
#pragma unroll
    for (int d = log2 - 1; d >= 0; --d)
      if (units >> d & 1) append(reducer, of_bit[d]);
  }
};

}  // namespace samesum::gpu
