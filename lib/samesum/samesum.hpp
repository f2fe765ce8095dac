/// Public interface for data in host memory: reductions that return the same bits everywhere, with bounds on
/// their errors.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/choose.hpp"
#include "samesum/catalogue/partial.hpp"
#include "samesum/catalogue/sum_name.hpp"
#include "samesum/version.hpp"

namespace samesum {

/// Returns the sum of x, correctly rounded to T (to nearest, ties to even).
///
/// The sum is exact before its one rounding. Special values: see Exact::result. Promise: `order_free`. The
/// bits depend only on the multiset of elements, not on their order, the number of threads, the machine or
/// the caller's floating-point environment.
/// @throws std::invalid_argument if x is null but not empty or is misaligned, or if options.threads is
///   negative.
template <Element T> T sum(std::span<const T> x, Options options = {}) {
  static const Method& exact = find("exact", {.format = Format<T>::name});
  return exact(x, options).template as<T>();
}
/// Returns the sum of a contiguous range, correctly rounded to the format of its elements. Promise and
/// errors: as for a span.
template <std::ranges::contiguous_range R>
requires Element<std::remove_cv_t<std::ranges::range_value_t<R>>>
auto sum(const R& x, Options options = {}) {
  return sum(std::span<const std::ranges::range_value_t<R>>{x}, options);
}

/// Returns the sum of x by a method chosen at compile time, in the format of that method:
/// sum<"pairwise/kahan/fp32">(x).
///
/// A name that is not the name of a sum does not compile. A name without a backend means the backend "cpu".
/// Promise and error bound: Method::promise, Method::bound.
/// @throws std::invalid_argument as for a span, and if this process has no such backend.
template <Name name> auto sum(Values x, Options options = {}) {
  static const Method& method = find(name.view());
  return method(x, options).template as<typename Named<name>::Format>();
}

/// Reduces x to one number by the method `name`, and returns it in the format of the method.
///
/// A name is `operation/order/accumulator/format@backend` (see `find`). A name without an operation means
/// "sum", one without a format the format of x, one without a backend "cpu". Promise and error bound:
/// Method::promise, Method::bound.
/// @throws std::invalid_argument as `find` and Method::operator() do.
Number reduce(std::string_view name, Values x, Options options = {});
/// Reduces two inputs of the same format and size to one number by the method `name`, for example to their
/// dot product. Promise, error bound and errors: as for one input.
Number reduce(std::string_view name, Values x, Values y, Options options = {});
/// Returns the first index of the smallest or largest element, by the method `name` (argmin or argmax); -1 if
/// x is empty.
/// @throws std::invalid_argument as `reduce` does, and if the method returns no index.
std::int64_t reduce_to_index(std::string_view name, Values x, Options options = {});

/// Returns the runs of equal keys, of which there is one for each element of x.
/// @throws std::invalid_argument as for keys alone, and if there are more or fewer keys than elements.
KeySegments segments_of(Keys keys, const Values& x);

/// The runs of equal keys that follow each other, and the results of their elements.
template <class T> struct RunResults {
  std::vector<std::int64_t> keys;  ///< the key of each run
  std::vector<T> results;          ///< Method::results numbers for each run: two for moments, otherwise one
};

/// Reduces the elements of each run of equal keys that follow each other: element k has the key keys[k]. If
/// the keys are sorted, runs are all elements of a key.
///
/// Takes every method that takes segments, the methods by key, softmax and scans excepted. Each result has
/// the bits of the same reduction of the elements of its run alone; T is the format of the results, or
/// std::int64_t for indices, which count from the beginning of the run. Promise and error bound:
/// Method::promise, Method::bound.
/// @throws std::invalid_argument if x and keys differ in size, and as segments_of and reduce with segments
/// do.
template <class T>
RunResults<T> reduce_by_key(const Method& method, Values x, Values y, Keys keys, Options options = {}) {
  KeySegments runs = segments_of(keys, x);
  std::vector<T> results(runs.keys.size() * static_cast<std::size_t>(method.results));
  run({.method = &method,
       .x = x,
       .y = y,
       .layout = Layout::segments(runs.offsets.data(), runs.keys.size()),
       .out = std::span{results},
       .options = options});
  return {std::move(runs.keys), std::move(results)};
}
/// Reduces one input.
template <class T>
RunResults<T> reduce_by_key(const Method& method, Values x, Keys keys, Options options = {}) {
  return reduce_by_key<T>(method, x, {}, keys, options);
}

/// Returns the exact state of all elements of x. States can be merged in any order, serialised, and rounded
/// once to any format. Promise: `order_free`.
/// @throws std::invalid_argument if x is null but not empty or is misaligned, or if options.threads is
///   negative.
Exact accumulate(Values x, Options options = {});

/// A result with a bound on its error.
struct Estimate {
  Number value;  ///< the bits that the method returns
  double bound;  ///< rigorous: |value - exact result for x as given| <= bound; infinity if overflow cannot be
                 ///< excluded
  double magnitudes;  ///< Σ|x|, for dot Σ|xy|, rounded up
};

/// Returns the bits that the method `name` returns for x, or for x and y, and a bound on their error computed
/// from the data.
///
/// For plain sums the bound is u·Σ|partial sum| over the nodes of the tree (Higham, Accuracy and Stability,
/// §4.2, eq. 4.3), or the a-priori bound if that is smaller. For other methods it is the a-priori bound
/// (Method::bound) for the Σ|x| or Σ|xy| of the data. One thread computes a sum and its bound in one pass;
/// other operations take a second pass for the bound. x must be in host memory.
/// @throws std::invalid_argument as `reduce` does, and for methods with the promise `none`, which have no
///   fixed tree.
Estimate estimate(Values x, Values y, std::string_view name);
/// Returns the bits and the error bound of a method for one input.
inline Estimate estimate(Values x, std::string_view name) { return estimate(x, {}, name); }

}  // namespace samesum
