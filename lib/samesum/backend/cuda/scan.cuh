/// Scans, and reductions in the order prefix, in one pass: warps hold the rows of a tile in registers, and a
/// block finds the state of all elements before it while it holds its own. Neither the schedule nor the
/// launch shape can change the bits.
#pragma once

#include <cuda/atomic>

#include "samesum/backend/cuda/reader.cuh"
#include "samesum/backend/cuda/segments.cuh"
#include "samesum/backend/cuda/warp.cuh"
#include "samesum/operation/operations.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::gpu {

/// Elements of a scan, in any format.
struct ScanInput {
  const void* x;
  std::size_t format;  ///< its format index
};

/// Where a scan writes its results.
struct ScanDestination {
  void* out;
  std::size_t row_stride;  ///< results between rows, if there is one for every element
  bool every;              ///< whether there is a result for every element, or one for all
  bool exclusive;          ///< whether the result of an element leaves it out
  bool states;             ///< whether the only result is a state, for a Partial
};

/// Distribution of tiles over warps and blocks. Warps and tiles of a block are powers of two.
struct ScanPlan {
  int log2_warps;                 ///< of the warps that share a tile
  int log2_tiles;                 ///< of the tiles of a block
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

__device__ inline ScanPlace place_of(const Layout& l, const ScanPlan& plan, int tile_of_block) {
  constexpr std::size_t leaf = PrefixTree::leaf;
  const std::size_t mine = blockIdx.x, tiles = std::size_t{1} << plan.log2_tiles;
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

// --- states that blocks publish ----------------------------------------------------------------------------

/// A state that one block publishes and others wait for. Each word of 32 bits carries its own flag, in the
/// upper half of 64 bits, so that neither side needs a fence. All bits are 0 before.
template <class State> struct Published {
  static constexpr int words = sizeof(State) / 4;
  using Word = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_device>;
  using Words = std::array<std::uint64_t, words>;
  std::uint64_t word[words];

  __device__ void put(const State& state) {
    const auto bits = std::bit_cast<std::array<std::uint32_t, words>>(state);
    for (int i = 0; i < words; ++i)
      Word{word[i]}.store(std::uint64_t{1} << 32 | bits[i], ::cuda::memory_order_relaxed);
  }
  /// What has been published so far.
  __device__ Words seen() {
    Words now;
    for (int i = 0; i < words; ++i) now[i] = Word{word[i]}.load(::cuda::memory_order_relaxed);
    return now;
  }
  /// Waits for the state; `now` is what has been seen of it.
  __device__ State wait(Words now) {
    const auto is_there = [&] {
      bool all = true;
      for (int i = 0; i < words; ++i) all = all && now[i] >> 32 != 0;
      return all;
    };
    while (!is_there()) now = seen();
    std::array<std::uint32_t, words> bits;
    for (int i = 0; i < words; ++i) bits[i] = static_cast<std::uint32_t>(now[i]);
    return std::bit_cast<State>(bits);
  }
};

// --- merges within a warp ----------------------------------------------------------------------------------

/// Whether a fresh state, merged from the left, changes no bit of another state, and merging it costs less
/// than a branch.
template <class State> inline constexpr bool fresh_is_neutral = false;
template <class V> inline constexpr bool fresh_is_neutral<Plain<V>> = true;
template <class F> inline constexpr bool fresh_is_neutral<Extremum<F>> = true;

/// The state of thread `from` of each aligned group of `width` threads.
template <class State> __device__ State shuffled(const State& state, int from, int width = warp) {
  auto words = std::bit_cast<std::array<unsigned, sizeof(State) / 4>>(state);
  for (unsigned& word : words) word = __shfl_sync(whole_warp, word, from, width);
  return std::bit_cast<State>(words);
}

template <class Reducer>
__device__ typename Reducer::State merged(const Reducer& reducer, typename Reducer::State left,
                                          const typename Reducer::State& right) {
  reducer.merge(left, right);
  return left;
}
/// Merges `left` before `state` if it exists; otherwise, if fresh states are neutral, it must be fresh.
template <class Reducer>
__device__ void merge_before(const Reducer& reducer, bool exists, const typename Reducer::State& left,
                             typename Reducer::State& state) {
  if (fresh_is_neutral<typename Reducer::State> || exists) state = merged(reducer, left, state);
}

/// One step of a scan by stride doubling: the threads of each right half of 2^(d + 1) units merge the whole
/// left half before their own units. After five steps thread k has the state of units 0 to k.
template <class Reducer>
__device__ void scan_step(const Reducer& reducer, int d, typename Reducer::State& state) {
  const auto left = shuffled(state, (1 << d) - 1, 2 << d);
  if (thread() >> d & 1) state = merged(reducer, left, state);
}

/// Merges the units of threads by stride doubling. Stores the aligned groups of 2^d units, d < log2, in
/// group[d][first unit of the group], and returns the state of all 2^log2 units. The units of threads beyond
/// repeat the first ones.
template <int width, class Reducer>
__device__ typename Reducer::State make_groups(const Reducer& reducer, typename Reducer::State unit, int log2,
                                               typename Reducer::State (*group)[width]) {
  using State = typename Reducer::State;
#pragma unroll 5
  for (int d = 0; d < log2; ++d) {
    if (thread() < width) group[d][thread()] = unit;
    const State other = shuffle_xor(unit, 1 << d);
    const bool is_right = thread() >> d & 1;
    State left = chosen(is_right, other, unit);
    reducer.merge(left, chosen(is_right, unit, other));
    unit = left;
  }
  return unit;
}

/// A state that may have no elements yet.
template <class Reducer> struct ScanCarry {
  typename Reducer::State state{};
  bool any = false;

  __device__ void append(const Reducer& reducer, const typename Reducer::State& next) {
    state = any ? merged(reducer, state, next) : next;
    any = true;
  }
  /// Appends the groups of the first `units` units, the largest first.
  template <int width, int log2>
  __device__ void append_groups(const Reducer& reducer, unsigned units,
                                const typename Reducer::State (*group)[width]) {
    typename Reducer::State of_bit[log2];  // loaded before they are merged one after another
#pragma unroll
    for (int d = 0; d < log2; ++d) of_bit[d] = group[d][(units >> (d + 1) << (d + 1)) % width];
#pragma unroll
    for (int d = log2 - 1; d >= 0; --d)
      if (units >> d & 1) append(reducer, of_bit[d]);
  }
};

// --- the rows of a warp ------------------------------------------------------------------------------------

/// Elements of rows of a tile, in the registers of a warp: a thread holds one run of each row.
template <class F, int rows> class LoadedRows {
 protected:
  static constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  static_assert(run == 4 && row == warp * run);

 public:
  static constexpr int elements = rows * row;

  /// Loads up to `count` elements, `stride` apart.
  template <class T> __device__ void load(const T* x, std::size_t stride, int count) {
    using Raw = typename Reader<F, T>::Raw;
    if (stride == 1 && count >= elements && reinterpret_cast<std::uintptr_t>(x) % alignof(Raw) == 0) {
      const Raw* from = reinterpret_cast<const Raw*>(x) + thread();
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const Raw raw = from[r * warp];
        for (int j = 0; j < run; ++j) element_[r][j] = raw.rounded(j);
      }
      return;
    }
    x += static_cast<std::size_t>(thread() * run) * stride;
    count -= thread() * run;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
#pragma unroll
      for (int j = 0; j < run; ++j)
        if (r * row + j < count)
          element_[r][j] = gpu::load<Scalar<F>>(x + static_cast<std::size_t>(j) * stride);
      x += row * stride;
    }
  }

 protected:
  Scalar<F> element_[rows][run];
};

/// Rows of a tile that are merged in the order of the tree.
template <class Reducer, int rows> class WarpRows : public LoadedRows<typename Reducer::Format, rows> {
  using F = typename Reducer::Format;
  using State = typename Reducer::State;
  using LoadedRows<F, rows>::run;
  using LoadedRows<F, rows>::row;
  using LoadedRows<F, rows>::element_;  ///< or, if keeps_states, the bits of the states after these elements
  /// Rows between two checks whether more rows exist.
  static constexpr int chunk = rows <= 4 ? 2 : rows <= 16 ? rows : 16;
  /// Whether the states of the elements of a run take the places of the elements.
  static constexpr bool keeps_states = sizeof(State) == sizeof(Scalar<F>);

 public:
  /// Scans the runs of each row. Writes the state of each row to `of_row`.
  __device__ void scan(const Reducer& reducer, int count, State* of_row) {
#pragma unroll
    for (int first = 0; first < rows; first += chunk) {
      if (first * row >= count) break;
#pragma unroll
      for (int r = first; r < first + chunk; ++r) {
        State state = reducer.start(item(reducer, r, 0));
        if (keeps_states) keep(r, 0, state);
#pragma unroll
        for (int j = 1; j < run; ++j) {
          reducer.add(state, item(reducer, r, j), static_cast<std::size_t>(j));
          if (keeps_states) keep(r, j, state);
        }
        runs_[r] = state;
      }
#pragma unroll
      for (int d = 0; d < 5; ++d)
#pragma unroll
        for (int r = first; r < first + chunk; ++r) scan_step(reducer, d, runs_[r]);
      if (thread() == warp - 1)
#pragma unroll
        for (int r = first; r < first + chunk; ++r) of_row[r] = runs_[r];
    }
  }

  /// Calls visit(r, j, state) with the state of all elements of the result up to element j of the thread's
  /// run in row r, and finish(r) after each row, for the rows from `from` on. `of_rows` are the states of the
  /// first rows of the tile, `first_row` is the warp's first one. `end` is the state up to the end of the
  /// tile.
  template <class Visit, class Finish>
  __device__ void visit(const Reducer& reducer, int from, int count, int first_row, const State* of_rows,
                        const ScanCarry<Reducer>& carry, const State& end, Visit visit, Finish finish) const {
    State before{};
    if (first_row > 0) before = of_rows[first_row - 1];
#pragma unroll
    for (int first = 0; first < rows; first += chunk) {
      if (first * row >= count) break;
#pragma unroll
      for (int r = first; r < first + chunk; ++r) {
        const State whole = of_rows[first_row + r];
        if (r >= from) {
          State left = shuffled(runs_[r], (thread() + warp - 1) % warp), state{};
          if (fresh_is_neutral<State>) left = chosen(thread() == 0, State{}, left);
#pragma unroll
          for (int j = 0; j < run; ++j) {
            State prefix;
            if (j == run - 1) {
              prefix = runs_[r];
            } else {
              if (keeps_states)
                state = kept(r, j);
              else if (j == 0)
                state = reducer.start(item(reducer, r, 0));
              else
                reducer.add(state, item(reducer, r, j), static_cast<std::size_t>(j));
              prefix = state;
              merge_before(reducer, thread() > 0, left, prefix);
            }
            merge_before(reducer, first_row + r > 0, before, prefix);
            if (j == run - 1) prefix = chosen(thread() == warp - 1, whole, prefix);
            merge_before(reducer, carry.any, carry.state, prefix);
            if (r == rows - 1 && j == run - 1 && first_row + rows == PrefixTree::rows_of_tile)
              prefix = chosen(thread() == warp - 1, end, prefix);
            visit(r, j, prefix);
          }
          finish(r);
        }
        before = whole;
      }
    }
  }

 private:
  __device__ auto item(const Reducer& reducer, int r, int j) const {
    return reducer.item(InputElement<F>{element_[r][j], Scalar<F>::zero(), 0, static_cast<std::uint32_t>(j)});
  }
  __device__ void keep(int r, int j, const State& state) {
    if constexpr (keeps_states) element_[r][j] = std::bit_cast<Scalar<F>>(state);
  }
  __device__ State kept(int r, int j) const {
    if constexpr (keeps_states)
      return std::bit_cast<State>(element_[r][j]);
    else
      return State{};
  }

  State runs_[rows];  ///< of the row's runs up to that of the thread
};

/// Whether a reducer reads elements of every format.
template <class Reducer> inline constexpr bool reads_all = false;
template <template <class> class A, class F> inline constexpr bool reads_all<ElementSum<A, F>> = true;
/// Whether a reducer reads elements of format T.
template <class Reducer, class T>
inline constexpr bool reads = reads_all<Reducer> || can_read<T, typename Reducer::Format>;

/// Calls visit(x) with the elements in their own format.
template <class Reducer, class Visit> __device__ void with_elements(const ScanInput& in, Visit visit) {
  std::size_t index = 0;
  Formats::for_each([&]<class T>() {
    if constexpr (reads<Reducer, T>)
      if (index == in.format) visit(static_cast<const T*>(in.x));
    ++index;
  });
}

template <class Reducer>
__device__ void write_state(const Reducer&, const typename Reducer::State& state, void* out) {
  *static_cast<typename Reducer::State*>(out) = state;
}
/// The state of a sum in the form of PartialForm.
template <template <class> class A, class F>
__device__ void write_state(const ElementSum<A, F>&, const A<Scalar<F>>& state, void* out) {
  *static_cast<TermSum<A, Scalar<F>>*>(out) = {state};
}

/// Writes the only result of a reduction.
template <class Reducer>
__device__ void write_result(const Reducer& reducer, const typename Reducer::State& state, std::size_t n,
                             std::size_t at, const ScanDestination& out) {
  if (out.states)
    write_state(reducer, state, out.out);
  else
    reducer.finish(state, n, at, out.out);
}

// --- the rows of a warp become results ---------------------------------------------------------------------

/// The format of the results: that of the elements, unless the reducer names another one.
template <class Reducer> struct ResultOf { using type = typename Reducer::Format; };
template <class Reducer>
requires requires { typename Reducer::Result; }
struct ResultOf<Reducer> {
  using type = typename Reducer::Result;
};

/// Results of a run.
template <class F> struct ScanResults {
  static constexpr std::size_t alignment = 4 * sizeof(F) <= 16 ? 4 * sizeof(F) : 16;
  static constexpr int words = 4 * sizeof(F) / 4;
  struct alignas(alignment) Run {
    F result[4];
  };
  Run run;

  /// Stores all four, past the caches: they are not read again soon.
  __device__ void store(Run* to) const {
    const auto word = std::bit_cast<std::array<std::uint32_t, words>>(run);
    if constexpr (words == 2)
      __stcs(reinterpret_cast<uint2*>(to), make_uint2(word[0], word[1]));
    else
#pragma unroll
      for (int i = 0; i < words; i += 4)
        __stcs(reinterpret_cast<uint4*>(to) + i / 4,
               make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]));
  }
  /// Moves the results by one place: the first place receives the last result of the thread before, thread 0
  /// that of the last thread in the call before, `last`, which is updated.
  __device__ void move(F& last) {
    const F own = run.result[3];
    const F given = thread() == warp - 1 ? last : own;
    last = own;
    for (int j = 3; j > 0; --j) run.result[j] = run.result[j - 1];
    if constexpr (sizeof(F) == 8)
      run.result[0] = from_bits<F>(__shfl_sync(whole_warp, to_bits(given), (thread() + warp - 1) % warp));
    else
      run.result[0] = from_bits<F>(static_cast<BitsOf<F>>(
          __shfl_sync(whole_warp, std::uint32_t{to_bits(given)}, (thread() + warp - 1) % warp)));
  }
};

/// Writes the results of a warp, row by row.
template <class F> class RowWriter {
  static constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  using Run = typename ScanResults<F>::Run;

 public:
  /// @param to       the first result of the warp; they are `stride` apart
  /// @param count    number of results
  /// @param shifted  whether each result takes the place of the next one; then `first` takes the first place
  __device__ RowWriter(F* to, std::size_t stride, int count, bool shifted, F first)
      : to_{to + static_cast<std::size_t>(thread() * run) * stride},
        stride_{stride},
        count_{count},
        is_shifted_{shifted},
        is_aligned_{stride == 1 && reinterpret_cast<std::uintptr_t>(to) % ScanResults<F>::alignment == 0},
        last_{first} {}

  __device__ F* row_of_results() { return results_.run.result; }
  __device__ void set(int j, F result) { results_.run.result[j] = result; }
  __device__ void write(int r) {
    if (is_shifted_) results_.move(last_);
    if (is_aligned_ && (r + 1) * row <= count_) {
      results_.store(reinterpret_cast<Run*>(to_ + r * row));
      return;
    }
#pragma unroll
    for (int j = 0; j < run; ++j)
      if (r * row + thread() * run + j < count_)
        to_[static_cast<std::size_t>(r * row + j) * stride_] = results_.run.result[j];
  }

 private:
  F* to_;
  std::size_t stride_;
  int count_;
  bool is_shifted_, is_aligned_;
  F last_;
  ScanResults<F> results_;
};

/// Memory of a block that scans.
template <class State> struct ScanShared {
  static constexpr int most_tiles = 8;
  State rows[most_tiles][warp];      ///< of each tile: its rows, then its first rows 0 to r
  State tile_groups[3][most_tiles];  ///< see make_groups
  State groups[ScanPlan::levels][5][warp];
  ScanPlace place[most_tiles];  ///< of the tiles: registers are scarce
  State carry[most_tiles + 1];  ///< of all elements before each tile, and after the last one
};

/// The reducer for one result of n elements, if it depends on the result.
template <class Reducer>
__device__ const Reducer& reducer_at(const Reducer& reducer, std::size_t, std::size_t) {
  return reducer;
}
template <class Reducer>
requires requires(const Reducer& reducer) { reducer.at(0, 0); }
__device__ Reducer reducer_at(const Reducer& reducer, std::size_t result, std::size_t n) {
  return reducer.at(result, n);
}

/// Writes the results of the rows of a warp: one for each element, or the last one.
template <class Reducer, int rows>
__device__ void write_rows(const Reducer& reducer, const WarpRows<Reducer, rows>& held, const Layout& l,
                           const ScanPlace& p, int first_row, const typename Reducer::State* of_rows,
                           const ScanCarry<Reducer>& carry, const typename Reducer::State& end,
                           const ScanDestination& out) {
  using F = typename ResultOf<Reducer>::type;
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
    reducer.finish(before.state, before.any, 0, &last);
  }
  RowWriter<F> writer{to, l.inner, count, out.exclusive, last};
  held.visit(
      reducer, 0, count, first_row, of_rows, carry, end,
      [&](int r, int j, const State& state) {
        if constexpr (requires { reducer.check(state); }) {  // that of a result, not of padding
          const int own = r * row + thread() * run + j;
          if (own < count && (!out.exclusive || first + static_cast<std::size_t>(own) + 1 < p.n))
            reducer.check(state);
        }
        reducer.finish(state, 1, static_cast<std::size_t>(j), writer.row_of_results());
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

/// Finds the states before each tile of a block, from the states of its tiles and those that the blocks
/// before publish. One warp calls it. If `only_last`, only the last block of a result needs them; the others
/// publish.
///
/// A block publishes the state of its tiles; the last block of each aligned group of 32, that of the group;
/// the last one of each 32 such groups, that of these; and so on. Blocks wait only for blocks of lower
/// index. So freedom from deadlock rests on the assumption of exact sums (add_to_grid_digits): a GPU starts
/// the blocks of a grid in the order of their indices.
template <class Reducer>
__device__ void look_back(const Reducer& reducer, const ScanPlace& p, const ScanPlan& plan,
                          Published<typename Reducer::State>* published, bool only_last,
                          ScanShared<typename Reducer::State>& s) {
  using State = typename Reducer::State;
  using Shared = ScanShared<State>;
  using Words = typename Published<State>::Words;
  const int tiles = 1 << plan.log2_tiles;
  State unit = make_groups(reducer, s.rows[thread() & (tiles - 1)][warp - 1], plan.log2_tiles, s.tile_groups);
  const bool is_last = p.block + 1 == p.blocks;
  const auto digit = [](std::size_t block, int level) {
    return static_cast<unsigned>(block >> (5 * level)) % warp;
  };
  const auto has_level = [&](int level) {
    return level == 0 || (level < ScanPlan::levels && p.blocks >> (5 * level) != 0);
  };
  /// Unit `unit` of the result at a level.
  const auto state_at = [&](int level, std::size_t unit) {
    return published + plan.level[level] + (p.first_block >> (5 * level)) + unit;
  };
  if (!is_last && thread() == 0) state_at(0, p.block)->put(unit);
  if (only_last && !is_last && digit(p.block, 0) != warp - 1) return;
  // Small states of three levels are polled at once, before the first one is waited for.
  constexpr int ahead = Published<State>::words == 1 ? 3 : 1;
  const auto of_thread = [&](int level) {
    return state_at(level,
                    (p.block >> (5 * level) & ~std::size_t{warp - 1}) + static_cast<std::size_t>(thread()));
  };
  const auto is_needed = [&](int level) {
    return has_level(level) && static_cast<unsigned>(thread()) < digit(p.block, level);
  };
  Words early[ahead];
#pragma unroll
  for (int level = 0; level < ahead; ++level) {
    early[level] = Words{};
    if (is_needed(level)) early[level] = of_thread(level)->seen();
  }
  bool is_complete = !is_last;  // whether the block completes the unit of the level
#pragma unroll 1
  for (int level = 0; has_level(level); ++level) {
    State mine = unit;
    if (is_needed(level)) {
      Words seen{};
#pragma unroll
      for (int i = 0; i < ahead; ++i)
        if (i == level) seen = early[i];
      mine = of_thread(level)->wait(seen);
    }
    __syncwarp();
    unit = make_groups(reducer, mine, 5, s.groups[level]);
    is_complete = is_complete && digit(p.block, level) == warp - 1;
    if (is_complete && thread() == 0) state_at(level + 1, p.block >> (5 * (level + 1)))->put(unit);
  }
  __syncwarp();  // all groups are written
  if (thread() <= tiles) {
    const std::size_t block = p.block + static_cast<std::size_t>(thread() >> plan.log2_tiles);
    ScanCarry<Reducer> carry;
    int level = 0;
    while (has_level(level + 1)) ++level;
#pragma unroll 1
    for (; level >= 0; --level)
      carry.template append_groups<warp, 5>(reducer, digit(block, level), s.groups[level]);
    carry.template append_groups<Shared::most_tiles, 3>(
        reducer, static_cast<unsigned>(thread() & (tiles - 1)), s.tile_groups);
    s.carry[thread()] = carry.state;
  }
}

/// Scans the tiles of a block; a warp holds `rows` rows of a tile.
template <int rows, class Reducer>
__device__ __forceinline__ void scan_block(const Reducer& reducer, const ScanInput& in, const Layout& l,
                                           const ScanPlan& plan,
                                           Published<typename Reducer::State>* published,
                                           const ScanDestination& out,
                                           ScanShared<typename Reducer::State>& s) {
  using State = typename Reducer::State;
  const int tile = warp_index() >> plan.log2_warps,
            first_row = (warp_index() & ((1 << plan.log2_warps) - 1)) * rows;
  WarpRows<Reducer, rows> held;
  {
    const ScanPlace p = place_of(l, plan, tile);
    if (l.offsets && !p.exists) return;
    if (first_row == 0 && thread() == 0) s.place[tile] = p;
    const int count = p.count(first_row, held.elements);
    if (count > 0) {
      with_elements<Reducer>(in, [&](const auto* x) {
        held.load(x + l.first(p.outer) + p.inner + p.begin(first_row) * l.stride, l.stride, count);
      });
      held.scan(reducer_at(reducer, p.result, p.n), count, s.rows[tile] + first_row);
    }
  }
  if (plan.log2_warps == 0) merge_rows(reducer, s.rows[tile]);
  __syncthreads();  // all rows and places of all tiles are written
  const ScanPlace& p = s.place[tile];
  if (warp_index() == 0) {
    if (plan.log2_warps > 0)
      for (int t = 0; t < 1 << plan.log2_tiles; ++t) merge_rows(reducer, s.rows[t]);
    if (!plan.one_tile) look_back(reducer, p, plan, published, !out.every, s);
  }
  if (!out.every && p.block + 1 < p.blocks) return;
  __syncthreads();  // the states before all tiles are written
  ScanCarry<Reducer> carry;
  State end = s.rows[tile][warp - 1];
  if (!plan.one_tile) {
    carry.any = p.tile > 0;
    if (carry.any) carry.state = s.carry[tile];
    end = s.carry[tile + 1];
  }
  if (!out.every && p.exists && p.n == 0 && first_row == 0 && thread() == 0)
    write_result(reducer, State{}, 0, p.result, out);
  write_rows(reducer_at(reducer, p.exists ? p.result : 0, p.n), held, l, p, first_row, s.rows[tile], carry,
             end, out);
}

/// Rows per warp of the two forms of the kernel. With few, more warps share a tile: the latency is low. With
/// many, a warp holds up to a whole tile, and a multiprocessor has most bytes in flight.
inline constexpr int few_rows = 4;
template <class Reducer> constexpr int many_rows() {
  using Element = Scalar<typename Reducer::Format>;
  constexpr std::size_t element = sizeof(Element) / 4, state = sizeof(typename Reducer::State) / 4,
                        of_row = PrefixTree::run * element + (state <= element ? 0 : state);
  int rows = PrefixTree::rows_of_tile;
  while (static_cast<std::size_t>(rows) * of_row > 128) rows /= 2;
  return rows;
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
  if constexpr (requires { reducer.begin(); })
    if (!reducer.begin()) return;
  __shared__ alignas(16) unsigned char memory[sizeof(Shared)];
  scan_block<rows>(reducer, in, l, plan, published, out, *reinterpret_cast<Shared*>(memory));
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
