/// Public interface for data in host memory: reductions that return the same bits everywhere, with bounds on
/// their errors.
#pragma once

#include "samesum/accumulator/exact.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/choose.hpp"
#include "samesum/catalogue/named.hpp"
#include "samesum/catalogue/partial.hpp"
#include "samesum/version.hpp"

namespace samesum {

/// X can be the input of a typed reduction: a contiguous range of elements of one format, or Values, whose
/// format is known at run time only.
template <class X>
concept Input = std::same_as<X, Values> ||
    (std::ranges::contiguous_range<const X>&& Element<std::remove_cv_t<std::ranges::range_value_t<const X>>>);

namespace detail {
/// X is a contiguous range of numbers that no method takes.
template <class X>
concept OtherNumbers = !Input<X> && std::ranges::contiguous_range<const X> &&
                       std::is_arithmetic_v<std::remove_cv_t<std::ranges::range_value_t<const X>>>;
/// X is what a call may have, even if only to say what to pass instead.
template <class X>
concept Numbers = Input<X> || OtherNumbers<X>;

/// The format of the elements of X; void for Values.
template <class X> struct FormatOf {
  using Given = std::remove_cv_t<std::ranges::range_value_t<const X>>;
  using type = std::conditional_t<Element<Given>, Given, double>;
  static_assert(!std::is_integral_v<Given>,
                "samesum: the elements are integers, which no method takes; convert them, for example by "
                "std::vector<double>(x.begin(), x.end()), which is exact up to 2^53");
  static_assert(Element<Given> || std::is_integral_v<Given>,
                "samesum: the elements have a format that no method takes; convert them to double, float, "
                "samesum::bf16 or samesum::fp16");
};
template <> struct FormatOf<Values> { using type = void; };
template <Numbers X> using format_of = typename FormatOf<X>::type;

/// Runs a method on one vector, or on two.
template <class Result> Result reduce_to(const Method& method, Values x, Values y, const Options& options) {
  if constexpr (Element<Result>) {
    return method(x, y, options).template as<Result>();
  } else {
    Result result;
    run({.method = &method,
         .x = x,
         .y = y,
         .layout = Layout::vector(x.size),
         .out = {method.result_format(*method.format), &result, static_cast<std::size_t>(method.results)},
         .options = options});
    return result;
  }
}
}  // namespace detail

/// Reduces x by a method chosen at compile time: reduce<"norm/tree/fp64">(x), reduce<"argmax">(x).
///
/// The result has the format of the method; it is a std::int64_t for argmin and argmax, and a MeanVariance
/// for moments. A name may leave out what `find` completes. Without a format it means that of the elements;
/// Values have none, so they need a name with one. A name of no method, or of a method with another result
/// than one per vector, does not compile. Promise and error bound: Method::promise, Method::bound.
/// @throws std::invalid_argument if the arguments do not fit together, or if this process has no such
/// backend.
/// @throws std::overflow_error if a sum overflows options.grid.
template <Name name, detail::Numbers X> auto reduce(const X& x, Options options = {}) {
  using Chosen = Named<name, detail::format_of<X>>;
  static_assert(Chosen::facts.inputs == 1, "samesum: the operation takes two inputs; pass y, too");
  return detail::reduce_to<typename Chosen::Result>(Chosen::method(), x, {}, options);
}
/// Reduces two inputs of the same format and size: reduce<"dot/tree/kahan/fp32">(x, y).
template <Name name, detail::Numbers X, detail::Numbers Y>
auto reduce(const X& x, const Y& y, Options options = {}) {
  using Second [[maybe_unused]] = detail::format_of<Y>;
  using Chosen = Named<name, detail::format_of<X>>;
  static_assert(Chosen::facts.inputs == 2, "samesum: the operation takes one input; leave y out");
  return detail::reduce_to<typename Chosen::Result>(Chosen::method(), x, y, options);
}

// --- by the default method ---------------------------------------------------------------------------------
// The exact method of the operation if there is one, else tree/plain (default_method). The type of the result
// is the format of the elements. Promise: Method::promise of that method, `everywhere` or `order_free`. Error
// bound: Method::bound; exact methods round once. Each function throws std::invalid_argument if an input is
// null but not empty or is misaligned, if two inputs differ in size, or if an option is invalid.

namespace detail {
/// Reduces x, or x and y, by the default method of an operation.
template <Name operation, Numbers X, class... Y>
auto by_default(const X& x, const Options& options, const Y&... y) {
  using T = format_of<X>;
  using Operation = FactsOf<operation>;
  static_assert(Element<T>, "samesum: pass a range or span; for Values, call reduce(\"operation/...\", x)");
  static const Method& method = *default_method(Operation::name, format_info<T>());
  using F = std::conditional_t<Operation::facts.has_format(Format<T>::name), T, float>;
  return reduce_to<ResultOf<Operation::facts.returns_index, Operation::facts.results, F>>(method, x, {y...},
                                                                                          options);
}
}  // namespace detail

/// Returns the mean of x; NaN if x is empty.
template <detail::Numbers X> auto mean(const X& x, Options options = {}) {
  return detail::by_default<"mean">(x, options);
}
/// Returns the Euclidean norm of x. Squares neither overflow nor underflow on the way.
template <detail::Numbers X> auto norm(const X& x, Options options = {}) {
  return detail::by_default<"norm">(x, options);
}
/// Returns the sum of the squares of x.
template <detail::Numbers X> auto squared_norm(const X& x, Options options = {}) {
  return detail::by_default<"squared_norm">(x, options);
}
/// Returns the sum of the absolute values of x.
template <detail::Numbers X> auto sum_of_magnitudes(const X& x, Options options = {}) {
  return detail::by_default<"sum_of_magnitudes">(x, options);
}
/// Returns the product of x, which overflows only at the end; 1 if x is empty.
template <detail::Numbers X> auto prod(const X& x, Options options = {}) {
  return detail::by_default<"prod">(x, options);
}
/// Returns mean and variance of x, as a MeanVariance. The divisor of the variance is n - options.ddof.
template <detail::Numbers X> auto moments(const X& x, Options options = {}) {
  return detail::by_default<"moments">(x, options);
}
/// Returns log Σe^x, in fp64 for elements of fp64, else in fp32; -inf if x is empty.
template <detail::Numbers X> auto logsumexp(const X& x, Options options = {}) {
  return detail::by_default<"logsumexp">(x, options);
}
/// Returns the smallest element; NaN if there is one, +inf if x is empty.
template <detail::Numbers X> auto min(const X& x, Options options = {}) {
  return detail::by_default<"min">(x, options);
}
/// Returns the largest element; NaN if there is one, -inf if x is empty.
template <detail::Numbers X> auto max(const X& x, Options options = {}) {
  return detail::by_default<"max">(x, options);
}
/// Returns the first index of the smallest element, a std::int64_t; -1 if x is empty.
template <detail::Numbers X> auto argmin(const X& x, Options options = {}) {
  return detail::by_default<"argmin">(x, options);
}
/// Returns the first index of the largest element, a std::int64_t; -1 if x is empty.
template <detail::Numbers X> auto argmax(const X& x, Options options = {}) {
  return detail::by_default<"argmax">(x, options);
}
/// Returns the dot product of x and y, which have the same format and size.
template <detail::Numbers X, detail::Numbers Y> auto dot(const X& x, const Y& y, Options options = {}) {
  using Second [[maybe_unused]] = detail::format_of<Y>;
  return detail::by_default<"dot">(x, options, Values{y});
}

/// Returns the sum of x, correctly rounded to the format of its elements (to nearest, ties to even).
///
/// The sum is exact before its one rounding. Special values: see Exact::result. Promise: `order_free`. The
/// bits depend only on the multiset of elements, not on their order, the number of threads, the machine or
/// the caller's floating-point environment.
/// @throws std::invalid_argument if x is null but not empty or is misaligned, or if options.threads is
///   negative.
template <detail::Numbers X> auto sum(const X& x, Options options = {}) {
  return reduce<"exact">(x, options);
}
/// Returns the sum of x by a method chosen at compile time, as `reduce`: sum<"pairwise/kahan">(x).
template <Name name, detail::Numbers X> auto sum(const X& x, Options options = {}) {
  using Sum = NamedSum<name, detail::format_of<X>>;
  return detail::reduce_to<typename Sum::Result>(Sum::method(), x, {}, options);
}

/// Reduces x to one number by the method `name`, and returns it in the format of the method.
///
/// A name is `operation/order/accumulator/format@backend` (see `find`). A name without an operation means
/// "sum", one without a format the format of x, one without a backend "cpu". Promise and error bound:
/// Method::promise, Method::bound.
/// @throws std::invalid_argument as `find` and Method::operator() do.
Number reduce(std::string_view name, Values x, Options options = {});
/// A range of integers does not compile, with a message that names the remedy.
template <detail::OtherNumbers X> Number reduce(std::string_view, const X&, Options = {}) {
  using Elements [[maybe_unused]] = detail::format_of<X>;
  return {};
}
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
Estimate estimate(std::string_view name, Values x, Values y = {});
/// Returns the results of a method for each vector of a layout, in their order, and bounds on their errors:
/// of each row of a matrix, for example. Otherwise as for one vector.
/// @throws std::invalid_argument as for one vector, and for an invalid layout.
std::vector<Estimate> estimate(std::string_view name, Values x, Layout layout);
/// Returns the same for two inputs of the same format and size.
std::vector<Estimate> estimate(std::string_view name, Values x, Values y, Layout layout);

}  // namespace samesum
