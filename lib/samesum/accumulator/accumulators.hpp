/// The list of accumulators that an order combines: a new one is a file beside this and a word here.
#pragma once

#include "samesum/accumulator/double_word.hpp"
#include "samesum/accumulator/kahan.hpp"
#include "samesum/accumulator/neumaier.hpp"
#include "samesum/accumulator/plain.hpp"
#include "samesum/format/formats.hpp"

namespace samesum {

/// A list of class templates.
template <template <class> class... A> struct AccumulatorList {
  static constexpr std::size_t size = sizeof...(A);
  /// visit.operator()<A>() for each A in turn.
  template <class Visit> static constexpr void for_each(Visit&& visit) {
    (visit.template operator()<A>(), ...);
  }
  template <template <class> class X> static constexpr std::size_t index_of() {
    return TypeList<A<Scalar<fp64>>...>::template index_of<X<Scalar<fp64>>>();
  }
};

using Accumulators = AccumulatorList<Plain, Kahan, Neumaier, DoubleWord>;

}  // namespace samesum
