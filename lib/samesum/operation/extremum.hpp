/// States of extrema: integers that are ordered like the numbers that they stand for.
#pragma once

#include <limits>

#include "samesum/format/pack.hpp"

namespace samesum {

/// Maps numbers to keys: unsigned integers in the same order as the numbers, or in the reverse order if
/// `smallest` is set, so that the extremum has the largest key. NaN has the largest key of all. No number has
/// the key 0, which marks an empty state.
template <class F> struct KeyOf {
  using C = CarrierOf<F>;
  using Key = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
  static constexpr Key sign = samesum::Format<C>::sign_bit, nan = ~Key{0};

  /// Returns the key of each lane. +0 is larger than -0.
  template <int W = 1> SAMESUM_HD static Register<Key, W> of(Register<C, W> x, bool smallest) {
    using Lanes = Register<Key, W>;
    const Lanes bits = same_bits<Lanes>(x), none{};
    const Lanes key = (bits & sign) != none ? Lanes(~bits) : Lanes(bits | sign);
    const Lanes turned = smallest ? Lanes(~key) : key;
    return x == x ? turned : Lanes(none + nan);
  }
  /// Returns keys that are equal for equal numbers, so that +0 and -0 share one.
  template <int W = 1> SAMESUM_HD static Register<Key, W> of_number(Register<C, W> x, bool smallest) {
    const Register<C, W> zero{};
    return of<W>(x == zero ? zero : x, smallest);
  }
  /// Returns the number of a key. For the key 0, returns the infinity that every number replaces.
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

/// State of an extremum, independent of the order of the elements. +0 is larger than -0. Only the elements
/// themselves are rounded, if the format is narrower than that of the input.
template <class F> struct Extremum {
  using Key = typename KeyOf<F>::Key;
  Key key = 0;
  SAMESUM_HD void merge(const Extremum& other) { key = other.key > key ? other.key : key; }
  /// Visits what a serialised state holds.
  template <class Self, class Visit> static void visit_fields(Self& state, Visit visit) { visit(state.key); }
  bool restored(std::uint64_t, std::uint64_t) const { return key != 0; }
};

/// State of an extremum and its first index; +0 and -0 are equal. If there are NaNs, the first NaN is the
/// extremum.
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
  /// Adds `first` to the index.
  void move_index(std::uint64_t first) {
    base = index() + first;
    offset = 0;
  }
  /// Visits what a serialised state holds, after move_index.
  template <class Self, class Visit> static void visit_fields(Self& state, Visit visit) {
    visit(state.key);
    visit(state.base);
  }
  bool restored(std::uint64_t first, std::uint64_t elements) const {
    return key != 0 && base >= first && base - first < elements;
  }
};

}  // namespace samesum
