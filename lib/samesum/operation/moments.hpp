#pragma once

#include "samesum/operation/operation.hpp"
#include "samesum/operation/reducer.hpp"

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

/// Moments of lanes that are equally long: their count need not be kept.
template <class F> struct CountlessReducer {
  using Item = Scalar<F>;
  struct State {
    Scalar<F> mean, variance;
  };
  static constexpr int inputs = 1;
  SAMESUM_HD bool applies() const { return true; }
  SAMESUM_HD Item item(const Read<F>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const {
    Moments<F> one;
    one.add(x, 0);
    return {one.mean, one.variance};
  }
  SAMESUM_HD void add(State& state, Item x, std::size_t k) const {
    Moments<F> all{state.mean, state.variance, 0};
    all.add(x, k);
    state = {all.mean, all.variance};
  }
  SAMESUM_HD Moments<F> state(const State& fast, std::uint64_t, int rows) const {
    return {fast.mean, fast.variance, static_cast<std::uint64_t>(rows)};
  }
};

/// Two numbers: the mean and the variance, Σ(x - mean)² / (n - ddof). NaN where that divides by nothing.
template <class F> struct MomentsReducer : OwnReducer<Moments<F>, F> {
  using FastPath = CountlessReducer<F>;
  double ddof;
  SAMESUM_HD FastPath fast_path() const { return {}; }
  SAMESUM_HD void finish(const Moments<F>& state, std::uint64_t n, std::size_t at, void* out) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const double count = static_cast<double>(n), left = count - ddof;
    const double variance = left > 0 ? static_cast<double>(state.variance.v) * (count / left) : nan;
    F* two = static_cast<F*>(out) + 2 * at;
    two[0] = to_format<F>(n == 0 ? Scalar<F>::of(nan) : state.mean);
    two[1] = to_format<F>(Scalar<F>::of(variance));
  }
};

struct MeanAndVariance : OwnState {
  static constexpr std::string_view name = "moments";
  static constexpr bool can_be_exact = true;
  static constexpr int results = 2;
  template <template <class> class, class F>
  static constexpr MomentsReducer<F> reducer(ReducerOptions options) {
    return {{}, options.ddof};
  }
};

}  // namespace samesum
