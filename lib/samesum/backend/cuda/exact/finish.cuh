/// The last step of an exact reduction: one warp rounds a sum, a quotient or a variance once.
#pragma once

#include "samesum/backend/cuda/exact/sum.cuh"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {
// Internal linkage: the compiler knows all callers of a function that is not inlined, and can fit the calling
// convention to them.
namespace {

/// Which result is computed from the sums, and where it is written.
struct ExactFinish {
  ExactKind kind;
  std::size_t format;
  std::uint64_t ddof;
  void* out;
};

constexpr int digits_of_thread = 5, word_count = digits_of_thread * warp;

/// Writes the magnitude of the digits in words of 32 bits, the lowest first. Returns the index of the highest
/// word that is not 0, or -1. A whole warp calls this function and those below.
__device__ __noinline__ int write_magnitude(const TermDigits* digits, std::uint32_t* words, bool* negative) {
  __syncwarp();  // all threads have added to the digits, and read the previous words
  const MagnitudeOf<digits_of_thread> magnitude{*digits};
  *negative = magnitude.is_negative();
  return magnitude.write(words);
}

/// A step of a long division: divides rest·2^32 + digit by the divisor, which is larger than the rest.
/// Returns the quotient and sets the new rest.
__device__ std::uint32_t divide(std::uint64_t& rest, std::uint32_t digit, std::uint64_t divisor) {
  if (divisor >> 32 == 0) {
    const std::uint64_t part = rest << 32 | digit;
    rest = part % divisor;
    return static_cast<std::uint32_t>(part / divisor);
  }
  std::uint32_t quotient = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit) {
    const bool carry = rest >> 63;
    rest = rest << 1 | (digit >> bit & 1);
    const bool fits = carry || rest >= divisor;
    if (fits) rest -= divisor;
    quotient = quotient << 1 | fits;
  }
  return quotient;
}

/// Returns round.operator()<F>() for the format F with that format index.
template <class Round> __device__ std::uint64_t in_format(std::size_t format, Round round) {
  std::uint64_t bits = 0;
  visit_format(format, [&]<class F>() { bits = round.template operator()<F>(); });
  return bits;
}

/// The magnitude divided by a·b, rounded once to the format. The quotient keeps at least three of the eight
/// leading words; of lower words it matters only whether they are 0.
__device__ __noinline__ std::uint64_t rounded_quotient(const std::uint32_t* words, int top, bool negative,
                                                       std::uint64_t a, std::uint64_t b, std::size_t format) {
  constexpr int leading = 8;
  if (top < 0) return 0;
  std::uint32_t word[leading];
  for (int i = 0; i < leading; ++i) word[i] = i <= top ? words[top - i] : 0;
  bool below = false;
  for (int i = thread(); i <= top - leading; i += warp) below = below || words[i] != 0;
  bool more = __any_sync(whole_warp, below);
#pragma unroll 1
  for (const std::uint64_t divisor : {a, b}) {
    if (divisor == 1) continue;
    std::uint64_t rest = 0;
    for (std::uint32_t& digit : word) digit = divide(rest, digit, divisor);
    more = more || rest != 0;
  }
  for (int shift = 0; shift < leading / 2; ++shift) {  // at most four leading words are 0 now
    if (word[0] != 0) break;
    for (int i = 0; i + 1 < leading; ++i) word[i] = word[i + 1];
    word[leading - 1] = 0;
    --top;
  }
  for (int i = 3; i < leading; ++i) more = more || word[i] != 0;
  const LeadingBits quotient = LeadingBits::of_digits(negative, word[0], word[1], word[2], more,
                                                      TermDigits::lowest_exponent + 32 * top);
  return in_format(format, [&]<class F>() -> std::uint64_t { return quotient.template rounded<F>(); });
}

/// Turns the digits of Σx² into those of n·Σx² - (Σx)², in the same units; each digit stays below 2^40.
__device__ __noinline__ void subtract_square(TermDigits* squares, const std::uint32_t* sum, std::uint64_t n) {
  __shared__ std::uint32_t words[word_count];
  bool negative;
  write_magnitude(squares, words, &negative);
  const auto low = [](std::uint64_t x) { return x & 0xffffffff; };
  const std::uint64_t n_low = low(n), n_high = n >> 32;
  for (int i = thread(); i < TermDigits::count; i += warp) {
    const auto word = [&](int at) { return at < 0 ? std::uint64_t{0} : words[at]; };
    squares->digit[i] = static_cast<std::int64_t>(low(n_low * word(i)) + (n_low * word(i - 1) >> 32) +
                                                  low(n_high * word(i - 1)) + (n_high * word(i - 2) >> 32));
  }
  __syncwarp();  // all threads have read the words before they are overwritten
  // Let 2^e be the unit of Σx². If Σx is counted in units of 2^(e/2), the digits of its square line up with
  // those of Σx². That unit is 2^-7 times the unit of an Exact, so Σx is shifted left by 7 bits.
  constexpr int shift = Exact::lowest_exponent - TermDigits::lowest_exponent / 2;
  constexpr int exact_at = (Exact::lowest_exponent - TermDigits::lowest_exponent) / 32;
  static_assert(shift == 7 && exact_at * 32 == Exact::lowest_exponent - TermDigits::lowest_exponent);
  int lowest = Exact::digit_count, highest = -1;
  for (int i = thread(); i < Exact::digit_count; i += warp) {
    words[i] = sum[exact_at + i] << shift | sum[exact_at + i - 1] >> (32 - shift);
    if (words[i] == 0) continue;
    lowest = min(lowest, i);
    highest = max(highest, i);
  }
  lowest = __reduce_min_sync(whole_warp, lowest);
  highest = __reduce_max_sync(whole_warp, highest);
  __syncwarp();  // all threads have written their words
  for (int first = 2 * lowest; first <= 2 * highest; first += warp) {
    const int at = first + thread();
    std::uint64_t here = 0, above = 0;
    for (int i = max(lowest, at - highest); i <= min(highest, at - lowest); ++i) {
      const std::uint64_t product = std::uint64_t{words[i]} * words[at - i];
      here += low(product);
      above += product >> 32;
    }
    const bool any = at <= 2 * highest;
    if (any) squares->digit[at] -= static_cast<std::int64_t>(here);
    __syncwarp();  // all threads have updated their own digits before their upper neighbours
    if (any) squares->digit[at + 1] -= static_cast<std::int64_t>(above);
    __syncwarp();  // all upper neighbours are updated before the next round
  }
}

/// Writes result `at` of n elements: `sums` is their sum, for moments followed by their sum of squares. One
/// warp calls it.
__device__ __noinline__ void finish(ExactFinish end, TermDigits* sums, unsigned flags, std::uint64_t n,
                                    std::size_t at) {
  __shared__ std::uint32_t words[word_count];
  const ExactKind kind = end.kind;
  const bool over_n = kind.mean || kind.moments;
  constexpr unsigned infinities = Exact::seen_plus_infinity | Exact::seen_minus_infinity;
  const bool special = flags & (Exact::seen_nan | infinities);
  const auto write = [&](std::size_t place, std::uint64_t bits) {
    if (thread() == 0)
      visit_format(end.format, [&]<class F>() {
        static_cast<BitsOf<F>*>(end.out)[place] = static_cast<BitsOf<F>>(bits);
      });
  };
  const auto nan = [&] {
    return in_format(end.format, [&]<class F>() -> std::uint64_t { return Format<F>::canonical_nan; });
  };
  const auto with_sign = [&](bool negative, bool infinite) {
    return in_format(end.format, [&]<class F>() -> std::uint64_t {
      return (negative ? Format<F>::sign_bit : 0u) | (infinite ? Format<F>::infinity : 0u);
    });
  };

  bool negative;
  int top = write_magnitude(&sums[0], words, &negative);
  std::uint64_t bits;
  if ((flags & Exact::seen_nan) || (flags & infinities) == infinities || (over_n && n == 0))
    bits = nan();
  else if (special || flags == Exact::seen_any)
    bits = with_sign(!(flags & Exact::seen_plus_infinity), special);
  else
    bits = rounded_quotient(words, top, negative, over_n ? n : 1, 1, end.format);
  write(kind.moments ? 2 * at : at, bits);
  if (!kind.moments) return;

  if (special || n <= end.ddof) {
    bits = nan();
  } else {
    subtract_square(&sums[1], words, n);
    top = write_magnitude(&sums[1], words, &negative);
    bits = rounded_quotient(words, top, negative, n, n - end.ddof, end.format);
  }
  write(2 * at + 1, bits);
}

/// Writes sums as they are: the sum, for moments followed by the sum of squares. One warp calls it.
__device__ void write_digits(TermDigits* sums, int count, unsigned flags, ExactDigits* out) {
  __syncwarp();  // all threads have added to the digits
  if (thread() > 0) return;
  for (int s = 0; s < count; ++s) {
    propagate_carries(sums[s].digit, TermDigits::count);
    for (int i = 0; i < TermDigits::count; ++i)
      (s == 0 ? out->terms : out->squares).data()[i] = sums[s].digit[i];
  }
  out->flags = flags;
}

}  // namespace
}  // namespace samesum::gpu
