/// The rows of a tile that a warp holds in registers during a scan: loads, merges, the states of all
/// prefixes, and how these become results.
#pragma once

#include "samesum/backend/cuda/device/reader.cuh"
#include "samesum/backend/cuda/scan/states.cuh"
#include "samesum/call/values.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::gpu {

/// Elements of a scan, in any format.
struct ScanInput {
  explicit ScanInput(const Values& values) : x{values.data}, format{values.format->index} {}
  const void* x;
  std::size_t format;  ///< its format index
};

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

/// Elements of rows of a tile, in the registers of a warp: a thread holds one run of each row.
template <class F, int rows> class LoadedRows {
 protected:
  static constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  static_assert(run == 4 && row == warp * run);

 public:
  static constexpr int elements = rows * row;

  /// Sets all elements to 0 if some of them will not be loaded.
  __device__ void clear_unless_full(int count) {
    if (count >= elements) return;
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int j = 0; j < run; ++j) element_[r][j] = Scalar<F>::zero();
  }
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
    if constexpr (is_order_free<State>)
      visit_in_any_order(reducer, from, count, of_rows + first_row, merged(reducer, carry.state, before),
                         carry.state, visit, finish);
    else
      visit_in_order(reducer, from, count, first_row, of_rows, before, carry, end, visit, finish);
  }

 private:
  template <class Visit, class Finish>
  __device__ void visit_in_order(const Reducer& reducer, int from, int count, int first_row,
                                 const State* of_rows, State before, const ScanCarry<Reducer>& carry,
                                 const State& end, Visit visit, Finish finish) const {
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

  /// For states that may be merged in any order: each element is added to the state before it.
  /// `before` is the state before the first row, `before_tile` that before the tile; fresh if there is none.
  template <class Visit, class Finish>
  __device__ void visit_in_any_order(const Reducer& reducer, int from, int count, const State* of_rows,
                                     State before, const State& before_tile, Visit visit,
                                     Finish finish) const {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r * row >= count) break;
      if (r >= from) {
        State state = shuffled(runs_[r], (thread() + warp - 1) % warp);
        state = merged(reducer, chosen(thread() == 0, State{}, state), before);
#pragma unroll
        for (int j = 0; j < run; ++j) {
          reducer.add(state, item(reducer, r, j), static_cast<std::size_t>(j));
          visit(r, j, state);
        }
        finish(r);
      }
      before = merged(reducer, before_tile, of_rows[r]);
    }
  }
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

  State runs_[rows];  ///< merges of the row's runs up to that of the thread
};

/// Whether a reducer reads elements of every format.
template <class Reducer> inline constexpr bool reads_all = false;
template <template <class> class A, class F> inline constexpr bool reads_all<ElementSum<A, F>> = true;
/// Whether a reducer reads elements of format T.
template <class Reducer, class T>
inline constexpr bool reads = reads_all<Reducer> || can_read<T, typename Reducer::Format>;

/// Calls visit(x) with the elements in their own format.
template <class Reducer, class Visit> __device__ void with_elements(const ScanInput& in, Visit visit) {
  visit_format(in.format, [&]<class T>() {
    if constexpr (reads<Reducer, T>) visit(static_cast<const T*>(in.x));
  });
}

// --- results -----------------------------------------------------------------------------------------------

/// Where a scan writes its results.
struct ScanDestination {
  void* out;
  std::size_t row_stride;  ///< results between rows, if there is one for every element
  bool every;              ///< whether there is a result for every element, or one for all
  bool exclusive;          ///< whether the result of an element leaves it out
  bool states;             ///< whether the only result is a state, for a Partial
};

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

/// The format of the results: that of the elements, unless the reducer names another one.
template <class Reducer> struct ScanResultOf { using type = typename Reducer::Format; };
template <class Reducer>
requires requires { typename Reducer::Result; }
struct ScanResultOf<Reducer> {
  using type = typename Reducer::Result;
};

/// Writes the results of a warp, row by row.
template <class F> class RowWriter {
  static constexpr int run = PrefixTree::run, row = PrefixTree::lanes;
  static constexpr std::size_t alignment = run * sizeof(F) <= 16 ? run * sizeof(F) : 16;
  /// Results of a run.
  struct alignas(alignment) Run {
    F result[run];
  };

 public:
  /// @param to       the first result of the warp; they are `stride` apart
  /// @param count    number of results
  /// @param shifted  whether each result takes the place of the next one; then `first` takes the first place
  __device__ RowWriter(F* to, std::size_t stride, int count, bool shifted, F first)
      : to_{to + static_cast<std::size_t>(thread() * run) * stride},
        stride_{stride},
        count_{count},
        is_shifted_{shifted},
        is_aligned_{stride == 1 && reinterpret_cast<std::uintptr_t>(to) % alignment == 0},
        last_{first} {}

  __device__ F* row_of_results() { return run_.result; }
  __device__ void set(int j, F result) { run_.result[j] = result; }
  __device__ void write(int r) {
    if (is_shifted_) move();
    if (is_aligned_ && (r + 1) * row <= count_) {
      store(reinterpret_cast<Run*>(to_ + r * row));
      return;
    }
#pragma unroll
    for (int j = 0; j < run; ++j)
      if (r * row + thread() * run + j < count_)
        to_[static_cast<std::size_t>(r * row + j) * stride_] = run_.result[j];
  }

 private:
  /// Stores all results of the run, past the caches: they are not read again soon.
  __device__ void store(Run* to) const {
    constexpr int words = sizeof(Run) / 4;
    const auto word = std::bit_cast<std::array<std::uint32_t, words>>(run_);
    if constexpr (words == 2)
      __stcs(reinterpret_cast<uint2*>(to), make_uint2(word[0], word[1]));
    else
#pragma unroll
      for (int i = 0; i < words; i += 4)
        __stcs(reinterpret_cast<uint4*>(to) + i / 4,
               make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]));
  }
  /// Moves the results by one place: the first place receives the last result of the thread before, thread 0
  /// that of the last thread in the call before.
  __device__ void move() {
    const F last = run_.result[run - 1];
    const F passed = thread() == warp - 1 ? last_ : last;
    last_ = last;
    for (int j = run - 1; j > 0; --j) run_.result[j] = run_.result[j - 1];
    using Word = std::conditional_t<sizeof(F) == 8, BitsOf<F>, std::uint32_t>;
    run_.result[0] = from_bits<F>(
        static_cast<BitsOf<F>>(__shfl_sync(whole_warp, Word{to_bits(passed)}, (thread() + warp - 1) % warp)));
  }

  F* to_;
  std::size_t stride_;
  int count_;
  bool is_shifted_, is_aligned_;
  F last_;
  Run run_;
};

}  // namespace samesum::gpu
