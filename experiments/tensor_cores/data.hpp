/// Random operands of matrix units, as a function of a seed: on the host and the device the same bits.
#pragma once

#include <cstdint>

#include "tensor_cores/shape.hpp"

namespace samesum::tensor_cores {

/// Classes of data. Each exercises what the others rarely do.
enum class Class : int {
  ordinary,      ///< numbers within a few binades of 1
  wide,          ///< all exponents alike, and some zeros
  bits,          ///< all bit patterns alike, infinities and NaN included
  cancellation,  ///< pairs of products that cancel, some with one bit changed; the addend cancels the rest
  partial,       ///< one large product; the others, or the addend, straddle the last bits that are kept
  tiny,          ///< subnormal numbers, products near the smallest exponents, zeros of both signs
  integers       ///< small integers, which every model adds exactly
};
constexpr int classes = 6;  ///< without integers, which only check how operands are laid out
constexpr const char* class_names[] = {"ordinary", "wide", "bits",    "cancellation",
                                       "partial",  "tiny", "integers"};

/// 64 random bits from two numbers (the finaliser of SplitMix64, Steele et al. 2014, applied twice).
SAMESUM_HD constexpr std::uint64_t hash(std::uint64_t seed, std::uint64_t x) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + (x + 1) * 0x9e3779b97f4a7c15u);
}

/// Random numbers from 0 to n - 1, taken one after the other from 64 bits.
struct Draws {
  std::uint64_t left;
  SAMESUM_HD constexpr int operator()(int n) {
    const int drawn = int((left & 0xffff) * std::uint64_t(n) >> 16);
    left >>= 16;
    return drawn;
  }
};

/// Bits of a number of format E with that exponent field, moved into the fields of finite numbers.
template <class E>
SAMESUM_HD constexpr std::uint64_t number(bool negative, int field, std::uint64_t fraction) {
  constexpr int last = E::largest_field - (E::has_infinity ? 1 : 0);
  constexpr std::uint64_t mask = (std::uint64_t{1} << E::fraction_bits) - 1,
                          largest = (std::uint64_t(last) << E::fraction_bits) + mask - !E::has_infinity;
  const std::uint64_t magnitude = std::uint64_t(field < 0      ? 0
                                                : field > last ? last
                                                               : field)
                                      << E::fraction_bits |
                                  (fraction & mask);
  return (std::uint64_t(negative) << (E::width - 1)) |
         ((magnitude < largest ? magnitude : largest) << E::ignored_bits);
}

/// A small integer i, |i| <= 3, as bits of format E.
template <class E> SAMESUM_HD constexpr std::uint64_t small_integer(int i) {
  const int magnitude = i < 0 ? -i : i;
  if (magnitude == 0) return 0;
  return number<E>(i < 0, E::bias + (magnitude > 1), std::uint64_t(magnitude == 3) << (E::fraction_bits - 1));
}

/// Element k of row `index` of A (side 0), or of column `index` of B (side 1). `tile` is a random number that
/// all elements of a tile share; n is the number of products.
template <class E>
SAMESUM_HD constexpr std::uint64_t element(Class kind, std::uint64_t tile, int side, int index, int k,
                                           int n) {
  const auto bits_of = [&](int j) {
    return hash(tile, std::uint64_t(((side * 64 + index) * 64 + j) * 2 + 1));
  };
  Draws shared{hash(tile, 0)};
  const std::uint64_t r = bits_of(k), fraction = r >> 8;
  Draws draw{hash(r, 1)};
  const bool negative = r & 1;
  switch (kind) {
    case Class::ordinary:
      return number<E>(negative, E::bias - draw(4), fraction);
    case Class::wide:
      return draw(16) == 0 ? number<E>(negative, 0, 0)
                           : number<E>(negative, draw(E::largest_field + 1), fraction);
    case Class::bits:
      return E::width == 64 ? r : r >> (64 - E::width);
    case Class::cancellation: {
      const int pair = 1 + shared(n - 1), spread = 1 << shared(4);
      const int first = (k ^ pair) < k ? k ^ pair : k;
      const std::uint64_t common = bits_of(first);
      std::uint64_t changed = common >> 8;
      if (k != first && side == 0 && draw(8) == 0) changed ^= std::uint64_t{1} << draw(E::fraction_bits);
      Draws place{hash(common, 1)};
      return number<E>((common & 1) != (side == 0 && k != first), E::bias - spread / 2 + place(spread + 1),
                       changed);
    }
    case Class::partial: {
      const int top = E::bias + shared(4) * (E::bias / 5), large = shared(n), gap = 3 + shared(16);
      const int field = k == large ? top - draw(2) : top - gap - draw(3);
      return number<E>(negative, field, draw(4) == 0 ? 0 : fraction);
    }
    case Class::tiny: {
      const int mode = shared(8);
      if (mode == 0) return number<E>(side == 0, 0, 0);
      const bool zero = draw(mode == 1 ? 2 : 8) == 0;
      const int below = E::bias < 44 ? E::bias + 1 : 44;
      const int field = ((mode & 1) == side) ? draw(4) : E::bias - draw(below);
      return number<E>(negative, zero ? 0 : field, zero ? 0 : draw(3) == 0 ? 0 : fraction);
    }
    case Class::integers:
      return small_integer<E>(draw(7) - 3);
  }
  return 0;
}

/// The addend of an output, as bits of format E. `sum` is the sum of its products, roughly.
template <class E>
SAMESUM_HD constexpr std::uint64_t addend(Class kind, std::uint64_t tile, int output, double sum,
                                          int element_bias) {
  Draws shared{hash(tile, 2)};
  const std::uint64_t r = hash(tile, std::uint64_t{1} << 32 | std::uint64_t(output)), fraction = r >> 8;
  Draws draw{hash(r, 1)};
  const bool negative = r & 1;
  switch (kind) {
    case Class::ordinary:
      return number<E>(negative, E::bias + 3 - draw(7), fraction);
    case Class::wide:
      return draw(8) == 0 ? number<E>(negative, 0, 0)
                          : number<E>(negative, E::bias - 40 + draw(81), fraction);
    case Class::bits:
      if (draw(2) == 0) return E::width == 64 ? r : r >> (64 - E::width);
      return number<E>(negative, E::bias - 40 + draw(81), fraction);
    case Class::cancellation: {
      const int mode = shared(4);
      if (mode == 0) return number<E>(negative, 0, 0);
      if (mode == 1) return number<E>(negative, E::bias + 2 - draw(8), fraction);
      // minus the sum of the products, cut to the format, or a few of its last units beside that
      const std::uint64_t bits = to_bits(-sum), magnitude = bits & ~Format<double>::sign_bit;
      const int field = int(magnitude >> 52) - 1023 + E::bias;
      if (magnitude == 0 || field < 1 || field >= E::largest_field) return number<E>(negative, 0, 0);
      return number<E>(bits >> 63, field,
                       (magnitude >> (52 - E::fraction_bits)) + std::uint64_t(draw(3)) - 1);
    }
    case Class::partial: {
      const int top = 2 * Draws{hash(tile, 0)}(4) * (element_bias / 5);  // about that of the large product
      return draw(4) == 0 ? number<E>(negative, 0, 0)
                          : number<E>(negative, E::bias + top + 36 - draw(72), fraction);
    }
    case Class::tiny:
      switch (draw(4)) {
        case 0:
          return number<E>(negative, 0, 0);
        case 1:
          return number<E>(shared(2), 0, 0);
        case 2:
          return number<E>(negative, draw(5), fraction);
        default:
          return number<E>(negative, E::bias - draw(60), fraction);
      }
    case Class::integers:
      return small_integer<E>(draw(7) - 3);
  }
  return 0;
}

/// Format in which addends are generated.
template <class R> struct GeneratedAddend { using type = element::fp32; };
template <> struct GeneratedAddend<fp16> { using type = element::fp16; };
template <> struct GeneratedAddend<double> { using type = element::fp64; };

/// Element k of a row as bits. Bytes are random in all classes but `integers`.
template <class I>
SAMESUM_HD std::uint64_t generated(Class kind, std::uint64_t tile, int side, int index, int k) {
  using E = typename I::Element;
  if constexpr (std::is_same_v<E, Int8>) {
    const auto r = element<element::e5m2>(Class::bits, tile, side, index, k, I::n);
    return kind == Class::integers ? std::uint64_t(std::uint8_t(int(r % 7) - 3)) : r;
  } else {
    return element<E>(kind, tile, side, index, k, I::n);
  }
}

/// Word of a row of generated elements.
template <class I>
SAMESUM_HD std::uint32_t generated_word(Class kind, std::uint64_t tile, int side, int index, int word) {
  constexpr int width = I::Element::width;
  if constexpr (width == 64) {
    return std::uint32_t(generated<I>(kind, tile, side, index, word / 2) >> (word % 2 * 32));
  } else {
    std::uint32_t bits = 0;
    for (int j = 0; j < 32 / width; ++j)
      bits |= std::uint32_t(generated<I>(kind, tile, side, index, word * (32 / width) + j)) << (j * width);
    return bits;
  }
}

/// Sum of the products in double, for addends that cancel it.
template <class I> SAMESUM_HD double rough_sum(const std::uint32_t* a, const std::uint32_t* b) {
  using E = typename I::Element;
  double sum = 0;
  if constexpr (std::is_same_v<E, Int8>) {
    return 0;
  } else if constexpr (E::width == 64) {
    for (int k = 0; k < I::n; ++k)
      sum += from_bits<double>(a[2 * k] | std::uint64_t(a[2 * k + 1]) << 32) *
             from_bits<double>(b[2 * k] | std::uint64_t(b[2 * k + 1]) << 32);
  } else {
    for (int k = 0; k < I::n; ++k) {
      const auto x = fused_sum::decode<E>(fused_sum::element_bits<E>(a, k), 0, false);
      const auto y = fused_sum::decode<E>(fused_sum::element_bits<E>(b, k), 0, false);
      const int e = x.exponent + y.exponent - 2 * E::fraction_bits;
      if (e > -900 && e < 900) sum += double(x.significand * y.significand) * power_of_two(e);
    }
  }
  return sum;
}

template <class I>
SAMESUM_HD std::uint64_t generated_addend(Class kind, std::uint64_t tile, int output, const std::uint32_t* a,
                                          const std::uint32_t* b) {
  using E = typename GeneratedAddend<typename I::Result>::type;
  if constexpr (std::is_same_v<typename I::Element, Int8>)
    return kind == Class::integers ? std::uint32_t(output) : std::uint32_t(hash(tile, std::uint64_t(output)));
  else
    return addend<E>(kind, tile, output, kind == Class::cancellation ? rough_sum<I>(a, b) : 0.,
                     I::Element::bias);
}

}  // namespace samesum::tensor_cores
