/// The arithmetic of a format: packs of W values in native registers, rounded to the format after every
/// operation.
///
/// The accumulators are templates over this type. W = 1 is a scalar (the reference, a GPU thread), W > 1 a
/// vector of lanes. Lanes are independent, so the bits of a lane do not depend on W.
///
/// The code relies on round to nearest without flush to zero. On a CPU the caller holds a
/// FloatingPointEnvironment (base/environment.hpp).
#pragma once

#include <cmath>
#include <cstring>
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(__F16C__) || defined(__FMA__)
#include <immintrin.h>
#endif

#include "samesum/format/format.hpp"

namespace samesum {

namespace detail {
template <class C, int W> struct Register { typedef C type __attribute__((vector_size(sizeof(C) * W))); };
template <class C> struct Register<C, 1> { using type = C; };
}  // namespace detail

/// W numbers of a native type: a compiler vector, or the type itself if W = 1.
template <class C, int W> using Register = typename detail::Register<C, W>::type;

/// Converts each lane by a static_cast.
template <class To, int W, class V> SAMESUM_HD inline Register<To, W> convert_lanes(V v) {
#if defined(__AVX512F__) && !defined(__CUDACC__)  // g++ 12 converts halves and joins them
  if constexpr (std::is_same_v<To, double> && std::is_same_v<V, Register<float, 8>> && W == 8)
    return Register<double, 8>(_mm512_maskz_cvtps_pd(0xff, __m256(v)));
#endif
  if constexpr (W == 1)
    return static_cast<To>(v);
  else
    return __builtin_convertvector(v, Register<To, W>);
}

/// Value of type To with the bit pattern of v.
template <class To, class From> SAMESUM_HD inline To same_bits(From v) { return __builtin_bit_cast(To, v); }

#if defined(__F16C__) && !defined(__CUDACC__)
/// Whether processor instructions convert packs of width W between fp16 and fp32. They round to nearest, ties
/// to even, in any environment.
template <int W> inline constexpr bool has_f16c = W == 1 || W == 4 || W == 8;
#if defined(__AVX512F__)
template <> inline constexpr bool has_f16c<16> = true;
inline constexpr __mmask16 all_lanes = 0xffff;  // g++ 12 warns of undefined operands if there is no mask
#endif
template <int W> SAMESUM_HD inline Register<float, W> widen_halves(Register<std::uint16_t, W> x) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return Register<float, W>(_mm512_maskz_cvtph_ps(all_lanes, __m256i(x)));
#endif
  if constexpr (W == 8) return Register<float, W>(_mm256_cvtph_ps(__m128i(x)));
  if constexpr (W == 4) return Register<float, W>(_mm_cvtph_ps(__m128i{same_bits<long long>(x)}));
  if constexpr (W == 1) return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x)));
}
template <int W> SAMESUM_HD inline Register<float, W> round_to_halves(Register<float, W> x) {
#if defined(__AVX512F__)
  if constexpr (W == 16)
    return Register<float, W>(_mm512_maskz_cvtph_ps(
        all_lanes, _mm512_maskz_cvtps_ph(all_lanes, __m512(x), _MM_FROUND_TO_NEAREST_INT)));
#endif
  if constexpr (W == 8)
    return Register<float, W>(_mm256_cvtph_ps(_mm256_cvtps_ph(__m256(x), _MM_FROUND_TO_NEAREST_INT)));
  if constexpr (W == 4)
    return Register<float, W>(_mm_cvtph_ps(_mm_cvtps_ph(__m128(x), _MM_FROUND_TO_NEAREST_INT)));
  if constexpr (W == 1)
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT)));
}
#else
template <int W> inline constexpr bool has_f16c = false;
#endif

/// Unsigned integer type as wide as the native type C.
template <class C> using WordOf = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;

/// Rounds each lane of a native type (float or double) once to the values of F, to nearest, ties to even.
template <class F, class C, int W> SAMESUM_HD inline Register<C, W> round_lanes(Register<C, W> x) {
  using Word = WordOf<C>;
  using Words = Register<Word, W>;
  using Native = Format<C>;
  constexpr int excess = Native::precision - Format<F>::precision;
#if defined(__CUDA_ARCH__)  // single instructions
  if constexpr (std::is_same_v<F, fp16> && sizeof(C) == 4) return __half2float(__float2half_rn(x));
  if constexpr (std::is_same_v<F, fp16> && sizeof(C) == 8) return __half2float(__double2half(x));
  if constexpr (std::is_same_v<F, bf16> && sizeof(C) == 4) return __bfloat162float(__float2bfloat16_rn(x));
#endif
#if defined(__F16C__) && !defined(__CUDACC__)
  if constexpr (std::is_same_v<F, fp16> && sizeof(C) == 4 && has_f16c<W>) return round_to_halves<W>(x);
#endif
  constexpr Word sign_bit = Native::sign_bit, infinity = Native::infinity;
  if constexpr (excess == 0) {
    return x;
  } else if constexpr (Format<F>::max_exponent == Native::max_exponent) {
    // F has the same exponents and fewer significant bits, so the bit pattern is rounded as an integer. A
    // carry moves into the exponent, and subnormals need no special case. Only a NaN must not carry.
    const Words bits = same_bits<Words>(x);
    const Words odd = (bits >> excess) & Word{1};
    const Words rounded = (bits + (Word{1} << (excess - 1)) - Word{1} + odd) & ~((Word{1} << excess) - 1);
    return x == x ? same_bits<Register<C, W>>(rounded) : x;
  } else {
    // The last bit of the pivot, a power of two, has the weight of the last bit of F at x: adding the pivot
    // rounds, and subtracting it is exact.
    constexpr Word lowest = Word(Format<F>::min_exponent + Native::max_exponent) << (Native::precision - 1);
    const Words bits = same_bits<Words>(x);
    const Words sign = bits & sign_bit;
    const Words exponent = bits & infinity;
    const Words clamped = exponent > lowest ? exponent : Words{} + lowest;
    const auto pivot =
        same_bits<Register<C, W>>((clamped + (Word(excess) << (Native::precision - 1))) | sign);
    const Register<C, W> rounded = (x + pivot) - pivot;
    const Words magnitude = same_bits<Words>(rounded) & ~sign_bit;
    // Magnitudes beyond the largest finite value become infinity. Infinities and NaN, for which the pivot is
    // meaningless, stay unchanged.
    constexpr Word largest = to_bits<C>(static_cast<C>(Format<F>::max_finite));
    const Words in_range = magnitude > largest ? Words{} + infinity : magnitude;
    constexpr Word too_large = Word(Format<F>::max_exponent + 1 + Native::max_exponent)
                               << (Native::precision - 1);
    const Words finite = exponent >= too_large ? Words{} + infinity : in_range;
    return exponent == infinity ? x : same_bits<Register<C, W>>(finite | sign);
  }
}

/// a·b + c in each lane, rounded once. Without a processor instruction libm computes it, correctly rounded
/// too.
template <class C, int W>
SAMESUM_HD inline Register<C, W> fma_lanes(Register<C, W> a, Register<C, W> b, Register<C, W> c) {
  constexpr std::size_t bytes = sizeof(C) * W;
  static_cast<void>(bytes);
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(C) == 4)
    return __fmaf_rn(a, b, c);
  else
    return __fma_rn(a, b, c);
#else
#if defined(__FMA__) && !defined(__CUDACC__)
  using V = Register<C, W>;
  if constexpr (sizeof(C) == 4) {
#if defined(__AVX512F__)
    if constexpr (bytes == 64) return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#endif
    if constexpr (bytes == 32) return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
    if constexpr (bytes == 16) return V(_mm_fmadd_ps(__m128(a), __m128(b), __m128(c)));
  } else {
#if defined(__AVX512F__)
    if constexpr (bytes == 64) return V(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#endif
    if constexpr (bytes == 32) return V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
    if constexpr (bytes == 16 && W == 2) return V(_mm_fmadd_pd(__m128d(a), __m128d(b), __m128d(c)));
  }
#endif
  if constexpr (W == 1) {
    if constexpr (sizeof(C) == 4)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
  } else {
    Register<C, W> sum{};
    for (int l = 0; l < W; ++l) sum[l] = fma_lanes<C, 1>(a[l], b[l], c[l]);
    return sum;
  }
#endif
}

/// W values of format F. +, - and * round each lane once to F, to nearest, ties to even.
template <class F, int W> struct Pack {
  using Format = F;
  using Carrier = CarrierOf<F>;
  using Storage = Register<Carrier, W>;
  static constexpr int width = W;

  Storage v;

  SAMESUM_HD static Pack zero() { return {Storage{}}; }
  SAMESUM_HD static Pack minus_zero() { return {-Storage{}}; }
  /// The number x, a value of F, in each lane.
  SAMESUM_HD static Pack broadcast(Carrier x) { return {x - Storage{}}; }

  /// W elements of any format, each rounded once to F.
  template <class T> SAMESUM_HD static Pack load(const T* x);
  /// One element, rounded once to F, for W = 1.
  template <class T> SAMESUM_HD static Pack of(T x) { return load(&x); }

  SAMESUM_HD friend Pack operator+(Pack a, Pack b) { return {round_lanes<F, Carrier, W>(a.v + b.v)}; }
  SAMESUM_HD friend Pack operator-(Pack a, Pack b) { return {round_lanes<F, Carrier, W>(a.v - b.v)}; }
  SAMESUM_HD friend Pack operator*(Pack a, Pack b) { return {round_lanes<F, Carrier, W>(a.v * b.v)}; }
  SAMESUM_HD friend auto operator==(Pack a, Pack b) { return a.v == b.v; }

  /// a·b + c, rounded once. Not for formats with a wider carrier, where rounding the sum twice would change
  /// bits.
  SAMESUM_HD friend Pack fma(Pack a, Pack b, Pack c) {
    static_assert(std::is_same_v<F, Carrier>, "samesum: fma exists only for fp32 and fp64");
    return {fma_lanes<Carrier, W>(a.v, b.v, c.v)};
  }
};

/// One value of format F.
template <class F> using Scalar = Pack<F, 1>;

/// condition ? a : b in each lane.
template <class Mask, class F, int W>
SAMESUM_HD inline Pack<F, W> select(Mask condition, Pack<F, W> a, Pack<F, W> b) {
  return {condition ? a.v : b.v};
}

/// Whether each lane is finite.
template <class F, int W> SAMESUM_HD inline auto is_finite(Pack<F, W> a) {
  if constexpr (W == 1)
    return std::abs(a.v) < std::numeric_limits<CarrierOf<F>>::infinity();
  else
    return (a.v - a.v) == typename Pack<F, W>::Storage{};  // inf - inf and NaN - NaN are NaN
}

/// A pack whose values are assumed to be neither zero, infinite nor NaN, for the fast paths of compensated
/// accumulators. They test for these values at every step, although they are rare; here the tests are
/// constants.
/// The backend checks each final state, and repeats the sum with the plain pack if the assumption may have
/// failed. That works for accumulators whose first number is the sum, and which test for zero only to keep
/// its sign.
template <class V> struct Unchecked {
  V v;

  SAMESUM_HD static Unchecked zero() { return {V::zero()}; }
  SAMESUM_HD static Unchecked minus_zero() { return {V::minus_zero()}; }
  template <class T> SAMESUM_HD static Unchecked of(T x) { return {V::of(x)}; }

  SAMESUM_HD friend Unchecked operator+(Unchecked a, Unchecked b) { return {a.v + b.v}; }
  SAMESUM_HD friend Unchecked operator-(Unchecked a, Unchecked b) { return {a.v - b.v}; }
  SAMESUM_HD friend std::false_type operator==(Unchecked, Unchecked) { return {}; }
  SAMESUM_HD friend std::true_type is_finite(Unchecked) { return {}; }
  SAMESUM_HD friend Unchecked select(std::true_type, Unchecked a, Unchecked) { return a; }
  SAMESUM_HD friend Unchecked select(std::false_type, Unchecked, Unchecked b) { return b; }
};

/// A rounded sum and its rounding error: sum + error = a + b exactly.
template <class V> struct SumAndError { V sum, error; };

/// TwoSum (Knuth 1969, TAOCP 4.2.2 theorem B; Møller 1965): six operations, for any a and b. The error is
/// not finite if the sum is not.
template <class V> SAMESUM_HD inline SumAndError<V> two_sum(V a, V b) {
  const V sum = a + b;
  const V b_part = sum - a;
  const V a_part = sum - b_part;
  return {sum, (a - a_part) + (b - b_part)};
}

template <class F, int W> template <class T> SAMESUM_HD inline Pack<F, W> Pack<F, W>::load(const T* x) {
  using Carried = CarrierOf<T>;
  Register<Carried, W> wide;
  if constexpr (sizeof(T) == 2) {
    // Load 16 bits and widen them to the 32 bits of the carrier.
    Register<std::uint16_t, W> halves;
    std::memcpy(&halves, x, sizeof(T) * W);
    using Words = Register<std::uint32_t, W>;
    using Narrow = samesum::Format<T>;
    constexpr int excess = samesum::Format<float>::precision - Narrow::precision,
                  bias = samesum::Format<float>::max_exponent - Narrow::max_exponent;
    const Words bits = convert_lanes<std::uint32_t, W>(halves);
    if constexpr (bias == 0) {
      wide = same_bits<Register<float, W>>(Words(bits << excess));
    } else if constexpr (std::is_same_v<T, fp16> && has_f16c<W>) {
      wide = widen_halves<W>(halves);
    } else {
      // Shifts move the fields into place; a multiplication corrects the exponent bias and normalises
      // subnormals.
      constexpr float rebias = static_cast<float>(power_of_two(bias));
      const Words magnitude = bits & 0x7fffu;
      const Register<float, W> scaled = same_bits<Register<float, W>>(Words(magnitude << excess)) * rebias;
      const Words special = (magnitude << excess) | Words(Words{} + samesum::Format<float>::infinity);
      const Words finite = same_bits<Words>(scaled);
      const Words value = magnitude >= Narrow::infinity ? special : finite;
      wide = same_bits<Register<float, W>>(Words(value | ((bits & 0x8000u) << 16)));
    }
  } else {
    std::memcpy(&wide, x, sizeof(T) * W);
  }
  if constexpr (std::is_same_v<T, F>)
    return {wide};
  else if constexpr (samesum::Format<F>::precision == samesum::Format<Carrier>::precision)
    return {convert_lanes<Carrier, W>(wide)};  // exact if it widens; one rounding from double to float
  else
    return {convert_lanes<Carrier, W>(round_lanes<F, Carried, W>(wide))};
}

/// Value of a scalar as a number of its format. It is already rounded; NaN becomes the canonical NaN.
template <class F> SAMESUM_HD inline F to_format(Scalar<F> x) {
  if (!(x.v == x.v)) return from_bits<F>(Format<F>::canonical_nan);
  return convert<F>(x.v);
}

}  // namespace samesum
