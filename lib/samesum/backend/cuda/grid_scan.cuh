/// Scans on a grid on a GPU, by the kernel of all scans: with sums of three words, and, if these do not hold
/// a sum, with sums of four.
#pragma once

#include "samesum/backend/cuda/exact_window.cuh"
#include "samesum/backend/cuda/grid.cuh"
#include "samesum/backend/cuda/scan.cuh"

namespace samesum::gpu {

template <class F> struct GridScanReducer;
template <class F> inline constexpr bool reads_all<GridScanReducer<F>> = true;
template <> inline constexpr bool fresh_is_neutral<GridSum> = true;
template <> inline constexpr bool is_order_free<GridSum> = true;

/// A sum of multiples of a grid, modulo 2^92, in three words, and what is known of its terms.
struct ShortGridSum {
  static constexpr int sum_bits = 92;  ///< the bits of the sum; the flags are above them
  enum Flag : std::uint32_t { seen_nan = 1, seen_plus_infinity = 2, seen_minus_infinity = 4, too_large = 8 };

  std::uint32_t word[3] = {};

  __device__ std::int64_t low() const {
    return static_cast<std::int64_t>(std::uint64_t{word[1]} << 32 | word[0]);
  }
  __device__ void add(std::int64_t units) { add(units, static_cast<std::uint32_t>(units >> 63)); }
  __device__ void merge(const ShortGridSum& other) {
    add(other.low(), other.word[2]);
    word[2] |= other.word[2] & ~top_mask;
  }
  __device__ void set(std::uint32_t flags) { word[2] |= flags << top_bits; }
  __device__ std::uint32_t flags() const { return word[2] >> top_bits; }
  /// Whether the sum is at most 2^62 units.
  __device__ bool fits() const {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    return ((word[2] ^ static_cast<std::uint32_t>(low() >> 63)) & top_mask) == 0 &&
           static_cast<std::uint64_t>(low()) + most <= 2 * most;
  }

 private:
  static constexpr int top_bits = sum_bits - 64;
  static constexpr std::uint32_t top_mask = (std::uint32_t{1} << top_bits) - 1;

  __device__ void add(std::int64_t units, std::uint32_t top) {
    const std::uint64_t before = static_cast<std::uint64_t>(low()),
                        sum = before + static_cast<std::uint64_t>(units);
    const std::uint32_t above = word[2] + top + std::uint32_t{sum < before};
    word[0] = static_cast<std::uint32_t>(sum);
    word[1] = static_cast<std::uint32_t>(sum >> 32);
    word[2] = (word[2] & ~top_mask) | (above & top_mask);
  }
};
template <> inline constexpr bool fresh_is_neutral<ShortGridSum> = true;
template <> inline constexpr bool is_order_free<ShortGridSum> = true;

/// Sums elements that fp32 holds on the grid of their result, and rounds each sum once to F. Reports a sum
/// that may need more than 64 bits; then GridScanReducer gives the results.
template <class F> struct ShortGridScanReducer {
  using Format = fp32;
  using Result = F;
  using State = ShortGridSum;
  using Item = float;

  GridSource source;
  unsigned* missed;
  int grid = 0;
  float first = 0, second = 0;  ///< their product is 2^-grid
  float most = 0;               ///< units of a term

  /// The reducer for result `result`, which has n elements.
  __device__ ShortGridScanReducer at(std::size_t result, std::uint64_t n) const {
    constexpr int most_exponent = 250, bits_of_sums = ShortGridSum::sum_bits - 1;
    ShortGridScanReducer own = *this;
    own.grid = source.grid(result, n);
    // On a grid of another exponent, any element counts as too large.
    const bool is_usual = own.grid >= samesum::Format<fp32>::min_quantum && own.grid <= most_exponent;
    const int scale = is_usual ? -own.grid : 0;
    own.first = scale_of<fp32>(scale / 2);
    own.second = scale_of<fp32>(scale - scale / 2);
    own.most = is_usual ? scale_of<fp32>(min(62, bits_of_sums - bits_for_terms(n))) : -1;
    return own;
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
    if (fabsf(units) <= most)
      state.add(__float2ll_rn(units));
    else
      state.set(fabsf(x) < INFINITY ? ShortGridSum::too_large
                : x != x            ? ShortGridSum::seen_nan
                : x > 0             ? ShortGridSum::seen_plus_infinity
                                    : ShortGridSum::seen_minus_infinity);
  }
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  __device__ void finish(const State& state, std::uint64_t, std::size_t at, void* out) const {
    static_assert(SumFlags::seen_nan == ShortGridSum::seen_nan << 2 &&
                  SumFlags::seen_minus_infinity == ShortGridSum::seen_minus_infinity << 2);
    const std::uint32_t flags = state.flags();
    static_cast<BitsOf<F>*>(out)[at] = flags != 0 ? special_bits<F>(flags << 2) : rounded(state.low());
  }
  __device__ void check(const State& state) const {
    if ((state.flags() & ShortGridSum::too_large) || !state.fits()) *missed = 1;
  }

 private:
  /// A sum of units, rounded once; +0 for zero.
  __device__ BitsOf<F> rounded(std::int64_t units) const {
    const BitsOf<F> bits = to_bits(rounded_integer<F, fp32>(units, grid));
    return bits == samesum::Format<F>::sign_bit ? BitsOf<F>{0} : bits;
  }
};

/// Sums elements of any format on the grid of their result, and rounds each sum once to F.
template <class F> struct GridScanReducer {
  using Format = fp64;  // holds elements of every format
  using Result = F;
  using State = GridSum;
  using Item = double;

  GridSource source;
  bool exclusive;
  KeyStatus* status;                 ///< set if a sum overflows a given grid; may be null
  const unsigned* missed = nullptr;  ///< if not null, this kernel runs only if it is set
  GridOfDoubles grid;
  std::uint64_t terms = 0;  ///< terms of the longest prefix

  __device__ bool begin() const { return missed == nullptr || *missed != 0; }
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
