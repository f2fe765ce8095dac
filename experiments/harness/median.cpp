#include "harness/median.hpp"

#include <algorithm>
#include <cmath>

namespace samesum::harness {
namespace {

/// P(Bin(n, p) >= least).
double at_least(std::size_t least, std::size_t n, double p) {
  double binomial = 1, sum = 0;  // n over i
  for (std::size_t i = 0; i <= n; ++i) {
    const auto successes = static_cast<double>(i), failures = static_cast<double>(n - i);
    if (i >= least) sum += binomial * std::pow(p, successes) * std::pow(1 - p, failures);
    binomial *= failures / (successes + 1);
  }
  return sum;
}

}  // namespace

double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return x.size() % 2 == 1 ? *middle : (*middle + *std::max_element(x.begin(), middle)) / 2;
}

Interval median_interval(std::vector<double> x) {
  std::ranges::sort(x);
  const std::size_t n = x.size();
  std::size_t k = 1;
  while (at_least((n + 1) / 2, n, static_cast<double>(k) / static_cast<double>(n)) < 0.025) ++k;
  return {median(x), x.at(k - 1), x.at(n - k)};
}

Interval median_interval(const Processes& rounds) {
  if (rounds.size() == 1) return median_interval(rounds.front());
  std::vector<double> medians;
  for (const std::vector<double>& process : rounds) medians.push_back(median(process));
  return median_interval(medians);
}

Interval ratio_of_rounds(const Processes& slow, const Processes& fast) {
  Processes ratios = slow;
  for (std::size_t process = 0; process < slow.size(); ++process)
    for (std::size_t round = 0; round < slow[process].size(); ++round)
      ratios[process][round] /= fast.at(process).at(round);
  return median_interval(ratios);
}

}  // namespace samesum::harness
