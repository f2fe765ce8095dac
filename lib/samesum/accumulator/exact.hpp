#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "samesum/accumulator/digits.hpp"
#include "samesum/format/value.hpp"

namespace samesum {

/// The exact sum of any number (below 2^64) of elements of any formats, as a wide integer that counts units
/// of 2^-1074: a superaccumulator (Kulisch 1971; digits of 32 bits kept in 64-bit words so that carries can
/// wait: Neal 2015).
///
/// Integer addition is associative, so states may be filled, merged and shipped in any order and any
/// partition and still agree to the last bit. The one rounding is in `result`. No operation here touches
/// floating-point arithmetic, so no rounding mode or flag of the caller matters.
class Exact {
 public:
  static constexpr std::string_view name = "exact";

  // 2098 bits of fp64's range and 64 for the number of elements, and a sign.
  static constexpr int digit_count = 68;
  static constexpr int lowest_exponent = -1074;  ///< digit i counts units of 2^(lowest_exponent + 32 i)
  enum Flag : std::uint8_t {
    seen_any = 1,
    seen_other_than_minus_zero = 2,
    seen_nan = 4,
    seen_plus_infinity = 8,
    seen_minus_infinity = 16
  };

  Exact() = default;
  /// The state that these digits and flags mean, as another backend holds it: each |digit| below 2^62.
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

  /// Adds the elements one by one. `samesum::accumulate` is the fast way to fill a state.
  template <class T> void add(std::span<const T> x) {
    for (const T& element : x) add(element);
  }

  /// Adds what the other has seen.
  void merge(const Exact& other);

  /// NaN or an infinity has been seen: the digits no longer matter.
  bool is_special() const { return (flags_ & (seen_nan | seen_plus_infinity | seen_minus_infinity)) != 0; }
  /// The sum of what is finite: digit i counts units of 2^(lowest_exponent + 32 i).
  std::span<const std::int64_t, digit_count> digits() const { return digits_; }

  bool empty() const { return (flags_ & seen_any) == 0; }
  /// True where nothing but -0 has been seen, and at least one.
  bool only_minus_zero() const { return flags_ == seen_any; }

  /// The sum, correctly rounded to F (to nearest, ties to even): the error is at most half a unit in the last
  /// place. Empty: +0. Only -0: -0. NaN or both infinities: the canonical NaN. Overflow to infinity only
  /// where the exact sum rounds beyond the largest finite value.
  template <class F> F result() const { return result(format_info<F>()).template as<F>(); }
  /// The same for a format that is known at run time, one of samesum::formats.
  Number result(const FormatInfo& format) const;

  /// Version, flags and the canonical digits, little-endian, 284 bytes: equal sums give equal bytes. Throws
  /// std::length_error for a sum that 2^64 elements cannot have.
  std::vector<std::byte> serialise() const;
  /// Throws std::invalid_argument where the bytes are not a serialised state.
  static Exact deserialise(std::span<const std::byte> bytes);

 private:
  static constexpr std::int64_t top_limit = 1 << 18;  // the top digit weighs 2^1070; 2^64 elements stay below
  static constexpr std::uint32_t most_pending = 1u << 30;  // digits of 32 bits in 64-bit words: 2^31 would do

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
