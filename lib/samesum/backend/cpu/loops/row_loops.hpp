/// Inner loops of sums by key whose elements are rows. For kernels.cpp.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/backend/cpu/loops/softmax_loops.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::cpu {
namespace {

/// Sums of numbers x·scale, each rounded to an integer (window/anchor.hpp), for a pack of columns. If
/// `exactly`, also records whether rounding changed a number. With `few`, the integers are at most 2^51.
/// Integers of up to 2^62 are added in two parts, the upper one in units of 2^25. The caller subtracts the
/// anchors from the sum.
template <int width, bool few, bool exactly> struct PackOfUnits {
  using V = Register<double, width>;
  using Words = Register<std::uint64_t, width>;
  static constexpr double anchor = whole_anchor, up = 0x1p25, down = 0x1p-25;
  /// What `add` adds for the number 0.
  static constexpr std::uint64_t of_zero = to_bits(anchor) * (few ? 1 : 1 + (1 << 25));

  [[gnu::always_inline]] static void add(Words& sum, Words& lost, V x, double scale) {
    V anchored, rest;
    if constexpr (few) {
      anchored = scaled_plus(x, scale, V{} + anchor);
      if constexpr (exactly) rest = scaled_plus(x, scale, anchor - anchored);
    } else {
      const V units = x * scale, high = units * down + anchor;
      sum += same_bits<Words>(high) << 25;
      rest = units - (high - anchor) * up;
      anchored = rest + anchor;
      if constexpr (exactly) rest -= anchored - anchor;
    }
    sum += same_bits<Words>(anchored);
    if constexpr (exactly) lost |= same_bits<Words>(rest) << 1;
  }

 private:
  /// Returns x·scale + y. The product is exact, so a fused instruction gives the bits of two instructions.
  [[gnu::always_inline]] static V scaled_plus(V x, double scale, V y) {
#if defined(__FMA__)
    return fma_lanes<double, width>(x, V{} + scale, y);
#else
    return x * scale + y;
#endif
  }
};

template <class F> class RowLoops {
  using Carrier = CarrierOf<F>;

 public:
  /// See SumUnitRows.
  static bool sum_units(const RowsOfKey& rows, const GridOfRows& grid, std::int64_t* sums) {
    if (grid.exactly)
      return grid.few ? sum<true, true>(rows, grid, sums) : sum<false, true>(rows, grid, sums);
    return grid.few ? sum<true, false>(rows, grid, sums) : sum<false, false>(rows, grid, sums);
  }

  /// See RoundUnits. For formats of 16 bits, integers become doubles with a sticky last bit.
  static void round_units(const std::int64_t* sums, std::size_t n, double unit, bool signed_zero, void* out) {
    constexpr int width = vector_bytes / 8;
    auto* const to = static_cast<BitsOf<F>*>(out);
    std::size_t i = 0;
    for (; i + width <= n; i += width) round_pack<width>(sums + i, unit, signed_zero, to + i);
    for (; i < n; ++i) round_pack<1>(sums + i, unit, signed_zero, to + i);
  }

  /// See AddUnitRows.
  static void add_units(const void* data, const std::size_t* place, std::size_t n, std::size_t inner,
                        double scale, bool few, std::int64_t* table) {
    const F* const x = static_cast<const F*>(data);
    const auto add = [&]<bool f>(std::bool_constant<f>) {
      for (std::size_t r = 0; r < n; ++r)
        add_row<vector_bytes / 8, f>(x + r * inner, inner, scale, table + place[r]);
    };
    few ? add(std::true_type{}) : add(std::false_type{});
  }

  /// See SumRowsInTurn.
  static void sum_in_turn(const RowsOfKey& rows, const void* held, void* sums) {
    for_each_strip<most_packs, vector_bytes / int{sizeof(Carrier)}>(
        rows.inner, [&]<int packs, int width>(std::size_t column) {
          using V = Pack<F, width>;
          V sum[packs];
          for (int p = 0; p < packs; ++p)
            sum[p] = held ? V::load(static_cast<const F*>(held) + column + p * width) : V::minus_zero();
          for_each_row<packs * width>(rows, column, [&](const F* x) {
            for (int p = 0; p < packs; ++p) sum[p] = sum[p] + V::load(x + p * width);
          });
          for (int p = 0; p < packs; ++p) store(sum[p], static_cast<F*>(sums) + column + p * width);
        });
  }

 private:
  template <int width>
  [[gnu::always_inline]] static void round_pack(const std::int64_t* sums, double unit, bool signed_zero,
                                                BitsOf<F>* out) {
    using Words = Register<std::int64_t, width>;
    using Bits = Register<BitsOf<F>, width>;
    Words word;
    std::memcpy(&word, sums, sizeof word);
    Bits bits;
    if constexpr (sizeof(F) > 2) {
      bits = same_bits<Bits>(convert_lanes<F, width>(word) * static_cast<F>(unit));
    } else {
      constexpr std::int64_t lower = 0x7ff, most = std::int64_t{1} << 53;
      const Words sticky = (word & ~lower) | (((word & lower) + lower) & ~lower),
                  exact = word < most && word > -most ? word : sticky;
      const auto rounded = round_lanes<F, double, width>(convert_lanes<double, width>(exact) * unit);
      bits = narrow_lanes<F, width>(Pack<fp32, width>{convert_lanes<float, width>(rounded)});
      if (!signed_zero) bits = Bits(bits == Format<F>::sign_bit ? Bits{} : bits);
    }
    std::memcpy(out, &bits, sizeof bits);
  }

  /// Writes results; NaN becomes the canonical one.
  template <int width> [[gnu::always_inline]] static void store(Pack<F, width> v, void* out) {
    const auto bits = [&] {
      if constexpr (sizeof(F) == 2) {
        return narrow_lanes<F, width>(Pack<fp32, width>{v.v});
      } else {
        const auto nan = Pack<F, width>::broadcast(from_bits<F>(Format<F>::canonical_nan));
        return v.v == v.v ? v.v : nan.v;
      }
    }();
    std::memcpy(out, &bits, sizeof bits);
  }

  /// Adds a row, pack by pack and then by narrower packs: a loop over the last elements would be vectorised,
  /// and slow for rows of a few elements.
  template <int width, bool few>
  [[gnu::always_inline]] static void add_row(const F* x, std::size_t n, double scale, std::int64_t* sums) {
    using Units = PackOfUnits<width, few, false>;
    std::size_t i = 0;
    for (; i + width <= n; i += width) {
      typename Units::Words sum, lost{};
      std::memcpy(&sum, sums + i, sizeof sum);
      Units::add(sum, lost, Pack<fp64, width>::load(x + i).v, scale);
      sum -= Units::of_zero;
      std::memcpy(sums + i, &sum, sizeof sum);
      if (width < vector_bytes / 8) {
        i += width;
        break;
      }
    }
    if constexpr (width > 1) add_row<width / 2, few>(x + i, n - i, scale, sums + i);
  }

  static constexpr int most_packs =
      vector_bytes == 64 ? 16 : 8;  ///< sums per strip, in half of the registers

  /// Calls visit.operator()<packs, width>(column) for strips of packs·width columns. The last ones may
  /// overlap.
  template <int packs, int width, class Visit>
  [[gnu::always_inline]] static void for_each_strip(std::size_t inner, Visit visit, std::size_t column = 0) {
    constexpr std::size_t strip = packs * width;
    if (inner >= strip) {
      for (; column + strip <= inner; column += strip) visit.template operator()<packs, width>(column);
      if (packs == 1 && column < inner) visit.template operator()<packs, width>(inner - strip);
    }
    if constexpr (packs > 1) for_each_strip<packs / 2, width>(inner, visit, column);
  }

  /// Calls visit(x) for each row, with its elements from a column on. Rows may lie anywhere, so later ones
  /// are prefetched.
  template <int columns, class Visit>
  [[gnu::always_inline]] static void for_each_row(const RowsOfKey& rows, std::size_t column, Visit visit) {
    const F* const from = static_cast<const F*>(rows.x) + column;
    for (std::size_t r = 0; r < rows.count; ++r) {
      prefetch_bytes(from + rows.index[r + RowsOfKey::ahead] * rows.inner, columns * sizeof(F));
      visit(from + rows.index[r] * rows.inner);
    }
  }

  template <bool few, bool exactly>
  static bool sum(const RowsOfKey& rows, const GridOfRows& grid, std::int64_t* sums) {
    constexpr int width = vector_bytes / 8;
    using Units = PackOfUnits<width, few, exactly>;
    using Words = typename Units::Words;
    using Magnitude = std::make_signed_t<BitsOf<F>>;
    const auto most = static_cast<Magnitude>(grid.limit - 1);
    const double scale = grid.scale;
    bool fits = true;
    for_each_strip<most_packs, width>(rows.inner, [&]<int packs, int>(std::size_t column) {
      constexpr int columns = packs * width, wide = std::min(columns, vector_bytes / int{sizeof(F)});
      using Magnitudes = Register<Magnitude, wide>;
      Words sum[packs], lost{};
      for (Words& s : sum) s = Words{} - rows.count * Units::of_zero;
      Magnitudes beyond{};  // negative in lanes with an element beyond the limit
      for_each_row<columns>(rows, column, [&](const F* x) {
        for (int p = 0; p < packs; ++p)
          Units::add(sum[p], lost, Pack<fp64, width>::load(x + p * width).v, scale);
        for (int c = 0; c < columns; c += wide) {
          Magnitudes bits;
          std::memcpy(&bits, x + c, sizeof bits);
          beyond |= most - (bits & static_cast<Magnitude>(~Format<F>::sign_bit));
        }
      });
      std::memcpy(sums + column, &sum, sizeof sum);
      for (int l = 0; l < wide; ++l) fits = fits && beyond[l] >= 0;
      for (int l = 0; exactly && l < width; ++l) fits = fits && lost[l] == 0;
    });
    return fits;
  }
};

}  // namespace
}  // namespace samesum::cpu
