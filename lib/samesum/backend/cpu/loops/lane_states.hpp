/// Merges the lanes of a pack of states until one is left. Each instruction set compiles its own copy, hence
/// the anonymous namespace in a header.
#pragma once

#include "samesum/backend/cpu/loops/vectors.hpp"

namespace samesum::cpu {
namespace {

/// The states of accumulator A for numbers of the carrier of F, in packs.
template <template <class> class A, class F> struct LaneStates {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width;
  using One = A<Scalar<F>>;
  using Many = A<Pack<F, width>>;
  /// Numbers per state. A pack of states is stored as a state of packs: number f of lane l is at
  /// f·width + l.
  static constexpr std::size_t numbers = sizeof(One) / sizeof(Carrier);
  static_assert(sizeof(Many) == w * sizeof(One));

  /// Halves the lanes: lane l merges lane l + half until one lane is left.
  template <int count> static One halve_pack(const A<Pack<F, count>>& lane) {
    if constexpr (count == 1) {
      return lane;
    } else {
      auto low = half_of<0>(lane);
      low.merge(half_of<1>(lane));
      return halve_pack<count / 2>(low);
    }
  }

 private:
  template <int which, int count> static A<Pack<F, count / 2>> half_of(const A<Pack<F, count>>& lane) {
    Register<Carrier, count> whole[numbers];
    Register<Carrier, count / 2> part[numbers];
    std::memcpy(whole, &lane, sizeof lane);
    for (std::size_t f = 0; f < numbers; ++f) part[f] = half_of_register<which, count>(whole[f]);
    A<Pack<F, count / 2>> state;
    std::memcpy(&state, part, sizeof state);
    return state;
  }
  template <int which, int count>
  static Register<Carrier, count / 2> half_of_register(Register<Carrier, count> v) {
    if constexpr (count == 2)
      return v[which];
    else
      return [&]<int... i>(std::integer_sequence<int, i...>) {
        return __builtin_shufflevector(v, v, which * (count / 2) + i...);
      }
    (std::make_integer_sequence<int, count / 2>{});
  }
};

}  // namespace
}  // namespace samesum::cpu
