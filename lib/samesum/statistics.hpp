/// Statistics of data in host memory: means and variances of elements with weights, covariances, correlations
/// and linear regression, each result correctly rounded.
///
/// Weights w are frequencies or reliabilities (WeightKind); without weights all are 1, and Σw is the number
/// of elements n.
///
/// | statistic | formula |
/// | --- | --- |
/// | mean | Σwx / Σw |
/// | variance | the covariance of x and x |
/// | covariance | M(x, y) / (Σw·(Σw - ddof)) with the moment M(x, y) = Σw·Σwxy - Σwx·Σwy |
/// | — of reliabilities | M(x, y) / (Σw·(Σw - ddof·Σw²/Σw)) |
/// | correlation | M(x, y) / √(M(x, x)·M(y, y)), Pearson's |
/// | linear regression | slope M(x, y) / M(x, x), intercept (Σwy·Σwx² - Σwx·Σwxy) / M(x, x) |
///
/// All sums are exact integers times a power of two, products of three factors included, so that nothing
/// cancels, overflows or underflows; the quotient, or the quotient by a root, is rounded once, to nearest
/// with ties to even. The bound of its error is statistic_bound: half a unit in the last place. Promise:
/// `order_free`. The bits depend neither on the order of the elements nor on threads, machine, layout or the
/// caller's floating-point environment.
///
/// Special values. A mean is the quotient of both sums in IEEE arithmetic: NaN or infinite if they are. All
/// other results are NaN if an element or a weight is NaN or infinite, or if nothing is left to divide by:
/// too few elements for ddof, a constant x, weights that sum to zero. A result of zero is +0, except for
/// means.
///
/// Sources: Kulisch 1971 (exact sums of products in a long integer); Chan, Golub and LeVeque 1983 show what
/// the textbook formula loses with rounded sums. The divisors are those of NumPy's fweights and aweights.
#pragma once

#include <functional>

#include "samesum/call/statistics_call.hpp"
#include "samesum/samesum.hpp"

namespace samesum {

/// Computes a statistic of each vector of a layout, or a matrix of all pairs of them, into call.out.
///
/// Returns whether the weights of a result with elements sum to zero, where NumPy raises an error. The mean
/// is then Σwx / 0, other results are NaN.
/// @param pause is called on the calling thread between portions of some milliseconds, if it is given. It may
///   throw, to end the call.
/// @throws std::invalid_argument, before anything is written, if the arguments do not fit together, or if a
///   weight of an element that takes part is negative, except for means.
/// @throws std::bad_alloc if memory is exhausted. Then some results may be written.
bool run(const StatisticsCall& call, const std::function<void()>& pause = {});

/// Returns a bound on |result - exact statistic|: half a unit in the last place of the result; infinite if it
/// is not finite.
/// @throws std::invalid_argument if the format of the result is not in samesum::formats.
double statistic_bound(Number result);

/// The line y = slope·x + intercept.
template <class T> struct LinearRegression { T slope, intercept; };

namespace detail {
/// Computes one result, or two, of one vector.
void compute(Statistic statistic, const Values& x, const Values& y, const Weights& weights,
             const Options& options, void* result, void* second = nullptr);

template <Numbers X>
format_of<X> statistic_of(Statistic statistic, const X& x, const Values& y, const Weights& weights,
                          const Options& options) {
  static_assert(Element<format_of<X>>, "samesum: pass a range or span; for Values, call run");
  format_of<X> result;
  compute(statistic, x, y, weights, options, &result);
  return result;
}
}  // namespace detail

// --- of one vector -----------------------------------------------------------------------------------------
// The results have the format of the elements, which all inputs share. Special values, bounds and errors: as
// `run`.

/// Returns the mean Σwx / Σw. Weights may be negative.
template <detail::Numbers X> auto weighted_mean(const X& x, const Weights& weights, Options options = {}) {
  return detail::statistic_of(Statistic::mean, x, {}, weights, options);
}
/// Returns the variance of elements with weights.
template <detail::Numbers X>
auto weighted_variance(const X& x, const Weights& weights, Options options = {}) {
  return detail::statistic_of(Statistic::variance, x, {}, weights, options);
}
/// Returns the covariance of x and y, which have the same format and size.
template <detail::Numbers X, detail::Numbers Y>
auto covariance(const X& x, const Y& y, Options options = {}, const Weights& weights = {}) {
  return detail::statistic_of(Statistic::covariance, x, y, weights, options);
}
/// Returns Pearson's correlation of x and y, which is never beyond ±1.
template <detail::Numbers X, detail::Numbers Y>
auto correlation(const X& x, const Y& y, Options options = {}, const Weights& weights = {}) {
  return detail::statistic_of(Statistic::correlation, x, y, weights, options);
}
/// Returns the line with the least squared distances from y. Slope and intercept are rounded independently.
template <detail::Numbers X, detail::Numbers Y>
auto linear_regression(const X& x, const Y& y, Options options = {}, const Weights& weights = {}) {
  using T = detail::format_of<X>;
  static_assert(Element<T>, "samesum: pass a range or span; for Values, call run");
  LinearRegression<T> line;
  detail::compute(Statistic::linear_regression, x, y, weights, options, &line.slope, &line.intercept);
  return line;
}

}  // namespace samesum
