/// The accumulator "fixed_point": sums of whole multiples of a grid 2^g.
///
/// Each term is rounded once to a multiple of 2^g, to nearest, ties to even. The multiples are added as
/// integers, and the sum is rounded once to the format of the result. Integer addition is associative, so the
/// result does not depend on the order of the terms. No function here uses floating-point arithmetic.
#pragma once

#include <cstdint>
#include <string_view>

#include "samesum/accumulator/exact.hpp"
#include "samesum/format/formats.hpp"

namespace samesum {

/// An integer of 128 bits in two's complement, as two words. Sums wrap.
struct Int128 {
  std::uint64_t low = 0;
  std::int64_t high = 0;

  using Wide = samesum::Wide;

  SAMESUM_HD static constexpr Int128 of(Wide x) {
    return {static_cast<std::uint64_t>(x), static_cast<std::int64_t>(static_cast<std::uint64_t>(x >> 64))};
  }
  SAMESUM_HD static constexpr Int128 of(bool negative, Wide magnitude) {
    return of(negative ? Wide{0} - magnitude : magnitude);
  }
  SAMESUM_HD static constexpr Int128 of(std::int64_t x) { return {static_cast<std::uint64_t>(x), x >> 63}; }

  SAMESUM_HD constexpr Wide wide() const { return Wide{static_cast<std::uint64_t>(high)} << 64 | low; }
  SAMESUM_HD constexpr bool is_negative() const { return high < 0; }
  SAMESUM_HD constexpr bool is_zero() const { return (static_cast<std::uint64_t>(high) | low) == 0; }
  SAMESUM_HD constexpr Wide magnitude() const { return is_negative() ? Wide{0} - wide() : wide(); }
  /// The number times 2^shift, for 0 <= shift < 128.
  SAMESUM_HD constexpr Int128 shifted(int shift) const { return of(wide() << shift); }
  SAMESUM_HD constexpr void add(Int128 other) { *this = of(wide() + other.wide()); }
  SAMESUM_HD constexpr void merge(Int128 other) { add(other); }

  SAMESUM_HD friend constexpr bool operator==(Int128 a, Int128 b) {
    return a.low == b.low && a.high == b.high;
  }
};

/// A finite term in units of a grid. `bits` is the smallest k >= 0 with |units| <= 2^k. A term beyond 2^126
/// units has `units` 0.
struct GridTerm {
  static constexpr std::int32_t beyond = 127;  ///< `bits` of a term beyond 2^126 units
  Int128 units;
  std::int32_t bits = 0;
};

/// Returns ±magnitude·2^exponent in units of 2^grid, rounded to nearest, ties to even.
SAMESUM_HD constexpr GridTerm to_grid(bool negative, Int128::Wide magnitude, int exponent, int grid) {
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
    const Int128::Wide kept = down == 128 ? 0 : magnitude >> down, rest = magnitude << (128 - down),
                       half = Int128::Wide{1} << 127;
    magnitude = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
    if (magnitude == 0) return {};
  }
  const int bits = 128 - leading_zeros(Int128::Wide{magnitude - 1});
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
  return to_grid(p.negative != q.negative, Int128::Wide{p.significand} * q.significand,
                 p.exponent + q.exponent, grid);
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
  return p.exponent + q.exponent + 127 - leading_zeros(Int128::Wide{p.significand} * q.significand);
}

/// Returns the flags of a number, a combination of Exact::Flag; 0 if it is finite.
template <class T> SAMESUM_HD constexpr std::uint32_t grid_flags(T x) {
  const BitsOf<T> bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
  if (magnitude < Format<T>::infinity) return 0;
  return magnitude > Format<T>::infinity ? Exact::seen_nan
         : bits == magnitude             ? Exact::seen_plus_infinity
                                         : Exact::seen_minus_infinity;
}
/// Returns the flags of a product; 0 if both numbers are finite.
template <class T> SAMESUM_HD constexpr std::uint32_t grid_flags_of_product(T x, T y) {
  const std::uint32_t a = grid_flags(x), b = grid_flags(y);
  if ((a | b) == 0) return 0;
  const auto is_zero = [](T v) { return BitsOf<T>(to_bits(v) & ~Format<T>::sign_bit) == 0; };
  if (((a | b) & Exact::seen_nan) || is_zero(x) || is_zero(y)) return Exact::seen_nan;
  return ((to_bits(x) ^ to_bits(y)) & Format<T>::sign_bit) == 0 ? Exact::seen_plus_infinity
                                                                : Exact::seen_minus_infinity;
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

/// Bit pattern of units·2^grid, correctly rounded to F (to nearest, ties to even); +0 for zero. With
/// `signed_zero`, a negative number that rounds to zero gives -0, as in an exact sum.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid) {
  return round_wide<F, signed_zero>(units.is_negative(), units.magnitude(), false, grid);
}

/// Bit pattern of units·2^grid / divisor, correctly rounded to F, as round_units. divisor >= 1.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_quotient(Int128 units, int grid, std::uint64_t divisor) {
  Int128::Wide magnitude = units.magnitude();
  if (magnitude == 0) return 0;
  const int zeros = leading_zeros(magnitude);
  magnitude <<= zeros;  // so the quotient has at least 64 bits
  const Int128::Wide quotient = magnitude / divisor;
  return round_wide<F, signed_zero>(units.is_negative(), quotient, magnitude != quotient * divisor,
                                    grid - zeros);
}

/// Bit pattern of units·2^grid + held, correctly rounded to F; +0 for zero. `held` is finite.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid, F held) {
  using Wide = Int128::Wide;
  const Decomposed d = decompose<F>(to_bits(held));
  if (d.significand == 0) return round_units<F, signed_zero>(units, grid);
  if (units.is_zero()) return to_bits(held);
  // Both magnitudes with the leading bit at 2^126, and the exponent of the bit 2^0.
  struct Aligned {
    bool negative;
    Wide magnitude;
    int exponent;
  };
  const auto aligned = [](bool negative, Wide magnitude, int exponent) {
    const int zeros = leading_zeros(magnitude);
    if (zeros == 0) return Aligned{negative, magnitude >> 1, exponent + 1};  // -2^127, the only such number
    return Aligned{negative, magnitude << (zeros - 1), exponent - (zeros - 1)};
  };
  Aligned a = aligned(units.is_negative(), units.magnitude(), grid),
          b = aligned(d.negative, d.significand, d.exponent);
  if (b.exponent > a.exponent || (b.exponent == a.exponent && b.magnitude > a.magnitude)) {
    const Aligned other = a;
    a = b;
    b = other;
  }
  // b as high + low·2^-128 + less than 2^-256.
  const int down = a.exponent - b.exponent;
  Wide high = 0, low = 0;
  bool more = false;
  if (down == 0) {
    high = b.magnitude;
  } else if (down < 128) {
    high = b.magnitude >> down;
    low = b.magnitude << (128 - down);
  } else if (down < 256) {
    low = b.magnitude >> (down - 128);
    more = low << (down - 128) != b.magnitude;
  } else {
    more = true;
  }
  if (a.negative == b.negative) {
    high = a.magnitude + high;
  } else {
    const Wide subtracted = low + Wide{more};  // with a remainder, low is far below its largest value
    high = a.magnitude - high - Wide{subtracted != 0};
    low = Wide{0} - subtracted;
  }
  int exponent = a.exponent;
  if (high == 0) {
    high = low;
    low = 0;
    exponent -= 128;
    if (high == 0) return 0;
  }
  const int zeros = leading_zeros(high);
  if (zeros > 0) {
    high = high << zeros | low >> (128 - zeros);
    low <<= zeros;
  }
  return round_wide<F, signed_zero>(a.negative, high, low != 0 || more, std::int64_t{exponent} - zeros);
}

/// A sum on a grid, and what is known about its terms. All members are functions of the terms alone, whatever
/// their order and partition.
struct GridSum {
  static constexpr std::string_view name = "fixed_point";  ///< in the names of methods

  Int128 units;             ///< sum of the finite terms in units of the grid, modulo 2^128
  std::uint32_t flags = 0;  ///< Exact::seen_nan, seen_plus_infinity and seen_minus_infinity
  std::int32_t bits = 0;    ///< largest GridTerm::bits

  SAMESUM_HD constexpr void add(GridTerm term) {
    units.add(term.units);
    bits = term.bits > bits ? term.bits : bits;
  }
  /// Adds an element.
  template <class T> SAMESUM_HD constexpr void add(T x, int grid) {
    if (const std::uint32_t special = grid_flags(x); special != 0)
      flags |= special;
    else
      add(to_grid(x, grid));
  }
  /// Adds a product.
  template <class T> SAMESUM_HD constexpr void add_product(T x, T y, int grid) {
    if (const std::uint32_t special = grid_flags_of_product(x, y); special != 0)
      flags |= special;
    else
      add(product_to_grid(x, y, grid));
  }
  SAMESUM_HD constexpr void merge(const GridSum& other) {
    units.merge(other.units);
    flags |= other.flags;
    bits = other.bits > bits ? other.bits : bits;
  }

  /// Whether a given grid is too fine for n terms: a term exceeds 2^most_term_bits(n) units, or the sum
  /// exceeds 2^word_bits. On the grid that found_grid returns that never happens. NaN and infinities among
  /// the terms do not matter.
  SAMESUM_HD constexpr bool overflows(std::uint64_t n, int word_bits) const {
    return bits > most_term_bits(n) || units.magnitude() > Int128::Wide{1} << word_bits;
  }

  /// Bit pattern of the sum divided by `divisor`, correctly rounded to F: NaN, an infinity, or the number.
  template <class F> SAMESUM_HD constexpr BitsOf<F> result(int grid, std::uint64_t divisor = 1) const {
    if (flags != 0) return special_bits<F>(flags);
    return divisor == 1 ? round_units<F>(units, grid) : round_quotient<F>(units, grid, divisor);
  }
  /// Bit pattern of the sum plus `held`, correctly rounded to F.
  template <class F> SAMESUM_HD constexpr BitsOf<F> result_with(int grid, F held) const {
    const std::uint32_t all = flags | grid_flags(held);
    return all != 0 ? special_bits<F>(all) : round_units<F>(units, grid, held);
  }
};

}  // namespace samesum
