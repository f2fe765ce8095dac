/// The operation moments: mean and variance in one pass.
#pragma once

#include "samesum/operation/facts.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// Table of 1/k, rounded to F, for small k. It replaces divisions in the lanes of a GPU.
template <class F> struct Reciprocals {
  static constexpr std::uint32_t most = 32;
  CarrierOf<F> of[most + 1] = {};
  constexpr Reciprocals() {
    for (std::uint32_t k = 1; k <= most; ++k)
      of[k] = convert<CarrierOf<F>>(convert<F>(CarrierOf<F>{1} / static_cast<CarrierOf<F>>(k)));
  }
};
#if defined(__CUDACC__)
template <class F> __constant__ constexpr Reciprocals<F> reciprocals;
#endif
/// Returns 1/k, rounded to F.
template <class F> SAMESUM_HD inline CarrierOf<F> reciprocal(std::uint32_t k) {
#if defined(__CUDA_ARCH__)
  if (k <= Reciprocals<F>::most) return reciprocals<F>.of[k];
#endif
  return round_lanes<F, CarrierOf<F>, 1>(CarrierOf<F>{1} / static_cast<CarrierOf<F>>(k));
}
/// Returns 1/k, rounded to F, for a number k of rows of a lane.
template <class F> SAMESUM_HD inline CarrierOf<F> reciprocal_of_row(std::uint32_t k) {
#if defined(__CUDA_ARCH__)
  return reciprocals<F>.of[k];
#else
  return reciprocal<F>(k);
#endif
}

/// Adds one element by Welford's step, for scalars and packs. `share` is 1 over the number of elements
/// including x.
template <class V> SAMESUM_HD inline void add_to_moments(V& mean, V& variance, V x, V share) {
  const V from_old = x - mean;
  mean = mean + from_old * share;
  variance = variance + (from_old * (x - mean) - variance) * share;
}

/// Mean and variance in one pass. Elements are added after Welford (1962); states are merged after Chan,
/// Golub and LeVeque (1979, Updating formulae and a pairwise algorithm for computing sample variances, eq.
/// 2.1). The state keeps the variance instead of the sum of squares, which would overflow in a narrow format.
template <class F> struct Moments {
  using V = Scalar<F>;
  using C = CarrierOf<F>;

  V mean = V::zero(), variance = V::zero();
  std::uint64_t count = 0;

  /// Adds x to a state of k elements, k < 2^32. The lanes of a tree hold fewer.
  SAMESUM_HD void add(V x, std::size_t k) {
    const auto now = static_cast<std::uint32_t>(k) + 1;
    count = now;
    const V share = {reciprocal<F>(now)};
    add_to_moments(mean, variance, x, share);
  }
  SAMESUM_HD void merge(const Moments& other) {
    merge(other, shares(count, other.count));
    count += other.count;
  }

  /// The shares of two states in the elements of both.
  struct Shares {
    V mine, others;
  };
  SAMESUM_HD static Shares shares(std::uint64_t count, std::uint64_t other) {
    if (count == other) return {{C(0.5)}, {C(0.5)}};  // common, and needs no division
    const C all = static_cast<C>(count + other);
    return {rounded(static_cast<C>(count) / all), rounded(static_cast<C>(other) / all)};
  }
  /// Merges all but the counts.
  SAMESUM_HD void merge(const Moments& other, const Shares& of) {
    const V apart = other.mean - mean;
    variance = (variance * of.mine + other.variance * of.others) + (apart * of.mine) * (apart * of.others);
    mean = mean + apart * of.others;
  }

  /// Visits what a serialised state holds. The number of elements is known.
  template <class Self, class Visit> static void visit_fields(Self& state, Visit visit) {
    visit(state.mean.v);
    visit(state.variance.v);
  }
  bool restored(std::uint64_t, std::uint64_t elements) {
    count = elements;
    return true;
  }

 private:
  SAMESUM_HD static V rounded(C x) { return {round_lanes<F, C, 1>(x)}; }
};

/// Fast path of MomentsReducer for lanes whose lengths are known: their states need no count.
template <class F> struct KnownCountFastPath {
  using Item = Scalar<F>;
  using Shares = typename Moments<F>::Shares;
  struct State {
    Scalar<F> mean, variance;
  };
  static constexpr int inputs = 1;
  SAMESUM_HD bool applies() const { return true; }
  SAMESUM_HD Item item(const InputElement<F>& e) const { return e.x; }
  SAMESUM_HD State start(Item x) const {
    Moments<F> one;
    one.add(x, 0);
    return {one.mean, one.variance};
  }
  SAMESUM_HD void add(State& state, Item x, std::size_t k) const {
    add_to_moments(state.mean, state.variance, x,
                   Scalar<F>{reciprocal_of_row<F>(static_cast<std::uint32_t>(k) + 1)});
  }
  SAMESUM_HD void halve(State& state, const State& other) const { merge(state, other, shares(1, 1)); }
  SAMESUM_HD static Shares shares(int count, int other) {
    return Moments<F>::shares(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(other));
  }
  SAMESUM_HD void merge(State& state, const State& other, const Shares& of) const {
    Moments<F> all{state.mean, state.variance};
    all.merge({other.mean, other.variance}, of);
    state = {all.mean, all.variance};
  }
  SAMESUM_HD Moments<F> state(const State& fast, std::uint64_t, int rows) const {
    return {fast.mean, fast.variance, static_cast<std::uint64_t>(rows)};
  }
};

/// Computes two numbers: the mean and the variance, Σ(x - mean)² / (n - ddof). The mean is NaN if n = 0, the
/// variance if n <= ddof.
template <class F> struct MomentsReducer : OwnStateReducer<Moments<F>, F> {
  using FastPath = KnownCountFastPath<F>;
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

struct MeanAndVariance : FactsOf<"moments"> {
  template <template <class> class, class F>
  static constexpr MomentsReducer<F> reducer(ReducerOptions options) {
    return {{}, options.ddof};
  }
};

}  // namespace samesum
