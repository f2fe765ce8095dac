/// samesum: reductions that return the same bits everywhere and know how far they are from the truth.
/// The public face; nothing else needs to be included.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/choose.hpp"
#include "samesum/catalogue/sum_name.hpp"
#include "samesum/operation/state.hpp"
#include "samesum/version.hpp"

namespace samesum {

/// The sum of x, correctly rounded to T (to nearest, ties to even): exact by default, since the right answer
/// is the default answer. The bits depend on the multiset of elements alone: not on their order, the threads,
/// the machine or the caller's floating-point environment. Special values: see Exact::result.
template <Element T> T sum(std::span<const T> x, Options options = {}) {
  static const Method& exact = find("exact", {.format = Format<T>::name});
  return exact(x, options).template as<T>();
}
template <std::ranges::contiguous_range R>
requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>>
auto sum(const R& x, Options options = {}) {
  return sum(std::span<const std::ranges::range_value_t<R>>{x}, options);
}

/// The sum by a method chosen at compile time, in that method's format: sum<"pairwise/kahan/fp32">(x).
/// A name that is no sum does not compile. "@backend" may be left out and means "@cpu".
template <Name name> auto sum(Values x, Options options = {}) {
  static const Method& method = find(name.view());
  return method(x, options).template as<typename Named<name>::Format>();
}

/// The one number that x, or x and y, reduce to, by the method of that name; a name without a format means
/// the format of x. Throws std::invalid_argument as `find` and Method::operator() do.
Number reduce(std::string_view name, Values x, Options options = {});
Number reduce(std::string_view name, Values x, Values y, Options options = {});
/// argmin and argmax: -1 of nothing.
std::int64_t reduce_to_index(std::string_view name, Values x, Options options = {});

/// The exact state of all elements: merge it with others, ship it, round it once to any format at the end.
Exact accumulate(Values x, Options options = {});

/// A result and a bound on its error.
struct Estimate {
  Number value;
  double bound;       ///< rigorous: |value - truth of x as given| <= bound; infinity if an overflow cannot be
                      ///< excluded
  double magnitudes;  ///< Σ|x|, of dot Σ|xy|, rounded up
};

/// The value that the method returns, to the bit, and a bound on its error that follows from what was seen:
/// for plain sums u·Σ|partial sum| over the nodes of the tree (Higham, Accuracy and Stability, §4.2,
/// eq. 4.3), in the same pass by one thread, for the others the a-priori bound at the Σ|x| or Σ|xy| seen, in
/// a pass of its own. x must be in the memory of the host. Throws std::invalid_argument as `reduce` does, and
/// for methods that promise nothing: they have no fixed tree.
Estimate estimate(Values x, std::string_view name);
Estimate estimate(Values x, Values y, std::string_view name);

}  // namespace samesum
