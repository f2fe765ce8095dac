/// The operations by key: scatter_add, scatter_mean, scatter_min, scatter_max and scatter_count.
#pragma once

#include "samesum/operation/extrema.hpp"
#include "samesum/operation/sums.hpp"

namespace samesum {

/// What all operations by key share. A result is that of the operation `Of` for the elements that have its
/// key, in their order. It has the bits and the bound of that reduction.
template <class Of> struct ByKey : Of {
  using Each = Of;  ///< declares an operation by key
};

struct ScatterAdd : ByKey<Sum> {
  static constexpr std::string_view name = "scatter_add";
  static constexpr std::string_view summary = "sum of the elements of each key";
};
struct ScatterMean : ByKey<Mean> {
  static constexpr std::string_view name = "scatter_mean";
  static constexpr std::string_view summary = "mean of the elements of each key";
};
struct ScatterMin : ByKey<Min> {
  static constexpr std::string_view name = "scatter_min";
  static constexpr std::string_view summary = "smallest element of each key";
};
struct ScatterMax : ByKey<Max> {
  static constexpr std::string_view name = "scatter_max";
  static constexpr std::string_view summary = "largest element of each key";
};

/// The operation that counts elements. It reads no elements, so its one method has the widest format.
struct Count : OwnState {
  static constexpr bool has_order = false, returns_index = true;
  static constexpr int inputs = 0;
  static constexpr auto bound = bound_of_extremum;  ///< exact
  template <class F> static constexpr bool in_format = std::is_same_v<F, fp64>;
  struct Reducer {
    using State = std::int64_t;
  };
  template <template <class> class, class> static constexpr Reducer reducer(ReducerOptions) { return {}; }
};
struct ScatterCount : ByKey<Count> {
  static constexpr std::string_view name = "scatter_count";
  static constexpr std::string_view summary = "number of elements of each key";
};

/// Whether an operation takes keys.
template <class Operation> inline constexpr bool takes_keys = requires { typename Operation::Each; };

}  // namespace samesum
