/// Launches batches of reductions: a warp reduces a leaf of a row, or threads a leaf of neighbouring columns,
/// and further kernels merge the leaves. Neither the schedule nor the launch shape can change the bits.
#pragma once

#include "samesum/backend/cuda/device/call.hpp"
#include "samesum/backend/cuda/tree/merge_parts.cuh"
#include "samesum/backend/cuda/tree/merge_states.cuh"
#include "samesum/backend/cuda/tree/reduce_columns.cuh"
#include "samesum/backend/cuda/tree/reduce_rows.cuh"

namespace samesum::gpu {

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

/// Enqueues a reduction, whose method and formats the reducer and the reader stand for. The elements of its
/// input are at least as many as the segments hold. Launches nothing if the layout has no results.
template <class Shape, class Reducer, class Reader>
cudaError_t reduce(const Reducer& reducer, const Reader& reader, Launch& work) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>,
                "samesum: State must be trivially copyable, and its size a multiple of 4 bytes");
  const Layout& l = work.call.layout;
  constexpr bool any_order = requires { Reducer::merges_in_any_order; };
  const Destination out{work.call.out.data, work.as_state && !any_order};  // else finish() writes the states
  const std::size_t results = l.results();
  const bool columns = !l.offsets && (l.inner > 1 || l.stride != 1);
  using OfReducer = Launches<Shape, Reducer, Reader>;
  const typename OfReducer::Columns launch_columns{l};
  const typename OfReducer::Rows launch_rows{reducer, reader, work};
  // The workspace holds the states of the leaves or tiles, then those of each level above.
  std::size_t count = columns ? launch_columns.parts : l.offsets ? 1 : launch_rows.states_per_row();
  const std::size_t of_segments =
      l.offsets && !launch_rows.is_short ? count_segment_states(work.call.x.size, Shape::leaf) : 0;
  const std::size_t first_states = count > 1 ? results * count : of_segments;
  std::size_t all_states = first_states;
  for (std::size_t c = count; c > 1 && !any_order; c = groups_of_states(c))
    all_states += groups_of_states(c) > 1 ? results * groups_of_states(c) : 0;
  const std::size_t needed =
      all_states == 0 ? size_if_none_needed : header_bytes + all_states * sizeof(State);
  cudaError_t error = cudaSuccess;
  if (!accept_workspace(work, needed, error) || results == 0) return error;
  auto* states = static_cast<State*>(samesum::gpu::states(work.workspace));
  error = columns ? launch_columns(reducer, reader, l, states, out, work.stream)
                  : launch_rows(reducer, reader, l, states, out, work.stream);
  const bool merges_segments = of_segments > 0;
  if (error != cudaSuccess || (count == 1 && !merges_segments)) return error;
  if constexpr (any_order) {
    if (!merges_segments) return launch_merge_parts(reducer, states, results, count, l.n, out, work.stream);
    return launch(merge_segment_parts<Shape::leaf, Reducer>, (l.outer - 1) / few_merge_threads + 1,
                  few_merge_threads, work.stream, reducer, l, states, out);
  } else if (merges_segments) {
    return launch(merge_segments<Shape::leaf, Reducer>, (l.outer - 1) / few_merge_threads + 1,
                  few_merge_threads, work.stream, reducer, l, states, out);
  } else {
    for (; error == cudaSuccess && count > 1; count = groups_of_states(count)) {
      State* above = states + results * count;
      error = launch(merge_states<Reducer>, results * groups_of_states(count), threads_for_states(count),
                     work.stream, reducer, states, count, groups_of_states(count), l.n, above, out);
      states = above;
    }
    return error;
  }
}

}  // namespace samesum::gpu
