#include "samesum/bound.hpp"

#include <algorithm>
#include <cmath>

namespace samesum {
namespace {

/// `states` bounds what the accumulator loses, given the Σ|x| of the elements as added and the |result|.
double total_bound(auto states, const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                   Height height, double magnitudes, Number result) {
  const double narrowing = narrowing_bound(input, accumulator, n, magnitudes);
  const double added = rounded_up(magnitudes + narrowing);
  const double value = result.to_double();
  const double lost = states(added, std::abs(value));
  // No partial sum, and no word of a compensated one, exceeds twice Σ|x| and the error together: below that
  // nothing overflows.
  const double largest = rounded_up(added + lost) * (height.total() == 0 ? 1 : 2);
  if (!std::isfinite(value) || !(largest <= accumulator.max_finite)) return unbounded_error;
  return rounded_up(narrowing + rounded_up(lost));
}

}  // namespace

double narrowing_bound(const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                       double magnitudes) {
  if (holds(accumulator, input)) return 0;
  return rounded_up(accumulator.unit_roundoff * magnitudes +
                    static_cast<double>(n) * (accumulator.smallest_subnormal / 2));
}

double sum_bound(AccumulatorBound bound, const FormatInfo& input, const FormatInfo& accumulator,
                 std::uint64_t n, Height height, double magnitudes, Number result) {
  return total_bound(
      [&](double added, double value) { return bound(accumulator.unit_roundoff, height, added, value); },
      input, accumulator, n, height, magnitudes, result);
}

double probable_sum_bound(AccumulatorProbableBound bound, const FormatInfo& input,
                          const FormatInfo& accumulator, std::uint64_t n, Height height, double magnitudes,
                          Number result, double failing) {
  return total_bound(
      [&](double added, double value) {
        return bound(accumulator.unit_roundoff, height, n, added, value, failing);
      },
      input, accumulator, n, height, magnitudes, result);
}

double exact_bound(Number result) {
  const double value = std::abs(result.to_double());
  if (!std::isfinite(value)) return unbounded_error;
  return std::max(value * result.format->unit_roundoff, result.format->smallest_subnormal / 2);
}

}  // namespace samesum
