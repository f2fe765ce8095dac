/// The rolling operations: rolling_sum, rolling_mean, rolling_var, rolling_min and rolling_max.
#pragma once

#include "samesum/operation/extrema.hpp"
#include "samesum/operation/moments.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

/// The rolling operation of `Of`. Result i is that of `Of` for the elements of window i (Options::window), of
/// moments the variance. It has the bits and the bound of that reduction.
template <Name name, class Of> struct Rolling : FactsOf<name> {
  static_assert(FactsOf<name>::facts.of == Of::name);
  static constexpr double (*bound)(const Reduced&) = [] {
    if constexpr (requires { Of::bound; })
      return +Of::bound;
    else
      return static_cast<double (*)(const Reduced&)>(nullptr);
  }();
  template <template <class> class A, class F> static constexpr auto reducer(ReducerOptions options) {
    return Of::template reducer<A, F>(options);
  }
};
using RollingSum = Rolling<"rolling_sum", Sum>;
using RollingMean = Rolling<"rolling_mean", Mean>;
using RollingVar = Rolling<"rolling_var", MeanAndVariance>;
using RollingMin = Rolling<"rolling_min", Min>;
using RollingMax = Rolling<"rolling_max", Max>;

/// What a rolling method computes.
enum class RollingKind { sum, mean, variance, min, max };

/// Returns what an operation computes.
constexpr RollingKind rolling_kind(std::string_view operation) {
  return operation == "rolling_sum"    ? RollingKind::sum
         : operation == "rolling_mean" ? RollingKind::mean
         : operation == "rolling_var"  ? RollingKind::variance
         : operation == "rolling_min"  ? RollingKind::min
                                       : RollingKind::max;
}

/// Whether an operation takes a window.
template <class Operation> inline constexpr bool takes_window = Operation::facts.takes_window;

}  // namespace samesum
