/// Vectors of the loops: their width, loads and stores of parts, shuffles of lanes, and prefetches. Each
/// instruction set compiles its own copy, hence the anonymous namespace in a header.
#pragma once

#include "samesum/accumulator/concept.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::cpu {
namespace {

/// Bytes per vector register that this object file is compiled for.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

/// Prefetches the bytes that begin `ahead` bytes behind `first`. They may lie beyond the array: prefetching
/// an invalid address is harmless. Callers that do nothing else are always inlined too: g++ before 14 drops
/// calls of a function that only prefetches.
[[gnu::always_inline]] inline void prefetch_bytes(const void* first, std::size_t bytes,
                                                  std::size_t ahead = 0) {
  const auto address = reinterpret_cast<std::uintptr_t>(first) + ahead;
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(reinterpret_cast<const void*>(address + i));
}

/// Prefetches a part of a matrix row, which may begin and end anywhere in a cache line, as prefetch_bytes.
[[gnu::always_inline]] inline void prefetch_row(const void* first, std::size_t bytes, std::size_t ahead = 0) {
  prefetch_bytes(first, bytes + 63, ahead);
}

/// Number of rows of n elements between the row that is read and the one that is prefetched.
template <class T> constexpr std::size_t rows_ahead(std::size_t n) {
  constexpr std::size_t all = sizeof(T) > 4 ? 4096 : 16384 / sizeof(T);
  return n < all ? all / n : 1;
}

/// Loads the bits of the first n < W elements; the other lanes are 0. Copies of few elements would wait for
/// their own bytes.
template <int W, class T>
[[gnu::always_inline]] inline Register<BitsOf<T>, W> load_first(const T* x, std::size_t n) {
  using Bits = Register<BitsOf<T>, W>;
#if defined(__AVX512VL__) && defined(__AVX512BW__)
  const std::uint64_t lanes = (std::uint64_t{1} << n) - 1;
  if constexpr (sizeof(Bits) == 64) {
    if constexpr (sizeof(T) == 8) return Bits(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), x));
    if constexpr (sizeof(T) == 4) return Bits(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), x));
    if constexpr (sizeof(T) == 2) return Bits(_mm512_maskz_loadu_epi16(static_cast<__mmask32>(lanes), x));
  } else if constexpr (sizeof(Bits) == 32 && sizeof(T) == 4) {
    return Bits(_mm256_maskz_loadu_epi32(static_cast<__mmask8>(lanes), x));
  } else if constexpr (sizeof(Bits) == 16 && sizeof(T) == 2) {
    return Bits(_mm_maskz_loadu_epi16(static_cast<__mmask8>(lanes), x));
  }
#endif
  Bits bits{};
  std::memcpy(&bits, x, n * sizeof(T));
  return bits;
}

/// Lane l + by in place of lane l, for the first lanes; the last ones hold the first lanes.
template <int by, class V> [[gnu::always_inline]] inline V shifted_lanes(V v) {
  constexpr int width = sizeof(V) / sizeof(v[0]);
  return [&]<int... l>(std::integer_sequence<int, l...>) {
    return __builtin_shufflevector(v, v, ((l + by) % width)...);
  }
  (std::make_integer_sequence<int, width>{});
}
/// Every second lane of a and then of b, from lane `first` on.
template <int first, class V> [[gnu::always_inline]] inline V every_second(V a, V b) {
  return [&]<int... l>(std::integer_sequence<int, l...>) {
    return __builtin_shufflevector(a, b, (2 * l + first)...);
  }
  (std::make_integer_sequence<int, int{sizeof(V) / sizeof a[0]}>{});
}

/// Whether a lane of a comparison is true.
template <class Mask> [[gnu::always_inline]] inline bool any_lane(Mask mask) {
  const auto words = same_bits<Register<std::uint64_t, int{sizeof mask / 8}>>(mask);
  std::uint64_t all = 0;
  for (std::size_t l = 0; l < sizeof mask / 8; ++l) all |= words[l];
  return all != 0;
}
/// Stores the first `count` lanes of v.
template <class V, class T> [[gnu::always_inline]] inline void store_lanes(V v, T* to, std::size_t count) {
  if (count == sizeof v / sizeof(T))
    std::memcpy(to, &v, sizeof v);
  else
    std::memcpy(to, &v, count * sizeof(T));
}

}  // namespace
}  // namespace samesum::cpu
