/// Scans on a grid on a GPU, by the kernel of all scans: with sums of 64 bits, and with sums of 128 bits if
/// these may be needed.
#pragma once

#include "samesum/backend/cuda/device/grid.cuh"
#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/scan/exact_window.cuh"
#include "samesum/backend/cuda/scan/scan.cuh"

namespace samesum::gpu {

template <class F> struct GridScanReducer;
template <class F> inline constexpr bool reads_all<GridScanReducer<F>> = true;
template <> inline constexpr bool fresh_is_neutral<GridSum> = true;
template <> inline constexpr bool is_order_free<GridSum> = true;

/// Device memory that the kernels of a call share. All bytes are 0 before the first kernel.
struct GridScanState {
  unsigned missed;  ///< whether sums of 64 bits do not give the results
  unsigned begun;   ///< blocks of sums of 128 bits that have begun
};

/// A sum as a whole number of units, modulo 2^64.
struct ShortGridSum {
  std::uint64_t units = 0;
  __device__ void merge(const ShortGridSum& other) { units += other.units; }
};
template <> inline constexpr bool fresh_is_neutral<ShortGridSum> = true;
template <> inline constexpr bool is_order_free<ShortGridSum> = true;

/// Sums elements that fp32 holds on the grid of their result, and rounds each sum once to F. Reports an
/// element that is not finite, or so large that 64 bits may not hold the sums, as happens on a given grid;
/// then GridScanReducer gives the results.
template <class F> struct ShortGridScanReducer {
  using Format = fp32;
  using Result = F;
  using State = ShortGridSum;
  using Item = float;
  static constexpr bool reads_zeros = true;  ///< absent elements are 0: no others may be reported

  GridSource source;
  GridScanState* common;
  int grid = 0;
  float first = 0, second = 0;  ///< their product is 2^-grid
  float most = 0;               ///< units of a term

  /// The reducer for result `result`, which has n elements.
  __device__ ShortGridScanReducer at(std::size_t result, std::uint64_t n) const {
    constexpr int most_exponent = 250;
    ShortGridScanReducer placed = *this;
    placed.grid = source.grid(result, n);
    // On a grid of another exponent, any element counts as too large.
    const bool is_usual = placed.grid >= samesum::Format<fp32>::min_quantum && placed.grid <= most_exponent;
    const int scale = is_usual ? -placed.grid : 0;
    placed.first = scale_of<fp32>(scale / 2);
    placed.second = scale_of<fp32>(scale - scale / 2);
    placed.most = is_usual ? scale_of<fp32>(grid_word_bits<fp32> - bits_for_terms(n)) : -1;
    return placed;
  }
  __device__ Item item(const InputElement<fp32>& e) const { return e.x.v; }
  __device__ State start(Item x) const {
    State state;
    add(state, x, 0);
    return state;
  }
  /// Scaling is exact, or gives a number far below half a unit.
  __device__ void add(State& state, Item x, std::size_t) const {
    const float units = x * first * second;
    if (!(fabsf(units) <= most)) common->missed = 1;
    state.units += static_cast<std::uint64_t>(__float2ll_rn(units));
  }
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  /// +0 for zero.
  __device__ void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    const BitsOf<F> bits = to_bits(rounded_integer<F, fp32>(static_cast<std::int64_t>(state.units), grid));
    static_cast<F*>(out)[at] = from_bits<F>(bits == samesum::Format<F>::sign_bit ? BitsOf<F>{0} : bits);
  }
};

/// Sums elements of any format on the grid of their result, and rounds each sum once to F.
template <class F> struct GridScanReducer {
  using Format = fp64;  // holds elements of every format
  using Result = F;
  using State = GridSum;
  using Item = double;

  GridSource source;
  KeyStatus* status;  ///< set if a sum overflows a given grid; may be null
  GridScanState* common;
  GridOfDoubles grid;

  __device__ bool begin() const { return common->missed != 0; }
  __device__ std::size_t next_block() const { return atomicAdd(&common->begun, 1); }
  /// The reducer for result `result`, which has n elements.
  __device__ GridScanReducer at(std::size_t result, std::uint64_t n) const {
    GridScanReducer placed = *this;
    placed.grid = GridOfDoubles{source.grid(result, n)};
    return placed;
  }
  __device__ Item item(const InputElement<fp64>& e) const { return e.x.v; }
  __device__ State start(const Item& x) const {
    State state;
    add(state, x, 0);
    return state;
  }
  __device__ void add(State& state, const Item& x, std::size_t) const { grid.add(state, x); }
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  __device__ void finish(const State& state, std::uint64_t terms, std::size_t at, void* out) const {
    finish_on_grid<F>(state, false, terms, grid.exponent(), at, out);
  }
  /// Reports a result that overflows.
  __device__ void check(const State& state, std::uint64_t terms) const {
    if (status != nullptr && state.overflows(terms, grid_word_bits<F>)) status->overflowed = 1;
  }
};

}  // namespace samesum::gpu
