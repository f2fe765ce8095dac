/// Loops over elements some of which take no part: zeros stand in for these, which changes no exact sum.
#pragma once

#include <limits>

#include "samesum/backend/cpu/loops/leaf.hpp"

namespace samesum::cpu {
namespace {

/// A source of elements some of which take no part: if `flagged`, those whose flag is 0; if `skips_nan`, NaN.
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
template <class T, bool flagged, bool skips_nan>
std::size_t keep(const SelectedRows& of, std::byte* to, std::byte* counts) {
  constexpr int width = vector_bytes / int{sizeof(T)};
  constexpr std::size_t w = width, ahead = 16;
  using Signed = typename SelectedElements<T, flagged, skips_nan>::Signed;
  using Vector = Register<Signed, width>;
  const Vector other = Vector{} + static_cast<Signed>(of.stand_in);
  Vector total{}, bits;  // the number of elements fits
  const auto kept = [&](const auto& elements, std::size_t at, std::size_t column)
      __attribute__((always_inline)) {
    const Vector takes = elements.template load<width>(at, bits);
    total -= takes;
    bits = (bits & takes) | (other & ~takes);
    if (!counts) return;
    Vector count;
    std::memcpy(&count, counts + column * sizeof(T), sizeof count);
    count -= takes;
    std::memcpy(counts + column * sizeof(T), &count, sizeof count);
  };
  for (std::size_t r = 0; r < of.rows; ++r) {
    const T* const x = static_cast<const T*>(of.x) + r * of.pitch;
    const std::uint8_t* const where = flagged ? of.where + r * of.pitch : nullptr;
    if (of.rows > 1) {
      prefetch_row(x, of.count * sizeof(T), ahead * of.pitch * sizeof(T));
      if (flagged) prefetch_row(where, of.count, ahead * of.pitch);
    }
    std::size_t i = 0;
    for (; i + w <= of.count; i += w, to += sizeof bits) {
      kept(SelectedElements<T, flagged, skips_nan>{x, where}, i, i);
      std::memcpy(to, &bits, sizeof bits);
    }
    if (const std::size_t left = of.count - i; left > 0) {
      T rest[w];
      const auto first = load_first<width>(x + i, left);
      std::memcpy(static_cast<void*>(rest), &first, sizeof first);
      std::uint8_t flags[w] = {};
      for (std::size_t l = 0; l < left; ++l) flags[l] = flagged ? where[i + l] : 1;
      kept(SelectedElements<T, true, skips_nan>{rest, flags}, 0, i);
      std::memcpy(to, &bits, left * sizeof(T));
      to += left * sizeof(T);
    }
  }
  return static_cast<std::size_t>(sum_of<width>(total));
}
template <class T> std::size_t keep_selected(const SelectedRows& rows, void* out, void* counts) {
  std::byte *const to = static_cast<std::byte*>(out), *const columns = static_cast<std::byte*>(counts);
  if (!rows.skip_nan) return keep<T, true, false>(rows, to, columns);
  return rows.where ? keep<T, true, true>(rows, to, columns) : keep<T, false, true>(rows, to, columns);
}

}  // namespace
}  // namespace samesum::cpu
