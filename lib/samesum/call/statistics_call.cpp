/// Checks of calls of statistics, and their messages.
#include "samesum/call/statistics_call.hpp"

#include <algorithm>
#include <cmath>

#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/call/validation.hpp"

namespace samesum {
namespace {

std::string name_of(const StatisticsCall& call) {
  return std::string{statistic_names[static_cast<std::size_t>(call.statistic)]};
}

/// Checks one input, and that its vectors are those of x in number and length.
std::string error_of_input(const StatisticsCall& call, const char* name, const Values& v, const Layout& l) {
  if (std::string wrong = validation_error(name, v); !wrong.empty()) return wrong;
  const std::string input = name;
  if (v.format->index != call.x.format->index)
    return "x has format " + std::string{call.x.format->name} + " and " + input + " has format " +
           std::string{v.format->name} + "; convert one of them";
  if (std::string wrong = validation_error(l, {}, true); !wrong.empty())
    return input == "x" ? wrong : input + ": " + wrong;
  if (const std::size_t needed = *extent(l, true); v.size < needed)
    return input + " has " + std::to_string(v.size) + " elements, but its layout reads " +
           std::to_string(needed) + "; pass more elements or a smaller layout";
  const bool is_shared = is_matrix(call.statistic) && name != std::string_view{"x"};
  const std::size_t results = is_shared ? 1 : call.layout.results();
  if (l.results() != results)
    return "the layout of " + input + " has " + std::to_string(l.results()) + " vectors; it needs " +
           std::to_string(results) + (is_shared ? ", which all variables share" : ", as that of x");
  const bool have_one_length = !l.offsets && !call.layout.offsets;
  for (std::size_t r = 0; r < (have_one_length ? std::min<std::size_t>(results, 1) : results); ++r)
    if (const std::size_t n = l.length(r / l.inner), of_x = call.layout.length(r / call.layout.inner);
        n != of_x)
      return "vector " + std::to_string(r) + " of " + input + " has " + std::to_string(n) +
             " elements, and that of x " + std::to_string(of_x) + "; pass as many";
  return {};
}

std::string error_of_inputs(const StatisticsCall& call) {
  const bool needs_y = takes_y(call.statistic);
  if (needs_y && !call.y.is_given()) return "y is missing; " + name_of(call) + " takes x and y, so pass both";
  if (!needs_y && call.y.is_given()) return name_of(call) + " takes one input; leave out y";
  if (!needs_y && call.y_layout) return "y_layout is given without y; leave it out";
  if (!call.weights.is_given() && call.weights.layout)
    return "weights has a layout, but no values; pass them, or leave out the layout";
  if (call.weights.kind != WeightKind::frequencies && call.weights.kind != WeightKind::reliabilities)
    return "weights.kind is unknown; use one of samesum::WeightKind";
  if (is_matrix(call.statistic) && call.layout.offsets)
    return "layout has segments; variables have as many observations each, so use Layout::rows or "
           "Layout::axis";
  std::string wrong = error_of_input(call, "x", call.x, call.layout);
  if (wrong.empty() && needs_y) wrong = error_of_input(call, "y", call.y, y_layout(call));
  if (wrong.empty() && call.weights.is_given())
    wrong = error_of_input(call, "weights", call.weights.values, weights_layout(call));
  return wrong;
}

/// Checks an array for results, whose inputs are valid.
std::string error_of_results(const StatisticsCall& call, const char* name, const Results& out) {
  if (!is_listed(out.format))
    return std::string{name} + " has no format of floating-point numbers; use one of samesum::formats";
  const std::size_t bytes = out.format->bytes, n = call.layout.results();
  if (std::string wrong = validation_error(name, out.data, out.size, {bytes, bytes}); !wrong.empty())
    return wrong;
  const std::size_t entries = is_matrix(call.statistic) ? n * n : n;
  if (out.size != entries || (n >> 32 != 0 && is_matrix(call.statistic)))
    return std::string{name} + " has room for " + std::to_string(out.size) + " numbers; the results are " +
           std::to_string(entries);
  for (const auto& [input, v] : {std::pair{"x", &call.x}, {"y", &call.y}, {"weights", &call.weights.values}})
    if (v->is_given() && overlap(v->data, v->size * v->format->bytes, out.data, out.size * bytes))
      return std::string{name} + " overlaps " + input + "; use separate memory for the results";
  if (overlap(call.options.where.data, call.options.where.size, out.data, out.size * bytes))
    return std::string{name} + " overlaps where; use separate memory for the results";
  return {};
}

std::string error_of_all_results(const StatisticsCall& call) {
  std::string wrong = error_of_results(call, "out", call.out);
  if (!wrong.empty() || !call.second) return wrong;
  if (call.statistic != Statistic::linear_regression && call.statistic != Statistic::mean)
    return "second is only for intercepts and for sums of weights; leave it out";
  wrong = error_of_results(call, "second", *call.second);
  if (wrong.empty() && call.second->format->index != call.out.format->index)
    return "out has format " + std::string{call.out.format->name} + " and second has format " +
           std::string{call.second->format->name} + "; pass one format for both";
  const auto bytes = [](const Results& r) { return r.size * r.format->bytes; };
  if (wrong.empty() && overlap(call.out.data, bytes(call.out), call.second->data, bytes(*call.second)))
    return "second overlaps out; use separate memory";
  return wrong;
}

std::string error_of_options(const StatisticsCall& call) {
  const Options& o = call.options;
  if (o.threads < 0) return "threads is " + std::to_string(o.threads) + "; it must be 0 (automatic) or more";
  if (!(o.ddof >= 0) || !std::isfinite(o.ddof))
    return "ddof is " + three_digits(o.ddof) + "; it must be a finite number of 0 or more";
  if (o.exclusive || o.combine || o.grid || o.window != 0 || o.centred || o.min_periods)
    return "statistics take the options threads, ddof, where and skip_nan; leave out the others";
  return validation_error(o.where, call.x.size, "element of x");
}

}  // namespace

std::string validation_error(const StatisticsCall& call) {
  const FloatingPointEnvironment environment;
  if (static_cast<std::size_t>(call.statistic) >= statistic_names.size())
    return "statistic is unknown; use one of samesum::Statistic";
  std::string wrong = error_of_options(call);
  if (wrong.empty()) wrong = error_of_inputs(call);
  if (wrong.empty()) wrong = error_of_all_results(call);
  return wrong;
}

}  // namespace samesum
