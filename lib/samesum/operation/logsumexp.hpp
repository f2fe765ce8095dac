/// The operation logsumexp: log Σe^x.
#pragma once

#include "samesum/operation/facts.hpp"
#include "samesum/operation/online_softmax.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// Computes log Σe^x as largest + log(sum), where `sum` is the sum of e^(x - largest). One pass finds both.
/// The logarithm and the addition are each rounded to the format. For n = 0 the result is -inf.
template <class F> struct LogSumExpReducer : OwnStateReducer<OnlineSoftmax<Scalar<F>>, F> {
  using State = OnlineSoftmax<Scalar<F>>;
  /// The state that a fresh one becomes by adding x, without the exponential.
  SAMESUM_HD State start(Scalar<F> x) const {
    State state;
    state.sum = {x == x ? CarrierOf<F>{1} : std::numeric_limits<CarrierOf<F>>::quiet_NaN()};
    if (x.v > state.largest.v) state.largest = x;
    return state;
  }
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<F*>(out)[at] = to_format<F>(n == 0 ? state.largest : state.largest + log(state.sum));
  }
};

struct LogSumExp : FactsOf<"logsumexp"> {
  static constexpr auto bound = bound_of_logsumexp;
  template <template <class> class, class F> static constexpr auto reducer(ReducerOptions) {
    return LogSumExpReducer<F>{};
  }
};

}  // namespace samesum
