#pragma once

#include "samesum/format/fp16_wide.hpp"
#include "samesum/operation/term.hpp"

namespace samesum {

/// The squares of three kinds of numbers, which lose neither end of the range: of middling ones as they are,
/// of big and of small ones after scaling by a power of two (Blue 1978; Anderson 2017, algorithm 978). What
/// is of another kind has the square 0. For a scalar and for packs.
template <class F> struct Squares {
  /// The format of squares and sums.
  using G = std::conditional_t<std::is_same_v<F, fp16>, fp16_wide, F>;
  using C = CarrierOf<G>;
  // Half the exponents, less what 2^39 squares may add.
  static constexpr int limit = samesum::Format<G>::max_exponent,  // 127 or 1023
      most = (limit - 39) / 2, least = -(limit - 27) / 2, down = -(limit + 41) / 2, up = limit - 37;

  template <int W> SAMESUM_HD static auto is_big(Pack<G, W> x) {
    return magnitude(x).v > Pack<G, W>::all(power<most>).v;
  }
  template <int W> SAMESUM_HD static auto is_small(Pack<G, W> x) {
    const Pack<G, W> size = magnitude(x);
    return (size.v < Pack<G, W>::all(power<least>).v) & (size.v > Pack<G, W>::zero().v);
  }
  template <int W> SAMESUM_HD static Pack<G, W> middling(Pack<G, W> x) {
    return select(is_big(x) | is_small(x), Pack<G, W>::zero(), x * x);
  }
  template <int W> SAMESUM_HD static Pack<G, W> big(Pack<G, W> x) {
    const Pack<G, W> scaled = x * Pack<G, W>::all(power<down>);
    return select(is_big(x), scaled * scaled, Pack<G, W>::zero());
  }
  template <int W> SAMESUM_HD static Pack<G, W> small(Pack<G, W> x) {
    const Pack<G, W> scaled = x * Pack<G, W>::all(power<up>);
    return select(is_small(x), scaled * scaled, Pack<G, W>::zero());
  }

  template <int exponent> static constexpr C power = static_cast<C>(power_of_two(exponent));
};

/// The sum of squares whose root is taken later: one of each kind, plain, in the order of the elements.
template <class F> struct ScaledSquares {
  using Of = Squares<F>;
  using V = Scalar<typename Of::G>;

  V middling = V::zero(), big = V::zero(), small = V::zero();

  SAMESUM_HD void add(Scalar<F> x, std::size_t) {
    const V v = {x.v};
    if (Of::is_big(v) | Of::is_small(v)) {  // adding 0 to the other sums changes nothing
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

/// √Σx², rounded to F: the sum of two neighbouring kinds, the root and the last scaling round once each. NaN
/// where an element is NaN, else infinite where one is infinite.
template <class F> SAMESUM_HD F root(const ScaledSquares<F>& x) {
  using Of = Squares<F>;
  using V = typename ScaledSquares<F>::V;
  using C = CarrierOf<F>;
  const auto scaled = [](V v, C by) { return (v * V{by}) * V{by}; };
  V sum = x.middling;
  double back = 1;
  if (x.big.v > 0) {  // small ones are below its last bit
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
