/// Medians of repeated times, and how sure they are.
#pragma once

#include <vector>

namespace samesum::harness {

/// The middle value; of an even number of values, the mean of the two in the middle.
double median(std::vector<double> values);

/// A median and its 95 % interval.
struct Interval {
  double median, low, high;
};

/// The percentile bootstrap of the median, computed exactly: of n values drawn from x_1 <= ... <= x_n with
/// replacement, the lower median is at most x_k with the probability P(Bin(n, k/n) >= ceil(n/2)) (Efron 1979,
/// Bootstrap Methods: Another Look at the Jackknife, section 3). The low end is the x_k of the smallest k for
/// which that is at least 0.025, the high end its mirror image, which is that of the upper median (percentile
/// interval: Efron 1981, Nonparametric standard errors and confidence intervals).
Interval median_interval(std::vector<double> values);

/// Seconds of the rounds, one list per process that measured them.
using Processes = std::vector<std::vector<double>>;

/// The median of the processes' medians. Rounds of one process are not independent, so the interval is that
/// of the processes' medians; a single process has that of its rounds.
Interval median_interval(const Processes& rounds);

/// The median and interval of the ratios slow / fast of each round, for methods that took turns: a
/// disturbance of a round affects both.
Interval ratio_of_rounds(const Processes& slow, const Processes& fast);

}  // namespace samesum::harness
