/// Which method to take, when it is known how large an error may be and what is to be relied on.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/catalogue/catalogue.hpp"

namespace samesum {

/// What is asked of a reduction: its length, and one of relative_error and ulps, at least.
struct Wish {
  std::string_view operation = "sum";         ///< any with one result that is a number
  std::size_t length = 0;                     ///< elements
  std::string_view input = "fp64";            ///< their format
  Promise promise = Promise::everywhere;      ///< at least this
  std::optional<double> relative_error = {};  ///< at most this times |sum|; infinity: any will do
  std::optional<double> ulps = {};  ///< at most so many units in the last place of the sum in `input`
  /// 1: the bound is rigorous. Below, for sums: as BoundOptions::probability, if roundings have mean 0; equal
  /// or structured elements break that.
  double probability = 1;
  std::string_view backend = {};  ///< empty: any but "reference", which is there to compare with
  /// For sum and mean Σ|x| / |Σx| is at most this, for dot Σ|xy| / |Σxy|; 1 where no two signs differ. Not
  /// read by other operations.
  double condition = 1;
  /// Σ|x|, for dot Σ|xy|, for other operations |result|; `length` where unknown: 1 an element, on average.
  std::optional<double> magnitudes = {};
};

/// What a reduction of n elements took. The names must outlive the call that they are given to.
struct Cost {
  std::string_view method, input;
  std::size_t n;
  double seconds;
};

/// What was measured on one machine, one thread of its CPU and its GPU, on data that are there already.
struct Costs {
  std::string_view machine;
  std::span<const Cost> costs;
};

/// Of a server with an NVIDIA H200. `samesum calibrate` measures the machine at hand.
Costs shipped_costs();

/// A method, and what speaks for it or against it.
struct Candidate {
  const Method* method;
  double bound;                   ///< relative to |sum|; infinite where there is none
  double ulps;                    ///< the same in units in the last place of the sum in the input's format
  std::optional<double> seconds;  ///< none where it is not known
  std::string reason;
};

struct Choice {
  Candidate best;
  /// First those that would do as well, cheapest first, then those that are too inexact, then those that
  /// promise too little.
  std::vector<Candidate> others;
};

/// A wish that no method fulfils: what() says which comes nearest.
struct ImpossibleWish : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// The cheapest method whose bound meets the tolerance and which promises at least what is asked.
///
/// The bound. What an accumulator proves has the form u|result| + c·Σ|x| (Higham, Accuracy and Stability, 2nd
/// ed., §4.2, eqs. 4.4, 4.6 and 4.8, with proofs beside the accumulators), so with Σ|x| = κ|sum| it is
/// relative to the sum: any result has |result| <= |sum| + bound(|result|), and the right side rises with a
/// slope of u < 1, hence an R with R >= |sum| + bound(R) is at least |result|, and bound(R) / |sum| a bound
/// on the relative error. That of exact is u, since half a unit in the last place of the sum is no more. It
/// holds for all data with that Σ|x| whose condition number is at most κ, and as all other terms are
/// homogeneous, for data of another scale too where no sum overflows and no element is subnormal in the
/// method's format. Only there `magnitudes` matters: a method that might overflow at that Σ|x| has no
/// bound.
///
/// Ulps. A |sum| in [2^e, 2^(e+1)) has units of u·2^(e+1): a relative error r is less than r/u of them, and
/// correct rounding at most half of one of its own format.
///
/// Costs are interpolated in the logarithms of n and of the seconds; below the shortest length measured they
/// are as there, and above the longest they grow with n. A method that was not measured for that input comes
/// after those that were, fewest operations first and then the lowest tree: an estimate would be a guess
/// beside measurements.
///
/// Throws ImpossibleWish, and std::invalid_argument where the wish makes no sense.
Choice choose(const Wish& wish, std::span<const Cost> costs = shipped_costs().costs);

}  // namespace samesum
