/// An integer of 320 bits, which holds the sum of any elements of fp32.
#pragma once

#include "samesum/window/wide_integer.hpp"

namespace samesum::gpu {

/// An integer of 320 bits in two's complement, as five words, the lowest first. Sums wrap. No index depends
/// on a value, so that the words stay in registers.
struct Int320 {
  static constexpr int words = 5;
  std::uint64_t word[words] = {};

  /// ±magnitude·2^shift, for 0 <= shift < 320.
  __device__ static Int320 of(bool negative, std::uint64_t magnitude, int shift) {
    const int bit = shift & 63, first = shift >> 6;
    const std::uint64_t low = magnitude << bit, high = bit == 0 ? 0 : magnitude >> (64 - bit);
    Int320 x;
#pragma unroll
    for (int i = 0; i < words; ++i) x.word[i] = i == first ? low : i == first + 1 ? high : 0;
    return x.negated_if(negative);
  }
  __device__ bool is_negative() const { return word[words - 1] >> 63 != 0; }

  __device__ Int320 operator+(const Int320& other) const {
    Int320 sum;
    Wide carry = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) {
      carry += Wide{word[i]} + other.word[i];
      sum.word[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return sum;
  }
  __device__ Int320 operator-(const Int320& other) const { return *this + other.negated_if(true); }

  /// The leading 62 bits of the magnitude, of which the last one is sticky, times 2^shift.
  struct Leading {
    std::int64_t bits;
    int shift;
  };
  __device__ Leading leading() const {
    const Int320 all = negated_if(is_negative());
    std::uint64_t first = 0, second = 0;
    int place = 0;
    bool more = false;
#pragma unroll
    for (int i = words - 1; i >= 0; --i) {
      if (first == 0)
        first = all.word[i], second = i > 0 ? all.word[max(i - 1, 0)] : 0, place = i;
      else if (i < place - 1)
        more = more || all.word[i] != 0;
    }
    if (first == 0) return {0, 0};
    const Wide upper = Wide{first} << 64 | second, aligned = upper << leading_zeros(upper);
    return {static_cast<std::int64_t>(aligned >> 66) | (more || aligned << 62 != 0),
            64 * (place - 1) + 66 - leading_zeros(upper)};
  }

 private:
  __device__ Int320 negated_if(bool condition) const {
    const std::uint64_t mask = condition ? ~std::uint64_t{0} : 0;
    Int320 flipped, one;
#pragma unroll
    for (int i = 0; i < words; ++i) flipped.word[i] = word[i] ^ mask;
    one.word[0] = condition;
    return flipped + one;
  }
};

}  // namespace samesum::gpu
