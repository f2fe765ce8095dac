#include "harness/recommend.hpp"

#include <algorithm>
#include <cmath>

#include "harness/peers.hpp"
#include "harness/text.hpp"
#include "samesum/bound.hpp"

namespace samesum::harness {
namespace {

/// An exact sum that costs this much more is still the better choice: its bits survive a different order of
/// the data, and nobody needs to think about bounds.
constexpr double price_of_exactness = 1.25;

bool is_exact(const Measurement& m) { return m.variant->accumulator == "exact"; }

std::vector<Measurement> only(const std::vector<Measurement>& all, auto condition) {
  std::vector<Measurement> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), condition);
  return some;
}

const Measurement& fastest(const std::vector<Measurement>& some) {
  return *std::min_element(some.begin(), some.end(),
                           [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
}

std::string times(const Measurement& a, const Measurement& b) {
  return compact(a.seconds / b.seconds, 5, 2) + "x";
}

std::string exact_reason(const Measurement& exact, const std::vector<Measurement>& sure,
                         const std::string& ulp, const Truth& truth) {
  if (!truth.finite()) return "not all data are finite, and its special values are defined";
  const std::vector<Measurement> others = only(sure, [](const auto& m) { return !is_exact(m); });
  if (others.empty())
    return "no other measured one is sure of " + ulp + " (kappa " + compact(truth.condition(), 8) + ")";
  return "correctly rounded, in " + times(exact, fastest(others)) + " the time of the next sure of " + ulp;
}

}  // namespace

Recommendation recommend(const std::vector<Measurement>& measurements, const FormatInfo& input,
                         const Truth& truth) {
  const std::vector<Measurement> sound =
      only(measurements, [](const auto& m) { return !failure(m) && !is_peer(*m.variant); });
  if (sound.empty()) {
    const bool only_peers =
        std::ranges::all_of(measurements, [](const auto& m) { return is_peer(*m.variant); });
    return {measurements.front().variant, only_peers
                                              ? "the smallest error of the peers, which we do not vouch for"
                                              : "the smallest error, but every method broke its word"};
  }
  const std::vector<Measurement> fit = only(sound, [&](const auto& m) {
    return m.variant->promise >= Promise::everywhere && holds(*m.variant->format, input);
  });
  const double ulp = truth.ulp(input);
  const std::vector<Measurement> sure =
      only(fit, [&](const auto& m) { return is_exact(m) || (std::isfinite(m.bound) && m.bound <= ulp); });
  const std::string one_ulp = "1 ulp of " + std::string{input.name};
  if (sure.empty()) {
    const bool same_bits = !fit.empty();
    return {same_bits ? fit.front().variant : sound.front().variant,
            "smallest error here, but not guaranteed"};
  }
  const Measurement& best = fastest(sure);
  const std::vector<Measurement> exact = only(sure, is_exact);
  if (!exact.empty() && fastest(exact).seconds <= price_of_exactness * best.seconds)
    return {fastest(exact).variant, exact_reason(fastest(exact), sure, one_ulp, truth)};
  const std::string price = exact.empty() ? "" : " (exact: " + times(fastest(exact), best) + " time)";
  return {best.variant, "fastest sure of " + one_ulp + price};
}

}  // namespace samesum::harness
