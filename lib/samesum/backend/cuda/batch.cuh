/// Launches batches of reductions: a warp reduces a leaf of a row, or threads a leaf of neighbouring columns,
/// and further kernels merge the leaves. Neither the schedule nor the launch shape can change the bits.
#pragma once

#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/merge_states.cuh"
#include "samesum/backend/cuda/reduce_columns.cuh"
#include "samesum/backend/cuda/reduce_rows.cuh"
#include "samesum/backend/cuda/workspace.hpp"

namespace samesum::gpu {

/// The arguments of a reduction. All pointers are to device memory.
struct BatchCall {
  Layout layout;
  std::size_t elements;  ///< elements of the input, at least as many as the segments hold
  Destination out;
  void* workspace;  ///< null for a size query, which only sets `bytes`
  std::size_t bytes;
  cudaStream_t stream;
};

/// Enqueues the reduction. Launches nothing if the layout has no results.
template <class Shape, class Reducer, class Reader>
cudaError_t reduce(const Reducer& reducer, const Reader& reader, BatchCall& call) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>,
                "samesum: State must be trivially copyable, and its size a multiple of 4 bytes");
  const Layout& l = call.layout;
  const std::size_t results = l.results(), leaves = std::max<std::size_t>(Shape::leaves(l.n), 1);
  const bool columns = !l.offsets && (l.inner > 1 || l.stride != 1);
  int block = reduce_warps;
  RowPlan plan{warp, false, 1, 1, leaves, 0};
  if (l.offsets)
    plan.total_warps = call.elements / Shape::leaf + l.outer;
  else if (!columns)
    plan = plan_rows<Shape, Reducer>(l, reader, block);
  // The workspace holds the states of the leaves or tiles, then those of each level above.
  std::size_t count = columns ? leaves : l.offsets ? 1 : plan.tiles_per_row;
  const std::size_t first_states = l.offsets ? plan.total_warps : count > 1 ? results * count : 0;
  std::size_t all_states = first_states;
  const auto threads_for = [](std::size_t members) {
    return members <= group_size(few_merge_threads) ? few_merge_threads : merge_threads;
  };
  const auto groups_of = [&](std::size_t members) {
    return (members - 1) / group_size(threads_for(members)) + 1;
  };
  for (std::size_t c = count; c > 1; c = groups_of(c))
    all_states += groups_of(c) > 1 ? results * groups_of(c) : 0;
  const std::size_t needed =
      all_states == 0 ? size_if_none_needed : header_bytes + all_states * sizeof(State);
  cudaError_t error = cudaSuccess;
  if (!accept_workspace(call, needed, error) || results == 0) return error;
  auto* states = static_cast<State*>(samesum::gpu::states(call.workspace));
  if (columns && l.n > 0 && l.n <= std::min<std::size_t>(short_column, Shape::lanes) &&
      results >= enough_short_columns) {
    constexpr std::size_t of_block = short_columns<Reducer> * short_column_threads;
    error = launch(reduce_short_columns<Reducer, Reader>, (results - 1) / of_block + 1, short_column_threads,
                   call.stream, reducer, reader, l, call.out);
  } else if (columns) {
    const ColumnPlan blocks = plan_columns<Shape>(l, leaves);
    const auto kernel = l.n <= Shape::lanes ? reduce_columns<Shape, true, Reducer, Reader>
                                            : reduce_columns<Shape, false, Reducer, Reader>;
    error = launch(kernel, ((results - 1) / static_cast<std::size_t>(blocks.width) + 1) * leaves,
                   blocks.threads(), call.stream, reducer, reader, l, blocks, states, call.out);
  } else {
    error = launch(reduce_rows<Shape, Reducer, Reader>,
                   (plan.total_warps - 1) / static_cast<std::size_t>(block) + 1, block * warp, call.stream,
                   reducer, reader, l, plan, states, call.out);
  }
  if (error == cudaSuccess && l.offsets && call.elements > Shape::leaf)
    return launch(merge_segments<Shape::leaf, Reducer>, (l.outer - 1) / few_merge_threads + 1,
                  few_merge_threads, call.stream, reducer, l, states, call.out);
  for (; error == cudaSuccess && count > 1; count = groups_of(count)) {
    State* above = states + results * count;
    error = launch(merge_states<Reducer>, results * groups_of(count), threads_for(count), call.stream,
                   reducer, states, count, groups_of(count), l.n, above, call.out);
    states = above;
  }
  return error;
}

}  // namespace samesum::gpu
