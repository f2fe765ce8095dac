/// Scans on a grid on a GPU, by the kernel of all scans.
#pragma once

#include "samesum/backend/cuda/grid.cuh"
#include "samesum/backend/cuda/scan.cuh"

namespace samesum::gpu {

template <class F> struct GridScanReducer;
template <class F> inline constexpr bool reads_all<GridScanReducer<F>> = true;
template <> inline constexpr bool fresh_is_neutral<GridSum> = true;

/// Sums elements of any format on the grid of their result, and rounds each sum once to F.
template <class F> struct GridScanReducer {
  using Format = fp64;  // holds elements of every format
  using Result = F;
  using State = GridSum;
  using Item = double;

  GridSource source;
  bool exclusive;
  KeyStatus* status;  ///< set if a sum overflows a given grid; may be null
  GridOfDoubles grid;
  std::uint64_t terms = 0;  ///< terms of the longest prefix

  /// The reducer for result `result`, which has n elements.
  __device__ GridScanReducer at(std::size_t result, std::uint64_t n) const {
    GridScanReducer own = *this;
    own.grid = GridOfDoubles{source.grid(result, n)};
    own.terms = exclusive && n > 0 ? n - 1 : n;
    return own;
  }
  __device__ Item item(const InputElement<fp64>& e) const { return e.x.v; }
  __device__ State start(const Item& x) const {
    State state;
    add(state, x, 0);
    return state;
  }
  __device__ void add(State& state, const Item& x, std::size_t) const { grid.add(state, x); }
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  /// A term that is too large for the longest prefix may turn shorter ones into NaN, too.
  __device__ void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    finish_on_grid<F>(state, false, terms, grid.exponent(), at, out);
  }
  __device__ void check(const State& state) const {
    if (status != nullptr && state.overflows(terms, grid_word_bits<F>)) status->overflowed = 1;
  }
};

}  // namespace samesum::gpu
