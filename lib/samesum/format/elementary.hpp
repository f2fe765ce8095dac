/// exp and log in fp32 and fp64 by one fixed sequence of operations each, which gives the same bits on every
/// processor and in packs of any width. The results of libm differ between machines.
///
/// The argument reduction is that of Tang (Table-driven implementation of the exponential function, 1989, and
/// of the logarithm, 1990), without tables: the fused multiply-add makes them unnecessary. The coefficients
/// are minimax fits of the relative error (Lawson's algorithm on Chebyshev points, at least 50 digits). They
/// are rounded to the format one after the other, lowest degree first, and after each rounding the rest are
/// fitted again. The error bounds of fp32 are the largest errors over all arguments, found by exhaustive
/// testing; those of fp64 are proved below, where u = 2^-53, an ulp is that of the result, and the relative
/// error of a polynomial is that of the values on 4001 Chebyshev points.
#pragma once

#include "samesum/format/pack.hpp"

namespace samesum {

/// Bounds on the errors of exp_of_nonpositive and log in a format F, fp32 or fp64, in ulps of the result.
template <class F> inline constexpr double exp_ulps = std::is_same_v<F, fp32> ? 0.892 : 0.97;
template <class F> inline constexpr double log_ulps = std::is_same_v<F, fp32> ? 0.934 : 0.93;

namespace detail {

/// Evaluates c[0] + c[1]·x + … by Horner's rule.
template <class V, std::size_t size>
SAMESUM_HD inline V polynomial(V x, const typename V::Carrier (&c)[size]) {
  V value = V::broadcast(c[size - 1]);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 24
#endif
  for (std::size_t i = size - 1; i > 0; --i) value = fma(value, x, V::broadcast(c[i - 1]));
  return value;
}

/// x, or, where e^x and the value computed for it round to 0, a number that stands for it; NaN stays NaN. Its
/// power of two is below all normal numbers, so that it is 0: on a CPU, a product that underflows takes many
/// times as long as others.
template <class F, int W> SAMESUM_HD inline Pack<F, W> unless_zero_exp(Pack<F, W> x) {
  constexpr bool is_short = sizeof(F) == 4;
  constexpr F least{is_short ? -104 : -746};
#if defined(__CUDA_ARCH__)  // one instruction instead of a comparison and a selection
  if constexpr (is_short) {
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x.v) : "f"(x.v), "f"(least));
    return x;
  }
#endif
  constexpr F below = static_cast<F>(-(Format<F>::max_exponent + 64) * 0x1.62e43p-1);
  return select(x.v < Pack<F, W>::broadcast(least).v, Pack<F, W>::broadcast(below), x);
}

/// ln 2 = high + low + less than half an ulp of low.
template <class F> struct Ln2;
template <> struct Ln2<fp32> { static constexpr fp32 high = 0x1.62e43p-1f, low = -0x1.05c61p-29f; };
template <> struct Ln2<fp64> {
  static constexpr fp64 high = 0x1.62e42fefa39efp-1, low = 0x1.abc9e3b39803fp-56;
};

/// 2^-64·e^r for |r| <= ln 2 / 2. The relative error of the polynomial of degree 6 in fp32 is 0.053·2^-24, of
/// that of degree 11 in fp64 0.034·2^-53.
template <int W> SAMESUM_HD inline Pack<fp32, W> scaled_exp(Pack<fp32, W> r) {
  constexpr fp32 c[] = {0x1p-64f,        0x1p-64f,        0x1.fffffcp-66f, 0x1.555494p-67f,
                        0x1.5558bep-69f, 0x1.123856p-71f, 0x1.6a3d08p-74f};
  return polynomial(r, c);
}
template <int W> SAMESUM_HD inline Pack<fp64, W> scaled_exp(Pack<fp64, W> r) {
  constexpr fp64 c[] = {0x1p-64,
                        0x1p-64,
                        0x1.000000000000ap-65,
                        0x1.5555555555508p-67,
                        0x1.55555555506f4p-69,
                        0x1.1111111124982p-71,
                        0x1.6c16c184668c3p-74,
                        0x1.a01a0139dc2f8p-77,
                        0x1.a019998fd8930p-80,
                        0x1.71df052c4705fp-83,
                        0x1.28adce82f0f1bp-86,
                        0x1.adaf47cc33fd4p-90};
  return polynomial(r, c);
}

/// log(1 + f)/f² - 1/f for f in [-1/3, 1/3]. The relative error that it gives log(1 + f) is 0.078·2^-24 in
/// fp32 and 0.012·2^-53 in fp64.
template <int W> SAMESUM_HD inline Pack<fp32, W> log_beyond_first_order(Pack<fp32, W> f) {
  constexpr fp32 c[] = {-0x1p-1f,       0x1.555506p-2f,  -0x1.fffefcp-3f, 0x1.99d044p-3f, -0x1.559c46p-3f,
                        0x1.1ed662p-3f, -0x1.f332a6p-4f, 0x1.1e678cp-3f,  -0x1.07c964p-3f};
  return polynomial(f, c);
}
template <int W> SAMESUM_HD inline Pack<fp64, W> log_beyond_first_order(Pack<fp64, W> f) {
  constexpr fp64 c[] = {-0x1p-1,
                        0x1.5555555555538p-2,
                        -0x1.fffffffffff36p-3,
                        0x1.99999999a00b8p-3,
                        -0x1.55555555650bap-3,
                        0x1.24924920b8209p-3,
                        -0x1.fffffff10b514p-4,
                        0x1.c71c7409b879cp-4,
                        -0x1.99999d5299d9cp-4,
                        0x1.745cb656832fbp-4,
                        -0x1.5554c87a673a5p-4,
                        0x1.3b1dad699f20cp-4,
                        -0x1.249f6c4e3f0c5p-4,
                        0x1.1069fb68d1892p-4,
                        -0x1.fe6a97847788ap-5,
                        0x1.efb72b9c8e6e5p-5,
                        -0x1.d6ca749b8ea55p-5,
                        0x1.563b1a8ac48d7p-5,
                        -0x1.3a85a546a7070p-5,
                        0x1.5bfe230c95b02p-4,
                        -0x1.555a85b51f312p-4};
  return polynomial(f, c);
}

}  // namespace detail

/// e^x for x <= 0, within exp_ulps, also for subnormal results, which are not flushed. exp(±0) is 1,
/// exp(-inf) is +0, exp(NaN) is NaN. For positive arguments the result is meaningless.
///
/// x = k·ln 2 + r with |r| <= ln 2 / 2. In the fused multiply-add, k·high is exact, and so is x - k·high: it
/// is below 1/2, and a multiple of half an ulp of `high`. The value of the polynomial is 2^-64·e^r, so only
/// the last product can underflow.
///
/// The error in fp64: r is off by half an ulp of its own, at most u/4, and the polynomial by 0.034u relative
/// to e^r. Horner's last step but one has a result below 1.2 and is off by at most
/// u + (u/2 + (u/8 + …)|r|)|r| <= 1.2u if r > 0, and by 0.61u if r < 0, where that result is below 1. The
/// last step multiplies this by |r| <= 0.347 and adds half an ulp. If r > 0, an ulp is 2u and the error at
/// most u + 0.42u + 1.42·0.284u = 1.83u. If r < 0, an ulp is u and the error at most 0.5u + 0.21u +
/// 0.78·0.284u = 0.94u, and less for |r| < 1/4, where r is off by u/8. A subnormal result is off by half of
/// that and half an ulp.
template <class F, int W> SAMESUM_HD inline Pack<F, W> exp_of_nonpositive(Pack<F, W> x) {
  using V = Pack<F, W>;
  using Word = WordOf<F>;
  using Words = Register<Word, W>;
  using Ln2 = detail::Ln2<F>;
  constexpr int stored = Format<F>::precision - 1;
  x = detail::unless_zero_exp(x);
  // Numbers near 1.5·2^stored are integers, so the sum t rounds x·log2 e to the integer k. The last bits of t
  // are the exponent field of 2^(k+64), which is a normal number, or 0.
  constexpr F beside = static_cast<F>(1.5 * power_of_two(stored) + Format<F>::max_exponent + 64);
  const V t = fma(x, V::broadcast(static_cast<F>(0x1.71547652b82fep+0)), V::broadcast(beside));
  const V k = t - V::broadcast(beside);
  const V r = fma(k, V::broadcast(-Ln2::low), fma(k, V::broadcast(-Ln2::high), x));
  const V power{same_bits<typename V::Storage>(Words(same_bits<Words>(t.v) << stored))};
  return detail::scaled_exp(r) * power;
}

/// Natural logarithm, within log_ulps. log(1) is +0, log(±0) is -inf, log(inf) is inf; the logarithm of a
/// negative number or NaN is NaN.
///
/// x = 2^k·(1 + f) with 1 + f in [2/3, 4/3), so that f is exact, and small where the result is small. With P
/// the polynomial, the logarithm is k·high + f + (f²·P + k·low).
///
/// In fp64, `lost` is the rounding error of big = k·high + f: k·high - big and that plus f are multiples of
/// 2^-53 below 1/2, hence exact. f² and P are off by u and at most u each, relative to f²|P| <= 0.073; the
/// sum with k·low and that with `lost`, which is 0 for |k| <= 1 if |big| < 1, round to half an ulp of 0.073,
/// u/16. The last sum adds half an ulp of the result. Up to 1/2, where k = 0 or |k| = 1, the error is at most
/// half an ulp + 2u·f²|P| + u/16, where an ulp is at least u/2 from 1/4 on: at most 0.93 ulp, 0.012u for the
/// polynomial included. Below 1/4, k = 0 and f²|P| <= 0.14 of the result, and it is less; beyond 1/2, too,
/// where an ulp is at least u.
template <class F, int W> SAMESUM_HD inline Pack<F, W> log(Pack<F, W> x) {
  using V = Pack<F, W>;
  using Word = WordOf<F>;
  using Words = Register<Word, W>;
  using Integers = Register<std::make_signed_t<Word>, W>;
  using Ln2 = detail::Ln2<F>;
  constexpr int stored = Format<F>::precision - 1, up = sizeof(F) == 4 ? 32 : 64;
  constexpr F infinity = std::numeric_limits<F>::infinity();
  constexpr Word two_thirds = sizeof(F) == 4 ? 0x3f2aaaab : 0x3fe5555555555555;
  const auto subnormal = x.v < std::numeric_limits<F>::min();
  const V normal = select(subnormal, x * V::broadcast(static_cast<F>(power_of_two(up))), x);
  const Words bits = same_bits<Words>(normal.v);
  const Words exponent = (bits - two_thirds) & Word(Format<F>::sign_bit | Format<F>::infinity);
  const Integers whole = same_bits<Integers>(exponent) >> stored;
  const V unscaled{convert_lanes<F, W>(whole)};
  const V k = select(subnormal, unscaled - V::broadcast(up), unscaled);
  const V f = V{same_bits<typename V::Storage>(Words(bits - exponent))} - V::broadcast(1);
  const V high = V::broadcast(Ln2::high), low = V::broadcast(Ln2::low);
  const V beyond = detail::log_beyond_first_order(f);
  V finite;
  if constexpr (std::is_same_v<F, fp32>) {
    finite = fma(k, high, fma(k, low, fma(f * f, beyond, f)));
  } else {
    const V big = fma(k, high, f), lost = fma(k, high, V::minus_zero() - big) + f;
    finite = big + (fma(f * f, beyond, k * low) + lost);
  }
  const V large = select(x.v == infinity, V::broadcast(infinity), finite);
  const V nothing =
      select(x.v == F{0}, V::broadcast(-infinity), V::broadcast(std::numeric_limits<F>::quiet_NaN()));
  return select(x.v > F{0}, large, nothing);
}

}  // namespace samesum
