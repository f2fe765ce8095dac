/// One method on one array: what it answers, how wrong that is, whether it kept its word, how long it took.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/truth.hpp"
#include "samesum/catalogue/method.hpp"

namespace samesum::harness {

struct MeasureOptions {
  int repeats = 1;  ///< timed runs, at least 1; one more before them warms up
  int threads = 0;
  /// Seconds after which no run of a method is begun; a warm-up that takes as long is its only run.
  double patience = std::numeric_limits<double>::infinity();
};

struct Measurement {
  const Method* method;
  Number value;  ///< of the runs the one farthest from the truth
  Number truth;  ///< the exact sum, correctly rounded to the same format
  Error error;   ///< of `value`, like the next two
  double bound;
  bool within_bound;          ///< of every run
  std::size_t distinct_bits;  ///< different results among the runs
  int repeats;
  double seconds;               ///< median of the runs
  double gigabytes_per_second;  ///< of input
};

/// Judges one result.
Measurement judge(const Method& method, Values x, const Truth& truth, Number value);

/// Runs, times and judges. What has to be moved to where the method runs is not timed: place it before.
Measurement measure(const Method& method, Values x, const Truth& truth, MeasureOptions options);

/// The promise or the bound that was broken, if one was.
std::optional<std::string> failure(const Measurement& m);

/// The answers of runs that should agree.
struct Spread {
  std::size_t runs, distinct_bits;
  double lowest, highest;  ///< NaN where an answer is
  double ulps;             ///< highest - lowest in units of `ulp`; 0 where all are the same, even infinities
};
Spread spread_of(const std::vector<Number>& answers, double ulp);

/// The largest |Vs| of the answers: Vs = 1 - |S / S_deterministic| (Shanmugavelu et al. 2024). The first one
/// is the deterministic one, so that what never varies has 0, even zeros. NaN where there is no quotient.
double largest_variability(const std::vector<Number>& answers);

/// Best error first; among equals the fastest.
void sort_by_merit(std::vector<Measurement>& measurements);

}  // namespace samesum::harness
