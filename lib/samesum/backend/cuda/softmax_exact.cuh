/// Exact sums of the exponentials of a softmax, in integers.
#pragma once

#include "samesum/accumulator/digits.hpp"
#include "samesum/backend/cuda/softmax_parts.cuh"

namespace samesum::gpu::softmaxes {

/// An exact sum of numbers in [0, 1], in units of 2^-149. Fewer than 2^39 numbers sum to less than 2^188
/// units.
struct ExactTotal {
  static constexpr int digits = 6, nan = digits, words = digits + 1;
  /// Digits of 32 bits, with room for carries that wait; then the number of NaNs.
  std::uint64_t word[words] = {};

  __device__ void merge(const ExactTotal& other) {
    for (int i = 0; i < words; ++i) word[i] += other.word[i];
  }

  /// The sum, rounded once, to nearest, ties to even.
  __device__ float rounded() const {
    std::uint64_t digit[digits], carry = 0;
    for (int i = 0; i < digits; ++i) {
      carry += word[i];
      digit[i] = carry & 0xffffffffu;
      carry >>= 32;
    }
    if (word[nan] != 0) return from_bits<fp32>(Format<fp32>::canonical_nan);
    std::uint64_t first = 0, second = 0, third = 0;
    bool more = false;
    int top = -1;
    for (int i = digits - 1; i >= 0; --i) {
      if (top < 0 && digit[i] != 0) top = i;
      if (i == top) first = digit[i];
      if (i == top - 1) second = digit[i];
      if (i == top - 2) third = digit[i];
      more = more || (i < top - 2 && digit[i] != 0);
    }
    if (top < 0) return 0;
    return from_bits<fp32>(round_leading<fp32>(false, first, second, third, more, 32 * top - 149));
  }
};

/// The sum of up to 256 numbers in one thread, before carries.
struct ExactWindows {
  std::uint64_t window[4] = {};  ///< window[i] counts units of 2^(32 i - 149)
  unsigned nans = 0;

  __device__ void add(float e) {
    const unsigned bits = __float_as_uint(e), field = bits >> 23, shift = max(field, 1u) - 1;
    const std::uint64_t significand = (bits & 0x7fffffu) | (field != 0 ? 0x800000u : 0u);
    nans += !(e == e);
    for (unsigned i = 0; i < 4; ++i) window[i] += shift >> 5 == i ? significand << (shift & 31) : 0;
  }
  __device__ void move_to(ExactTotal& total) {
    for (int i = 0; i < 4; ++i) {
      total.word[i] += window[i] & 0xffffffffu;
      total.word[i + 1] += window[i] >> 32;
      window[i] = 0;
    }
    total.word[ExactTotal::nan] += nans;
    nans = 0;
  }
};

}  // namespace samesum::gpu::softmaxes
