#pragma once

#include "samesum/accumulator/concept.hpp"

namespace samesum {

/// 1/k rounded to F; of few elements from a table, where lanes of a GPU would divide.
template <class F> struct Shares {
  static constexpr std::uint32_t most = 32;
  CarrierOf<F> of[most + 1] = {};
  constexpr Shares() {
    for (std::uint32_t k = 1; k <= most; ++k)
      of[k] = convert<CarrierOf<F>>(convert<F>(CarrierOf<F>{1} / static_cast<CarrierOf<F>>(k)));
  }
};
#if defined(__CUDACC__)
template <class F> __constant__ constexpr Shares<F> shares;
#endif
template <class F> SAMESUM_HD inline CarrierOf<F> share_of(std::uint32_t k) {
#if defined(__CUDA_ARCH__)
  if (k <= Shares<F>::most) return shares<F>.of[k];
#endif
  return round_lanes<F, CarrierOf<F>, 1>(CarrierOf<F>{1} / static_cast<CarrierOf<F>>(k));
}

/// Welford's step, of scalars or packs: one element more, whose share of all is `share`.
template <class V> SAMESUM_HD inline void add_to_moments(V& mean, V& variance, V x, V share) {
  const V from_old = x - mean;
  mean = mean + from_old * share;
  variance = variance + (from_old * (x - mean) - variance) * share;
}

/// Mean and variance in one pass: elements after Welford (1962), states after Chan, Golub and LeVeque (1979,
/// Updating formulae and a pairwise algorithm for computing sample variances, eq. 2.1), kept as a variance
/// and not as a sum of squares, which would overflow in a narrow format.
template <class F> struct Moments {
  using V = Scalar<F>;
  using C = CarrierOf<F>;

  V mean = V::zero(), variance = V::zero();
  std::uint64_t count = 0;

  /// To a state of k elements, fewer than 2^32: the lanes of a tree have less.
  SAMESUM_HD void add(V x, std::size_t k) {
    const auto now = static_cast<std::uint32_t>(k) + 1;
    count = now;
    const V share = {share_of<F>(now)};
    add_to_moments(mean, variance, x, share);
  }
  SAMESUM_HD void merge(const Moments& other) {
    const C all = static_cast<C>(count + other.count);
    V mine = {C(0.5)}, others = mine;
    if (count != other.count) {  // what is seldom so need not be divided
      mine = rounded(static_cast<C>(count) / all);
      others = rounded(static_cast<C>(other.count) / all);
    }
    const V apart = other.mean - mean;
    variance = (variance * mine + other.variance * others) + (apart * mine) * (apart * others);
    mean = mean + apart * others;
    count += other.count;
  }

 private:
  SAMESUM_HD static V rounded(C x) { return {round_lanes<F, C, 1>(x)}; }
};

}  // namespace samesum
