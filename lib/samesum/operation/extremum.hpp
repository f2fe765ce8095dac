#pragma once

#include <limits>

#include "samesum/format/pack.hpp"

namespace samesum {

/// The largest element and the first index where it is; the smallest one is the largest of keys that are
/// turned round. Order-free: no state depends on who was seen first. A NaN is beyond every number, so it is
/// the extremum, and the first NaN its index. +0 is larger than -0, unless an index is asked for: then they
/// are equal. Nothing rounds but the elements themselves, where the format is narrower than the input's.
template <class F> struct Extremum {
  using Key = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
  using C = CarrierOf<F>;
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

  /// 0: nothing has been seen. It is no number's key.
  Key key = 0;
  Key spare = 0;
  std::uint64_t index = nowhere;

  SAMESUM_HD void merge(const Extremum& other) {
    if (other.key > key || (other.key == key && other.index < index)) *this = other;
  }

  /// Keys rise with the numbers: those of negative ones are turned round, and the others are above them.
  SAMESUM_HD static Key key_of(C x, bool smallest, bool ties_of_zeros) {
    constexpr Key sign = samesum::Format<C>::sign_bit, nan = ~Key{0};
    if (!(x == x)) return nan;
    const Key bits = same_bits<Key>(ties_of_zeros && x == 0 ? C{0} : x);
    const Key key = bits & sign ? ~bits : bits | sign;
    return smallest ? ~key : key;
  }
  SAMESUM_HD F value(bool smallest) const {
    constexpr Key sign = samesum::Format<C>::sign_bit, nan = ~Key{0};
    if (key == nan) return from_bits<F>(samesum::Format<F>::canonical_nan);
    if (key == 0) {  // of nothing: what every number replaces
      constexpr BitsOf<F> infinity = samesum::Format<F>::infinity;
      return from_bits<F>(smallest ? infinity : BitsOf<F>(infinity | samesum::Format<F>::sign_bit));
    }
    const Key turned = smallest ? Key(~key) : key;
    return convert<F>(same_bits<C>(Key(turned & sign ? turned & ~sign : ~turned)));
  }
};

}  // namespace samesum
