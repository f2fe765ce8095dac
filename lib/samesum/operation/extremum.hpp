#pragma once

#include <limits>

#include "samesum/format/pack.hpp"

namespace samesum {

/// Keys of numbers: unsigned integers that rise with them, so that the largest number has the largest key, or
/// the smallest one, where keys are turned round. A NaN is beyond every number. 0 is nobody's key: nothing
/// has been seen.
template <class F> struct KeyOf {
  using C = CarrierOf<F>;
  using Key = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
  static constexpr Key sign = samesum::Format<C>::sign_bit, nan = ~Key{0};

  /// Of each lane.
  template <int W = 1> SAMESUM_HD static Register<Key, W> of(Register<C, W> x, bool smallest) {
    using Keys = Register<Key, W>;
    const Keys bits = same_bits<Keys>(x), none{};
    const Keys key = (bits & sign) != none ? Keys(~bits) : Keys(bits | sign);
    const Keys turned = smallest ? Keys(~key) : key;
    return x == x ? turned : Keys(none + nan);
  }
  /// The same, but one key for all that is equal: for both zeros.
  template <int W = 1> SAMESUM_HD static Register<Key, W> of_number(Register<C, W> x, bool smallest) {
    const Register<C, W> zero{};
    return of<W>(x == zero ? zero : x, smallest);
  }
  /// The number of a key; of 0 what every number replaces.
  SAMESUM_HD static F number(Key key, bool smallest) {
    if (key == nan) return from_bits<F>(samesum::Format<F>::canonical_nan);
    if (key == 0) {
      constexpr BitsOf<F> infinity = samesum::Format<F>::infinity;
      return from_bits<F>(smallest ? infinity : BitsOf<F>(infinity | samesum::Format<F>::sign_bit));
    }
    const Key turned = smallest ? Key(~key) : key;
    return convert<F>(same_bits<C>(Key(turned & sign ? turned & ~sign : ~turned)));
  }
};

/// The extremum. Order-free: it does not matter who was seen first. +0 is larger than -0. Nothing rounds but
/// the elements themselves, where the format is narrower than the input's.
template <class F> struct Extremum {
  using Key = typename KeyOf<F>::Key;
  Key key = 0;
  SAMESUM_HD void merge(const Extremum& other) { key = other.key > key ? other.key : key; }
};

/// The extremum and the first index where it is, +0 and -0 being equal. A NaN is the extremum, the first one.
template <class F> struct FirstExtremum {
  using Key = typename KeyOf<F>::Key;
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  Key key = 0;
  std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t> offset = 0;
  std::uint64_t base = nowhere;
  SAMESUM_HD std::uint64_t index() const { return base + offset; }
  SAMESUM_HD void merge(const FirstExtremum& other) {
    if (other.key > key || (other.key == key && other.index() < index())) *this = other;
  }
};

}  // namespace samesum
