/// Exact sums of the exponentials of a softmax, in integers.
#pragma once

#include "samesum/accumulator/digits.hpp"
#include "samesum/backend/cuda/softmax_parts.cuh"
#include "samesum/backend/cuda/window_sum.cuh"

namespace samesum::gpu::softmaxes {

/// An exact sum of numbers of format C in [0, 1], or of terms of either sign that add up to such a sum, in
/// units of the smallest subnormal. Fewer than 2^39 numbers sum to less than 2^39 times as many units as 1
/// has.
template <class C> struct ExactTotal {
  static constexpr int digits = (39 - Format<C>::min_quantum + 31) / 32, nan = digits, words = digits + 1;
  static constexpr int unrolled = digits > 8 ? 1 : words;  ///< many digits stay in memory
  /// Digits of 32 bits, in two's complement of 64 bits, with room for carries that wait; then the number of
  /// NaNs.
  std::uint64_t word[words] = {};

  __device__ void add(C e) {
    const Decomposed d = decompose<C>(to_bits(e));
    if (!(e == e))
      ++word[nan];
    else
      add_to_digits(d.negative, d.significand, d.exponent, Format<C>::min_quantum,
                    [&](int i, std::int64_t part) { word[i] += static_cast<std::uint64_t>(part); });
  }
  __device__ void merge(const ExactTotal& other) {
#pragma unroll unrolled
    for (int i = 0; i < words; ++i) word[i] += other.word[i];
  }
  /// Merges the totals of two threads, in both.
  __device__ void merge_across(int mask) {
#pragma unroll unrolled
    for (int i = 0; i < words; ++i) word[i] += __shfl_xor_sync(whole_warp, word[i], mask);
  }

  /// The sum, rounded once, to nearest, ties to even.
  __device__ C rounded() const {
    std::uint64_t digit[digits];
    std::int64_t carry = 0;
#pragma unroll unrolled
    for (int i = 0; i < digits; ++i) {
      carry += static_cast<std::int64_t>(word[i]);
      digit[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (word[nan] != 0) return from_bits<C>(Format<C>::canonical_nan);
    std::uint64_t first = 0, second = 0, third = 0;
    bool more = false;
    int top = -1;
#pragma unroll unrolled
    for (int i = digits - 1; i >= 0; --i) {
      if (top < 0 && digit[i] != 0) top = i;
      if (i == top) first = digit[i];
      if (i == top - 1) second = digit[i];
      if (i == top - 2) third = digit[i];
      more = more || (i < top - 2 && digit[i] != 0);
    }
    if (top < 0) return 0;
    return from_bits<C>(
        round_leading<C>(false, first, second, third, more, 32 * top + Format<C>::min_quantum));
  }
};

/// The exact sum of a few numbers in each thread of a group. A function of its own, so that callers need no
/// registers for it.
template <class C> __device__ __noinline__ C exact_sum_of(const C* e, int count, int group) {
  ExactTotal<C> total;
  for (int i = 0; i < count; ++i) total.add(e[i]);
  for (int mask = group / 2; mask > 0; mask /= 2) total.merge_across(mask);
  return total.rounded();
}

/// The sum of up to 256 numbers in one thread, before carries.
template <class C> struct ExactLeaf;
template <> struct ExactLeaf<fp32> {
  std::uint64_t window[4] = {};  ///< window[i] counts units of 2^(32 i - 149)
  unsigned nans = 0;

  __device__ void add(float e, ExactTotal<fp32>&) {
    const unsigned bits = __float_as_uint(e), field = bits >> 23, shift = max(field, 1u) - 1;
    const std::uint64_t significand = (bits & 0x7fffffu) | (field != 0 ? 0x800000u : 0u);
    nans += !(e == e);
    for (unsigned i = 0; i < 4; ++i) window[i] += shift >> 5 == i ? significand << (shift & 31) : 0;
  }
  __device__ void move_to(ExactTotal<fp32>& total) {
    for (int i = 0; i < 4; ++i) {
      total.word[i] += window[i] & 0xffffffffu;
      total.word[i + 1] += window[i] >> 32;
      window[i] = 0;
    }
    total.word[ExactTotal<fp32>::nan] += nans;
    nans = 0;
  }
};
/// In fp64 a window takes all but tiny numbers. The words of a warp are added before they are moved.
template <> struct ExactLeaf<fp64> {
  using Window = TermWindow<fp64, Format<fp64>::precision, 3>;
  Window window;
  Window::Words sum;

  __device__ ExactLeaf() { window.place(MagnitudeKey<fp64>::of(1), 0, 13); }
  __device__ void add(double e, ExactTotal<fp64>& total) {
    const std::uint32_t key = MagnitudeKey<fp64>::of(e);
    if (window.holds(key, key - 1))
      window.add(sum, e);
    else
      total.add(e);
  }
  __device__ void move_to(ExactTotal<fp64>& total) {
#pragma unroll
    for (double& word : sum.word) {
      const double all = WarpGroup{warp}.sum(word);
      if (thread() == 0) total.add(all);
      word = 0;
    }
  }
};

}  // namespace samesum::gpu::softmaxes
