/// Packs of doubles that are scanned: how they are read, and how their lanes move. Each
/// instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// Scans of elements of format T with results of format F.
template <class T, class F> class ScannedPacks {
 protected:
  static constexpr int width = vector_bytes / 8;
  static constexpr std::size_t w = width;
  using V = Pack<fp64, width>;
  using Storage = typename V::Storage;
  using Words = Register<std::uint64_t, width>;

  /// Loads n elements, at most a pack. The other lanes are 0.
  [[gnu::always_inline]] static V load(const T* x, std::size_t n) {
    return n >= w ? V::load(x) : load_part(x, n);
  }
  static V load_part(const T* x, std::size_t n) {
    T part[w] = {};
    for (std::size_t l = 0; l < n; ++l) part[l] = x[l];
    return V::load(part);
  }
  /// The lanes moved up, with zeros below.
  template <int by> [[gnu::always_inline]] static Storage shifted(Storage v) {
    return [&]<int... l>(std::integer_sequence<int, l...>) {
      return __builtin_shufflevector(Storage{}, v, (width + l - by)...);
    }
    (std::make_integer_sequence<int, width>{});
  }
  [[gnu::always_inline]] static Storage last_lane(Storage v) {
    return [&]<int... l>(std::integer_sequence<int, l...>) {
      return __builtin_shufflevector(v, v, (l * 0 + width - 1)...);
    }
    (std::make_integer_sequence<int, width>{});
  }
  template <int by> [[gnu::always_inline]] static V scan_lanes(V v) {
    if constexpr (by < width)
      return scan_lanes<2 * by>(v + V{shifted<by>(v.v)});
    else
      return v;
  }
};

}  // namespace
}  // namespace samesum::cpu
