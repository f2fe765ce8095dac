/// Common parts of the error bounds of sums. Each accumulator states its own bound (accumulator/*.hpp).
///
/// All terms are positive, and a bound takes fewer than 2^4 operations, each with an error of at most 2^-53,
/// relative, or 2^-1075. So `rounded_up` turns the computed value into an upper bound of the exact one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "samesum/bound/height.hpp"
#include "samesum/format/number.hpp"

namespace samesum {

/// Infinity: no finite bound exists.
inline constexpr double unbounded_error = std::numeric_limits<double>::infinity();

/// γ_k = ku / (1 - ku), or infinity if ku >= 1 (Higham, Accuracy and Stability of Numerical Algorithms,
/// §3.1). 1/u is a power of two, so 1/u - k is exact.
inline double gamma(double k, double u) { return k * u < 1 ? k / (1 / u - k) : unbounded_error; }

/// Upper bound of the exact x, which was computed with a few roundings. An x that underflowed to 0 stays 0.
inline double rounded_up(double x) {
  return x == 0 ? 0 : x * (1 + 0x1p-48) + 4 * std::numeric_limits<double>::denorm_min();
}

/// Relative error bound that the sums at all `nodes` of a tree satisfy with probability 1 - failing.
///
/// The error at a node is relative to the Σ|x| below it. The bound is θ/(1-θ) with θ = λ·√k·u,
/// λ = √(2 ln(2 nodes/failing)), and k additions on the longest path. It is infinite for θ > 1/2; a finite
/// bound is at most 1. It is γ_k with √k in place of k (Higham and Mary 2019, A new approach to probabilistic
/// rounding error analysis, for independent errors; for trees: Hallman and Ipsen 2022, Precision-aware
/// deterministic and probabilistic error bounds for floating point summation). It holds if the relative error
/// δ of each addition has mean 0 whatever the earlier ones were, the assumption of Connolly, Higham and Mary
/// 2021, Stochastic rounding and its probabilistic backward error analysis. For equal or structured elements
/// the δ of a whole binade may have the same sign, and in a sum that stagnates all have: then the bound
/// guarantees nothing.
///
/// Proof. The error of a node's sum is the sum of ζ = δ·(unrounded sum) over the additions below and at the
/// node. These ζ are the differences of a martingale. Drop each ζ whose unrounded sum is more than (1+φ)
/// times the Σ|x| below it. What remains is a martingale with differences of at most u(1+φ)Σ|x|, whose
/// squares add up to at most (u(1+φ)Σ|x|)² over the nodes of one level, and to k times that in all. By
/// Azuma's inequality and the union bound over the nodes, all these sums, relative to Σ|x|, stay below
/// λ√k·u(1+φ) = φ, so φ = θ/(1-θ). Then, by induction from the leaves up, no unrounded sum exceeds (1+φ)Σ|x|,
/// and no ζ was dropped.
inline double probable_gamma(double k, double u, double nodes, double failing) {
  const double theta = std::sqrt(2 * std::log(2 * nodes / failing) * k) * u;
  return theta <= 0.5 ? theta / (1 - theta) : unbounded_error;
}

/// The facts about a sum of n elements on which the bound of its accumulator depends.
struct Summed {
  double u;           ///< unit roundoff of the accumulator's format
  Height height;      ///< height of the tree
  std::uint64_t n;    ///< number of elements
  double magnitudes;  ///< at least Σ|x|, of the elements as they are added
  double result;      ///< |result|
};

/// An accumulator's bounds for such a sum.
struct Loss {
  double error;    ///< at least |result - Σx| if nothing overflows; infinite if the theory gives no bound
  double largest;  ///< at least each intermediate magnitude: nothing overflows if the format holds it
};

/// Growth of partial sums over m merges of n elements, relative to the magnitudes of the merged states. A
/// merge rounds once, and all merges together are a sum of at most n numbers (Jeannerod and Rump 2013).
inline double merged_growth(const Summed& s) {
  return std::min(std::exp(s.u * static_cast<double>(s.height.merges)), 1 + static_cast<double>(s.n) * s.u);
}

/// Upper bound of the words of a sum in two words, and of all intermediate numbers, for u <= 2^-8. It holds
/// whatever the error.
///
/// Proof. Two bounds T hold for a lane of r + 1 elements. First, the error of an addition is at most the
/// smaller of its arguments. So a low word is at most twice the Σ|x| so far, an addition changes the high
/// word by at most twice the number added, and T = (4r + 10)·Σ|x|. Second, a low word is at most 2.1u times
/// the largest high word. The error of an addition by Kahan's operations is at most 2.1u|x| plus 6.3u² times
/// that word, that of an addition to a double word half as much, and T = 1.1·e^(6.3ru²)·Σ|x|. A merge adds
/// the high words, and adds the rounding error of that to the low words. With the growth g over all merges,
/// low words stay below 3g⁴T, and high words, their sums and their differences below 8g⁵T.
inline double largest_word(const Summed& s) {
  const double r = static_cast<double>(s.height.adds), g = merged_growth(s);
  return 8 * std::pow(g, 5) * std::min(4 * r + 10, 1.1 * std::exp(6.3 * r * s.u * s.u)) * s.magnitudes;
}

/// Bounds for a sum in two words whose error is at most `error`. No intermediate number exceeds
/// 2(Σ|x| + error). A single element is its own sum, without error.
inline Loss loss_of_two_words(const Summed& s, double error) {
  if (s.height.total() == 0) return {0, s.magnitudes};
  return {error, std::min(2 * (s.magnitudes + error), largest_word(s))};
}

/// Type of an accumulator's `bound`.
using AccumulatorBound = Loss (*)(const Summed&);

/// Bounds on |result - sum of the n elements as given|, rounded up. Both are infinite if the result is not
/// finite or if overflow of an intermediate number cannot be excluded.
struct SumBound {
  double prior;  ///< from the accumulator's bound; infinite if that gives none
  double bound;  ///< the smaller of `prior` and |result| + Σ|x|
};

/// Rigorous bounds of a sum. `magnitudes` is at least Σ|x|. Elements of a wider input are first rounded to
/// the accumulator's format, each with an error of at most max(u|x|, η/2), η the smallest subnormal of that
/// format.
SumBound sum_bound(AccumulatorBound bound, const FormatInfo& input, const FormatInfo& accumulator,
                   std::uint64_t n, Height height, double magnitudes, Number result);

/// Type of an accumulator's `probable_bound`.
using AccumulatorProbableBound = Loss (*)(const Summed&, double failing);

/// Bounds of a sum that hold with probability 1 - failing over the ways in which roundings can fall.
/// Assumptions: see probable_gamma.
SumBound probable_sum_bound(AccumulatorProbableBound bound, const FormatInfo& input,
                            const FormatInfo& accumulator, std::uint64_t n, Height height, double magnitudes,
                            Number result, double failing);

/// Bound on the error of rounding the elements to the accumulator's format first: u·Σ|x| + n·η/2, or 0 if
/// that format holds every element.
double narrowing_bound(const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                       double magnitudes);

/// Error bound of a correctly rounded sum: half a unit in the last place of the result; infinite if that is
/// not finite.
double exact_bound(Number result);

/// Whether every value of `from` is a value of `to`.
constexpr bool holds(const FormatInfo& to, const FormatInfo& from) {
  return from.precision <= to.precision && from.max_exponent <= to.max_exponent &&
         from.min_quantum >= to.min_quantum;
}

}  // namespace samesum
