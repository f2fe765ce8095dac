/// How the words of a state are updated: by one thread, or by many threads at once. The states of states.hpp
/// are written once, for both.
///
/// All updates are integer additions, bitwise or and maxima, so their order does not matter. What an addition
/// carries to a higher word is computed from the previous value of the lower one, so each carry is added
/// exactly once, by one of the threads.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <atomic>
#endif

#include "samesum/format/format.hpp"

namespace samesum {

/// Digits of 64 bits in units of 2^32 of the digit below: how many multiples of 2^42 a digit passes on.
///
/// An addition that takes a digit across an odd multiple of 2^41 carries: its thread subtracts 2^42 from the
/// digit, which is not examined again, and adds 2^10 to the next one. Subtractions are multiples of 2^42, so
/// the carries of all threads add up to what the sum of their parts has crossed, in any order. Between a
/// crossing and its subtraction a digit is off by 2^42 for each thread at most, if parts are below 2^42. So
/// up to 2^20 threads that add at the same time keep a digit within ±2^63, and once they have finished, it is
/// in [-2^41, 2^41). Digits near zero do not carry. Kernels of Triton (samesum/triton.py) do not look at what
/// they carry into the next digit: fewer than 2^54 of their additions keep it within ±2^62.
struct DigitCarry {
  static constexpr int bits = 42;  ///< at least 33, and low enough for 2^(62 - bits) threads

  /// Multiples of 2^42 in a digit, rounded to nearest.
  SAMESUM_HD static constexpr std::int64_t of(std::int64_t digit) {
    return (digit + (std::int64_t{1} << (bits - 1))) >> bits;
  }
  /// What of() returns, from the upper half of the digit alone.
  SAMESUM_HD static constexpr std::int32_t of_upper(std::int32_t upper) {
    return (upper + (1 << (bits - 33))) >> (bits - 32);
  }
};

/// What an addition to a digit found.
struct DigitAddition {
  std::int64_t carry;     ///< how many multiples of 2^DigitCarry::bits the digit passes on
  bool is_later = false;  ///< the digit is known to have been other than 0
};

/// Updates by a thread that has the state to itself.
struct Alone {
  /// Adds x to a word. Returns whether it wraps.
  SAMESUM_HD static bool add(std::uint64_t& word, std::uint64_t x) {
    word += x;
    return word < x;
  }
  /// Adds x to a digit.
  SAMESUM_HD static DigitAddition add(std::int64_t& digit, std::int64_t x) {
    const std::int64_t before = digit;
    digit += x;
    return {DigitCarry::of(digit) - DigitCarry::of(before)};
  }
  SAMESUM_HD static void set(std::uint32_t& flags, std::uint32_t more) { flags |= more; }
  SAMESUM_HD static void raise(std::int32_t& largest, std::int32_t x) {
    if (x > largest) largest = x;
  }
};

/// Atomic additions to each half of a word by itself. A GPU has no instruction that adds 64 bits in shared
/// memory: compilers make a loop of it, which repeats until no other thread interferes.
class AtomicallyInHalves {
 public:
  SAMESUM_HD static bool add(std::uint64_t& word, std::uint64_t x) {
    Half* const half = reinterpret_cast<Half*>(&word);
    const auto upper = static_cast<std::uint32_t>(x >> 32), part = upper + add_lower(half, x);
    return part < upper || (part != 0 && fetch_add(half + 1, part) > ~part);
  }
  SAMESUM_HD static DigitAddition add(std::int64_t& digit, std::int64_t x) {
    Half* const half = reinterpret_cast<Half*>(&digit);
    const auto bits = static_cast<std::uint64_t>(x);
    const std::uint32_t part = static_cast<std::uint32_t>(bits >> 32) + add_lower(half, bits);
    if (part == 0) return {0};
    const std::uint32_t before = fetch_add(half + 1, part);
    return {DigitCarry::of_upper(static_cast<std::int32_t>(before + part)) -
            DigitCarry::of_upper(static_cast<std::int32_t>(before))};
  }

 private:
  using Half [[gnu::may_alias]] = unsigned;

  SAMESUM_HD static std::uint32_t fetch_add(Half* half, std::uint32_t x) {
#if defined(__CUDA_ARCH__)
    return atomicAdd(half, x);
#else
    return __atomic_fetch_add(half, x, __ATOMIC_RELAXED);
#endif
  }
  /// Adds the lower half of x. Returns the carry.
  SAMESUM_HD static std::uint32_t add_lower(Half* half, std::uint64_t x) {
    const auto lower = static_cast<std::uint32_t>(x);
    return lower != 0 && fetch_add(half, lower) > ~lower ? 1 : 0;
  }
};

/// Atomic updates, without an order between them: on a GPU by all threads of the device, of words in shared
/// or global memory; on a CPU by all threads of the process.
struct Atomically {
  SAMESUM_HD static bool add(std::uint64_t& word, std::uint64_t x) {
#if defined(__CUDA_ARCH__)
    if (__isShared(&word)) return AtomicallyInHalves::add(word, x);
    return atomicAdd(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(x)) > ~x;
#else
    return std::atomic_ref{word}.fetch_add(x, std::memory_order_relaxed) > ~x;
#endif
  }
  SAMESUM_HD static DigitAddition add(std::int64_t& digit, std::int64_t x) {
#if defined(__CUDA_ARCH__)
    if (__isShared(&digit)) return AtomicallyInHalves::add(digit, x);
    const auto before = static_cast<std::int64_t>(
        atomicAdd(reinterpret_cast<unsigned long long*>(&digit), static_cast<unsigned long long>(x)));
#else
    const std::int64_t before = std::atomic_ref{digit}.fetch_add(x, std::memory_order_relaxed);
#endif
    return {DigitCarry::of(before + x) - DigitCarry::of(before), before != 0};
  }
  // The first elements set the flags and raise the number of bits. Looking first saves the atomic instruction
  // for all others. A value that is not the latest one only costs an instruction: flags are never cleared,
  // and the number is never lowered.
  SAMESUM_HD static void set(std::uint32_t& flags, std::uint32_t more) {
#if defined(__CUDA_ARCH__)
    if ((more & ~*const_cast<const volatile std::uint32_t*>(&flags)) != 0) atomicOr(&flags, more);
#else
    std::atomic_ref all{flags};
    if ((more & ~all.load(std::memory_order_relaxed)) != 0) all.fetch_or(more, std::memory_order_relaxed);
#endif
  }
  SAMESUM_HD static void raise(std::int32_t& largest, std::int32_t x) {
#if defined(__CUDA_ARCH__)
    if (x > *const_cast<const volatile std::int32_t*>(&largest)) atomicMax(&largest, x);
#else
    std::atomic_ref all{largest};
    std::int32_t now = all.load(std::memory_order_relaxed);
    while (x > now && !all.compare_exchange_weak(now, x, std::memory_order_relaxed)) {
    }
#endif
  }
};

/// Adds x and a carry to a word by the updates of Access. Returns the carry to the next word.
template <class Access> SAMESUM_HD bool add_word(std::uint64_t& word, std::uint64_t x, bool carry) {
  const std::uint64_t part = x + carry;
  return part < x || (part != 0 && Access::add(word, part));
}
/// Adds x to an integer in two's complement, word by word, the lowest first, by the updates of Access. All
/// threads together add every carry once, so when they have finished, the integer is the sum, modulo
/// 2^(64·words).
template <class Access, int words>
SAMESUM_HD void add_words(std::uint64_t (&sum)[words], const std::uint64_t (&x)[words]) {
  bool carry = false;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < words; ++i) carry = add_word<Access>(sum[i], x[i], carry);
}

}  // namespace samesum
