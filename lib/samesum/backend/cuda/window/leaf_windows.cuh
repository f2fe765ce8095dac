/// The windows of a leaf, and the range of the keys of its terms.
#pragma once

#include "samesum/backend/cuda/window/group.cuh"
#include "samesum/backend/cuda/window/reducer.cuh"
#include "samesum/window/window.hpp"

namespace samesum::gpu {
namespace {

/// The range of the keys of some numbers: the largest key, and the least MagnitudeKey::minus_1(), which zeros
/// do not affect.
struct KeyRange {
  std::uint32_t largest = 0, least_minus_1 = ~0u;

  __device__ void add(std::uint32_t key, std::uint32_t minus_1) {
    largest = max(largest, key);
    least_minus_1 = min(least_minus_1, minus_1);
  }
  __device__ bool all_zeros() const { return least_minus_1 == ~0u; }
};

/// Words of the windows of a leaf: narrow ones cost the least and hold most data, wide ones any 60 binades.
template <class T, ExactlySummed what, bool is_narrow> struct WordsOfWindows {
  static constexpr bool products = what == ExactlySummed::products,
                        moments = what == ExactlySummed::elements_and_squares;
  static constexpr int of_products = sizeof(T) == 8   ? (is_narrow ? 5 : 8)
                                     : sizeof(T) == 4 ? (is_narrow ? 3 : 6)
                                                      : (is_narrow ? 2 : 5),
                       of_elements = sizeof(T) == 8   ? (is_narrow ? 3 : 5)
                                     : sizeof(T) == 4 ? (is_narrow ? 2 : 3)
                                     : is_narrow      ? (moments ? 1 : 2)
                                                      : 3;
  static constexpr int terms = products ? of_products : of_elements,
                       squares = of_products + (sizeof(T) == 4 && is_narrow);
};

/// The windows of the terms of a leaf and, for moments, of their squares.
template <class T, ExactlySummed what, bool is_narrow, class Keyed, class Group> struct LeafWindows {
  static constexpr bool moments = what == ExactlySummed::elements_and_squares,
                        products = what == ExactlySummed::products, wide = sizeof(T) == 8;
  static constexpr int precision = Format<T>::precision,
                       more = wide && what == ExactlySummed::elements && is_narrow ? Group::more_words : 0;
  using Count = WordsOfWindows<T, what, is_narrow>;
  using Word =
      std::conditional_t<what == ExactlySummed::elements && sizeof(T) == 2 && is_narrow, float, double>;
  using Terms = TermWindow<Keyed, products ? 2 * precision : precision, Count::terms + more, 1, Word>;
  using Squares = TermWindow<Keyed, precision, Count::squares, 2>;

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
  template <class Tile> static constexpr bool in_floats = is_narrow&& Tile::has_float_products;
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
      if constexpr (Terms::splits)
        terms.template add<1>(in_terms, __fma_rn(tile.element(i), tile.factor(i), -x));
      if constexpr (moments) {
        const double wide = x, square = wide * wide;
        squares.add(in_squares, square);
        if constexpr (Squares::splits) squares.template add<1>(in_squares, __fma_rn(wide, wide, -square));
      }
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

}  // namespace
}  // namespace samesum::gpu
