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

/// Returns the contribution of one argument. The digest is the sum of all contributions, so it does not
/// depend on their order.
SAMESUM_HD inline std::uint64_t share(std::uint32_t argument, float result) {
  const std::uint32_t bits = result == result ? to_bits(result) : Format<fp32>::canonical_nan;
  std::uint64_t mixed = (std::uint64_t{argument} << 32 | bits) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 32;
}

template <int W> SAMESUM_HD inline Pack<fp32, W> apply(Function function, Pack<fp32, W> x) {
  return function == Function::exp ? exp_of_nonpositive(x) : log(x);
}

}  // namespace samesum::testing_support
