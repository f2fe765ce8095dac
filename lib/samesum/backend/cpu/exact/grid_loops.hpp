/// Inner loops of sums on a grid. For kernels.cpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::cpu {
namespace {

/// Bits of a slice of a number. The anchor rounds numbers of up to 51 bits.
constexpr int slice_bits = 50;

/// Calls add(s, anchored) for each slice but the last of a number of units, or of a pack of such numbers, and
/// returns the remainder: see AddSlices. The remainder is exact (window/anchor.hpp), so the last slice rounds
/// once.
template <int slices, class V, class Add>
[[gnu::always_inline]] inline V without_upper_slices(V rest, Add add) {
  constexpr double up = 0x1p50, down = 0x1p-50;
  if constexpr (slices == 3) {
    const V anchored = rest * (down * down) + whole_anchor;
    add(2, anchored);
    rest -= (anchored - whole_anchor) * (up * up);
  }
  if constexpr (slices >= 2) {
    const V anchored = rest * down + whole_anchor;
    add(1, anchored);
    rest -= (anchored - whole_anchor) * up;
  }
  return rest;
}

struct GridLoops {
  /// See LargestMagnitude.
  static std::uint64_t largest(const double* x, std::size_t n) {
    std::int64_t largest[lanes] = {};
    for_each(x, n, [&](double e, std::size_t lane) {
      const auto magnitude = static_cast<std::int64_t>(same_bits<std::uint64_t>(e) << 1 >> 1);
      largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
    });
    std::int64_t all = 0;
    for (const std::int64_t of_lane : largest) all = of_lane > all ? of_lane : all;
    return static_cast<std::uint64_t>(all);
  }
  /// See AddSlices.
  static void add(const double* x, const double* low, std::size_t n, double scale, int slices,
                  std::int64_t* sums) {
    const auto add = [&]<int count>() {
      low ? add_sums<count>(x, low, n, scale, sums) : add_slices<count>(x, n, scale, sums);
    };
    if (slices == 1) return add.template operator()<1>();
    slices == 2 ? add.template operator()<2>() : add.template operator()<3>();
  }

  /// See RoundToGrid. Multiples of 2^grid are the places of the sums; larger numbers are such multiples.
  template <class T> static void round(void* data, std::size_t n, int grid) {
    const T start = static_cast<T>(power_of_two(grid + Format<T>::precision - 1));
    T* const x = static_cast<T*>(data);
    for (std::size_t i = 0; i < n; ++i) {
      const T size = std::abs(x[i]), rounded = (size + start) - start;
      x[i] = std::copysign(size < start ? rounded : size, x[i]);
    }
  }

  /// See SumUnits.
  template <class T> static std::int64_t sum_units(const void* data, std::size_t n, double scale) {
    std::int64_t sums[lanes] = {};
    for_each(static_cast<const T*>(data), n, [&](T e, std::size_t lane) {
      sums[lane] += units_above(whole_anchor, static_cast<double>(e) * scale + whole_anchor);
    });
    std::int64_t all = 0;
    for (const std::int64_t of_lane : sums) all += of_lane;
    return all;
  }

 private:
  static constexpr std::size_t lanes = 16;  ///< several vectors, whose operations do not wait for each other

  /// Calls visit(element, lane) for each element.
  template <class T, class Visit>
  [[gnu::always_inline]] static void for_each(const T* x, std::size_t n, Visit visit) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) visit(x[i + lane], lane);
    for (; i < n; ++i) visit(x[i], 0);
  }

  template <int slices>
  static void add_slices(const double* x, std::size_t n, double scale, std::int64_t* sums) {
    std::int64_t of_lanes[slices][lanes] = {};
    for_each(x, n, [&](double e, std::size_t lane) {
      const double rest = without_upper_slices<slices>(e * scale, [&](int s, double anchored) {
        of_lanes[s][lane] += units_above(whole_anchor, anchored);
      });
      of_lanes[0][lane] += units_above(whole_anchor, rest + whole_anchor);
    });
    for (int s = 0; s < slices; ++s)
      for (const std::int64_t of_lane : of_lanes[s]) sums[s] += of_lane;
  }
  /// Adds slices of unevaluated sums. The rests of both words are at most 2^50 units; what their sum lacks
  /// decides only ties.
  template <int slices>
  static void add_sums(const double* x, const double* low, std::size_t n, double scale, std::int64_t* sums) {
    constexpr std::size_t w = vector_bytes / 8;
    using V = Register<double, int{w}>;
    using Words = Register<std::uint64_t, int{w}>;
    Words of_lanes[slices] = {};
    const auto add = [&](const double* high_words, const double* low_words) {
      const auto upper = [&](int s, V anchored) { of_lanes[s] += same_bits<Words>(anchored); };
      V h, l;
      std::memcpy(&h, high_words, sizeof h);
      std::memcpy(&l, low_words, sizeof l);
      const V a = without_upper_slices<slices>(V(h * scale), upper),
              b = without_upper_slices<slices>(V(l * scale), upper), rest = a + b, of_b = rest - a,
              lacking = (a - (rest - of_b)) + (b - of_b), anchored = rest + whole_anchor,
              rounded_off = rest - (anchored - whole_anchor);
      const Words one_more = same_bits<Words>((rounded_off == 0.5) & (lacking > 0)),
                  one_less = same_bits<Words>((rounded_off == -0.5) & (lacking < 0));  // all ones is -1
      of_lanes[0] += same_bits<Words>(anchored) - one_more + one_less;
    };
    std::size_t i = 0;
    for (; i + w <= n; i += w) add(x + i, low + i);
    if (i < n) {
      double last[2][w] = {};
      std::memcpy(last[0], x + i, (n - i) * sizeof(double));
      std::memcpy(last[1], low + i, (n - i) * sizeof(double));
      add(last[0], last[1]);
      i += w;
    }
    for (int s = 0; s < slices; ++s)
      for (std::size_t l = 0; l < w; ++l)  // without the anchors, of which upper slices have two
        sums[s] +=
            static_cast<std::int64_t>(of_lanes[s][l] - i / w * (s == 0 ? 1 : 2) * to_bits(whole_anchor));
  }
};

/// See LargestBits. Signed numbers have a vector comparison in every instruction set.
template <class T> std::uint64_t largest_bits(const void* data, std::size_t n) {
  using Signed = std::make_signed_t<BitsOf<T>>;
  const auto* x = static_cast<const BitsOf<T>*>(data);
  Signed largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<Signed>(x[i] & BitsOf<T>(~Format<T>::sign_bit));
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<std::uint64_t>(largest);
}

}  // namespace
}  // namespace samesum::cpu
