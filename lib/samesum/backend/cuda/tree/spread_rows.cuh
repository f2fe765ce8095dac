/// Reduces rows and leaves of which each thread of a warp has some lanes 32 apart: thread t has lanes t,
/// t + 32, t + 64 and t + 96, so that two levels of the tree stay in a thread. A warp merges four short rows
/// at a time: in the first two of the five levels across threads, both threads of a pair merge other rows.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/backend/cuda/tree/lanes.cuh"
#include "samesum/call/layout.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

inline constexpr int spread_threads = 128;  ///< threads per block
inline constexpr int spread_rows = 4;       ///< rows that a warp reduces at a time

/// The elements of a row that a thread has. Lane l of the row adds elements l, l + 128, and so on.
struct SpreadLanes {
  static constexpr int mine = 4, all = mine * warp;
  int n;

  /// The number of rows of lanes.
  __device__ int rows() const { return (n - 1) / all + 1; }
  /// How many lanes of this thread have an element in row r of the lanes. These are its first ones.
  __device__ int lanes_in(int r) const {
    return min((max(n - r * all - thread(), 0) + warp - 1) / warp, mine);
  }
  /// The number of elements of lane i of this thread.
  __device__ int elements(int i) const { return (max(n - i * warp - thread(), 0) + all - 1) / all; }
};

/// Both states of a merge: this thread's, and that of the thread whose index is this one's XOR `delta`, in
/// the order of their lanes.
template <class State> struct BothOf {
  State first, second;
  __device__ BothOf(const State& mine, const State& other, int delta)
      : first{chosen(thread() & delta, other, mine)}, second{chosen(thread() & delta, mine, other)} {}
};

/// The merges of a row's lanes. If a merge depends on the numbers of elements, which are the same in all
/// rows, what it needs of them is computed once.
template <class Reducer> class SpreadMerges {
  using State = typename Reducer::State;
  static constexpr bool with_shares = requires { typename Reducer::Shares; };
  static constexpr int in_thread = 3, levels = 5;

 public:
  __device__ SpreadMerges(const Reducer& reducer, const SpreadLanes& lanes) : lanes_{lanes.lanes_in(0)} {
    if constexpr (with_shares) {
      int count[SpreadLanes::mine];
#pragma unroll
      for (int i = 0; i < SpreadLanes::mine; ++i) count[i] = lanes.elements(i);
      share_.of[0] = reducer.shares(count[0], count[2]);
      share_.of[1] = reducer.shares(count[1], count[3]);
      share_.of[2] = reducer.shares(count[0] + count[2], count[1] + count[3]);
      int all = count[0] + count[1] + count[2] + count[3];
#pragma unroll
      for (int level = 0; level < levels; ++level) {
        const int delta = delta_of(level);
        const BothOf<int> both{all, __shfl_xor_sync(whole_warp, all, delta), delta};
        share_.of[in_thread + level] = reducer.shares(both.first, both.second);
        all = both.first + both.second;
      }
    }
  }

  /// Merges the lanes of this thread into the first one.
  __device__ __forceinline__ void merge_lanes(const Reducer& reducer,
                                              State (&state)[SpreadLanes::mine]) const {
    if (2 < lanes_) merge(reducer, state[0], state[2], 0);
    if (3 < lanes_) merge(reducer, state[1], state[3], 1);
    if (1 < lanes_) merge(reducer, state[0], state[1], 2);
  }

  /// Merges the states of one row across the warp. All threads get the same.
  __device__ __forceinline__ State merge_row(const Reducer& reducer, State state) const {
#pragma unroll
    for (int level = 0; level < levels; ++level) state = merged_across(reducer, state, level);
    return state;
  }
  /// The row of this thread, after all merges.
  __device__ static int row() { return thread() / 16 * 2 + thread() / 8 % 2; }
  /// Merges the states of four rows across the warp. Each thread gets that of its row.
  __device__ __forceinline__ State merge_rows(const Reducer& reducer, State (&state)[spread_rows]) const {
    const auto share_rows = [&](int level, int half) {
      const int delta = delta_of(level);
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const bool upper = thread() & delta;
        const State other = shuffle_xor(chosen(upper, state[i], state[half + i]), delta);
        state[i] = merged(reducer, chosen(upper, state[half + i], state[i]), other, level);
      }
    };
    share_rows(0, 2);
    share_rows(1, 1);
#pragma unroll
    for (int level = 2; level < levels; ++level) state[0] = merged_across(reducer, state[0], level);
    return state[0];
  }

 private:
  struct None {};
  template <class R> struct Shares { using type = None; };
  template <class R>
  requires requires { typename R::Shares; }
  struct Shares<R> {
    struct type {
      typename R::Shares of[in_thread + levels];
    };
  };

  __device__ static constexpr int delta_of(int level) { return warp / 2 >> level; }
  __device__ __forceinline__ State merged(const Reducer& reducer, const State& mine, const State& other,
                                          int level) const {
    BothOf<State> both{mine, other, delta_of(level)};
    merge(reducer, both.first, both.second, in_thread + level);
    return both.first;
  }
  __device__ __forceinline__ State merged_across(const Reducer& reducer, const State& mine, int level) const {
    return merged(reducer, mine, shuffle_xor(mine, delta_of(level)), level);
  }
  __device__ __forceinline__ void merge(const Reducer& reducer, State& state, const State& other,
                                        [[maybe_unused]] int which) const {
    if constexpr (with_shares)
      reducer.merge(state, other, share_.of[which]);
    else
      reducer.merge(state, other);
  }

  int lanes_;  ///< lanes of this thread that have elements
  typename Shares<Reducer>::type share_;
};

/// The elements of a row, or of a leaf of one, and how a thread loads and adds those of its lanes. The first
/// one is at `place` and has the index `base`.
template <class Reducer, class Reader> struct SpreadElements {
  static constexpr int mine = SpreadLanes::mine;
  using Elements = typename Reader::Element[mine];
  using States = typename Reducer::State[mine];
  const Reducer& reducer;
  const Reader& reader;
  const SpreadLanes& lanes;
  std::size_t place;
  std::uint64_t base;

  __device__ __forceinline__ void load(int row, Elements& e) const {
    const int at = row * SpreadLanes::all + thread();
    reader.column(place + static_cast<std::size_t>(at), Constant<std::size_t{warp}>{}, lanes.lanes_in(row),
                  base, at, warp, e);
  }
  template <bool starts = false>
  __device__ __forceinline__ void add(int row, const Elements& e, States& state) const {
    typename Reducer::Item item[mine];
    items_of(reducer, e, item);
    const int have = lanes.lanes_in(row);
#pragma unroll
    for (int q = 0; q < mine; ++q) {
      if (q >= have) break;
      if constexpr (starts)
        state[q] = reducer.start(item[q]);
      else
        reducer.add(state[q], item[q], static_cast<std::size_t>(row));
    }
  }
  /// Adds all rows, of which there are more than one unless `one_row`, two at a time.
  template <bool one_row> __device__ __forceinline__ void add_all(States& state) const {
    Elements e[2];
    load(0, e[0]);
    if constexpr (!one_row) load(1, e[1]);
    add<true>(0, e[0], state);
    if constexpr (one_row) return;
    add(1, e[1], state);
    const int rows = lanes.rows();
#pragma unroll 1
    for (int r = 2; r < rows; r += 2) {
      load(r, e[0]);
      load(r + 1, e[1]);
      add(r, e[0], state);
      add(r + 1, e[1], state);
    }
  }
  /// Adds all rows, of which there are many: always loads one or two of them ahead.
  __device__ __forceinline__ void add_many(States& state) const {
    Elements e[2];
    load(0, e[0]);
    load(1, e[1]);
    add<true>(0, e[0], state);
    const int rows = lanes.rows();
#pragma unroll 1
    for (int r = 1; r < rows; r += 2) {
      load(r + 1, e[0]);
      add(r, e[1], state);
      load(r + 2, e[1]);
      add(r + 1, e[0], state);
    }
  }
};

/// The fast path that reduces whole rows, which needs merges of lanes of any lengths, or the reducer.
template <class Reducer> struct RowPath { using type = Reducer; };
template <class Reducer>
requires requires {
  typename Reducer::FastPath::Shares;
} || requires(typename Reducer::FastPath fast, typename Reducer::FastPath::State s) {
  fast.merge(s, s);
}
struct RowPath<Reducer> {
  using type = typename Reducer::FastPath;
};

/// Whether a row is bound by loads: if states are short, or if there is a fast path for it.
template <class Reducer>
inline constexpr bool has_light_rows = sizeof(typename Reducer::State) <= 8 ||
                                       !std::is_same_v<typename RowPath<Reducer>::type, Reducer>;

/// Calls reduce(reducer) with the fast path, and with the reducer unless it succeeded in all threads of the
/// warp. The elements are n, the first of which has the index `base`.
template <class Reducer, class Reduce>
__device__ __forceinline__ typename Reducer::State on_row_path(const Reducer& reducer, std::uint64_t base,
                                                               int n, Reduce reduce) {
  using Fast = typename RowPath<Reducer>::type;
  if constexpr (!std::is_same_v<Fast, Reducer>) {
    const Fast fast = reducer.fast_path();
    if (fast.applies()) {
      const auto state = reduce(fast);
      bool succeeded = true;
      if constexpr (requires { fast.succeeded(state); }) succeeded = fast.succeeded(state);
      if (__all_sync(whole_warp, succeeded)) return fast.state(state, base, n);
    }
  }
  return reduce(reducer);
}

/// Reduces a leaf of more elements than lanes on a warp; all threads get its state.
template <class Reducer, class Reader>
__device__ __forceinline__ typename Reducer::State reduce_spread_leaf(const Reducer& reducer,
                                                                      const Reader& reader, std::size_t place,
                                                                      std::uint64_t base, int n) {
  const SpreadLanes lanes{n};
  return on_row_path(reducer, base, n, [&]<class R>(const R& any_reducer) {
    const SpreadMerges<R> merges{any_reducer, lanes};
    typename R::State state[SpreadLanes::mine];
    SpreadElements<R, Reader>{any_reducer, reader, lanes, place, base}.add_many(state);
    merges.merge_lanes(any_reducer, state);
    __syncwarp();  // threads may have added apart from each other
    return merges.merge_row(any_reducer, state[0]);
  });
}

/// Minimum resident blocks per multiprocessor: rows of small states are bound by loads, of which many
/// warps have more in flight.
template <class Reducer>
inline constexpr int spread_blocks = sizeof(typename RowPath<Reducer>::type::State) <= 8 ? 8 : 1;

/// Reduces rows in the order of a tree of 128 lanes that add their elements in turn, or have one each.
template <bool one_row_of_lanes, class Reducer, class Reader>
__global__ void __launch_bounds__(spread_threads, spread_blocks<Reducer>)
    reduce_spread_rows(Reducer reducer, Reader reader, Layout l, Destination out) {
  const std::size_t w = std::size_t{blockIdx.x} * warps() + static_cast<std::size_t>(warp_index()),
                    first = w * spread_rows,
                    row = first + static_cast<std::size_t>(SpreadMerges<Reducer>::row());
  const SpreadLanes lanes{static_cast<int>(l.n)};
  if (first >= l.outer) return;
  const auto state = on_row_path(reducer, 0, lanes.n, [&]<class R>(const R& any_reducer) {
    const SpreadMerges<R> merges{any_reducer, lanes};
    typename R::State of_row[spread_rows];
#pragma unroll
    for (int i = 0; i < spread_rows; ++i) {  // rows beyond the last one are reduced like it
      const std::size_t at = min(first + static_cast<std::size_t>(i), l.outer - 1);
      typename R::State state[SpreadLanes::mine];
      SpreadElements<R, Reader>{any_reducer, reader, lanes, l.first(at), 0}
          .template add_all<one_row_of_lanes>(state);
      merges.merge_lanes(any_reducer, state);
      of_row[i] = state[0];
    }
    __syncwarp();  // threads may have merged apart from each other
    return merges.merge_rows(any_reducer, of_row);
  });
  if (thread() % 8 == 0 && row < l.outer) out.write(reducer, state, l.n, row);
}

}  // namespace samesum::gpu
