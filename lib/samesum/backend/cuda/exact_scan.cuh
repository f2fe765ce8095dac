/// Exact scans on a GPU: a first pass finds how many bits the sums need. If 128 bits hold them, integers of
/// that size are scanned by the kernel of all scans. Otherwise a fallback scans with all digits, tile by
/// tile.
#pragma once

#include "samesum/backend/cuda/digits.cuh"
#include "samesum/backend/cuda/scan.cuh"

namespace samesum::gpu {

/// What the elements of all results of a call have in common. All bytes 0 is the window of no elements.
struct ExactWindow {
  static constexpr int bias = 2048;
  /// Magnitudes are below 2^(top - bias), and whole numbers of units of 2^(bias - below). 0 for zeros.
  unsigned top, below;
  /// Whether integers cannot give the results: if an element is infinite or NaN, or if the first element of a
  /// result is -0, since integers have no -0.
  unsigned missed;
  unsigned unused;

  __device__ int grid() const { return bias - static_cast<int>(below); }
  /// Whether integers of 128 bits hold the sums of 2^log2_length elements.
  __device__ bool holds(int log2_length) const {
    return missed == 0 && static_cast<int>(top) - bias - grid() + log2_length <= 126;
  }
};

/// A sum as a whole number of units of 2^ExactWindow::grid().
struct WindowSum {
  __int128 units = 0;
};
template <> inline constexpr bool fresh_is_neutral<WindowSum> = true;
template <class F> struct WindowReducer;
template <class F> inline constexpr bool reads_all<WindowReducer<F>> = true;

/// Sums elements of any format exactly, and rounds each sum once to F.
template <class F> struct WindowReducer {
  using Format = fp64;  // holds elements of every format
  using Result = F;
  using State = WindowSum;
  using Item = WindowSum;
  using Magnitude = unsigned __int128;

  const ExactWindow* window;
  int log2_length;
  int grid = 0;

  /// Whether this reducer can compute the results. Every thread of a kernel calls it first.
  __device__ bool begin() {
    grid = window->grid();
    return window->holds(log2_length);
  }

  __device__ Item item(const InputElement<fp64>& e) const {
    const Decomposed d = decompose<fp64>(to_bits(e.x.v));
    const int shift = d.exponent - grid;
    Magnitude magnitude =
        shift >= 0 ? Magnitude{d.significand} << (shift & 127) : Magnitude{d.significand >> min(-shift, 63)};
    if (d.significand == 0) magnitude = 0;  // then the shift may have any size
    return {static_cast<__int128>(d.negative ? -magnitude : magnitude)};
  }
  __device__ State start(const Item& x) const { return x; }
  __device__ void add(State& state, const Item& x, std::size_t) const { state.units += x.units; }
  __device__ void merge(State& state, const State& other) const { state.units += other.units; }
  __device__ void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    const bool negative = state.units < 0;
    const Magnitude magnitude =
        negative ? -static_cast<Magnitude>(state.units) : static_cast<Magnitude>(state.units);
    const auto high = static_cast<std::uint64_t>(magnitude >> 64);
    auto significand = static_cast<std::uint64_t>(magnitude);
    int shift = 0;
    if (high != 0) {
      const int zeros = leading_zeros(high);
      const std::uint64_t rest = significand << zeros;
      significand = zeros == 0 ? high : high << zeros | significand >> (64 - zeros);
      if (rest != 0) significand |= 1;  // the last bit is sticky
      shift = 64 - zeros;
    }
    static_cast<F*>(out)[at] =
        from_bits<F>(significand == 0 ? BitsOf<F>{0} : round_to_bits<F>(negative, significand, grid + shift));
  }
};

/// The digits of a sum, and the flags of its elements (Exact::Flag).
struct TileDigits {
  std::int64_t digit[Exact::digit_count];
  std::int64_t flags;
};

}  // namespace samesum::gpu
