/// Exact sums of the exponentials of a softmax: in a window, or in integers.
#pragma once

#include "samesum/backend/cuda/softmax/parts.cuh"
#include "samesum/backend/cuda/window/sum.cuh"

namespace samesum::gpu::softmaxes {

/// An exact total of multiples of 2^unit that is in [0, 2^39). The terms may have either sign.
template <int unit> using ExactTotal = WideInteger<(39 - unit) / 64 + 1>;
/// Holds sums of any exponentials.
inline constexpr int any_unit = Format<fp64>::min_quantum;
using AnyTotal = ExactTotal<any_unit>;

/// Adds x, a multiple of 2^unit, by the updates of Access.
template <class Access, int words> __device__ void deposit(WideInteger<words>& total, double x, int unit) {
  const Decomposed d = decompose<double>(to_bits(x));
  if (d.significand == 0) return;
  const int below = max(unit - d.exponent, 0);  // these bits are 0
  total.template add_by<Access>(d.negative, d.significand >> below, d.exponent + below - unit);
}
/// A total in units of 2^unit, rounded once to C, to nearest, ties to even.
template <class C, int words> __device__ C rounded(const WideInteger<words>& total, int unit) {
  return from_bits<C>(total.leading(unit).template rounded<C>());
}

/// Adds a total of which word(i) is word i.
template <class Word> __device__ void add_words_of(AnyTotal& total, Word word) {
  bool carry = false;
#pragma unroll 1
  for (int i = 0; i < AnyTotal::words; ++i) carry = add_word<Alone>(total.word[i], word(i), carry);
}

/// The exact sum of a few numbers in each thread of a group. A function of its own, so that callers need no
/// registers for it.
template <class C> __device__ __noinline__ C exact_sum_of(const C* e, int count, int group) {
  AnyTotal total{};
  for (int i = 0; i < count; ++i) deposit<Alone>(total, e[i], any_unit);
  for (int mask = group / 2; mask > 0; mask /= 2)
    add_words_of(total, [&](int i) { return __shfl_xor_sync(whole_warp, total.word[i], mask); });
  return rounded<C>(total, any_unit);
}

/// The exact sum of a few numbers in each thread of a block or cluster.
template <class C, class Block>
__device__ __noinline__ C exact_sum_of_block(Block block, const C* e, int count) {
  __shared__ AnyTotal here;
  if (threadIdx.x == 0) here.clear();
  __syncthreads();  // the total is 0
  for (int i = 0; i < count; ++i) deposit<Atomically>(here, e[i], any_unit);
  block.sync();  // all numbers have been added
  AnyTotal total{};
  for (int b = 0; b < block.size; ++b) add_words_of(total, [&](int i) { return block.in(b, here).word[i]; });
  block.sync();  // all blocks have read the totals before the first one ends
  return rounded<C>(total, any_unit);
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
    window_.add(sum_, window_.holds(key) ? e : 0);
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
  template <int count> __device__ void move_to(WideInteger<count>& total, int unit) {
    const Part sum = of_warp();
    if (thread() == 0)
      for (const double word : sum.word) deposit<Atomically>(total, word, unit);
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
