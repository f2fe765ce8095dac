/// Exact sums of elements and products by the threads of a block: the fast path adds doubles to anchors; the
/// fallback, where these would lose bits, adds integers.
#pragma once

#include "samesum/backend/cuda/exact/bins.cuh"
#include "samesum/operation/exact_terms.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::gpu {

/// Digits that are wide enough for products of doubles.
using TermDigits = DigitsFrom<ExactTerms::lowest_exponent, ExactTerms::digit_count>;

/// Fallback, not inlined, so that it costs the caller no registers.
__device__ __noinline__ inline void deposit(TermDigits* digits, double x) { digits->deposit(x); }
__device__ __noinline__ inline void deposit_product(TermDigits* digits, double x, double y) {
  const Decomposed a = decompose<fp64>(to_bits(x)), b = decompose<fp64>(to_bits(y));
  const bool negative = a.negative != b.negative;
  const int exponent = a.exponent + b.exponent;
  digits->deposit(negative, a.significand * b.significand, exponent);
  digits->deposit(negative, __umul64hi(a.significand, b.significand), exponent + 64);
}

/// Records losses, so that they are checked once for many terms.
struct LossFlags {
  bool any = false;
  unsigned rest = 0;  ///< bits of all remainders
  __device__ explicit operator bool() const { return any | (rest != 0); }
};

/// An exact sum of doubles in three words that begin with anchors (window/anchor.hpp); a fourth word would
/// add the remainders. Three operations per word; the second word usually leaves no remainder.
class Anchored {
  static constexpr int log2_most = 12;
  /// The anchors of terms below 1, for twice as many of them.
  static constexpr Anchors<4, 1> anchors{0, log2_most + 1};
  /// Exponents of the bounds between which all three anchors are normal numbers.
  static constexpr int lowest_bound = Format<fp64>::min_exponent - anchors.exponent(2),
                       highest_bound = Format<fp64>::max_exponent - 1 - anchors.exponent(0);
  /// Spare binades of a new bound: the first elements are rarely the largest.
  static constexpr int to_spare = 4;

 public:
  /// Elements after which it must be emptied. (A few more do no harm.)
  static constexpr int most = 1 << log2_most;

  __device__ Anchored() { anchor(power_of_two(lowest_bound)); }

  /// Adds x to two words. Records a loss if these leave a remainder, or if x is too large or not finite.
  __device__ void grow(double x, LossFlags& loss) {
    const double rest = take(second_, take(first_, x));
    // The upper words of doubles have the same order when read as floats, whose comparison does not occupy
    // the fp64 units.
    loss.any |= !(fabsf(__int_as_float(__double2hiint(x))) < __int_as_float(__double2hiint(bound_)));
    loss.rest |= static_cast<unsigned>(__double2hiint(rest)) | static_cast<unsigned>(__double2loint(rest));
  }

  /// Adds any finite number.
  __device__ void add(double x, TermDigits* digits) {
    if (!(fabs(x) < bound_)) {
      const int e = (__double2hiint(x) >> 20 & 0x7ff) - 1022 + to_spare;
      if (e > highest_bound) return deposit(digits, x);
      const double words[] = {first_ - anchor_of<0>(), second_ - anchor_of<1>(), third_ - anchor_of<2>()};
      anchor(power_of_two(e));
      for (const double word : words) add_to_all(word, digits);
    }
    add_to_all(x, digits);
  }

  /// Moves the sum to the digits. The whole warp calls it.
  __device__ void flush(TermDigits& digits) {
    deposit_of_warp(digits,
                    std::array{first_ - anchor_of<0>(), second_ - anchor_of<1>(), third_ - anchor_of<2>()});
    anchor(bound_);
  }

 private:
  template <int word> __device__ double anchor_of() const {
    constexpr double ratio = anchor_at(anchors.exponent(word));
    return bound_ * ratio;
  }
  __device__ void anchor(double bound) {
    bound_ = bound;
    first_ = anchor_of<0>();
    second_ = anchor_of<1>();
    third_ = anchor_of<2>();
  }
  /// Adds x to a word and returns the remainder, which is exact, since the word is the larger one (Dekker
  /// 1971), and never -0.
  __device__ static double take(double& word, double x) {
    const double sum = word + x;
    const double rest = x + (word - sum);
    word = sum;
    return rest;
  }
  __device__ void add_to_all(double x, TermDigits* digits) {
    const double rest = take(third_, take(second_, take(first_, x)));
    if (rest != 0) deposit(digits, rest);
  }

  double bound_, first_, second_, third_;
};

/// Neighbouring elements of an input that a thread loads at a time.
inline constexpr int run_length = 4;

struct alignas(16) Run {
  fp64 element[run_length];
};

/// The sums of a thread: of terms, or, with `moments`, of elements and of their squares, which then have
/// their own digits.
template <bool moments> class TermSums {
  /// Below it, the second word of a product may underflow.
  static constexpr double least_product = 0x1p-960;

 public:
  static constexpr int most = Anchored::most;

  __device__ TermSums(TermDigits* digits, Term term) : digits_{digits}, term_{term} {}

  /// Starts a result. Anchors stay where the terms of the previous result have moved them.
  __device__ void start() { flags_ = other_ = 0; }

  /// Tries to add the terms of several runs without losing a bit. Returns false, and leaves the sums
  /// unchanged, if that is impossible. Losses are checked once for all terms, so that a term waits for the
  /// previous one only in the first word.
  template <int runs> __device__ bool add(const Run (&x)[runs], const Run (&y)[runs]) {
    return moments || is_product(term_) ? grow<true>(x, y) : grow<false>(x, y);
  }
  /// Adds one term of any value.
  __device__ void add(double x, double y) {
    if (moments || is_product(term_))
      add_product(x, y);
    else
      add_element(terms_, element_term(term_, x));
    if constexpr (moments) add_element(elements_, x);
  }

  /// Moves the sums to the digits. The whole warp calls it.
  __device__ void flush() {
    terms_.flush(digits_[moments]);
    low_.flush(digits_[moments]);
    if constexpr (moments) elements_.flush(digits_[0]);
  }
  __device__ unsigned flags() const { return flags_ | (other_ != 0 ? Exact::seen_other_than_minus_zero : 0); }

 private:
  /// Whether two words may not hold the whole product.
  __device__ static bool is_small(double product, double x, double y) {
    return (fabs(product) <= least_product) & (x != 0) & (y != 0);
  }
  /// Records whether an element is not -0.
  __device__ void note(double x) {
    other_ |= static_cast<unsigned>(__double2hiint(x)) ^ 0x80000000u;
    other_ |= static_cast<unsigned>(__double2loint(x));
  }

  template <bool products, int runs> __device__ bool grow(const Run (&x)[runs], const Run (&y)[runs]) {
    Anchored terms = terms_, low = low_, elements = elements_;
    LossFlags loss;
#pragma unroll
    for (int i = 0; i < runs * run_length; ++i) {
      const double a = x[i / run_length].element[i % run_length],
                   b = y[i / run_length].element[i % run_length],
                   p = products ? a * b : element_term(term_, a);
      terms.grow(p, loss);
      if constexpr (products) {
        low.grow(__fma_rn(a, b, -p), loss);
        loss.any |= is_small(p, a, b);
      }
      if constexpr (moments) elements.grow(a, loss);
      note(moments ? a : p);
    }
    if (loss) return false;
    terms_ = terms;
    low_ = low;
    elements_ = elements;
    return true;
  }

  __device__ void add_element(Anchored& sum, double x) {
    note(x);
    if (is_special(x))
      flags_ |= special_flags_of(x);
    else
      sum.add(x, digits_);
  }
  __device__ void add_product(double x, double y) {
    const double p = x * y;
    if (is_special(p) ? !is_special(x) && !is_special(y) : is_small(p, x, y)) {
      other_ = 1;
      return deposit_product(&digits_[moments], x, y);
    }
    if constexpr (!moments) note(p);
    if (is_special(p)) {
      if (!moments) flags_ |= special_flags_of(p);  // for moments the elements set the flags
      return;
    }
    terms_.add(p, &digits_[moments]);
    low_.add(__fma_rn(x, y, -p), &digits_[moments]);
  }

  TermDigits* digits_;
  Term term_;
  unsigned flags_ = 0, other_ = 0;
  Anchored terms_, low_, elements_;
};

}  // namespace samesum::gpu
