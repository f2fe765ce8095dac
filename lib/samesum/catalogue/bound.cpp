/// The error bounds of methods: checks of arguments, and the formula of each kind of method.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "samesum/accumulator/exact.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/grid_reduction.hpp"

namespace samesum {
namespace {

/// Adds to `lost`, the error of a sum, what the additions to a shared cell may lose beyond their rounding.
/// Such a loss takes part in the roundings of later additions. It counts as one more element, added without a
/// rounding: by a factor of (1+u)^h < e while γ_h is finite, or of 1 + (n-1)u where that bound is the smaller
/// one; `probable_gamma` is at most 1.
double with_shared_cell_loss(const Method& m, std::size_t n, double lost) {
  const double per_arrival = Code::of(m).lost_per_arrival;
  if (per_arrival == 0) return lost;
  const double factor = 3 + static_cast<double>(n) * m.format->unit_roundoff;
  return rounded_up(lost + factor * per_arrival * static_cast<double>(m.height(n).merges + 1));
}

/// Bounds a sum; rigorously if `probability` is 1.
SumBound bound_of_sum_of(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes,
                         Number result, double probability) {
  const Code& code = Code::of(m);
  SumBound all = sum_bound(code.accumulator_bound, input, *m.format, n, m.height(n), magnitudes, result);
  if (probability < 1) {
    const SumBound probable = probable_sum_bound(code.accumulator_probable_bound, input, *m.format, n,
                                                 m.height(n), magnitudes, result, 1 - probability);
    all = {std::min(all.prior, probable.prior), std::min(all.bound, probable.bound)};
  }
  return {with_shared_cell_loss(m, n, all.prior), with_shared_cell_loss(m, n, all.bound)};
}

Reduced reduced(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes, double result) {
  return {input,      *m.format, n, m.height(n), Code::of(m).accumulator_bound, m.accumulator != "plain",
          magnitudes, result};
}

double bound_of_moments_of(const Method& m, const FormatInfo& input, std::size_t n,
                           const ResultNumbers& result, double largest, const BoundOptions& options) {
  const auto& [mean, variance] = result.number;
  if (m.accumulator == Exact::name) return bound_of_rounding(options.result_index == 0 ? mean : variance);
  const double value = mean.to_double();
  if (!std::isfinite(value) || !holds(*m.format, input)) return unbounded_error;
  const MomentsBound bound =
      bound_of_moments(reduced(m, input, n, largest, value), variance.to_double(), options.ddof);
  return options.result_index == 0 ? bound.mean : bound.variance;
}

/// Bounds one element. The formula needs the true value t, which is at most |computed| + bound(t). Its slope
/// is far below 1/2, so it holds for |computed| + 2·bound(|computed|) if it is at most twice as large there.
double bound_of_softmax_element(const Method& m, const FormatInfo& input, std::size_t n, double value,
                                double spread) {
  const SoftmaxBound all = Code::of(m).softmax_bound(input, n, spread);
  const double sign = value < 0 ? -1 : 1, first = all.of_element(value, spread);
  const double bound = all.of_element(value + sign * 2 * first, spread);
  return bound <= 2 * first ? rounded_up(bound) : unbounded_error;
}

/// What Method::bound needs to know of the data.
std::string magnitudes_of_bound(const Method& m) {
  if (m.keeps_format) return "the largest minus the smallest element of the row";
  if (m.results == 2) return "the largest |x|";
  return std::string{m.takes_grid ? "the largest |" : "the sum of |"} + (m.inputs == 2 ? "xy|" : "x|");
}

/// Checks all arguments; returns what the accumulator proves, and the bound.
SumBound bounds(const Method& m, const FormatInfo& input, std::size_t n, const ResultNumbers& result,
                double magnitudes, const BoundOptions& options) {
  const auto both = [](double bound) { return SumBound{bound, bound}; };
  if (!(options.probability > 0 && options.probability <= 1))
    throw std::invalid_argument("samesum: probability is " + three_digits(options.probability) +
                                "; it must be above 0 and at most 1");
  check(m.name, input);
  magnitudes = checked_magnitudes(m.name, m.results == 2 ? "largest" : "magnitudes", magnitudes);
  if (options.result_index >= static_cast<std::size_t>(m.results))
    refuse(m, "result_index is " + std::to_string(options.result_index) + "; it must be less than " +
                  std::to_string(m.results) + ", the number of results");
  if (const std::string wrong = validation_error(m, {.ddof = options.ddof, .grid = options.grid});
      !wrong.empty())
    refuse(m, wrong);
  if (result.count != static_cast<std::size_t>(m.results))
    refuse(m, m.results == 2 ? "the method has two results; pass both, {mean, variance}"
                             : "the method has one result; pass only that");
  if (m.returns_index) return both(holds(*m.format, input) ? 0 : unbounded_error);
  const FormatInfo& of_result = *m.result_format(input);
  if (m.results == 2) {
    check(m.name, "mean", result.number[0], of_result);
    check(m.name, "variance", result.number[1], of_result);
    return both(bound_of_moments_of(m, input, n, result, magnitudes, options));
  }
  const Number number = result.number[0];
  check(m.name, "result", number, of_result);
  const double value = number.to_double();
  if (n == 0 && std::isfinite(value)) return both(0);
  if (m.keeps_format)
    return both(std::isfinite(value) && m.accepts(input) && Code::of(m).softmax_bound
                    ? bound_of_softmax_element(m, input, n, value, magnitudes)
                    : unbounded_error);
  if (m.accumulator == Exact::name) return both(bound_of_rounding(number));
  if (m.takes_grid) return both(bound_on_grid(input, *Code::of(m).adds, n, magnitudes, number, options.grid));
  if (m.accumulator == Hopper::name && !m.accepts(input)) return both(unbounded_error);
  if (Code::of(m).operation_bound == bound_of_sum)
    return bound_of_sum_of(m, input, n, magnitudes, number, options.probability);
  if (!std::isfinite(value) || !holds(*m.format, input)) return both(unbounded_error);
  return both(Code::of(m).operation_bound(reduced(m, input, n, magnitudes, value)));
}

}  // namespace

double Method::bound(const FormatInfo& input, std::size_t n, ResultNumbers result,
                     std::optional<double> magnitudes, BoundOptions options) const {
  const FloatingPointEnvironment environment;
  const auto bound_for = [&](double of_data) {
    return bounds(*this, input, n, result, of_data, options).bound;
  };
  const double bound = bound_for(magnitudes.value_or(unbounded_error));
  if (!magnitudes && std::isinf(bound) && std::isfinite(bound_for(0)))
    refuse(*this, "magnitudes is missing, without which the bound is infinite; pass " +
                      magnitudes_of_bound(*this) + ", or call estimate");
  return bound;
}

double prior_bound(const Method& m, const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                   double probability) {
  const FloatingPointEnvironment environment;
  return bounds(m, input, n, result, magnitudes, {probability}).prior;
}

}  // namespace samesum
