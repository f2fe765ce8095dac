/// Elements of which some take no part: a zero stands in for those, which changes no exact sum.
#pragma once

#include <limits>

#include "samesum/backend/cpu/leaf.hpp"

namespace samesum::cpu {
namespace {

/// Elements, of which some take no part: if `flagged`, those whose flag is 0, and, if `skips_nan`, NaN.
template <class T, bool flagged, bool skips_nan> struct SelectedElements {
  using Signed = std::make_signed_t<BitsOf<T>>;
  static constexpr Signed sign = std::numeric_limits<Signed>::min(), infinity = Format<T>::infinity;
  const T* x;
  const std::uint8_t* where;

  /// Loads the bit patterns of W elements. Returns all ones for those that take part, and 0 for the others.
  template <int W>
  [[gnu::always_inline]] Register<Signed, W> load(std::size_t i, Register<Signed, W>& bits) const {
    std::memcpy(&bits, x + i, sizeof bits);
#ifdef __AVX512F__
    asm("" : "+x"(bits));  // else the flags mask the load itself, which takes four times as long
#endif
    Register<Signed, W> takes;
    if constexpr (skips_nan) takes = are_numbers<W>(bits);
    if constexpr (flagged) {
      Signed wide[W];  // a conversion of vectors would read byte by byte
      for (int l = 0; l < W; ++l) wide[l] = where[i + static_cast<std::size_t>(l)];
      Register<Signed, W> flags;
      std::memcpy(&flags, wide, sizeof flags);
      if constexpr (skips_nan)
        takes &= flags != Signed{0};
      else
        takes = flags != Signed{0};
    }
    return takes;
  }
  /// The bit patterns of W elements, with that of +0 in place of those that take no part. If `skips_nan`,
  /// adds 1 to the counts of the lanes of the others; otherwise their flags tell how many they are.
  template <int W>
  [[gnu::always_inline]] Register<Signed, W> bits(std::size_t i, Register<Signed, W>& counts) const {
    Register<Signed, W> bits;
    const auto takes = load<W>(i, bits);
    if constexpr (skips_nan) counts -= takes;
    return bits & takes;
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

/// Returns how many of n flags are not 0.
inline std::size_t count_flags(const std::uint8_t* flags, std::size_t n) {
  constexpr std::size_t bytes = vector_bytes, most = 255;  // vectors that lanes of bytes can count
  std::size_t count = 0, i = 0;
  while (i + bytes <= n) {
    Register<std::uint8_t, vector_bytes> counts{}, vector;
    for (std::size_t k = 0; k < most && i + bytes <= n; ++k, i += bytes) {
      std::memcpy(&vector, flags + i, bytes);
      counts -= same_bits<Register<std::uint8_t, vector_bytes>>(vector != 0);
    }
    for (std::size_t l = 0; l < bytes; ++l) count += counts[l];
  }
  for (; i < n; ++i) count += flags[i] != 0;
  return count;
}

/// See KeepSelected.
template <class T, bool skips_nan>
std::size_t keep(SelectedElements<T, true, skips_nan> all, std::size_t n, std::byte* to) {
  constexpr int width = vector_bytes / int{sizeof(T)};
  constexpr std::size_t w = width;
  using Elements = SelectedElements<T, true, skips_nan>;
  using Signed = typename Elements::Signed;
  Register<Signed, width> counts{}, bits;  // n <= 2^15 fits
  const auto kept = [&](const Elements& x, std::size_t i) {
    const auto takes = x.template load<width>(i, bits);
    counts -= takes;
    bits = (bits & takes) | (Elements::sign & ~takes);
  };
  std::size_t i = 0;
  for (; i + w <= n; i += w) {
    kept(all, i);
    std::memcpy(to + i * sizeof(T), &bits, sizeof bits);
  }
  if (i < n) {
    T rest[w] = {};
    std::uint8_t flags[w] = {};
    for (std::size_t l = 0; i + l < n; ++l) {
      rest[l] = all.x[i + l];
      flags[l] = all.where[i + l];
    }
    kept({rest, flags}, 0);
    std::memcpy(to + i * sizeof(T), &bits, (n - i) * sizeof(T));
  }
  return static_cast<std::size_t>(sum_of<width>(counts));
}
template <class T>
std::size_t keep_selected(const void* x, const std::uint8_t* where, bool skip_nan, std::size_t n, void* out) {
  const T* const elements = static_cast<const T*>(x);
  std::byte* const to = static_cast<std::byte*>(out);
  return skip_nan ? keep<T, true>({elements, where}, n, to) : keep<T, false>({elements, where}, n, to);
}

}  // namespace
}  // namespace samesum::cpu
