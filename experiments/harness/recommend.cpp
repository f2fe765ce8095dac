#include "harness/recommend.hpp"

#include <algorithm>
#include <cmath>

#include "harness/peers.hpp"
#include "harness/text.hpp"
#include "samesum/bound/bound.hpp"

namespace samesum::harness {
namespace {

/// An exact sum is recommended if it takes at most this factor longer: its bits do not depend on the order of
/// the data, and no bound has to be considered.
constexpr double price_of_exactness = 1.25;

bool is_exact(const Candidate& c) { return c.method->accumulator == "exact"; }

/// The measured methods whose bound for all such data is within the tolerance, cheapest first.
std::vector<Candidate> sure_ones(const std::vector<Measurement>& sound, const FormatInfo& input,
                                 const Truth& truth, double tolerance) {
  std::vector<Candidate> sure;
  const Method& first = *sound.front().method;
  if (first.results > 1 || first.has_result_per_element) {  // choose bounds one result
    const double size = std::abs(truth.rounded(format_info<fp64>()).to_double());
    for (const Measurement& m : sound)
      if (m.bound <= tolerance * size && m.method->promise >= Promise::everywhere)
        sure.push_back({m.method, m.bound / size, 0, m.seconds, ""});
    std::ranges::stable_sort(sure, {}, [](const Candidate& c) { return *c.seconds; });
    return sure;
  }
  std::vector<Cost> costs;
  for (const Measurement& m : sound)
    costs.push_back(
        {m.method->name, input.name, truth.size(), std::max(m.seconds, 1e-12)});  // a clock may measure 0
  const bool of_reference =
      std::ranges::all_of(sound, [](const Measurement& m) { return m.method->backend == "reference"; });
  const auto append = [&](const Candidate& c) {
    if (c.seconds && c.bound <= tolerance && c.method->promise >= Promise::everywhere) sure.push_back(c);
  };
  try {
    const Choice choice = choose(requirements_for(truth, input,
                                                  {.operation = first.operation,
                                                   .relative_error = tolerance,
                                                   .backend = of_reference ? "reference" : ""}),
                                 costs);
    append(choice.best);
    std::ranges::for_each(choice.others, append);
  } catch (const NoSuitableMethod&) {  // no method is within the tolerance
  }
  return sure;
}

/// The exact methods, for sums that are 0 or not finite: errors relative to them do not exist, but exact sums
/// are correct.
std::vector<Candidate> exact_ones(const std::vector<Measurement>& sound, const FormatInfo& input) {
  std::vector<Candidate> all;
  for (const Measurement& m : sound)
    if (m.method->accumulator == "exact" && holds(*m.method->format, input))
      all.push_back({m.method, m.bound, 0, m.seconds, ""});
  std::ranges::stable_sort(all, {}, [](const Candidate& c) { return *c.seconds; });
  return all;
}

std::string ratio(const Candidate& a, const Candidate& b) { return compact(*a.seconds / *b.seconds, 5, 2); }

/// Compares the time of exact with that of the fastest other method.
std::string in_time_of(const Candidate& exact, const Candidate& other) {
  const std::string times = ratio(exact, other);
  return times == "1" ? ", and as fast as the fastest other method"
                      : ", in " + times + " times the time of the fastest other method";
}

/// Why a method is recommended if errors relative to the sum do not exist.
std::string reason_without_scale(const Truth& truth, const FormatInfo& input, bool is_exact) {
  if (truth.size() == 0) return "there are no elements, so every method returns the same";
  if (!truth.finite()) return "the data contain inf or NaN, for which there is no relative error";
  if (!is_exact) return "smallest error here, but not guaranteed";
  if (truth.value() == 0) return "the exact sum is 0, which exact returns for any order of the elements";
  return std::isfinite(truth.ulp(input))
             ? "the sum of |x| is beyond the range of fp64, which does not affect exact"
             : "the sum is beyond the range of " + std::string{input.name} + "; exact is correctly rounded";
}

}  // namespace

Requirements requirements_for(const Truth& truth, const FormatInfo& input, Requirements required) {
  required.length = truth.size();
  required.input = input.name;
  required.condition = std::max(1.0, truth.condition() * (1 + 0x1p-40));  // the factor covers its rounding
  required.magnitudes = truth.magnitudes_rounded_up();
  return required;
}

Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth) {
  std::vector<Measurement> sound;
  std::ranges::copy_if(measurements, std::back_inserter(sound),
                       [](const auto& m) { return !failure(m) && !is_peer(*m.method); });
  if (sound.empty()) {
    const bool only_peers =
        std::ranges::all_of(measurements, [](const auto& m) { return is_peer(*m.method); });
    return {measurements.front().method,
            only_peers ? "the smallest error of the other libraries, which guarantee none"
                       : "the smallest error, but every method broke a bound or a promise"};
  }
  const double tolerance = truth.ulp(input) / std::abs(truth.rounded(format_info<fp64>()).to_double());
  const bool is_relative = std::isfinite(truth.condition()) && std::isfinite(tolerance) &&
                           std::isfinite(truth.magnitudes_rounded_up());
  const std::vector<Candidate> sure =
      is_relative ? sure_ones(sound, input, truth, tolerance) : exact_ones(sound, input);
  if (sure.empty()) {
    const auto same_bits = std::ranges::find_if(sound, [&](const auto& m) {
      return m.method->promise >= Promise::everywhere && holds(*m.method->format, input);
    });
    return {
        same_bits == sound.end() ? sound.front().method : same_bits->method,
        is_relative ? "smallest error here, but not guaranteed" : reason_without_scale(truth, input, false)};
  }
  if (!is_relative) return {sure.front().method, reason_without_scale(truth, input, true)};
  const std::string ulp = "at most 1 ulp of " + std::string{input.name};
  const auto exact = std::ranges::find_if(sure, is_exact), other = std::ranges::find_if_not(sure, is_exact);
  if (exact == sure.end() || *exact->seconds > price_of_exactness * *sure.front().seconds)
    return {
        sure.front().method,
        "fastest method whose bound is " + ulp +
            (exact == sure.end() ? "" : " (exact takes " + ratio(*exact, sure.front()) + " times as long)")};
  return {exact->method, other == sure.end()
                             ? "only exact has a bound of " + ulp + " (condition number " +
                                   compact(truth.condition(), 8) + ")"
                             : "correctly rounded" + in_time_of(*exact, *other) + " whose bound is " + ulp};
}

}  // namespace samesum::harness
