/// Binary floating-point formats: their parameters, and rounding to them in integer arithmetic.
///
/// All functions here use exact integer arithmetic, so no result depends on the caller's rounding mode,
/// flush-to-zero or compiler flags. A GPU converts by instructions instead, which round to the same bits
/// unless nvcc flushes subnormal numbers to zero. Tests compare the arithmetic of the accumulators
/// (pack.hpp) with these definitions.
#pragma once

#if defined(__CUDACC_RTC__)
#include "samesum/base/nvrtc.hpp"
#else
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#endif

#include "samesum/base/config.hpp"

namespace samesum {

/// IEEE 754 binary16: 11 significant bits, largest finite value 65504. Bit-compatible with CUDA's `__half`.
struct fp16 {
  std::uint16_t bits = 0;                      ///< sign, exponent and fraction, sign in the highest bit
  fp16() = default;                            ///< +0
  explicit constexpr fp16(float x);            ///< rounds once, to nearest, ties to even
  explicit constexpr fp16(double x);           ///< rounds once, to nearest, ties to even
  explicit constexpr operator float() const;   ///< exact
  explicit constexpr operator double() const;  ///< exact
};

/// bfloat16: 8 significant bits and the exponent range of fp32. Bit-compatible with CUDA's `__nv_bfloat16`.
struct bf16 {
  std::uint16_t bits = 0;                      ///< sign, exponent and fraction, sign in the highest bit
  bf16() = default;                            ///< +0
  explicit constexpr bf16(float x);            ///< rounds once, to nearest, ties to even
  explicit constexpr bf16(double x);           ///< rounds once, to nearest, ties to even
  explicit constexpr operator float() const;   ///< exact
  explicit constexpr operator double() const;  ///< exact
};

using fp32 = float;   ///< IEEE 754 binary32
using fp64 = double;  ///< IEEE 754 binary64

/// Defining parameters of a format, from IEEE 754-2019, table 3.5. `precision` is the number of significant
/// bits, the hidden bit included.
/// `Carrier` is the native type in which arithmetic of the format is computed. It holds every value of the
/// format, and its rounding of +, - and * is innocuous: rounding once more, to the format, gives the
/// correctly rounded result (Figueroa 1995: twice the precision and two more bits suffice).
template <class F> struct FormatParameters;
template <> struct FormatParameters<fp16> {
  static constexpr std::string_view name = "fp16";
  static constexpr int precision = 11, max_exponent = 15;
  using Bits = std::uint16_t;
  using Carrier = float;
};
template <> struct FormatParameters<bf16> {
  static constexpr std::string_view name = "bf16";
  static constexpr int precision = 8, max_exponent = 127;
  using Bits = std::uint16_t;
  using Carrier = float;
};
template <> struct FormatParameters<fp32> {
  static constexpr std::string_view name = "fp32";
  static constexpr int precision = 24, max_exponent = 127;
  using Bits = std::uint32_t;
  using Carrier = float;
};
template <> struct FormatParameters<fp64> {
  static constexpr std::string_view name = "fp64";
  static constexpr int precision = 53, max_exponent = 1023;
  using Bits = std::uint64_t;
  using Carrier = double;
};

/// 2^e as a double, for -1074 <= e <= 1023.
constexpr double power_of_two(int e) {
  return std::bit_cast<double>(e >= -1022 ? std::uint64_t(e + 1023) << 52 : std::uint64_t{1} << (e + 1074));
}

/// Parameters of a format and the constants derived from them.
template <class F> struct Format : FormatParameters<F> {
  using typename FormatParameters<F>::Bits;
  using FormatParameters<F>::precision, FormatParameters<F>::max_exponent;
  static constexpr int width = 8 * sizeof(Bits);         ///< bits in memory
  static constexpr int min_exponent = 1 - max_exponent;  ///< exponent of the smallest normal number
  static constexpr int min_quantum = min_exponent - precision + 1;  ///< smallest subnormal = 2^min_quantum
  /// Bit patterns of -0, of +infinity, and of the one NaN that the library returns.
  static constexpr Bits sign_bit = Bits(Bits{1} << (width - 1));
  static constexpr Bits infinity = Bits(Bits(2 * max_exponent + 1) << (precision - 1));
  static constexpr Bits canonical_nan = Bits(infinity | (Bits{1} << (precision - 2)));
  /// 2^-precision, a bound on the relative error of rounding to nearest without overflow and underflow.
  static constexpr double unit_roundoff = power_of_two(-precision);
  static constexpr double smallest_subnormal = power_of_two(min_quantum);
  static constexpr double max_finite = (2 - 2 * unit_roundoff) * power_of_two(max_exponent);
};

/// Unsigned integer type of the bit patterns of F.
template <class F> using BitsOf = typename Format<F>::Bits;
/// Native type in which arithmetic of F is computed.
template <class F> using CarrierOf = typename Format<F>::Carrier;

/// Bit pattern of x.
template <class F> constexpr BitsOf<F> to_bits(F x) { return std::bit_cast<BitsOf<F>>(x); }
/// Number with that bit pattern.
template <class F> constexpr F from_bits(BitsOf<F> bits) { return std::bit_cast<F>(bits); }

/// Whether the bit pattern is that of a NaN.
template <class F> constexpr bool is_nan_bits(BitsOf<F> bits) {
  return BitsOf<F>(bits & ~Format<F>::sign_bit) > Format<F>::infinity;
}

/// Number of leading zeros. In device code std::countl_zero compiles, but returns wrong numbers.
SAMESUM_HD constexpr int leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) return __clzll(static_cast<long long>(x));
#endif
  return std::countl_zero(x);
}

/// Bit pattern of the value of F nearest to (-1)^negative · significand · 2^exponent, ties to even.
/// The last bit of the significand may be sticky, that is 1 if there is a remainder below it, provided that
/// the significand then has at least two bits more than F's precision.
template <class F>
SAMESUM_HD constexpr BitsOf<F> round_to_bits(bool negative, std::uint64_t significand,
                                             std::int64_t exponent) {
  using Bits = BitsOf<F>;
  const Bits sign = negative ? Format<F>::sign_bit : Bits{0};
  if (significand == 0) return sign;
  const int zeros = leading_zeros(significand);
  significand <<= zeros;
  exponent -= zeros;
  // The quantum is the weight of the last bit of the result.
  std::int64_t quantum = exponent + 64 - Format<F>::precision;
  if (quantum < Format<F>::min_quantum) quantum = Format<F>::min_quantum;
  const std::int64_t shift = quantum - exponent;  // at least 64 - 53
  if (shift > 64) return sign;                    // below half of the smallest subnormal
  std::uint64_t kept = shift == 64 ? 0 : significand >> shift;
  const std::uint64_t rest = significand << (64 - shift);
  const std::uint64_t half = std::uint64_t{1} << 63;
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // The hidden bit of a normal number adds one to the exponent field, and so does a carry out of the
  // significand.
  const std::int64_t field = quantum - Format<F>::min_quantum;
  if (field > 2 * Format<F>::max_exponent) return Bits(sign | Format<F>::infinity);
  const std::uint64_t magnitude = (std::uint64_t(field) << (Format<F>::precision - 1)) + kept;
  return Bits(sign | (magnitude >= Format<F>::infinity ? Format<F>::infinity : Bits(magnitude)));
}

/// A finite number as a signed integer times a power of two: (-1)^negative · significand · 2^exponent.
struct Decomposed {
  bool negative;
  std::uint64_t significand;
  int exponent;
};

/// Decomposes a finite number, given by its bit pattern.
template <class F> SAMESUM_HD constexpr Decomposed decompose(BitsOf<F> bits) {
  constexpr int fraction_bits = Format<F>::precision - 1;
  const std::uint64_t magnitude = BitsOf<F>(bits & ~Format<F>::sign_bit);
  const int field = int(magnitude >> fraction_bits);
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << fraction_bits) - 1);
  const bool normal = field != 0;
  return {(bits & Format<F>::sign_bit) != 0, fraction | (std::uint64_t(normal) << fraction_bits),
          Format<F>::min_quantum + (normal ? field - 1 : 0)};
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SAMESUM_CONVERTS_BY_INSTRUCTIONS
/// Roundings by the instructions of a GPU, which give another NaN than the canonical one.
__device__ inline void convert_by_instructions(float x, fp16& to) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}
__device__ inline void convert_by_instructions(double x, fp16& to) {
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(to.bits) : "d"(x));
}
__device__ inline void convert_by_instructions(float x, bf16& to) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}
__device__ inline void convert_by_instructions(double x, bf16& to) {
  // The float is rounded to odd, so that the second rounding is that of x (Boldo and Melquiond 2008).
  const float towards_zero = __double2float_rz(x);
  const auto bits = to_bits(towards_zero) | std::uint32_t{static_cast<double>(towards_zero) != x};
  convert_by_instructions(from_bits<float>(bits), to);
}
__device__ inline void convert_by_instructions(double x, float& to) { to = static_cast<float>(x); }
__device__ inline void convert_by_instructions(float x, double& to) { to = x; }
__device__ inline void convert_by_instructions(fp16 x, float& to) {
  asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(x.bits));
}
__device__ inline void convert_by_instructions(bf16 x, float& to) {
  to = from_bits<float>(std::uint32_t{x.bits} << 16);
}
/// Guards against a missing overload: without it, a double would become a float first, and be rounded twice.
template <class From, class To> __device__ void convert_by_instructions(From x, To& to) = delete;
#endif

/// Rounds x once, to nearest, ties to even, to another format; NaN becomes the canonical NaN. If the formats
/// are the same, returns x unchanged.
template <class To, class From> SAMESUM_HD constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
#if defined(SAMESUM_CONVERTS_BY_INSTRUCTIONS)
    if constexpr (requires(To & to) { convert_by_instructions(x, to); })
      if (!std::is_constant_evaluated()) {
        To to{};
        convert_by_instructions(x, to);
        return is_nan_bits<From>(to_bits(x)) ? from_bits<To>(Format<To>::canonical_nan) : to;
      }
#endif
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
