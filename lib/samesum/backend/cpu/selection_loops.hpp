/// The loop that takes elements out of exact sums: -0 changes none.
#pragma once

#include "samesum/backend/cpu/kernels.hpp"

namespace samesum::cpu {

template <class F, bool masked, bool skip_nan>
std::size_t keep_selected(const F* x, const std::uint8_t* where, std::size_t n, F* out) {
  using Bits = BitsOf<F>;
  Bits kept = 0;  // n <= 2^15 fits
  for (std::size_t i = 0; i < n; ++i) {
    const Bits bits = to_bits(x[i]);
    Bits takes = 1;
    if constexpr (masked) takes = static_cast<Bits>(where[i] != 0);
    if constexpr (skip_nan) takes = static_cast<Bits>(takes & static_cast<Bits>(!is_nan_bits<F>(bits)));
    const Bits mask = static_cast<Bits>(-takes);
    out[i] = from_bits<F>(static_cast<Bits>((bits & mask) | (Format<F>::sign_bit & ~mask)));
    kept = static_cast<Bits>(kept + takes);
  }
  return kept;
}

template <class F>
std::size_t keep_selected(const void* x, const std::uint8_t* where, bool skip_nan, std::size_t n, void* out) {
  const auto* const in = static_cast<const F*>(x);
  auto* const to = static_cast<F*>(out);
  if (!where) return keep_selected<F, false, true>(in, where, n, to);
  if (skip_nan) return keep_selected<F, true, true>(in, where, n, to);
  return keep_selected<F, true, false>(in, where, n, to);
}

}  // namespace samesum::cpu
