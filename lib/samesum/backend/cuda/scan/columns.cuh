/// Scans along columns in the order prefix: a thread has one row of a tile of one column, so that the loads
/// of neighbouring threads are coalesced. Columns of several rows are read twice: once for the states of the
/// rows, and once to scan each row from the states of all elements before it. The launch shape cannot change
/// the bits. Reducers whose items depend on the result are not served.
#pragma once

#include "samesum/backend/cuda/scan/scan.cuh"

namespace samesum::gpu {

/// The states of the rows of columns, where a row is one of a tile: lanes of one column. Slot (o, r, i)
/// belongs to row r of column i of array o, and stands at (o·rows + r)·inner + i, as the elements do. A
/// column has a slot for each whole row and one for what follows. At first a slot holds the state of its row;
/// merge_rows_of_columns replaces it by that of the rows before it in the tile, or, for the first row of a
/// tile, by the state of the whole tile; merge_tiles_of_columns replaces the latter by the state of all tiles
/// before.
template <class State> struct ColumnRows {
  State* state;
  std::size_t inner, rows;  ///< columns of an array; slots of a column
  static constexpr std::size_t of_tile = PrefixTree::rows_of_tile;

  __host__ __device__ static std::size_t rows_of(std::size_t n) { return n / PrefixTree::lanes + 1; }
  __host__ __device__ std::size_t tiles() const { return (rows - 1) / of_tile + 1; }
  /// The slot of row 0 of a column; those of the other rows follow `inner` apart.
  __device__ State* column(std::size_t outer, std::size_t inner_index) const {
    return state + outer * rows * inner + inner_index;
  }
};

/// A thread that merges the tiles of a column has two states for each level of groups on its stack, which the
/// driver reserves for all threads of the GPU. So columns have at most 2^log2_most_tiles tiles.
inline constexpr std::size_t log2_most_tiles = 16;

/// The part of a column that a thread has: part `part` of `parts`. Neighbouring threads have neighbouring
/// columns.
struct ColumnPart {
  std::size_t outer, part, inner;
  bool exists;

  __device__ ColumnPart(const Layout& l, std::size_t parts) {
    const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x, above = quotient(at, l.inner);
    inner = at - above * l.inner;
    outer = quotient(above, parts);
    part = above - outer * parts;
    exists = outer < l.outer;
  }
};

inline constexpr int scan_column_threads = 256;  ///< threads of a block
inline constexpr int loads_of_column = 16;       ///< elements that a thread loads at a time
static_assert(PrefixTree::lanes % loads_of_column == 0 && loads_of_column % PrefixTree::run == 0);

/// Adds element j of a run to its state.
template <class Reducer>
__device__ __forceinline__ void add_to_run(const Reducer& reducer, typename Reducer::State& run,
                                           Scalar<typename Reducer::Format> x, int j) {
  using F = typename Reducer::Format;
  const auto item = reducer.item(InputElement<F>{x, Scalar<F>::zero(), 0, static_cast<std::uint32_t>(j)});
  if (j == 0)
    run = reducer.start(item);
  else
    reducer.add(run, item, static_cast<std::size_t>(j));
}

/// The row of a thread.
template <class Reducer> struct ColumnRow {
  using State = typename Reducer::State;
  ColumnPart part;
  std::size_t begin = 0;  ///< index of the first element in the column
  int count = 0;

  __device__ ColumnRow(const Layout& l, std::size_t rows) : part{l, rows} {
    begin = part.part * PrefixTree::lanes;
    if (part.exists && begin < l.n) count = static_cast<int>(min(l.n - begin, PrefixTree::lanes));
  }
  /// Index of the first element in memory.
  __device__ std::size_t place(const Layout& l) const {
    return l.first(part.outer) + part.inner + begin * l.stride;
  }
  __device__ State* slot(const ColumnRows<State>& rows) const {
    return rows.column(part.outer, part.inner) + part.part * rows.inner;
  }
};

/// The state of a whole row: `stride` apart from `x` on.
template <class Reducer, class T>
__device__ __forceinline__ typename Reducer::State sum_row(const Reducer& reducer, const T* x,
                                                           std::size_t stride) {
  using F = typename Reducer::Format;
  using State = typename Reducer::State;
  constexpr int groups = int{PrefixTree::lanes} / loads_of_column,
                levels = static_cast<int>(ceil_log2(groups));
  State waiting[levels], sum;
#pragma unroll 1
  for (int g = 0; g < groups; ++g) {
    Scalar<F> element[loads_of_column];
#pragma unroll
    for (int i = 0; i < loads_of_column; ++i, x += stride) element[i] = gpu::load<Scalar<F>>(x);
    State run[loads_of_column / PrefixTree::run];
#pragma unroll
    for (int i = 0; i < loads_of_column; ++i)
      add_to_run(reducer, run[i / PrefixTree::run], element[i], i % PrefixTree::run);
#pragma unroll
    for (int apart = 1; apart < loads_of_column / int{PrefixTree::run}; apart *= 2)
#pragma unroll
      for (int k = 0; k + apart < loads_of_column / int{PrefixTree::run}; k += 2 * apart)
        reducer.merge(run[k], run[k + apart]);
    sum = run[0];
    bool carries = true;
#pragma unroll
    for (int level = 0; level < levels; ++level) {
      if (carries && (g >> level & 1)) {
        sum = merged(reducer, waiting[level], sum);
      } else if (carries) {
        waiting[level] = sum;
        carries = false;
      }
    }
  }
  return sum;
}

/// Calls visit(i, state) for each of the `count` elements of a row, in turn: `state` is that of the row up to
/// element i. They are `stride` apart from `x` on.
template <class Reducer, class T, class Visit>
__device__ __forceinline__ void scan_row(const Reducer& reducer, const T* x, std::size_t stride, int count,
                                         Visit visit) {
  using F = typename Reducer::Format;
  constexpr int run = PrefixTree::run;
  DoublingWalker<Reducer, PrefixTree::runs> runs{reducer};
  typename Reducer::State state{};
#pragma unroll 1
  for (int first = 0; first < count; first += loads_of_column) {
    Scalar<F> element[loads_of_column];
#pragma unroll
    for (int i = 0; i < loads_of_column; ++i, x += stride)
      if (first + i < count) element[i] = gpu::load<Scalar<F>>(x);
#pragma unroll
    for (int i = 0; i < loads_of_column; ++i) {
      if (first + i >= count) break;
      add_to_run(reducer, state, element[i], i % run);
      const int k = (first + i) / run;
      if (i % run + 1 == run)
        visit(first + i, runs.push(static_cast<std::size_t>(k), state));
      else
        visit(first + i, k > 0 ? merged(reducer, runs.state(), state) : state);
    }
  }
}

/// Finds the state of each whole row.
template <class Reducer>
__global__ void __launch_bounds__(scan_column_threads)
    sum_rows_of_columns(Reducer reducer, ScanInput in, Layout l, ColumnRows<typename Reducer::State> rows) {
  const ColumnRow<Reducer> row{l, rows.rows};
  if (row.count < int{PrefixTree::lanes}) return;
  with_elements<Reducer>(
      in, [&](const auto* x) { *row.slot(rows) = sum_row(reducer, x + row.place(l), l.stride); });
}

/// Merges the rows of each tile. A thread has a tile of a column.
template <class Reducer>
__global__ void __launch_bounds__(scan_column_threads)
    merge_rows_of_columns(Reducer reducer, Layout l, ColumnRows<typename Reducer::State> rows) {
  using State = typename Reducer::State;
  const ColumnPart tile{l, rows.tiles()};
  if (!tile.exists) return;
  constexpr std::size_t ahead = 8;
  const std::size_t first = tile.part * rows.of_tile, count = min(rows.of_tile, rows.rows - first),
                    whole = min(rows.of_tile, rows.rows - 1 - first);
  State* const slot = rows.column(tile.outer, tile.inner) + first * l.inner;
  DoublingWalker<Reducer, PrefixTree::rows_of_tile> walker{reducer};
#pragma unroll 1
  for (std::size_t r = 0; r < count; r += ahead) {
    State of_row[ahead];
#pragma unroll
    for (std::size_t i = 0; i < ahead; ++i)
      if (r + i < whole) of_row[i] = slot[(r + i) * l.inner];
#pragma unroll
    for (std::size_t i = 0; i < ahead; ++i)
      if (r + i < count) {
        if (r + i > 0) slot[(r + i) * l.inner] = walker.state();
        if (r + i < whole) walker.push(r + i, of_row[i]);
      }
  }
  if (whole == rows.of_tile) slot[0] = walker.state();
}

/// Merges the tiles of each column. A thread has a column.
template <class Reducer>
__global__ void __launch_bounds__(scan_column_threads)
    merge_tiles_of_columns(Reducer reducer, Layout l, ColumnRows<typename Reducer::State> rows) {
  using State = typename Reducer::State;
  const ColumnPart column{l, 1};
  if (!column.exists) return;
  constexpr std::size_t ahead = 8;
  const std::size_t tiles = rows.tiles(), apart = rows.of_tile * l.inner;
  State* const slot = rows.column(column.outer, column.inner);
  TileGroups<Reducer, log2_most_tiles + 1> groups{reducer};
#pragma unroll 1
  for (std::size_t t = 0; t < tiles; t += ahead) {
    State of_tile[ahead];
#pragma unroll
    for (std::size_t i = 0; i < ahead; ++i)
      if (t + i + 1 < tiles) of_tile[i] = slot[(t + i) * apart];  // the last one is not whole
#pragma unroll 1
    for (std::size_t i = 0; i < ahead && t + i < tiles; ++i) {
      if (groups.any()) slot[(t + i) * apart] = groups.carry();
      if (t + i + 1 < tiles) groups.push(of_tile[i]);
    }
  }
}

/// Scans each row from the states of all elements before it.
template <class Reducer>
__global__ void __launch_bounds__(scan_column_threads)
    scan_rows_of_columns(Reducer reducer, ScanInput in, Layout l, ColumnRows<typename Reducer::State> rows,
                         ScanDestination out) {
  using F = typename Reducer::Format;
  using State = typename Reducer::State;
  const ColumnRow<Reducer> row{l, rows.rows};
  if (row.count == 0) return;
  const std::size_t r = row.part.part, of_tile = r % rows.of_tile, inner = l.inner;
  const State* const slot = row.slot(rows);
  const State* const end = slot + inner;  // after a whole row, what is before the next one
  ScanCarry<Reducer> tiles, in_tile;      // the tiles before, and the rows before in the tile
  if (r >= rows.of_tile) tiles.append(reducer, slot[-static_cast<std::ptrdiff_t>(of_tile * inner)]);
  if (of_tile > 0) in_tile.append(reducer, *slot);
  const bool ends_tile = of_tile + 1 == rows.of_tile;
  F* to = static_cast<F*>(out.out) + row.part.outer * out.row_stride + row.part.inner + row.begin * inner;
  F last{};
  if (out.exclusive) {
    ScanCarry<Reducer> before = tiles;
    if (in_tile.any) before.append(reducer, in_tile.state);
    reducer.finish(before.state, before.any ? row.begin : 0, 0, &last);
  }
  const auto write = [&](int i, State state) {
    const bool ends_row = i + 1 == int{PrefixTree::lanes};
    if (in_tile.any) state = ends_row ? *end : merged(reducer, in_tile.state, state);
    if (tiles.any && !(ends_row && ends_tile)) state = merged(reducer, tiles.state, state);
    F result;
    reducer.finish(state, row.begin + static_cast<std::size_t>(i) + 1, 0, &result);
    *to = out.exclusive ? last : result;
    last = result;
    to += inner;
  };
  with_elements<Reducer>(
      in, [&](const auto* x) { scan_row(reducer, x + row.place(l), l.stride, row.count, write); });
}

/// Enqueues the scan of columns. `states` has room for those of ColumnRows.
template <class Reducer>
cudaError_t launch_columns(const Reducer& reducer, const ScanInput& in, const Layout& l,
                           typename Reducer::State* states, const ScanDestination& out, cudaStream_t stream) {
  using Rows = ColumnRows<typename Reducer::State>;
  const Rows rows{states, l.inner, Rows::rows_of(l.n)};
  cudaError_t error = cudaSuccess;
  const auto enqueue = [&](auto kernel, std::size_t parts, auto... argument) {
    if (error == cudaSuccess)
      error = launch(kernel, (l.results() * parts - 1) / scan_column_threads + 1, scan_column_threads, stream,
                     argument...);
  };
  if (l.n > PrefixTree::lanes) {
    enqueue(sum_rows_of_columns<Reducer>, rows.rows, reducer, in, l, rows);
    enqueue(merge_rows_of_columns<Reducer>, rows.tiles(), reducer, l, rows);
    if (rows.tiles() > 1) enqueue(merge_tiles_of_columns<Reducer>, 1, reducer, l, rows);
  }
  enqueue(scan_rows_of_columns<Reducer>, rows.rows, reducer, in, l, rows, out);
  return error;
}

}  // namespace samesum::gpu
