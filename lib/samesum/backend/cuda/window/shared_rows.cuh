/// Reduces few long rows on a grid in one launch: several blocks share a row, and the last one to arrive
/// merges their sums. If the grid is not given, the blocks first agree on the largest exponent of their row,
/// and then read elements that are still in their caches.
#pragma once

#include "samesum/backend/cuda/tree/tree.cuh"
#include "samesum/backend/cuda/window/batches.cuh"
#include "samesum/backend/cuda/window/grid_window.cuh"

namespace samesum::gpu {
namespace {

/// Counters that the blocks of a row share. All are zero between calls.
struct SharedRow {
  static constexpr unsigned sign = 1u << 31;
  unsigned largest;  ///< largest exponent of a term, with the sign bit inverted
  unsigned found;    ///< number of blocks that have added their exponent
  unsigned summed;   ///< number of blocks that have written their state

  /// Returns the largest exponent of all blocks. One thread of each block calls it, and all blocks run at
  /// once.
  __device__ int largest_exponent(int of_block, unsigned blocks) {
    ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> all{largest}, arrived{found};
    all.fetch_max(static_cast<unsigned>(of_block) ^ sign, ::cuda::memory_order_relaxed);
    arrived.fetch_add(1, ::cuda::memory_order_release);
    while (arrived.load(::cuda::memory_order_acquire) < blocks) {
    }
    return static_cast<int>(all.load(::cuda::memory_order_relaxed) ^ sign);
  }
};
inline constexpr int shared_row_threads = 256;

/// Reduces rows, each on `parts` blocks with `of_part` elements. Reducer::in_place: the grids are found.
template <class Reducer>
__global__ void __launch_bounds__(shared_row_threads)
    reduce_shared_rows(Reducer reducer, ReaderFor<Reducer> reader, Layout l, unsigned parts,
                       std::size_t of_part, SharedRow* rows, typename Reducer::State* states,
                       Destination out) {
  using State = typename Reducer::State;
  using Source = RowSource<typename Reducer::Element>;
  __shared__ alignas(State) unsigned char memory[sizeof(State)];
  __shared__ int grid;
  __shared__ bool is_last;
  State& state = *reinterpret_cast<State*>(memory);
  const BlockGroup group;
  const std::size_t row = blockIdx.x / parts, begin = blockIdx.x % parts * of_part;
  const int n = static_cast<int>(min(l.n - begin, of_part));
  const Source source{reader, l.first(row) + begin, n, group, reducer.kind.term};
  SharedRow& shared = rows[row];
  reducer.only_finds = reducer.in_place;
  reducer.in_place = false;
#pragma unroll 1
  while (true) {
    WindowPart<Reducer, BlockGroup, Source> part{reducer, source, group, row, l.n, n};
    part.template add<16>();
    part.write(&state);
    if (!reducer.only_finds) break;
    if (threadIdx.x == 0) grid = reducer.source.found(shared.largest_exponent(state.grid, parts), l.n);
    __syncthreads();  // thread 0 has written the grid
    reducer.source.given = grid;
    reducer.only_finds = false;
  }
  if (threadIdx.x == 0) {
    states[blockIdx.x] = state;
    is_last = arrive_is_last(shared.summed, parts);
  }
  __syncthreads();  // thread 0 has written is_last; if it is true, the states of the other blocks are visible
  if (!is_last) return;
  if (threadIdx.x == 0) shared.largest = shared.found = 0;  // all blocks have read them
  State* const of_row = states + row * parts;
  merge_in_place(reducer, of_row, parts, 1, shared_row_threads, static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0) out.write(reducer, *of_row, l.n, row);
}

/// The division of rows among blocks, if reduce_shared_rows suits them.
template <class Reducer> struct SharedRowLaunch {
  std::size_t of_part = 0, parts = 0;  ///< elements per block, and blocks per row: 0 if it does not suit

  /// All blocks must run at once. A block has enough elements to keep its threads busy, and no more than its
  /// cache holds. Many rows are left to the kernels for rows.
  cudaError_t plan(const Layout& l) {
    constexpr std::size_t least = 4096, most = 4 * least, most_rows = 16;
    if (l.offsets || l.inner != 1 || l.stride != 1 || l.n <= least || l.outer == 0 || l.outer > most_rows)
      return cudaSuccess;
    std::size_t blocks = 0;
    const cudaError_t error = resident_blocks(reduce_shared_rows<Reducer>, shared_row_threads, blocks);
    if (error != cudaSuccess || blocks < l.outer) return error;
    of_part = ((l.n - 1) / (blocks / l.outer) / least + 1) * least;
    if (of_part <= most) parts = (l.n - 1) / of_part + 1;
    return cudaSuccess;
  }
  cudaError_t operator()(const Reducer& reducer, Launch& work) const {
    using State = typename Reducer::State;
    const Layout& l = work.call.layout;
    cudaError_t error = cudaSuccess;
    work.uses_header = true;
    if (!accept_workspace(work, header_bytes + l.outer * parts * sizeof(State), error)) return error;
    return launch_cooperative(
        reduce_shared_rows<Reducer>, l.outer * parts, shared_row_threads, work.stream, reducer,
        ReaderFor<Reducer>{work.call.x.data, work.call.y.data}, l, static_cast<unsigned>(parts), of_part,
        reinterpret_cast<SharedRow*>(static_cast<Header*>(work.workspace)->arrived.data()),
        static_cast<State*>(states(work.workspace)), Destination{work.call.out.data});
  }
};

}  // namespace
}  // namespace samesum::gpu
