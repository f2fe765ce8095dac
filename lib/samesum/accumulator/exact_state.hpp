/// The state of an exact sum as plain memory, which many threads may update at once.
#pragma once

#include "samesum/accumulator/digits.hpp"
#if !defined(__CUDACC_RTC__)
#include "samesum/accumulator/exact.hpp"
#endif
#include "samesum/window/window_state.hpp"

namespace samesum {

/// The exact sum of elements of format T, or of formats whose numbers are all numbers of T. All bytes 0 is
/// the empty state.
///
/// The digits are those of Exact that elements of T and sums of 2^64 of them can reach, in units of 2^32 of
/// the digit below. What a digit passes on, and why 2^20 threads may add at the same time: DigitCarry.
///
/// Fewer than 2^64 elements are added to states that are merged with each other. The result is that of the
/// method `exact`: correctly rounded, whatever the order (Promise `order_free`).
template <class T> struct ExactState {
  static constexpr int first_digit =
      (Format<T>::min_quantum - Format<fp64>::min_quantum) / 32;  ///< digit 0, among those of an Exact
  static constexpr int lowest_exponent =
      Format<fp64>::min_quantum + 32 * first_digit;  ///< digit i counts units of 2^(lowest_exponent + 32 i)
  static constexpr int digit_count = (Format<T>::max_exponent + 1 + 64 + 1 - lowest_exponent + 31) / 32;

  std::int64_t digits[digit_count];
  std::uint32_t flags;  ///< of all elements, a combination of SumFlags::Flag

  /// Adds x.
  template <class U> SAMESUM_HD void add(U x) { add_by<Alone>(x); }
  /// Adds x while other threads may add to the same state, in shared or global memory.
  template <class U> SAMESUM_HD void atomic_add(U x) { add_by<Atomically>(x); }
  /// Adds the elements of `other`, a state of T, or of a format whose numbers are all numbers of T.
  template <class U> SAMESUM_HD void merge(const ExactState<U>& other) { merge_by<Alone>(other); }
  /// Merges while other threads may add to the same state; no thread changes `other`.
  template <class U> SAMESUM_HD void atomic_merge(const ExactState<U>& other) { merge_by<Atomically>(other); }
  /// Adds what a window holds: its elements are numbers of T. Those that fell outside are left to the caller,
  /// who has added them elsewhere.
  template <int words> SAMESUM_HD void merge(const WindowState<words>& other, const ExponentWindow& window) {
    merge_by<Alone>(other, window);
  }
  /// Merges while other threads may add to the same state; no thread changes `other`.
  template <int words>
  SAMESUM_HD void atomic_merge(const WindowState<words>& other, const ExponentWindow& window) {
    merge_by<Atomically>(other, window);
  }

  /// The sum, rounded once to F (to nearest, ties to even). +0 for no elements, -0 if all of them were -0.
  template <class F> SAMESUM_HD F finish() const {
    if (flags & SumFlags::special_flags) return from_bits<F>(special_bits<F>(flags));
    if (flags == SumFlags::seen_any) return from_bits<F>(Format<F>::sign_bit);
    ExactState sum = *this;
    return from_bits<F>(leading_of_digits(sum.digits, digit_count, lowest_exponent).template rounded<F>());
  }
#if !defined(__CUDACC_RTC__)
  /// The state as an Exact, which can be serialised.
  Exact exact() const {
    std::array<std::int64_t, Exact::digit_count> all{};
    for (int i = 0; i < digit_count; ++i) all[static_cast<std::size_t>(first_digit + i)] = digits[i];
    static_assert(Exact::lowest_exponent == Format<fp64>::min_quantum);
    return Exact{all, flags};
  }
#endif

 private:
  template <class U>
  static constexpr bool holds =
      Format<U>::min_quantum >= Format<T>::min_quantum&& Format<U>::max_exponent <= Format<T>::max_exponent;

  /// Returns whether the digits that it changes are known to have been other than 0.
  template <class Access> SAMESUM_HD bool add_to_digit(int i, std::int64_t part) {
    bool is_later = true;
    for (; part != 0; ++i) {
      const DigitAddition added = Access::add(digits[i], part);
      is_later = is_later && added.is_later;
      if (added.carry == 0 || i + 1 == digit_count) break;
      Access::add(digits[i], -added.carry * (std::int64_t{1} << DigitCarry::bits));  // counts as no crossing
      part = added.carry * (std::int64_t{1} << (DigitCarry::bits - 32));
    }
    return is_later;
  }
  /// Returns whether other elements are known to have been added before.
  template <class Access> SAMESUM_HD bool add_integer(bool negative, std::uint64_t magnitude, int exponent) {
    bool is_later = magnitude != 0;
    add_to_digits(negative, magnitude, exponent, lowest_exponent,
                  [&](int i, std::int64_t part) { is_later = add_to_digit<Access>(i, part) && is_later; });
    return is_later;
  }
  template <class Access, class U> SAMESUM_HD void add_by(U x) {
    static_assert(holds<U>, "samesum: the elements have bits that the state does not hold");
    const std::uint32_t seen = seen_flags(x);
    if ((seen & SumFlags::special_flags) == 0) {
      const Decomposed d = decompose<U>(to_bits(x));
      // A digit is other than 0 only if an element came before, which sets the flags of all finite ones but
      // zeros. The flags lie far from the digits, so that skipping them saves an access to memory.
      if (add_integer<Access>(d.negative, d.significand, d.exponent)) return;
    }
    Access::set(flags, seen);
  }
  template <class Access, class U> SAMESUM_HD void merge_by(const ExactState<U>& other) {
    static_assert(holds<U>, "samesum: the other state has bits that this one does not hold");
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // the digits are in memory anyway
#endif
    for (int i = 0; i < other.digit_count; ++i)
      add_to_digit<Access>(other.first_digit - first_digit + i, other.digits[i]);
    Access::set(flags, other.flags);
  }
  template <class Access, int words>
  SAMESUM_HD void merge_by(const WindowState<words>& other, const ExponentWindow& window) {
    const bool negative = other.units.is_negative();
    const WideInteger<words> magnitude = other.units.magnitude();
    for (int w = 0; w < words; ++w) {
      const int exponent = window.lowest + 64 * w, below = lowest_exponent - exponent;
      if (below <= 0)
        add_integer<Access>(negative, magnitude.word[w], exponent);
      else if (below < 64)  // the bits below are 0
        add_integer<Access>(negative, magnitude.word[w] >> below, lowest_exponent);
    }
    Access::set(flags, other.flags & ~WindowState<words>::outside);
  }
};

}  // namespace samesum
