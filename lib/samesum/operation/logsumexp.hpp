/// log Σe^x.
#pragma once

#include "samesum/operation/online_softmax.hpp"
#include "samesum/operation/operation.hpp"
#include "samesum/operation/reducer.hpp"

namespace samesum {

/// log Σe^x, from the largest x and the sum of e^(x - largest), which are found in one pass: largest +
/// log(sum), each of the two rounded to fp32. -inf of nothing.
struct LogSumExpReducer : OwnReducer<OnlineSoftmax<Scalar<fp32>>, fp32> {
  SAMESUM_HD void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    static_cast<fp32*>(out)[at] = to_format<fp32>(n == 0 ? state.largest : state.largest + log(state.sum));
  }
};

struct LogSumExp : OwnState {
  static constexpr std::string_view name = "logsumexp";
  static constexpr auto bound = bound_of_logsumexp;
  template <class F> static constexpr bool in_format = std::is_same_v<F, fp32>;  // as exp and log
  template <template <class> class, class F> static constexpr LogSumExpReducer reducer(ReducerOptions) {
    return {};
  }
};

}  // namespace samesum
