/// Sums on a grid in a window whose unit is the grid, for the kernels of batches.cuh.
#pragma once

#include "samesum/backend/cuda/device/grid.cuh"
#include "samesum/backend/cuda/device/key_status.hpp"
#include "samesum/backend/cuda/window/leaf.cuh"
#include "samesum/window/anchor.hpp"

namespace samesum::gpu {
namespace {

/// The window of terms of type C on a grid 2^g. Rounds each term to a multiple of 2^g, to nearest, ties to
/// even, and adds the multiples as integers of 64 bits.
template <class C> struct GridWindow;

/// fp32 is converted in one instruction. A term and the sum of all have at most 2^62 units.
template <> class GridWindow<float> {
 public:
  static constexpr int words = 1;

  GridWindow() = default;
  /// Scaling by 2^-g in two steps, each by a normal number, is exact, or gives a number far below half a
  /// unit.
  __device__ explicit GridWindow(int grid)
      : first_{is_wide_enough(grid) ? scale_of<fp32>(-grid / 2) : 0},
        second_{is_wide_enough(grid) ? scale_of<fp32>(-grid - -grid / 2) : 0} {}

  /// Whether it holds at most 2^log2_terms terms with that largest magnitude; false if that is not finite.
  __device__ bool holds(std::uint32_t largest, int log2_terms) const {
    return first_ != 0 && units(from_bits<float>(largest)) < scale_of<fp32>(62 - log2_terms);
  }
  template <class Tile> __device__ __forceinline__ void add(std::int64_t (&sum)[1], const Tile& tile) const {
#pragma unroll
    for (int i = 0; i < Tile::size; ++i) sum[0] += __float2ll_rn(units(tile.term(i)));
  }
  __device__ static Int128 total(const std::int64_t (&sum)[1]) { return Int128::of(sum[0]); }

 private:
  __device__ static bool is_wide_enough(int grid) { return grid >= -250 && grid <= 250; }
  __device__ float units(float x) const { return x * first_ * second_; }

  float first_ = 0, second_ = 0;
};

/// fp64 whose sum has at most 2^126 units is split against anchors of units (window/anchor.hpp), into
/// multiples of 2^84, of 2^42 and of 1 unit. Multiples of an even number leave the parity of the units, so
/// only the last rounding matters. The bits of the sums are what is added. Each word holds the sum of 2^20
/// terms.
template <> class GridWindow<double> {
 public:
  static constexpr int words = 3;

  GridWindow() = default;
  __device__ explicit GridWindow(int grid) : grid_{grid} {}

  __device__ bool holds(std::uint64_t largest, int log2_terms) const {
    using Key = MagnitudeKey<double>;
    const std::uint32_t key = Key::of(from_bits<double>(largest));
    return grid_ >= lowest && grid_ <= highest && key < Key::infinity &&
           Key::exponent(key) < grid_ + 126 - log2_terms && log2_terms <= 20;
  }
  template <class Tile> __device__ __forceinline__ void add(std::int64_t (&sum)[3], const Tile& tile) const {
    const double first = anchor(2 * part_bits), second = anchor(part_bits), third = anchor(0);
    std::uint64_t bits[3] = {};
#pragma unroll
    for (int i = 0; i < Tile::size; ++i) {
      double x = tile.term(i);
      bits[0] += take(x, first);
      bits[1] += take(x, second);
      bits[2] += to_bits(x + third);
    }
    sum[0] += static_cast<std::int64_t>(bits[0] - Tile::size * to_bits(first));
    sum[1] += static_cast<std::int64_t>(bits[1] - Tile::size * to_bits(second));
    sum[2] += static_cast<std::int64_t>(bits[2] - Tile::size * to_bits(third));
  }
  __device__ static Int128 total(const std::int64_t (&sum)[3]) {
    Int128 all = Int128::of(sum[0]).shifted(2 * part_bits);
    all.add(Int128::of(sum[1]).shifted(part_bits));
    all.add(Int128::of(sum[2]));
    return all;
  }

 private:
  static constexpr int part_bits = 42, lowest = Format<fp64>::min_exponent - 52,
                       highest = Format<fp64>::max_exponent - 52 - 2 * part_bits;

  __device__ double anchor(int above) const { return unit_anchor(min(max(grid_, lowest), highest) + above); }
  __device__ static std::uint64_t take(double& x, double anchor) {
    const double sum = anchor + x;
    x -= sum - anchor;
    return to_bits(sum);
  }

  int grid_ = 0;
};

/// The sum of terms of type C in a window, and the largest magnitude among them, as bits.
template <class C> struct GridWords {
  std::int64_t word[GridWindow<C>::words] = {};
  BitsOf<C> largest = 0;
  std::int32_t grid = 0;

  __device__ Int128 units() const { return GridWindow<C>::total(word); }
};

/// A sum and its grid; before grids are known, the largest exponent of the terms in place of one.
struct PlacedGridSum {
  GridSum sum;
  std::int32_t grid;

  PlacedGridSum() = default;
  template <class C>
  __device__ explicit PlacedGridSum(const GridWords<C>& words) : sum{words.units()}, grid{words.grid} {
    sum.bits = to_grid(from_bits<C>(words.largest), grid).bits;
  }
  __device__ void merge(const PlacedGridSum& other) {
    sum.merge(other.sum);
    grid = max(grid, other.grid);
  }
};

template <class T, ExactlySummed what, class Group> struct GridLeaf;

/// Adds terms on the grid of their result.
template <class T, ExactlySummed added> struct GridReducer : AnyWindowReducer<T, added> {
  using State = PlacedGridSum;
  using Carrier = std::conditional_t<added == ExactlySummed::products, double, CarrierOf<T>>;
  using Words = GridWords<Carrier>;
  template <class Group> using Leaf = GridLeaf<T, added, Group>;
  template <class Shape, class Reader> struct Launches {
    using Rows = WindowRowLaunch<Shape, GridReducer>;
    using Columns = WindowColumnLaunch<Shape, GridReducer>;
  };
  static constexpr int of_row =
      std::max(AnyWindowReducer<T, added>::of_row, AnyWindowReducer<T, added>::of_tile);
  /// Most elements of a row, and of a column, whose grid is found before they leave the chip.
  static constexpr std::size_t most_on_chip = std::size_t{BlockGroup::most_threads} *
                                              AnyWindowReducer<T, added>::of_tile,
                               most_of_column = 8;
  /// Minimum resident blocks per multiprocessor that hold rows: as many as leave each thread enough
  /// registers.
  static constexpr int blocks_on_chip = sizeof(Carrier) == 8 ? 1 : sizeof(T) == 2 ? 3 : 2;
  /// Whether the terms are numbers of type Carrier; products of fp64 have more bits.
  static constexpr bool has_window = added == ExactlySummed::elements || sizeof(T) <= 4;

  ExactKind kind;
  GridSource source;
  std::size_t format;  ///< format index of the results
  KeyStatus* status;   ///< set if a sum overflows a given grid; may be null
  bool as_state;       ///< whether results are states
  bool only_finds;     ///< whether results are the largest exponents of the terms
  bool in_place;       ///< whether a row or column that is held as a whole determines its own grid

  __device__ bool finds() const { return only_finds || in_place; }

  SAMESUM_HD bool is_wide() const {
    return !has_window ||
           (sizeof(Carrier) == 4 && source.word_bits > 62 && (in_place || source.exponents != nullptr));
  }
  SAMESUM_HD bool is_held() const { return in_place; }
  /// The pass that finds exponents runs backwards: it reads last the elements that the next pass reads first,
  /// so that these are in the cache.
  SAMESUM_HD bool is_backwards() const { return only_finds; }
  __device__ void merge(State& state, const State& other) const { state.merge(other); }
  /// The grid of n terms with that largest exponent, or, if this pass only finds exponents, the exponent.
  __device__ int placed(int exponent, std::uint64_t n) const {
    return only_finds ? exponent : source.found(exponent, n);
  }

  /// Writes result `at` of n elements, if doubles suffice to round it; otherwise returns false.
  __device__ bool finish_words(const Words& words, std::uint64_t n, std::size_t at, void* out) const {
    return !as_state && !only_finds && write_words(words, {n, kind.mean}, at, out, format);
  }
  __device__ void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    if (only_finds)
      static_cast<std::int32_t*>(out)[at] = state.grid;
    else if (as_state)
      static_cast<GridSum*>(out)[at] = state.sum;
    else if (!write_sum(state, kind.mean, n, at, out, format) && status != nullptr)
      status->overflowed = 1;
  }

 private:
  // Not inlined, as those of WindowReducer.
  __device__ __noinline__ static bool write_words(Words words, ExactResult result, std::size_t at, void* out,
                                                  std::size_t format) {
    const Int128 all = words.units();
    const auto units = static_cast<std::int64_t>(all.word[0]);
    if (!(Int128::of(units) == all) || abs(words.grid) > 900 || (units >> 62 != 0 && units >> 62 != -1))
      return false;
    const double scale = power_of_two(words.grid), high = __ll2double_rn(units),
                 low = __ll2double_rn(units - __double2ll_rn(high));
    const ExactWords<2> sum{
        {high * scale, low * scale}, {}, SumFlags::seen_any | SumFlags::seen_other_than_minus_zero};
    bool done = false;
    visit_format(format, [&]<class F>() {
      F rounded{};
      done = sum.round_sum(result, rounded);
      if (done) static_cast<F*>(out)[at] = to_bits(rounded) == Format<F>::sign_bit ? F{} : rounded;
    });
    return done;
  }
  __device__ __noinline__ static bool write_sum(State state, bool mean, std::uint64_t n, std::size_t at,
                                                void* out, std::size_t format) {
    bool fits = true;
    visit_format(format,
                 [&]<class F>() { fits = finish_on_grid<F>(state.sum, mean, n, state.grid, at, out); });
    return fits;
  }
};

/// The largest magnitude of the terms of a tile, as bits.
template <class Tile> __device__ __forceinline__ auto largest_magnitude(const Tile& tile) {
  using C = decltype(tile.term(0));
  if constexpr (Tile::pairs) {
    using T = typename Tile::Keyed;
    return to_bits(float{widen(from_bits<T>(static_cast<BitsOf<T>>(tile.keys().largest)))});
  } else {
    BitsOf<C> largest = 0;
#pragma unroll
    for (int i = 0; i < Tile::size; ++i)
      largest = max(largest, BitsOf<C>(to_bits(tile.term(i)) & ~Format<C>::sign_bit));
    return largest;
  }
}

struct Plus {
  template <class X> __device__ X operator()(X a, X b) const { return a + b; }
};
struct Merged {
  template <class State> __device__ State operator()(State a, const State& b) const {
    a.merge(b);
    return a;
  }
};

/// Sums of the elements of a leaf on a grid. Sources are as for WindowLeaf.
template <class T, ExactlySummed what, class Group> struct GridLeaf {
  using Reducer = GridReducer<T, what>;
  using C = typename Reducer::Carrier;
  using Window = GridWindow<C>;
  using Words = GridWords<C>;

  /// Adds the terms of n elements of result `at`, which has `of_result`. Returns false if the window does not
  /// hold them in any group.
  template <int size, class Source>
  __device__ __forceinline__ static bool add(const Reducer& reducer, std::size_t at, std::uint64_t of_result,
                                             const Source& source, Group group, int n, Words& words) {
    if (reducer.is_wide()) return false;
    words = {};
    if (n > 0 && !reducer.finds()) words.grid = reducer.source.grid(at, of_result);
    Window window{words.grid};
#pragma unroll 1
    for (int first = 0; first < n; first += size * group.threads) {
      const auto tile = source.template tile<what, size>(first);
      words.largest = max(words.largest, largest_magnitude(tile));
      if (Group::may_hold_all && reducer.in_place) {  // this is the only tile
        words.largest = group.combined(words.largest, Larger{});
        window = Window{reducer.placed(exponent_of(from_bits<C>(words.largest)), of_result)};
      }
      if (!reducer.only_finds) window.add(words.word, tile);
    }
    words.largest = group.combined(words.largest, Larger{});
    if (reducer.finds()) words.grid = reducer.placed(exponent_of(from_bits<C>(words.largest)), of_result);
#pragma unroll
    for (std::int64_t& word : words.word) word = group.combined(word, Plus{});
    return group.everywhere(holds(reducer, words, n));
  }

  /// Adds the terms of a row of n <= size·threads elements. Returns false if the window does not hold any row
  /// of the warp.
  template <int size, class Source>
  __device__ __forceinline__ static bool add_row(const Reducer& reducer, const Source& source, Group group,
                                                 int n, Words& words) {
    if (reducer.is_wide()) return false;
    words = {};
    const auto tile = source.template tile<what, size>(0);
    words.largest = group.combined(largest_magnitude(tile), Larger{});
    words.grid = reducer.finds()
                     ? reducer.placed(exponent_of(from_bits<C>(words.largest)), static_cast<std::uint64_t>(n))
                     : reducer.source.given;
    Window{words.grid}.add(words.word, tile);
#pragma unroll
    for (std::int64_t& word : words.word) word = group.combined(word, Plus{});
    return group.everywhere(holds(reducer, words, n));
  }

  /// Adds the terms of n elements of any values; thread 0 of the group writes the state.
  template <class Source>
  __device__ static void add_slowly(const Reducer& reducer, std::size_t at, std::uint64_t of_result,
                                    const Source& source, Group group, int n, PlacedGridSum* to) {
    PlacedGridSum placed;
    placed.grid = 0;
    if (reducer.finds()) {
      int exponent = no_exponent;
      for_each_tile(source, group, n, [&](const auto& tile) {
#pragma unroll
        for (int i = 0; i < slow_size; ++i) exponent = max(exponent, exponent_of_term(tile, i));
      });
      placed.grid = reducer.placed(group.combined(exponent, Larger{}), of_result);
    } else if (n > 0) {
      placed.grid = reducer.source.grid(at, of_result);
    }
    if (!reducer.only_finds) placed.sum = group.combined(sum_of(source, group, n, placed.grid), Merged{});
    if (group.index() == 0) *to = placed;
  }

 private:
  static constexpr int slow_size = Reducer::has_window ? 16 : 4;

  __device__ static bool holds(const Reducer& reducer, const Words& words, int n) {
    if (reducer.only_finds) return words.largest < Format<C>::infinity;
    return n == 0 || Window{words.grid}.holds(words.largest, bits_for_terms(static_cast<std::uint64_t>(n)));
  }
  template <class Source, class Visit>
  __device__ static void for_each_tile(const Source& source, Group group, int n, Visit visit) {
#pragma unroll 1
    for (int first = 0; first < n; first += slow_size * group.threads)
      visit(source.template tile<what, slow_size>(first));
  }
  template <class Tile> __device__ static int exponent_of_term(const Tile& tile, int i) {
    if constexpr (what == ExactlySummed::products)
      return exponent_of_product(tile.element(i), tile.factor(i));
    else
      return exponent_of(tile.element(i));
  }

  /// A tile as terms of type double.
  template <class Tile> struct Widened {
    static constexpr int size = Tile::size;
    const Tile& tile;
    __device__ double term(int i) const { return tile.term(i); }
  };
  /// The sum of the elements of a thread.
  template <class Source>
  __device__ static GridSum sum_of(const Source& source, Group group, int n, int grid) {
    GridSum sum;
    double most = 0;  // the largest magnitude that the window has added
    const GridWindow<double> window{grid};
    for_each_tile(source, group, n, [&](const auto& tile) {
      if constexpr (Reducer::has_window) {
        const double largest = from_bits<C>(largest_magnitude(tile));
        if (window.holds(to_bits(largest), 0)) {
          std::int64_t word[3] = {};
          window.add(word, Widened<std::remove_cvref_t<decltype(tile)>>{tile});
          sum.units.add(window.total(word));
          most = max(most, largest);
          return;
        }
      }
#pragma unroll 1
      for (int i = 0; i < slow_size; ++i) add_term(sum, tile, i, grid);
    });
    sum.bits = max(sum.bits, to_grid(most, grid).bits);
    return sum;
  }
  template <class Tile> __device__ static void add_term(GridSum& sum, const Tile& tile, int i, int grid) {
    if constexpr (what == ExactlySummed::products)
      sum.add_product(tile.element(i), tile.factor(i), grid);
    else
      sum.add(tile.element(i), grid);
  }
};

}  // namespace
}  // namespace samesum::gpu
