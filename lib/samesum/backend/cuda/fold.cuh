/// Folds on a GPU: a warp computes a leaf of a row, or a thread a leaf of a column; leaves meet in a kernel
/// of their own. Who computes what when cannot change the bits.
#pragma once

#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/warp_fold.cuh"
#include "samesum/operation/layout.hpp"

namespace samesum::gpu {

/// Whether short rows are taken two at a time: where there is little to compute.
template <class Shape, class Fold>
inline constexpr bool pairs_rows =
    Shape::in_turn && !Shape::joins_neighbours && sizeof(typename Fold::State) <= 8;

/// Of a block. Small ones begin and end more evenly; large ones are for rows that are one tile then.
inline constexpr int fold_threads = 128, most_fold_threads = 256;
inline constexpr int fold_warps = fold_threads / warp, most_fold_warps = most_fold_threads / warp;

/// How rows are shared out.
struct RowPlan {
  int threads;        ///< that share a row: 32, or 8 or 16 where a row has no more lanes than they hold
  bool pairs;         ///< a warp computes two rows at a time
  int each;           ///< leaves that a warp computes one after another and merges: a power of two
  int tile;           ///< warps of a block whose leaves are one row's, and meet: a power of two
  std::size_t tiles;  ///< of a row
  std::size_t warps;  ///< in all
};

/// Segments: leaf k of segment o has slot offsets[o] / leaf + o + k, so that slots are known without
/// counting.
template <std::size_t leaf> __device__ std::size_t first_slot(const Layout& l, std::size_t o) {
  return static_cast<std::size_t>(l.offsets[o] - l.offsets[0]) / leaf + o;
}
template <class Shape> __device__ std::size_t segment_of(const Layout& l, std::size_t slot) {
  std::size_t low = 0, high = l.outer - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (first_slot<Shape::leaf>(l, middle) <= slot)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// Blocks that share a multiprocessor: as many as leave each thread the registers it needs.
template <class Shape, class Fold>
inline constexpr int fold_blocks = Shape::in_turn && sizeof(typename Fold::State) <= 8 ? 3 : 2;

/// Rows and segments. What is more than a tile goes to `states`.
template <class Shape, class Fold, class Reader>
__global__ void __launch_bounds__(most_fold_threads, fold_blocks<Shape, Fold>)
    fold_rows(Fold fold, Reader reader, Layout l, RowPlan plan, typename Fold::State* states, void* out) {
  using State = typename Fold::State;
  __shared__ alignas(16) unsigned char memory[most_fold_warps * sizeof(State)];
  State* shared = reinterpret_cast<State*>(memory);
  const std::size_t w = std::size_t{blockIdx.x} * warps() + static_cast<std::size_t>(warp_index());
  if constexpr (pairs_rows<Shape, Fold>)
    if (plan.pairs) {
      using Leaf = LeafOf<Shape, Fold, Reader>;
      if (w >= plan.warps) return;
      const std::size_t row[2] = {2 * w, min(2 * w + 1, l.outer - 1)};
      State both[2];
      Leaf::two_leaves(fold, reader, {l.first(row[0]), l.first(row[1])}, static_cast<int>(l.n), both);
      if (thread() > 0) return;
      fold.finish(both[0], l.n, row[0], out);
      fold.finish(both[1], l.n, row[1], out);
      return;
    }
  std::size_t o, k, q = 0;
  bool is_there = w < plan.warps;
  if (l.offsets) {
    o = segment_of<Shape>(l, w);
    k = w - first_slot<Shape::leaf>(l, o);
    is_there = is_there && k < max(Shape::leaves(l.length(o)), std::size_t{1});
  } else {
    const int log2_tile = __ffs(plan.tile) - 1;  // a power of two
    o = w >> log2_tile;
    if (plan.tiles > 1) {
      q = o % plan.tiles;
      o /= plan.tiles;
    }
    k = ((q << log2_tile) + (w & static_cast<std::size_t>(plan.tile - 1))) *
        static_cast<std::size_t>(plan.each);
    if (plan.threads < warp)
      o = w * static_cast<std::size_t>(warp / plan.threads) +
          static_cast<std::size_t>(thread() / plan.threads);
    is_there = is_there && o < l.outer;
  }
  const std::size_t n = is_there ? l.length(o) : 0, leaves = Shape::leaves(n);
  const auto leaf = [&](std::size_t at) {
    const std::size_t begin = min(at * Shape::leaf, n);
    return LeafOf<Shape, Fold, Reader>::leaf(fold, reader, is_there ? l.first(o) + begin : 0, begin,
                                             static_cast<int>(min(n - begin, Shape::leaf)), plan.threads);
  };
  State state, even, half;
#pragma unroll 1
  for (int i = 0; i < plan.each; ++i) {  // one, two or four leaves, by stride doubling
    state = leaf(k + static_cast<std::size_t>(i));
    if (i % 2 == 0) {
      even = state;
      if (i == plan.each - 1) break;
      continue;
    }
    if (k + static_cast<std::size_t>(i) < leaves) fold.merge(even, state);
    state = even;
    if (i == 1) half = state;
    if (i == 3) {
      if (k + 2 < leaves) fold.merge(half, state);
      state = half;
    }
  }
  if (plan.tile > 1) {
    if (thread() == 0) shared[warp_index()] = state;
    __syncthreads();  // the states of a tile
    if (thread() > 0 || w % static_cast<std::size_t>(plan.tile) > 0) return;
    const std::size_t each = static_cast<std::size_t>(plan.each),
                      left = (leaves - min(k, leaves) + each - 1) / each;
    const int members = static_cast<int>(min(left, static_cast<std::size_t>(plan.tile)));
    State* tile = shared + warp_index();
    for (int stride = 1; stride < members; stride *= 2)
      for (int i = 0; i + stride < members; i += 2 * stride) fold.merge(tile[i], tile[i + stride]);
    state = tile[0];
  }
  if (!is_there || thread() % plan.threads > 0) return;
  if (l.offsets ? leaves <= 1 : plan.tiles == 1) {
    if (n == 0) state = State{};
    fold.finish(state, n, o, out);
  } else {
    states[l.offsets ? w : o * plan.tiles + q] = state;
  }
}

/// One lane of the n elements of a leaf, the first of which is at `place` and has the index `base`; they are
/// `stride` apart. lane < n.
template <class Shape, class Fold, class Reader>
__device__ __forceinline__ typename Fold::State column_lane(const Fold& fold, const Reader& reader,
                                                            std::size_t place, std::size_t stride,
                                                            std::uint64_t base, int lane, int n) {
  using One = Lanes<Shape, Fold, 1>;
  constexpr int lanes = Shape::lanes, rows = 16;  // in flight
  One one;
  const int count = (n - lane + lanes - 1) / lanes, groups = One::groups(count);
#pragma unroll 1
  for (int g = 0; g < groups; g += rows / One::rows) {
    const int row = g * One::rows, at = row * lanes + lane;
    typename Reader::Element e[rows];
    typename Fold::Item x[rows];
    reader.column(place + static_cast<std::size_t>(at) * stride, lanes * stride, count - row, base, at, lanes,
                  e);
    items_of(fold, e, x);
#pragma unroll
    for (int q = 0; q < rows / One::rows; ++q) {
      if (g + q >= groups) break;
      const int have[1] = {count - row - q * One::rows};
      typename Fold::Item four[One::rows][1];
      for (int r = 0; r < One::rows; ++r) four[r][0] = x[q * One::rows + r];
      if (have[0] >= One::rows)
        one.template add<true>(fold, g + q, four, have);
      else
        one.template add<false>(fold, g + q, four, have);
    }
  }
  return one.sum[0];
}

inline constexpr int column_threads = 128;

/// Columns: a thread reads one leaf of one, lane by lane in the order in which halves meet, so that seven
/// states wait at most. Neighbouring threads read neighbouring elements.
template <class Shape, class Fold, class Reader>
__global__ void __launch_bounds__(column_threads)
    fold_columns(Fold fold, Reader reader, Layout l, typename Fold::State* states, void* out) {
  using State = typename Fold::State;
  constexpr int lanes = Shape::lanes, levels = static_cast<int>(ceil_log2(Shape::lanes));
  __shared__ alignas(16) unsigned char memory[(levels > 0 ? levels : 1) * column_threads * sizeof(State)];
  State* waiting = reinterpret_cast<State*>(memory) + threadIdx.x;
  const std::size_t across = (l.inner - 1) / column_threads + 1,
                    leaves = max(Shape::leaves(l.n), std::size_t{1});
  const std::size_t i = blockIdx.x % across * column_threads + threadIdx.x;
  const std::size_t k = blockIdx.x / across % leaves, o = blockIdx.x / across / leaves;
  if (i >= l.inner) return;
  const int n = static_cast<int>(min(l.n - k * Shape::leaf, Shape::leaf));
  const std::size_t place = l.first(o) + k * Shape::leaf * l.stride + i;
  const auto lane_of = [](int turn) {
    return levels == 0 ? 0 : static_cast<int>(__brev(static_cast<unsigned>(turn)) >> (32 - levels) % 32);
  };
  State state{};
#pragma unroll 1
  for (int turn = 0; turn < lanes; ++turn) {
    const int lane = lane_of(turn);
    if (lane < n) state = column_lane<Shape>(fold, reader, place, l.stride, k * Shape::leaf, lane, n);
    int level = 0;
    for (; turn >> level & 1; ++level) {
      State left = waiting[level * column_threads];
      if (lane_of(turn + 1 - (1 << level)) < n)
        fold.merge(left, state);  // the first of the lanes that are joined
      state = left;
    }
    if (level < levels) waiting[level * column_threads] = state;
  }
  const std::size_t at = o * l.inner + i;
  if (leaves == 1)
    fold.finish(state, l.n, at, out);
  else
    states[at * leaves + k] = state;
}

/// The most threads of a block that merges states. Without the bound, large states would take more registers
/// than so many threads have.
inline constexpr int merge_threads = 1024;

/// One level of `count` states for each of `results` results: a block merges a group of them.
template <class Fold>
__global__ void __launch_bounds__(merge_threads)
    merge_states(Fold fold, const typename Fold::State* from, std::size_t count, std::size_t groups,
                 std::size_t n, typename Fold::State* to, void* out) {
  using State = typename Fold::State;
  __shared__ alignas(16) unsigned char memory[warp * sizeof(State)];
  const std::size_t at = blockIdx.x / groups, g = blockIdx.x % groups,
                    begin = g * group_size(static_cast<int>(blockDim.x));
  const std::size_t members = min(count - begin, group_size(static_cast<int>(blockDim.x)));
  const State state = merge_group(from + at * count + begin, static_cast<int>(members),
                                  reinterpret_cast<State*>(memory), fold);
  if (threadIdx.x > 0) return;
  if (groups == 1)
    fold.finish(state, n, at, out);
  else
    to[at * groups + g] = state;
}

/// The segments of more than one leaf: a block merges those of its threads, one after another.
template <std::size_t leaf, class Fold>
__global__ void __launch_bounds__(fold_threads)
    merge_segments(Fold fold, Layout l, const typename Fold::State* states, void* out) {
  using State = typename Fold::State;
  using Waiting = WaitingStates<State>;
  constexpr std::size_t size = group_size(fold_threads);
  __shared__ alignas(16) unsigned char memory[warp * sizeof(State)], waiting_memory[sizeof(Waiting)];
  __shared__ int count, segment[fold_threads];
  Waiting& waiting = *reinterpret_cast<Waiting*>(waiting_memory);
  const std::size_t first = std::size_t{blockIdx.x} * fold_threads, own = first + threadIdx.x;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();  // nothing has been found
  if (own < l.outer && l.length(own) > leaf) segment[atomicAdd(&count, 1)] = static_cast<int>(threadIdx.x);
  __syncthreads();  // all have been found
  for (int s = 0; s < count; ++s) {
    const std::size_t o = first + static_cast<std::size_t>(segment[s]), n = l.length(o),
                      leaves = (n - 1) / leaf + 1;
    const std::size_t groups = (leaves - 1) / size + 1;
    const State* of_leaf = states + first_slot<leaf>(l, o);
    for (std::size_t g = 0; g < groups; ++g) {
      const State state = merge_group(of_leaf + g * size, static_cast<int>(min(leaves - g * size, size)),
                                      reinterpret_cast<State*>(memory), fold);
      __syncthreads();  // what is shared may change
      if (threadIdx.x == 0) waiting.put(fold, g, state);
    }
    if (threadIdx.x == 0) fold.finish(waiting.merged(fold, groups), n, o, out);
  }
}

/// The leaves that a block of `fold_again` computes at a time: a power of two.
inline constexpr int again_leaves = 8;

/// Computes results once more, of any layout: those that the fold wants. A block looks at `each` results, at
/// most one for each of its threads, and computes those that it found one after another, a lane in each
/// thread.
template <class Shape, class Fold, class Reader>
__global__ void __launch_bounds__(again_leaves* static_cast<int>(Shape::lanes))
    fold_again(Fold fold, Reader reader, Layout l, int each, void* out) {
  using State = typename Fold::State;
  using Waiting = WaitingStates<State>;
  constexpr int lanes = Shape::lanes, threads = again_leaves * lanes;
  __shared__ alignas(16) unsigned char memory[threads * sizeof(State)], waiting_memory[sizeof(Waiting)];
  State* shared = reinterpret_cast<State*>(memory);
  Waiting& waiting = *reinterpret_cast<Waiting*>(waiting_memory);
  const int t = static_cast<int>(threadIdx.x), lane = t % lanes;
  const std::size_t first = std::size_t{blockIdx.x} * each, end = min(l.results(), first + each),
                    own = first + threadIdx.x;
  if (!__syncthreads_or(own < end && fold.is_wanted(own, out))) return;
  for (std::size_t at = first; at < end; ++at) {
    const std::size_t o = at / l.inner, n = l.length(o), leaves = Shape::leaves(n);
    if (n == 0 || !fold.is_wanted(at, out)) continue;
    const std::size_t stride = l.stride, place = l.first(o) + at % l.inner,
                      rounds = (leaves - 1) / again_leaves + 1;
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t k = round * again_leaves + static_cast<std::size_t>(t / lanes),
                        begin = min(k * Shape::leaf, n);
      const int members = static_cast<int>(min(n - begin, Shape::leaf));
      if (lane < members)
        shared[t] = column_lane<Shape>(fold, reader, place + begin * stride, stride, begin, lane, members);
      for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();  // the lanes that meet now
        if (lane < half && lane + half < members) fold.merge(shared[t], shared[t + half]);
      }
      __syncthreads();  // the leaves
      if (t == 0) {
        const int have = static_cast<int>(min(leaves - round * again_leaves, std::size_t{again_leaves}));
        for (int apart = 1; apart < have; apart *= 2)
          for (int i = 0; i + apart < have; i += 2 * apart)
            fold.merge(shared[i * lanes], shared[(i + apart) * lanes]);
        waiting.put(fold, round, shared[0]);
      }
      __syncthreads();  // the lanes of the next leaves replace these
    }
    if (t == 0) fold.finish(waiting.merged(fold, rounds), n, at, out);
  }
}

// --- on the host ----------------------------------------------------------------------------------------

/// A reduction whose pointers are all to device memory.
struct FoldCall {
  Layout layout;
  std::size_t elements;  ///< at least what the segments hold
  void* out;
  void* workspace;  ///< null: only `bytes` is set
  std::size_t bytes;
  cudaStream_t stream;
};

/// Enqueues it. Of no results nothing is launched.
template <class Shape, class Fold, class Reader>
cudaError_t reduce(const Fold& fold, const Reader& reader, FoldCall& call) {
  using State = typename Fold::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>,
                "samesum: a state is made of words of 4 bytes, and is copied like one");
  const Layout& l = call.layout;
  const std::size_t results = l.results(), leaves = std::max<std::size_t>(Shape::leaves(l.n), 1);
  const bool columns = !l.offsets && (l.inner > 1 || l.stride != 1);
  RowPlan plan{warp, false, 1, 1, leaves, 0};
  int block = fold_warps;
  if (l.offsets) {
    plan.warps = call.elements / Shape::leaf + l.outer;
  } else if (!columns) {
    if (!Shape::joins_neighbours && l.n <= Shape::lanes) plan.threads = l.n <= 32 ? 8 : l.n <= 64 ? 16 : warp;
    // Many rows of few tiles: one tile each, and nothing is left to merge. Much of long rows: half the
    // blocks, each of which begins and ends once.
    if (leaves > fold_warps && leaves <= 4 * most_fold_warps && l.outer >= 2048)
      plan.each = leaves <= 2 * fold_warps ? 2 : 4;
    else if (leaves > 4 * most_fold_warps && l.outer * leaves >= 32768)
      plan.each = 2;
    const std::size_t parts = (leaves - 1) / static_cast<std::size_t>(plan.each) + 1;
    if (parts > fold_warps && parts <= most_fold_warps) block = most_fold_warps;
    plan.tile =
        static_cast<int>(std::min<std::size_t>(std::bit_ceil(parts), static_cast<std::size_t>(block)));
    plan.tiles = (parts - 1) / static_cast<std::size_t>(plan.tile) + 1;
    if constexpr (pairs_rows<Shape, Fold>)
      plan.pairs =
          l.n > Shape::lanes && l.n <= LeafOf<Shape, Fold, Reader>::short_leaf && reader.inputs() == 1;
    const std::size_t rows_of_warp = plan.pairs ? 2 : static_cast<std::size_t>(warp / plan.threads);
    plan.warps =
        (l.outer * plan.tiles * static_cast<std::size_t>(plan.tile) + rows_of_warp - 1) / rows_of_warp;
  }
  // States of the leaves or tiles, then of each level above.
  std::size_t count = columns ? leaves : l.offsets ? 1 : plan.tiles;
  const std::size_t first_states = l.offsets ? plan.warps : count > 1 ? results * count : 0;
  std::size_t all_states = first_states;
  const auto threads_for = [](std::size_t members) {
    return members <= group_size(fold_threads) ? fold_threads : merge_threads;
  };
  const auto groups_of = [&](std::size_t members) {
    return (members - 1) / group_size(threads_for(members)) + 1;
  };
  for (std::size_t c = count; c > 1; c = groups_of(c))
    all_states += groups_of(c) > 1 ? results * groups_of(c) : 0;
  const std::size_t needed = all_states == 0 ? no_bytes : header_bytes + all_states * sizeof(State);
  cudaError_t error = cudaSuccess;
  if (!has_workspace(call, needed, error) || results == 0) return error;
  auto* states = static_cast<State*>(samesum::gpu::states(call.workspace));
  if (columns)
    error = launch(fold_columns<Shape, Fold, Reader>, ((l.inner - 1) / column_threads + 1) * leaves * l.outer,
                   column_threads, call.stream, fold, reader, l, states, call.out);
  else
    error = launch(fold_rows<Shape, Fold, Reader>, (plan.warps - 1) / static_cast<std::size_t>(block) + 1,
                   block * warp, call.stream, fold, reader, l, plan, states, call.out);
  if (error == cudaSuccess && l.offsets && call.elements > Shape::leaf)
    return launch(merge_segments<Shape::leaf, Fold>, (l.outer - 1) / fold_threads + 1, fold_threads,
                  call.stream, fold, l, states, call.out);
  for (; error == cudaSuccess && count > 1; count = groups_of(count)) {
    State* above = states + results * count;
    error = launch(merge_states<Fold>, results * groups_of(count), threads_for(count), call.stream, fold,
                   states, count, groups_of(count), l.n, above, call.out);
    states = above;
  }
  return error;
}

}  // namespace samesum::gpu
