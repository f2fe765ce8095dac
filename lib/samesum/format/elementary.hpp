/// exp and log in fp32 by one fixed sequence of operations, which gives the same bits on every processor and
/// in packs of any width. The results of libm differ between machines.
///
/// The argument reduction is that of Tang (Table-driven implementation of the exponential function, 1989, and
/// of the logarithm, 1990), without tables: the fused multiply-add makes them unnecessary. The coefficients
/// are minimax fits of the relative error (Lawson's algorithm on 1500 Chebyshev points, 50 digits). They are
/// rounded to fp32 one after the other, lowest degree first, and after each rounding the rest are fitted
/// again. Each error bound is the largest error over all fp32 arguments, found by exhaustive testing.
#pragma once

#include "samesum/format/pack.hpp"

namespace samesum {

namespace detail {

/// Evaluates c[0] + c[1]·x + … by Horner's rule.
template <class V, std::size_t size> SAMESUM_HD inline V polynomial(V x, const float (&c)[size]) {
  V sum = V::broadcast(c[size - 1]);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 16
#endif
  for (std::size_t i = size - 1; i > 0; --i) sum = fma(sum, x, V::broadcast(c[i - 1]));
  return sum;
}

/// Maximum of x and `least`; NaN stays NaN.
template <int W> SAMESUM_HD inline Pack<fp32, W> at_least(float least, Pack<fp32, W> x) {
#if defined(__CUDA_ARCH__)  // one instruction instead of a comparison and a selection
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x.v) : "f"(x.v), "f"(least));
  return x;
#else
  const auto low = Pack<fp32, W>::broadcast(least);
  return select(low.v > x.v, low, x);
#endif
}

}  // namespace detail

/// e^x for x <= 0, within 0.892 ulp (ulp of the result, also for subnormal results). exp(±0) is 1, exp(-inf)
/// is +0, exp(NaN) is NaN. Results below the smallest normal number are rounded, not flushed. For positive
/// arguments the result is meaningless.
///
/// x = k·ln 2 + r with |r| <= ln 2 / 2. In the fused multiply-add, k·hi is exact, and so is x - k·hi (at most
/// 24 bits are left). The relative error of the polynomial of degree 6 is 0.053·2^-24. Its value is
/// 2^-64·e^r, so only the last product can underflow.
template <int W> SAMESUM_HD inline Pack<fp32, W> exp_of_nonpositive(Pack<fp32, W> x) {
  using V = Pack<fp32, W>;
  using Words = Register<std::uint32_t, W>;
  // Below -104, both e^x and the value computed for it round to 0.
  x = detail::at_least(-104.0f, x);
  // Numbers near 1.5·2^23 are integers, so the sum t rounds x·log2 e to the integer k. The last bits of t are
  // k + 191, the exponent field of 2^(k+64). k + 191 is between 41 and 191, so 2^(k+64) is a normal number.
  constexpr float beside = 0x1.8p23f + 191;
  const V t = fma(x, V::broadcast(0x1.715476p+0f), V::broadcast(beside));
  const V k = t - V::broadcast(beside);
  const V r = fma(k, V::broadcast(0x1.05c61p-29f), fma(k, V::broadcast(-0x1.62e43p-1f), x));
  constexpr float c[] = {0x1p-64f,        0x1p-64f,        0x1.fffffcp-66f, 0x1.555494p-67f,
                         0x1.5558bep-69f, 0x1.123856p-71f, 0x1.6a3d08p-74f};
  const V power{same_bits<typename V::Storage>(Words(same_bits<Words>(t.v) << 23))};
  return detail::polynomial(r, c) * power;
}

/// Natural logarithm, within 0.934 ulp. log(1) is +0, log(±0) is -inf, log(inf) is inf; the logarithm of a
/// negative number or NaN is NaN.
///
/// x = 2^k·(1 + f) with 1 + f in [2/3, 4/3), so that f is exact, and small where the result is small. The
/// relative error of the polynomial of degree 10 is 0.078·2^-24.
template <int W> SAMESUM_HD inline Pack<fp32, W> log(Pack<fp32, W> x) {
  using V = Pack<fp32, W>;
  using Words = Register<std::uint32_t, W>;
  using Integers = Register<std::int32_t, W>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t two_thirds = 0x3f2aaaab;
  const auto subnormal = x.v < 0x1p-126f;
  const V normal = select(subnormal, x * V::broadcast(0x1p32f), x);
  const Words bits = same_bits<Words>(normal.v);
  const Words exponent = (bits - two_thirds) & 0xff800000u;
  const Integers whole = same_bits<Integers>(exponent) >> 23;
  const V k{convert_lanes<float, W>(whole)};
  const V f = V{same_bits<typename V::Storage>(Words(bits - exponent))} - V::broadcast(1);
  constexpr float c[] = {-0x1p-1f,       0x1.555506p-2f,  -0x1.fffefcp-3f, 0x1.99d044p-3f, -0x1.559c46p-3f,
                         0x1.1ed662p-3f, -0x1.f332a6p-4f, 0x1.1e678cp-3f,  -0x1.07c964p-3f};
  const V of_f = fma(f * f, detail::polynomial(f, c), f);
  const V scale = select(subnormal, k - V::broadcast(32), k);
  const V finite = fma(scale, V::broadcast(0x1.62e43p-1f), fma(scale, V::broadcast(-0x1.05c61p-29f), of_f));
  const V large = select(x.v == infinity, V::broadcast(infinity), finite);
  const V nothing =
      select(x.v == 0.0f, V::broadcast(-infinity), V::broadcast(std::numeric_limits<float>::quiet_NaN()));
  return select(x.v > 0.0f, large, nothing);
}

}  // namespace samesum
