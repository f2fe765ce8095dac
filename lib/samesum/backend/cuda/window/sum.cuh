/// Exact sums of a leaf by the threads of a group: in a narrow window, from the first tile on that it does
/// not hold in wide ones, and in integers if these fail. If the group has all elements of a result, the
/// leading bits of its sum are tried before integers.
#pragma once

#include "samesum/backend/cuda/window/leaf_windows.cuh"
#include "samesum/window/leading_sum.hpp"

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

  static constexpr bool is_exact = true;

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
  /// Adds the terms of a row of n <= size·threads elements in a narrow window. Returns false if that fails
  /// for any row of the warp.
  template <int size, class Reducer, class Source>
  __device__ __forceinline__ static bool add_row(const Reducer&, const Source& source, Group group, int n,
                                                 Words& words) {
    using Windows = WindowsOf<true, size, Source>;
    const auto tile = source.template tile<what, size>(0);
    const KeyRange keys = Windows::keys(tile);
    const std::uint32_t largest = group.largest(keys.largest);
    Windows windows;
    if (largest != 0) windows.place(largest, 0, n, size);
    if (!group.everywhere(keys.all_zeros() || windows.holds(largest, keys.least_minus_1))) return false;
    typename Windows::Sums sums;
    add_tile(group, windows, sums, tile, keys);
    const bool held = total_of(group, sums, words);
    return group.everywhere(complete<size>(source, group, n, largest != 0, held, words));
  }
  /// Adds the terms of a row in wide windows, with tiles of `size` elements per thread. Returns false if that
  /// fails for any row of the warp.
  template <int size, class Source>
  __device__ static bool add_row_again(const Source& source, Group group, int n, Words& words) {
    Total total;
    add_rest<size>(source, group, n, 0, {}, false, &total);
    words = total.words;
    return group.everywhere(complete<size>(source, group, n, total.any, total.held, words));
  }
  /// Adds the terms of n elements of any values, each thread to its own integers; thread 0 of the group
  /// writes the state.
  template <class Reducer, class Source>
  __device__ static void add_slowly(const Reducer&, std::size_t, std::uint64_t, const Source& source,
                                    Group group, int n, State* to) {
    State state;
    std::uint32_t flags = 0;
    auto& terms = state.terms.widened();
    if constexpr (moments) state.squares.widened();
    for_each_term(source, group, n, [&](const IntegerTerm& term, std::uint32_t of_term) {
      flags |= of_term;
      state.terms.add_to_integer(term.negative, term.magnitude, term.exponent);
      if constexpr (moments) {
        const IntegerTerm square = term.square();
        state.squares.add_to_integer(square.negative, square.magnitude, square.exponent);
      }
    });
    add_across(group, terms);
    if constexpr (moments) add_across(group, state.squares.widened());
    state.flags = group.together(flags);
    if (group.index() == 0) *to = state;
  }
  /// Reduces the n elements of result `at` by the leading bits of their sums, which determine nearly all
  /// results. Reads the elements twice: their range determines the unit. Returns false if any result of the
  /// warp needs more bits.
  template <class Reducer, class Source>
  __device__ static bool reduce_leading(const Reducer& reducer, const Source& source, Group group, int n,
                                        bool writes, std::size_t at, void* out) {
    LeadingExact<what> sums;
    int top = IntegerTerm{}.top();
    for_each_term(source, group, n, [&](const IntegerTerm& term, std::uint32_t flags) {
      sums.flags |= flags;
      top = max(top, term.top());
    });
    sums.flags = group.together(sums.flags);
    sums.place(group.combined(top, Larger{}), bits_for_terms(static_cast<std::uint64_t>(n)));
    for_each_term(source, group, n, [&](const IntegerTerm& term, std::uint32_t) { sums.add(term); });
    sums.terms.lost = group.together(sums.terms.lost);
    add_across(group, sums.terms.units);
    if constexpr (moments) add_across(group, sums.squares.units);
    const bool is_sure =
        !writes || group.index() != 0 || reducer.finish_leading(sums, static_cast<std::uint64_t>(n), at, out);
    if constexpr (Group::is_one_thread) return is_sure;
    return group.everywhere(is_sure);
  }

 private:
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
        // The groups of a warp move together, for the sake of their shuffles; single threads need not.
        if (Group::is_one_thread ? !fits() : !group.everywhere(fits())) {
          const bool keeps_window = group.all(fits());
          if (Group::is_one_thread ? placed : !group.everywhere(!placed)) move<Windows>(group, sums, total);
          sums = {};
          if (!keeps_window) place();
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

  /// Calls visit(term, flags) for the terms of a thread. Special terms are 0.
  template <class Source, class Visit>
  __device__ __forceinline__ static void for_each_term(const Source& source, Group group, int n,
                                                       Visit visit) {
    constexpr int size = sizeof(T) == 8 ? 4 : 8;
#pragma unroll 1
    for (int first = 0; first < n; first += size * group.threads) {
      const auto tile = source.template tile<what, size>(first);
#pragma unroll
      for (int i = 0; i < size; ++i)
        if (source.exists(first, i)) visit_term(tile, i, visit);
    }
  }
  template <class Tile, class Visit>
  __device__ __forceinline__ static void visit_term(const Tile& tile, int i, Visit visit) {
    const auto x = tile.element(i);
    const auto of_x = decompose<std::remove_cv_t<decltype(x)>>(to_bits(x));
    if constexpr (products) {
      const auto y = tile.factor(i);
      const std::uint32_t flags = seen_flags(x * y);
      if ((seen_flags(x) | seen_flags(y)) & SumFlags::special_flags) return visit(IntegerTerm{}, flags);
      const auto of_y = decompose<std::remove_cv_t<decltype(y)>>(to_bits(y));
      const Wide product = Wide{of_x.significand} * of_y.significand;
      visit(IntegerTerm{of_x.negative != of_y.negative, product, of_x.exponent + of_y.exponent},
            product == 0 ? flags : SumFlags::seen_any | SumFlags::seen_other_than_minus_zero);
    } else {
      const std::uint32_t flags = seen_flags(x);
      const bool is_special = flags & SumFlags::special_flags;
      visit(is_special ? IntegerTerm{} : IntegerTerm{of_x.negative, of_x.significand, of_x.exponent}, flags);
    }
  }
};

}  // namespace
}  // namespace samesum::gpu
