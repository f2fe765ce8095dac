/// Exact sums of a pack of streams in three doubles each. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"

namespace samesum::cpu {
namespace {

/// residual(), by Dekker (1971) where it would call a function for each lane.
template <class V> [[gnu::always_inline]] inline V product_error(V a, V b, V product) {
#if defined(__FMA__)
  return residual(a, b, product);
#else
  const auto upper = [](V x) {
    const V far = x * V::broadcast(0x1p27 + 1);
    return far - (far - x);
  };
  const V a_high = upper(a), b_high = upper(b), a_low = a - a_high, b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
}

/// A sum of three words. `lost` is the sum of the magnitudes of what the words could not hold.
template <int width> struct ThreeWords {
  using V = Pack<fp64, width>;
  V word[Expansions::words] = {V::zero(), V::zero(), V::zero()};
  V lost = V::zero();

  [[gnu::always_inline]] void add(V x) {
    for (V& part : word) {
      const auto [total, error] = two_sum(part, x);
      part = total;
      x = error;
    }
    lost = lost + magnitude(x);
  }
  /// Moves the sum upwards, so that the third word is below the last place of the second.
  void normalise() {
    const auto [b, c] = two_sum(word[1], word[2]);
    const auto [first, rest] = two_sum(word[0], b);
    const auto [second, third] = two_sum(rest, c);
    word[0] = first;
    word[1] = second;
    word[2] = third;
  }
  bool is_exact() const {
    std::uint64_t bits[width], any = 0;
    std::memcpy(bits, &lost.v, sizeof bits);
    for (const std::uint64_t b : bits) any |= b;
    return any == 0;
  }
};

}  // namespace
}  // namespace samesum::cpu
