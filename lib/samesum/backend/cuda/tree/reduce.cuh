/// Batches of every operation but scans in one format, in all orders but prefix; and the kernel that
/// recomputes the results that a second reducer replaces.
#pragma once

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/device/reader.cuh"
#include "samesum/backend/cuda/tree/batch.cuh"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

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
                    end = min(l.results(), first + results_of_block), checked = first + threadIdx.x;
  const auto must_replace = [&](std::size_t at) {
    return out.states || reducer.must_replace(at, out.out);  // a partial cannot tell yet
  };
  if (!__syncthreads_or(checked < end && must_replace(checked))) return;
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
        shared[t] = column_lane<Shape, some_column_rows>(reducer, reader, place + begin * stride, stride,
                                                         begin, lane, members);
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

template <class Order, class T, class Reducer>
cudaError_t launch_reducer(const Reducer& reducer, Launch& work) {
  using Shape = typename Order::Shape;
  const Reader<F, T> reader{work.call.x.data, work.call.y.data};
  cudaError_t error = reduce<Shape>(reducer, reader, work);
  if constexpr (requires { reducer.replacement(); })
    if (const std::size_t results = work.call.layout.results();
        reducer.mean && work.workspace && results > 0 && error == cudaSuccess) {
      // About as many blocks as a large GPU runs at once: checking the results is cheap, and the results to
      // recompute are spread over the blocks.
      constexpr std::size_t blocks = 256, threads = again_leaves * Shape::lanes;
      const std::size_t of_block = std::min((results - 1) / blocks + 1, threads);
      Destination out{work.call.out.data, work.as_state};
      if (out.states) out.out = &static_cast<typename WithReplacement<Reducer>::State*>(out.out)->replacing;
      error = launch(reduce_again<Shape, decltype(reducer.replacement()), Reader<F, T>>,
                     (results - 1) / of_block + 1, static_cast<int>(threads), work.stream,
                     reducer.replacement(), reader, work.call.layout, static_cast<int>(of_block), out);
    }
  return error;
}

template <class Operation, class Order, template <class> class A, class T> cudaError_t run(Launch& work) {
  return launch_reducer<Order, T>(Operation::template reducer<A, F>({work.call.options.ddof}), work);
}

/// Calls visit.operator()<Operation, Order, A>() for every method of batches.
template <class Visit> void for_each_method_of_batches(Visit visit) {
  for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (!is_scanned<Operation, Order>) visit.template operator()<Operation, Order, A>();
  });
}
/// Enters the kernels for elements of format T.
template <class T, class Operation, class Order, template <class> class A> void enter_batches(Entry& method) {
  if constexpr (has_batches<Operation, Order, A, T, F>)
    method.code.device.any[Formats::index_of<T>()] = run_launch<run<Operation, Order, A, T>>;
}

}  // namespace
}  // namespace samesum::gpu
