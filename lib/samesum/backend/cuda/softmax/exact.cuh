/// Exact sums of the exponentials of a softmax: in a window, or in integers.
#pragma once

#include "samesum/accumulator/digits.hpp"
#include "samesum/backend/cuda/softmax/parts.cuh"
#include "samesum/backend/cuda/window/sum.cuh"

namespace samesum::gpu::softmaxes {

/// An exact sum of multiples of 2^lowest that is in [0, 2^39). The terms may have either sign; up to 2^31 of
/// them are added between two calls of carry().
template <int lowest> struct ExactTotal {
  static constexpr int digits = (39 - lowest + 31) / 32;
  static constexpr int unrolled = digits > 8 ? 1 : digits;  ///< many digits stay in memory
  /// Digits of 32 bits, in two's complement of 64 bits, with room for carries that wait.
  std::uint64_t digit[digits];

  __device__ void clear() {
    for (std::uint64_t& d : digit) d = 0;
  }
  __device__ void add(double x) {
    add_by(x, [&](int i, std::uint64_t part) { digit[i] += part; });
  }
  /// Adds while other threads add.
  __device__ void atomic_add(double x) {
    add_by(x, [&](int i, std::uint64_t part) {
      atomicAdd(reinterpret_cast<unsigned long long*>(digit + i), static_cast<unsigned long long>(part));
    });
  }
  /// Moves what exceeds 32 bits in each digit to the next one.
  __device__ void carry() {
    std::int64_t over = 0;
#pragma unroll unrolled
    for (std::uint64_t& d : digit) {
      over += static_cast<std::int64_t>(d);
      d = static_cast<std::uint32_t>(over);
      over >>= 32;
    }
  }
  /// Merges the totals of two threads, in both.
  __device__ void merge_across(int mask) {
#pragma unroll unrolled
    for (int i = 0; i < digits; ++i) digit[i] += __shfl_xor_sync(whole_warp, digit[i], mask);
  }

  /// The sum, plus 2^more if more >= lowest, rounded once to C, to nearest, ties to even.
  template <class C> __device__ C rounded(int more = lowest - 1) const {
    const int up = max(more - lowest, 0), at = more < lowest ? -1 : up / 32;
    const std::int64_t added = std::int64_t{1} << up % 32;
    std::int64_t carry = 0;
    std::uint32_t first = 0, second = 0, third = 0, before = 0, before_that = 0;
    bool rest = false, below = false;  // whether digits below `third`, or below `before_that`, are not 0
    int top = 0;
#pragma unroll unrolled
    for (int i = 0; i < digits; ++i) {
      carry += static_cast<std::int64_t>(digit[i]) + (i == at ? added : 0);
      const auto here = static_cast<std::uint32_t>(carry);
      carry >>= 32;
      if (here != 0) top = i, first = here, second = before, third = before_that, rest = below;
      below = below || before_that != 0;
      before_that = before;
      before = here;
    }
    if (first == 0) return 0;
    const auto sum = LeadingBits::of_digits(false, first, second, third, rest, 32 * top + lowest);
    return from_bits<C>(sum.template rounded<C>());
  }

 private:
  template <class Add> __device__ static void add_by(double x, Add add) {
    const Decomposed d = decompose<double>(to_bits(x));
    if (d.significand == 0) return;
    // Trailing zeros may lie below 2^lowest, at most 52.
    const int down = max(lowest - d.exponent, 0);
    add_to_digits(d.negative, d.significand >> down, d.exponent + down, lowest,
                  [&](int i, std::int64_t part) { add(i, static_cast<std::uint64_t>(part)); });
  }
};

/// Holds sums of any exponentials.
using AnyTotal = ExactTotal<Format<fp64>::min_quantum>;

/// The exact sum of a few numbers in each thread of a group. A function of its own, so that callers need no
/// registers for it.
template <class C> __device__ __noinline__ C exact_sum_of(const C* e, int count, int group) {
  AnyTotal total;
  total.clear();
  for (int i = 0; i < count; ++i) total.add(e[i]);
  for (int mask = group / 2; mask > 0; mask /= 2) total.merge_across(mask);
  return total.rounded<C>();
}

/// The same, of all threads of a block or cluster.
template <class C, class Block>
__device__ __noinline__ C exact_sum_of_block(Block block, const C* e, int count) {
  __shared__ AnyTotal here;
  AnyTotal& all = block.in(0, here);
  if (block.rank == 0 && threadIdx.x == 0) here.clear();
  block.sync();  // the total is 0
  for (int i = 0; i < count; ++i) all.atomic_add(e[i]);
  block.sync();  // all numbers have been added
  const C result = all.template rounded<C>();
  block.sync();  // all blocks have read the total before the first one ends
  return result;
}

/// The exact sum, in one thread, of exponentials that a window holds. Tiny ones are left out: they seldom
/// matter.
template <class C> class ExponentialSum {
  static constexpr int words = sizeof(C) == 8 ? 3 : 2;
  using Window = TermWindow<C, Format<C>::precision, words>;

 public:
  enum Flag : std::uint32_t { left_out = 1, seen_nan = 2 };

  /// For at most 2^log2_terms numbers below 2^top, in all threads together. Others are ignored.
  __device__ ExponentialSum(int top, int log2_terms) {
    window_.place(MagnitudeKey<C>::least(top - 1), 0, log2_terms);
    sum_ = window_.begin();
  }
  __device__ void add(C e) {
    // The upper word of a tiny double is 0, but 0 is the key of no other number than 0.
    const std::uint32_t key = MagnitudeKey<C>::of(e) | std::uint32_t{e > 0};
    if (window_.is_too_small(key)) flags_ |= left_out;
    if (!(e == e)) flags_ |= seen_nan;
    window_.add(sum_, window_.holds(key, key - 1) ? e : 0);
  }
  /// Adds a number below 2^top, or NaN; then the sum is NaN.
  __device__ void add_below_top(C e) {
    std::uint32_t key = MagnitudeKey<C>::of(e);
    if constexpr (sizeof(C) == 8) key |= std::uint32_t{e > 0};
    const bool is_small = window_.is_too_small(key);
    if (is_small) flags_ |= left_out;
    window_.add(sum_, is_small ? 0 : e);
  }
  __device__ std::uint32_t flags() const { return flags_; }
  /// What is left out is below 2^end_of_rest().
  __device__ int end_of_rest() const { return window_.end_of_small(); }

  /// The sum of some threads, for others.
  struct Part {
    double word[words];
    std::uint32_t flags;
  };
  __device__ Part of_warp() const { return of_group({warp}, of_thread()); }

  /// Rounds the sum of a group once, in all its threads. Returns false if what is left out may matter.
  __device__ bool round(WarpGroup group, int log2_terms, C& result) const {
    return round_part(of_group(group, of_thread()), log2_terms, result);
  }
  /// Rounds the sum of some parts, as round() does.
  __device__ bool round_sum_of(const Part* parts, int count, int log2_terms, C& result) const {
    Part sum{};
    for (int w = thread(); w < count; w += warp) {
#pragma unroll
      for (int i = 0; i < words; ++i) sum.word[i] += parts[w].word[i];
      sum.flags |= parts[w].flags;
    }
    return round_part(of_group({warp}, sum), log2_terms, result);
  }
  /// Moves the sum of a warp to a total of several warps.
  template <int lowest> __device__ void move_to(ExactTotal<lowest>& total) {
    const Part sum = of_warp();
    if (thread() == 0)
      for (const double word : sum.word) total.atomic_add(word);
    sum_ = window_.begin();
  }

 private:
  __device__ Part of_thread() const {
    Part sum;
#pragma unroll
    for (int i = 0; i < words; ++i) sum.word[i] = window_.added(sum_, i);
    sum.flags = flags_;
    return sum;
  }
  __device__ static Part of_group(WarpGroup group, Part sum) {
    for (double& word : sum.word) word = group.sum(word);
    sum.flags = group.together(sum.flags);
    return sum;
  }
  __device__ bool round_part(const Part& sum, int log2_terms, C& result) const {
    const double first = sum.word[0], second = sum.word[1], third = words > 2 ? sum.word[words - 1] : 0;
    if (first != first) {
      result = from_bits<C>(Format<C>::canonical_nan);
      return true;
    }
    result = samesum::rounded<C>(first, second, third);
    if (sum.flags == 0) return true;
    // Twice what is left out, since `third` plus that may be rounded.
    const double more = scale_of<fp64>(end_of_rest() + log2_terms + 1);
    return result == samesum::rounded<C>(first, second, third + more);
  }

  Window window_;
  typename Window::Words sum_;
  std::uint32_t flags_ = 0;
};

}  // namespace samesum::gpu::softmaxes
