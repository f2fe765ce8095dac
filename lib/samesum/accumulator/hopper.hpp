/// The accumulator "hopper": sums of fp16 or bf16 in fp32 as matrix units of NVIDIA Hopper add them, elements
/// times ones. The order as an executable definition, and its error bound. The GPU kernels in this order are
/// in experiments/tensor_cores.
///
/// Vectors, rows and columns have the same order. A tile is 128 consecutive elements, the last one padded
/// with zeros. Eight instructions sum a tile: each adds 16 products and the result of the one before, the
/// first adds to 0. Of each 32 consecutive elements, the first instruction adds those of the quadruples 0, 2,
/// 4 and 6, the second those of the others. An instruction is the model in fused_sum.hpp, in which the order
/// of its products does not matter. The sums of eight consecutive tiles are added in sequence in fp32, so
/// are eight of these sums, and so on until one is left.
///
/// So the bits depend on the elements and on n alone, on every machine whose matrix unit is this model.
///
/// Error bound. Let u = 2^-24, the unit roundoff of fp32, and let T be the sum of |x| over all elements.
///
/// The instruction cuts all terms, and then their sum, towards zero. So |c| <= A for its result c, where
/// A <= T is the sum of |x| over its elements and those of the instructions before it in the tile: errors
/// make no result larger. Let 2^e be the power of two to which the instruction aligns its 17 terms. The term
/// with the exponent e loses nothing, and each of the other 16 less than 2^(e-25). If a term loses a bit,
/// then a term is 2^e or more in magnitude, and 2^e <= A: elements are multiples of 2^-24 in fp16 and of
/// 2^-133 in bf16, and so are all sums of them. An alignment to a subnormal element or to the smallest
/// exponent of the model keeps bits down to 2^-39 and 2^-151, so that it loses nothing. Hence cutting the
/// terms costs less than 16 2^(e-25) <= 8uA, and cutting the sum to 24 bits less than 2uA; a subnormal sum
/// keeps all its bits. L instructions err by less than 10Lu times the sum of |x| over their tile, and all
/// tiles together by less than 10LuT. A single element is its own sum.
///
/// The magnitudes of the sums of tiles add up to at most T, so h additions in fp32 on the longest path cost
/// at most γ_h T with γ_h = hu / (1 - hu) (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
/// §4.2; sums that are subnormal are exact). Hence |result - sum| <= (10Lu + γ_h) T. This holds if
/// (1 + γ_h) T does not overflow fp32, since no intermediate magnitude is larger. Sums of fp16 do not
/// overflow for n <= 2^111.
///
/// The bound is tight within a factor of 2: in fp16, 127 elements just below 2^-14 after 2^11 are lost, which
/// is 63u of the sum, and the bound is 80u.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/accumulator/fused_sum.hpp"
#include "samesum/bound/bound.hpp"

namespace samesum::hopper {

constexpr std::size_t of_instruction = 16, of_step = 32, of_tile = 128;  ///< elements
constexpr int steps_of_tile = 4, instructions_of_tile = 8;
constexpr std::size_t arity = 8;  ///< sums that are added in sequence

/// Number of parts of m things with at most `most` in each, at least one part.
SAMESUM_HD constexpr std::size_t parts_of(std::size_t m, std::size_t most) {
  return m == 0 ? 1 : (m - 1) / most + 1;
}

/// Number, in a tile, of the instruction that adds element i of the tile.
SAMESUM_HD constexpr int instruction_of(std::size_t i) { return int(i / of_step * 2 + i / 4 % 2); }

/// Facts about the matrix unit and a format of elements.
template <class T> struct UnitInput { static constexpr bool exists = false; };
template <> struct UnitInput<fp16> {
  static constexpr bool exists = true;
  using Element = element::fp16;
  static constexpr std::uint32_t two_ones = 0x3c003c00;
  static constexpr FusedSum model{};
};
template <> struct UnitInput<bf16> {
  static constexpr bool exists = true;
  using Element = element::bf16;
  static constexpr std::uint32_t two_ones = 0x3f803f80;
  static constexpr FusedSum model{.keeps_sign_of_underflow = false};
};

/// Adds up to 16 elements to c as one instruction does.
template <class T>
float add_by_unit(float c, std::span<const T> x, const FusedSum& model = UnitInput<T>::model) {
  std::uint32_t words[8] = {}, ones[8];
  for (std::size_t i = 0; i < x.size(); ++i) words[i / 2] |= std::uint32_t(x[i].bits) << (i % 2 * 16);
  std::ranges::fill(ones, UnitInput<T>::two_ones);
  return from_bits<float>(
      fused_dot<typename UnitInput<T>::Element, float, int{of_instruction}>(words, ones, to_bits(c), model));
}

/// Sums up to 128 elements.
template <class T> float tile_sum_by_unit(std::span<const T> x, const FusedSum& model = UnitInput<T>::model) {
  float sum = 0;
  for (int instruction = 0; instruction < instructions_of_tile; ++instruction) {
    T chosen[of_instruction];
    std::size_t n = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (instruction_of(i) == instruction) chosen[n++] = x[i];
    if (n > 0) sum = add_by_unit(sum, std::span<const T>{chosen, n}, model);
  }
  return sum;
}

/// Tile k of x; empty if x is.
template <class T> std::span<const T> tile_of(std::span<const T> x, std::size_t k) {
  return x.subspan(k * of_tile, std::min(of_tile, x.size() - k * of_tile));
}

/// Adds the sums of all tiles, at least one. NaN is returned as the matrix unit writes it.
inline float add_tiles(std::vector<float> sums) {
  while (sums.size() > 1) {
    std::vector<float> added(parts_of(sums.size(), arity));
    for (std::size_t k = 0; k < sums.size(); ++k) added[k / arity] += sums[k];
    sums = std::move(added);
  }
  return sums[0] == sums[0] ? sums[0] : from_bits<float>(FusedSum{}.nan);
}

/// The definition: the sum of x in the order above.
template <class T>
float sum_by_unit_model(std::span<const T> x, const FusedSum& model = UnitInput<T>::model) {
  std::vector<float> sums(parts_of(x.size(), of_tile));
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = tile_sum_by_unit(tile_of(x, k), model);
  return add_tiles(std::move(sums));
}

/// Instructions and additions in fp32 on the longest path from one of n elements to the result.
constexpr Height height(std::size_t n) {
  if (n <= 1) return {};
  Height all{n <= 4 ? 1 : std::min<std::size_t>(2 * parts_of(n, of_step), instructions_of_tile), 0};
  for (std::size_t sums = parts_of(n, of_tile); sums > 1; sums = parts_of(sums, arity))
    all.merges += std::min(sums, arity) - 1;
  return all;
}

/// Largest |result - sum| / sum of |x| for n elements, from the proof above.
inline double unit_sum_bound(std::size_t n) {
  constexpr double u = 0x1p-24;
  const Height h = height(n);
  return rounded_up(10 * static_cast<double>(h.adds) * u + gamma(static_cast<double>(h.merges), u));
}

}  // namespace samesum::hopper

namespace samesum {

/// The facts of the accumulator `hopper`.
struct Hopper {
  static constexpr std::string_view name = "hopper";
  static constexpr bool takes_grid = false;
  static constexpr std::size_t state_bytes = sizeof(float);
  static constexpr int operations_per_element = 2;  ///< of the matrix unit: a product and an addition
  static constexpr Height height(std::size_t n) { return hopper::height(n); }
  static std::string height_formula() { return "at most 8 + 7 * ceil(log8(max(n, 128) / 128))"; }

  /// The bound that is proved above.
  static Loss bound(const Summed& s) {
    return {hopper::unit_sum_bound(s.n) * s.magnitudes,
            (1 + gamma(static_cast<double>(s.height.merges), s.u)) * s.magnitudes};
  }
  /// The same bound: cutting errs in one direction, so that errors do not average out.
  static Loss probable_bound(const Summed& s, double) { return bound(s); }
};

}  // namespace samesum
