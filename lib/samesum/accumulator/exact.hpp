/// The accumulator "exact": a superaccumulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "samesum/accumulator/digits.hpp"
#include "samesum/format/number.hpp"
#include "samesum/window/sum_flags.hpp"

namespace samesum {

/// The exact sum of fewer than 2^64 elements of any formats.
///
/// The state is a superaccumulator: a wide integer in units of 2^-1074 (Kulisch 1971), with 32-bit digits in
/// 64-bit words, so that carries can be propagated late (Neal 2015).
///
/// Promise: `order_free`. Integer addition is associative, so states can be filled, merged and sent in any
/// order and any partition, and the results agree to the last bit. Only `result` rounds, and it rounds once.
/// No operation uses floating-point arithmetic, so none depends on the caller's rounding mode or flags.
class Exact : public SumFlags {
 public:
  static constexpr std::string_view name = "exact";  ///< in the names of methods and in serialised states

  /// Number of digits: 2098 bits for the range of fp64, 64 bits for the number of elements, and a sign.
  static constexpr int digit_count = 68;
  static constexpr int lowest_exponent = -1074;  ///< digit i counts units of 2^(lowest_exponent + 32 i)

  /// The empty state.
  Exact() = default;
  /// The state with these digits and flags, for example from a GPU. Each |digit| is below 2^62; carries need
  /// not be propagated.
  Exact(std::span<const std::int64_t, digit_count> digits, std::uint32_t flags);

  /// Adds one element exactly.
  template <class T> void add(T x) {
    constexpr BitsOf<T> infinity = Format<T>::infinity;
    const BitsOf<T> bits = to_bits(x);
    const BitsOf<T> magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    if (magnitude >= infinity) return add_special(magnitude > infinity, magnitude != bits);
    flags_ = std::uint8_t(flags_ | seen_any | (bits == Format<T>::sign_bit ? 0 : seen_other_than_minus_zero));
    const Decomposed d = decompose<T>(bits);
    add_integer(d.negative, d.significand, d.exponent);
  }

  /// Adds the elements of a span one by one. `samesum::accumulate` is the fast way to fill a state.
  template <class T> void add(std::span<const T> x) {
    for (const T& element : x) add(element);
  }

  /// Adds the sum of `other`.
  void merge(const Exact& other);

  /// Whether a NaN or an infinity has been added. The digits then no longer affect the result.
  bool is_special() const { return (flags_ & special_flags) != 0; }
  /// Digits of the sum of the finite elements: digit i counts units of 2^(lowest_exponent + 32 i).
  std::span<const std::int64_t, digit_count> digits() const { return digits_; }

  /// The flags of all elements, a combination of `Flag`.
  std::uint32_t flags() const { return flags_; }

  /// Whether no element has been added.
  bool empty() const { return (flags_ & seen_any) == 0; }
  /// Whether at least one element has been added, and all of them were -0.
  bool only_minus_zero() const { return flags_ == seen_any; }

  /// Returns the sum, correctly rounded to F (to nearest, ties to even): the error is at most half a unit in
  /// the last place.
  ///
  /// The result is +0 for an empty state, -0 for a sum of only -0, and the canonical NaN if a NaN or both
  /// infinities have been added. Finite elements give an infinity only if their exact sum rounds beyond the
  /// largest finite value.
  template <class F> F result() const { return result(format_info<F>()).template as<F>(); }
  /// Returns the sum, correctly rounded to a format that is selected at run time, one of samesum::formats.
  Number result(const FormatInfo& format) const;

  /// Serialises the state to 284 bytes: header with version, flags and canonical digits, little-endian. Equal
  /// sums give equal bytes.
  /// @throws std::length_error if the sum is beyond any sum of 2^64 elements.
  std::vector<std::byte> serialise() const;
  /// Restores a state from the bytes of `serialise`.
  /// @throws std::invalid_argument if the bytes are not a serialised state.
  static Exact deserialise(std::span<const std::byte> bytes);

 private:
  // The top digit has weight 2^1070; a sum of 2^64 elements is below top_limit times that.
  static constexpr std::int64_t top_limit = 1 << 18;
  // Limit of pending_: 32-bit digits in 64-bit words would allow 2^31 additions.
  static constexpr std::uint32_t most_pending = 1u << 30;

  void add_integer(bool negative, std::uint64_t significand, int exponent) {
    const int offset = exponent - lowest_exponent;
    const ThreeDigits three{negative, significand, offset % 32};
    for (std::size_t i = 0; i < 3; ++i) digits_[std::size_t(offset / 32) + i] += three.digit[i];
    if (++pending_ == most_pending) propagate_carries();
  }
  void add_special(bool nan, bool negative) {
    const int kind = nan ? seen_nan : negative ? seen_minus_infinity : seen_plus_infinity;
    flags_ = std::uint8_t(flags_ | seen_any | seen_other_than_minus_zero | kind);
  }
  void propagate_carries();
  bool is_nan() const;
  Exact canonical() const;

  std::array<std::int64_t, digit_count> digits_{};
  std::uint32_t pending_ = 0;  // every |digit| is at most (pending_ + 1)·2^32
  std::uint8_t flags_ = 0;
};

}  // namespace samesum
