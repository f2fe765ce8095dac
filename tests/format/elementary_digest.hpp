/// Digests of the bits of all results of exp and log, which must be the same on all backends.
#pragma once

#include <cstdint>

#include "samesum/format/elementary.hpp"

namespace samesum::testing_support {

enum class Function { exp, log };

/// Golden digests of the results for all fp32 arguments (for exp, those with a sign bit), and for every
/// `odd_stride`-th of them. A change breaks users who compare results of two versions.
inline constexpr std::uint64_t odd_stride = 257;
struct GoldenDigest {
  Function function;
  std::uint64_t of_all, of_some;
};
inline constexpr GoldenDigest golden_digests[] = {{Function::exp, 0xf8a33468e374212e, 0xe7e1c03f3f8faec5},
                                                  {Function::log, 0xfbc49a022cbff658, 0x77d3cb23ee54f10}};

/// Bits of the first argument; the others are first + stride, … below 2^32.
constexpr std::uint64_t first_argument(Function function) {
  return function == Function::exp ? 0x80000000u : 0;
}

/// Golden digests of the results for the first `all_in_fp64` and `some_in_fp64` of the arguments_in_fp64.
inline constexpr std::uint64_t all_in_fp64 = 10'000'000, some_in_fp64 = 1'000'000;
inline constexpr GoldenDigest golden_digests_in_fp64[] = {
    {Function::exp, 0xbe18ac87431801ce, 0x77f99465dde35869},
    {Function::log, 0x7729260aebf61a93, 0xfbc1a4ef87990978}};

/// Argument i of the digests in fp64. Those of exp have any significand and magnitudes from 2^-40 to 2^10, so
/// that results of all kinds occur. Every second one of log is in [1/2, 2); the others have any bits but a
/// sign.
SAMESUM_HD inline double argument_in_fp64(Function function, std::uint64_t i) {
  std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  mixed ^= mixed >> 31;
  const std::uint64_t significand = mixed >> 12;
  if (function == Function::exp)
    return from_bits<double>(std::uint64_t{1} << 63 | (983 + mixed % 50) << 52 | significand);
  return from_bits<double>(i % 2 ? (1022 + mixed % 2) << 52 | significand : mixed >> 1);
}

/// Returns the contribution of one argument. The digest is the sum of all contributions, so it does not
/// depend on their order.
SAMESUM_HD inline std::uint64_t share(std::uint32_t argument, float result) {
  const std::uint32_t bits = result == result ? to_bits(result) : Format<fp32>::canonical_nan;
  std::uint64_t mixed = (std::uint64_t{argument} << 32 | bits) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 32;
}

SAMESUM_HD inline std::uint64_t share(double argument, double result) {
  const std::uint64_t bits = result == result ? to_bits(result) : Format<fp64>::canonical_nan;
  std::uint64_t mixed = to_bits(argument) * 0x9e3779b97f4a7c15u ^ bits;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 32;
}

template <class F, int W> SAMESUM_HD inline Pack<F, W> apply(Function function, Pack<F, W> x) {
  return function == Function::exp ? exp_of_nonpositive(x) : log(x);
}

}  // namespace samesum::testing_support
