/// A compact sum that is exact within a range of exponents, and says when an element was outside.
#pragma once

#include "samesum/window/access.hpp"
#include "samesum/window/sum_flags.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// A range of exponents. It holds zeros, and the numbers x that are multiples of 2^lowest with |x| < 2^top.
struct ExponentWindow {
  int lowest;  ///< exponent of the unit in which elements are counted
  int top;     ///< above `lowest`

  /// Whether a state adds x exactly. Infinities and NaN count as held: a state records them in its flags.
  template <class T> SAMESUM_HD constexpr bool holds(T x) const {
    const BitsOf<T> bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    if (magnitude == 0 || magnitude >= Format<T>::infinity) return true;
    return holds(decompose<T>(bits));
  }
  /// Whether the window holds a number other than zero.
  SAMESUM_HD constexpr bool holds(const Decomposed& d) const {
    const int below = lowest - d.exponent;
    return d.exponent + 64 - leading_zeros(d.significand) <= top &&
           (below <= 0 || (below < 64 && d.significand >> below << below == d.significand));
  }
};

/// An exact sum of elements within a window, in an integer of `words` words of 64 bits. All bytes 0 is the
/// empty state.
///
/// Every call for a state has the same window. At most most_terms() elements are added to states that are
/// merged with each other. Elements outside the window are not added; a flag records that there were some.
///
/// The result is that of the method `exact`: correctly rounded, whatever the order (Promise `order_free`),
/// and NaN if an element fell outside, unless an infinity or a NaN decides the result.
template <int words> struct WindowState {
  /// Flag of elements that fell outside, beside those of SumFlags.
  static constexpr std::uint32_t outside = 32;

  WideInteger<words> units;  ///< sum in units of 2^lowest
  std::uint32_t flags;       ///< of all elements: a combination of SumFlags::Flag and `outside`

  /// The most elements of a sum that the integer holds for any elements of the window; 0 if it is too narrow
  /// for the window, the largest number if there is no limit below 2^64.
  SAMESUM_HD static constexpr std::uint64_t most_terms(const ExponentWindow& window) {
    const int spare = 64 * words - 1 - (window.top - window.lowest);
    return spare < 0 ? 0 : spare > 63 ? ~std::uint64_t{0} : std::uint64_t{1} << spare;
  }

  /// Adds x, of any format. Returns whether the window holds it.
  template <class T> SAMESUM_HD bool add(T x, const ExponentWindow& window) {
    return add_by<Alone>(x, window);
  }
  /// Adds x while other threads may add to the same state, in shared or global memory.
  template <class T> SAMESUM_HD bool atomic_add(T x, const ExponentWindow& window) {
    return add_by<Atomically>(x, window);
  }
  /// Adds the elements of `other`, in the same window.
  SAMESUM_HD void merge(const WindowState& other) { merge_by<Alone>(other); }
  /// Merges while other threads may add to the same state; no thread changes `other`.
  SAMESUM_HD void atomic_merge(const WindowState& other) { merge_by<Atomically>(other); }

  /// Whether an element fell outside the window.
  SAMESUM_HD bool fell_outside() const { return (flags & outside) != 0; }

  /// The sum, rounded once to F (to nearest, ties to even). +0 for no elements, -0 if all of them were -0.
  template <class F> SAMESUM_HD F finish(const ExponentWindow& window) const {
    if (flags & SumFlags::special_flags) return from_bits<F>(special_bits<F>(flags));
    if (fell_outside()) return from_bits<F>(Format<F>::canonical_nan);
    if (flags == SumFlags::seen_any) return from_bits<F>(Format<F>::sign_bit);
    return from_bits<F>(rounded_quotient<F>(units, 1, 1, window.lowest));
  }

 private:
  template <class Access, class T> SAMESUM_HD bool add_by(T x, const ExponentWindow& window) {
    const BitsOf<T> bits = to_bits(x);
    std::uint32_t seen = seen_flags(x);
    bool held = true;
    if ((seen & SumFlags::special_flags) == 0 && BitsOf<T>(bits & ~Format<T>::sign_bit) != 0) {
      const Decomposed d = decompose<T>(bits);
      held = window.holds(d);
      if (held) {
        const int shift = d.exponent - window.lowest;
        const auto term = WideInteger<words>::of(d.negative, d.significand >> (shift < 0 ? -shift : 0),
                                                 shift < 0 ? 0 : shift);
        add_words<Access>(units.word, term.word);
      } else {
        seen |= outside;
      }
    }
    Access::set(flags, seen);
    return held;
  }
  template <class Access> SAMESUM_HD void merge_by(const WindowState& other) {
    add_words<Access>(units.word, other.units.word);
    Access::set(flags, other.flags);
  }
};

}  // namespace samesum
