/// Reduces rows of more than 32 and fewer than 128 elements: the elements of a thread are 32 apart, so that
/// two levels of the tree stay in a thread, and one state a thread takes part in the five others.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/backend/cuda/tree/lanes.cuh"
#include "samesum/call/layout.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

inline constexpr int spread_threads = 256;  ///< threads per block
/// Rows that a warp reduces one after another, so that the loads of one may precede the merges of another.
inline constexpr int spread_rows = 4;

/// Whether merges need the numbers of elements of both states.
template <class Reducer> inline constexpr bool merges_with_shares = requires { typename Reducer::Shares; };
/// Whether a fast path merges lanes of any lengths.
template <class Fast>
inline constexpr bool merges_any_lanes = merges_with_shares<Fast> ||
                                         requires(Fast fast, typename Fast::State s) {
  fast.merge(s, s);
};

/// Merges a state of `others` elements into one of `count`.
template <class Reducer>
__device__ __forceinline__ void merge_counted(const Reducer& reducer, typename Reducer::State& state,
                                              const typename Reducer::State& other, int count, int others) {
  if constexpr (merges_with_shares<Reducer>)
    reducer.merge(state, other, reducer.shares(count, others));
  else
    reducer.merge(state, other);
}

/// Merges a row, of which each thread of a warp has the first `count` of four elements 32 apart. The first
/// thread gets the state.
template <class Reducer, class Element>
__device__ __forceinline__ typename Reducer::State merge_spread(const Reducer& reducer, const Element (&e)[4],
                                                                int count) {
  typename Reducer::Item item[4];
  typename Reducer::State state[4];
  items_of(reducer, e, item);
#pragma unroll
  for (int q = 0; q < 4; ++q)
    if (q < count) state[q] = reducer.start(item[q]);
  if (2 < count) merge_counted(reducer, state[0], state[2], 1, 1);
  if (3 < count) merge_counted(reducer, state[1], state[3], 1, 1);
  if (1 < count) merge_counted(reducer, state[0], state[1], 1 + (2 < count), 1 + (3 < count));
  __syncwarp();  // threads may have merged apart from each other
#pragma unroll
  for (int delta = warp / 2; delta > 0; delta /= 2) {
    const int others = merges_with_shares<Reducer> ? __shfl_down_sync(whole_warp, count, delta) : 0;
    merge_counted(reducer, state[0], shuffle_down(state[0], delta), count, others);
    count += others;
  }
  return state[0];
}

/// Returns the state of the n elements from `place` on in the first thread of a warp.
template <class Reducer, class Reader>
__device__ __forceinline__ typename Reducer::State spread_row(const Reducer& reducer, const Reader& reader,
                                                              std::size_t place, int n) {
  const int count = (n - thread() + warp - 1) / warp;
  typename Reader::Element e[4];
  reader.column(place + static_cast<std::size_t>(thread()), std::size_t{warp}, count, 0, thread(), warp, e);
  if constexpr (requires { reducer.fast_path(); }) {
    using Fast = typename Reducer::FastPath;
    if constexpr (merges_any_lanes<Fast>) {
      const Fast fast = reducer.fast_path();
      if (fast.applies()) {
        const auto state = merge_spread(fast, e, count);
        bool succeeded = true;
        // The states of other threads are of no use; what these note of their own elements may be.
        if constexpr (requires { fast.succeeded(state); })
          succeeded = fast.succeeded(chosen(thread() == 0, state, fast.start(fast.item(e[0]))));
        if (__all_sync(whole_warp, succeeded)) return fast.state(state, 0, n);
      }
    }
  }
  return merge_spread(reducer, e, count);
}

/// Reduces rows in the order of a tree of 128 lanes; one row of lanes is the same in all of them.
template <class Reducer, class Reader>
__global__ void __launch_bounds__(spread_threads)
    reduce_spread_rows(Reducer reducer, Reader reader, Layout l, Destination out) {
  const std::size_t first =
      (std::size_t{blockIdx.x} * warps() + static_cast<std::size_t>(warp_index())) * spread_rows;
#pragma unroll
  for (int i = 0; i < spread_rows; ++i) {
    const std::size_t row = first + static_cast<std::size_t>(i);
    if (row >= l.outer) return;
    const auto state = spread_row(reducer, reader, l.first(row), static_cast<int>(l.n));
    if (thread() == 0) out.write(reducer, state, l.n, row);
    __syncwarp();  // thread 0 may leave apart from the others
  }
}

}  // namespace samesum::gpu
