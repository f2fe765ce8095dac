/// A window: a range of exponents within which a few doubles per thread add terms without an error, by
/// anchors (window/anchor.hpp).
#pragma once

#include "samesum/window/anchor.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// Magnitudes of numbers of format C, ordered as integers of 32 bits: their bits, or the upper word of a
/// double.
template <class C> struct MagnitudeKey {
  static constexpr int fraction_bits = sizeof(C) == 8 ? 20 : Format<C>::precision - 1,
                       bias = Format<C>::max_exponent;
  static constexpr std::uint32_t infinity = (2u * bias + 1) << fraction_bits;

  SAMESUM_HD static std::uint32_t of(C x) {
    const auto magnitude = BitsOf<C>(to_bits(x) & ~Format<C>::sign_bit);
    return static_cast<std::uint32_t>(sizeof(C) == 8 ? magnitude >> (sizeof(C) == 8 ? 32 : 0) : magnitude);
  }
  /// The key of x minus 1, where that of a double is rounded up: only zeros have the key 0, and wrap to the
  /// largest integer.
  SAMESUM_HD static std::uint32_t minus_1(C x) {
    const auto magnitude = BitsOf<C>(to_bits(x) & ~Format<C>::sign_bit);
    if constexpr (sizeof(C) == 8) return static_cast<std::uint32_t>((magnitude - 1) >> 32);
    return static_cast<std::uint32_t>(magnitude) - 1;
  }
  /// The largest exponent e with 2^e <= |x|, or that of subnormal numbers and of 0.
  SAMESUM_HD static int exponent(std::uint32_t key) {
    const int field = static_cast<int>(key >> fraction_bits);
    return (field > 1 ? field : 1) - bias;
  }
  /// The smallest key of a number of magnitude 2^exponent or more, at least 1.
  SAMESUM_HD static std::uint32_t least(int exponent) {
    const int field = exponent + bias, below = fraction_bits - 1 + field;
    if (field > 2 * bias) return infinity;
    if (field > 0) return static_cast<std::uint32_t>(field) << fraction_bits;
    return below > 0 ? 1u << below : 1u;
  }
};

/// The window of terms x^power, where x has `precision` significant bits and keys of format C. The words are
/// doubles, or floats. Terms of more bits than a word are split into two, of which the second is at most half
/// a unit of the last place of the first: products of doubles, for example, with precision 106 and the keys
/// of the rounded products.
template <class C, int precision, int word_count, int power = 1, class Word = double> class TermWindow {
 public:
  static constexpr int words = word_count;  ///< words per thread
  static constexpr bool has_floats = std::is_same_v<Word, float>,
                        splits = power * precision > Format<Word>::precision;

  /// Places the window for at most 2^log2_terms terms. The largest known x has that key; others may exceed it
  /// by `headroom` binades.
  SAMESUM_HD void place(std::uint32_t largest, int headroom, int log2_terms) {
    const int top = MagnitudeKey<C>::exponent(largest) + 1 + headroom;
    const Anchors<words, 1, Word> anchors{power * top, log2_terms + splits};
    first_ = anchors.exponent(0);
    step_ = words > 1 ? anchors.step() : 0;
    // The second part of a term is a multiple of the smallest number, too.
    constexpr int least_quantum = Format<Word>::min_quantum;
    const int lowest = splits && anchors.lowest() < least_quantum ? least_quantum : anchors.lowest();
    // x is a multiple of 2^quantum, and x^power of 2^lowest
    const int quantum = power == 1 ? lowest : (lowest + (lowest > 0)) / 2;
    least_ = MagnitudeKey<C>::least(quantum + precision - 1);
    end_ = is_in_range || anchors.are_numbers() ? MagnitudeKey<C>::least(top) : 0;
  }
  /// Whether the words are exact for x with these keys: the largest, and the least minus_1().
  SAMESUM_HD bool holds(std::uint32_t largest, std::uint32_t least_minus_1) const {
    const bool is_rounded_up = sizeof(C) == 8 && least_ > 1;
    return largest < end_ && least_minus_1 >= least_ - !is_rounded_up;
  }
  /// Whether the words are exact for one x with this key, which is not 0 unless x is.
  SAMESUM_HD bool holds(std::uint32_t key) const { return key < end_ && !is_too_small(key); }

  /// Whether x with this key is not zero, and too small for the window; then |x| < 2^end_of_small().
  SAMESUM_HD bool is_too_small(std::uint32_t key) const { return key - 1 < least_ - 1; }
  SAMESUM_HD int end_of_small() const { return MagnitudeKey<C>::exponent(least_); }

  /// The sum of a thread, between begin() and added().
  struct Words {
    Word word[words];
  };
  SAMESUM_HD Words begin() const {
    Words sum;
    for (int w = 0; w < words; ++w) sum.word[w] = begin_of(w);
    return sum;
  }
  /// Adds a term; with `first` = 1, the second part of one.
  template <int first = 0> SAMESUM_HD void add(Words& sum, Word term) const {
    for (int w = first; w < words - 1; ++w) {
      const Word before = sum.word[w];
      sum.word[w] = before + term;
      term -= sum.word[w] - before;
    }
    sum.word[words - 1] += term;
  }
  /// What has been added to word w. The words of several threads may be added.
  SAMESUM_HD Word added(const Words& sum, int w) const { return sum.word[w] - begin_of(w); }

 private:
  /// Whether all sums are within the exponents of a Word: those of doubles, for elements of shorter formats
  /// and their squares.
  static constexpr bool is_in_range = !has_floats && sizeof(C) < 8;

  SAMESUM_HD Word begin_of(int w) const {
    if (w == words - 1) return 0;
    const int s = first_ + w * step_;
    return anchor_at<Word>(w == 0 || s > Format<Word>::min_exponent ? s : Format<Word>::min_exponent);
  }

  int first_ = 0, step_ = 0;  ///< exponent of the first anchor, and from each to the next
  std::uint32_t least_ = 1, end_ = 0;
};

/// An exact sum of terms in little memory: a few doubles while these hold it, otherwise a wide integer in
/// units of 2^lowest. All terms are multiples of that, and the integer has room for 2^64 of them.
template <int lowest_exponent, int count, int word_count = 2> class CompactSum {
 public:
  static constexpr int lowest = lowest_exponent, words = word_count;
  using Integer = WideInteger<count>;

  SAMESUM_HD constexpr CompactSum() {}  // leaves the integer as it is: nothing reads it before it is cleared
  /// The sum of multiples of 2^lowest.
  SAMESUM_HD explicit CompactSum(const double (&word)[words]) {
    for (int w = 0; w < words; ++w) word_[w] = word[w];
  }

  /// Adds a multiple of 2^lowest if the words hold the sum; returns false otherwise.
  SAMESUM_HD bool add_to_words(double x) {
    double word[words];
    for (int w = 0; w < words; ++w) {
      word[w] = word_[w];
      x = two_sum(word[w], x);
    }
    if (is_wide_ || x != 0) return false;
    for (int w = words - 1; w > 0; --w) word[w] = two_sum(word[w - 1], word[w]);
    if (word[0] - word[0] != 0) return false;  // an infinity, or NaN
    for (int w = 0; w < words; ++w) word_[w] = word[w];
    return true;
  }
  /// Adds a multiple of 2^lowest.
  SAMESUM_HD void add(double x) {
    if (add_to_words(x)) return;
    if (!is_wide_) widen();
    deposit(x);
  }
  /// Adds ±magnitude·2^exponent, a multiple of 2^lowest, to the integer.
  SAMESUM_HD void add_to_integer(bool negative, Wide magnitude, int exponent) {
    if (!is_wide_) widen();
    deposit(negative, magnitude, exponent);
  }
  SAMESUM_HD void merge(const CompactSum& other) {
    for (int w = 0; w < words; ++w) add(other.word_[w]);
    if (!other.is_wide_) return;
    if (!is_wide_) widen();
    integer_.add(other.integer_);
  }

  SAMESUM_HD bool is_wide() const { return is_wide_; }
  /// A word of the sum, unless it is wide.
  SAMESUM_HD double word(int w) const { return word_[w]; }
  /// The sum in units of 2^lowest.
  SAMESUM_HD Integer integer() const {
    if (is_wide_) return integer_;
    CompactSum wide = *this;
    wide.widen();
    return wide.integer_;
  }
  /// The integer that the sum is from now on.
  SAMESUM_HD Integer& widened() {
    if (!is_wide_) widen();
    return integer_;
  }

 private:
  SAMESUM_HD void deposit(bool negative, Wide magnitude, int exponent) {
    if (magnitude == 0) return;  // its exponent may be any
    const int shift = exponent - lowest, at = shift < 0 ? 0 : shift;
    if (shift < 0) magnitude >>= -shift;
    const auto low = static_cast<std::uint64_t>(magnitude),
               high = static_cast<std::uint64_t>(magnitude >> 64);
    if (low != 0) integer_.add(negative, low, at);
    if (high != 0) integer_.add(negative, high, at + 64);
  }
  SAMESUM_HD void deposit(double x) {
    const Decomposed d = decompose<double>(to_bits(x));
    deposit(d.negative, d.significand, d.exponent);
  }
  SAMESUM_HD void widen() {
    is_wide_ = 1;
    integer_.clear();
    for (double& word : word_) {
      deposit(word);
      word = 0;
    }
  }

  double word_[words] = {};
  std::uint64_t is_wide_ = 0;
  Integer integer_;
};

}  // namespace samesum
