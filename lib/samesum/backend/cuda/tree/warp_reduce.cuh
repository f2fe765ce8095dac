/// Reduces a leaf with any reducer, on a warp or a part of one.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/backend/cuda/tree/lanes.cuh"
#include "samesum/backend/cuda/tree/spread_rows.cuh"

namespace samesum::gpu {

/// Which elements of a group of four rows a thread has: every row with all four lanes; only the first rows,
/// each with all four lanes; or any number of lanes per row.
enum class RowsOfThread { all, whole, any };

/// Reduces a leaf. Thread t of those that share it holds lanes 4t to 4t + 3.
template <class Shape, class Reducer, class Reader> class LaneLeafReduce {
  using Element = typename Reader::Element;
  using State = typename Reducer::State;
  using Item = typename Reducer::Item;
  using Raw = typename Reader::Raw;
  static constexpr int mine = 4, lanes = Shape::lanes;
  using Four = Lanes<Shape, Reducer, mine>;
  /// Whether the reducer may read two inputs. A reducer that declares `inputs` reads one.
  static constexpr bool takes_two = !requires { Reducer::inputs; };
  /// Whether the reducer is bound by loads: hardly any arithmetic, and 16 bytes per load.
  static constexpr bool is_light = !takes_two && requires { requires Reducer::is_light; }
  &&sizeof(Raw) == 16;
  static_assert(lanes == warp * mine);

 public:
  /// Whether threads may also have lanes 32 apart: loads of doubles, if not those of fewer bytes, are as
  /// fast, and the merges are fewer. If the fast path suits only short rows, it is for lanes. Longer states,
  /// and shares that depend on the number of elements, leave too few registers.
  static constexpr bool may_spread = Shape::in_turn && sizeof(Raw) > 16 && has_light_rows<Reducer> &&
                                     sizeof(typename RowPath<Reducer>::type::State) <= 16 && !requires {
    Reducer::FastPath::longest_row;
  }
  &&!requires { typename RowPath<Reducer>::type::Shares; };

  /// Returns the state of the n elements from `place` on, the first of which has index `index`, in the first
  /// thread of the warp. If n = 0, the state is undefined. `spreads`: threads have lanes 32 apart.
  template <bool spreads>
  __device__ __forceinline__ static State leaf(const Reducer& reducer, const Reader& reader,
                                               std::size_t place, std::uint64_t index, int n) {
    const bool aligned = reader.is_aligned(place);
    if (n <= lanes) return one_row(reducer, reader, place, index, n, warp, aligned, n);
    if constexpr (spreads) return reduce_spread_leaf(reducer, reader, place, index, n);
    Four four;
    const int rows = (n + lanes - 1) / lanes, groups = Four::groups(rows);
    const auto on_fast_path_of = [&]<RowsOfThread have>() {
      return on_fast_path(reducer, index, n, four.sum, [&](auto warp_of, const auto& fast, auto& of_fast) {
        warp_of.template rows_of<have>(fast, reader, place, index, n, groups, aligned, of_fast);
      });
    };
    if (aligned && n == groups * group) {
      if (!on_fast_path_of.template operator()<RowsOfThread::all>())
        rows_of<RowsOfThread::all>(reducer, reader, place, index, n, groups, aligned, four);
    } else {
      bool done = false;
      if constexpr (Shape::in_turn)
        if (aligned && n % mine == 0) done = on_fast_path_of.template operator()<RowsOfThread::whole>();
      if (!done) rows_of<RowsOfThread::any>(reducer, reader, place, index, n, groups, aligned, four);
    }
    return halve(reducer, four.sum);
  }

  /// Returns the state of a row of n <= 4·threads elements in the first of its threads, which are aligned in
  /// the warp. If the row does not exist, or n = 0, the state is undefined. `equal`: all rows of the warp
  /// have n elements.
  __device__ __forceinline__ static State short_row(const Reducer& reducer, const Reader& reader,
                                                    std::size_t place, bool exists, int n, bool equal,
                                                    int threads) {
    const bool aligned = reader.is_aligned(place);
    if (equal && n == mine * threads && threads >= mine)
      return whole_row(reducer, reader, place, exists, threads, aligned);
    return one_row(reducer, reader, place, 0, exists ? n : 0, threads, aligned, equal ? n : mine * threads);
  }

  /// Most groups of rows of a leaf for `two_leaves`; elements per group; most elements of a leaf for
  /// `two_leaves`.
  static constexpr int short_groups = sizeof(Raw) <= 8 ? 2 : 1, group = Four::rows * lanes,
                       short_leaf = short_groups * group;
  /// Reduces two leaves of one input at a time, each of at most `short_leaf` elements, so that as many loads
  /// are in flight as for long leaves.
  __device__ __forceinline__ static void two_leaves(const Reducer& reducer, const Reader& reader,
                                                    const std::size_t (&place)[2], int n, State (&state)[2]) {
    const bool aligned = reader.is_aligned(place[0]) && reader.is_aligned(place[1]);
    if (aligned && n % group == 0)
      two_short<RowsOfThread::all>(reducer, reader, place, n, aligned, state);
    else if (aligned && n % mine == 0)
      two_short<RowsOfThread::whole>(reducer, reader, place, n, aligned, state);
    else
      two_short<RowsOfThread::any>(reducer, reader, place, n, aligned, state);
  }

 private:
  template <class, class, class> friend class LaneLeafReduce;

  static constexpr bool has_fast_path = requires { typename Reducer::FastPath; }
  &&(Shape::in_turn ||
     requires(typename Reducer::FastPath q, typename Reducer::FastPath::State s) { q.merge(s, s); });
  /// Tries to reduce the lanes of n elements on the fast path. Returns false if the reducer has none, or if
  /// it does not apply or did not succeed.
  template <class Run>
  __device__ __forceinline__ static bool on_fast_path(const Reducer& reducer, std::uint64_t index, int n,
                                                      State (&sum)[mine], Run run) {
    if constexpr (has_fast_path) {
      using FastPath = typename Reducer::FastPath;
      const FastPath fast = reducer.fast_path();
      if (!fast.applies()) return false;
      Lanes<Shape, FastPath, mine> four;
      run(LaneLeafReduce<Shape, FastPath, Reader>{}, fast, four);
      if constexpr (requires { fast.succeeded(four.sum[0]); }) {
        bool succeeded = true;
#pragma unroll
        for (int i = 0; i < mine; ++i) succeeded = succeeded && fast.succeeded(four.sum[i]);
        if (!__all_sync(whole_warp, succeeded)) return false;
      }
#pragma unroll
      for (int i = 0; i < mine; ++i) sum[i] = fast.state(four.sum[i], index, rows_of_thread(n));
      return true;
    }
    return false;
  }

  /// Number of rows that this thread has of n elements, where n is a multiple of four.
  __device__ __forceinline__ static int rows_of_thread(int n) {
    return (n - thread() * mine + lanes - 1) / lanes;
  }

  template <RowsOfThread have>
  __device__ __forceinline__ static void two_short(const Reducer& reducer, const Reader& reader,
                                                   const std::size_t (&place)[2], int n, bool aligned,
                                                   State (&state)[2]) {
    const int first = thread() * mine, groups = (n + group - 1) / group;
    Raw raw[2][short_groups][Four::rows];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const Reader of_thread = reader.moved(place[k] + static_cast<std::size_t>(first));
#pragma unroll
      for (int g = 0; g < short_groups; ++g)
#pragma unroll
        for (int r = 0; g < groups && r < Four::rows; ++r) {
          const int at = g * group + r * lanes;
          raw[k][g][r] = fetch<have>(of_thread, false, static_cast<std::size_t>(at), n - first - at, aligned);
        }
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const auto run = [&](auto warp_of, const auto& any_reducer, auto& four) {
#pragma unroll
        for (int g = 0; g < short_groups; ++g)
          if (g < groups)
            warp_of.template four_rows<have>(any_reducer, reader, raw[k][g], raw[k][g], g, 0, n, first, four);
      };
      Four four;
      if (have == RowsOfThread::any || !on_fast_path(reducer, 0, n, four.sum, run))
        run(LaneLeafReduce{}, reducer, four);
      state[k] = halve(reducer, four.sum);
    }
  }

  /// Whether states of the fast path can be halved, which short rows need.
  static constexpr bool halves_on_fast_path =
      requires(typename Reducer::FastPath fast, typename Reducer::FastPath::State s) {
    fast.halve(s, s);
  };
  template <class Fast>
  __device__ __forceinline__ static void merge_lanes(const Fast& reducer, typename Fast::State& state,
                                                     const typename Fast::State& other) {
    if constexpr (requires { reducer.halve(state, other); })
      reducer.halve(state, other);
    else
      reducer.merge(state, other);
  }

  /// Halves the lanes of `threads` threads, at least four and a power of two; the first one gets the result.
  /// Each thread has four lanes; pairs of threads divide their merges until each thread has one state.
  __device__ __forceinline__ static State halve(const Reducer& reducer, State (&sum)[mine],
                                                int threads = warp) {
    const auto share = [&](int delta, int count) {
      const bool upper = thread() & delta;
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const State got = shuffle_xor(chosen(upper, sum[i], sum[i + count]), delta);
        State left = chosen(upper, got, sum[i]);
        merge_lanes(reducer, left, chosen(upper, sum[i + count], got));
        sum[i] = left;
      }
    };
    share(threads / 2, 2);
    share(threads / 4, 1);
    // Each thread now holds one state. For each i in 0 to 3, the lanes 4t + i have been merged into states
    // that neighbouring threads hold, a quarter of all.
    State state = sum[0];
    const auto take = [&](int delta) {
      const State other = shuffle_down(state, delta);
      merge_lanes(reducer, state, other);
    };
    for (int delta = threads / 8; delta > 0; delta /= 2) take(delta);
    take(threads / 2);
    take(threads / 4);
    return state;
  }

  /// Reduces a row of one element per lane, of which each thread has four. The whole warp calls it.
  __device__ __forceinline__ static State whole_row(const Reducer& reducer, const Reader& reader,
                                                    std::size_t place, bool exists, int threads,
                                                    bool aligned) {
    const int first = thread() % threads * mine, count = exists ? mine : 0;
    const auto at = place + static_cast<std::size_t>(first);
    const Raw x = reader.fetch(false, at, count, aligned);
    Raw y = x;
    if (reader.inputs() == 2) y = reader.fetch(true, at, count, aligned);
    Element e[mine];
    reader.elements(x, y, 0, first, e);
    if constexpr (halves_on_fast_path) {
      const auto fast = reducer.fast_path();
      if (fast.applies()) {
        using OnFastPath = LaneLeafReduce<Shape, typename Reducer::FastPath, Reader>;
        const auto state = OnFastPath::halved(fast, e, threads);
        bool succeeded = true;
        if constexpr (requires { fast.succeeded(state); }) succeeded = fast.succeeded(state);
        if (__all_sync(whole_warp, succeeded)) return fast.state(state, 0, mine * threads);
      }
    }
    return halved(reducer, e, threads);
  }
  __device__ __forceinline__ static State halved(const Reducer& reducer, const Element (&e)[mine],
                                                 int threads) {
    Item item[mine];
    items_of(reducer, e, item);
    State sum[mine];
#pragma unroll
    for (int i = 0; i < mine; ++i) sum[i] = reducer.start(item[i]);
    return halve(reducer, sum, threads);
  }

  /// Reduces at most 128 elements: one row of the leaf. No row of the warp has more than `longest` elements.
  __device__ __forceinline__ static State one_row(const Reducer& reducer, const Reader& reader,
                                                  std::size_t place, std::uint64_t index, int n, int threads,
                                                  bool aligned, int longest) {
    const int first = thread() % threads * mine, left = min(max(n - first, 0), mine);
    const auto at = static_cast<std::size_t>(first);
    const Raw x = reader.fetch(false, place + at, left, aligned);
    Raw y = x;
    if (reader.inputs() == 2) y = reader.fetch(true, place + at, left, aligned);
    Element e[mine];
    Item item[mine];
    reader.elements(x, y, index, first, e);
    items_of(reducer, e, item);
    State sum[mine];
#pragma unroll
    for (int i = 0; i < mine; ++i)
      if (i < left) sum[i] = reducer.start(item[i]);
        // Lane l merges lane l + half, first of another thread, then of this one.
#pragma unroll 1
    for (int delta = threads / 2; delta > 0; delta /= 2) {
      if (delta * mine >= longest) continue;
#pragma unroll
      for (int i = 0; i < mine; ++i) {
        const State other = shuffle_down(sum[i], delta);
        if (first + delta * mine + i < n) reducer.merge(sum[i], other);
      }
    }
    if (2 < left) reducer.merge(sum[0], sum[2]);
    if (3 < left) reducer.merge(sum[1], sum[3]);
    if (1 < left) reducer.merge(sum[0], sum[1]);
    return sum[0];
  }

  /// Loads four elements, of which `left` exist.
  template <RowsOfThread have>
  __device__ __forceinline__ static Raw fetch(const Reader& of_thread, bool second, std::size_t at, int left,
                                              bool aligned) {
    if constexpr (have == RowsOfThread::all) return of_thread.fetch(second, at, mine, true);
    if constexpr (have == RowsOfThread::whole)
      return left > 0 ? of_thread.fetch(second, at, mine, true) : Raw{};
    return of_thread.fetch(second, at, min(max(left, 0), mine), aligned);
  }

  template <RowsOfThread have>
  __device__ __forceinline__ static void rows_of(const Reducer& reducer, const Reader& reader,
                                                 std::size_t place, std::uint64_t index, int n, int groups,
                                                 bool aligned, Four& four) {
    const int first = thread() * mine;
    const bool two = takes_two && reader.inputs() == 2;
    Reader of_thread = reader.moved(place + static_cast<std::size_t>(first));
    const auto load = [&](bool second, int g, std::size_t from, Raw(&raw)[Four::rows]) {
#pragma unroll
      for (int r = 0; r < Four::rows; ++r)
        raw[r] = fetch<have>(of_thread, second, from + static_cast<std::size_t>(r * lanes),
                             n - ((g * Four::rows + r) * lanes + first), aligned);
    };
    int g = 0;
    Raw low[Four::rows], high[Four::rows];
    if (is_light && groups > 2) {  // four loads are in flight while four rows are added
      load(false, 0, 0, low);
#pragma unroll 1
      for (; g + 1 < groups; g += 2) {
        load(false, g + 1, std::size_t{group}, high);
        four_rows<have>(reducer, reader, low, low, g, index, n, first, four);
        of_thread = of_thread.moved(2 * std::size_t{group});
        if (g + 2 < groups) load(false, g + 2, 0, low);
        four_rows<have>(reducer, reader, high, high, g + 1, index, n, first, four);
      }
      if (g < groups) four_rows<have>(reducer, reader, low, low, g, index, n, first, four);
      return;
    }
#pragma unroll 1
    for (; !two && g + 1 < groups; g += 2) {  // eight loads in flight, then eight rows are added
      load(false, g, 0, low);
      load(false, g + 1, std::size_t{group}, high);
      of_thread = of_thread.moved(2 * std::size_t{group});
      four_rows<have>(reducer, reader, low, low, g, index, n, first, four);
      four_rows<have>(reducer, reader, high, high, g + 1, index, n, first, four);
    }
#pragma unroll 1
    for (; g < groups; ++g) {
      load(false, g, 0, low);
      if (two) load(true, g, 0, high);
      of_thread = of_thread.moved(std::size_t{group});
      four_rows<have>(reducer, reader, low, high, g, index, n, first, four);
    }
  }

  template <RowsOfThread have>
  __device__ __forceinline__ static void four_rows(const Reducer& reducer, const Reader& reader, const Raw* x,
                                                   const Raw* y, int g, std::uint64_t index, int n, int first,
                                                   Four& four) {
    Item items[Four::rows][mine];
#pragma unroll
    for (int r = 0; r < Four::rows; ++r) {
      Element e[mine];
      reader.elements(x[r], y[r], index, (g * Four::rows + r) * lanes + first, e);
      items_of(reducer, e, items[r]);
    }
    int left[mine];  // rows left, per lane
#pragma unroll
    for (int i = 0; i < mine; ++i)
      left[i] = (n - first - (have == RowsOfThread::any ? i : 0) + lanes - 1) / lanes - g * Four::rows;
    four.template add<have == RowsOfThread::all>(reducer, g, items, left);
  }
};

/// Reduces a leaf by stride doubling over consecutive elements: a thread merges four neighbours, a warp
/// merges a chunk of 128, and each finished chunk is merged with the earlier ones by stride doubling.
template <class Shape, class Reducer, class Reader> class BlockedLeafReduce {
  using Element = typename Reader::Element;
  using State = typename Reducer::State;
  static constexpr int mine = 4, chunk = warp * mine, chunks = static_cast<int>(Shape::leaf) / chunk;
  static constexpr int levels = static_cast<int>(ceil_log2(chunks));

 public:
  static constexpr bool may_spread = false;
  template <bool>
  __device__ static State leaf(const Reducer& reducer, const Reader& reader, std::size_t place,
                               std::uint64_t index, int n) {
    const bool aligned = reader.is_aligned(place);
    const int count = static_cast<int>(std::bit_ceil(static_cast<unsigned>((n + chunk - 1) / chunk)));
    State state, waiting[levels + 1];
#pragma unroll 1
    for (int k = 0; k < count && n > 0; ++k) {
      const int at = k * chunk + thread() * mine, left = min(max(n - at, 0), mine);
      const auto raw = reader.fetch(false, place + static_cast<std::size_t>(at), left, aligned);
      Element e[mine];
      reader.elements(raw, raw, index, at, e);
      State four[mine];
      for (int i = 0; i < mine; ++i)
        if (i < left) four[i] = reducer.start(reducer.item(e[i]));
      merge_if(1 < left, four[0], four[1], reducer);
      merge_if(3 < left, four[2], four[3], reducer);
      merge_if(2 < left, four[0], four[2], reducer);
      state = four[0];
      merge_across(state, min((max(n - k * chunk, 0) + mine - 1) / mine, warp), reducer);
      bool carries = true;
      for (int level = 0; level < levels; ++level) {
        if (carries && (k >> level & 1)) {
          const int first_of_right = (k + 1 - (1 << level)) * chunk;
          if (thread() == 0 && first_of_right < n) reducer.merge(waiting[level], state);
          state = waiting[level];
        } else if (carries) {
          waiting[level] = state;
          carries = false;
        }
      }
    }
    return state;
  }
};

template <class Shape, class Reducer, class Reader>
using LeafOf = std::conditional_t<Shape::combines_only_neighbours, BlockedLeafReduce<Shape, Reducer, Reader>,
                                  LaneLeafReduce<Shape, Reducer, Reader>>;

}  // namespace samesum::gpu
