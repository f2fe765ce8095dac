/// samesum: sums that return the same bits everywhere and know how far they are from the truth.
/// The public face; nothing else needs to be included.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/choose.hpp"
#include "samesum/name.hpp"
#include "samesum/registry.hpp"
#include "samesum/state.hpp"

namespace samesum {

/// The sum of x, correctly rounded to T (to nearest, ties to even): exact by default, since the right answer
/// is the default answer. The bits depend on the multiset of elements alone: not on their order, the threads,
/// the machine or the caller's floating-point environment. Special values: see Exact::result.
template <Element T> T sum(std::span<const T> x, Options options = {}) {
  static const Variant& exact = find(std::string{"exact/"}.append(Format<T>::name));
  return exact(x, options).template as<T>();
}
template <std::ranges::contiguous_range R>
requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>>
auto sum(const R& x, Options options = {}) {
  return sum(std::span<const std::ranges::range_value_t<R>>{x}, options);
}

/// The sum by a variant chosen at compile time, in that variant's format: sum<"pairwise/kahan/fp32">(x).
/// A name that is no variant does not compile. "@backend" may be left out and means "@cpu".
template <Name name> auto sum(Values x, Options options = {}) {
  static const Variant& variant = find(name.view());
  return variant(x, options).template as<typename Named<name>::Format>();
}

/// The exact state of all elements: merge it with others, ship it, round it once to any format at the end.
Exact accumulate(Values x, Options options = {});

/// A sum and a bound on its error.
struct Estimate {
  Number value;
  double
      bound;  ///< rigorous: |value - sum of x as given| <= bound; infinity if an overflow cannot be excluded
  double magnitudes;  ///< Σ|x|, rounded up
};

/// The value that the variant returns, to the bit, and in the same pass over the data a bound on its error
/// that follows from what was seen: for plain accumulators u·Σ|partial sum| over the nodes of the tree
/// (Higham, Accuracy and Stability, §4.2, eq. 4.3), for the others the a-priori bound at the Σ|x| seen. One
/// thread of the host, where x must be. Throws std::invalid_argument as `find` does, and for variants that
/// promise nothing: they have no fixed tree.
Estimate estimate(Values x, std::string_view name);

}  // namespace samesum
