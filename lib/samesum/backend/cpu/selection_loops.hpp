/// The loop that takes elements out of exact sums: -0 changes none.
#pragma once

#include <limits>

#include "samesum/backend/cpu/leaf.hpp"

namespace samesum::cpu {
namespace {

template <class F, bool masked, bool skip_nan> class Keep {
  static constexpr int width = vector_bytes / int{sizeof(F)};
  static constexpr std::size_t w = width;
  using Signed = std::make_signed_t<BitsOf<F>>;
  using Vector = Register<Signed, width>;
  static constexpr Signed sign = std::numeric_limits<Signed>::min(), infinity = Format<F>::infinity;

  /// -1 in each lane that is a number.
  [[gnu::always_inline]] static Vector are_numbers(Vector bits) {
    if constexpr (std::is_same_v<F, CarrierOf<F>>) {  // fp64 has no comparison of integers in the baseline
      const auto x = same_bits<Register<F, width>>(bits);
      return x == x;
    } else {
      return (bits & ~sign) <= infinity;
    }
  }
  /// Copies one vector, and returns -1 in each lane that takes part.
  [[gnu::always_inline]] static Vector one(const F* x, const std::uint8_t* where, F* out) {
    Vector bits, takes = Vector{} == Vector{};
    std::memcpy(&bits, x, sizeof bits);
    if constexpr (masked) {
      Signed flags[w];
      for (std::size_t l = 0; l < w; ++l) flags[l] = where[l];
      Vector given;
      std::memcpy(&given, flags, sizeof given);
      takes = given != Signed{0};
    }
    if constexpr (skip_nan) takes &= are_numbers(bits);
    bits = (bits & takes) | (sign & ~takes);
    std::memcpy(static_cast<void*>(out), &bits, sizeof bits);
    return takes;
  }

 public:
  static std::size_t all(const F* x, const std::uint8_t* where, std::size_t n, F* out) {
    Vector kept{};  // n <= 2^15 fits
    std::size_t i = 0;
    for (; i + w <= n; i += w) kept += one(x + i, masked ? where + i : nullptr, out + i);
    Signed counts[w];
    std::memcpy(counts, &kept, sizeof kept);
    std::int64_t count = 0;
    for (std::size_t l = 0; l < w; ++l) count -= counts[l];
    if (i < n) {
      F rest[w] = {}, kept_rest[w];
      std::uint8_t flags[w] = {};
      for (std::size_t l = 0; i + l < n; ++l) {
        rest[l] = x[i + l];
        flags[l] = masked ? where[i + l] : 1;
      }
      const Vector takes = Keep<F, true, skip_nan>::one(rest, flags, kept_rest);
      std::memcpy(counts, &takes, sizeof takes);
      for (std::size_t l = 0; i + l < n; ++l) {
        out[i + l] = kept_rest[l];
        count -= counts[l];
      }
    }
    return static_cast<std::size_t>(count);
  }
  template <class, bool, bool> friend class Keep;
};

template <class F>
std::size_t keep_selected(const void* x, const std::uint8_t* where, bool skip_nan, std::size_t n, void* out) {
  const auto* const in = static_cast<const F*>(x);
  auto* const to = static_cast<F*>(out);
  if (!where) return Keep<F, false, true>::all(in, where, n, to);
  if (skip_nan) return Keep<F, true, true>::all(in, where, n, to);
  return Keep<F, true, false>::all(in, where, n, to);
}

}  // namespace
}  // namespace samesum::cpu
