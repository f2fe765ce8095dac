/// Fused sums: how matrix units add products, as an executable definition in integers, for the host and the
/// device.
///
/// A matrix unit computes c + a_0 b_0 + ... + a_(n-1) b_(n-1) in groups of products. Within a group every
/// product is exact; all products and the addend are aligned to the largest of their exponents and cut to
/// `fraction_bits` bits below it; the integers that remain are added exactly; and the sum is rounded once to
/// the format of the result, which is the addend of the next group. FusedSum holds what vendors do not
/// document. Two facts follow for each group of m products whose largest exponent is e: cutting costs less
/// than (m + 1) 2^(e - fraction_bits), whatever the order of the products, and the order cannot change the
/// result.
///
/// Models of the same kind: Fasi, Higham, Mikaitis and Pranesh 2021; Xie et al. 2025 (MMA-Sim, arXiv
/// 2511.10909); Khattak and Mikaitis 2025 (arXiv 2512.07004).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "samesum/format/format.hpp"

namespace samesum {

/// Format of the elements that a matrix unit multiplies. The lowest `IgnoredBits` bits in memory take no
/// part. A format without infinities has one NaN per sign, all bits set, and finite numbers in the rest of
/// that binade.
template <int Width, int ExponentBits, int FractionBits, int IgnoredBits = 0, bool HasInfinity = true>
struct ElementFormat {
  static constexpr int width = Width, exponent_bits = ExponentBits, fraction_bits = FractionBits;
  static constexpr int ignored_bits = IgnoredBits;
  static constexpr bool has_infinity = HasInfinity;
  static constexpr int largest_field = (1 << ExponentBits) - 1;
  static constexpr int bias = largest_field / 2, min_exponent = 1 - bias;
  static_assert(Width == 1 + ExponentBits + FractionBits + IgnoredBits);
};

namespace element {
using fp16 = ElementFormat<16, 5, 10>;
using bf16 = ElementFormat<16, 8, 7>;
using tf32 = ElementFormat<32, 8, 10, 13>;
using fp32 = ElementFormat<32, 8, 23>;
using fp64 = ElementFormat<64, 11, 52>;
using e4m3 = ElementFormat<8, 4, 3, 0, false>;
using e5m2 = ElementFormat<8, 5, 2>;
}  // namespace element

/// What becomes of bits that do not fit.
enum class Cut : int { toward_zero, down, nearest_even };
/// Exponent of a product in the alignment: the sum of the exponents; plus 1 if the product of the
/// significands is 2 or more; or the exponent of the product's leading bit.
enum class ProductExponent : int { sum, carry, leading_bit };
/// Sign of a sum of zeros and of terms that cancel.
enum class ZeroSign : int { positive, negative_if_all_are };

/// Parameters of a fused sum. The defaults are those of fp16 products in fp32 that were published for Hopper.
struct FusedSum {
  int group = 16;                    ///< products that are added at once, a power of two
  int run = 16;                      ///< product k belongs to group (k / run) mod (n / group); a power of two
  bool is_reversed = false;          ///< the last group is added first
  int fraction_bits = 25;            ///< bits kept below the largest exponent; at most 34
  Cut alignment = Cut::toward_zero;  ///< of products and addend
  ProductExponent product_exponent = ProductExponent::sum;
  int smallest_exponent = -133;  ///< the largest exponent is at least this
  int element_min_exponent = 0;  ///< subnormal elements are normalised if their exponent stays at least this
  bool zeros_have_exponents = false;  ///< whether products that are 0 take part in the maximum
  bool flushes_elements = false, flushes_addend = false, flushes_result = false;  ///< subnormals count as 0
  bool rounds_elements = false;  ///< to nearest, instead of dropping the ignored bits
  bool adds_last = false;        ///< groups start from 0; the addend is added, rounded, last
  int result_fraction_bits = 23;
  Cut result = Cut::toward_zero;
  bool saturates = false;  ///< overflow gives the largest finite number, not infinity
  ZeroSign zero_sign = ZeroSign::positive;
  bool keeps_sign_of_underflow = true;  ///< negative sums that round to 0 give -0
  std::uint32_t nan = 0x7fffffff;       ///< bits of every NaN; the low ones if the result is narrower
};

namespace fused_sum {

/// Exponents of infinities and NaN, above those of all finite products.
constexpr int infinite = 1 << 12, not_a_number = 1 << 13;
/// Exponent of zeros that take no part in the maximum.
constexpr int absent = -(1 << 12);

/// significand · 2^(exponent - q), with q fraction bits that the context fixes.
struct Term {
  std::int32_t significand = 0;
  int exponent = absent;
  bool is_negative = false;
};

/// Decodes an element. A number below 2^smallest_exponent keeps that exponent and has leading zeros.
template <class E>
SAMESUM_HD constexpr Term decode(std::uint32_t bits, int smallest_exponent, bool flushes,
                                 bool rounds = false) {
  constexpr std::uint32_t magnitude_mask = ~std::uint32_t{0} >> (33 - E::width);
  const bool negative = (bits >> (E::width - 1)) & 1;
  std::uint32_t magnitude = bits & magnitude_mask;
  if constexpr (E::ignored_bits > 0) {
    if (rounds && int(magnitude >> (E::fraction_bits + E::ignored_bits)) < E::largest_field)
      magnitude += std::uint32_t{1} << (E::ignored_bits - 1);
    magnitude >>= E::ignored_bits;
  }
  const int field = int(magnitude >> E::fraction_bits);
  std::uint32_t significand = magnitude & ((std::uint32_t{1} << E::fraction_bits) - 1);
  if (E::has_infinity ? field == E::largest_field : magnitude == magnitude_mask)
    return {negative ? -1 : 1, E::has_infinity && significand == 0 ? infinite : not_a_number, negative};
  int exponent = field + E::min_exponent - 1;
  if (field > 0) {
    significand |= std::uint32_t{1} << E::fraction_bits;
  } else {
    if (flushes) significand = 0;
    exponent = E::min_exponent;
    if (significand != 0 && smallest_exponent < exponent) {
      int shift = leading_zeros(std::uint64_t(significand)) - (63 - E::fraction_bits);
      if (shift > exponent - smallest_exponent) shift = exponent - smallest_exponent;
      significand <<= shift;
      exponent -= shift;
    }
  }
  return {negative ? -std::int32_t(significand) : std::int32_t(significand), exponent, negative};
}

/// Product of two decoded elements, exact.
SAMESUM_HD constexpr Term product(const Term& a, const Term& b, bool zeros_have_exponents) {
  const bool negative = a.is_negative != b.is_negative;
  if (a.exponent >= infinite || b.exponent >= infinite) {
    const bool invalid =
        a.exponent >= not_a_number || b.exponent >= not_a_number || a.significand == 0 || b.significand == 0;
    return {negative ? -1 : 1, invalid ? not_a_number : infinite, negative};
  }
  const std::int32_t significand = a.significand * b.significand;
  return {significand, significand == 0 && !zeros_have_exponents ? absent : a.exponent + b.exponent,
          negative};
}

/// Exponent of a product of significands with q fraction bits in the alignment.
SAMESUM_HD constexpr int aligned_exponent(const Term& t, int q, ProductExponent mode) {
  if (mode == ProductExponent::sum || t.significand == 0 || t.exponent >= infinite) return t.exponent;
  const std::uint32_t magnitude =
      t.significand < 0 ? -std::uint32_t(t.significand) : std::uint32_t(t.significand);
  const int above = 63 - leading_zeros(std::uint64_t(magnitude)) - q;
  return t.exponent + (mode == ProductExponent::leading_bit || above > 0 ? above : 0);
}

/// significand · 2^shift, cut to an integer. A shift to the left is exact.
SAMESUM_HD constexpr std::int64_t cut(std::int32_t significand, int shift, Cut mode) {
  if (shift >= 0) return std::int64_t(significand) << shift;
  const int drop = -shift > 31 ? 31 : -shift;  // the magnitude is below 2^31
  if (mode == Cut::down) return significand >> drop;
  const std::uint32_t magnitude = significand < 0 ? -std::uint32_t(significand) : std::uint32_t(significand);
  std::int64_t kept = magnitude >> drop;
  if (mode == Cut::nearest_even) {
    const std::uint32_t rest = magnitude - (std::uint32_t(kept) << drop),
                        half = std::uint32_t{1} << (drop - 1);
    if (-shift <= 31 && (rest > half || (rest == half && (kept & 1)))) ++kept;
  }
  return significand < 0 ? -kept : kept;
}

/// Rounds (-1)^negative · magnitude · 2^exponent, not zero, to the format of the result.
template <class R>
SAMESUM_HD constexpr BitsOf<R> round(bool negative, std::uint64_t magnitude, int exponent,
                                     const FusedSum& p) {
  constexpr int fraction_bits = Format<R>::precision - 1;
  const BitsOf<R> sign = negative ? Format<R>::sign_bit : BitsOf<R>{0};
  int top = 63 - leading_zeros(magnitude) + exponent;
  if (top < Format<R>::min_exponent) top = Format<R>::min_exponent;
  const int quantum = top - p.result_fraction_bits, drop = quantum - exponent;
  std::uint64_t kept = 0;
  if (drop <= 0) {
    kept = magnitude << -drop;
  } else {
    kept = drop > 63 ? 0 : magnitude >> drop;
    const std::uint64_t rest = drop > 63 ? magnitude : magnitude & ((std::uint64_t{1} << drop) - 1);
    if (p.result == Cut::down) kept += negative && rest != 0;
    if (p.result == Cut::nearest_even && drop <= 64) {
      const std::uint64_t half = std::uint64_t{1} << (drop - 1);
      kept += rest > half || (rest == half && (kept & 1));
    }
  }
  kept <<= fraction_bits - p.result_fraction_bits;
  // The hidden bit of a normal number adds one to the exponent field, and so does a carry out of the
  // significand.
  const int field = top - Format<R>::min_exponent;
  std::uint64_t bits = (std::uint64_t(field) << fraction_bits) + kept;
  if (bits >= Format<R>::infinity) bits = Format<R>::infinity - (p.saturates ? 1 : 0);
  if (p.flushes_result && (bits >> fraction_bits) == 0) bits = 0;
  return bits == 0 && !p.keeps_sign_of_underflow ? BitsOf<R>{0} : BitsOf<R>(sign | BitsOf<R>(bits));
}

template <class R> struct ElementOf;
template <> struct ElementOf<fp16> { using type = element::fp16; };
template <> struct ElementOf<fp32> { using type = element::fp32; };

/// Which group each product is in.
struct Grouping {
  int count, run_bits;
  SAMESUM_HD constexpr Grouping(int n, const FusedSum& p)
      : count{n >> (63 - leading_zeros(std::uint64_t(p.group)))},
        run_bits{63 - leading_zeros(std::uint64_t(p.run))} {}
  SAMESUM_HD constexpr bool has(int g, int k) const { return ((k >> run_bits) & (count - 1)) == g; }
};

/// Rounds c and the terms of group g, whose significands have q fraction bits, to one number.
template <class R, int n>
SAMESUM_HD constexpr BitsOf<R> add_group(const Term (&terms)[n], int q, Grouping groups, int g, BitsOf<R> c,
                                         const FusedSum& p) {
  constexpr int addend_q = Format<R>::precision - 1;
  Term addend = decode<typename ElementOf<R>::type>(c, Format<R>::min_exponent, p.flushes_addend);
  if (addend.significand == 0 && !p.zeros_have_exponents) addend.exponent = absent;
  int largest = p.smallest_exponent > addend.exponent ? p.smallest_exponent : addend.exponent;
  bool all_negative = addend.is_negative;
  for (int k = 0; k < n; ++k) {
    if (!groups.has(g, k)) continue;
    const int e = aligned_exponent(terms[k], q, p.product_exponent);
    largest = e > largest ? e : largest;
    all_negative = all_negative && terms[k].is_negative;
  }
  if (largest >= infinite) {
    bool positive = addend.exponent == infinite && !addend.is_negative;
    bool negative = addend.exponent == infinite && addend.is_negative;
    for (int k = 0; k < n; ++k) {
      if (!groups.has(g, k) || terms[k].exponent != infinite) continue;
      (terms[k].is_negative ? negative : positive) = true;
    }
    if (largest >= not_a_number || (positive && negative)) return BitsOf<R>(p.nan);
    return BitsOf<R>(Format<R>::infinity | (negative ? Format<R>::sign_bit : BitsOf<R>{0}));
  }
  std::int64_t sum =
      cut(addend.significand, p.fraction_bits - addend_q - (largest - addend.exponent), p.alignment);
  for (int k = 0; k < n; ++k)
    if (groups.has(g, k))
      sum += cut(terms[k].significand, p.fraction_bits - q - (largest - terms[k].exponent), p.alignment);
  if (sum == 0)
    return p.zero_sign == ZeroSign::negative_if_all_are && all_negative ? Format<R>::sign_bit : BitsOf<R>{0};
  return round<R>(sum < 0, sum < 0 ? -std::uint64_t(sum) : std::uint64_t(sum), largest - p.fraction_bits, p);
}

/// Element k of elements that lie one after the other in words, the first in the lowest bits.
template <class E> SAMESUM_HD constexpr std::uint32_t element_bits(const std::uint32_t* words, int k) {
  constexpr int per_word = 32 / E::width;
  return words[k / per_word] >> (k % per_word * E::width) & (~std::uint32_t{0} >> (32 - E::width));
}

}  // namespace fused_sum

/// c + sum of a_k b_k, k < n, as a matrix unit with these parameters rounds it, for n <= 64 a power of two.
/// `p.group` divides n, and `p.run` times n / `p.group` as well.
template <class E, class R, int n>
SAMESUM_HD constexpr BitsOf<R> fused_dot(const std::uint32_t* a, const std::uint32_t* b, BitsOf<R> c,
                                         const FusedSum& p) {
  fused_sum::Term terms[n];
  for (int k = 0; k < n; ++k)
    terms[k] =
        fused_sum::product(fused_sum::decode<E>(fused_sum::element_bits<E>(a, k), p.element_min_exponent,
                                                p.flushes_elements, p.rounds_elements),
                           fused_sum::decode<E>(fused_sum::element_bits<E>(b, k), p.element_min_exponent,
                                                p.flushes_elements, p.rounds_elements),
                           p.zeros_have_exponents);
  BitsOf<R> sum = p.adds_last ? BitsOf<R>{0} : c;
  const fused_sum::Grouping groups{n, p};
  for (int i = 0; i < groups.count; ++i)
    sum = fused_sum::add_group<R>(terms, 2 * E::fraction_bits, groups,
                                  p.is_reversed ? groups.count - 1 - i : i, sum, p);
  if (!p.adds_last) return sum;
  const R total = convert<R>(static_cast<float>(from_bits<R>(sum)) + static_cast<float>(from_bits<R>(c)));
  return is_nan_bits<R>(to_bits(total)) ? BitsOf<R>(p.nan) : to_bits(total);
}

/// c + sum of a_k b_k by one fused multiply-add after the other: how matrix units add products of fp64.
SAMESUM_HD inline double fma_dot(const double* a, const double* b, int n, double c, bool is_reversed) {
  for (int i = 0; i < n; ++i) {
    const int k = is_reversed ? n - 1 - i : i;
    c = std::fma(a[k], b[k], c);
  }
  return c;
}

/// c + sum of a_k b_k of signed bytes, modulo 2^32: how matrix units add products of int8.
SAMESUM_HD constexpr std::uint32_t byte_dot(const std::uint32_t* a, const std::uint32_t* b, int n,
                                            std::uint32_t c) {
  for (int k = 0; k < n; ++k) {
    const auto byte = [k](const std::uint32_t* words) {
      return std::int32_t(std::int8_t(words[k / 4] >> (k % 4 * 8)));
    };
    c += std::uint32_t(byte(a) * byte(b));
  }
  return c;
}

}  // namespace samesum
