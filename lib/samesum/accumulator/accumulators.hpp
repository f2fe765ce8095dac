/// The list of accumulators that are combined with an order. A new one is a file in this folder and an entry
/// here.
#pragma once

#include "samesum/accumulator/double_word.hpp"
#include "samesum/accumulator/kahan.hpp"
#include "samesum/accumulator/names.hpp"
#include "samesum/accumulator/neumaier.hpp"
#include "samesum/accumulator/plain.hpp"
#include "samesum/base/type_list.hpp"
#include "samesum/format/format.hpp"

namespace samesum {

/// A list of accumulators, which are class templates.
template <template <class> class... A> struct AccumulatorList {
  static constexpr std::size_t size = sizeof...(A);
  static constexpr std::array<std::string_view, size> names{A<Scalar<fp64>>::name...};
  /// Calls visit.operator()<A>() for each A, in the order of the list.
  template <class Visit> static constexpr void for_each(Visit&& visit) {
    (visit.template operator()<A>(), ...);
  }
  /// Position of X in the list.
  template <template <class> class X> static constexpr std::size_t index_of() {
    return TypeList<A<Scalar<fp64>>...>::template index_of<X<Scalar<fp64>>>();
  }
};

/// All accumulators that are combined with an order.
using Accumulators = AccumulatorList<Plain, Kahan, Neumaier, DoubleWord>;
static_assert(Accumulators::names == accumulator_names,
              "samesum: accumulator_names (names.hpp) must list the accumulators in this order");

}  // namespace samesum
