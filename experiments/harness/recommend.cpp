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
  std::vector<Cost> costs;
  for (const Measurement& m : sound)
    costs.push_back(
        {m.method->name, input.name, truth.size(), std::max(m.seconds, 1e-12)});  // a clock may measure 0
  const bool of_reference =
      std::ranges::all_of(sound, [](const Measurement& m) { return m.method->backend == "reference"; });
  std::vector<Candidate> sure;
  const auto append = [&](const Candidate& c) {
    if (c.seconds && c.bound <= tolerance && c.method->promise >= Promise::everywhere) sure.push_back(c);
  };
  try {
    const Choice choice = choose(
        wish_for(truth, input, {.relative_error = tolerance, .backend = of_reference ? "reference" : ""}),
        costs);
    append(choice.best);
    std::ranges::for_each(choice.others, append);
  } catch (const ImpossibleWish&) {  // no method is within the tolerance
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

std::string times(const Candidate& a, const Candidate& b) {
  return compact(*a.seconds / *b.seconds, 5, 2) + "x";
}

}  // namespace

Wish wish_for(const Truth& truth, const FormatInfo& input, Wish wish) {
  wish.length = truth.size();
  wish.input = input.name;
  wish.condition = std::max(1.0, truth.condition() * (1 + 0x1p-40));  // the factor covers its rounding
  wish.magnitudes = truth.magnitudes_rounded_up();
  return wish;
}

Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth) {
  std::vector<Measurement> sound;
  std::ranges::copy_if(measurements, std::back_inserter(sound),
                       [](const auto& m) { return !failure(m) && !is_peer(*m.method); });
  if (sound.empty()) {
    const bool only_peers =
        std::ranges::all_of(measurements, [](const auto& m) { return is_peer(*m.method); });
    return {measurements.front().method, only_peers
                                             ? "the smallest error of the peers, which we do not vouch for"
                                             : "the smallest error, but every method broke its word"};
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
    return {same_bits == sound.end() ? sound.front().method : same_bits->method,
            "smallest error here, but not guaranteed"};
  }
  const std::string ulp = "1 ulp of " + std::string{input.name};
  const auto exact = std::ranges::find_if(sure, is_exact), other = std::ranges::find_if_not(sure, is_exact);
  if (exact == sure.end() || *exact->seconds > price_of_exactness * *sure.front().seconds)
    return {sure.front().method,
            "fastest sure of " + ulp +
                (exact == sure.end() ? "" : " (exact: " + times(*exact, sure.front()) + " time)")};
  return {exact->method,
          !truth.finite() ? "not all data are finite, and its special values are defined"
          : other == sure.end()
              ? "no other measured one is sure of " + ulp + " (kappa " + compact(truth.condition(), 8) + ")"
              : "correctly rounded, in " + times(*exact, *other) + " the time of the next sure of " + ulp};
}

}  // namespace samesum::harness
