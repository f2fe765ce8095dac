/// The facts of a binary floating-point format, and rounding to it by integers alone.
///
/// Everything here is exact integer work: no result depends on the caller's rounding mode, flush-to-zero or
/// compiler flags. The arithmetic of the accumulators (pack.hpp) is tested against these definitions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "samesum/base/config.hpp"

namespace samesum {

/// IEEE 754 binary16: 11 significant bits, largest finite value 65504. Bit-compatible with CUDA's `__half`.
struct fp16 {
  std::uint16_t bits = 0;
  fp16() = default;
  explicit constexpr fp16(float x);
  explicit constexpr fp16(double x);
  explicit constexpr operator float() const;
  explicit constexpr operator double() const;
};

/// bfloat16: 8 significant bits and the exponents of fp32. Bit-compatible with CUDA's `__nv_bfloat16`.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit constexpr bf16(float x);
  explicit constexpr bf16(double x);
  explicit constexpr operator float() const;
  explicit constexpr operator double() const;
};

using fp32 = float;
using fp64 = double;

/// What one format says of itself. The numbers are those of IEEE 754-2019, table 3.5.
/// `Carrier` is the native type that computes for it: holds each of its values, and rounds +, - and * of them
/// innocuously (Figueroa 1995: twice the precision and two bits more).
template <class F> struct Declaration;
template <> struct Declaration<fp16> {
  static constexpr std::string_view name = "fp16";
  static constexpr int precision = 11, max_exponent = 15;
  using Bits = std::uint16_t;
  using Carrier = float;
};
template <> struct Declaration<bf16> {
  static constexpr std::string_view name = "bf16";
  static constexpr int precision = 8, max_exponent = 127;
  using Bits = std::uint16_t;
  using Carrier = float;
};
template <> struct Declaration<fp32> {
  static constexpr std::string_view name = "fp32";
  static constexpr int precision = 24, max_exponent = 127;
  using Bits = std::uint32_t;
  using Carrier = float;
};
template <> struct Declaration<fp64> {
  static constexpr std::string_view name = "fp64";
  static constexpr int precision = 53, max_exponent = 1023;
  using Bits = std::uint64_t;
  using Carrier = double;
};

/// 2^e as a double, for -1074 <= e <= 1023.
constexpr double power_of_two(int e) {
  return std::bit_cast<double>(e >= -1022 ? std::uint64_t(e + 1023) << 52 : std::uint64_t{1} << (e + 1074));
}

/// A declaration and what follows from it.
template <class F> struct Format : Declaration<F> {
  using typename Declaration<F>::Bits;
  using Declaration<F>::precision, Declaration<F>::max_exponent;
  static constexpr int width = 8 * sizeof(Bits);
  static constexpr int min_exponent = 1 - max_exponent;             ///< of the smallest normal number
  static constexpr int min_quantum = min_exponent - precision + 1;  ///< smallest subnormal = 2^min_quantum
  static constexpr Bits sign_bit = Bits(Bits{1} << (width - 1));
  static constexpr Bits infinity = Bits(Bits(2 * max_exponent + 1) << (precision - 1));
  static constexpr Bits canonical_nan = Bits(infinity | (Bits{1} << (precision - 2)));
  static constexpr double unit_roundoff = power_of_two(-precision);
  static constexpr double smallest_subnormal = power_of_two(min_quantum);
  static constexpr double max_finite = (2 - 2 * unit_roundoff) * power_of_two(max_exponent);
};

template <class F> using BitsOf = typename Format<F>::Bits;
template <class F> using CarrierOf = typename Format<F>::Carrier;

template <class F> constexpr BitsOf<F> to_bits(F x) { return std::bit_cast<BitsOf<F>>(x); }
template <class F> constexpr F from_bits(BitsOf<F> bits) { return std::bit_cast<F>(bits); }

template <class F> constexpr bool is_nan_bits(BitsOf<F> bits) {
  return BitsOf<F>(bits & ~Format<F>::sign_bit) > Format<F>::infinity;
}

/// std::countl_zero, which compiles for a GPU and gives nonsense there.
SAMESUM_HD constexpr int leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) return __clzll(static_cast<long long>(x));
#endif
  return std::countl_zero(x);
}

/// The bits of the value of F nearest to (-1)^negative · significand · 2^exponent, ties to even.
/// A last bit that is 1 may also stand for a remainder below it ("sticky"), as long as the significand then
/// has two bits more than F's precision.
template <class F>
SAMESUM_HD constexpr BitsOf<F> round_to_bits(bool negative, std::uint64_t significand,
                                             std::int64_t exponent) {
  using Bits = BitsOf<F>;
  const Bits sign = negative ? Format<F>::sign_bit : Bits{0};
  if (significand == 0) return sign;
  const int zeros = leading_zeros(significand);
  significand <<= zeros;
  exponent -= zeros;
  // The quantum is the weight of the result's last bit.
  std::int64_t quantum = exponent + 64 - Format<F>::precision;
  if (quantum < Format<F>::min_quantum) quantum = Format<F>::min_quantum;
  const std::int64_t shift = quantum - exponent;  // at least 64 - 53
  if (shift > 64) return sign;                    // below half of the smallest subnormal
  std::uint64_t kept = shift == 64 ? 0 : significand >> shift;
  const std::uint64_t rest = significand << (64 - shift);
  const std::uint64_t half = std::uint64_t{1} << 63;
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A normal number's hidden bit adds one to the exponent field, and so does a carry out of the significand.
  const std::int64_t field = quantum - Format<F>::min_quantum;
  if (field > 2 * Format<F>::max_exponent) return Bits(sign | Format<F>::infinity);
  const std::uint64_t magnitude = (std::uint64_t(field) << (Format<F>::precision - 1)) + kept;
  return Bits(sign | (magnitude >= Format<F>::infinity ? Format<F>::infinity : Bits(magnitude)));
}

/// A finite number as an integer times a power of two: value = (-1)^negative · significand · 2^exponent.
struct Decomposed {
  bool negative;
  std::uint64_t significand;
  int exponent;
};

template <class F> SAMESUM_HD constexpr Decomposed decompose(BitsOf<F> bits) {
  constexpr int fraction_bits = Format<F>::precision - 1;
  const std::uint64_t magnitude = BitsOf<F>(bits & ~Format<F>::sign_bit);
  const int field = int(magnitude >> fraction_bits);
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << fraction_bits) - 1);
  const bool normal = field != 0;
  return {(bits & Format<F>::sign_bit) != 0, fraction | (std::uint64_t(normal) << fraction_bits),
          Format<F>::min_quantum + (normal ? field - 1 : 0)};
}

/// Rounds once, to nearest, ties to even, from any format to any other. NaN becomes the canonical one.
template <class To, class From> SAMESUM_HD constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    const BitsOf<From> bits = to_bits(x);
    const BitsOf<From> magnitude = BitsOf<From>(bits & ~Format<From>::sign_bit);
    if (magnitude > Format<From>::infinity) return from_bits<To>(Format<To>::canonical_nan);
    if (magnitude == Format<From>::infinity)
      return from_bits<To>(BitsOf<To>((bits == magnitude ? 0 : Format<To>::sign_bit) | Format<To>::infinity));
    const Decomposed d = decompose<From>(bits);
    return from_bits<To>(round_to_bits<To>(d.negative, d.significand, d.exponent));
  }
}

constexpr fp16::fp16(float x) : fp16{convert<fp16>(x)} {}
constexpr fp16::fp16(double x) : fp16{convert<fp16>(x)} {}
constexpr fp16::operator float() const { return convert<float>(*this); }
constexpr fp16::operator double() const { return convert<double>(*this); }
constexpr bf16::bf16(float x) : bf16{convert<bf16>(x)} {}
constexpr bf16::bf16(double x) : bf16{convert<bf16>(x)} {}
constexpr bf16::operator float() const { return convert<float>(*this); }
constexpr bf16::operator double() const { return convert<double>(*this); }

}  // namespace samesum
