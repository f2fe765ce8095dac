/// Error bounds of sums, from the bounds of their accumulators.
#include "samesum/bound/bound.hpp"

#include <algorithm>
#include <cmath>

namespace samesum {
namespace {

/// Bounds of a sum: the error of narrowing its elements plus the accumulator's bound, `loss_of`.
SumBound total_bound(auto loss_of, const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                     Height height, double magnitudes, Number result) {
  const double narrowing = narrowing_bound(input, accumulator, n, magnitudes);
  const double added = rounded_up(magnitudes + narrowing), value = std::abs(result.to_double());
  const Loss loss = loss_of(Summed{accumulator.unit_roundoff, height, n, added, value});
  if (!std::isfinite(value) || !(rounded_up(loss.largest) <= accumulator.max_finite))
    return {unbounded_error, unbounded_error};
  // An error that underflows to 0 is 0: additions of doubles lose multiples of 2^-1074, and those with so
  // small a result lose nothing.
  const double prior = rounded_up(narrowing + rounded_up(loss.error));
  return {prior, std::min(prior, rounded_up(value + magnitudes))};
}

}  // namespace

double narrowing_bound(const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                       double magnitudes) {
  if (holds(accumulator, input)) return 0;
  return rounded_up(accumulator.unit_roundoff * magnitudes +
                    static_cast<double>(n) * (accumulator.smallest_subnormal / 2));
}

SumBound sum_bound(AccumulatorBound bound, const FormatInfo& input, const FormatInfo& accumulator,
                   std::uint64_t n, Height height, double magnitudes, Number result) {
  return total_bound(bound, input, accumulator, n, height, magnitudes, result);
}

SumBound probable_sum_bound(AccumulatorProbableBound bound, const FormatInfo& input,
                            const FormatInfo& accumulator, std::uint64_t n, Height height, double magnitudes,
                            Number result, double failing) {
  return total_bound([&](const Summed& s) { return bound(s, failing); }, input, accumulator, n, height,
                     magnitudes, result);
}

double exact_bound(Number result) {
  const double value = std::abs(result.to_double());
  if (!std::isfinite(value)) return unbounded_error;
  return std::max(value * result.format->unit_roundoff, result.format->smallest_subnormal / 2);
}

}  // namespace samesum
