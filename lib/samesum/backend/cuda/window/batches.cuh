/// Reductions of rows, segments and columns in a window, exact or on a grid, for reduce() of batch.cuh.
#pragma once

#include "samesum/backend/cuda/tree/reduce_columns.cuh"
#include "samesum/backend/cuda/tree/reduce_rows.cuh"
#include "samesum/backend/cuda/window/leaf.cuh"

namespace samesum::gpu {
namespace {

inline constexpr int window_threads = 128;  ///< threads per block
/// Minimum resident blocks per multiprocessor: the most that leave each thread enough registers, since
/// resident warps hide the latency of memory.
template <class Reducer, bool is_light>
inline constexpr int window_blocks = Reducer::what == ExactlySummed::elements &&
                                             (is_light || sizeof(typename Reducer::Element) == 2)
                                         ? 6
                                         : 4;
/// Whether a reducer sums elements of 16 bits on a grid. Then a thread that holds whole rows needs few
/// registers.
template <class Reducer>
inline constexpr bool sums_short_elements_on_grid = Reducer::what == ExactlySummed::elements &&
                                                    sizeof(typename Reducer::Element) == 2 && requires {
  Reducer::most_on_chip;
};
/// Minimum resident blocks per multiprocessor for kernels whose threads hold `size` elements of a row.
template <class Reducer, int size>
inline constexpr int short_row_blocks = sums_short_elements_on_grid<Reducer>    ? 8
                                        : sizeof(typename Reducer::Element) < 8 ? window_blocks<Reducer, true>
                                        : Reducer::what == ExactlySummed::elements&& size <= 8 ? 8
                                                                                               : 5;
/// The index of a block among those of a reduction.
template <class Reducer> __device__ std::size_t block_index(const Reducer& reducer) {
  return reducer.is_backwards() ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}
/// The reader of the elements of a reducer.
template <class Reducer> using ReaderFor = Reader<typename Reducer::Element, typename Reducer::Element>;

/// Reduces a row that a narrow window does not hold.
template <class Reducer>
__device__ __noinline__ void reduce_row_again(Reducer reducer, RowSource<typename Reducer::Element> source,
                                              WarpGroup group, bool exists, std::size_t row, void* out) {
  using Leaf = typename Reducer::template Leaf<WarpGroup>;
  if constexpr (requires { Leaf::is_exact; }) {
    typename Reducer::Words words;
    if (Leaf::template add_row_again<Reducer::of_tile>(source, group, source.n, words)) {
      if (exists && group.index() == 0) finish_row(reducer, words, source.n, row, out);
      return;
    }
  }
  reduce_slowly(reducer, source, group, source.n, exists, row, out);
}
/// Reduces a row or segment per group of threads, unless it has more than size·threads elements. The fewer
/// threads share a row, the fewer shuffles and roundings a warp executes per row.
template <int size, class Reducer>
__global__ void __launch_bounds__(window_threads, short_row_blocks<Reducer, size>)
    reduce_short_window_rows(Reducer reducer, ReaderFor<Reducer> reader, Layout l, int threads,
                             Destination out) {
  const WarpGroup group{threads};
  const std::size_t row = (std::size_t{blockIdx.x} * window_threads + threadIdx.x) >> (__ffs(threads) - 1);
  const std::size_t length = row < l.outer ? l.length(row) : 0;
  const bool exists = row < l.outer && (!l.offsets || length <= static_cast<std::size_t>(size * threads));
  const int n = exists ? static_cast<int>(length) : 0;
  const RowSource<typename Reducer::Element> source{reader, exists ? l.first(row) : 0, n, group,
                                                    reducer.kind.term};
  using Leaf = typename Reducer::template Leaf<WarpGroup>;
  typename Reducer::Words words;
  if (!Leaf::template add_row<size>(reducer, source, group, n, words))
    reduce_row_again(reducer, source, group, exists, row, out.out);
  else if (exists && group.index() == 0)
    finish_row(reducer, words, n, row, out.out);
}

/// Reduces rows on a block each, of at most size·threads elements.
template <int size, class Reducer>
__global__ void __launch_bounds__(BlockGroup::most_threads, Reducer::blocks_on_chip)
    reduce_window_rows_on_blocks(Reducer reducer, ReaderFor<Reducer> reader, Layout l, Destination out) {
  using Source = RowSource<typename Reducer::Element>;
  const int n = static_cast<int>(l.n);
  const BlockGroup group;
  const std::size_t row = blockIdx.x;
  const Source source{reader, l.first(row), n, group, reducer.kind.term};
  WindowPart<Reducer, BlockGroup, Source> part{reducer, source, group, row, l.n, n};
  part.template add<size>();
  part.finish(true, out.out);
}

/// How rows and segments are divided: each part of at most `elements` has a slot, and a warp reduces several.
struct WindowRowPlan {
  std::size_t elements;
  std::size_t parts_per_row;  ///< 1 for segments
  int slots_per_warp;         ///< at most 32
  std::size_t slots;
  std::size_t least;  ///< shorter segments are reduced as rows are
};

/// The part of a row or segment that has a slot, if it exists.
template <class Shape>
__device__ RowPart part_of_slot(const Layout& l, const WindowRowPlan& plan, std::size_t slot, bool exists) {
  if (!exists || slot >= plan.slots) return {};
  if (l.offsets) return RowPart::of_slot<Shape>(l, slot, segment_of<Shape>(l, slot), plan.least);
  const std::size_t row = quotient(slot, plan.parts_per_row);
  return {row, slot - row * plan.parts_per_row, l.n, true};
}

/// Reduces rows and segments on a warp, with tiles of `size` elements per thread. Writes the results of rows
/// of one part, and the states of the parts of all others. The threads of a warp finish its results at the
/// same time.
template <int size, class Shape, class Reducer>
__global__ void __launch_bounds__(window_threads, window_blocks<Reducer, false>)
    reduce_window_rows(Reducer reducer, ReaderFor<Reducer> reader, Layout l, WindowRowPlan plan,
                       typename Reducer::State* states, Destination out) {
  using Source = RowSource<typename Reducer::Element>;
  const std::size_t w = block_index(reducer) * (window_threads / warp) + warp_index(),
                    first = w * static_cast<std::size_t>(plan.slots_per_warp);
  const WarpGroup group{warp};
  typename Reducer::Words waiting;
  std::size_t waiting_row = 0, waiting_n = 0;
  bool has_waiting = false;
  const auto mine = part_of_slot<Shape>(l, plan, first + static_cast<std::size_t>(thread()),
                                        thread() < plan.slots_per_warp);
#pragma unroll 1
  for (unsigned left = __ballot_sync(whole_warp, mine.exists); left != 0; left &= left - 1) {
    const int i = __ffs(static_cast<int>(left)) - 1;
    const RowPart slot = mine.of_thread(i);
    const std::size_t begin = slot.part * plan.elements;
    const int n = static_cast<int>(min(slot.n - begin, plan.elements));
    const Source source{reader, l.first(slot.row) + begin, n, group, reducer.kind.term};
    WindowPart<Reducer, WarpGroup, Source> part{reducer, source, group, slot.row, slot.n, n};
    part.template add<size>();
    // Thread 0, which writes, may leave these functions apart from the others.
    if (slot.n > plan.elements) {  // the row has other parts
      part.write(states + (l.offsets ? first_state<Shape::leaf>(l, slot.row) + slot.part
                                     : first + static_cast<std::size_t>(i)));
      __syncwarp();
    } else if (!part.held) {
      reduce_slowly(reducer, source, group, n, true, slot.row, out.out);
      __syncwarp();
    } else if (thread() == i) {
      waiting = part.words;
      waiting_row = slot.row;
      waiting_n = slot.n;
      has_waiting = true;
    }
  }
  if (has_waiting) finish_row(reducer, waiting, waiting_n, waiting_row, out.out);
}

/// Plans and launches the kernels for rows and segments.
template <class Shape, class Reducer> struct WindowRowLaunch {
  static constexpr int of_tile = Reducer::of_tile, of_row = Reducer::of_row;
  /// Most elements of a row that a warp, or a part of one, holds: longer rows may have several parts.
  static constexpr std::size_t longest_held = std::min(of_row * warp, 1024);
  WindowRowPlan plan{Shape::leaf, 1, 1, 0, 0};
  bool on_blocks = false;  ///< whether a block holds a row, which is more than a warp can
  bool is_short = false;   ///< whether all segments are shorter than plan.least

  WindowRowLaunch(const Reducer& reducer, const ReaderFor<Reducer>&, const Launch& work) {
    const Layout& l = work.call.layout;
    const std::size_t elements = work.call.x.size, known = work.longest_segment;
    on_blocks = reducer.is_held() && l.n > longest_held;
    // Enough elements that a warp spends most of its time in its loop, few enough that all warps occupy a
    // GPU.
    constexpr std::size_t least = 1024, most = 8192, enough_warps = 8192;
    if (l.offsets) {
      plan.slots = count_slots(l, elements, Shape::leaf);
      if (is_exact)
        if (const std::size_t longest = longest_short_segment(l, elements, known, longest_held)) {
          plan.least = longest + 1;
          is_short = known > 0 && known <= longest;
        }
    } else if (!on_blocks) {
      plan.elements = std::clamp(l.n * l.outer / enough_warps / least * least, least, most);
      plan.parts_per_row = l.n == 0 ? 1 : (l.n - 1) / plan.elements + 1;
      plan.slots = l.outer * plan.parts_per_row;
    }
    plan.slots_per_warp = slots_per_warp(plan.slots, elements, plan.least > 0 ? warp : 16);
  }
  std::size_t states_per_row() const { return plan.parts_per_row; }

  cudaError_t operator()(const Reducer& reducer, const ReaderFor<Reducer>& reader, const Layout& l,
                         typename Reducer::State* states, Destination out, cudaStream_t stream) const {
    if (!l.offsets && l.n <= longest_held) return launch_short(reducer, reader, l, l.n, out, stream);
    if (plan.least > 0)
      if (const cudaError_t error = launch_short(reducer, reader, l, plan.least - 1, out, stream);
          error != cudaSuccess || is_short)
        return error;
    if constexpr (requires { Reducer::most_on_chip; })
      if (on_blocks)
        return launch(reduce_window_rows_on_blocks<of_tile, Reducer>, l.outer,
                      static_cast<int>((l.n - 1) / (of_tile * warp) + 1) * warp, stream, reducer, reader, l,
                      out);
    const auto kernel = reduce_window_rows<of_tile, Shape, Reducer>;
    constexpr std::size_t of_block = window_threads / warp;
    const std::size_t warps = (plan.slots - 1) / static_cast<std::size_t>(plan.slots_per_warp) + 1;
    return launch(kernel, (warps - 1) / of_block + 1, window_threads, stream, reducer, reader, l, plan,
                  states, out);
  }

 private:
  static constexpr bool is_exact = requires { Reducer::template Leaf<WarpGroup>::is_exact; };

  /// Launches the kernel for rows, or segments, of at most n elements.
  static cudaError_t launch_short(const Reducer& reducer, const ReaderFor<Reducer>& reader, const Layout& l,
                                  std::size_t n, Destination out, cudaStream_t stream) {
    const auto run = [&]<int size>(std::size_t threads) {
      const std::size_t all = l.outer * threads;
      return launch(reduce_short_window_rows<size, Reducer>, (all - 1) / window_threads + 1, window_threads,
                    stream, reducer, reader, l, static_cast<int>(threads), out);
    };
    n = std::bit_ceil(n);
    if (reducer.is_wide()) return run.template operator()<8>(std::clamp<std::size_t>(n / 4, 1, warp));
    if constexpr (of_row > 8)
      if (n <= 8) return run.template operator()<8>(1);
    if constexpr (of_row > 16)
      if (n <= 64) return run.template operator()<16>(std::max<std::size_t>(n / 16, 1));
    if constexpr (of_row > 32)
      if (n <= 256) return run.template operator()<32>(n / 32);
    return run.template operator()<of_row>(std::max<std::size_t>(n / of_row, 1));
  }
};

inline constexpr int window_column_threads = 256;
/// Minimum resident blocks per multiprocessor of kernels for columns.
template <class Reducer>
inline constexpr int column_blocks = Reducer::what == ExactlySummed::elements ? 4
                                     : sizeof(typename Reducer::Element) == 8 ? 2
                                                                              : 3;

/// Reduces columns, with tiles of `size` elements. Each thread reduces a part of one column, of `rows`
/// elements; neighbouring threads have neighbouring columns. Writes states if a column has several parts.
template <int size, class Reducer>
__global__ void __launch_bounds__(window_column_threads, column_blocks<Reducer>)
    reduce_window_columns(Reducer reducer, ReaderFor<Reducer> reader, Layout l, int rows, std::size_t parts,
                          typename Reducer::State* states, Destination out) {
  using Source = ColumnSource<typename Reducer::Element>;
  const std::size_t id = block_index(reducer) * window_column_threads + threadIdx.x,
                    k = quotient(id, l.results()), at = id - k * l.results(),
                    begin = k * static_cast<std::size_t>(rows);
  const OneThread group{__ballot_sync(whole_warp, k < parts)};
  if (k >= parts) return;
  const int n = static_cast<int>(min(l.n - begin, static_cast<std::size_t>(rows)));
  const Source source{reader.moved(column_place(l, at) + begin * l.stride), l.stride, n, reducer.kind.term};
  WindowPart<Reducer, OneThread, Source> part{reducer, source, group, at, l.n, n};
  part.template add<size>();
  if (parts == 1)
    part.finish(true, out.out);
  else
    part.write(states + at * parts + k);
}

/// Divides columns into parts, and launches their kernel. A part has `rows` elements, at most a leaf, and few
/// enough that the parts occupy all threads of a GPU without exceeding them by much.
template <class Shape, class Reducer> struct WindowColumnLaunch {
  int rows;
  std::size_t parts;  ///< states per result

  explicit WindowColumnLaunch(const Layout& l) {
    // Whole waves of blocks on 132 multiprocessors.
    constexpr std::size_t least = 64, at_once = column_blocks<Reducer> == 3 ? 98000 : 130000;
    const std::size_t wanted = std::max<std::size_t>(at_once / std::max<std::size_t>(l.results(), 1), 1),
                      each = std::clamp((l.n - 1) / wanted + 1, least, Shape::leaf);
    rows = static_cast<int>(each);
    parts = l.n == 0 ? 1 : (l.n - 1) / each + 1;
  }
  cudaError_t operator()(const Reducer& reducer, const ReaderFor<Reducer>& reader, const Layout& l,
                         typename Reducer::State* states, Destination out, cudaStream_t stream) const {
    constexpr int of_tile = Reducer::what == ExactlySummed::elements ? 16 : 8;
    const auto kernel =
        l.n <= 8 ? reduce_window_columns<8, Reducer> : reduce_window_columns<of_tile, Reducer>;
    return launch(kernel, (l.results() * parts - 1) / window_column_threads + 1, window_column_threads,
                  stream, reducer, reader, l, rows, parts, states, out);
  }
};

}  // namespace
}  // namespace samesum::gpu
