/// The wide integers of exact sums, and results that are rounded from them once.
#pragma once

#include "samesum/window/access.hpp"
#include "samesum/window/rounding.hpp"

/// Unrolls the next loop on a GPU `times` times if the condition holds, so that words with constant
/// indices stay in registers; if not, not at all. Compilers would unroll loops over words in memory too, to
/// code that takes minutes to assemble and is no faster.
#if defined(__CUDA_ARCH__)
#define SAMESUM_UNROLL_IF(condition, times) SAMESUM_PRAGMA(unroll((condition) ? (times) : 1))
#define SAMESUM_PRAGMA(text) _Pragma(#text)
#else
#define SAMESUM_UNROLL_IF(condition, times)
#endif
/// Unrolls the next loop, over all words of `count`, unless they are many and so in memory anyway.
#define SAMESUM_FOR_WORDS SAMESUM_UNROLL_IF(count <= 12, count)
/// Keeps the next loop as it is: it begins at a word that depends on a value, so that the words are in
/// memory.
#define SAMESUM_FOR_WORDS_IN_MEMORY SAMESUM_UNROLL_IF(false, 1)

namespace samesum {

template <int count> class Magnitude;

/// An integer in two's complement, in words of 64 bits, the lowest first. Sums wrap. No index depends on a
/// value, except in functions for integers in memory: add(negative, magnitude, shift), and leading() of more
/// than 12 words.
template <int count> struct WideInteger {
  static constexpr int words = count;
  std::uint64_t word[count];

  SAMESUM_HD static constexpr WideInteger of(std::int64_t x) {
    WideInteger all{};
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) all.word[i] = static_cast<std::uint64_t>(i == 0 ? x : x >> 63);
    return all;
  }
  SAMESUM_HD static constexpr WideInteger of(const WideInteger<2>& x) {
    const std::uint64_t sign = x.is_negative() ? ~std::uint64_t{0} : 0;
    const Wide low = x.wide();  // if the loop read words, g++ would pass them through memory
    WideInteger all{};
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) all.word[i] = i < 2 ? static_cast<std::uint64_t>(low >> 64 * i) : sign;
    return all;
  }
  /// A number modulo 2^128.
  SAMESUM_HD static constexpr WideInteger of(Wide x) requires(count == 2) {
    return {{static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(x >> 64)}};
  }
  /// ±magnitude·2^shift, for 0 <= shift < 64·count.
  SAMESUM_HD static constexpr WideInteger of(bool negative, Wide magnitude, int shift = 0) {
    if constexpr (count == 2) return of(magnitude << shift).negated_if(negative);
    WideInteger x{};
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) x.word[i] = shifted_word(magnitude, shift, i);
    return x.negated_if(negative);
  }

  SAMESUM_HD constexpr bool is_negative() const { return word[count - 1] >> 63 != 0; }
  SAMESUM_HD constexpr bool is_zero() const {
    std::uint64_t any = 0;
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) any |= word[i];
    return any == 0;
  }
  /// Whether n words hold the number.
  SAMESUM_HD constexpr bool fits(int n) const {
    const std::uint64_t sign = word[n - 1] >> 63 != 0 ? ~std::uint64_t{0} : 0;
    bool fits = true;
    SAMESUM_FOR_WORDS
    for (int i = n; i < count; ++i) fits = fits && word[i] == sign;
    return fits;
  }
  /// The two lowest words.
  SAMESUM_HD constexpr WideInteger<2> low_128() const { return {{word[0], word[1]}}; }
  /// The number modulo 2^128.
  SAMESUM_HD constexpr Wide wide() const { return Wide{word[1]} << 64 | word[0]; }

  SAMESUM_HD void clear() {
    SAMESUM_FOR_WORDS
    for (std::uint64_t& w : word) w = 0;
  }
  SAMESUM_HD constexpr void add(const WideInteger& other) {
    if constexpr (count == 2) {  // compilers have instructions for it
      *this = of(wide() + other.wide());
      return;
    }
#if defined(__CUDA_ARCH__)
    if constexpr (count == 3) {
      if (!std::is_constant_evaluated()) {
        // "+&": no output shares a register with a word that a later instruction reads.
        asm("add.cc.u64 %0, %0, %3;\n\taddc.cc.u64 %1, %1, %4;\n\taddc.u64 %2, %2, %5;"
            : "+&l"(word[0]), "+&l"(word[1]), "+&l"(word[2])
            : "l"(other.word[0]), "l"(other.word[1]), "l"(other.word[2]));
        return;
      }
    }
#endif
    Wide carry = 0;
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) {
      carry += Wide{word[i]} + other.word[i];
      word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
  /// Adds ±magnitude·2^shift, for 0 <= shift < 64·count. The carry passes through all words.
  SAMESUM_HD constexpr void add_through(bool negative, Wide magnitude, int shift) {
    const std::uint64_t sign = negative ? ~std::uint64_t{0} : 0;
    Wide carry = negative;
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) {
      carry += Wide{word[i]} + (shifted_word(magnitude, shift, i) ^ sign);
      word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
  /// Adds ±magnitude·2^shift, which the words must be able to hold, from the first word that changes on.
  SAMESUM_HD void add(bool negative, std::uint64_t magnitude, int shift) {
    const Wide shifted = Wide{magnitude} << shift % 64, part = negative ? Wide{0} - shifted : shifted;
    const std::uint64_t above = negative && magnitude != 0 ? ~std::uint64_t{0} : 0;  // sign extension
    Wide carry = 0;
    // From the third word on, a carry of 1 and a part of -1 change nothing, as 0 and 0 do.
    SAMESUM_FOR_WORDS_IN_MEMORY
    for (int i = shift / 64, k = 0; i < count && (k < 2 || static_cast<std::uint64_t>(carry) + above != 0);
         ++i, ++k) {
      carry += Wide{word[i]} + (k == 0   ? static_cast<std::uint64_t>(part)
                                : k == 1 ? static_cast<std::uint64_t>(part >> 64)
                                         : above);
      word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }
  /// Adds ±magnitude·2^shift by the updates of Access, so that other threads may add at the same time.
  template <class Access> SAMESUM_HD void add_by(bool negative, std::uint64_t magnitude, int shift) {
    const Wide shifted = Wide{magnitude} << shift % 64, part = negative ? Wide{0} - shifted : shifted;
    const std::uint64_t above = negative && magnitude != 0 ? ~std::uint64_t{0} : 0;
    bool carry = false;
    SAMESUM_FOR_WORDS_IN_MEMORY
    for (int i = shift / 64, k = 0; i < count && (k < 2 || carry != (above != 0)); ++i, ++k)
      carry = add_word<Access>(word[i], k < 2 ? static_cast<std::uint64_t>(part >> 64 * k) : above, carry);
  }
  SAMESUM_HD friend constexpr WideInteger operator+(WideInteger a, const WideInteger& b) {
    a.add(b);
    return a;
  }
  SAMESUM_HD friend constexpr WideInteger operator-(const WideInteger& a, const WideInteger& b) {
    return a + b.negated_if(true);
  }
  SAMESUM_HD friend constexpr bool operator==(const WideInteger& a, const WideInteger& b) {
    std::uint64_t differ = 0;
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) differ |= a.word[i] ^ b.word[i];
    return differ == 0;
  }

  /// The number times 2^shift, for 0 <= shift < 128.
  SAMESUM_HD constexpr WideInteger shifted(int shift) const requires(count == 2) {
    return of(wide() << shift);
  }

  SAMESUM_HD constexpr WideInteger negated_if(bool condition) const {
    if constexpr (count == 2) return condition ? of(Wide{0} - wide()) : *this;
    const std::uint64_t mask = condition ? ~std::uint64_t{0} : 0;
    WideInteger flipped{}, one{{condition}};
    SAMESUM_FOR_WORDS
    for (int i = 0; i < count; ++i) flipped.word[i] = word[i] ^ mask;
    return flipped + one;
  }
  SAMESUM_HD constexpr WideInteger magnitude() const { return negated_if(is_negative()); }

  /// The leading 128 bits of number·2^exponent. If there are more, the first of them is 1.
  SAMESUM_HD constexpr LeadingBits leading(int exponent) const {
    if constexpr (count == 2) return {is_negative(), false, magnitude().wide(), exponent};
    // The highest word that is not 0, and the two that follow it.
    std::uint64_t first = 0, second = 0, third = 0;
    int place = count - 1;
    bool more = false;
    if constexpr (count > 12) {  // in memory
      const Magnitude<count> all{*this};
      SAMESUM_FOR_WORDS
      while (place > 0 && all[place] == 0) --place;
      first = all[place], second = place > 0 ? all[place - 1] : 0, third = place > 1 ? all[place - 2] : 0;
      SAMESUM_FOR_WORDS
      for (int i = 0; i < place - 2; ++i) more = more || all[i] != 0;
    } else {
      const WideInteger all = magnitude();
      first = all.word[place], second = all.word_or_0(place - 1), third = all.word_or_0(place - 2);
      SAMESUM_FOR_WORDS
      for (int i = count - 2; i >= 0; --i) {
        if (first == 0)
          first = all.word[i], second = all.word_or_0(i - 1), third = all.word_or_0(i - 2), place = i;
        else if (i < place - 2)
          more = more || all.word[i] != 0;
      }
    }
    if (first == 0) return {};
    const int zeros = leading_zeros(first);
    const Wide upper = Wide{first} << 64 | second;
    exponent += 64 * (place - 1) - zeros;
    if (zeros == 0) return {is_negative(), more || third != 0, upper, exponent};
    return {is_negative(), more || third << zeros != 0, upper << zeros | third >> (64 - zeros), exponent};
  }

 private:
  SAMESUM_HD constexpr std::uint64_t word_or_0(int i) const { return i < 0 ? 0 : word[i < 0 ? 0 : i]; }
  /// Word i of magnitude·2^shift.
  SAMESUM_HD static constexpr std::uint64_t shifted_word(Wide magnitude, int shift, int i) {
    const auto low = static_cast<std::uint64_t>(magnitude),
               high = static_cast<std::uint64_t>(magnitude >> 64);
    const int bits = shift & 63, above = bits == 0 ? 0 : 64 - bits, k = i - (shift >> 6);
    return k == 0   ? low << bits
           : k == 1 ? high << bits | (above == 0 ? 0 : low >> above)
           : k == 2 ? (above == 0 ? 0 : high >> above)
                    : 0;
  }
};

/// An integer of 128 bits.
using Int128 = WideInteger<2>;

/// Bit pattern of units·2^grid, correctly rounded to F (to nearest, ties to even); +0 for zero. With
/// `signed_zero`, a negative number that rounds to zero gives -0, as in an exact sum.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid) {
  return units.leading(grid).template rounded<F, signed_zero>();
}
/// Bit pattern of units·2^grid / divisor, likewise. divisor >= 1. Callers that seldom divide branch, so that
/// a sum is rounded by inlined code.
template <class F, bool signed_zero = false>
SAMESUM_HD constexpr BitsOf<F> round_units(Int128 units, int grid, std::uint64_t divisor) {
  return units.leading(grid).over(divisor).template rounded<F, signed_zero>();
}

/// The words of the magnitude of an integer, without a copy of it.
template <int count> class Magnitude {
 public:
  SAMESUM_HD constexpr explicit Magnitude(const WideInteger<count>& number)
      : number_{number}, is_negative_{number.is_negative()} {
    SAMESUM_FOR_WORDS
    while (lowest_ < count - 1 && number.word[lowest_] == 0) ++lowest_;
  }
  SAMESUM_HD constexpr bool is_negative() const { return is_negative_; }
  SAMESUM_HD constexpr std::uint64_t operator[](int i) const {
    const std::uint64_t word = number_.word[i];
    return !is_negative_ || i < lowest_ ? word : i == lowest_ ? 0 - word : ~word;
  }

 private:
  const WideInteger<count>& number_;
  bool is_negative_;
  int lowest_ = 0;  ///< the first word that is not 0
};

/// Divides rest·2^64 + digit, where rest < divisor. Returns the quotient, and leaves the remainder in `rest`.
SAMESUM_HD inline std::uint64_t divide_digit(std::uint64_t& rest, std::uint64_t digit,
                                             std::uint64_t divisor) {
  if (divisor == 1) return digit;
  const Wide number = Wide{rest} << 64 | digit;
  rest = static_cast<std::uint64_t>(number % divisor);
  return static_cast<std::uint64_t>(number / divisor);
}

/// Returns number·2^exponent / (a·b), with at least 65 bits unless the number is 0. a, b >= 1.
template <int count>
SAMESUM_HD LeadingBits leading_quotient(const WideInteger<count>& number, std::uint64_t a, std::uint64_t b,
                                        int exponent) {
  constexpr int below = 3;  // digits, so that the quotient of a number other than 0 has at least two
  const Magnitude<count> magnitude{number};
  Wide leading = 0;
  int kept = 0, last = 0;  // digits of the quotient that are in `leading`; the place of the last one
  bool more = false;
  std::uint64_t rest_of_a = 0, rest_of_b = 0;
  SAMESUM_UNROLL_IF(count <= 8, count + below)
  for (int i = count - 1; i >= -below; --i) {
    std::uint64_t digit = i < 0 ? 0 : magnitude[i];
    if (kept == 2) {  // the rest of the quotient is not 0 if this digit is not, or a remainder
      more = more || digit != 0;
      continue;
    }
    if ((digit | rest_of_a | rest_of_b) != 0)
      digit = divide_digit(rest_of_b, divide_digit(rest_of_a, digit, a), b);
    if (kept > 0 || digit != 0) {
      leading = leading << 64 | digit;
      ++kept;
      last = i;
    }
  }
  more = more || (rest_of_a | rest_of_b) != 0;
  return {magnitude.is_negative(), more, leading, exponent + 64 * last};
}
/// Bit pattern of number·2^exponent / (a·b), correctly rounded to F (to nearest, ties to even); a, b >= 1.
template <class F, int count>
SAMESUM_HD BitsOf<F> rounded_quotient(const WideInteger<count>& number, std::uint64_t a, std::uint64_t b,
                                      int exponent) {
  return leading_quotient(number, a, b, exponent).template rounded<F>();
}

/// Replaces `squares` by n·squares - sum², where neither n·squares nor sum² exceeds its words.
template <int count>
SAMESUM_HD void scale_variance(std::uint64_t n, const WideInteger<count>& sum,
                               WideInteger<2 * count>& squares) {
  std::uint64_t carry = 0;
  SAMESUM_UNROLL_IF(count <= 4, 2 * count)
  for (std::uint64_t& word : squares.word) {
    const Wide part = Wide{word} * n + carry;
    word = static_cast<std::uint64_t>(part);
    carry = static_cast<std::uint64_t>(part >> 64);
  }
  const Magnitude<count> magnitude{sum};
  int first = 0, end = count;  // words from `first` up to `end` are not all 0; most of many words are
  if constexpr (count > 12) {
    while (end > 0 && magnitude[end - 1] == 0) --end;
    while (first < end && magnitude[first] == 0) ++first;
  }
  SAMESUM_UNROLL_IF(count <= 4, count)
  for (int i = first; i < end; ++i) {
    // Subtracts word i times the sum. The carry includes what is borrowed: a product of two words leaves
    // room for two more.
    const std::uint64_t factor = magnitude[i];
    carry = 0;
    SAMESUM_UNROLL_IF(count <= 4, 2 * count)
    for (int k = i + first; k < 2 * count && (count <= 12 || k < i + end || carry != 0); ++k) {
      const Wide part = (k - i < end ? Wide{factor} * magnitude[k - i] : 0) + carry;
      const auto low = static_cast<std::uint64_t>(part);
      carry = static_cast<std::uint64_t>(part >> 64) + (squares.word[k] < low);
      squares.word[k] -= low;
    }
  }
}

/// Returns n·squares - sum², where neither n·squares nor sum² exceeds the words of the result.
template <int of_sum, int of_squares>
SAMESUM_HD WideInteger<2 * of_sum> scaled_variance(std::uint64_t n, const WideInteger<of_sum>& sum,
                                                   const WideInteger<of_squares>& squares) {
  static_assert(of_squares < 2 * of_sum);
  WideInteger<2 * of_sum> all;
  for (int i = 0; i < 2 * of_sum; ++i) all.word[i] = i < of_squares ? squares.word[i] : 0;
  scale_variance(n, sum, all);
  return all;
}

/// Bit pattern of (units·2^grid + held) / divisor, correctly rounded to F (to nearest, ties to even); +0 for
/// zero. A negative number that rounds to zero gives -0, or +0 without `signed_zero`. 1 <= divisor < 2^39; if
/// `held` is not zero, it is finite, and the divisor is 1.
template <class F, bool signed_zero = true>
SAMESUM_HD constexpr BitsOf<F> round_sum(WideInteger<3> units, int grid, F held, std::uint64_t divisor = 1) {
  const Decomposed d = decompose<F>(to_bits(held));
  bool more = false;  // the sum is units + ε, 0 < ε < 1
  if (d.significand != 0) {
    if (units.is_zero()) return to_bits(held);
    if (units.fits(1)) {  // so that the sum has 57 bits if a part of `held` is below its unit
      units = {{0, units.word[0], units.word[1]}};
      grid -= 64;
    }
    std::uint64_t low = 0;  // the word below, if the number that is held needs words above
    bool has_low = false;
    for (; d.exponent - grid > 190 - Format<F>::precision; grid += 64) {
      more = more || low != 0;
      low = units.word[0];
      units = {{units.word[1], units.word[2], units.is_negative() ? ~std::uint64_t{0} : 0}};
      has_low = true;
    }
    const int below = grid - d.exponent;
    if (below <= 0) {
      units.add_through(d.negative, d.significand, -below);
    } else {
      const std::uint64_t kept = below < 64 ? d.significand >> below : 0;
      const bool lost = below >= 64 || kept << below != d.significand;
      units.add_through(d.negative, kept + (d.negative && lost), 0);
      more = more || lost;
    }
    if (has_low && units.fits(2)) {  // the leading bits may have cancelled
      units = {{low, units.word[0], units.word[1]}};
      grid -= 64;
    } else {
      more = more || low != 0;
    }
  }
  if (units.is_negative() && more) units.add({{1}});  // the magnitude is that of units + 1, plus 1 - ε
  LeadingBits sum = units.leading(grid);
  sum.more = sum.more || more;
  return sum.over(divisor).template rounded<F, signed_zero>();
}

/// Bit pattern of units·2^grid + held, likewise.
template <class F, bool signed_zero = true>
SAMESUM_HD constexpr BitsOf<F> round_sum(Int128 units, int grid, F held) {
  const Decomposed d = decompose<F>(to_bits(held));
  // Both in units of the lower one, if 126 bits hold them.
  const int lowest = d.exponent < grid ? d.exponent : grid, up = grid - lowest, held_up = d.exponent - lowest;
  if (up + 128 - leading_zeros(units.magnitude().wide()) > 126 || held_up + Format<F>::precision > 126)
    return round_sum<F, signed_zero>(WideInteger<3>::of(units), grid, held);
  units = units.shifted(up);
  units.add(Int128::of(d.negative, Wide{d.significand} << held_up));
  return round_units<F, signed_zero>(units, lowest);
}

#undef SAMESUM_FOR_WORDS

}  // namespace samesum
