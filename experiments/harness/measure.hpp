/// Measures one method on one array: result, error, bound, promise and time.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/truth.hpp"
#include "samesum/call/call.hpp"

namespace samesum::harness {

/// The elements that a method reduces; `y` is the second vector of dot.
struct Inputs {
  Values x;
  std::optional<Values> y = {};

  template <std::convertible_to<Values> V> Inputs(const V& first) : x{first} {}
  Inputs(Values first, std::optional<Values> second) : x{first}, y{second} {}
  /// Bytes of the elements.
  std::size_t bytes() const { return (y ? 2 : 1) * x.size * x.format->bytes; }
};

/// Which result of an operation with several is compared with the truth, in words; empty if there is only
/// one.
std::string compared_result(const Method& v);
/// Its index in ResultNumbers.
std::size_t compared_index(const std::string& operation);

/// The result of any method on a vector; of a result per element, the first.
ResultNumbers result_of(const Method& v, const Inputs& in, Options options);

/// The exact value of the result that is compared.
Truth truth_of(const std::string& operation, const Inputs& in);

struct MeasureOptions {
  int repeats = 1;  ///< timed runs, at least 1, after a warm-up run
  int threads = 0;  ///< 0: chosen by the library
  /// Seconds after which no further run of a method starts. If the warm-up takes as long, it is the only run.
  double patience = std::numeric_limits<double>::infinity();
};

struct Measurement {
  const Method* method;
  Number value;               ///< the result of the runs that is farthest from the truth
  Number truth;               ///< the exact result, correctly rounded to the same format
  Error error;                ///< of `value`
  double bound;               ///< on the absolute error of `value`
  bool within_bound;          ///< for all runs
  std::size_t distinct_bits;  ///< number of different results
  int repeats;
  double seconds;               ///< median of the runs
  double gigabytes_per_second;  ///< of input
};

/// Whether the method's results are the exact ones, rounded once.
inline bool is_correctly_rounded(const Method& v) {
  return v.accumulator == "exact" && !v.has_result_per_element;
}

/// Compares one result for elements of the format `input` with the truth and the bound. `result_index`: which
/// of two numbers the truth is of. `grid`: as in Options.
Measurement judge(const Method& method, const FormatInfo& input, const Truth& truth, ResultNumbers result,
                  std::size_t result_index = 0, std::optional<int> grid = {});

/// Runs and times a method with one number as its result, and compares its results with the truth. To exclude
/// transfers to a GPU from the time, place the inputs there first.
Measurement measure(const Method& method, const Inputs& inputs, const Truth& truth, MeasureOptions options);

/// The broken promise or bound as a message; empty if none is broken.
std::optional<std::string> failure(const Measurement& m);

/// Statistics of the results of several runs.
struct Spread {
  std::size_t runs, distinct_bits;
  double lowest, highest;  ///< NaN if a result is NaN
  double ulps;  ///< highest - lowest in units of `ulp`; 0 if all results are equal, even infinities
};
Spread spread_of(const std::vector<Number>& answers, double ulp);

/// The largest |Vs| of the results: Vs = 1 - |S / S_deterministic| (Shanmugavelu et al. 2024), where the
/// first result is the deterministic one. Results that are all equal have 0, even if they are 0; NaN if a
/// quotient does not exist.
double largest_variability(const std::vector<Number>& answers);

/// Sorts by error, smallest first; equal errors by time.
void sort_by_merit(std::vector<Measurement>& measurements);

}  // namespace samesum::harness
