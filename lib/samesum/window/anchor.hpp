/// Anchors: numbers 1.5·2^s. While a sum that begins with one stays between 2^s and 2^(s+1), each term that
/// is added to it is rounded to a multiple of 2^(s-52), whatever the sum. All windows of doubles and all
/// roundings to units follow from the two proofs below; for floats, p = 24 takes the place of 53.
///
/// Words that add terms without an error (Demmel and Nguyen 2013, whose first word begins with an anchor, as
/// here; ExtractVector of Rump, Ogita, Oishi 2008 rounds each term by the anchor itself). Let |t| < 2^top for
/// all terms t, b_0 = top, and s_i = b_i + room. Adding t turns the first anchor a into a', and q = a' - a is
/// t rounded to a multiple of 2^(s_0-52), as long as a stays between 2^s_0 and 2^(s_0+1). It does if at most
/// 2^(room-1) terms are added to the same anchor, since |q| <= 2^b_0, and so many of them are at most
/// 2^(s_0-1); or, with room >= 1, if each term is added to the anchor itself. Both ends are reached, since
/// terms just below 2^top are rounded to it. So 2^(s_0+1) must be a double: s_0 + 1 <= max_exponent. The sum
/// of 2^(room+1) of the q has at most 2^53 units, so it is a double. The remainder t - q is a double of at
/// most half a unit, 2^b_1 with b_1 = s_0 - 53, and goes to the second anchor, with s_1 and b_1 in place of
/// s_0 and b_0; and so on. The last word has no anchor. If all terms are multiples of 2^lowest, so are the
/// remainders, at most 2^b_i, that it adds, and the sum of 2^L of them has at most 2^53 units if
/// lowest >= b_i + L - 53. Hence all words are exact, and may be added in any order, by any number of
/// threads.
///
/// Where s_i < min_exponent, the anchor 1.5·2^min_exponent takes the place of a subnormal one. Its unit is
/// the smallest subnormal number, so it rounds nothing, and the remainders are zeros.
///
/// Units. If |x| <= 2^51 units of 2^u, then x + 1.5·2^(u+52) is the anchor plus x rounded to whole units, to
/// nearest, ties to even, and its bits, as an integer, exceed those of the anchor by the number of units.
/// What x lacks is exact (Rump, Ogita, Oishi 2008, Accurate floating-point summation, part I, lemma 3.3).
#pragma once

#include "samesum/format/format.hpp"

namespace samesum {

/// 1.5·2^exponent, a normal number.
template <class Word = double> SAMESUM_HD constexpr Word anchor_at(int exponent) {
  using F = Format<Word>;
  return from_bits<Word>(BitsOf<Word>(2 * static_cast<std::uint32_t>(exponent + F::max_exponent) + 1)
                         << (F::precision - 2));
}

/// The anchors of all words of a window but the last, for sums of 2^log2_terms terms below 2^top.
/// @tparam spare room - log2_terms: 0 if each term is added to the anchor itself, and log2_terms >= 1; 1 if a
///   sum begins with the anchor; 2 if 8 such sums are added.
template <int words, int spare, class Word = double> struct Anchors {
  static constexpr int precision = Format<Word>::precision;
  int top, log2_terms;

  /// The exponent s of anchor i.
  SAMESUM_HD constexpr int exponent(int i) const {
    const int s = bound(i) + log2_terms + spare;
    return s > Format<Word>::min_exponent ? s : Format<Word>::min_exponent;
  }
  /// From the exponent of an anchor to that of the next, unless that is clamped.
  SAMESUM_HD constexpr int step() const { return log2_terms + spare - precision; }
  /// Whether the anchors, and the sums that begin with them, are numbers.
  SAMESUM_HD constexpr bool are_numbers() const {
    return top + log2_terms + spare < Format<Word>::max_exponent;
  }
  /// All terms must be multiples of 2^lowest().
  SAMESUM_HD constexpr int lowest() const { return bound(words - 1) + log2_terms - precision; }
  /// The largest log2_terms for which lowest() is at most top - bits.
  SAMESUM_HD static constexpr int most_log2_terms(int bits) {
    return (words * precision - (words - 1) * spare - bits) / words;
  }

 private:
  /// The terms of word i are at most 2^bound(i).
  SAMESUM_HD constexpr int bound(int i) const { return top + i * step(); }
};

/// The anchor of units of 2^unit.
SAMESUM_HD constexpr double unit_anchor(int unit) { return anchor_at(unit + Format<fp64>::precision - 1); }
/// Rounds numbers of at most 2^51 to whole ones.
inline constexpr double whole_anchor = unit_anchor(0);

/// The units by which a number plus an anchor exceeds the anchor, or another number plus it.
SAMESUM_HD constexpr std::int64_t units_above(double other, double sum) {
  return static_cast<std::int64_t>(to_bits(sum) - to_bits(other));
}

}  // namespace samesum
