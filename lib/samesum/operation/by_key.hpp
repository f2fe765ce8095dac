/// The operations by key: scatter_add, scatter_mean, scatter_min, scatter_max and scatter_count.
#pragma once

#include "samesum/operation/extrema.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

/// The operation `Of` by key. A result is that of `Of` for the elements that have its key, in their order. It
/// has the bits and the bound of that reduction.
template <Name name, class Of> struct ByKey : FactsOf<name> {
  static constexpr auto bound = Of::bound;
  template <template <class> class A, class F> static constexpr auto reducer(ReducerOptions options) {
    return Of::template reducer<A, F>(options);
  }
};

/// Counts elements. It reads none, so there is one method, in the widest format.
struct Count {
  static constexpr auto bound = bound_of_extremum;  ///< exact
  struct Reducer {
    using State = std::int64_t;
  };
  template <template <class> class, class> static constexpr Reducer reducer(ReducerOptions) { return {}; }
};

using ScatterAdd = ByKey<"scatter_add", Sum>;
using ScatterMean = ByKey<"scatter_mean", Mean>;
using ScatterMin = ByKey<"scatter_min", Min>;
using ScatterMax = ByKey<"scatter_max", Max>;
using ScatterCount = ByKey<"scatter_count", Count>;

/// Whether an operation takes keys.
template <class Operation> inline constexpr bool takes_keys = Operation::facts.takes_keys;

}  // namespace samesum
