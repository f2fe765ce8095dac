/// Kernels that merge the states of leaves and tiles.
#pragma once

#include "samesum/backend/cuda/group.cuh"
#include "samesum/backend/cuda/reduce_rows.cuh"

namespace samesum::gpu {

/// Largest block that merges states. Without these launch bounds, large states would need more registers than
/// such a block has.
inline constexpr int merge_threads = 1024;

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

/// Finishes the segments of more than one leaf. Each thread checks one segment; the block merges those found
/// one after another.
template <std::size_t leaf, class Reducer>
__global__ void __launch_bounds__(reduce_threads)
    merge_segments(Reducer reducer, Layout l, const typename Reducer::State* states, Destination out) {
  using State = typename Reducer::State;
  using Waiting = WaitingStates<State>;
  constexpr std::size_t size = group_size(reduce_threads);
  __shared__ alignas(16) unsigned char memory[warp * sizeof(State)], waiting_memory[sizeof(Waiting)];
  __shared__ int count, segment[reduce_threads];
  Waiting& waiting = *reinterpret_cast<Waiting*>(waiting_memory);
  const std::size_t first = std::size_t{blockIdx.x} * reduce_threads, own = first + threadIdx.x;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();  // thread 0 has cleared the count
  if (own < l.outer && l.length(own) > leaf) segment[atomicAdd(&count, 1)] = static_cast<int>(threadIdx.x);
  __syncthreads();  // all threads have checked their segments
  for (int s = 0; s < count; ++s) {
    const std::size_t o = first + static_cast<std::size_t>(segment[s]), n = l.length(o),
                      leaves = (n - 1) / leaf + 1;
    const std::size_t groups = (leaves - 1) / size + 1;
    const State* of_leaf = states + first_slot<leaf>(l, o);
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
