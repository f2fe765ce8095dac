/// Sums of squares that lose neither end of the range, for the norm.
#pragma once

#include "samesum/format/fp16_wide.hpp"
#include "samesum/operation/term.hpp"

namespace samesum {

/// Squares of three kinds of numbers. Middling ones are squared as they are, big and small ones after scaling
/// by a power of two, so that neither end of the range is lost (Blue 1978; Anderson 2017, algorithm 978). The
/// three functions return 0 for a number of another kind. For scalars and packs.
template <class F> struct Squares {
  /// The format of the squares and of their sums.
  using G = std::conditional_t<std::is_same_v<F, fp16>, fp16_wide, F>;
  using C = CarrierOf<G>;
  // Half of the exponents, less the room that 2^39 squares may need.
  static constexpr int limit = samesum::Format<G>::max_exponent,  // 127 or 1023
      most = (limit - 39) / 2, least = -(limit - 27) / 2, down = -(limit + 41) / 2, up = limit - 37;

  template <int W> SAMESUM_HD static auto is_big(Pack<G, W> x) {
    return magnitude(x).v > Pack<G, W>::broadcast(power<most>).v;
  }
  template <int W> SAMESUM_HD static auto is_small(Pack<G, W> x) {
    const Pack<G, W> size = magnitude(x);
    return (size.v < Pack<G, W>::broadcast(power<least>).v) & (size.v > Pack<G, W>::zero().v);
  }
  template <int W> SAMESUM_HD static Pack<G, W> middling(Pack<G, W> x) {
    return select(is_big(x) | is_small(x), Pack<G, W>::zero(), x * x);
  }
  template <int W> SAMESUM_HD static Pack<G, W> big(Pack<G, W> x) {
    const Pack<G, W> scaled = x * Pack<G, W>::broadcast(power<down>);
    return select(is_big(x), scaled * scaled, Pack<G, W>::zero());
  }
  template <int W> SAMESUM_HD static Pack<G, W> small(Pack<G, W> x) {
    const Pack<G, W> scaled = x * Pack<G, W>::broadcast(power<up>);
    return select(is_small(x), scaled * scaled, Pack<G, W>::zero());
  }

  template <int exponent> static constexpr C power = static_cast<C>(power_of_two(exponent));
};

/// State of the norm: three plain sums of squares, one for each kind, in the order of the elements.
template <class F> struct ScaledSquares {
  using Of = Squares<F>;
  using V = Scalar<typename Of::G>;

  V middling = V::zero(), big = V::zero(), small = V::zero();

  SAMESUM_HD void add(Scalar<F> x, std::size_t) {
    const V v = {x.v};
    if (Of::is_big(v) | Of::is_small(v)) {  // the other sums would only add 0
      big = big + Of::big(v);
      small = small + Of::small(v);
    } else {
      middling = middling + v * v;
    }
  }
  SAMESUM_HD void merge(const ScaledSquares& other) {
    middling = middling + other.middling;
    big = big + other.big;
    small = small + other.small;
  }
};

/// Returns √Σx², rounded to F. The sum of two neighbouring kinds, the root and the last scaling round once
/// each. The result is NaN if an element is NaN, otherwise infinite if one is infinite.
template <class F> SAMESUM_HD F root(const ScaledSquares<F>& x) {
  using Of = Squares<F>;
  using V = typename ScaledSquares<F>::V;
  using C = CarrierOf<F>;
  const auto scaled = [](V v, C by) { return (v * V{by}) * V{by}; };
  V sum = x.middling;
  double back = 1;
  if (x.big.v > 0) {  // small squares are below the last bit of the sum
    sum = x.big + scaled(x.middling, Of::template power<Of::down>);
    back = power_of_two(-Of::down);
  } else if (x.middling == V::zero()) {
    sum = x.small;
    back = power_of_two(-Of::up);
  } else {
    sum = x.middling + scaled(x.small, Of::template power<-Of::up>);
  }
  if (!(sum.v < std::numeric_limits<C>::infinity())) return to_format<F>(Scalar<F>{sum.v});
  return convert<F>(double{round_lanes<typename Of::G, C, 1>(std::sqrt(sum.v))} * back);
}

}  // namespace samesum
