/// Sources of the elements of exact reductions, and the reduction of a few thousand of them.
#pragma once

#include "samesum/backend/cuda/device/reader.cuh"
#include "samesum/backend/cuda/window/sum.cuh"

namespace samesum::gpu {
namespace {

/// The range of the keys of the terms of a tile. A product of doubles that is 0 though no factor is, is too
/// small for any window.
template <class Tile> __device__ __forceinline__ KeyRange keys_of_terms(const Tile& tile) {
  using Key = MagnitudeKey<typename Tile::Keyed>;
  KeyRange range;
#pragma unroll
  for (int i = 0; i < Tile::size; ++i) {
    const auto term = tile.term(i);
    range.add(Key::of(term), Key::minus_1(term));
    if constexpr (Tile::products && sizeof(typename Tile::Carrier) == 8)
      if (term == 0 && tile.element(i) != 0 && tile.factor(i) != 0) range.least_minus_1 = 0;
  }
  return range;
}

/// Neighbours that a thread loads at a time: 16 bytes, but at most four.
template <class T> inline constexpr int run_of = sizeof(T) == 8 ? 2 : 4;

/// Runs of neighbours, as they are in memory. Only products load runs of the second input.
template <class T, ExactlySummed what, int count> struct RunTile {
  static constexpr int size = count, run = run_of<T>;
  static constexpr bool products = what == ExactlySummed::products, pairs = sizeof(T) == 2 && !products;
  using Carrier = CarrierOf<T>;
  using Keyed = std::conditional_t<products, double, T>;
  using Raw = typename Reader<T, T>::template RawOf<run>;
  Raw x[count / run], y[products ? count / run : 1];

  __device__ Carrier element(int i) const { return x[i / run].rounded(i % run).v; }
  __device__ Carrier factor(int i) const { return y[i / run].rounded(i % run).v; }
  __device__ auto term(int i) const {
    if constexpr (products)
      return static_cast<double>(element(i)) * factor(i);
    else
      return element(i);
  }
  __device__ KeyRange keys() const {
    if constexpr (pairs)
      return keys_of_pairs(x);
    else
      return keys_of_terms(*this);
  }

  /// Whether floats hold products, if these have the range of product_bounds().
  static constexpr bool has_float_products = products && sizeof(T) == 2;
  __device__ float product(int i) const { return element(i) * factor(i); }
  /// Bounds of the keys of all products, from those of their factors. There is no bound if a float may not
  /// hold a product. A product of zero may be among products that are not.
  __device__ KeyRange product_bounds() const {
    using Key = MagnitudeKey<T>;
    const KeyRange a = keys_of_pairs(x), b = keys_of_pairs(y);
    const bool is_finite = max(a.largest, b.largest) < Key::infinity;
    if (is_finite && (a.largest == 0 || b.largest == 0)) return {};
    const int top = Key::exponent(a.largest) + Key::exponent(b.largest) + 1,
              least = Key::exponent(a.least_minus_1 + 1) + Key::exponent(b.least_minus_1 + 1);
    constexpr int lowest = Format<fp32>::min_quantum + 2 * (Format<T>::precision - 1);
    if (!is_finite || top >= Format<fp32>::max_exponent || least < lowest) return {~0u, 0};
    const auto key = [](int exponent) {
      return static_cast<std::uint32_t>(exponent + MagnitudeKey<double>::bias)
             << MagnitudeKey<double>::fraction_bits;
    };
    return {key(top), key(least)};
  }

 private:
  /// Both elements of a word at a time.
  __device__ static KeyRange keys_of_pairs(const Raw (&run)[count / 4]) {
    std::uint32_t largest = 0, least_minus_1 = ~0u;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const std::uint32_t two = run[i / 2].word[i % 2] & 0x7fff7fffu;
      largest = __vmaxu2(largest, two);
      least_minus_1 = __viaddmin_u16x2(two, ~0u, least_minus_1);
    }
    if (largest == 0) return {};
    return {max(largest >> 16, largest & 0xffffu), min(least_minus_1 >> 16, least_minus_1 & 0xffffu)};
  }
};
/// The elements of a leaf of a row.
template <class T> struct RowSource {
  static constexpr int run = run_of<T>;
  using Raw = typename Reader<T, T>::template RawOf<run>;
  using Word = typename Raw::Word;
  Reader<T, T> reader;  ///< from the first element on
  int n, threads, index;
  bool aligned;
  Word mask;  ///< the bits of elements that their terms keep

  template <class Group>
  __device__ RowSource(const Reader<T, T>& all, std::size_t place, int count, Group group, Term term)
      : reader{all.moved(place)},
        n{count},
        threads{group.threads},
        index{group.index()},
        aligned{all.is_aligned(place)},
        mask{(sizeof(T) == 2 ? 0x10001u : 1u) * Word{kept_bits<T>(term)}} {}

  template <ExactlySummed what, int size>
  __device__ __forceinline__ RunTile<T, what, size> tile(int first) const {
    if (aligned && first + size * threads <= n) return load<what, size, true>(first, [](int) { return run; });
    if (aligned && n % run == 0)
      return load<what, size, true>(first, [this](int at) { return at < n ? run : 0; });
    return load<what, size, false>(first, [this](int at) { return min(max(n - at, 0), run); });
  }
  __device__ bool exists(int first, int i) const { return place(first, i / run) + i % run < n; }

 private:
  __device__ int place(int first, int k) const { return first + (k * threads + index) * run; }

  /// `whole`: runs are aligned, and exist with all elements or none.
  template <ExactlySummed what, int size, bool whole, class Count>
  __device__ __forceinline__ RunTile<T, what, size> load(int first, Count count_at) const {
    RunTile<T, what, size> tile;
#pragma unroll
    for (int k = 0; k < size / run; ++k) {
      const int at = place(first, k), count = count_at(at);
      tile.x[k] = fetch<whole>(false, at, count);
      if constexpr (what == ExactlySummed::products)
        tile.y[k] = reader.inputs() == 2 ? fetch<whole>(true, at, count) : tile.x[k];
      if constexpr (what == ExactlySummed::elements)
        for (Word& word : tile.x[k].word) word &= mask;
    }
    return tile;
  }
  template <bool whole> __device__ __forceinline__ Raw fetch(bool second, int at, int count) const {
    // A predicated load: branches would wait for each other's loads.
    if (whole)
      return count == 0 ? Raw{} : reader.template fetch<run>(second, static_cast<std::size_t>(at), run, true);
    return reader.template fetch<run>(second, static_cast<std::size_t>(at), count, false);
  }
};

/// Elements one by one, each in its own register: loads need not wait for each other.
template <class C, ExactlySummed what, int count> struct ElementTile {
  static constexpr int size = count;
  static constexpr bool products = what == ExactlySummed::products, pairs = false, has_float_products = false;
  using Carrier = C;
  using Keyed = std::conditional_t<products, double, C>;
  C x[count], y[products ? count : 1];

  __device__ C element(int i) const { return x[i]; }
  __device__ C factor(int i) const { return y[i]; }
  __device__ auto term(int i) const {
    if constexpr (products)
      return static_cast<double>(x[i]) * y[i];
    else
      return x[i];
  }
  __device__ KeyRange keys() const { return keys_of_terms(*this); }
};
/// The elements of a column, or of a part of one: a thread has them all.
template <class T> struct ColumnSource {
  Reader<T, T> reader;  ///< from the first element on
  std::size_t stride;
  int n;
  Term term;

  template <ExactlySummed what, int size>
  __device__ __forceinline__ ElementTile<CarrierOf<T>, what, size> tile(int first) const {
    typename Reader<T, T>::Element e[size];
    reader.column(static_cast<std::size_t>(first) * stride, Step{stride}, n - first, 0, 0, 1, e);
    ElementTile<CarrierOf<T>, what, size> tile;
#pragma unroll
    for (int i = 0; i < size; ++i) {
      const CarrierOf<T> x = e[i].x.v;
      tile.x[i] = element_term(term, x);
      if constexpr (what == ExactlySummed::products) tile.y[i] = reader.inputs() == 2 ? e[i].y.v : x;
    }
    return tile;
  }
  __device__ bool exists(int first, int i) const { return first + i < n; }
};

// Functions that are not inlined take their arguments by value, so that those of their callers stay in
// registers.

/// Adds the terms of n elements of any values; thread 0 of the group writes the state.
template <class Reducer, class Group, class Source>
__device__ __noinline__ void add_slowly(Reducer reducer, std::size_t at, std::uint64_t of_result,
                                        Source source, Group group, int n, typename Reducer::State* to) {
  Reducer::template Leaf<Group>::add_slowly(reducer, at, of_result, source, group, n, to);
}
/// Reduces n elements of any values to result `at`, which thread 0 of the group writes if `writes`.
template <class Reducer, class Group, class Source>
__device__ __noinline__ void reduce_slowly(Reducer reducer, Source source, Group group, int n, bool writes,
                                           std::size_t at, void* out) {
  using Leaf = typename Reducer::template Leaf<Group>;
  if constexpr (requires { Leaf::is_exact; })
    if (!reducer.as_digits && Leaf::reduce_leading(reducer, source, group, n, writes, at, out)) return;
  typename Reducer::State state;
  const auto count = static_cast<std::uint64_t>(n);
  add_slowly(reducer, at, count, source, group, n, &state);
  if (writes && group.index() == 0) reducer.finish(state, count, at, out);
}
/// Writes result `at` in integers, since its words do not suffice to round it.
template <class Reducer>
__device__ __noinline__ void finish_slowly(Reducer reducer, typename Reducer::Words words, std::uint64_t n,
                                           std::size_t at, void* out) {
  reducer.finish(typename Reducer::State{words}, n, at, out);
}

/// Writes result `at` of n elements from their words.
template <class Reducer>
__device__ __forceinline__ void finish_row(const Reducer& reducer, const typename Reducer::Words& words,
                                           std::uint64_t n, std::size_t at, void* out) {
  if (!reducer.finish_words(words, n, at, out)) finish_slowly(reducer, words, n, at, out);
}

/// The sum of the n elements of a group, in words if `held`; if not, finish() and write() add the elements
/// again. They are all elements of result `at`, or a part of its `of_result` elements.
template <class Reducer, class Group, class Source> struct WindowPart {
  const Reducer& reducer;
  const Source& source;
  Group group;
  std::size_t at;
  std::uint64_t of_result;
  int n;
  typename Reducer::Words words = {};
  bool held = false;

  /// Tries a window with tiles of `size` elements per thread.
  template <int size> __device__ __forceinline__ void add() {
    held = Reducer::template Leaf<Group>::template add<size>(reducer, at, of_result, source, group, n, words);
  }
  /// Writes the result, which has no other elements; thread 0 of the group does so if `writes`.
  __device__ __forceinline__ void finish(bool writes, void* out) const {
    if (!held) return reduce_slowly(reducer, source, group, n, writes, at, out);
    if (writes && group.index() == 0) finish_row(reducer, words, static_cast<std::uint64_t>(n), at, out);
  }
  /// Thread 0 of the group writes the state.
  __device__ __forceinline__ void write(typename Reducer::State* to) const {
    if (!held)
      add_slowly(reducer, at, of_result, source, group, n, to);
    else if (group.index() == 0)
      *to = typename Reducer::State{words};
  }
};

}  // namespace
}  // namespace samesum::gpu
