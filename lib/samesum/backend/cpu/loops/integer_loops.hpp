/// Sums and extrema of integers: of a line of them, and of neighbouring columns. Each instruction set
/// compiles its own copy.
#pragma once

#include <bit>
#include <limits>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"

namespace samesum::cpu {
namespace {

template <class T> class IntegersOf {
  static constexpr int bits = 8 * int{sizeof(T)}, width = vector_bytes / int{sizeof(T)};
  static constexpr std::size_t w = width;
  using Unsigned = std::make_unsigned_t<T>;
  using Lanes = Register<T, width>;
  using Words = Register<std::uint64_t, vector_bytes / 8>;
  static constexpr int words = vector_bytes / 8;
  /// Bits that represent 0 once the sign bit of signed integers is flipped, so that none is negative.
  static constexpr auto zero =
      static_cast<Unsigned>(std::is_signed_v<T> ? std::uint64_t{1} << (bits - 1) : std::uint64_t{0});

  static Lanes load(const T* x) {
    Lanes v;
    std::memcpy(&v, x, sizeof v);
    return v;
  }

  /// Sums per lane that do not wrap. Narrow integers are added in lanes of twice their width: those at even
  /// places to `low`, the others to `high`. For integers of 64 bits, `low` is the sum modulo 2^64, and `high`
  /// the sum of the upper halves.
  struct Sums {
    static constexpr std::uint64_t most = bits == 8 ? 1 << 8 : bits == 16 ? 1 << 16 : std::uint64_t{1} << 32;
    static constexpr int half = bits == 64 ? 32 : bits;
    using Lane = std::conditional_t<bits == 8, std::uint16_t,
                                    std::conditional_t<bits == 16, std::uint32_t, std::uint64_t>>;
    static constexpr int lanes = vector_bytes / int{sizeof(Lane)};
    using Wide = Register<Lane, lanes>;
    Wide low{}, high{};

    [[gnu::always_inline]] void add(Lanes x) {
      const Wide v = same_bits<Wide>(same_bits<Register<Unsigned, width>>(x) ^ zero);
      low += bits == 64 ? v : v & Lane((std::uint64_t{1} << half) - 1);
      high += v >> half;
    }
    /// Adds the sums of n rows to those of w columns.
    [[gnu::always_inline]] void move_to(Int128* sums, std::uint64_t n) const {
      for (int l = 0; l < lanes; ++l) {
        if constexpr (bits == 64) {
          sums[l].add(total_of(low[l], high[l], n));
        } else {
          sums[2 * l].add(Int128::of(std::int64_t(low[l] - n * zero)));
          sums[2 * l + 1].add(Int128::of(std::int64_t(high[l] - n * zero)));
        }
      }
    }
  };
  /// Returns the sum of n < 2^32 integers of 64 bits. The sum of their lower halves is below 2^64.
  static Int128 total_of(std::uint64_t low, std::uint64_t high, std::uint64_t n) {
    return Int128::of((Wide{high} << 32) + (low - (high << 32)) - Wide{n} * zero);
  }
  /// Adds neighbouring lanes that fill a word together.
  template <class Lane> static Words pairs(Register<Lane, vector_bytes / int{sizeof(Lane)}> v) {
    if constexpr (sizeof(Lane) == 8) {
      return v;
    } else {
      constexpr int half = 8 * int{sizeof(Lane)};
      using Pair = std::conditional_t<half == 16, std::uint32_t, std::uint64_t>;
      const auto pair = same_bits<Register<Pair, vector_bytes / int{sizeof(Pair)}>>(v);
      return pairs<Pair>((pair & Pair((std::uint64_t{1} << half) - 1)) + (pair >> half));
    }
  }
  static std::uint64_t sum_of(Words v) {
    std::uint64_t sum = 0;
    for (int l = 0; l < words; ++l) sum += v[l];
    return sum;
  }

  template <bool smallest, class V> static V better(V a, V b) {
    if constexpr (smallest)
      return a < b ? a : b;
    else
      return a > b ? a : b;
  }

  static constexpr std::size_t most_packs = 8;  ///< per strip of columns
  /// Calls visit.operator()<packs>(column) for strips of packs·w columns, from the first on. Returns the
  /// first column beyond them: less than a pack is left.
  template <std::size_t packs, class Visit>
  [[gnu::always_inline]] static std::size_t for_each_strip(std::size_t count, std::size_t column,
                                                           Visit visit) {
    for (; column + packs * w <= count; column += packs * w) visit.template operator()<packs>(column);
    if constexpr (packs > 1) return for_each_strip<packs / 2>(count, column, visit);
    return column;
  }
  /// Calls visit(row) for each row of a strip of columns, and prefetches the rows behind it.
  template <std::size_t packs, class Visit>
  [[gnu::always_inline]] static void for_each_row(const IntegerRows& rows, std::size_t column,
                                                  std::size_t from, std::size_t to, Visit visit) {
    const std::size_t bytes_ahead = 16 * sizeof(T) * static_cast<std::size_t>(rows.pitch);  // modulo 2^64
    for (std::size_t r = from; r < to; ++r) {
      const T* const x = static_cast<const T*>(rows.x) + column + static_cast<std::ptrdiff_t>(r) * rows.pitch;
      if (packs > 1) prefetch_row(x, packs * sizeof(Lanes), bytes_ahead);
      visit(x);
    }
  }

 public:
  /// See IntegerLoops.
  static Int128 sum(const void* data, std::size_t n) {
    constexpr std::size_t chains = 4, together = chains * w;
    const T* const x = static_cast<const T*>(data);
    Words low{}, high{};
    std::size_t i = 0;
    while (i + together <= n) {
      const std::size_t left = (n - i) / together,
                        end = i + (left < Sums::most ? left : std::size_t{Sums::most}) * together;
      Sums chain[chains];
      for (; i < end; i += together)
        for (std::size_t c = 0; c < chains; ++c) chain[c].add(load(x + i + c * w));
      for (const Sums& c : chain) {
        low += pairs<typename Sums::Lane>(c.low);
        high += pairs<typename Sums::Lane>(c.high);
      }
    }
    Sums rest;
    for (; i + w <= n; i += w) rest.add(load(x + i));
    std::uint64_t padded = n;
    if (i < n) {
      T last[w] = {};
      std::memcpy(last, x + i, (n - i) * sizeof(T));
      rest.add(load(last));
      padded = i + w;
    }
    const std::uint64_t a = sum_of(low + pairs<typename Sums::Lane>(rest.low)),
                        b = sum_of(high + pairs<typename Sums::Lane>(rest.high));
    return bits == 64 ? total_of(a, b, padded) : Int128::of(Wide{a} + b - Wide{padded} * zero);
  }
  static void sum_columns(const IntegerRows& rows, Int128* sums) {
    const std::size_t done =
        for_each_strip < vector_bytes == 64
            ? most_packs
            : most_packs / 2 > (rows.count, 0, [&]<std::size_t packs>(std::size_t column) {
                for (std::size_t from = 0, to; from < rows.rows; from = to) {
                  to = rows.rows - from < Sums::most ? rows.rows : from + Sums::most;
                  Sums sum[packs];
                  for_each_row<packs>(rows, column, from, to, [&](const T* x) {
                    for (std::size_t p = 0; p < packs; ++p) sum[p].add(load(x + p * w));
                  });
                  for (std::size_t p = 0; p < packs; ++p) sum[p].move_to(sums + column + p * w, to - from);
                }
              });
    for_each_row<1>(rows, done, 0, rows.rows, [&](const T* x) {
      for (std::size_t c = done; c < rows.count; ++c) sums[c].add(Int128::of(Wide(x[c - done])));
    });
  }
  template <bool smallest> static void extremum(const void* data, std::size_t n, void* best) {
    constexpr std::size_t chains = 4;
    const T* const x = static_cast<const T*>(data);
    T found = *static_cast<T*>(best);
    std::size_t i = 0;
    if (n >= w) {
      Lanes chain[chains];
      for (Lanes& c : chain) c = Lanes{} + found;
      for (; i + chains * w <= n; i += chains * w)
        for (std::size_t c = 0; c < chains; ++c) chain[c] = better<smallest>(chain[c], load(x + i + c * w));
      for (; i + w <= n; i += w) chain[0] = better<smallest>(chain[0], load(x + i));
      chain[1] = better<smallest>(chain[1], load(x + n - w));
      i = n;
      const Lanes all =
          better<smallest>(better<smallest>(chain[0], chain[1]), better<smallest>(chain[2], chain[3]));
      T lane[w];
      std::memcpy(lane, &all, sizeof all);
      for (std::size_t half = w / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lane[l] = better<smallest>(lane[l], lane[l + half]);
      found = lane[0];
    }
    for (; i < n; ++i) found = better<smallest>(found, x[i]);
    *static_cast<T*>(best) = found;
  }
  template <bool smallest> static void extremum_columns(const IntegerRows& rows, void* best) {
    T* const out = static_cast<T*>(best);
    const std::size_t done =
        for_each_strip<most_packs>(rows.count, 0, [&]<std::size_t packs>(std::size_t column) {
          Lanes found[packs];
          std::memcpy(found, out + column, sizeof found);
          for_each_row<packs>(rows, column, 0, rows.rows, [&](const T* x) {
            for (std::size_t p = 0; p < packs; ++p) found[p] = better<smallest>(found[p], load(x + p * w));
          });
          std::memcpy(out + column, found, sizeof found);
        });
    for_each_row<1>(rows, done, 0, rows.rows, [&](const T* x) {
      for (std::size_t c = done; c < rows.count; ++c) out[c] = better<smallest>(out[c], x[c - done]);
    });
  }
  static std::size_t find(const void* data, std::size_t n, const void* value) {
    constexpr std::size_t together = 4;
    const T* const x = static_cast<const T*>(data);
    const T wanted = *static_cast<const T*>(value);
    std::size_t i = 0;
    for (; i + together * w <= n; i += together * w) {
      auto is = load(x + i) == wanted;
      for (std::size_t k = 1; k < together; ++k) is |= load(x + i + k * w) == wanted;
      if (any_bit(same_bits<Words>(is))) break;
    }
    while (i < n && x[i] != wanted) ++i;
    return i;
  }
  static void keep(const void* data, const std::uint8_t* where, std::size_t n, const void* stand_in,
                   void* to) {
    const T* const x = static_cast<const T*>(data);
    const T other = *static_cast<const T*>(stand_in);
    T* const out = static_cast<T*>(to);
    for (std::size_t i = 0; i < n; ++i) {
      const auto takes = static_cast<Unsigned>(-static_cast<Unsigned>(where[i] != 0));
      out[i] =
          static_cast<T>((static_cast<Unsigned>(x[i]) & takes) | (static_cast<Unsigned>(other) & ~takes));
    }
  }

  static constexpr IntegerLoops all{
      sum,  sum_columns, {extremum<false>, extremum<true>}, {extremum_columns<false>, extremum_columns<true>},
      find, keep};

 private:
  [[gnu::always_inline]] static bool any_bit(Words v) {
    std::uint64_t all = 0;
    for (int l = 0; l < words; ++l) all |= v[l];
    return all != 0;
  }
};

}  // namespace
}  // namespace samesum::cpu
