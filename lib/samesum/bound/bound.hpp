/// Pieces of the rigorous error bounds. Each accumulator states its own (accumulator/*.hpp); here is what
/// they share.
///
/// All terms are positive and there are fewer than 2^4 operations, each within 2^-53: `rounded_up` makes the
/// computed value an upper bound of the exact one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "samesum/bound/height.hpp"
#include "samesum/format/value.hpp"

namespace samesum {

inline constexpr double unbounded_error = std::numeric_limits<double>::infinity();

/// γ_k = ku / (1 - ku), infinite for ku >= 1 (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
/// 1/u is a power of two, so 1/u - k is exact.
inline double gamma(double k, double u) { return k * u < 1 ? k / (1 / u - k) : unbounded_error; }

/// At least x, though x was computed with a few roundings.
inline double rounded_up(double x) {
  return x == 0 ? 0 : x * (1 + 0x1p-48) + 4 * std::numeric_limits<double>::denorm_min();
}

/// A bound that the sums of all `nodes` of a tree keep with probability 1 - failing, relative to the Σ|x|
/// below each: θ/(1-θ), θ = λ·√k·u, λ = √(2 ln(2 nodes/failing)), k additions on the longest path; infinite
/// for θ > 1/2, so it is never more than 1. It is γ_k with √k in the place of k (Higham and Mary 2019, A new
/// approach to probabilistic rounding error analysis; trees: Hallman and Ipsen 2022, Precision-aware
/// deterministic and probabilistic error bounds for floating point summation). It holds if the relative error
/// δ of each addition has mean 0 whatever the earlier ones were. Of equal or structured elements the δ of a
/// whole binade may have the same sign, and where a sum stagnates each has: then it says nothing.
///
/// The proof. The error of a node's sum is the sum of ζ = δ·(what the additions below and at the node would
/// return unrounded): differences of a martingale. Leave out each whose unrounded sum is more than (1+φ)
/// times the Σ|x| below it: what is left is a martingale of differences up to u(1+φ)Σ|x|, whose squares add
/// up to at most (u(1+φ)Σ|x|)² over the nodes of one level, k times that in all. So Azuma's inequality and
/// the union over the nodes keep all these sums below λ√k·u(1+φ) = φ, which is φ = θ/(1-θ). Then, from the
/// leaves up, no unrounded sum exceeds (1+φ)Σ|x|, and nothing was left out.
inline double probable_gamma(double k, double u, double nodes, double failing) {
  const double theta = std::sqrt(2 * std::log(2 * nodes / failing) * k) * u;
  return theta <= 0.5 ? theta / (1 - theta) : unbounded_error;
}

/// What is known of a sum of n elements, apart from the accumulator.
struct Summed {
  double u;           ///< unit roundoff of the accumulator's format
  Height height;      ///< of the tree
  std::uint64_t n;    ///< elements
  double magnitudes;  ///< at least Σ|x| of the elements as added
  double result;      ///< |result|
};

/// What an accumulator says of such a sum.
struct Loss {
  double error;    ///< at least |result - Σx| if nothing overflows; infinite where the theory gives no bound
  double largest;  ///< at least each number computed on the way: nothing overflows if the format holds this
};

/// The growth of partial sums in m merges of n elements, relative to the magnitudes of what is merged: a
/// merge rounds once, and all merges together are a sum of at most n numbers (Jeannerod and Rump 2013).
inline double merged_growth(const Summed& s) {
  return std::min(std::exp(s.u * static_cast<double>(s.height.merges)), 1 + static_cast<double>(s.n) * s.u);
}

/// No word of a sum in two words, and no number computed on the way, exceeds this, for u <= 2^-8, whatever
/// else is lost. Two bounds T hold for a lane of r + 1 elements. First, an addition is off by at most the
/// smaller of its arguments. So a low word is at most twice the Σ|x| seen so far, an addition changes the
/// high word by at most twice what it adds, and T = (4r + 10)·Σ|x|. Second, a low word is at most 2.1u times
/// the largest high word, and an addition by Kahan's operations is off by at most 2.1u|x| and 6.3u² times
/// that word, one to a double word by half as much: T = 1.1·e^(6.3ru²)·Σ|x|. A merge adds the high words, and
/// to the low words the rounding error of that. With the growth g in all merges, low words stay below 3g⁴T,
/// and high ones, their sums and differences below 8g⁵T.
inline double largest_word(const Summed& s) {
  const double r = static_cast<double>(s.height.adds), g = merged_growth(s);
  return 8 * std::pow(g, 5) * std::min(4 * r + 10, 1.1 * std::exp(6.3 * r * s.u * s.u)) * s.magnitudes;
}

/// The loss of a sum in two words that is off by at most `error`: no number on the way exceeds twice Σ|x| and
/// the error together. One element is its own sum.
inline Loss loss_of_two_words(const Summed& s, double error) {
  if (s.height.total() == 0) return {0, s.magnitudes};
  return {error, std::min(2 * (s.magnitudes + error), largest_word(s))};
}

using AccumulatorBound = Loss (*)(const Summed&);

/// Bounds on |result - sum of the n elements as given|, rounded up. Both are infinite where the result is not
/// finite or it cannot be excluded that a number on the way overflows.
struct SumBound {
  double prior;  ///< what the accumulator proves; infinite where it proves nothing
  double bound;  ///< the same, and never more than |result| + Σ|x|
};

/// Rigorous bounds. `magnitudes` is at least the sum of |x|. Elements of a wider input are rounded to the
/// accumulator's format first, each by at most max(u|x|, η/2), η the smallest subnormal of that format.
SumBound sum_bound(AccumulatorBound bound, const FormatInfo& input, const FormatInfo& accumulator,
                   std::uint64_t n, Height height, double magnitudes, Number result);

using AccumulatorProbableBound = Loss (*)(const Summed&, double failing);

/// The same, but for a share `failing` of all the ways in which roundings may fall.
SumBound probable_sum_bound(AccumulatorProbableBound bound, const FormatInfo& input,
                            const FormatInfo& accumulator, std::uint64_t n, Height height, double magnitudes,
                            Number result, double failing);

/// What rounding the elements to the accumulator's format adds to that: u·Σ|x| + n·η/2, and 0 where it holds
/// each.
double narrowing_bound(const FormatInfo& input, const FormatInfo& accumulator, std::uint64_t n,
                       double magnitudes);

/// The bound of a correctly rounded sum: half a unit in the last place.
double exact_bound(Number result);

/// Whether each value of `from` is a value of `to`.
constexpr bool holds(const FormatInfo& to, const FormatInfo& from) {
  return from.precision <= to.precision && from.max_exponent <= to.max_exponent &&
         from.min_quantum >= to.min_quantum;
}

}  // namespace samesum
