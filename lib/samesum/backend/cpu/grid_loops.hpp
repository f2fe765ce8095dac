/// Inner loops of sums on a grid. For kernels.cpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "samesum/backend/cpu/kernels.hpp"

namespace samesum::cpu {
namespace {

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
  /// See AddSlices. Adding the anchor rounds a number of up to 2^51 to a whole one, to nearest, ties to even.
  /// What a slice lacks of a number is exact (Rump, Ogita, Oishi 2008, Accurate floating-point summation,
  /// part I, lemma 3.3), so the last slice rounds once.
  static void add(const double* x, std::size_t n, double scale, int slices, std::int64_t* sums) {
    if (slices == 1) return add_slices<1>(x, n, scale, sums);
    slices == 2 ? add_slices<2>(x, n, scale, sums) : add_slices<3>(x, n, scale, sums);
  }

  /// See RoundToGrid. Multiples of 2^grid are the places of the sums; larger numbers are such multiples.
  static void round(double* x, std::size_t n, int grid) {
    const double start = power_of_two(grid + 52);
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::fabs(x[i]), rounded = (size + start) - start;
      x[i] = std::copysign(size < start ? rounded : size, x[i]);
    }
  }

  /// See SumUnits.
  template <class T> static std::int64_t sum_units(const void* data, std::size_t n, double scale) {
    std::int64_t sums[lanes] = {};
    for_each(static_cast<const T*>(data), n,
             [&](T e, std::size_t lane) { sums[lane] += whole(static_cast<double>(e) * scale + anchor); });
    std::int64_t all = 0;
    for (const std::int64_t of_lane : sums) all += of_lane;
    return all;
  }

 private:
  static constexpr double anchor = 0x1.8p52;
  static constexpr std::size_t lanes = 16;  ///< several vectors, whose operations do not wait for each other

  /// Calls visit(element, lane) for each element.
  template <class T, class Visit>
  [[gnu::always_inline]] static void for_each(const T* x, std::size_t n, Visit visit) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) visit(x[i + lane], lane);
    for (; i < n; ++i) visit(x[i], 0);
  }

  /// The integer in the sum of a number and the anchor.
  [[gnu::always_inline]] static std::int64_t whole(double anchored) {
    return static_cast<std::int64_t>(same_bits<std::uint64_t>(anchored) - same_bits<std::uint64_t>(anchor));
  }

  template <int slices>
  static void add_slices(const double* x, std::size_t n, double scale, std::int64_t* sums) {
    constexpr double up = 0x1p50, down = 0x1p-50;
    std::int64_t lowest[lanes] = {}, middle[lanes] = {}, highest[lanes] = {};
    for_each(x, n, [&](double e, std::size_t lane) {
      double rest = e * scale;
      if constexpr (slices == 3) {
        const double anchored = rest * (down * down) + anchor;
        highest[lane] += whole(anchored);
        rest -= (anchored - anchor) * (up * up);
      }
      if constexpr (slices >= 2) {
        const double anchored = rest * down + anchor;
        middle[lane] += whole(anchored);
        rest -= (anchored - anchor) * up;
      }
      lowest[lane] += whole(rest + anchor);
    });
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums[0] += lowest[lane];
      sums[1] += middle[lane];
      sums[2] += highest[lane];
    }
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
