/// The choice of a method for a given tolerance and promise.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/catalogue/catalogue.hpp"

namespace samesum {

/// Requirements for a reduction: its length, exactly one of relative_error and ulps, and what else is known.
struct Requirements {
  std::string_view operation = "sum";         ///< any with one number or index as its result
  std::size_t length = 0;                     ///< number of elements
  std::string_view input = "fp64";            ///< format of the elements
  Promise promise = Promise::everywhere;      ///< the method promises at least this
  std::optional<double> relative_error = {};  ///< error at most this times |sum|; infinity accepts any error
  std::optional<double> ulps = {};  ///< error at most this many units in the last place of the sum in `input`
  /// 1: the bound is rigorous. Below 1, for sums: BoundOptions::probability, under the same assumption, which
  /// equal or structured elements violate.
  double probability = 1;
  std::string_view backend = {};  ///< empty: any except "reference", which serves for comparison
  /// Upper bound of the condition number: Σ|x| / |Σx| for sum and mean, Σ|xy| / |Σxy| for dot. It is 1 if all
  /// terms have the same sign. Other operations ignore it.
  double condition = 1;
  /// Σ|x|, for dot Σ|xy|, for other operations |result|. Default: `length`, an average of 1 per element.
  std::optional<double> magnitudes = {};
};

/// Whether bounds of an operation depend on Requirements::condition: whether it adds terms of either sign.
bool depends_on_condition(std::string_view operation);

/// Time of a reduction of n elements. The names must outlive the call that receives the cost.
struct Cost {
  std::string_view method, input;  ///< full name of the method, name of the input format
  std::size_t n;
  double seconds;
};

/// Costs measured on one machine, on one thread of its CPU and on its GPU, with data already in place.
struct Costs {
  std::string_view machine;
  std::span<const Cost> costs;
};

/// Returns the costs that the library ships, those of a server with an NVIDIA H200. `samesum calibrate`
/// measures the costs of another machine.
Costs shipped_costs();

/// A method with its bound, its cost and the reason why it was chosen or not.
struct Candidate {
  const Method* method;
  double bound;  ///< relative to |sum|; infinite if there is none
  double ulps;   ///< the same bound in units in the last place of the sum, in the input's format
  std::optional<double> seconds;  ///< empty if unknown
  std::string reason;
};

/// The chosen method and all others.
struct Choice {
  Candidate best;
  /// First the methods that also fulfil the requirements, cheapest first, then those whose bound is too
  /// large, then those that promise too little.
  std::vector<Candidate> others;
};

/// Thrown if no method fulfils the requirements. what() names the method with the smallest bound.
struct NoSuitableMethod : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Returns the cheapest method whose bound is within the tolerance and whose promise is at least
/// `required.promise`.
///
/// Bounds. The bound of an accumulator has the form u|result| + c·Σ|x| (Higham, Accuracy and Stability, 2nd
/// ed., §4.2, eqs. 4.4, 4.6 and 4.8, with proofs beside the accumulators). With Σ|x| = κ|sum| it is relative
/// to the sum. Any result has |result| <= |sum| + bound(|result|), and the right side rises with a slope of
/// u < 1. So an R with R >= |sum| + bound(R) is at least |result|, and bound(R) / |sum| bounds the relative
/// error. The relative bound of exact is u, since half a unit in the last place of the sum is at most
/// u·|sum|. The bound holds for all data with that Σ|x| whose condition number is at most κ. Apart from
/// overflow and subnormal numbers, all terms of the bounds scale with the data, so the bound also holds at
/// another scale if no sum overflows and no element is subnormal in the method's format. `magnitudes` matters
/// only for those two cases: a method that might overflow at that Σ|x| has no bound.
///
/// Ulps. A |sum| in [2^e, 2^(e+1)) has units of u·2^(e+1). A relative error r is therefore less than r/u
/// units. A correctly rounded result is off by at most half a unit of the format that it is rounded to.
///
/// Costs. Between measured lengths, costs are interpolated in the logarithms of n and of the seconds. Below
/// the shortest length they are constant, above the longest they grow in proportion to n. Methods that were
/// not measured for that input come after those that were: fewest operations first, then lowest tree. Their
/// costs are not estimated: a guess is not comparable with a measurement.
/// @throws NoSuitableMethod if no method fulfils the requirements.
/// @throws std::invalid_argument if a requirement or a cost is invalid; the message names it.
Choice choose(const Requirements& required, std::span<const Cost> costs = shipped_costs().costs);

}  // namespace samesum
