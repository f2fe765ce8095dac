/// The digits of an exact sum in shared memory, and how one warp merges, rounds and writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cuda/atomic>

#include "samesum/accumulator/exact.hpp"
#include "samesum/backend/cuda/device/call.hpp"
#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/window/anchor.hpp"

namespace samesum::gpu {

/// Adds x atomically; two's complement makes the unsigned instruction right for either sign.
__device__ inline void atomic_add(std::int64_t& sum, std::int64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(x));
}

/// The digits of an Exact.
using Digits = std::int64_t[Exact::digit_count];

/// Adds a finite number, or ±magnitude·2^exponent. Threads may call it concurrently.
__device__ inline void deposit(Digits& digits, bool negative, std::uint64_t magnitude, int exponent) {
  add_to_digits(negative, magnitude, exponent, Exact::lowest_exponent,
                [&](int i, std::int64_t part) { atomic_add(digits[i], part); });
}
__device__ inline void deposit(Digits& digits, fp64 x) {
  const Decomposed d = decompose<fp64>(to_bits(x));
  deposit(digits, d.negative, d.significand, d.exponent);
}
__device__ inline void deposit(Digits& digits, std::int64_t integer, int exponent) {
  deposit(digits, integer < 0, static_cast<std::uint64_t>(integer < 0 ? -integer : integer), exponent);
}

/// Digit i after one step of carrying up to digit `last`: at most 2^33, so that GridDigits can add 4095 of
/// them.
__device__ inline std::int64_t carried(const std::int64_t* digit, int i, int last) {
  const std::int64_t kept = i == last ? digit[i] : digit[i] & 0xffffffff;
  return kept + (i > 0 ? digit[i - 1] >> 32 : 0);
}
__device__ inline std::int64_t carried(const Digits& digits, int i) {
  return carried(digits, i, Exact::digit_count - 1);
}

/// Fallback, not inlined. `words` is passed by value: an array whose address is taken is not kept in
/// registers.
template <std::size_t count>
__device__ __noinline__ void deposit_each(Digits* digits, std::array<double, count> words) {
#pragma unroll 1
  for (const double word : words) deposit(*digits, word);
}

/// Adds the finite words of all threads of a warp. Each pass takes the leading 51 bits, counted from the
/// largest word, of every word as multiples of one power of two, and adds them as integers.
template <std::size_t count>
__device__ void deposit_of_warp(Digits& digits, std::array<double, count> words) {
  for (;;) {
    double most = 0;
    for (const double word : words) most = std::max(most, std::abs(word));
    if (!__any_sync(whole_warp, most != 0)) return;
    const int field = static_cast<int>(__reduce_max_sync(whole_warp, __double2hiint(most)) >> 20);
    const int unit = field - 1022 - 51;
    if (field == 0 || unit + 53 > Format<fp64>::max_exponent)  // too small or too large for an anchor
      return deposit_each(&digits, words);
    const double anchor = unit_anchor(unit);
    std::int64_t total = 0;
    for (double& word : words) {
      const double beside = word + anchor;
      total += units_above(anchor, beside);
      word -= beside - anchor;
    }
    for (int delta = warp / 2; delta > 0; delta /= 2) total += shuffle_down(total, delta);
    if (thread() == 0) deposit(digits, total, unit);
  }
}

/// Adds the digits of a block to the shared digits; the first warp of each block calls it. Only digits
/// `first` to `last` may be nonzero. Returns true in the last block of the grid (the highest index), which
/// waits until all blocks have added, then holds the sum, and resets the shared digits to zero. The other
/// blocks do not wait. Freedom from deadlock rests on an assumption that CUDA does not guarantee: a GPU
/// starts the blocks of a grid in the order of their indices.
__device__ inline bool add_to_grid_digits(Digits& digits, int first, int last, unsigned& flags,
                                          GridDigits& grid_digits) {
  const auto word = [&](int i) {
    return ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_device>{grid_digits.word[i]};
  };
  __syncwarp();  // all threads have added to the digits
  for (int i = first + thread(); i <= last + 1; i += warp) {
    const std::uint64_t added =
        i > last ? GridDigits::counters(flags) : static_cast<std::uint64_t>(carried(digits, i, last));
    word(i).fetch_add(GridDigits::one + added, ::cuda::memory_order_relaxed);
  }
  if (blockIdx.x + 1 < gridDim.x) return false;
  __syncwarp();  // all threads have read the digits before they are overwritten
  unsigned seen = 0;
  for (int i = first + thread(); i <= last + 1; i += warp) {
    std::uint64_t all;
    do all = word(i).load(::cuda::memory_order_relaxed);
    while (GridDigits::arrivals(all) < gridDim.x);
    word(i).store(0, ::cuda::memory_order_relaxed);
    if (i > last)
      seen = GridDigits::flags(GridDigits::sum(all));
    else
      digits[i] = GridDigits::sum(all);
  }
  flags |= __reduce_or_sync(whole_warp, seen);
  return true;
}

/// Digits as a sign and a magnitude, distributed over a warp: each thread has `mine` digits of 32 bits.
template <int count> class MagnitudeOf {
  static constexpr int mine = count / warp + 1;

 public:
  /// The whole warp calls it.
  __device__ explicit MagnitudeOf(const std::int64_t (&digits)[count]) {
    // After one step of carrying, a digit is above -2^31 and below 2^33. Computes the sum of the positive
    // digits minus that of the negative ones.
    std::int64_t digit[mine];
    std::uint64_t carry = 0, borrow = 0;
    for (int i = 0; i < mine; ++i) {
      const int at = thread() * mine + i;
      digit[i] = at < count ? carried(digits, at, count - 1) : 0;
      carry += digit[i] > 0 ? digit[i] : 0;
      word_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    increment(incoming_carry(carry != 0, all_are(0xffffffffu)));
    for (int i = 0; i < mine; ++i) {
      const std::uint64_t negative = (digit[i] < 0 ? -digit[i] : 0) + borrow;
      borrow = word_[i] < negative;
      word_[i] -= static_cast<std::uint32_t>(negative);
    }
    decrement(incoming_carry(borrow != 0, all_are(0)));
    negative_ = __shfl_sync(whole_warp, word_[mine - 1] >> 31, warp - 1);
    if (negative_) {
      for (std::uint32_t& word : word_) word = ~word;
      const unsigned passes = __ballot_sync(whole_warp, all_are(0xffffffffu));
      increment(((passes + 1) ^ passes) >> thread() & 1);
    }
  }

  /// Writes all digits, and returns the index of the highest that is not 0, or -1.
  __device__ int write(std::uint32_t (&shared)[count]) const {
    int top = -1;
    for (int i = 0; i < mine; ++i) {
      const int at = thread() * mine + i;
      if (at < count) shared[at] = word_[i];
      if (word_[i] != 0) top = at;
    }
    __syncwarp();  // all threads have written their words
    return __reduce_max_sync(whole_warp, top);
  }

  /// Returns the leading bits, in all threads: more than 96. Digit 0 counts units of 2^lowest_exponent.
  __device__ LeadingBits leading(std::uint32_t (&shared)[count], int lowest_exponent) const {
    const int top = write(shared);
    Wide bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 32 | (top < i ? 0u : shared[top - i]);
    bool more = false;
    for (int i = 0; i < mine; ++i) more = more || (thread() * mine + i < top - 3 && word_[i] != 0);
    return {negative_, __any_sync(whole_warp, more) != 0, bits, lowest_exponent + 32 * (top - 3)};
  }

  __device__ bool is_negative() const { return negative_; }

 private:
  __device__ bool all_are(std::uint32_t value) const {
    bool all = true;
    for (const std::uint32_t word : word_) all = all && word == value;
    return all;
  }
  /// Whether a carry (or borrow) enters this thread's words, if some threads generate one and others
  /// propagate one: adding the masks ripples the carries through the warp.
  __device__ static unsigned incoming_carry(bool sends, bool passes_on) {
    const unsigned from = __ballot_sync(whole_warp, sends) << 1;
    const unsigned passes = __ballot_sync(whole_warp, passes_on && !sends);
    return ((from + passes) ^ passes) >> thread() & 1;
  }
  __device__ void increment(unsigned carry) {
    for (std::uint32_t& word : word_) {
      word += carry;
      carry = carry && word == 0;
    }
  }
  __device__ void decrement(unsigned borrow) {
    for (std::uint32_t& word : word_) {
      const bool more = borrow && word == 0;
      word -= borrow;
      borrow = more;
    }
  }

  std::uint32_t word_[mine];
  bool negative_;
};

__device__ inline void add_to(ExactState& state, Digits& digits, unsigned flags) {
  for (int i = thread(); i < Exact::digit_count; i += warp) digits[i] += state.digits[i];
  __syncwarp();  // all sums are written before carries are computed from them
  for (int i = thread(); i < Exact::digit_count; i += warp) state.digits[i] = carried(digits, i);
  if (thread() == 0) state.flags |= flags;
}

/// Writes an exact sum to its destination. One warp calls it.
__device__ inline void write(const ExactDestination& result, Digits& digits, unsigned flags) {
  __shared__ std::uint32_t words[Exact::digit_count];
  __syncwarp();  // all threads have added to the digits
  if (result.state != nullptr) return add_to(*result.state, digits, flags);
  const LeadingBits sum =
      MagnitudeOf<Exact::digit_count>{digits}.leading(words, Exact::lowest_exponent).over(result.divisor);
  if (thread() > 0) return;
  visit_format(result.format, [&]<class F>() {
    *static_cast<BitsOf<F>*>(result.out) = flags & Exact::special_flags ? special_bits<F>(flags)
                                           : flags == Exact::seen_any   ? Format<F>::sign_bit
                                                                        : sum.template rounded<F>();
  });
}

}  // namespace samesum::gpu
