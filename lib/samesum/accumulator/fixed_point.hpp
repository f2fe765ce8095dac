/// The accumulator "fixed_point": sums of whole multiples of a grid 2^g.
///
/// Each term is rounded once to a multiple of 2^g, to nearest, ties to even. The multiples are added as
/// integers, and the sum is rounded once to the format of the result. Integer addition is associative, so the
/// result does not depend on the order of the terms. No function here uses floating-point arithmetic.
#pragma once

#include "samesum/format/format.hpp"
#include "samesum/window/sum_flags.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// A finite term in units of a grid. `bits` is the smallest k >= 0 with |units| <= 2^k. A term beyond 2^126
/// units has `units` 0.
struct GridTerm {
  static constexpr std::int32_t beyond = 127;  ///< `bits` of a term beyond 2^126 units
  Int128 units{};
  std::int32_t bits = 0;
};

/// Returns ±magnitude·2^exponent in units of 2^grid, rounded to nearest, ties to even.
SAMESUM_HD constexpr GridTerm to_grid(bool negative, Wide magnitude, int exponent, int grid) {
  constexpr GridTerm beyond{{}, GridTerm::beyond};
  if (magnitude == 0) return {};
  const int shift = exponent - grid, width = 128 - leading_zeros(magnitude);
  if (shift >= 0) {
    if (width + shift > 127) return beyond;
    magnitude <<= shift;
  } else if (-shift > width) {
    return {};  // below half a unit
  } else {
    const int down = -shift;  // 1 … 128
    const Wide kept = down == 128 ? 0 : magnitude >> down, rest = magnitude << (128 - down),
               half = Wide{1} << 127;
    magnitude = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
    if (magnitude == 0) return {};
  }
  const int bits = 128 - leading_zeros(Wide{magnitude - 1});
  if (bits > 126) return beyond;
  return {Int128::of(negative, magnitude), bits};
}

/// Returns a finite number in units of 2^grid.
template <class T> SAMESUM_HD constexpr GridTerm to_grid(T x, int grid) {
  const Decomposed d = decompose<T>(to_bits(x));
  return to_grid(d.negative, d.significand, d.exponent, grid);
}

/// Returns the exact product of two finite numbers in units of 2^grid.
template <class T> SAMESUM_HD constexpr GridTerm product_to_grid(T x, T y, int grid) {
  const Decomposed p = decompose<T>(to_bits(x)), q = decompose<T>(to_bits(y));
  return to_grid(p.negative != q.negative, Wide{p.significand} * q.significand, p.exponent + q.exponent,
                 grid);
}

/// The exponent of terms that are zero, infinite or NaN; below every exponent.
inline constexpr int no_exponent = -(1 << 20);

/// Returns the exponent e of a term, 2^e <= |x| < 2^(e+1); no_exponent if it is zero, infinite or NaN.
template <class T> SAMESUM_HD constexpr int exponent_of(T x) {
  const auto magnitude = BitsOf<T>(to_bits(x) & ~Format<T>::sign_bit);
  if (magnitude == 0 || magnitude >= Format<T>::infinity) return no_exponent;
  const Decomposed d = decompose<T>(magnitude);
  return d.exponent + 63 - leading_zeros(d.significand);
}
/// Returns the exponent of the exact product of two numbers, as exponent_of.
template <class T> SAMESUM_HD constexpr int exponent_of_product(T x, T y) {
  if (exponent_of(x) == no_exponent || exponent_of(y) == no_exponent) return no_exponent;
  const Decomposed p = decompose<T>(to_bits(x)), q = decompose<T>(to_bits(y));
  return p.exponent + q.exponent + 127 - leading_zeros(Wide{p.significand} * q.significand);
}

/// Returns the flags of a product; 0 if both numbers are finite.
template <class T> SAMESUM_HD constexpr std::uint32_t special_flags_of_product(T x, T y) {
  const std::uint32_t a = special_flags_of(x), b = special_flags_of(y);
  if ((a | b) == 0) return 0;
  const auto is_zero = [](T v) { return BitsOf<T>(to_bits(v) & ~Format<T>::sign_bit) == 0; };
  if (((a | b) & SumFlags::seen_nan) || is_zero(x) || is_zero(y)) return SumFlags::seen_nan;
  return ((to_bits(x) ^ to_bits(y)) & Format<T>::sign_bit) == 0 ? SumFlags::seen_plus_infinity
                                                                : SumFlags::seen_minus_infinity;
}

/// Usable bits of the word that holds sums for results of F: 62 of one 64-bit word, 126 of two for fp64.
SAMESUM_HD constexpr int word_bits_for(int precision) { return precision > 24 ? 126 : 62; }
template <class F> inline constexpr int grid_word_bits = word_bits_for(Format<F>::precision);

/// ⌈log2 n⌉, and 0 for n = 0, also in device code.
SAMESUM_HD constexpr int bits_for_terms(std::uint64_t n) { return n < 2 ? 0 : 64 - leading_zeros(n - 1); }

/// Returns the grid of n terms of which the largest finite one has that exponent (or no_exponent): the
/// smallest grid on which no sum of n such terms exceeds 2^word_bits units, but not below `quantum`.
/// @param quantum all terms are multiples of 2^quantum: the smallest subnormal, or its square for products.
SAMESUM_HD constexpr int found_grid(int largest_exponent, std::uint64_t n, int word_bits, int quantum) {
  if (largest_exponent == no_exponent) return quantum;
  const int grid = largest_exponent + 1 + bits_for_terms(n) - word_bits;
  return grid > quantum ? grid : quantum;
}

/// The most bits of a term, as in GridTerm, on a given grid if there are n terms. Sums of n such terms do not
/// wrap in 128 bits. Terms on the grid that found_grid returns never have more.
SAMESUM_HD constexpr int most_term_bits(std::uint64_t n) { return 126 - bits_for_terms(n); }

/// A sum on a grid, and what is known about its terms. All members are functions of the terms alone, whatever
/// their order and partition.
struct GridSum {
  static constexpr std::string_view name = "fixed_point";  ///< in the names of methods

  Int128 units{};           ///< sum of the finite terms in units of the grid, modulo 2^128
  std::uint32_t flags = 0;  ///< SumFlags::seen_nan, seen_plus_infinity and seen_minus_infinity
  std::int32_t bits = 0;    ///< largest GridTerm::bits

  SAMESUM_HD constexpr void add(GridTerm term) {
    units.add(term.units);
    bits = term.bits > bits ? term.bits : bits;
  }
  /// Adds an element.
  template <class T> SAMESUM_HD constexpr void add(T x, int grid) {
    if (const std::uint32_t special = special_flags_of(x); special != 0)
      flags |= special;
    else
      add(to_grid(x, grid));
  }
  /// Adds a product.
  template <class T> SAMESUM_HD constexpr void add_product(T x, T y, int grid) {
    if (const std::uint32_t special = special_flags_of_product(x, y); special != 0)
      flags |= special;
    else
      add(product_to_grid(x, y, grid));
  }
  SAMESUM_HD constexpr void merge(const GridSum& other) {
    units.add(other.units);
    flags |= other.flags;
    bits = other.bits > bits ? other.bits : bits;
  }

  /// Whether a given grid is too fine for n terms: a term exceeds 2^most_term_bits(n) units, or the sum
  /// exceeds 2^word_bits. On the grid that found_grid returns that never happens. NaN and infinities among
  /// the terms do not matter.
  SAMESUM_HD constexpr bool overflows(std::uint64_t n, int word_bits) const {
    return bits > most_term_bits(n) || units.magnitude().wide() > Wide{1} << word_bits;
  }

  /// Bit pattern of the sum divided by `divisor`, correctly rounded to F: NaN, an infinity, or the number.
  template <class F> SAMESUM_HD constexpr BitsOf<F> result(int grid, std::uint64_t divisor = 1) const {
    if (flags != 0) return special_bits<F>(flags);
    return divisor == 1 ? round_units<F>(units, grid) : round_units<F>(units, grid, divisor);
  }
  /// Bit pattern of the sum plus `held`, correctly rounded to F.
  template <class F> SAMESUM_HD constexpr BitsOf<F> result_with(int grid, F held) const {
    const std::uint32_t all = flags | special_flags_of(held);
    return all != 0 ? special_bits<F>(all) : round_sum<F, false>(units, grid, held);
  }
};

}  // namespace samesum
