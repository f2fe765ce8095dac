/// Exact sums of rows and of columns, in a window for each block of elements (window/anchor.hpp): a lane adds
/// its terms to a few doubles without rounding. Each instruction set compiles its own copy.
#pragma once

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/exact/bit_range.hpp"
#include "samesum/backend/cpu/exact/three_words.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::cpu {
namespace {

/// The smallest k >= 1 with n <= 2^k.
inline int log2_count(std::size_t n) { return n <= 2 ? 1 : static_cast<int>(ceil_log2(n)); }

/// Terms that are multiples of 2^lowest and smaller than 2^top.
struct TermRange {
  int top, lowest;
};

/// The window of a stream of terms in packs: the anchors of all words but the last, to which one term at a
/// time is added.
template <int words> struct StreamWindow {
  double anchor[words] = {};

  /// Places the window for 2^log2_terms terms, log2_terms >= 1. Returns false if the words cannot hold all of
  /// their sums.
  bool place(TermRange of, int log2_terms) {
    const Anchors<words, 0> anchors{of.top, log2_terms};
    if (!anchors.are_numbers()) return false;
    for (int i = 0; i + 1 < words; ++i) anchor[i] = anchor_at(anchors.exponent(i));
    return of.lowest >= anchors.lowest();
  }
};

/// The loops over elements of format T: see SumExactly.
template <class T, ExactlySummed what> class WindowLoops {
  static constexpr int width = vector_bytes / 8;
  static constexpr std::size_t w = width;
  using V = Pack<fp64, width>;
  using Words = Register<std::uint64_t, width>;

  static constexpr bool moments = what == ExactlySummed::elements_and_squares,
                        elements = what != ExactlySummed::products,
                        multiplies = what != ExactlySummed::elements;
  static constexpr bool is_wide = sizeof(T) == 8;  ///< then a product needs two doubles
  /// Streams of terms, each in a window of its own: elements, products, and the low words of products.
  static constexpr std::size_t streams = elements + (multiplies ? 1 + is_wide : 0);
  static constexpr bool of_squares(std::size_t stream) { return moments && stream > 0; }
  /// Words per stream of ordinary data. Other data need one more, or do not fit.
  static constexpr int few = multiplies || is_wide ? 2 : 1, more = few + 1;

  static constexpr std::size_t most_rows = 64, strip = 32;  ///< results whose range is found together
  /// Terms of a result per block. Products of doubles span more bits, so fewer of them fit into a window.
  static constexpr std::size_t row_block = multiplies && is_wide ? 512 : 2048, column_block = 64;
  static constexpr std::size_t elements_at_once = 2048;             ///< stay in the first-level cache
  static constexpr std::size_t ahead = 8192 / (strip * sizeof(T));  ///< rows to prefetch columns

 public:
  /// See SumExactly.
  static void sum_rows(const ExactResults& b, ExactSums* out) {
    const std::size_t at_once = rows_at_once(b.n);
    for (std::size_t r = 0; r < b.count; r += at_once)
      WindowLoops{b, r, b.count - r < at_once ? b.count - r : at_once, at_once * b.pitch}
          .template rows<false>(out + r);
  }
  /// See RoundRows; only for elements of fp32 and fp64.
  static std::size_t round_rows(const ExactResults& b, void* out) {
    if (b.n > row_block) return 0;
    const std::size_t at_once = rows_at_once(b.n);
    for (std::size_t r = 0; r < b.count; r += at_once)
      if (!WindowLoops{b, r, b.count - r < at_once ? b.count - r : at_once, at_once * b.pitch}.round(
              static_cast<T*>(out) + r))
        return r;
    return b.count;
  }
  static void sum_columns(const ExactResults& b, ExactSums* out) {
    if (b.count < w) return WindowLoops{b, 0, b.count}.template rows<true>(out);
    for (std::size_t c = 0; c < b.count; c += strip) {
      // The last strip may overlap the one before it.
      const std::size_t first = b.count < strip ? 0 : c < b.count - strip ? c : b.count - strip;
      WindowLoops{b, first, b.count < strip ? b.count : strip}.columns(out + first);
    }
  }

 private:
  struct Total {
    ThreeWords<width> sum, square;
  };
  /// Returns the range of elements, or of products.
  static TermRange terms(BitRange x, BitRange y) {
    if constexpr (elements) return {x.highest + 1, x.lowest};
    return {x.highest + y.highest + 2, x.lowest + y.lowest};
  }
  void widen_terms(BitRange x, BitRange y) {
    if (x.zero || y.zero) return;
    const TermRange more = terms(x, y);
    terms_.top = more.top > terms_.top ? more.top : terms_.top;
    terms_.lowest = more.lowest < terms_.lowest ? more.lowest : terms_.lowest;
  }
  static std::size_t rows_at_once(std::size_t n) {
    const std::size_t of_row = n < row_block ? n : row_block, fit = elements_at_once / of_row / w * w;
    return fit < w ? w : fit < most_rows ? fit : most_rows;
  }
  template <int words> using Sums = V[streams][words];
  template <int words> using Windows = StreamWindow<words>[streams];

  WindowLoops(const ExactResults& block, std::size_t first, std::size_t count, std::size_t to_next = 0)
      : b_{block}, first_{first}, count_{count}, to_next_{to_next} {}

  const T* row(const void* data, std::size_t r, std::size_t from) const {
    return static_cast<const T*>(data) + (first_ + r) * b_.pitch + from;
  }
  const T* column(const void* data, std::size_t c, std::size_t from) const {
    return static_cast<const T*>(data) + from * b_.pitch + first_ + c;
  }
  bool has_y() const { return what == ExactlySummed::products && b_.y != b_.x; }

  /// Places the windows of all streams for elements, and other factors, of these ranges.
  template <int words> static bool place(Windows<words>& windows, BitRange x, BitRange y, std::size_t n) {
    const int log2_n = log2_count(n);
    if (!x.finite || !y.finite) return false;
    if (elements && !windows[0].place({x.highest + 1, x.lowest}, log2_n)) return false;
    if (!multiplies) return true;
    const int top = x.highest + y.highest + 2, lowest = x.lowest + y.lowest;
    if constexpr (!is_wide) return windows[streams - 1].place({top, lowest}, log2_n);
    // A normal number is at least 2^52 times its last bit.
    constexpr int smallest = Format<fp64>::min_quantum;
    if (x.lowest == smallest || y.lowest == smallest || lowest < smallest) return false;
    return windows[streams - 2].place({top, lowest + 52}, log2_n) &&
           windows[streams - 1].place({top - 53, lowest}, log2_n);
  }

  template <int words>
  [[gnu::always_inline]] static void add(Sums<words>& sum, const V (&anchor)[streams][words], V x, V y) {
    V term[streams];
    if constexpr (elements) term[0] = x;
    if constexpr (multiplies) {
      const V product = x * y;
      term[elements] = product;
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
  [[gnu::always_inline]] static void broadcast(const Windows<words>& windows, V (&anchor)[streams][words]) {
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) anchor[s][i] = V::broadcast(windows[s].anchor[i]);
  }
  [[gnu::always_inline]] static void keep(V& v, Words mask) {
    v.v = same_bits<typename V::Storage>(Words(same_bits<Words>(v.v) & mask));
  }
  template <int words> [[gnu::always_inline]] static void add_to(Total& total, const Sums<words>& sum) {
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) (of_squares(s) ? total.square : total.sum).add(sum[s][i]);
  }

  // --- rows ---------------------------------------------------------------------------------------------

  /// A block of n elements of each row.
  struct RowBlock {
    const T *x, *y;  ///< y is x if there are no other factors
    std::size_t pitch, n;
    std::size_t ahead = 0;  ///< distance in elements of the block that is looked at next, which is prefetched

    BitRange range(const T* from, std::size_t count) const {
      Extremes<T> all;
      if (n == pitch)
        all.see(from, n * count);
      else
        for (std::size_t k = 0; k < count; ++k) all.see(from + k * pitch, n);
      return all.range();
    }
  };

  /// Sums rows, or columns that are fewer than the lanes of a pack: these are copied.
  template <bool copied> void rows(ExactSums* out) {
    const std::size_t packs = (count_ - 1) / w + 1, stride = copied ? b_.pitch : 1;
    T copy_of_x[copied ? w * row_block : 1], copy_of_y[copied ? w * row_block : 1];
    Total total[most_rows / w];
    for (std::size_t from = 0; from < b_.n; from += row_block) {
      RowBlock block{nullptr, nullptr, b_.pitch, b_.n - from < row_block ? b_.n - from : row_block};
      if constexpr (copied) {
        copy(column(b_.x, 0, from), block.n, copy_of_x);
        if (has_y()) copy(column(b_.y, 0, from), block.n, copy_of_y);
        block.x = copy_of_x;
        block.y = has_y() ? copy_of_y : copy_of_x;
        block.pitch = row_block;
      } else {
        block.x = row(b_.x, 0, from);
        block.y = has_y() ? row(b_.y, 0, from) : block.x;
        block.ahead = from + row_block < b_.n ? row_block : to_next_ > from ? to_next_ - from : 0;
      }
      add_rows(block, packs, total);
    }
    for (std::size_t p = 0; p < packs; ++p)
      write(total[p], out + p * w, count_ - p * w < w ? count_ - p * w : w, [&](std::size_t l) {
        const std::size_t r = p * w + l;
        return copied ? is_minus_zero(column(b_.x, r, 0), column(b_.y, r, 0), stride)
                      : is_minus_zero(row(b_.x, r, 0), row(b_.y, r, 0), stride);
      });
  }
  void copy(const T* x, std::size_t n, T* to) const {
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t c = 0; c < count_; ++c) to[c * row_block + k] = x[k * b_.pitch + c];
  }
  [[gnu::always_inline]] void add_rows(const RowBlock& block, std::size_t packs, Total* total) {
    Windows<few> common;
    Windows<more> wider;
    BitRange x, y;
    if constexpr (few == 1) {  // one word has no anchor, so the pass that finds the range also adds
      Sums<1> sum[most_rows / w];
      Extremes<T> seen;
      for (std::size_t p = 0; p < packs; ++p)
        sum_pack_of_rows<1, true>(block, p * w, &common, 0, sum[p], seen);
      x = y = seen.range();
      widen_terms(x, y);
      if (place<1>(common, x, y, block.n)) {
        for (std::size_t p = 0; p < packs; ++p) add_to<1>(total[p], sum[p]);
        return;
      }
    } else {
      x = block.range(block.x, count_);
      y = has_y() ? block.range(block.y, count_) : x;
      widen_terms(x, y);
      if (place<few>(common, x, y, block.n)) {
        for (std::size_t p = 0; p < packs; ++p) add_pack_of_rows<few>(block, p * w, &common, 0, total[p]);
        return;
      }
    }
    const bool fits = place<more>(wider, x, y, block.n);
    for (std::size_t p = 0; p < packs; ++p)
      fits ? add_pack_of_rows<more>(block, p * w, &wider, 0, total[p])
           : add_rows_apart(block, p * w, total[p]);
  }
  /// Writes the rounded sums of rows of one block. Returns false if no window holds the terms of all of them.
  bool round(T* out) const {
    const T* const x = row(b_.x, 0, 0);
    const RowBlock block{x, x, b_.pitch, b_.n, rows_ahead<T>(b_.n) * b_.pitch};
    const std::size_t packs = (count_ - 1) / w + 1;
    Windows<few> common;
    Windows<more> wider;
    // One pass finds the range and adds. Two words have an anchor, so that pass needs a window in which the
    // terms of the other rows are likely to fit: that of the first row, with as much room above as below.
    BitRange guess{true, false, 0, 0};
    if constexpr (few > 1) {
      guess = block.range(x, 1);
      const int room = few * Format<fp64>::precision - few * log2_count(b_.n) - guess.span() - 1;
      if (room > 0) guess.highest += room / 2;
      place<few>(common, guess, guess, b_.n);
    }
    Sums<few> sum[most_rows / w];
    Extremes<T> seen;
    for (std::size_t p = 0; p < packs; ++p)
      sum_pack_of_rows<few, true>(block, p * w, &common, 0, sum[p], seen);
    const BitRange range = seen.range();
    BitRange held = range;
    if (few > 1) held.highest = guess.highest;
    if ((few == 1 || range.highest <= guess.highest) && place<few>(common, held, held, b_.n)) {
      for (std::size_t p = 0; p < packs; ++p) write_rounded<few>(sum[p], p * w, out);
      return true;
    }
    if (few > 1 && place<few>(common, range, range, b_.n)) {
      for (std::size_t p = 0; p < packs; ++p) round_pack_of_rows<few>(block, p * w, common, out);
      return true;
    }
    if (!place<more>(wider, range, range, b_.n)) return false;
    for (std::size_t p = 0; p < packs; ++p) round_pack_of_rows<more>(block, p * w, wider, out);
    return true;
  }
  template <int words>
  [[gnu::noinline]] void round_pack_of_rows(const RowBlock& block, std::size_t r,
                                            const Windows<words>& windows, T* out) const {
    Sums<words> sum;
    Extremes<T> unseen;
    sum_pack_of_rows<words, false>(block, r, &windows, 0, sum, unseen);
    write_rounded<words>(sum, r, out);
  }
  template <int words>
  [[gnu::always_inline]] void write_rounded(const Sums<words>& sum, std::size_t r, T* out) const {
    V nearest;  // T rounds it as it would the sum
    if constexpr (words == 1) {
      nearest = sum[0][0];
    } else if constexpr (words == 2 && is_wide) {
      nearest = sum[0][0] + sum[0][1];
    } else {
      Total total;
      add_to<words>(total, sum);
      total.sum.normalise();
      nearest = total.sum.word[0];
      const V rest = rounded_to_odd(total.sum.word[1], total.sum.word[2]);
      if constexpr (is_wide) {
        nearest = nearest + rest;
      } else {
        const auto [high, error] = two_sum(nearest, rest);
        nearest = rounded_to_odd(high, error);
      }
    }
    const auto narrow = convert_lanes<T, width>(nearest.v);
    const std::size_t count = count_ - r < w ? count_ - r : w;
    std::memcpy(out + r, &narrow, count * sizeof(T));
    bool any_zero = false;
    for (std::size_t l = 0; l < count; ++l) any_zero = any_zero || out[r + l] == 0;
    for (std::size_t l = 0; any_zero && l < count; ++l)
      if (out[r + l] == 0) out[r + l] = is_minus_zero(row(b_.x, r + l, 0), nullptr, 1) ? -T{0} : T{0};
  }
  /// As samesum::rounded_to_odd, per lane.
  static V rounded_to_odd(V high, V low) {
    const Words bits = same_bits<Words>(high.v), apart = (bits ^ same_bits<Words>(low.v)) >> 63;
    const Words neighbour = bits + std::uint64_t{1} - (apart << 1);
    const auto keeps = (low.v == typename V::Storage{}) | ((bits & std::uint64_t{1}) != Words{});
    return select(keeps, high, V{same_bits<typename V::Storage>(neighbour)});
  }

  /// Sums a pack of rows, each in a window of its own.
  [[gnu::noinline]] void add_rows_apart(const RowBlock& block, std::size_t r, Total& total) const {
    Windows<more> windows[w] = {};
    for (std::size_t k = 0; k < w && r + k < count_; ++k) {
      const BitRange x = block.range(block.x + (r + k) * block.pitch, 1),
                     y = has_y() ? block.range(block.y + (r + k) * block.pitch, 1) : x;
      if (!place<more>(windows[k], x, y, block.n)) total.sum.lost[k] = 1;
    }
    add_pack_of_rows<more>(block, r, windows, 1, total);
  }
  /// Adds a pack of rows. The windows of row k are at windows[k·apart].
  template <int words>
  [[gnu::noinline]] void add_pack_of_rows(const RowBlock& block, std::size_t r, const Windows<words>* windows,
                                          std::size_t apart, Total& total) const {
    Sums<words> sum;
    Extremes<T> unseen;
    sum_pack_of_rows<words, false>(block, r, windows, apart, sum, unseen);
    add_to<words>(total, sum);
  }
  template <int words, bool looks>
  [[gnu::always_inline]] void sum_pack_of_rows(const RowBlock& block, std::size_t r,
                                               const Windows<words>* windows, std::size_t apart,
                                               Sums<words>& sum, Extremes<T>& seen) const {
    V of_row[streams][words][w];
    const auto sum_one = [&](std::size_t k) __attribute__((always_inline)) {
      Sums<words> of_this = {};
      const std::size_t place = (r + k) * block.pitch;
      if (r + k < count_)
        sum_row<words, looks>(block.x + place, block.y + place, block, windows[k * apart], of_this, seen);
      for (std::size_t s = 0; s < streams; ++s)
        for (int i = 0; i < words; ++i) of_row[s][i][k] = of_this[s][i];
    };
    if constexpr (words == 1) {  // the loops of a row are short
#pragma GCC unroll 8
      for (std::size_t k = 0; k < w; ++k) sum_one(k);
    } else {
      for (std::size_t k = 0; k < w; ++k) sum_one(k);
    }
    for (std::size_t s = 0; s < streams; ++s)
      for (int i = 0; i < words; ++i) sum[s][i] = across(of_row[s][i]);
  }
  template <int words, bool looks>
  [[gnu::always_inline]] void sum_row(const T* x, const T* y, const RowBlock& block,
                                      const Windows<words>& windows, Sums<words>& sum,
                                      Extremes<T>& seen) const {
    const std::size_t n = block.n;
    constexpr std::size_t per_look = vector_bytes / sizeof(T),
                          chains = words == 1 ? 4 : 2,  // additions that do not wait for each other
        step = !looks || chains * w > per_look ? chains * w : per_look;
    V anchor[streams][words];
    broadcast<words>(windows, anchor);
    Sums<words> chain[chains] = {};
    const Words mask = Words{} + mask_;
    const auto add_pack = [&](const T* a, const T* b, std::size_t c) {
      V v = V::load(a);
      keep(v, mask);
      add<words>(chain[c % chains], anchor, v, what == ExactlySummed::products ? V::load(b) : v);
    };
    std::size_t i = 0;
    if constexpr (is_wide && what != ExactlySummed::products) {
      // Vectors that cross cache lines read memory at half the speed, so a long row begins with a partial
      // vector, which ends where aligned ones begin.
      const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(x) / sizeof(T)) % w;
      if (n >= 16 * w && to_line > 0) {
        Words lane;
        for (std::size_t l = 0; l < w; ++l) lane[l] = l;
        V v = V::load(x);
        keep(v, mask & same_bits<Words>(lane < to_line));
        if (looks) seen.see(same_bits<Register<std::int64_t, width>>(v.v));
        add<words>(chain[0], anchor, v, v);
        i = to_line;
      }
    }
    for (; i + step <= n; i += step)
      for (std::size_t c = 0; c * w < step; ++c) {
        if (c * w % per_look == 0) {
          if (looks) seen.see(x + i + c * w);
          prefetch_bytes(x + i + c * w, vector_bytes, block.ahead * sizeof(T));
          if (what == ExactlySummed::products)
            prefetch_bytes(y + i + c * w, vector_bytes, block.ahead * sizeof(T));
        }
        add_pack(x + i + c * w, y + i + c * w, c);
      }
    if (looks && i < n) seen.see(x + i, n - i);
    for (; i + w <= n; i += w) add_pack(x + i, y + i, 0);
    if (i < n) {
      T last_x[w], last_y[w];
      const auto of_x = load_first<width>(x + i, n - i), of_y = load_first<width>(y + i, n - i);
      std::memcpy(static_cast<void*>(last_x), &of_x, sizeof of_x);
      std::memcpy(static_cast<void*>(last_y), &of_y, sizeof of_y);
      add_pack(last_x, last_y, 1);
    }
    for (std::size_t s = 0; s < streams; ++s)
      for (int k = 0; k < words; ++k) {
        sum[s][k] = chain[0][s][k];
        for (std::size_t c = 1; c < chains; ++c) sum[s][k] = sum[s][k] + chain[c][s][k];
      }
  }
  /// Lane l of the result is the sum of the lanes of v[l]. Overwrites v.
  [[gnu::always_inline]] static V across(V (&v)[w]) {
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i)
        v[i] =
            V{every_second<0>(v[2 * i].v, v[2 * i + 1].v)} + V{every_second<1>(v[2 * i].v, v[2 * i + 1].v)};
    return v[0];
  }

  // --- columns ------------------------------------------------------------------------------------------

  void columns(ExactSums* out) {
    const std::size_t packs = (count_ - 1) / w + 1;
    Total total[strip / w];
    for (std::size_t from = 0; from < b_.n; from += column_block) {
      const std::size_t n = b_.n - from < column_block ? b_.n - from : column_block;
      add_columns(from, n, packs, total);
    }
    for (std::size_t p = 0; p < packs; ++p)
      write(total[p], out + first_of(p), w, [&](std::size_t l) {
        const std::size_t c = first_of(p) + l;
        return is_minus_zero(column(b_.x, c, 0), column(b_.y, c, 0), b_.pitch);
      });
  }
  [[gnu::always_inline]] void add_columns(std::size_t from, std::size_t n, std::size_t packs, Total* total) {
    Windows<few> common;
    Windows<more> wider;
    BitRange x, y;
    if (few == 1 && count_ == strip) {  // as for rows
      V sum[strip / w];
      x = y = look_and_sum_columns(from, n, sum);
      widen_terms(x, y);
      if (place<few>(common, x, y, n)) {
        for (std::size_t p = 0; p < packs; ++p) total[p].sum.add(sum[p]);
        return;
      }
    } else {
      x = range_of_columns(b_.x, 0, count_, from, n);
      y = has_y() ? range_of_columns(b_.y, 0, count_, from, n) : x;
      widen_terms(x, y);
      if (place<few>(common, x, y, n)) {
        std::size_t p = 0;
        for (; p + 2 <= packs; p += 2) add_packs_of_columns<few, 2>(common, p, from, n, total);
        if (p < packs) add_packs_of_columns<few, 1>(common, p, from, n, total);
        return;
      }
    }
    const bool fits = place<more>(wider, x, y, n);
    for (std::size_t p = 0; p < packs; ++p) {
      if (!fits) {  // a window for these columns alone
        x = range_of_columns(b_.x, first_of(p), w, from, n);
        y = has_y() ? range_of_columns(b_.y, first_of(p), w, from, n) : x;
      }
      if (fits || place<more>(wider, x, y, n))
        add_packs_of_columns<more, 1>(wider, p, from, n, total);
      else
        total[p].sum.lost |= Words{} + 1;
    }
  }
  [[gnu::noinline]] BitRange look_and_sum_columns(std::size_t from, std::size_t n,
                                                  V (&sums)[strip / w]) const {
    constexpr std::size_t packs = strip / w;
    const Words mask = Words{} + mask_;
    V sum[packs];
    for (V& s : sum) s = V::zero();
    Extremes<T> seen;
    for (std::size_t k = 0; k < n; ++k) {
      const T* const x = column(b_.x, 0, from + k);
      if (b_.pitch > strip) prefetch_row(x, strip * sizeof(T), ahead * b_.pitch * sizeof(T));
      seen.see(x, strip);
      for (std::size_t p = 0; p < packs; ++p) {
        V v = V::load(x + p * w);
        keep(v, mask);
        sum[p] = sum[p] + v;
      }
    }
    for (std::size_t p = 0; p < packs; ++p) sums[p] = sum[p];
    return seen.range();
  }
  /// The first column of a pack. The last pack may overlap the one before it.
  std::size_t first_of(std::size_t pack) const { return (pack + 1) * w <= count_ ? pack * w : count_ - w; }
  BitRange range_of_columns(const void* data, std::size_t c, std::size_t count, std::size_t from,
                            std::size_t n) const {
    Extremes<T> all;
    if (count == b_.pitch)
      all.see(column(data, c, from), n * count);
    else
      for (std::size_t k = 0; k < n; ++k) {
        const T* const x = column(data, c, from + k);
        prefetch_row(x, count * sizeof(T), ahead * b_.pitch * sizeof(T));
        all.see(x, count);
      }
    return all.range();
  }
  template <int words, std::size_t packs>
  [[gnu::noinline]] void add_packs_of_columns(const Windows<words>& windows, std::size_t first_pack,
                                              std::size_t from, std::size_t n, Total* total) const {
    V anchor[streams][words];
    broadcast<words>(windows, anchor);
    const Words mask = Words{} + mask_;
    Sums<words> sum[packs] = {};
    std::size_t place[packs];
    for (std::size_t p = 0; p < packs; ++p) place[p] = first_of(first_pack + p);
    const T *x = column(b_.x, 0, from), *y = has_y() ? column(b_.y, 0, from) : x;
    for (std::size_t k = 0; k < n; ++k, x += b_.pitch, y += b_.pitch)
      for (std::size_t p = 0; p < packs; ++p) {
        V a = V::load(x + place[p]);
        keep(a, mask);
        add<words>(sum[p], anchor, a, what == ExactlySummed::products ? V::load(y + place[p]) : a);
      }
    for (std::size_t p = 0; p < packs; ++p) add_to<words>(total[first_pack + p], sum[p]);
  }

  // --- results ------------------------------------------------------------------------------------------

  /// Writes the sums of the first `count` lanes. minus_zero(l) says whether all terms of a lane are -0.
  template <class MinusZero>
  [[gnu::always_inline]] void write(Total& total, ExactSums* out, std::size_t count,
                                    MinusZero minus_zero) const {
    total.sum.normalise();
    if constexpr (moments) total.square.normalise();
    for (std::size_t l = 0; l < count; ++l) {
      for (int i = 0; i < 3; ++i) {
        out[l].sum[i] = total.sum.word[i].v[l];
        out[l].square[i] = total.square.word[i].v[l];
      }
      out[l].known = total.sum.lost[l] == 0;
      out[l].squares_are_exact = total.square.lost[l] == 0;
      out[l].top = terms_.top;
      out[l].lowest = terms_.lowest;
      if (out[l].sum[0] == 0 && out[l].known && minus_zero(l))
        for (double& word : out[l].sum) word = -0.0;
    }
  }
  bool is_minus_zero(const T* x, const T* y, std::size_t stride) const {
    for (std::size_t i = 0; i < b_.n; ++i) {
      double term = element_term(b_.term, convert<double>(x[i * stride]));
      if (what == ExactlySummed::products) term *= convert<double>(y[i * stride]);
      if (to_bits(term) != Format<fp64>::sign_bit) return false;
    }
    return true;
  }

  const ExactResults& b_;
  std::size_t first_, count_;
  std::size_t to_next_;  ///< elements between the first of these rows and the first of the next ones
  TermRange terms_{no_exponent + 1, -no_exponent};  ///< of the blocks that were added, without those of zeros
  std::uint64_t mask_ = kept_bits<fp64>(b_.term);
};

/// The function RoundRows of elements of format T; null if there is none.
template <class T> constexpr RoundRows round_rows() {
  if constexpr (std::is_same_v<T, CarrierOf<T>>)
    return WindowLoops<T, ExactlySummed::elements>::round_rows;
  else
    return nullptr;
}

}  // namespace
}  // namespace samesum::cpu
