/// Reduces columns: a thread reduces a leaf of one column, or some of its lanes, so that the loads of a warp
/// are coalesced.
#pragma once

#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/device/reader.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/backend/cuda/tree/lanes.cuh"
#include "samesum/call/layout.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum::gpu {

/// Whether lanes of columns try the fast path of a reducer: if it is much cheaper, as those that can be
/// halved.
template <class Shape, class Reducer>
inline constexpr bool has_fast_lanes = requires(typename Reducer::FastPath fast,
                                                typename Reducer::FastPath::State s) {
  fast.halve(s, s);
  requires Shape::in_turn || requires { fast.merge(s, s); };
};

/// Reduces lane `lane` < n of a leaf of n elements. The first element of the leaf is at `place` and has the
/// index `base`; elements are `stride` apart, and `rows` of them are loaded at a time.
template <class Shape, int rows, class Reducer, class Reader>
__device__ __forceinline__ typename Reducer::State column_lane(const Reducer& reducer, const Reader& reader,
                                                               std::size_t place, std::size_t stride,
                                                               std::uint64_t base, int lane, int n) {
  using One = Lanes<Shape, Reducer, 1>;
  constexpr int lanes = Shape::lanes;
  const int count = (n - lane + lanes - 1) / lanes, groups = One::groups(count);
  if constexpr (has_fast_lanes<Shape, Reducer>) {
    const auto fast = reducer.fast_path();
    if (fast.applies()) {
      const auto state = column_lane<Shape, rows>(fast, reader, place, stride, base, lane, n);
      if constexpr (!requires { fast.succeeded(state); })
        return fast.state(state, base, count);
      else if (fast.succeeded(state))
        return fast.state(state, base, count);
    }
  }
  // On a fast path of fp32, the compiler keeps the products of the stride in registers.
  constexpr bool steps = sizeof(typename Reader::Raw) != 16 || !requires { reducer.applies(); };
  const std::conditional_t<steps, Step, std::size_t> apart{lanes * stride};
  One one;
#pragma unroll 1
  for (int g = 0; g < groups; g += rows / One::rows) {
    const int row = g * One::rows, at = row * lanes + lane;
    typename Reader::Element e[rows];
    typename Reducer::Item x[rows];
    reader.column(place + static_cast<std::size_t>(at) * stride, apart, count - row, base, at, lanes, e);
    items_of(reducer, e, x);
#pragma unroll
    for (int q = 0; q < rows / One::rows; ++q) {
      if (g + q >= groups) break;
      const int have[1] = {count - row - q * One::rows};
      typename Reducer::Item four[One::rows][1];
      for (int r = 0; r < One::rows; ++r) four[r][0] = x[q * One::rows + r];
      if (have[0] >= One::rows)
        one.template add<true>(reducer, g + q, four, have);
      else
        one.template add<false>(reducer, g + q, four, have);
    }
  }
  return one.sum[0];
}

/// Whether a thread has registers for sixteen elements that it loads at a time, as other warps need some,
/// too.
template <class Reader>
inline constexpr bool loads_sixteen = sizeof(typename Reader::Raw) <= 16 &&
                                      sizeof(typename Reader::Element) <= 24;
/// Rows of a lane that a thread loads at a time if lanes have some rows, and if they have many. A sum of two
/// words takes so long that loads must be ahead.
inline constexpr int some_column_rows = 8;
template <class Reducer, class Reader>
inline constexpr int many_column_rows = loads_sixteen<Reader> || sizeof(typename Reducer::State) == 16 ? 16
                                                                                                       : 8;
/// Lanes that a thread takes at a time if lanes have few rows, and the most rows. More rows pay only with
/// elements of 16 bits, of which few bytes are in flight otherwise.
template <class Reducer, class Reader>
inline constexpr int lanes_at_once = loads_sixteen<Reader> && sizeof(typename Reducer::State) <= 8 ? 16 : 8;
template <class Reducer, class Reader>
inline constexpr int few_column_rows = sizeof(typename Reader::Raw) <= 8 &&
                                               sizeof(typename Reducer::State) <= 8
                                           ? 8
                                           : 4;

/// Merges the states of the first `count` of some lanes by halving.
template <class Reducer, int most>
__device__ __forceinline__ typename Reducer::State halved(const Reducer& reducer,
                                                          typename Reducer::State (&state)[most], int count) {
  // bounds that the compiler knows, so that the states stay in registers
#pragma unroll
  for (int level = 1; level <= static_cast<int>(ceil_log2(most)); ++level)
#pragma unroll
    for (int q = 0; q < most / 2; ++q)
      if (const int half = most >> level; q < half && q + half < count)
        reducer.merge(state[q], state[q + half]);
  return state[0];
}
/// Reduces the first `count` of some lanes of one element each.
template <class Reducer, class Element, int most>
__device__ __forceinline__ typename Reducer::State reduce_row(const Reducer& reducer,
                                                              const Element (&e)[most], int count) {
  typename Reducer::Item x[most];
  typename Reducer::State state[most];
  items_of(reducer, e, x);
#pragma unroll
  for (int q = 0; q < most; ++q)
    if (q < count) state[q] = reducer.start(x[q]);
  return halved(reducer, state, count);
}

/// Some lanes of a leaf of n elements: `lane` < n and those after it at multiples of 2^log2_apart. The first
/// element of the leaf is at `place` and has the index `base`; elements are `stride` apart. Lanes add their
/// rows in turn.
template <class Shape, class Reader, int most> struct ColumnLanes {
  static constexpr int lanes = Shape::lanes;
  const Reader& reader;
  std::size_t place, stride;
  std::uint64_t base;
  int lane, log2_apart, n;

  /// Number of these lanes that have elements in row r.
  __device__ int count(int r = 0) const {
    return (min(n - r * lanes, lanes) - lane + (1 << log2_apart) - 1) >> log2_apart;
  }
  /// Number of rows of lane q.
  __device__ int rows(int q = 0) const { return (n - lane - (q << log2_apart) + lanes - 1) / lanes; }
  /// Loads row r of these lanes.
  __device__ __forceinline__ void load(int r, typename Reader::Element (&e)[most]) const {
    const int at = r * lanes + lane;
    reader.column(place + static_cast<std::size_t>(at) * stride, Step{stride << log2_apart}, count(r), base,
                  at, 1 << log2_apart, e);
  }
  /// Adds the rows of each lane.
  template <class Reducer>
  __device__ __forceinline__ void add(const Reducer& reducer, typename Reducer::State (&state)[most]) const {
    typename Reader::Element e[most];
    typename Reducer::Item x[most];
    load(0, e);
    items_of(reducer, e, x);
#pragma unroll
    for (int q = 0; q < most; ++q)
      if (q < count()) state[q] = reducer.start(x[q]);
    const int all = rows();
#pragma unroll 1
    for (int r = 1; r < all; ++r) {
      load(r, e);
      items_of(reducer, e, x);
      const int have = count(r);
#pragma unroll
      for (int q = 0; q < most; ++q)
        if (q < have) reducer.add(state[q], x[q], static_cast<std::size_t>(r));
    }
  }
};

/// Reduces these lanes to the state of all. `one_row`: they have one element each.
template <bool one_row, class Shape, class Reducer, class Reader, int most>
__device__ __forceinline__ typename Reducer::State reduce_lanes(
    const Reducer& reducer, const ColumnLanes<Shape, Reader, most>& lanes) {
  const int count = lanes.count();
  if constexpr (one_row) {
    typename Reader::Element e[most];
    lanes.load(0, e);
    return reduce_row(reducer, e, count);
  }
  typename Reducer::State state[most];
  if constexpr (has_fast_lanes<Shape, Reducer>) {
    const auto fast = reducer.fast_path();
    if (fast.applies()) {
      typename Reducer::FastPath::State of_fast[most];
      lanes.add(fast, of_fast);
      bool succeeded = true;
      if constexpr (requires { fast.succeeded(of_fast[0]); })
#pragma unroll
        for (int q = 0; q < most; ++q) succeeded = succeeded && (q >= count || fast.succeeded(of_fast[q]));
      if (succeeded) {
#pragma unroll
        for (int q = 0; q < most; ++q)
          if (q < count) state[q] = fast.state(of_fast[q], lanes.base, lanes.rows(q));
        return halved(reducer, state, count);
      }
    }
  }
  lanes.add(reducer, state);
  return halved(reducer, state, count);
}

/// Returns the place of the first element of the column of result `at`.
__device__ inline std::size_t column_place(const Layout& l, std::size_t at) {
  const std::size_t o = quotient(at, l.inner);
  return l.first(o) + (at - o * l.inner);
}

/// How the threads of a block share a leaf of neighbouring results: `parts` threads per result, each with
/// every parts-th lane, and `width` results. Both are powers of two.
struct ColumnPlan {
  int width, parts;

  __host__ __device__ int threads() const { return width * parts; }
};

inline constexpr int column_threads = 128,  ///< threads per block if a thread reduces whole leaves
    most_column_threads = 512,              ///< most threads per block
    enough_column_threads = 1 << 17;        ///< threads per launch that hide the latency of memory

/// Minimum resident blocks per multiprocessor: small states leave registers for more warps.
template <class Reducer> inline constexpr int column_blocks = sizeof(typename Reducer::State) <= 12 ? 2 : 1;

/// Number of levels of the tree over the lanes of a leaf.
template <class Shape> inline constexpr int lane_levels = static_cast<int>(ceil_log2(Shape::lanes));

/// States in the shared memory of a block: those that wait where threads visit all lanes, at least one a
/// thread. One more small state lets 256 threads share the lanes of 32 columns.
template <class Shape, class State>
inline constexpr int column_states = column_threads* std::max(lane_levels<Shape> + (sizeof(State) <= 8), 1);

/// Plans the blocks: one thread per leaf and result if these are many, else several.
template <class Shape, class State> ColumnPlan plan_columns(const Layout& l, std::size_t leaves) {
  const std::size_t results = std::bit_ceil(std::min<std::size_t>(l.results(), column_threads));
  const auto is_small = [&](std::size_t parts) {
    return parts * results < column_threads || parts * leaves * l.results() < enough_column_threads;
  };
  const int most = static_cast<int>(ceil_log2(std::clamp<std::size_t>(l.n, 1, Shape::lanes)));
  int level = 0;
  while (level < most && is_small(std::size_t{1} << level)) ++level;
  // a thread that visits 2^k lanes needs room for k states
  const int room = column_states<Shape, State> / std::max(lane_levels<Shape> - level, 1),
            threads =
                static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(room, most_column_threads))));
  return {std::min(static_cast<int>(results), threads >> level), 1 << level};
}

/// How the threads of reduce_columns take their lanes: several lanes at a time, which have one element or add
/// their rows in turn, or one lane at a time, of which some or many rows are loaded at a time. Each case has
/// a kernel of its own, because together they need more registers, and fewer warps then hide the latency of
/// memory.
enum class ColumnVisit { one_row, few_rows, some_rows, many_rows };

/// Reduces a leaf of each column. A thread visits its lanes in bit-reversed order, so that the halving of
/// lanes becomes stride doubling over the visits, and at most seven states wait. The threads of a column then
/// halve what is left of the lanes. Neighbouring threads read neighbouring elements.
template <class Shape, ColumnVisit visits_by, class Reducer, class Reader>
__global__ void __launch_bounds__(most_column_threads, column_blocks<Reducer>)
    reduce_columns(Reducer reducer, Reader reader, Layout l, ColumnPlan plan, typename Reducer::State* states,
                   Destination out) {
  using State = typename Reducer::State;
  __shared__ alignas(16) unsigned char memory[column_states<Shape, State> * sizeof(State)];
  State* waiting = reinterpret_cast<State*>(memory) + threadIdx.x;
  const std::size_t results = l.results(), across = (results - 1) / plan.width + 1,
                    leaves = max(Shape::leaves(l.n), std::size_t{1});
  const int column = static_cast<int>(threadIdx.x) & (plan.width - 1),
            part = static_cast<int>(threadIdx.x) >> (__ffs(plan.width) - 1);
  const std::size_t k = quotient(blockIdx.x, across), base = k * Shape::leaf,
                    at = (blockIdx.x - k * across) * plan.width + column;
  const int n = at < results ? static_cast<int>(min(l.n - base, Shape::leaf)) : 0;
  const std::size_t place = column_place(l, at) + base * l.stride;
  constexpr bool takes_lanes = visits_by <= ColumnVisit::few_rows;
  constexpr int at_once = takes_lanes ? lanes_at_once<Reducer, Reader> : 1,
                rows = visits_by == ColumnVisit::some_rows ? some_column_rows
                                                           : many_column_rows<Reducer, Reader>;
  int lanes = Shape::lanes / at_once;
  if constexpr (visits_by == ColumnVisit::one_row)
    lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / at_once;
  const int log2_parts = __ffs(plan.parts) - 1, visits = max(lanes >> log2_parts, 1),
            levels = __ffs(visits) - 1;
  const auto first_lane = [&](int visit) {
    return part + plan.parts * static_cast<int>(__brev(static_cast<unsigned>(visit) << 1) >> (31 - levels));
  };
  State state{};
#pragma unroll 1
  for (int visit = 0; visit < visits; ++visit) {
    if (const int lane = first_lane(visit); lane < n) {
      if constexpr (takes_lanes)
        state = reduce_lanes<visits_by == ColumnVisit::one_row>(
            reducer,
            ColumnLanes<Shape, Reader, at_once>{reader, place, l.stride, base, lane, log2_parts + levels, n});
      else
        state = column_lane<Shape, rows>(reducer, reader, place, l.stride, base, lane, n);
    }
    int level = 0;
    for (; visit >> level & 1; ++level) {
      State left = waiting[level * blockDim.x];
      if (first_lane(visit + 1 - (1 << level)) < n)
        reducer.merge(left, state);  // the first lane of the right half has elements
      state = left;
    }
    if (level < levels) waiting[level * blockDim.x] = state;
  }
  for (int half = plan.parts / 2; half > 0; half /= 2) {
    if (part >= half && part < 2 * half) waiting[0] = state;
    __syncthreads();  // the upper half has written its states
    if (part < half && part + half < n) reducer.merge(state, waiting[half * plan.width]);
  }
  if (part > 0 || at >= results) return;
  if (leaves == 1)
    out.write(reducer, state, l.n, at);
  else
    states[at * leaves + k] = state;
}

inline constexpr int short_column = 8,  ///< most elements of a short column
    short_column_threads = 256;         ///< threads per block
inline constexpr std::size_t enough_short_columns = std::size_t{1} << 16;  ///< columns that occupy a GPU
/// Short columns that a thread reduces, so that enough loads are in flight.
template <class Reducer> inline constexpr int short_columns = sizeof(typename Reducer::State) <= 8 ? 4 : 2;

/// Reduces columns of at most short_column elements, and no more than lanes.
template <class Reducer, class Reader>
__global__ void __launch_bounds__(short_column_threads)
    reduce_short_columns(Reducer reducer, Reader reader, Layout l, Destination out) {
  constexpr int mine = short_columns<Reducer>;
  const std::size_t results = l.results(),
                    first = std::size_t{blockIdx.x} * (mine * short_column_threads) + threadIdx.x;
  const int n = static_cast<int>(l.n);
  typename Reader::Element e[mine][short_column];
#pragma unroll
  for (int c = 0; c < mine; ++c)
    if (const std::size_t at = first + c * short_column_threads; at < results)
      reader.column(column_place(l, at), Step{l.stride}, n, 0, 0, 1, e[c]);
#pragma unroll
  for (int c = 0; c < mine; ++c)
    if (const std::size_t at = first + c * short_column_threads; at < results)
      out.write(reducer, reduce_row(reducer, e[c], n), l.n, at);
}

/// Launches the kernel for columns that suits their number and length.
template <class Shape, class Reducer, class Reader> struct ColumnLaunch {
  std::size_t parts;  ///< states per result: one per leaf

  explicit ColumnLaunch(const Layout& l) : parts{std::max<std::size_t>(Shape::leaves(l.n), 1)} {}
  cudaError_t operator()(const Reducer& reducer, const Reader& reader, const Layout& l,
                         typename Reducer::State* states, Destination out, cudaStream_t stream) const {
    const std::size_t results = l.results();
    if (l.n > 0 && l.n <= std::min<std::size_t>(short_column, Shape::lanes) &&
        results >= enough_short_columns) {
      constexpr std::size_t of_block = short_columns<Reducer> * short_column_threads;
      return launch(reduce_short_columns<Reducer, Reader>, (results - 1) / of_block + 1, short_column_threads,
                    stream, reducer, reader, l, out);
    }
    const ColumnPlan plan = plan_columns<Shape, typename Reducer::State>(l, parts);
    const auto kernel = [&]<ColumnVisit visit>(Constant<visit>) {
      return reduce_columns<Shape, visit, Reducer, Reader>;
    };
    constexpr bool has_many = many_column_rows < Reducer, Reader >> some_column_rows;
    auto chosen = kernel(Constant < has_many ? ColumnVisit::many_rows : ColumnVisit::some_rows > {});
    if (l.n <= Shape::lanes) {
      chosen = kernel(Constant<ColumnVisit::one_row>{});
    } else {
      constexpr int at_once = lanes_at_once<Reducer, Reader>;
      if (l.n <= Shape::lanes * some_column_rows) chosen = kernel(Constant<ColumnVisit::some_rows>{});
      if constexpr (Shape::in_turn && Shape::lanes >= at_once)
        if (l.n <= Shape::lanes * few_column_rows<Reducer, Reader> && plan.parts * at_once <= Shape::lanes)
          chosen = kernel(Constant<ColumnVisit::few_rows>{});
    }
    return launch(chosen, ((results - 1) / static_cast<std::size_t>(plan.width) + 1) * parts, plan.threads(),
                  stream, reducer, reader, l, plan, states, out);
  }
};

}  // namespace samesum::gpu
