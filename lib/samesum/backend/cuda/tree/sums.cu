/// Sums of vectors on a GPU in one format: every order but prefix, and every accumulator, for every format of
/// elements.
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/tree/tree.cuh"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

/// Sets `threads`, the block size, to a power of two: one block if it can hold all leaves, and small blocks
/// while leaves are too few to occupy every multiprocessor.
cudaError_t threads_for(std::size_t leaves, int& threads) {
  constexpr std::size_t warps_of_block = most_threads / warp;
  if (leaves <= warps_of_block) {
    threads = warp * static_cast<int>(std::bit_ceil(std::max<std::size_t>(leaves, 1)));
    return cudaSuccess;
  }
  int count = 0;
  const cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, count);
  const std::size_t processors = static_cast<std::size_t>(count);
  threads = leaves <= processors       ? 32
            : leaves <= 2 * processors ? 64
            : leaves <= 8 * processors ? 128
                                       : most_threads;
  return error;
}

/// Sets `bytes` to the size of the workspace that holds the states of all levels. Returns whether the header
/// has enough arrival counters.
template <class State> bool room_for(std::size_t tiles, int threads, std::size_t& bytes) {
  std::size_t states = 0, arrivals = 0;
  for (std::size_t count = tiles; count > 1; count = LastBlockMerge<State>::groups(count, threads)) {
    states += count;
    arrivals += LastBlockMerge<State>::groups(count, threads);
  }
  bytes = tiles <= 1 ? size_if_none_needed : header_bytes + states * sizeof(State);
  return arrivals <= std::tuple_size_v<decltype(Header::arrived)>;
}

/// The cell of a workspace for sums of format F.
template <class F> AddToCell<F> cell_of(Header& header) {
  return {header.arrived.data(), &header.cell[Formats::index_of<F>()]};
}

template <class Order, template <class> class A, class F, class T> cudaError_t sum_by_leaves(Launch& work) {
  using State = A<Scalar<F>>;
  using Shape = typename Order::Shape;
  const std::size_t leaves = Shape::leaves(work.call.layout.n);
  int threads = work.threads;
  cudaError_t error = work.threads > 0 ? cudaSuccess : threads_for(leaves, threads);
  if (error != cudaSuccess) return error;
  const std::size_t per_tile = static_cast<std::size_t>(threads / warp);
  const std::size_t tiles = std::max<std::size_t>((leaves + per_tile - 1) / per_tile, 1);
  std::size_t needed = 0;
  if (!room_for<State>(tiles, threads, needed)) return cudaErrorInvalidValue;
  if (Order::promise < Promise::everywhere) needed = std::min(needed, header_bytes);
  work.uses_header = needed >= header_bytes;
  if (!accept_workspace(work, needed, error)) return error;
  const std::size_t blocks = work.blocks > 0 ? static_cast<std::size_t>(work.blocks) : tiles;
  auto* header = static_cast<Header*>(work.workspace);
  const auto run = [&]<class Finish>(Finish finish) {
    return launch(sum_leaves<Shape, A, F, T, Finish>, blocks, threads, work.stream,
                  static_cast<const T*>(work.call.x.data), work.call.layout.n, finish,
                  Destination{work.call.out.data, work.as_state});
  };
  if constexpr (Order::promise < Promise::everywhere)
    return run(cell_of<F>(*header));
  else
    return run(LastBlockMerge<State>{header->arrived.data(), static_cast<State*>(states(work.workspace))});
}

template <class A, class F, class T> cudaError_t sum_by_one_thread(Launch& work) {
  cudaError_t error;
  if (!accept_workspace(work, size_if_none_needed, error)) return error;
  return launch(sum_in_turn<A, F, T>, 1, 1, work.stream, static_cast<const T*>(work.call.x.data),
                work.call.layout.n, static_cast<BitsOf<F>*>(work.call.out.data));
}

template <class F, class T> cudaError_t sum_by_elements(Launch& work) {
  cudaError_t error;
  work.uses_header = true;
  if (!accept_workspace(work, header_bytes, error)) return error;
  int processors = 0;
  if ((error = look_up(cudaDevAttrMultiProcessorCount, processors)) != cudaSuccess) return error;
  const std::size_t all = (std::max<std::size_t>(work.call.layout.n, 1) - 1) / most_threads + 1;
  const std::size_t blocks = std::min(all, static_cast<std::size_t>(8 * processors));
  return launch(sum_one_by_one<F, T>, blocks, most_threads, work.stream,
                static_cast<const T*>(work.call.x.data), work.call.layout.n,
                cell_of<F>(*static_cast<Header*>(work.workspace)),
                static_cast<BitsOf<F>*>(work.call.out.data));
}

template <class Order, template <class> class A, class F, class T> cudaError_t run(Launch& work) {
  if constexpr (std::is_same_v<Order, AtomicElement>)
    return sum_by_elements<F, T>(work);
  else if constexpr (Order::Shape::leaf == unbounded)
    return sum_by_one_thread<A<Scalar<F>>, F, T>(work);
  else
    return sum_by_leaves<Order, A, F, T>(work);
}

cudaError_t run_exact(Launch& work) {
  if (work.as_state) return reduce_exactly({}, work);
  return sum_exact(work, {work.call.out.data, SAMESUM_FORMAT_INDEX, nullptr});
}

}  // namespace

template <> std::vector<Entry> sums<SAMESUM_FORMAT_INDEX>() {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  std::vector<Entry> all;
  Orders::for_each([&]<class Order>() {
    Accumulators::for_each([&]<template <class> class A>() {
      if constexpr (is_method<Sum, Order, F>(is_plain<A>, "cuda") && !is_scanned<Sum, Order>) {
        Entry e = describe<Sum, Order, A, F>("cuda");
        KernelFormats::for_each([&]<class T>() {
          e.code.device.vector[Formats::index_of<T>()] = run_launch<run<Order, A, F, T>>;
        });
        e.facts.is_slow = std::is_same_v<Order, Serial> || std::is_same_v<Order, AtomicElement>;
        // atomicAdd of fp32 flushes subnormal numbers to zero: each addition may lose that much.
        if (Order::promise == Promise::none && std::is_same_v<F, fp32>) e.code.lost_per_arrival = 0x1p-126;
        all.push_back(e);
      }
    });
  });
  Entry exact = describe_order_free<Sum, Exactly, F>("cuda");
  exact.code.device.vector.fill(run_launch<run_exact>);
  all.push_back(exact);
  return all;
}

}  // namespace samesum::gpu
