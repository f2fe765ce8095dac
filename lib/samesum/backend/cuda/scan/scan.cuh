/// Scans, and reductions in the order prefix, in one pass: warps hold the rows of a tile in registers, and a
/// block finds the state of all elements before it while it holds its own. Neither the schedule nor the
/// launch shape can change the bits.
#pragma once

#include "samesum/backend/cuda/device/segments.cuh"
#include "samesum/backend/cuda/scan/rows.cuh"
#include "samesum/backend/cuda/tree/lanes.cuh"

namespace samesum::gpu {

/// Whether a reducer has a begin(), which may find that it has nothing to do. The grid of such a reducer has
/// only as many blocks as run at once, since even idle blocks take time to start. They take the blocks of the
/// plan in turn, by next_block().
template <class Reducer> inline constexpr bool is_fallback = requires(const Reducer& r) { r.begin(); };

/// The reducer for the elements of result `at`: at(result, n) of a reducer whose items depend on the result.
template <class Reducer>
__device__ __forceinline__ Reducer of_result(const Reducer& reducer, std::size_t at, std::uint64_t n,
                                             bool exists) {
  if constexpr (requires { reducer.at(at, n); })
    if (exists) return reducer.at(at, n);
  return reducer;
}

/// Distribution of tiles over warps and blocks. Warps and tiles of a block are powers of two.
struct ScanPlan {
  int log2_warps;                 ///< log2 of the warps that share a tile
  int log2_tiles;                 ///< log2 of the tiles of a block
  bool one_tile;                  ///< whether no result has more than one; then the tiles of a block are
                                  ///< different results
  std::size_t blocks_per_result;  ///< 0 for segments, which have a block per tile
  std::size_t blocks;
  /// Groups of 32 blocks of a result, groups of 32 such groups, and so on. First published state of a level.
  static constexpr int levels = 6;
  std::size_t level[levels];

  int warps() const { return 1 << (log2_warps + log2_tiles); }
  /// Sets `level`. Returns the number of published states.
  std::size_t place_levels() {
    std::size_t states = 0;
    for (int l = 0; l < levels; ++l) {
      level[l] = states;
      states += (blocks >> (5 * l)) + 1;
    }
    return states;
  }
};

/// The tile of a warp.
struct ScanPlace {
  bool exists;
  std::size_t result, outer, inner;
  std::size_t n;              ///< elements of the result
  std::size_t tile;           ///< index in the result
  std::size_t block, blocks;  ///< index of the block in the result, and their number
  std::size_t first_block;    ///< index of block 0 of the result in the grid

  /// Index in the result of the first element of a row of the tile.
  __device__ std::size_t begin(int row) const {
    return tile * PrefixTree::leaf + static_cast<std::size_t>(row) * PrefixTree::lanes;
  }
  /// Number of elements from that one on, at most `most`.
  __device__ int count(int row, int most) const {
    return begin(row) < n ? static_cast<int>(min(n - begin(row), static_cast<std::size_t>(most))) : 0;
  }
};

/// The tile of block `mine` of the plan.
__device__ inline ScanPlace place_of(const Layout& l, const ScanPlan& plan, std::size_t mine,
                                     int tile_of_block) {
  constexpr std::size_t leaf = PrefixTree::leaf;
  const std::size_t tiles = std::size_t{1} << plan.log2_tiles;
  ScanPlace p{true, mine, 0, 0, 0, 0, 0, 1, mine};
  if (l.offsets) {
    p.result = segment_of<PrefixTree>(l, mine);
    p.first_block = first_slot<leaf>(l, p.result);
    p.block = mine - p.first_block;
    p.blocks = max(PrefixTree::leaves(l.length(p.result)), std::size_t{1});
    p.exists = p.block < p.blocks;
    p.tile = p.block;
  } else if (plan.one_tile) {
    p.result = mine * tiles + static_cast<std::size_t>(tile_of_block);
    p.exists = p.result < l.results();
  } else {
    p.blocks = plan.blocks_per_result;
    if (p.blocks > 1) p.result = mine / p.blocks;
    p.first_block = p.result * p.blocks;
    p.block = mine - p.first_block;
    p.tile = p.block * tiles + static_cast<std::size_t>(tile_of_block);
  }
  p.outer = p.result;
  if (l.inner > 1) {
    p.outer = p.result / l.inner;
    p.inner = p.result % l.inner;
  }
  if (p.exists) p.n = l.length(p.outer);
  return p;
}

/// Memory of a block that scans.
template <class State> struct ScanShared {
  static constexpr int most_tiles = 8;
  State rows[most_tiles][warp];      ///< states of the rows of each tile, then of its rows 0 to r
  State tile_groups[3][most_tiles];  ///< see make_groups
  State groups[ScanPlan::levels][5][warp];
  ScanPlace place[most_tiles];  ///< places of the tiles: registers are scarce
  State carry[most_tiles + 1];  ///< states of all elements before each tile, and after the last one
};

/// Writes the results of the rows of a warp: one for each element, or the last one.
template <class Reducer, int rows>
__device__ void write_rows(const Reducer& reducer, const WarpRows<Reducer, rows>& held, const Layout& l,
                           const ScanPlace& p, int first_row, const typename Reducer::State* of_rows,
                           const ScanCarry<Reducer>& carry, const typename Reducer::State& end,
                           const ScanDestination& out) {
  using F = typename ScanResultOf<Reducer>::type;
  using State = typename Reducer::State;
  constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  const std::size_t first = p.begin(first_row);
  const int count = p.count(first_row, held.elements);
  if (!out.every) {  // the last element, if the warp has it
    if (count <= 0 || first + static_cast<std::size_t>(count) < p.n) return;
    const int last = count - 1;
    held.visit(
        reducer, last / row, count, first_row, of_rows, carry, end,
        [&](int r, int j, const State& state) {
          if (r == last / row && thread() == last % row / run && j == last % run)
            write_result(reducer, state, p.n, p.result, out);
        },
        [](int) {});
    return;
  }
  F* const to = static_cast<F*>(out.out) + p.outer * out.row_stride + p.inner + first * l.inner;
  F last{};
  if (out.exclusive) {
    ScanCarry<Reducer> before = carry;
    if (first_row > 0) before.append(reducer, of_rows[first_row - 1]);
    reducer.finish(before.state, before.any ? first : 0, 0, &last);
  }
  RowWriter<F> writer{to, l.inner, count, out.exclusive, last};
  held.visit(
      reducer, 0, count, first_row, of_rows, carry, end,
      [&](int r, int j, const State& state) {
        std::uint64_t terms = 1;
        if constexpr (requires { reducer.check(state, terms); }) {
          const int place = r * row + thread() * run + j;
          terms = first + static_cast<std::size_t>(place) + 1;
          // that of a result, not of padding
          if (place < count && (!out.exclusive || terms < p.n)) reducer.check(state, terms);
        }
        reducer.finish(state, terms, static_cast<std::size_t>(j), writer.row_of_results());
      },
      [&](int r) { writer.write(r); });
}

// --- the tiles of a block ----------------------------------------------------------------------------------

/// Merges the rows of a tile. One warp calls it; afterwards state r is that of rows 0 to r.
template <class Reducer> __device__ void merge_rows(const Reducer& reducer, typename Reducer::State* rows) {
  __syncwarp();  // all rows are written
  typename Reducer::State state = rows[thread()];
#pragma unroll
  for (int d = 0; d < 5; ++d) scan_step(reducer, d, state);
  rows[thread()] = state;
  __syncwarp();  // all states are written
}

/// The published units of a result, as block `p` of the result sees them. Unit u of level 0 is the state of
/// block u; that of level d + 1 merges 32 units of level d.
template <class State> struct PublishedUnits {
  const ScanPlace& p;
  const ScanPlan& plan;
  Published<State>* published;

  /// Index of a block's unit among the 32 units of the next level.
  __device__ static unsigned digit(std::size_t block, int level) {
    return static_cast<unsigned>(block >> (5 * level)) % warp;
  }
  __device__ bool has_level(int level) const {
    return level == 0 || (level < ScanPlan::levels && p.blocks >> (5 * level) != 0);
  }
  __device__ Published<State>* at(int level, std::size_t unit) const {
    return published + plan.level[level] + (p.first_block >> (5 * level)) + unit;
  }
  /// The unit that a thread reads, and whether it precedes the block.
  __device__ Published<State>* of_thread(int level) const {
    return at(level, (p.block >> (5 * level) & ~std::size_t{warp - 1}) + static_cast<std::size_t>(thread()));
  }
  __device__ bool is_needed(int level) const {
    return has_level(level) && static_cast<unsigned>(thread()) < digit(p.block, level);
  }
};

/// Merges the units before a block at each level, and publishes each unit that the block completes. `unit` is
/// the state of the block, `is_complete` whether the block publishes it.
template <class Reducer, class State>
__device__ __forceinline__ void merge_levels(const Reducer& reducer, const PublishedUnits<State>& units,
                                             State unit, bool is_complete, ScanShared<State>& s) {
  using Words = typename Published<State>::Words;
  // Small states of three levels are polled at once, before the first one is waited for.
  constexpr int ahead = Published<State>::words == 1 ? 3 : 1;
  Words early[ahead];
#pragma unroll
  for (int level = 0; level < ahead; ++level) {
    early[level] = Words{};
    if (units.is_needed(level)) early[level] = units.of_thread(level)->seen();
  }
  const ScanPlace& p = units.p;
#pragma unroll 1
  for (int level = 0; units.has_level(level); ++level) {  // `is_complete`: the block completes its unit
    State mine = unit;
    if (units.is_needed(level)) {
      Words seen{};
#pragma unroll
      for (int i = 0; i < ahead; ++i)
        if (i == level) seen = early[i];
      mine = units.of_thread(level)->wait(seen);
    }
    __syncwarp();
    unit = make_groups(reducer, mine, 5, s.groups[level]);
    is_complete = is_complete && units.digit(p.block, level) == warp - 1;
    if (is_complete && thread() == 0) units.at(level + 1, p.block >> (5 * (level + 1)))->put(unit);
  }
  __syncwarp();  // all groups are written
}

/// Finds the states before each tile of a block, from the states of its tiles and those that the blocks
/// before publish. One warp calls it. If `only_last`, only the last block of a result needs them; the others
/// publish.
///
/// A block publishes the state of its tiles; the last block of each aligned group of 32, that of the group;
/// the last one of each 32 such groups, that of these; and so on. Blocks wait only for blocks of lower
/// index. So freedom from deadlock rests on the assumption of exact sums (add_to_grid_digits): a GPU starts
/// the blocks of a grid in the order of their indices.
template <class Reducer, class State = typename Reducer::State>
__device__ void look_back(const Reducer& reducer, const ScanPlace& p, const ScanPlan& plan,
                          Published<State>* published, bool only_last, ScanShared<State>& s) {
  const PublishedUnits<State> units{p, plan, published};
  const int tiles = 1 << plan.log2_tiles;
  const State unit =
      make_groups(reducer, s.rows[thread() & (tiles - 1)][warp - 1], plan.log2_tiles, s.tile_groups);
  const bool is_last = p.block + 1 == p.blocks;
  if (!is_last && thread() == 0) units.at(0, p.block)->put(unit);
  if (only_last && !is_last && units.digit(p.block, 0) != warp - 1) return;
  merge_levels(reducer, units, unit, !is_last, s);
  if (thread() > tiles) return;
  const std::size_t block = p.block + static_cast<std::size_t>(thread() >> plan.log2_tiles);
  ScanCarry<Reducer> carry;
  int level = 0;
  while (units.has_level(level + 1)) ++level;
#pragma unroll 1
  for (; level >= 0; --level)
    carry.template append_groups<warp, 5>(reducer, units.digit(block, level), s.groups[level]);
  carry.template append_groups<ScanShared<State>::most_tiles, 3>(
      reducer, static_cast<unsigned>(thread() & (tiles - 1)), s.tile_groups);
  s.carry[thread()] = carry.state;
}

/// Scans the tiles of block `mine` of the plan; a warp holds `rows` rows of a tile.
template <int rows, class Reducer>
__device__ __forceinline__ void scan_block(const Reducer& reducer, const ScanInput& in, const Layout& l,
                                           const ScanPlan& plan, std::size_t mine,
                                           Published<typename Reducer::State>* published,
                                           const ScanDestination& out,
                                           ScanShared<typename Reducer::State>& s) {
  using State = typename Reducer::State;
  const int tile_of_block = warp_index() >> plan.log2_warps,
            first_row = (warp_index() & ((1 << plan.log2_warps) - 1)) * rows;
  WarpRows<Reducer, rows> held;
  {
    const ScanPlace p = place_of(l, plan, mine, tile_of_block);
    if (l.offsets && !p.exists) return;
    if (first_row == 0 && thread() == 0) s.place[tile_of_block] = p;
    const int count = p.count(first_row, held.elements);
    if (count > 0) {
      if constexpr (requires { Reducer::reads_zeros; }) held.clear_unless_full(count);
      with_elements<Reducer>(in, [&](const auto* x) {
        held.load(x + l.first(p.outer) + p.inner + p.begin(first_row) * l.stride, l.stride, count);
      });
      held.scan(of_result(reducer, p.result, p.n, true), count, s.rows[tile_of_block] + first_row);
    }
  }
  if (plan.log2_warps == 0) merge_rows(reducer, s.rows[tile_of_block]);
  __syncthreads();  // all rows and places of all tiles are written
  const ScanPlace& p = s.place[tile_of_block];
  if (warp_index() == 0) {
    if (plan.log2_warps > 0)
      for (int t = 0; t < 1 << plan.log2_tiles; ++t) merge_rows(reducer, s.rows[t]);
    if (!plan.one_tile) look_back(reducer, p, plan, published, !out.every, s);
  }
  if (!out.every && p.block + 1 < p.blocks) return;
  __syncthreads();  // the states before all tiles are written
  ScanCarry<Reducer> carry;
  State end = s.rows[tile_of_block][warp - 1];
  if (!plan.one_tile) {
    carry.any = p.tile > 0;
    if (carry.any) carry.state = s.carry[tile_of_block];
    end = s.carry[tile_of_block + 1];
  }
  if (!out.every && p.exists && p.n == 0 && first_row == 0 && thread() == 0)
    write_result(reducer, State{}, 0, p.result, out);
  write_rows(of_result(reducer, p.exists ? p.result : 0, p.n, true), held, l, p, first_row,
             s.rows[tile_of_block], carry, end, out);
}

/// Warps per block.
template <int rows> inline constexpr int scan_warps = rows == few_rows ? 8 : 4;

/// Minimum resident blocks per multiprocessor for __launch_bounds__: the most that leave each thread enough
/// registers.
template <class Reducer, int rows>
inline constexpr int scan_resident_blocks = rows != few_rows                       ? 3
                                            : sizeof(typename Reducer::State) <= 8 ? 4
                                                                                   : 2;

template <class Reducer, int rows>
__global__ void __launch_bounds__(scan_warps<rows>* warp, scan_resident_blocks<Reducer, rows>)
    scan_tiles(Reducer reducer, ScanInput in, Layout l, const __grid_constant__ ScanPlan plan,
               Published<typename Reducer::State>* published, ScanDestination out) {
  using Shared = ScanShared<typename Reducer::State>;
  __shared__ alignas(16) unsigned char memory[sizeof(Shared)];
  auto& shared = *reinterpret_cast<Shared*>(memory);
  if constexpr (is_fallback<Reducer>) {
    if (!reducer.begin()) return;
    __shared__ std::size_t next;
    while (true) {
      if (threadIdx.x == 0) next = reducer.next_block();
      __syncthreads();  // the next block is known
      const std::size_t mine = next;
      if (mine >= plan.blocks) return;
      scan_block<rows>(reducer, in, l, plan, mine, published, out, shared);
      __syncthreads();  // all warps have read the shared memory
    }
  } else {
    scan_block<rows>(reducer, in, l, plan, blockIdx.x, published, out, shared);
  }
}

// --- the order serial --------------------------------------------------------------------------------------

/// Scans each vector by the textbook loop, on one thread.
template <class Reducer>
__global__ void scan_in_turn(Reducer reducer, ScanInput in, Layout l, ScanDestination out) {
  using F = typename Reducer::Format;
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= l.results()) return;
  const std::size_t o = at / l.inner, i = at % l.inner;
  F* to = static_cast<F*>(out.out) + o * out.row_stride + i;
  with_elements<Reducer>(in, [&](const auto* x) {
    x += l.first(o) + i;
    SerialWalker<Reducer> walker{reducer};
    for (std::size_t k = 0; k < l.n; ++k) {
      const auto item =
          reducer.item(InputElement<F>{load<Scalar<F>>(x + k * l.stride), Scalar<F>::zero(), k, 0});
      if (out.exclusive) reducer.finish(walker.state(), k, k * l.inner, to);
      walker.push(item);
      if (!out.exclusive) reducer.finish(walker.state(), k + 1, k * l.inner, to);
    }
  });
}

}  // namespace samesum::gpu
