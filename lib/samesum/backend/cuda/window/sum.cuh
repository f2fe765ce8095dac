/// Exact sums of a leaf by the threads of a group: in one window, or, if no window holds the leaf, one range
/// of exponents after another.
#pragma once

#include "samesum/backend/cuda/window/group.cuh"
#include "samesum/backend/cuda/window/reducer.cuh"

namespace samesum::gpu {
namespace {

/// The range of the keys of some numbers: the largest key, and the least key minus 1. The key of a zero is 0,
/// and 0 - 1 wraps to the largest integer, so zeros do not affect the minimum.
struct KeyRange {
  std::uint32_t largest = 0, least_minus_1 = ~0u;

  __device__ void add(std::uint32_t key) {
    largest = max(largest, key);
    least_minus_1 = min(least_minus_1, key - 1);
  }
};

/// The windows of the terms of a leaf and, for moments, of their squares. The first windows cost the least
/// and hold most data; the second ones have more words.
template <class T, ExactlySummed what, bool is_first, class Keyed> struct LeafWindows {
  static constexpr bool moments = what == ExactlySummed::elements_and_squares,
                        products = what == ExactlySummed::products, narrow = sizeof(T) == 2;
  static constexpr int precision = Format<T>::precision;
  using Word = std::conditional_t<what == ExactlySummed::elements && narrow && is_first, float, double>;
  using Terms = TermWindow<Keyed, products ? 2 * precision : precision,
                           narrow && moments               ? 1
                           : is_first || narrow || moments ? 2
                                                           : 3,
                           1, Word>;
  using Squares = TermWindow<Keyed, precision, narrow ? 2 : 3, 2>;

  Terms terms;
  Squares squares;

  /// Places the windows for `all` terms. A thread adds at most `of_thread` of them before it moves their sum
  /// from floats to doubles.
  __device__ void place(std::uint32_t largest, int headroom, int all, int of_thread) {
    const int log2_all = bits_for_terms(static_cast<std::uint64_t>(all)),
              log2_of_thread = bits_for_terms(static_cast<std::uint64_t>(of_thread));
    terms.place(largest, headroom, Terms::has_floats ? log2_of_thread : log2_all);
    if constexpr (moments) squares.place(largest, headroom, log2_all);
  }
  __device__ bool holds(std::uint32_t largest, std::uint32_t least_minus_1) const {
    return terms.holds(largest, least_minus_1) && (!moments || squares.holds(largest, least_minus_1));
  }

  /// Whether products of two 16-bit elements are computed in fp32.
  template <class Tile> static constexpr bool in_floats = is_first&& Tile::has_float_products;
  template <class Tile> __device__ static KeyRange keys(const Tile& tile) {
    if constexpr (in_floats<Tile>)
      return tile.product_bounds();
    else
      return tile.keys();
  }

  /// The sums of a thread.
  struct Sums {
    double term[Terms::words] = {}, square[moments ? Squares::words : 1] = {};
  };
  /// Number of neighbours whose sum a float holds, if they are multiples of 2^(e - precision + 1) and below
  /// 2^(e + most_apart + 1). The window holds these sums, too: they are larger than the terms, but fewer in
  /// the same proportion.
  static constexpr int together = 8, most_apart = 24 - 3 - precision;
  template <class Tile>
  static constexpr bool adds_together = Terms::has_floats&& most_apart >= 12 && Tile::size >= 2 * together;
  template <class Tile> __device__ static bool can_add_together(const KeyRange& keys) {
    constexpr int apart = most_apart << MagnitudeKey<Keyed>::fraction_bits;
    return static_cast<int>(keys.largest - keys.least_minus_1) - 1 <= apart;  // negative for zeros
  }
  /// Adds the terms of a tile for which can_add_together() holds.
  template <class Tile> __device__ __forceinline__ void add_together(Sums& sums, const Tile& tile) const {
    auto in_terms = terms.begin();
#pragma unroll
    for (int i = 0; i < Tile::size; i += together) {
      Word term[together];
#pragma unroll
      for (int k = 0; k < together; ++k) term[k] = tile.term(i + k);
#pragma unroll
      for (int half = together / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; ++k) term[k] += term[k + half];
      terms.add(in_terms, term[0]);
    }
#pragma unroll
    for (int w = 0; w < Terms::words; ++w) sums.term[w] += terms.added(in_terms, w);
  }
  /// Adds the terms of a tile of a thread.
  template <class Tile> __device__ __forceinline__ void add(Sums& sums, const Tile& tile) const {
    auto in_terms = terms.begin();
    auto in_squares = squares.begin();
#pragma unroll
    for (int i = 0; i < Tile::size; ++i) {
      const auto x = term<Tile>(tile, i);
      terms.add(in_terms, static_cast<Word>(x));
      if constexpr (moments) squares.add(in_squares, static_cast<double>(x) * x);
    }
#pragma unroll
    for (int w = 0; w < Terms::words; ++w) sums.term[w] += terms.added(in_terms, w);
    if constexpr (moments)
#pragma unroll
      for (int w = 0; w < Squares::words; ++w) sums.square[w] += squares.added(in_squares, w);
  }

 private:
  template <class Tile> __device__ __forceinline__ static auto term(const Tile& tile, int i) {
    if constexpr (in_floats<Tile>)
      return tile.product(i);
    else
      return tile.term(i);
  }
};

/// Reduces several words to two. Returns false if two words do not hold their sum.
template <int count> __device__ bool reduce_words(const double (&word)[count], double& high, double& low) {
  high = word[0];
  low = count > 1 ? word[count > 1] : 0;
  if constexpr (count > 2) {
    low = two_sum(high, low);
    const double rest = two_sum(high, word[2]);
    return two_sum(low, rest) == 0;
  }
  return true;
}

/// Exact sums of the elements of a leaf that a source provides. source.tile<what, size>(first) has those of a
/// thread in the tile of size·threads elements that begins at `first`: term(i) is the element, as a float, or
/// the product, as a double; those that do not exist are +0, and source.exists(first, i) is false for them.
/// keys() is the range of their keys of format Keyed.
template <class T, ExactlySummed what, class Group> struct WindowLeaf {
  using State = CompactExact<T, what>;
  using Carrier = std::conditional_t<what == ExactlySummed::products, double, float>;
  static constexpr bool moments = State::moments;
  static constexpr std::uint32_t plain_flags = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;

  static constexpr bool has_second = !moments;  ///< whether a second window is tried

  /// Adds the terms of n elements in one window, with tiles of `size` elements per thread. Returns false if
  /// that fails in any group, or if all terms are zeros, since then the signs of the zeros decide.
  template <int size, class Reducer, class Source>
  __device__ __forceinline__ static bool add(const Reducer&, std::size_t, std::uint64_t, const Source& source,
                                             Group group, int n, ExactWords& words) {
    bool held = add_in<size, true>(source, group, n, words);
    if constexpr (has_second)
      if (!held) held = add_in<size, false>(source, group, n, words);
    return held;
  }
  /// Adds the terms of several rows of n <= size·threads elements, each in a window of its own; a thread gets
  /// the words of row group.row_of_thread(). Returns false if that fails for any row of the warp.
  template <int rows, int size, class Reducer, class SourceOf>
  __device__ __forceinline__ static bool add_rows(const Reducer&, SourceOf source_of, Group group, int n,
                                                  ExactWords& words) {
    bool held = add_rows_in<rows, size, true>(source_of, group, n, words);
    if constexpr (has_second)
      if (!held) held = add_rows_in<rows, size, false>(source_of, group, n, words);
    return held;
  }
  /// Adds the terms of n elements of any values; thread 0 of the group writes the state.
  template <class Reducer, class Source>
  __device__ static void add_slowly(const Reducer&, std::size_t, std::uint64_t, const Source& source,
                                    Group group, int n, State* to) {
    constexpr int size = 16;
    State state;
    std::uint32_t flags = 0;
#pragma unroll 1
    for (int first = 0; first == 0 || first < n; first += size * group.threads) {
      const auto tile = source.template tile<what, size>(first);
      Carrier rest[size];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        rest[i] = tile.term(i);
        if (source.exists(first, i)) flags |= seen_flags(rest[i]);
        if (MagnitudeKey<Carrier>::of(rest[i]) >= MagnitudeKey<Carrier>::infinity) rest[i] = 0;
      }
      if constexpr (moments) {
        double square[size];
#pragma unroll
        for (int i = 0; i < size; ++i) square[i] = static_cast<double>(rest[i]) * rest[i];
        add_in_ranges(square, group, state.squares);
      }
      add_in_ranges(rest, group, state.terms);
    }
    state.flags = group.together(flags);
    if (group.index() == 0) *to = state;
  }

 private:
  /// Adds the terms in the first window, or in the second one.
  template <int size, bool is_first, class Source>
  __device__ __forceinline__ static bool add_in(const Source& source, Group group, int n, ExactWords& words) {
    using Tile = decltype(source.template tile<what, size>(0));
    using Windows = LeafWindows<T, what, is_first, typename Tile::Keyed>;
    const int tile_size = size * group.threads;
    Windows windows;
    typename Windows::Sums sums;
    bool placed = false;
    const auto place = [&](std::uint32_t largest) {
      constexpr int headroom = is_first ? Group::headroom : Group::second_headroom;
      if (placed || largest == 0) return;
      windows.place(largest, n > tile_size ? headroom : 0, n, size);
      placed = true;
    };
    if constexpr (!is_first && Group::tiles_that_place > 1) {
      std::uint32_t largest = 0;
#pragma unroll 1
      for (int first = 0; first < min(n, Group::tiles_that_place * tile_size); first += tile_size)
        largest = max(largest, source.template tile<what, size>(first).keys().largest);
      place(group.largest(largest));
    }
#pragma unroll 1
    for (int first = 0; first == 0 || first < n; first += tile_size) {
      const Tile tile = source.template tile<what, size>(first);
      const KeyRange keys = Windows::keys(tile);
      const std::uint32_t largest = group.largest(keys.largest);
      place(largest);
      if (!Group::everywhere(windows.holds(largest, keys.least_minus_1) || largest == 0)) return false;
      add_tile(windows, sums, tile, keys);
    }
    bool held = placed || n == 0;
    const auto total = [&](auto& word, double& high, double& low) {
#pragma unroll
      for (double& w : word) w = group.sum(w);
      held = reduce_words(word, high, low) && held;
    };
    total(sums.term, words.high, words.low);
    if constexpr (moments) total(sums.square, words.square_high, words.square_low);
    // All of the products may be zeros, whose signs matter.
    if (Windows::template in_floats<Tile>) held = held && (n == 0 || words.high != 0);
    words.flags = n > 0 ? plain_flags : 0;
    return Group::everywhere(held);
  }
  template <int rows, int size, bool is_first, class SourceOf>
  __device__ __forceinline__ static bool add_rows_in(SourceOf source_of, Group group, int n,
                                                     ExactWords& words) {
    using Tile = decltype(source_of(0).template tile<what, size>(0));
    using Windows = LeafWindows<T, what, is_first, typename Tile::Keyed>;
    Tile tile[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) tile[r] = source_of(r).template tile<what, size>(0);
    std::uint32_t largest[rows], own_largest[rows], least_minus_1[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const KeyRange keys = Windows::keys(tile[r]);
      own_largest[r] = largest[r] = keys.largest;
      least_minus_1[r] = keys.least_minus_1;
    }
    const std::uint32_t of_thread =
        group.template spread<rows>(largest, [](std::uint32_t a, std::uint32_t b) { return max(a, b); });
    double term[Windows::Terms::words][rows], square[Windows::Squares::words][rows];
    bool held = true;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const std::uint32_t of_row = group.template of_row<rows>(of_thread, r);
      Windows windows;
      windows.place(of_row, 0, n, size);
      held = held && windows.holds(of_row, least_minus_1[r]);
      if (rows == 1 && !Group::everywhere(held)) return false;  // several rows would need more registers
      typename Windows::Sums sums;
      add_tile(windows, sums, tile[r], {own_largest[r], least_minus_1[r]});
#pragma unroll
      for (int w = 0; w < Windows::Terms::words; ++w) term[w][r] = sums.term[w];
      if constexpr (moments)
#pragma unroll
        for (int w = 0; w < Windows::Squares::words; ++w) square[w][r] = sums.square[w];
    }
    const auto total = [&](auto& by_row, double& high, double& low) {
      constexpr int count = std::extent_v<std::remove_reference_t<decltype(by_row)>>;
      double word[count];
#pragma unroll
      for (int w = 0; w < count; ++w)
        word[w] = group.template spread<rows>(by_row[w], [](double a, double b) { return a + b; });
      held = reduce_words(word, high, low) && held;
    };
    total(term, words.high, words.low);
    if constexpr (moments) total(square, words.square_high, words.square_low);
    words.flags = n > 0 ? plain_flags : 0;
    const bool may_be_zeros = of_thread == 0 || (Windows::template in_floats<Tile> && words.high == 0);
    if (!Group::everywhere(!may_be_zeros)) words.flags = flags_of_rows<rows, size>(source_of, group);
    return Group::everywhere(held);
  }
  template <class Windows, class Tile>
  __device__ __forceinline__ static void add_tile(const Windows& windows, typename Windows::Sums& sums,
                                                  const Tile& tile, const KeyRange& keys) {
    if constexpr (Windows::template adds_together<Tile>)
      if (Group::everywhere(Windows::template can_add_together<Tile>(keys)))
        return windows.add_together(sums, tile);
    windows.add(sums, tile);
  }
  /// The flags of the row of a thread. Only rows of zeros need them, for the sign of the result.
  template <int rows, int size, class SourceOf>
  __device__ static std::uint32_t flags_of_rows(SourceOf source_of, Group group) {
    std::uint32_t flags[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      flags[r] = 0;
      const auto tile = source_of(r).template tile<what, size>(0);
#pragma unroll
      for (int i = 0; i < size; ++i)
        if (source_of(r).exists(0, i)) flags[r] |= seen_flags(Carrier{tile.term(i)});
    }
    return group.template spread<rows>(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });
  }

  /// Adds finite terms, a range of exponents at a time, from the highest one down.
  template <class C, int size, class Sum>
  __device__ static void add_in_ranges(C (&rest)[size], Group group, Sum& sum) {
    for (;;) {
      std::uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < size; ++i) largest = max(largest, MagnitudeKey<C>::of(rest[i]));
      largest = group.largest(largest);
      if (Group::everywhere(largest == 0)) return;
      TermWindow<C, 1, 2> range;
      range.place(largest, 0, bits_for_terms(static_cast<std::uint64_t>(size * group.threads)));
      double leading = 0;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        double term = rest[i];
        leading += range.leading(term);
        rest[i] = static_cast<C>(term);  // no more bits than before
      }
      leading = group.sum(leading);
      if (group.index() == 0) sum.add(leading);
    }
  }
};

}  // namespace
}  // namespace samesum::gpu
