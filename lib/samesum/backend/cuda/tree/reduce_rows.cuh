/// Reduces rows and segments: a warp, or a part of one, reduces leaves of a row.
#pragma once

#include "samesum/backend/cuda/device/call.hpp"
#include "samesum/backend/cuda/device/segments.cuh"
#include "samesum/backend/cuda/tree/spread_rows.cuh"
#include "samesum/backend/cuda/tree/warp_reduce.cuh"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

/// Whether a warp reduces short rows two at a time: only if the reducer computes little.
template <class Shape, class Reducer, class Reader>
inline constexpr bool takes_two_rows =
    Shape::in_turn && !Shape::combines_only_neighbours && sizeof(typename Reducer::State) <= 8 &&
    sizeof(typename Reader::Raw) <= 16;

/// Threads per block. Small blocks balance better; a large block is used only where a whole row then fits one
/// tile.
inline constexpr int most_reduce_threads = 256;
inline constexpr int reduce_warps = 128 / warp, most_reduce_warps = most_reduce_threads / warp;

/// Distribution of rows over warps and blocks.
struct RowPlan {
  bool two_rows_per_warp;  ///< a warp computes two rows at a time
  bool spreads;            ///< there are enough warps for lanes 32 apart, of which fewer loads are in flight
  /// Leaves that a warp reduces one after another: 1, 2 or 4 leaves of a row, which it merges, or the leaves
  /// of up to 32 slots of segments.
  int leaves_per_warp;
  int warps_per_tile;         ///< a power of two; they reduce parts of one row and merge their states
  std::size_t tiles_per_row;  ///< tiles per row
  std::size_t total_warps;    ///< warps of all blocks
  std::size_t slots = 0;      ///< slots of the leaves of segments
  std::size_t least = 0;      ///< shorter segments are reduced by reduce_short_rows
};

/// Minimum resident blocks per multiprocessor for __launch_bounds__: the most that leave each thread enough
/// registers.
template <class Shape, class Reducer>
inline constexpr int reduce_resident_blocks = Shape::in_turn && sizeof(typename Reducer::State) <= 8 ? 3 : 2;

/// Reduces two short rows on one warp.
template <class Shape, class Reducer, class Reader>
__device__ __forceinline__ void reduce_row_pair(const Reducer& reducer, const Reader& reader, const Layout& l,
                                                std::size_t w, Destination out) {
  const std::size_t row[2] = {2 * w, min(2 * w + 1, l.outer - 1)};
  typename Reducer::State both[2];
  LeafOf<Shape, Reducer, Reader>::two_leaves(reducer, reader, {l.first(row[0]), l.first(row[1])},
                                             static_cast<int>(l.n), both);
  if (thread() > 0) return;
  out.write(reducer, both[0], l.n, row[0]);
  out.write(reducer, both[1], l.n, row[1]);
}

/// The leaves of a row that a warp reduces.
struct WarpLeaves {
  std::size_t row;
  std::size_t first;  ///< index of the first leaf in its row
  std::size_t tile;   ///< index of the tile in its row
  bool exist;
};

/// The leaves of warp w.
__device__ __forceinline__ WarpLeaves leaves_of_warp(const Layout& l, const RowPlan& plan, std::size_t w) {
  const int log2_warps = __ffs(plan.warps_per_tile) - 1;
  WarpLeaves mine{w >> log2_warps, 0, 0, w < plan.total_warps};
  if (plan.tiles_per_row > 1) {
    mine.tile = mine.row % plan.tiles_per_row;
    mine.row /= plan.tiles_per_row;
  }
  mine.first = ((mine.tile << log2_warps) + (w & static_cast<std::size_t>(plan.warps_per_tile - 1))) *
               static_cast<std::size_t>(plan.leaves_per_warp);
  mine.exist = mine.exist && mine.row < l.outer;
  return mine;
}

/// Finds the segments of the leaves of the slots of warp w, side by side. Returns a bit per slot, which is
/// set if the slot has a leaf that the warp reduces.
template <class Shape>
__device__ __forceinline__ unsigned find_segments(const Layout& l, const RowPlan& plan, std::size_t w,
                                                  std::size_t* segment) {
  const auto of_warp = static_cast<std::size_t>(plan.leaves_per_warp),
             mine = static_cast<std::size_t>(thread()), slot = w * of_warp + mine;
  bool exists = false;
  if (mine < of_warp && slot < plan.slots) {
    segment[mine] = segment_of<Shape>(l, slot);
    exists = RowPart::of_slot<Shape>(l, slot, segment[mine], plan.least).exists;
  }
  __syncwarp();  // all threads have written their segments
  return __ballot_sync(whole_warp, exists);
}

/// Merges the states of the warps of a tile by stride doubling. Only the first thread of the tile calls it.
template <class Reducer>
__device__ __forceinline__ void merge_tile(const Reducer& reducer, const RowPlan& plan, std::size_t first,
                                           std::size_t leaves, typename Reducer::State* states,
                                           typename Reducer::State& state) {
  const std::size_t per_warp = static_cast<std::size_t>(plan.leaves_per_warp),
                    left = (leaves - min(first, leaves) + per_warp - 1) / per_warp;
  const int members = static_cast<int>(min(left, static_cast<std::size_t>(plan.warps_per_tile)));
  for (int stride = 1; stride < members; stride *= 2)
    for (int i = 0; i + stride < members; i += 2 * stride) reducer.merge(states[i], states[i + stride]);
  state = states[0];
}

/// Reduces rows and segments. For rows of several tiles and segments of several leaves, writes states to
/// `states`; for all others, writes results to `out`.
///
/// One kernel for all plans: the code of a leaf is inlined and makes up nearly all of it, so a kernel per
/// plan would multiply the code.
template <class Shape, bool spreads, class Reducer, class Reader>
__global__ void __launch_bounds__(most_reduce_threads, reduce_resident_blocks<Shape, Reducer>)
    reduce_rows(Reducer reducer, Reader reader, Layout l, RowPlan plan, typename Reducer::State* states,
                Destination out) {
  using State = typename Reducer::State;
  __shared__ alignas(16) unsigned char memory[most_reduce_warps * sizeof(State)];
  State* shared = reinterpret_cast<State*>(memory);
  const std::size_t w = std::size_t{blockIdx.x} * warps() + static_cast<std::size_t>(warp_index());
  if constexpr (takes_two_rows<Shape, Reducer, Reader>)
    if (plan.two_rows_per_warp) {
      if (w >= plan.total_warps) return;
      reduce_row_pair<Shape>(reducer, reader, l, w, out);
      return;
    }
  const WarpLeaves mine = l.offsets ? WarpLeaves{} : leaves_of_warp(l, plan, w);
  const std::size_t n = mine.exist ? l.n : 0, leaves = Shape::leaves(n);
  // The segments of the slots lie in shared memory, since the loop needs all registers.
  __shared__ std::size_t segment_of_slot[most_reduce_warps][warp];
  const auto slot = [&](int i) {
    return w * static_cast<std::size_t>(plan.leaves_per_warp) + static_cast<std::size_t>(i);
  };
  const auto part_of_slot = [&](int i) {
    return RowPart::of_slot<Shape>(l, slot(i), segment_of_slot[warp_index()][i], 0);
  };
  unsigned left = (1u << (plan.leaves_per_warp & 31)) - 1;
  if (l.offsets) left = find_segments<Shape>(l, plan, w, segment_of_slot[warp_index()]);
  State state, even, half;
#pragma unroll 1
  for (; left != 0; left &= left - 1) {
    const int i = __ffs(static_cast<int>(left)) - 1;
    RowPart leaf{mine.row, mine.first + static_cast<std::size_t>(i), n, mine.exist};
    if (l.offsets) leaf = part_of_slot(i);
    const std::size_t begin = min(leaf.part * Shape::leaf, leaf.n);
    state = LeafOf<Shape, Reducer, Reader>::template leaf<spreads>(
        reducer, reader, leaf.exists ? l.first(leaf.row) + begin : 0, begin,
        static_cast<int>(min(leaf.n - begin, Shape::leaf)));
    if (l.offsets) {
      if (thread() == 0) {
        const RowPart written = part_of_slot(i);
        if (written.n > Shape::leaf)
          states[first_state<Shape::leaf>(l, written.row) + written.part] = state;
        else
          out.write(reducer, written.n == 0 ? State{} : state, written.n, written.row);
      }
      __syncwarp();  // thread 0 has written apart from the others
      continue;
    }
    // One, two or four leaves of a row, merged by stride doubling.
    if (i % 2 == 0) {
      even = state;
      continue;
    }
    if (mine.first + static_cast<std::size_t>(i) < leaves) reducer.merge(even, state);
    state = even;
    if (i == 1) half = state;
    if (i == 3) {
      if (mine.first + 2 < leaves) reducer.merge(half, state);
      state = half;
    }
  }
  if (l.offsets) return;
  if (plan.warps_per_tile > 1) {
    if (thread() == 0) shared[warp_index()] = state;
    __syncthreads();  // all warps have written their states
    if (thread() > 0 || w % static_cast<std::size_t>(plan.warps_per_tile) > 0) return;
    merge_tile(reducer, plan, mine.first, leaves, shared + warp_index(), state);
  }
  if (!mine.exist || thread() > 0) return;
  if (plan.tiles_per_row == 1) {
    if (n == 0) state = State{};
    out.write(reducer, state, n, mine.row);
  } else {
    states[mine.row * plan.tiles_per_row + mine.tile] = state;
  }
}

/// Plans the rows of a layout without offsets. Sets `block`, the warps per block.
template <class Shape, class Reducer, class Reader>
RowPlan plan_rows(const Layout& l, const Reader& reader, int& block) {
  const std::size_t leaves = std::max<std::size_t>(Shape::leaves(l.n), 1);
  constexpr std::size_t many_leaves = 2048;
  RowPlan plan{false, l.outer * leaves >= many_leaves, 1, 1, leaves, 0};
  // Many rows of 5 to 32 leaves: each warp reduces two or four leaves, so that a row is one tile and needs no
  // merge kernel. Longer rows with many leaves in all: each warp reduces two leaves, which halves the number
  // of blocks and their fixed costs.
  if (leaves > reduce_warps && leaves <= 4 * most_reduce_warps && l.outer >= 2048)
    plan.leaves_per_warp = leaves <= 2 * reduce_warps ? 2 : 4;
  else if (leaves > 4 * most_reduce_warps && l.outer * leaves >= 32768)
    plan.leaves_per_warp = 2;
  const std::size_t parts = (leaves - 1) / static_cast<std::size_t>(plan.leaves_per_warp) + 1;
  if (parts > reduce_warps && parts <= most_reduce_warps) block = most_reduce_warps;
  plan.warps_per_tile =
      static_cast<int>(std::min<std::size_t>(std::bit_ceil(parts), static_cast<std::size_t>(block)));
  plan.tiles_per_row = (parts - 1) / static_cast<std::size_t>(plan.warps_per_tile) + 1;
  if constexpr (takes_two_rows<Shape, Reducer, Reader>)
    plan.two_rows_per_warp =
        l.n > Shape::lanes && l.n <= LeafOf<Shape, Reducer, Reader>::short_leaf && reader.inputs() == 1;
  const std::size_t rows_of_warp = plan.two_rows_per_warp ? 2 : 1;
  plan.total_warps =
      (l.outer * plan.tiles_per_row * static_cast<std::size_t>(plan.warps_per_tile) + rows_of_warp - 1) /
      rows_of_warp;
  return plan;
}

/// Threads per block of reduce_short_rows, which has a kernel of its own since it needs few registers: more
/// warps then hide the latency of memory.
inline constexpr int short_row_threads = 256;

/// Reduces rows of at most one element per lane, most of which spread_rows.cuh reduces otherwise, on
/// `threads` threads each, a power of two; and the segments that have at most four elements per thread.
template <class Shape, class Reducer, class Reader>
__global__ void __launch_bounds__(short_row_threads)
    reduce_short_rows(Reducer reducer, Reader reader, Layout l, int threads, Destination out) {
  const std::size_t row = (std::size_t{blockIdx.x} * short_row_threads + threadIdx.x) >> (__ffs(threads) - 1);
  const std::size_t n = row < l.outer ? l.length(row) : l.n;
  const bool exists = row < l.outer && (!l.offsets || n <= static_cast<std::size_t>(4 * threads));
  typename Reducer::State state = LeafOf<Shape, Reducer, Reader>::short_row(
      reducer, reader, exists ? l.first(row) : 0, exists, static_cast<int>(n), !l.offsets, threads);
  if (!exists || (thread() & (threads - 1)) != 0) return;
  if (n == 0) state = typename Reducer::State{};
  out.write(reducer, state, n, row);
}

/// Rows that spread_rows.cuh may reduce have at most so many elements. Rows of 1024 are the first that
/// reduce_rows loads as fast, unless they are doubles.
template <class Shape, class Reducer, class Reader>
inline constexpr std::size_t longest_spread_row =
    Shape::in_turn ? 1023 + (sizeof(typename Reader::Raw) > 16 && has_light_rows<Reducer>) : Shape::lanes;
template <class Shape, class Reducer, class Reader>
requires requires { Reducer::FastPath::longest_row; }
inline constexpr std::size_t longest_spread_row<Shape, Reducer, Reader> =
    Shape::in_turn ? Reducer::FastPath::longest_row : Shape::lanes;

/// Whether spread_rows.cuh has the fastest kernel for the rows of a layout. A warp reduces four rows, so a
/// few long rows would occupy too few warps. Rows of many elements that are only added are bound by loads,
/// which reduce_rows makes of 16 bytes each.
template <class Shape, class Reducer, class Reader>
bool suits_spread_rows(const Layout& l, const Reader& reader) {
  static_assert(longest_spread_row<Shape, Reducer, Reader> <= Shape::leaf);
  if (l.n <= warp || l.n == 2 * warp || l.n > longest_spread_row<Shape, Reducer, Reader>) return false;
  if (l.n > Shape::lanes && l.outer < std::max<std::size_t>(4096, 8 * l.n)) return false;
  const bool loads_fours = takes_two_rows<Shape, Reducer, Reader> && reader.inputs() == 1 && l.n % 4 == 0;
  return !loads_fours || l.n <= 2 * Shape::lanes;
}

/// Plans the kernels for rows and segments, and launches the one that suits.
template <class Shape, class Reducer, class Reader> struct RowLaunch {
  int block = reduce_warps;  ///< warps per block
  RowPlan plan{false, false, 1, 1, 1, 0};

  bool is_short = false;  ///< whether all segments are shorter than plan.least

  RowLaunch(const Reducer&, const Reader& reader, const Launch& work) {
    const Layout& l = work.call.layout;
    const std::size_t elements = work.call.x.size, known = work.longest_segment;
    if (!l.offsets) {
      plan = plan_rows<Shape, Reducer>(l, reader, block);
      return;
    }
    plan.slots = count_slots(l, elements, Shape::leaf);
    plan.leaves_per_warp = slots_per_warp(plan.slots, elements, warp);
    plan.total_warps = (plan.slots - 1) / static_cast<std::size_t>(plan.leaves_per_warp) + 1;
    if constexpr (!Shape::combines_only_neighbours)
      if (const std::size_t longest = longest_short_segment(l, elements, known, Shape::lanes)) {
        plan.least = longest + 1;
        is_short = known > 0 && known <= longest;
      }
  }
  std::size_t states_per_row() const { return plan.tiles_per_row; }

  cudaError_t operator()(const Reducer& reducer, const Reader& reader, const Layout& l,
                         typename Reducer::State* states, Destination out, cudaStream_t stream) const {
    if constexpr (!Shape::combines_only_neighbours) {
      static_assert(Shape::lanes == SpreadLanes::all);
      if (!l.offsets && suits_spread_rows<Shape, Reducer>(l, reader)) {
        constexpr std::size_t rows = spread_threads / warp * spread_rows;
        const auto launch_for = [&](auto one_row_of_lanes) {
          return launch(reduce_spread_rows<one_row_of_lanes, Reducer, Reader>, (l.outer - 1) / rows + 1,
                        spread_threads, stream, reducer, reader, l, out);
        };
        if constexpr (Shape::in_turn)
          if (l.n > Shape::lanes) return launch_for(Constant<false>{});
        return launch_for(Constant<true>{});
      }
      const auto launch_short = [&](std::size_t n) {  // four elements per thread
        const std::size_t threads = std::max<std::size_t>(std::bit_ceil(n) / 4, 1);
        return launch(reduce_short_rows<Shape, Reducer, Reader>,
                      (l.outer * threads - 1) / short_row_threads + 1, short_row_threads, stream, reducer,
                      reader, l, static_cast<int>(threads), out);
      };
      if (!l.offsets && l.n <= Shape::lanes) return launch_short(l.n);
      if (plan.least > 0)
        if (const cudaError_t error = launch_short(plan.least - 1); error != cudaSuccess || is_short)
          return error;
    }
    auto kernel = reduce_rows<Shape, false, Reducer, Reader>;
    if constexpr (LeafOf<Shape, Reducer, Reader>::may_spread)
      if (plan.spreads) kernel = reduce_rows<Shape, true, Reducer, Reader>;
    return launch(kernel, (plan.total_warps - 1) / static_cast<std::size_t>(block) + 1, block * warp, stream,
                  reducer, reader, l, plan, states, out);
  }
};

}  // namespace samesum::gpu
