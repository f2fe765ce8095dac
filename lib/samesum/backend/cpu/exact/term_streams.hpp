/// The terms of exact sums as streams of doubles: which streams an element has, in which windows they are
/// added, and where their sums go. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/exact/extremes.hpp"
#include "samesum/backend/cpu/exact/stream_window.hpp"
#include "samesum/backend/cpu/exact/three_words.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// The streams of terms of elements of format T, each in a window of its own: elements, products, and the low
/// words of products.
template <class T, ExactlySummed what> struct TermStreams {
  static constexpr int width = vector_bytes / 8;
  static constexpr std::size_t w = width;
  using V = Pack<fp64, width>;
  using Words = Register<std::uint64_t, width>;
  using Integers = Register<std::int64_t, width>;

  static constexpr bool moments = what == ExactlySummed::elements_and_squares,
                        has_products = what == ExactlySummed::products, adds_elements = !has_products,
                        multiplies = what != ExactlySummed::elements;
  static constexpr bool is_wide = sizeof(T) == 8;  ///< then a product needs two doubles
  static constexpr std::size_t streams = adds_elements + (multiplies ? 1 + is_wide : 0);
  static constexpr bool is_of_squares(std::size_t stream) { return moments && stream > 0; }
  /// Words per stream of ordinary data. Other data need one more, or do not fit.
  static constexpr int few = multiplies || is_wide ? 2 : 1, more = few + 1;

  template <int words> using Windows = StreamWindow<words>[streams];
  template <int words> using Sums = V[streams][words];
  struct Total {
    ThreeWords<width> sum, square;
    Integers exponent{};  ///< of the units: see ExactSums
    bool is_scaled = false;
  };

  /// Returns the range of elements, or of products.
  static ExponentRange terms(ExponentRange x, ExponentRange y) { return adds_elements ? x : x.times(y); }
  /// Places the windows of all streams for n elements, and other factors, of these ranges. Returns false if
  /// the words cannot hold all sums.
  template <int words>
  static bool place(StreamWindow<words> (&windows)[streams], ExponentRange x, ExponentRange y,
                    std::size_t n) {
    const int log2_n = log2_count(n);
    if (adds_elements && !windows[0].place(x, log2_n)) return false;
    if (!multiplies) return true;
    const ExponentRange products = x.times(y);
    if constexpr (!is_wide) return windows[streams - 1].place(products, log2_n);
    // A normal number is at least 2^52 times its last bit.
    constexpr int smallest = Format<fp64>::min_quantum;
    const int lowest = products.lowest(), top = products.top();
    if (x.lowest() == smallest || y.lowest() == smallest || lowest < smallest) return false;
    return windows[streams - 2].place(ExponentRange::between(lowest + 52, top), log2_n) &&
           windows[streams - 1].place(ExponentRange::between(lowest, top - 53), log2_n);
  }

  template <int words>
  [[gnu::always_inline]] static void broadcast(const StreamWindow<words> (&windows)[streams],
                                               V (&anchor)[streams][words]) {
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) anchor[s][i] = V::broadcast(windows[s].anchor[i]);
  }
  /// Adds the terms of a pack of elements, and of other factors.
  template <int words>
  [[gnu::always_inline]] static void add(V (&sum)[streams][words], const V (&anchor)[streams][words], V x,
                                         V y) {
    V term[streams];
    if constexpr (adds_elements) term[0] = x;
    if constexpr (multiplies) {
      const V product = x * y;
      term[adds_elements] = product;
      if constexpr (is_wide) term[streams - 1] = residual(x, y, product);
    }
    for (std::size_t s = 0; s < streams; ++s) {
      for (int i = 0; i + 1 < words; ++i) {
        const V part = (anchor[s][i] + term[s]) - anchor[s][i];
        sum[s][i] = sum[s][i] + part;
        term[s] = term[s] - part;
      }
      sum[s][words - 1] = sum[s][words - 1] + term[s];
    }
  }
  template <int words>
  [[gnu::always_inline]] static void add_to(Total& total, const V (&sum)[streams][words]) {
    if (total.is_scaled) [[unlikely]]
      return add_scaled(total, sum, Integers{}, V::zero(), V::zero());
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) (is_of_squares(s) ? total.square : total.sum).add(sum[s][i]);
  }
  /// Adds sums of elements of a format shorter than fp64, whose totals have units of 1, that lack up to
  /// `error`.
  [[gnu::always_inline]] static void add_near(Total& total, const V (&sum)[streams][1], V error) {
    add_to(total, sum);
    total.sum.lost = total.sum.lost + error;
  }
  /// Adds sums in units of 2^exponent, squares in their squares, that lack up to `error`. The unit of a total
  /// grows, so that nothing overflows; what it then loses is far below all that counts.
  template <int words>
  [[gnu::noinline]] static void add_scaled(Total& total, const V (&sum)[streams][words], Integers exponent,
                                           V error, V square_error) {
    constexpr std::int64_t room = 400;
    constexpr double negligible = 0x1p-1000;
    const Integers before = total.exponent;
    const auto grows = exponent - room > before;
    total.exponent = grows ? exponent - room : before;
    total.is_scaled = true;
    const auto rescale = [&](ThreeWords<width>& to, V factor) {
      for (V& word : to.word) word = word * factor;
      to.lost = to.lost * factor + select(grows, V::broadcast(negligible), V::zero());
    };
    const auto lose = [&](ThreeWords<width>& to, V most, V factor) {
      const auto none = most.v <= typename V::Storage{};  // false for NaN
      to.lost = to.lost + select(none, V::zero(), most * factor + V::broadcast(negligible));
    };
    const Integers down = before - total.exponent, up = exponent - total.exponent;
    rescale(total.sum, power(down));
    lose(total.sum, error, power(up));
    if constexpr (moments) {
      rescale(total.square, power(down + down));
      lose(total.square, square_error, power(up + up));
    }
    for (std::size_t s = 0; s < streams; ++s) {
      const V factor = power(is_of_squares(s) ? up + up : up);
      for (int i = 0; i < words; ++i) (is_of_squares(s) ? total.square : total.sum).add(sum[s][i] * factor);
    }
  }
  /// 2^k per lane, for k <= 1023; 0 if k < -1022.
  [[gnu::always_inline]] static V power(Integers k) {
    const Integers field = k + std::int64_t{Format<fp64>::max_exponent};
    const Integers none{}, kept = field > none ? field : none;
    return {same_bits<typename V::Storage>(Words(Words(kept) << (Format<fp64>::precision - 1)))};
  }
  /// Clears the bits of v outside the mask.
  [[gnu::always_inline]] static void keep(V& v, Words mask) {
    v.v = same_bits<typename V::Storage>(Words(same_bits<Words>(v.v) & mask));
  }
};

}  // namespace
}  // namespace samesum::cpu
