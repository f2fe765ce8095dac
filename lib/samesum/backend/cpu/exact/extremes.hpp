/// Finds the ExponentRange of elements a vector at a time. Each instruction set compiles its own copy.
#pragma once

#include <limits>

#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/window/exponent_range.hpp"

namespace samesum::cpu {
namespace {

/// The largest magnitude and the smallest one that is not zero, per lane.
template <class T> class Extremes {
  static constexpr int width = vector_bytes / int{sizeof(T)};
  static constexpr std::size_t w = width;
  using Bits = BitsOf<T>;
  // Signed numbers have a vector comparison in every instruction set.
  using Signed = std::make_signed_t<Bits>;
  using Vector = Register<Signed, width>;
  // The upper halves of 64 bits suffice. Without AVX-512, comparing halves takes fewer instructions than
  // comparing whole numbers; the results for the lower halves are ignored.
  static constexpr bool halves = sizeof(T) == 8 && vector_bytes < 64;
  using Part = std::conditional_t<halves, std::int32_t, Signed>;
  static constexpr int part_width = vector_bytes / int{sizeof(Part)};
  using Parts = Register<Part, part_width>;
  static constexpr Signed magnitude_bits = std::numeric_limits<Signed>::max();

 public:
  /// Looks at one vector.
  [[gnu::always_inline]] void see(const T* x) {
    Vector bits;
    std::memcpy(&bits, x, sizeof bits);
    see(bits);
  }
  [[gnu::always_inline]] void see(Vector bits) {
    const Vector magnitude = bits & magnitude_bits, less = (magnitude - Signed{1}) & magnitude_bits;
    const auto large = same_bits<Parts>(magnitude), small = same_bits<Parts>(less);
    largest_ = large > largest_ ? large : largest_;
    smallest_ = small < smallest_ ? small : smallest_;
  }
  /// Looks at n elements.
  [[gnu::always_inline]] void see(const T* x, std::size_t n) {
    std::size_t i = 0;
    for (; i + w <= n; i += w) see(x + i);
    if (i == n) return;
    if (n >= w) return see(x + n - w);
    see(same_bits<Vector>(load_first<width>(x, n)));  // zeros change nothing
  }

  /// The range of the elements, whose last bits count even if they are 0; unbounded if one is infinite or
  /// NaN.
  [[gnu::always_inline]] ExponentRange range() const {
    Signed most[w], least[w];
    std::memcpy(most, &largest_, sizeof largest_);
    std::memcpy(least, &smallest_, sizeof smallest_);
    for (std::size_t half = w / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) {
        most[l] = most[l] > most[l + half] ? most[l] : most[l + half];
        least[l] = least[l] < least[l + half] ? least[l] : least[l + half];
      }
    if constexpr (halves)  // a smallest magnitude of 2^k may be taken for a smaller one, which is safe
      for (Signed* const found : {most, least}) *found &= Signed{-1} << 32;
    if (most[0] == 0 && (!halves || least[0] != 0)) return {};
    if (Bits(most[0]) >= Format<T>::infinity) return ExponentRange::unbounded();
    return ExponentRange::between(exponent_field(Signed(least[0] + 1)) + Format<T>::min_quantum - 1,
                                  exponent_field(most[0]) + Format<T>::min_exponent);
  }

 private:
  static int exponent_field(Signed magnitude) {
    const int field = int(magnitude >> (Format<T>::precision - 1));
    return field == 0 ? 1 : field;
  }

  Parts largest_{},
      smallest_ =
          Parts{} + std::numeric_limits<Part>::max();  ///< the smallest less 1: that of a zero is largest
};

}  // namespace
}  // namespace samesum::cpu
