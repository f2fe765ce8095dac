/// Launches batches of reductions: a warp reduces a leaf of a row, or threads a leaf of neighbouring columns,
/// and further kernels merge the leaves. Neither the schedule nor the launch shape can change the bits.
#pragma once

#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/merge_parts.cuh"
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

/// What launches the kernels for rows and columns. A reducer may have its own: a member template
/// Launches<Shape, Reader>.
template <class Shape, class Reducer, class Reader> struct Launches {
  using Rows = RowLaunch<Shape, Reducer, Reader>;
  using Columns = ColumnLaunch<Shape, Reducer, Reader>;
};
template <class Shape, class Reducer, class Reader>
requires requires { typename Reducer::template Launches<Shape, Reader>; }
struct Launches<Shape, Reducer, Reader> : Reducer::template Launches<Shape, Reader> {};

/// Threads per block that merge so many states, and the number of blocks.
inline int threads_for_states(std::size_t count) {
  return count <= group_size(few_merge_threads) ? few_merge_threads : merge_threads;
}
inline std::size_t groups_of_states(std::size_t count) {
  return (count - 1) / group_size(threads_for_states(count)) + 1;
}

/// Enqueues the reduction. Launches nothing if the layout has no results.
template <class Shape, class Reducer, class Reader>
cudaError_t reduce(const Reducer& reducer, const Reader& reader, BatchCall& call) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>,
                "samesum: State must be trivially copyable, and its size a multiple of 4 bytes");
  const Layout& l = call.layout;
  const std::size_t results = l.results();
  const bool columns = !l.offsets && (l.inner > 1 || l.stride != 1);
  using OfReducer = Launches<Shape, Reducer, Reader>;
  const typename OfReducer::Columns launch_columns{l};
  const typename OfReducer::Rows launch_rows{l, reader, call.elements};
  // The workspace holds the states of the leaves or tiles, then those of each level above.
  std::size_t count = columns ? launch_columns.parts : l.offsets ? 1 : launch_rows.states_per_row();
  const std::size_t first_states = l.offsets ? launch_rows.warps() : count > 1 ? results * count : 0;
  constexpr bool any_order = requires { Reducer::merges_in_any_order; };
  std::size_t all_states = first_states;
  for (std::size_t c = count; c > 1 && !any_order; c = groups_of_states(c))
    all_states += groups_of_states(c) > 1 ? results * groups_of_states(c) : 0;
  const std::size_t needed =
      all_states == 0 ? size_if_none_needed : header_bytes + all_states * sizeof(State);
  cudaError_t error = cudaSuccess;
  if (!accept_workspace(call, needed, error) || results == 0) return error;
  auto* states = static_cast<State*>(samesum::gpu::states(call.workspace));
  error = columns ? launch_columns(reducer, reader, l, states, call.out, call.stream)
                  : launch_rows(reducer, reader, l, states, call.out, call.stream);
  const bool merges_segments = l.offsets && call.elements > Shape::leaf;
  if (error != cudaSuccess || (count == 1 && !merges_segments)) return error;
  if constexpr (any_order) {
    if (!merges_segments)
      return launch_merge_parts(reducer, states, results, count, l.n, call.out, call.stream);
    return launch(merge_segment_parts<Shape::leaf, Reducer>, (l.outer - 1) / few_merge_threads + 1,
                  few_merge_threads, call.stream, reducer, l, states, call.out);
  } else if (merges_segments) {
    return launch(merge_segments<Shape::leaf, Reducer>, (l.outer - 1) / few_merge_threads + 1,
                  few_merge_threads, call.stream, reducer, l, states, call.out);
  } else {
    for (; error == cudaSuccess && count > 1; count = groups_of_states(count)) {
      State* above = states + results * count;
      error = launch(merge_states<Reducer>, results * groups_of_states(count), threads_for_states(count),
                     call.stream, reducer, states, count, groups_of_states(count), l.n, above, call.out);
      states = above;
    }
    return error;
  }
}

}  // namespace samesum::gpu
