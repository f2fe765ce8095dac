/// A call of a statistic as a value: means, variances, covariances, correlations and lines, with weights or
/// without.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "samesum/call/options.hpp"
#include "samesum/call/results.hpp"
#include "samesum/call/values.hpp"

namespace samesum {

/// What is computed. The last two take x alone: its vectors are variables, and the results are a symmetric
/// matrix with an entry for each pair of them.
enum class Statistic {
  mean,
  variance,
  covariance,
  correlation,
  linear_regression,
  covariance_matrix,
  correlation_matrix
};

/// The names of statistics, in their order.
inline constexpr std::array<std::string_view, 7> statistic_names{"mean",
                                                                 "variance",
                                                                 "covariance",
                                                                 "correlation",
                                                                 "linear_regression",
                                                                 "covariance_matrix",
                                                                 "correlation_matrix"};

/// What weights mean, for the divisor of a covariance. Other results are the same for both.
enum class WeightKind {
  frequencies,   ///< how often an element occurred: the divisor is Σw - ddof
  reliabilities  ///< how much an element counts: the divisor is Σw - ddof·Σw²/Σw
};

/// Weights of elements, or none: then all are 1.
struct Weights {
  Values values = {};
  WeightKind kind = WeightKind::frequencies;
  std::optional<Layout> layout = {};  ///< where those of each result lie, if not where its elements do

  /// No weights.
  Weights() = default;
  /// Weights that are a contiguous range of elements, or Values.
  template <class W>
  requires std::convertible_to<const W&, Values> Weights(const W& w, WeightKind k = WeightKind::frequencies,
                                                         std::optional<Layout> l = {})
      : values{w}, kind{k}, layout{l} {}

  bool is_given() const { return values.is_given(); }
};

/// A statistic to compute: of which data, in which layout, to where. All data are in host memory.
struct StatisticsCall {
  Statistic statistic;
  Values x;
  Values y = {};  ///< given for covariance, correlation and linear_regression, in the format of x
  Layout layout;  ///< where the elements of each result lie in x; for matrices, those of each variable
  /// Where they lie in y, if not where they do in x: another layout with as many vectors of the same lengths.
  std::optional<Layout> y_layout = {};
  Weights weights = {};  ///< in the format of x; for matrices, one vector for all variables
  /// One number for each result, or for each pair of variables, in any format: each is rounded once to it.
  /// For linear_regression the slopes.
  Results out;
  /// If given: for linear_regression the intercepts, for mean the sums of the weights. In the format of
  /// `out`.
  std::optional<Results> second = {};
  /// `threads`; `ddof`, any finite number of 0 or more; `where` and `skip_nan`, under which an element takes
  /// part with all that belongs to it: x, y and weight. Of a matrix, an entry is that of the elements that
  /// take part in both variables.
  Options options = {};
};

/// Whether the results are a matrix.
constexpr bool is_matrix(Statistic s) {
  return s == Statistic::covariance_matrix || s == Statistic::correlation_matrix;
}
/// Whether the statistic takes y.
constexpr bool takes_y(Statistic s) {
  return s == Statistic::covariance || s == Statistic::correlation || s == Statistic::linear_regression;
}

/// Where the elements of each result lie in y.
inline Layout y_layout(const StatisticsCall& call) { return call.y_layout.value_or(call.layout); }
/// Where the weights of each result lie; for matrices, those of all variables.
inline Layout weights_layout(const StatisticsCall& call) {
  if (call.weights.layout) return *call.weights.layout;
  return is_matrix(call.statistic) ? Layout::vector(call.layout.n) : call.layout;
}

/// Returns a message that names the invalid argument and the remedy; empty if all are valid. Elements are not
/// read.
std::string validation_error(const StatisticsCall& call);

}  // namespace samesum
