/// Exact sums of rows, in a window for each block of elements of several rows. Each instruction set compiles
/// its own copy.
#pragma once

#include "samesum/backend/cpu/exact/scaled_terms.hpp"
#include "samesum/backend/cpu/exact/windowed_results.hpp"

namespace samesum::cpu {
namespace {

/// The loops over rows of elements of format T, which also sum the columns of a call that has few: see
/// SumExactly.
template <class T, ExactlySummed what> class ExactRowLoops : protected WindowedResults<T, what> {
 protected:
  using Results = WindowedResults<T, what>;
  using Streams = TermStreams<T, what>;
  using V = typename Streams::V;
  using Words = typename Streams::Words;
  using Total = typename Streams::Total;
  template <int words> using Sums = typename Streams::template Sums<words>;
  template <int words> using Windows = typename Streams::template Windows<words>;
  using Results::row, Results::column, Results::has_y, Results::term_mask, Results::widen_terms,
      Results::write, Results::is_minus_zero, Results::call_, Results::count_;

  static constexpr int width = Streams::width, few = Streams::few, more = Streams::more;
  static constexpr std::size_t w = width, streams = Streams::streams;
  static constexpr bool has_products = Streams::has_products, is_wide = Streams::is_wide;

  static constexpr std::size_t most_rows = 64;           ///< results whose range is found together
  static constexpr std::size_t elements_at_once = 2048;  ///< stay in the first-level cache
  /// Terms of a result per block. Products of doubles span more bits, so fewer of them fit into a window.
  static constexpr std::size_t block_length = Streams::multiplies && is_wide ? 512 : 2048;
  /// Rows of at least this length are first looked at, whether they fit a window of their own.
  static constexpr std::size_t long_row = 256;
  /// Additions of a row that do not wait for each other.
  template <int words> static constexpr std::size_t chains_of = words == 1 ? 4 : 2;
  /// Elements from one copied column to the next, which begins in another set of the first-level cache.
  static constexpr std::size_t copy_pitch = block_length + 64 / sizeof(T);

 public:
  /// See SumExactly.
  static void sum(const ExactResults& call, ExactSums* out) {
    const std::size_t at_once = rows_at_once(call.n);
    for (std::size_t r = 0; r < call.count; r += at_once)
      ExactRowLoops{call, r, at_once}.template sum_blocks<false>(out + r);
  }
  /// Sums the columns of a call that has fewer of them than a pack has lanes, in copies.
  static void sum_few_columns(const ExactResults& call, ExactSums* out) {
    ExactRowLoops{call, 0, w}.template sum_blocks<true>(out);
  }

 protected:
  ExactRowLoops(const ExactResults& call, std::size_t first, std::size_t at_once)
      : Results{call, first, call.count - first < at_once ? call.count - first : at_once},
        to_next_{at_once * call.pitch} {}

  static std::size_t rows_at_once(std::size_t n) {
    const std::size_t row_length = n < block_length ? n : block_length,
                      fit = elements_at_once / row_length / w * w;
    return fit < w ? w : fit < most_rows ? fit : most_rows;
  }

  /// A block of n elements of each row.
  struct RowBlock {
    const T *x, *y;  ///< y is x if there are no other factors
    std::size_t pitch, n;
    std::size_t ahead = 0;  ///< distance in elements of the block that is looked at next, which is prefetched

    ExponentRange range(const T* from, std::size_t count) const {
      Extremes<T> seen;
      if (n == pitch)
        seen.see(from, n * count);
      else
        for (std::size_t k = 0; k < count; ++k) seen.see(from + k * pitch, n);
      return seen.range();
    }
  };

  /// A bound of what the one word of a row of n terms below 2^top lacks.
  static double plain_error(int top, std::size_t n) {
    return cpu::plain_error(top, n, n / (chains_of<1> * w) + 12);  // one chain has the rest of a row
  }
  /// Sums a pack of rows from row r on. The windows of row k of the pack are at windows[k·apart]. If `looks`,
  /// also looks at the elements.
  template <int words, bool looks>
  [[gnu::always_inline]] void sum_pack_of_rows(const RowBlock& block, std::size_t r,
                                               const Windows<words>* windows, std::size_t apart,
                                               Sums<words>& sum, Extremes<T>& seen) const {
    V row_sums[streams][words][w];
    const auto sum_one = [&](std::size_t k) __attribute__((always_inline)) {
      Sums<words> row_sum = {};
      const std::size_t offset = (r + k) * block.pitch;
      if (r + k < count_)
        sum_row<words, looks>(block.x + offset, block.y + offset, block, windows[k * apart], row_sum, seen);
      for (std::size_t s = 0; s < streams; ++s)
        for (int i = 0; i < words; ++i) row_sums[s][i][k] = row_sum[s][i];
    };
    if constexpr (words == 1) {  // the loops of a row are short
#pragma GCC unroll 8
      for (std::size_t k = 0; k < w; ++k) sum_one(k);
    } else {
      for (std::size_t k = 0; k < w; ++k) sum_one(k);
    }
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) sum[s][i] = across(row_sums[s][i], add);
  }
  /// Calls visit(x, y) for the packs of a row, the last of which is padded with zeros.
  template <class Visit>
  [[gnu::always_inline]] static void for_each_pack(const RowBlock& block, std::size_t r, Visit visit) {
    const T *x = block.x + r * block.pitch, *y = block.y + r * block.pitch;
    std::size_t i = 0;
    for (; i + w <= block.n; i += w) visit(V::load(x + i), V::load(y + i));
    if (i == block.n) return;
    T last_x[w], last_y[w];
    load_last(x + i, block.n - i, last_x);
    load_last(y + i, block.n - i, last_y);
    visit(V::load(last_x), V::load(last_y));
  }
  /// Loads n < w elements; the others are 0.
  [[gnu::always_inline]] static void load_last(const T* x, std::size_t n, T (&last)[w]) {
    const auto rest = load_first<width>(x, n);
    std::memcpy(static_cast<void*>(last), &rest, sizeof rest);
  }

 private:
  /// Sums rows, or columns that are fewer than the lanes of a pack: these are copied.
  template <bool copied> void sum_blocks(ExactSums* out) {
    const std::size_t packs = (count_ - 1) / w + 1, stride = copied ? call_.pitch : 1;
    T copy_of_x[copied ? w * copy_pitch : 1], copy_of_y[copied ? w * copy_pitch : 1];
    Total total[most_rows / w];
    for (std::size_t from = 0; from < call_.n; from += block_length) {
      RowBlock block{nullptr, nullptr, call_.pitch,
                     call_.n - from < block_length ? call_.n - from : block_length};
      if constexpr (copied) {
        copy(column(call_.x, 0, from), block.n, copy_of_x);
        if (has_y()) copy(column(call_.y, 0, from), block.n, copy_of_y);
        block.x = copy_of_x;
        block.y = has_y() ? copy_of_y : copy_of_x;
        block.pitch = copy_pitch;
      } else {
        block.x = row(call_.x, 0, from);
        block.y = has_y() ? row(call_.y, 0, from) : block.x;
        block.ahead = from + block_length < call_.n ? block_length : to_next_ > from ? to_next_ - from : 0;
      }
      add_rows(block, packs, total);
    }
    for (std::size_t p = 0; p < packs; ++p)
      write(total[p], out + p * w, count_ - p * w < w ? count_ - p * w : w, [&](std::size_t l) {
        const std::size_t r = p * w + l;
        return copied ? is_minus_zero(column(call_.x, r, 0), column(call_.y, r, 0), stride)
                      : is_minus_zero(row(call_.x, r, 0), row(call_.y, r, 0), stride);
      });
  }
  /// Copies n elements of each column, so that they are contiguous. Several rows at a time are faster, unless
  /// their lines share a set of the first-level cache: then the set cannot hold those that are read ahead.
  void copy(const T* x, std::size_t n, T* to) const {
    constexpr std::size_t step = 8;
    const std::size_t pitch = call_.pitch;
    const bool share_set = pitch * sizeof(T) % 4096 == 0;
    std::size_t k = 0;
    for (; k + step <= n && !share_set; k += step)
      for (std::size_t c = 0; c < count_; ++c)
        for (std::size_t i = k; i < k + step; ++i) to[c * copy_pitch + i] = x[i * pitch + c];
    for (; k < n; ++k) {
      if (share_set) prefetch_bytes(x + k * pitch, count_ * sizeof(T), 8 * pitch * sizeof(T));
      for (std::size_t c = 0; c < count_; ++c) to[c * copy_pitch + k] = x[k * pitch + c];
    }
  }
  /// Adds a block of all rows to the totals of their packs.
  [[gnu::always_inline]] void add_rows(const RowBlock& block, std::size_t packs, Total* total) {
    Windows<few> common;
    Windows<more> wider;
    ExponentRange x, y;
    if constexpr (few == 1) {  // one word has no anchor, so the pass that finds the range also adds
      Sums<1> sum[most_rows / w];
      Extremes<T> seen;
      for (std::size_t p = 0; p < packs; ++p)
        sum_pack_of_rows<1, true>(block, p * w, &common, 0, sum[p], seen);
      x = y = seen.range();
      widen_terms(x, y);
      if (Streams::place(common, x, y, block.n)) {
        for (std::size_t p = 0; p < packs; ++p) Streams::add_to(total[p], sum[p]);
        return;
      }
      if (call_.nearly && x.is_bounded()) {
        const V error = V::broadcast(plain_error(x.top(), block.n));
        for (std::size_t p = 0; p < packs; ++p) Streams::add_near(total[p], sum[p], error);
        return;
      }
    } else {
      x = block.range(block.x, count_);
      y = has_y() ? block.range(block.y, count_) : x;
      widen_terms(x, y);
      if (Streams::place(common, x, y, block.n)) {
        for (std::size_t p = 0; p < packs; ++p) add_pack_of_rows<few>(block, p * w, &common, 0, total[p]);
        return;
      }
    }
    const bool fits = Streams::place(wider, x, y, block.n);
    for (std::size_t p = 0; p < packs; ++p)
      fits ? add_pack_of_rows<more>(block, p * w, &wider, 0, total[p])
           : add_rows_apart(block, p * w, x, y, total[p]);
  }
  /// Adds a pack of rows, each in a window of its own. `x` and `y` are the ranges of all rows.
  [[gnu::noinline]] void add_rows_apart(const RowBlock& block, std::size_t r, ExponentRange x,
                                        ExponentRange y, Total& total) const {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    const bool are_bounded = x.is_bounded() && y.is_bounded();
    V lacking = V::broadcast(1);  // times what scaled terms lack
    if (block.n >= long_row || !are_bounded) {
      Windows<more> windows[w] = {};
      bool all_fit = true;
      x = y = {};
      for (std::size_t k = 0; k < w && r + k < count_; ++k) {
        const ExponentRange row_x = block.range(block.x + (r + k) * block.pitch, 1),
                            row_y = has_y() ? block.range(block.y + (r + k) * block.pitch, 1) : row_x;
        if (Streams::place(windows[k], row_x, row_y, block.n)) {
          lacking.v[k] = 0;
        } else {
          all_fit = false;
          if (!row_x.is_bounded() || !row_y.is_bounded()) lacking.v[k] = unknown;
        }
        x.merge(row_x);
        y.merge(row_y);
      }
      if (all_fit) return add_pack_of_rows<more>(block, r, windows, 1, total);
    }
    add_rows_scaled(block, r, std::max(x.top(), y.top()), lacking, total);
  }
  /// Adds a pack of rows, scaled, whose factors are below 2^top.
  void add_rows_scaled(const RowBlock& block, std::size_t r, int top, V lacking, Total& total) const {
    using Scaled = ScaledTerms<T, what>;
    V sizes[w] = {}, row_sums[streams][more][w] = {};
    for (std::size_t k = 0; k < w && r + k < count_; ++k)
      for_each_pack(
          block, r + k, [&](V a, V b) __attribute__((always_inline)) {
            sizes[k] = Scaled::larger(sizes[k], Scaled::size(a, b));
          });
    const Scaled scaled{across(sizes, Scaled::larger), top, block.n};
    V anchor[streams][more];
    Streams::broadcast(scaled.windows(), anchor);
    const Words mask = term_mask();
    for (std::size_t k = 0; k < w && r + k < count_; ++k) {
      const Scaled row = scaled.lane(k);
      Sums<more> sum = {};
      for_each_pack(
          block, r + k, [&](V a, V b) __attribute__((always_inline)) {
            Streams::keep(a, mask);
            row.scale(a, b);
            Streams::add(sum, anchor, a, b);
          });
      for (std::size_t s = 0; s < streams; ++s)
        for (int i = 0; i < more; ++i) row_sums[s][i][k] = sum[s][i];
    }
    Sums<more> sums;
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < more; ++i) sums[s][i] = across(row_sums[s][i], add);
    Streams::add_scaled(total, sums, scaled.exponent, scaled.error * lacking, scaled.square_error * lacking);
  }
  /// Adds a pack of rows to their totals, in the windows of sum_pack_of_rows.
  template <int words>
  [[gnu::noinline]] void add_pack_of_rows(const RowBlock& block, std::size_t r, const Windows<words>* windows,
                                          std::size_t apart, Total& total) const {
    Sums<words> sum;
    Extremes<T> unseen;
    sum_pack_of_rows<words, false>(block, r, windows, apart, sum, unseen);
    Streams::add_to(total, sum);
  }
  template <int words, bool looks>
  [[gnu::always_inline]] void sum_row(const T* x, const T* y, const RowBlock& block,
                                      const Windows<words>& windows, Sums<words>& sum,
                                      Extremes<T>& seen) const {
    const std::size_t n = block.n;
    constexpr std::size_t per_look = vector_bytes / sizeof(T), chains = chains_of<words>,
                          step = !looks || chains * w > per_look ? chains * w : per_look;
    V anchor[streams][words];
    Streams::broadcast(windows, anchor);
    Sums<words> chain[chains] = {};
    const Words mask = term_mask();
    const auto add_pack = [&](const T* a, const T* b, std::size_t c) {
      V v = V::load(a);
      Streams::keep(v, mask);
      Streams::add(chain[c % chains], anchor, v, has_products ? V::load(b) : v);
    };
    std::size_t i = 0;
    if constexpr (is_wide && !has_products) {
      // Vectors that cross cache lines read memory at half the speed, so a long row begins with a partial
      // vector, which ends where aligned ones begin.
      const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(x) / sizeof(T)) % w;
      if (n >= 16 * w && to_line > 0) {
        Words lane;
        for (std::size_t l = 0; l < w; ++l) lane[l] = l;
        V v = V::load(x);
        Streams::keep(v, mask & same_bits<Words>(lane < to_line));
        if (looks) seen.see(same_bits<Register<std::int64_t, width>>(v.v));
        Streams::add(chain[0], anchor, v, v);
        i = to_line;
      }
    }
    for (; i + step <= n; i += step)
      for (std::size_t c = 0; c * w < step; ++c) {
        if (c * w % per_look == 0) {
          if (looks) seen.see(x + i + c * w);
          prefetch_bytes(x + i + c * w, vector_bytes, block.ahead * sizeof(T));
          if (has_products) prefetch_bytes(y + i + c * w, vector_bytes, block.ahead * sizeof(T));
        }
        add_pack(x + i + c * w, y + i + c * w, c);
      }
    if (looks && i < n) seen.see(x + i, n - i);
    for (; i + w <= n; i += w) add_pack(x + i, y + i, 0);
    if (i < n) {
      T last_x[w], last_y[w];
      load_last(x + i, n - i, last_x);
      load_last(y + i, n - i, last_y);
      add_pack(last_x, last_y, 1);
    }
    for (std::size_t s = 0; s < streams; ++s)
      for (int k = 0; k < words; ++k) {
        sum[s][k] = chain[0][s][k];
        for (std::size_t c = 1; c < chains; ++c) sum[s][k] = sum[s][k] + chain[c][s][k];
      }
  }
  [[gnu::always_inline]] static V add(V a, V b) { return a + b; }
  /// Lane l of the result combines the lanes of v[l]. Overwrites v.
  template <class Combine> [[gnu::always_inline]] static V across(V (&v)[w], Combine combine) {
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i)
        v[i] = combine(V{every_second<0>(v[2 * i].v, v[2 * i + 1].v)},
                       V{every_second<1>(v[2 * i].v, v[2 * i + 1].v)});
    return v[0];
  }

  std::size_t to_next_;  ///< elements between the first of these rows and the first of the next ones
};

}  // namespace
}  // namespace samesum::cpu
