/// Exact sums of a leaf by the threads of a group: in a narrow window, from the first tile on that it does
/// not hold in wide ones, and in integers if these fail, too.
#pragma once

#include "samesum/backend/cuda/window/leaf_windows.cuh"

namespace samesum::gpu {
namespace {

/// Reduces the words of a window to those of a result. Returns false if these do not hold their sum.
template <int of_window, int of_result>
__device__ bool reduce_words(double (&word)[of_window], double (&to)[of_result]) {
  bool held = of_window <= of_result || distill(word);
#pragma unroll
  for (int w = 0; w < max(of_window, of_result); ++w)
    if (w >= of_result)
      held = held && word[w] == 0;
    else
      to[w] = w < of_window ? word[w] : 0;
  return held;
}
/// Adds the words of a window to those of a result. Returns false if these do not hold the sum.
template <int of_window, int of_result>
__device__ bool add_words(const double (&word)[of_window], double (&to)[of_result]) {
  bool held = true;
#pragma unroll
  for (double x : word) {
#pragma unroll
    for (double& sum : to) x = two_sum(sum, x);
    held = held && x == 0;
  }
  return held;
}

/// Exact sums of the elements of a leaf that a source provides. source.tile<what, size>(first) has those of a
/// thread in the tile of size·threads elements that begins at `first`: term(i) is the element, as a float, or
/// the product, as a double; those that do not exist are +0, and source.exists(first, i) is false for them.
/// keys() is the range of their keys of format Keyed.
template <class T, ExactlySummed what, class Group> struct WindowLeaf {
  using State = CompactExact<T, what>;
  using Words = typename State::Words;
  static constexpr bool moments = State::moments, products = what == ExactlySummed::products;
  static constexpr std::uint32_t plain_flags = SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;

  static constexpr bool has_wide_windows = true;

  /// Adds the terms of n elements, with tiles of `size` elements per thread: in a narrow window, and in wide
  /// ones from the first tile on that it does not hold. Returns false if that fails.
  template <int size, class Reducer, class Source>
  __device__ __forceinline__ static bool add(const Reducer&, std::size_t, std::uint64_t, const Source& source,
                                             Group group, int n, Words& words) {
    using Windows = WindowsOf<true, size, Source>;
    typename Windows::Sums sums;
    bool any = false, held = true;
    const int next = add_tiles<Windows, size>(source, group, n, 0, sums, any, nullptr);
    if (next >= group.longest(n)) {  // in registers
      held = total_of(group, sums, words);
    } else {
      Total total;
      add_rest<size>(source, group, n, next, sums, any, &total);
      any = total.any;
      held = total.held;
      words = total.words;
    }
    return complete<size>(source, group, n, any, held, words);
  }
  /// Adds the terms of several rows of n <= size·threads elements, each in a narrow window of its own; a
  /// thread gets the words of row group.row_of_thread(). Returns false if that fails for any row of the warp.
  template <int rows, int size, class Reducer, class SourceOf>
  __device__ __forceinline__ static bool add_rows(const Reducer&, SourceOf source_of, Group group, int n,
                                                  Words& words) {
    return add_rows_in<rows, size, true>(source_of, group, n, words);
  }
  /// Adds them in wide windows.
  template <int rows, int size, class SourceOf>
  __device__ __forceinline__ static bool add_rows_again(SourceOf source_of, Group group, int n,
                                                        Words& words) {
    return add_rows_in<rows, size, false>(source_of, group, n, words);
  }
  /// Adds the terms of n elements of any values, each thread to its own integers; thread 0 of the group
  /// writes the state.
  template <class Reducer, class Source>
  __device__ static void add_slowly(const Reducer&, std::size_t, std::uint64_t, const Source& source,
                                    Group group, int n, State* to) {
    constexpr int size = sizeof(T) == 8 ? 4 : 8;
    State state;
    std::uint32_t flags = 0;
    auto& terms = state.terms.widened();
    if constexpr (moments) state.squares.widened();
#pragma unroll 1
    for (int first = 0; first < n; first += size * group.threads) {
      const auto tile = source.template tile<what, size>(first);
#pragma unroll
      for (int i = 0; i < size; ++i)
        if (source.exists(first, i)) flags |= add_exactly(state, tile, i);
    }
    add_across(group, terms);
    if constexpr (moments) add_across(group, state.squares.widened());
    state.flags = group.together(flags);
    if (group.index() == 0) *to = state;
  }

 private:
  template <int rows, int size, bool is_narrow, class SourceOf>
  __device__ __forceinline__ static bool add_rows_in(SourceOf source_of, Group group, int n, Words& words) {
    using Tile = decltype(source_of(0).template tile<what, size>(0));
    using Windows = LeafWindows<T, what, is_narrow, typename Tile::Keyed, Group>;
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
      if (rows == 1 && !group.everywhere(held)) return false;  // several rows would need more registers
      typename Windows::Sums sums;
      add_tile(group, windows, sums, tile[r], {own_largest[r], least_minus_1[r]});
#pragma unroll
      for (int w = 0; w < Windows::Terms::words; ++w) term[w][r] = sums.term[w];
      if constexpr (moments)
#pragma unroll
        for (int w = 0; w < Windows::Squares::words; ++w) square[w][r] = sums.square[w];
    }
    const auto total = [&](auto& by_row, auto& to) {
      constexpr int count = std::extent_v<std::remove_reference_t<decltype(by_row)>>;
      double word[count];
#pragma unroll
      for (int w = 0; w < count; ++w)
        word[w] = group.template spread<rows>(by_row[w], [](double a, double b) { return a + b; });
      held = reduce_words(word, to) && held;
    };
    total(term, words.term);
    if constexpr (moments) total(square, words.square);
    words.flags = n > 0 ? plain_flags : 0;
    const bool may_be_zeros = of_thread == 0 || (Windows::template in_floats<Tile> && words.term[0] == 0);
    if (!group.everywhere(!may_be_zeros)) words.flags = flags_of_rows<rows, size>(source_of, group);
    return group.everywhere(held);
  }

  template <bool is_narrow, int size, class Source>
  using WindowsOf =
      LeafWindows<T, what, is_narrow,
                  typename decltype(std::declval<Source>().template tile<what, size>(0))::Keyed, Group>;

  /// The sum of the tiles that former windows held. It is in memory, where only functions that are not
  /// inlined use it, so that the loops over tiles have all registers.
  struct Total {
    Words words = {};
    bool any = false, held = true;
  };

  /// Whether a thread loads the next tile before it adds one: in columns, where it has registers for both.
  template <int size> static constexpr bool loads_ahead = Group::is_one_thread && sizeof(T) * size <= 32;

  /// Adds the tiles from element `next` on in a window that the first one places. A tile that exceeds it ends
  /// that or, with a total, moves what has been added to the total, and places a new window. Returns the
  /// first element of the tile that a window does not hold in any thread of the warp, or the number of
  /// elements.
  template <class Windows, int size, bool moves = false, class Source>
  __device__ __forceinline__ static int add_tiles(const Source& source, Group group, int n, int next,
                                                  typename Windows::Sums& sums, bool& placed, Total* total) {
    using Tile = decltype(source.template tile<what, size>(next));
    constexpr bool has_ahead = !moves && loads_ahead<size>;
    const int tile_size = size * group.threads, all = group.longest(n);
    Windows windows;
    Tile ahead;
    if constexpr (has_ahead) ahead = source.template tile<what, size>(next);
#pragma unroll 1
    for (; next < all; next += tile_size) {
      Tile tile;
      if constexpr (has_ahead)
        tile = ahead, ahead = source.template tile<what, size>(next + tile_size);
      else
        tile = source.template tile<what, size>(next);
      const KeyRange keys = Windows::keys(tile);
      const std::uint32_t largest = group.largest(keys.largest);
      const auto fits = [&] { return keys.all_zeros() || windows.holds(largest, keys.least_minus_1); };
      const auto place = [&] {
        windows.place(largest, n > tile_size ? Group::headroom : 0, n, size);
        placed = true;
      };
      if constexpr (moves) {
        if (!group.everywhere(fits()) && !group.all(fits())) {
          if (placed) move<Windows>(group, sums, total);
          sums = {};
          place();
        }
      } else if (!placed && largest != 0) {
        place();
      }
      if (!group.everywhere(fits())) break;
      add_tile(group, windows, sums, tile, keys);
    }
    return min(next, all);
  }
  /// Adds the sums of a narrow window, if it was placed, and the tiles from element `next` on to the total.
  template <int size, class Source>
  __device__ __noinline__ static void add_rest(Source source, Group group, int n, int next,
                                               typename WindowsOf<true, size, Source>::Sums of_narrow,
                                               bool any, Total* total) {
    using Windows = WindowsOf<false, size, Source>;
    // The groups of a warp move together, for the sake of their shuffles.
    if (!group.everywhere(!any)) move<WindowsOf<true, size, Source>>(group, of_narrow, total);
    typename Windows::Sums sums;
    bool placed = false;
    next = add_tiles<Windows, size, true>(source, group, n, next, sums, placed, total);
    if (!group.everywhere(!placed)) move<Windows>(group, sums, total);
    const bool all_added = next >= group.longest(n);  // the whole warp asks: not behind a condition
    total->any = any || placed;
    total->held = total->held && all_added;
  }
  /// The sum of all threads of a group in the words of a result. Returns false if these do not hold it.
  template <class Sums>
  __device__ __forceinline__ static bool total_of(Group group, Sums& sums, Words& words) {
    const auto reduce = [&](auto& word, auto& to) {
#pragma unroll
      for (double& w : word) w = group.sum(w);
      return reduce_words(word, to);
    };
    bool held = reduce(sums.term, words.term);
    if constexpr (moments) held = reduce(sums.square, words.square) && held;
    return held;
  }
  /// Moves the sums of the threads of a group to the total.
  template <class Windows>
  __device__ __noinline__ static void move(Group group, typename Windows::Sums sums, Total* total) {
    Words words;
    bool held = total_of(group, sums, words);
    held = add_words(words.term, total->words.term) && held;
    if constexpr (moments) held = add_words(words.square, total->words.square) && held;
    total->held = total->held && held;
  }
  /// Sets the flags of the sum of n elements. Returns `held`, if it is so in all threads of the group.
  template <int size, class Source>
  __device__ __forceinline__ static bool complete(const Source& source, Group group, int n, bool any,
                                                  bool held, Words& words) {
    words.flags = n > 0 ? plain_flags : 0;
    // If all terms are zeros, their signs decide. All products of short elements in floats may be zeros.
    const bool may_be_zeros = n > 0 && (!any || (products && sizeof(T) == 2 && words.term[0] == 0));
    if (!group.everywhere(!may_be_zeros)) words.flags = flags_of<size>(source, group, n);
    return group.all(held);
  }
  /// The flags of n elements.
  template <int size, class Source>
  __device__ __noinline__ static std::uint32_t flags_of(Source source, Group group, int n) {
    std::uint32_t flags = 0;
#pragma unroll 1
    for (int first = 0; first < n; first += size * group.threads) {
      const auto tile = source.template tile<what, size>(first);
#pragma unroll
      for (int i = 0; i < size; ++i)
        if (source.exists(first, i)) flags |= seen_flags(tile.term(i));
    }
    return group.together(flags);
  }
  template <class Windows, class Tile>
  __device__ __forceinline__ static void add_tile(Group group, const Windows& windows,
                                                  typename Windows::Sums& sums, const Tile& tile,
                                                  const KeyRange& keys) {
    if constexpr (Windows::template adds_together<Tile>)
      if (group.everywhere(Windows::template can_add_together<Tile>(keys)))
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
        if (source_of(r).exists(0, i)) flags[r] |= seen_flags(tile.term(i));
    }
    return group.template spread<rows>(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });
  }

  /// Adds a term, and for moments its square, to the integers of a thread. Returns the flags of the term.
  template <class Tile>
  __device__ __forceinline__ static std::uint32_t add_exactly(State& state, const Tile& tile, int i) {
    const auto x = tile.element(i);
    const auto of_x = decompose<std::remove_cv_t<decltype(x)>>(to_bits(x));
    if constexpr (products) {
      const auto y = tile.factor(i);
      const std::uint32_t flags = seen_flags(x * y);
      if ((seen_flags(x) | seen_flags(y)) & SumFlags::special_flags) return flags;
      const auto of_y = decompose<std::remove_cv_t<decltype(y)>>(to_bits(y));
      const Wide product = Wide{of_x.significand} * of_y.significand;
      state.terms.add_to_integer(of_x.negative != of_y.negative, product, of_x.exponent + of_y.exponent);
      return product == 0 ? flags : SumFlags::seen_any | SumFlags::seen_other_than_minus_zero;
    } else {
      const std::uint32_t flags = seen_flags(x);
      if (flags & SumFlags::special_flags) return flags;
      state.terms.add_to_integer(of_x.negative, of_x.significand, of_x.exponent);
      if constexpr (moments)
        state.squares.add_to_integer(false, Wide{of_x.significand} * of_x.significand, 2 * of_x.exponent);
      return flags;
    }
  }
};

}  // namespace
}  // namespace samesum::gpu
