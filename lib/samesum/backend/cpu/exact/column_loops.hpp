/// Exact sums of neighbouring columns, in a window for each block of rows. Each instruction set compiles its
/// own copy.
#pragma once

#include "samesum/backend/cpu/exact/row_loops.hpp"

namespace samesum::cpu {
namespace {

/// The loops over columns of elements of format T: see SumExactly.
template <class T, ExactlySummed what> class ExactColumnLoops : WindowedResults<T, what> {
  using Results = WindowedResults<T, what>;
  using Streams = TermStreams<T, what>;
  using V = typename Streams::V;
  using Words = typename Streams::Words;
  using Total = typename Streams::Total;
  template <int words> using Sums = typename Streams::template Sums<words>;
  template <int words> using Windows = typename Streams::template Windows<words>;
  using Results::column, Results::has_y, Results::term_mask, Results::widen_terms, Results::write,
      Results::is_minus_zero, Results::call_, Results::count_;

  static constexpr int few = Streams::few, more = Streams::more;
  static constexpr std::size_t w = Streams::w, streams = Streams::streams;
  static constexpr bool has_products = Streams::has_products;

  static constexpr std::size_t strip = 32;                          ///< columns whose range is found together
  static constexpr std::size_t block_length = 64;                   ///< rows per block
  static constexpr std::size_t ahead = 8192 / (strip * sizeof(T));  ///< rows to prefetch

 public:
  /// See SumExactly.
  static void sum(const ExactResults& call, ExactSums* out) {
    if (call.count < w) return ExactRowLoops<T, what>::sum_few_columns(call, out);
    for (std::size_t c = 0; c < call.count; c += strip) {
      // The last strip may overlap the one before it.
      const std::size_t first = call.count < strip ? 0 : c < call.count - strip ? c : call.count - strip;
      ExactColumnLoops{call, first, call.count < strip ? call.count : strip}.sum_blocks(out + first);
    }
  }

 private:
  using Results::Results;

  void sum_blocks(ExactSums* out) {
    const std::size_t packs = (count_ - 1) / w + 1;
    Total total[strip / w];
    for (std::size_t from = 0; from < call_.n; from += block_length) {
      const std::size_t n = call_.n - from < block_length ? call_.n - from : block_length;
      add_columns(from, n, packs, total);
    }
    for (std::size_t p = 0; p < packs; ++p)
      write(total[p], out + first_of(p), w, [&](std::size_t l) {
        const std::size_t c = first_of(p) + l;
        return is_minus_zero(column(call_.x, c, 0), column(call_.y, c, 0), call_.pitch);
      });
  }
  [[gnu::always_inline]] void add_columns(std::size_t from, std::size_t n, std::size_t packs, Total* total) {
    Windows<few> common;
    Windows<more> wider;
    ExponentRange x, y;
    if (few == 1 && count_ == strip) {  // one word has no anchor, so the pass that finds the range also adds
      V sum[strip / w];
      x = y = look_and_sum_columns(from, n, sum);
      widen_terms(x, y);
      if (Streams::place(common, x, y, n)) {
        for (std::size_t p = 0; p < packs; ++p) Streams::add_to(total[p], {{sum[p]}});
        return;
      }
      if (call_.nearly && x.is_bounded()) {
        const V error = V::broadcast(plain_error(x.top(), n, n));
        for (std::size_t p = 0; p < packs; ++p) Streams::add_near(total[p], {{sum[p]}}, error);
        return;
      }
    } else {
      x = range_of_columns(call_.x, 0, count_, from, n);
      y = has_y() ? range_of_columns(call_.y, 0, count_, from, n) : x;
      widen_terms(x, y);
      if (Streams::place(common, x, y, n)) {
        std::size_t p = 0;
        for (; p + 2 <= packs; p += 2) add_packs_of_columns<few, 2>(common, p, from, n, total);
        if (p < packs) add_packs_of_columns<few, 1>(common, p, from, n, total);
        return;
      }
    }
    const bool fits = Streams::place(wider, x, y, n);
    for (std::size_t p = 0; p < packs; ++p) {
      if (!fits) {  // a window for these columns alone
        x = range_of_columns(call_.x, first_of(p), w, from, n);
        y = has_y() ? range_of_columns(call_.y, first_of(p), w, from, n) : x;
      }
      if (fits || Streams::place(wider, x, y, n))
        add_packs_of_columns<more, 1>(wider, p, from, n, total);
      else if (x.is_bounded() && y.is_bounded())
        add_scaled_columns(p, std::max(x.top(), y.top()), from, n, total[p]);
      else
        total[p].sum.lost = V::broadcast(std::numeric_limits<double>::infinity());
    }
  }
  /// Returns the range of n rows of a strip; if one word holds it, also their sums.
  [[gnu::noinline]] ExponentRange look_and_sum_columns(std::size_t from, std::size_t n,
                                                       V (&sums)[strip / w]) const {
    constexpr std::size_t packs = strip / w;
    const Words mask = term_mask();
    V sum[packs];
    for (V& s : sum) s = V::zero();
    Extremes<T> seen;
    for (std::size_t k = 0; k < n; ++k) {
      const T* const x = column(call_.x, 0, from + k);
      if (call_.pitch > strip) prefetch_row(x, strip * sizeof(T), ahead * call_.pitch * sizeof(T));
      seen.see(x, strip);
      for (std::size_t p = 0; p < packs; ++p) {
        V v = V::load(x + p * w);
        Streams::keep(v, mask);
        sum[p] = sum[p] + v;
      }
    }
    for (std::size_t p = 0; p < packs; ++p) sums[p] = sum[p];
    return seen.range();
  }
  /// The first column of a pack. The last pack may overlap the one before it.
  std::size_t first_of(std::size_t pack) const { return (pack + 1) * w <= count_ ? pack * w : count_ - w; }
  ExponentRange range_of_columns(const void* data, std::size_t c, std::size_t count, std::size_t from,
                                 std::size_t n) const {
    Extremes<T> seen;
    if (count == call_.pitch)
      seen.see(column(data, c, from), n * count);
    else
      for (std::size_t k = 0; k < n; ++k) {
        const T* const x = column(data, c, from + k);
        prefetch_row(x, count * sizeof(T), ahead * call_.pitch * sizeof(T));
        seen.see(x, count);
      }
    return seen.range();
  }
  /// Adds n rows of a pack of columns, scaled.
  [[gnu::noinline]] void add_scaled_columns(std::size_t pack, int top, std::size_t from, std::size_t n,
                                            Total& total) const {
    using Scaled = ScaledTerms<T, what>;
    const T *x = column(call_.x, first_of(pack), from),
            *y = has_y() ? column(call_.y, first_of(pack), from) : x;
    V size = V::zero();
    for (std::size_t k = 0; k < n; ++k) {
      size = Scaled::larger(size, Scaled::size(V::load(x + k * call_.pitch), V::load(y + k * call_.pitch)));
    }
    const Scaled scaled{size, top, n};
    V anchor[streams][more];
    Streams::broadcast(scaled.windows(), anchor);
    const Words mask = term_mask();
    Sums<more> sum = {};
    for (std::size_t k = 0; k < n; ++k) {
      V a = V::load(x + k * call_.pitch), b = V::load(y + k * call_.pitch);
      Streams::keep(a, mask);
      scaled.scale(a, b);
      Streams::add(sum, anchor, a, b);
    }
    Streams::add_scaled(total, sum, scaled.exponent, scaled.error, scaled.square_error);
  }
  template <int words, std::size_t packs>
  [[gnu::noinline]] void add_packs_of_columns(const Windows<words>& windows, std::size_t first_pack,
                                              std::size_t from, std::size_t n, Total* total) const {
    V anchor[streams][words];
    Streams::broadcast(windows, anchor);
    const Words mask = term_mask();
    Sums<words> sum[packs] = {};
    std::size_t place[packs];
    for (std::size_t p = 0; p < packs; ++p) place[p] = first_of(first_pack + p);
    const T *x = column(call_.x, 0, from), *y = has_y() ? column(call_.y, 0, from) : x;
    for (std::size_t k = 0; k < n; ++k, x += call_.pitch, y += call_.pitch)
      for (std::size_t p = 0; p < packs; ++p) {
        V a = V::load(x + place[p]);
        Streams::keep(a, mask);
        Streams::add(sum[p], anchor, a, has_products ? V::load(y + place[p]) : a);
      }
    for (std::size_t p = 0; p < packs; ++p) Streams::add_to(total[first_pack + p], sum[p]);
  }
};

}  // namespace
}  // namespace samesum::cpu
