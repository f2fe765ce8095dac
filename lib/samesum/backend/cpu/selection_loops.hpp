/// Elements of which some take no part: -0 stands in for those, which changes no exact sum.
#pragma once

#include <limits>

#include "samesum/backend/cpu/leaf.hpp"

namespace samesum::cpu {
namespace {

/// Elements, of which those whose flag is 0 take no part, and, if `skip_nan`, NaN.
template <class T> struct SelectedElements {
  using Signed = std::make_signed_t<BitsOf<T>>;
  static constexpr Signed sign = std::numeric_limits<Signed>::min(), infinity = Format<T>::infinity;
  const T* x;
  const std::uint8_t* where;
  bool skip_nan;

  /// The bit patterns of W elements, with that of -0 in place of those that take no part. Adds 1 to the
  /// counts of the lanes of the others.
  template <int W>
  [[gnu::always_inline]] Register<Signed, W> bits(std::size_t i, Register<Signed, W>& counts) const {
    using Vector = Register<Signed, W>;
    Vector bits, flags;
    std::memcpy(&bits, x + i, sizeof bits);
    Signed wide[W];
    for (int l = 0; l < W; ++l) wide[l] = where[i + static_cast<std::size_t>(l)];
    std::memcpy(&flags, wide, sizeof flags);
    const Signed nan_takes = static_cast<Signed>(skip_nan ? 0 : -1);
    const Vector takes = (flags != Signed{0}) & (are_numbers<W>(bits) | nan_takes);
    counts -= takes;
    return (bits & takes) | (sign & ~takes);
  }

 private:
  template <int W> [[gnu::always_inline]] static Register<Signed, W> are_numbers(Register<Signed, W> bits) {
    if constexpr (std::is_same_v<T, CarrierOf<T>>) {  // fp64 has no comparison of integers in the baseline
      const auto numbers = same_bits<Register<T, W>>(bits);
      return numbers == numbers;
    } else {
      return (bits & ~sign) <= infinity;
    }
  }
};

/// The sum of the lanes.
template <int W, class Lanes> std::int64_t sum_of(const Lanes& lanes) {
  std::make_signed_t<BitsOf<fp64>> sum = 0;
  for (int l = 0; l < W; ++l) sum += lanes[l];
  return sum;
}

/// See KeepSelected.
template <class T>
std::size_t keep_selected(const void* x, const std::uint8_t* where, bool skip_nan, std::size_t n, void* out) {
  constexpr int width = vector_bytes / int{sizeof(T)};
  constexpr std::size_t w = width;
  using Elements = SelectedElements<T>;
  const Elements all{static_cast<const T*>(x), where, skip_nan};
  auto* const to = static_cast<std::byte*>(out);
  Register<typename Elements::Signed, width> counts{};  // n <= 2^15 fits
  std::size_t i = 0;
  for (; i + w <= n; i += w) {
    const auto bits = all.template bits<width>(i, counts);
    std::memcpy(to + i * sizeof(T), &bits, sizeof bits);
  }
  if (i < n) {
    T rest[w] = {};
    std::uint8_t flags[w] = {};
    for (std::size_t l = 0; i + l < n; ++l) {
      rest[l] = all.x[i + l];
      flags[l] = where[i + l];
    }
    const auto bits = Elements{rest, flags, skip_nan}.template bits<width>(0, counts);
    std::memcpy(to + i * sizeof(T), &bits, (n - i) * sizeof(T));
  }
  return static_cast<std::size_t>(sum_of<width>(counts));
}

}  // namespace
}  // namespace samesum::cpu
