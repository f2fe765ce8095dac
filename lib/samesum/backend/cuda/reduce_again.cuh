/// Recomputes the results that a second reducer replaces.
#pragma once

#include "samesum/backend/cuda/group.cuh"
#include "samesum/backend/cuda/reduce_columns.cuh"

namespace samesum::gpu {

/// Leaves that a block of `reduce_again` reduces at a time: a power of two.
inline constexpr int again_leaves = 8;

/// Recomputes the results, of any layout, for which reducer.must_replace is true; states always. A block
/// checks `results_of_block` results, at most one per thread, and recomputes those that it found one after
/// another, one lane per thread.
template <class Shape, class Reducer, class Reader>
__global__ void __launch_bounds__(again_leaves* static_cast<int>(Shape::lanes))
    reduce_again(Reducer reducer, Reader reader, Layout l, int results_of_block, Destination out) {
  using State = typename Reducer::State;
  using Waiting = WaitingStates<State>;
  constexpr int lanes = Shape::lanes, threads = again_leaves * lanes;
  __shared__ alignas(16) unsigned char memory[threads * sizeof(State)], waiting_memory[sizeof(Waiting)];
  State* shared = reinterpret_cast<State*>(memory);
  Waiting& waiting = *reinterpret_cast<Waiting*>(waiting_memory);
  const int t = static_cast<int>(threadIdx.x), lane = t % lanes;
  const std::size_t first = std::size_t{blockIdx.x} * results_of_block,
                    end = min(l.results(), first + results_of_block), own = first + threadIdx.x;
  const auto must_replace = [&](std::size_t at) {
    return out.states || reducer.must_replace(at, out.out);  // a partial cannot tell yet
  };
  if (!__syncthreads_or(own < end && must_replace(own))) return;
  for (std::size_t at = first; at < end; ++at) {
    const std::size_t o = at / l.inner, n = l.length(o), leaves = Shape::leaves(n);
    if (n == 0 || !must_replace(at)) continue;
    const std::size_t stride = l.stride, place = l.first(o) + at % l.inner,
                      rounds = (leaves - 1) / again_leaves + 1;
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t k = round * again_leaves + static_cast<std::size_t>(t / lanes),
                        begin = min(k * Shape::leaf, n);
      const int members = static_cast<int>(min(n - begin, Shape::leaf));
      if (lane < members)
        shared[t] = column_lane<Shape>(reducer, reader, place + begin * stride, stride, begin, lane, members);
      for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();  // all threads have written the lanes that are merged now
        if (lane < half && lane + half < members) reducer.merge(shared[t], shared[t + half]);
      }
      __syncthreads();  // the last merges of all leaves are written
      if (t == 0) {
        const int have = static_cast<int>(min(leaves - round * again_leaves, std::size_t{again_leaves}));
        for (int apart = 1; apart < have; apart *= 2)
          for (int i = 0; i + apart < have; i += 2 * apart)
            reducer.merge(shared[i * lanes], shared[(i + apart) * lanes]);
        waiting.put(reducer, round, shared[0]);
      }
      __syncthreads();  // thread 0 has read the leaves before the next lanes overwrite them
    }
    if (t == 0) out.write(reducer, waiting.merged(reducer, rounds), n, at);
  }
}

}  // namespace samesum::gpu
