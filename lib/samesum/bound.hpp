/// Pieces of the rigorous error bounds. Each accumulator states its own (accumulator/*.hpp); here is what
/// they share.
///
/// All terms are positive and there are fewer than 2^4 operations, each within 2^-53: `rounded_up` makes the
/// computed value an upper bound of the exact one.
#pragma once

#include <limits>

#include "samesum/order/height.hpp"
#include "samesum/value.hpp"

namespace samesum {

inline constexpr double unbounded_error = std::numeric_limits<double>::infinity();

/// γ_k = ku / (1 - ku), infinite for ku >= 1 (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
/// 1/u is a power of two, so 1/u - k is exact.
inline double gamma(double k, double u) { return k * u < 1 ? k / (1 / u - k) : unbounded_error; }

/// At least x, though x was computed with a few roundings.
inline double rounded_up(double x) {
  return x == 0 ? 0 : x * (1 + 0x1p-48) + 4 * std::numeric_limits<double>::denorm_min();
}

using AccumulatorBound = double (*)(double u, Height height, double magnitudes, double result);

/// A rigorous bound on |result - sum of the n elements as given|, rounded up; infinity where the theory gives
/// none, and where a partial sum may overflow. `magnitudes` is at least the sum of |x|. Elements of a wider
/// input are rounded to the accumulator's format first, each by at most max(u|x|, η/2), η the smallest
/// subnormal.
double sum_bound(AccumulatorBound bound, const FormatInfo& input, const FormatInfo& accumulator,
                 std::uint64_t n, Height height, double magnitudes, Number result);

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
