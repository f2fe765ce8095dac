/// How wrong a reduction can be: a rigorous bound for each kind of state, rounded up, and infinite if an
/// overflow cannot be excluded or too little is known. operations.hpp says which belongs to which operation;
/// reduction_bound.cpp has what is too long to prove here.
///
/// u is the unit roundoff and η the smallest subnormal of the format of the state, h the height of the tree.
/// Where a sum, a product or a difference overflows, the result is not finite: so a finite one says that
/// none did.
#pragma once

#include "samesum/bound/bound.hpp"

namespace samesum {

/// What is known of a reduction of n >= 1 elements to a finite result.
struct Reduced {
  const FormatInfo &input, &format;  ///< of the elements; of the state, which holds each of them
  std::size_t n;
  Height height;
  AccumulatorBound accumulator;  ///< null where the state is the operation's own
  bool two_words;                ///< whether what a product lost is added beside it
  double magnitudes;             ///< what the caller knows; infinite for nothing
  double result;
};

/// What is correctly rounded: half a unit in the last place.
double bound_of_rounding(Number result);

/// Σx: the accumulator's own bound, from magnitudes >= Σ|x|.
double bound_of_sum(const Reduced& r);

/// Σx/n: that bound over n, and the rounding of the quotient, at most u|mean| or η/2. A sum of fp16 that
/// overflows is bounded as the sum with more exponents that takes its place.
double bound_of_mean(const Reduced& r);

/// Σ|x|: the accumulator's bound with T = Σ|x|, of which the result says how large it can be: T <= result +
/// bound(T).
double bound_of_magnitudes(const Reduced& r);

/// Σxy, from magnitudes P >= Σ|xy|. Plain: each product is rounded, by at most u|xy| + η/2, then added
/// (Higham, Accuracy and Stability of Numerical Algorithms, §3.1): uP + nη/2 + γ_h((1+u)P + nη/2). Two words:
/// high + low is xy but for what underflows, less than η. The low words are at most uP + nη together; summing
/// them loses γ_h of that, and their sum is one more element of the accumulator, one merge higher (Ogita,
/// Rump, Oishi 2005, Accurate sum and dot product, proposition 5.5, for any tree and accumulator). Products
/// that the format holds lose nothing.
double bound_of_products(const Reduced& r);

/// Σx²: the same with T = Σx² in the place of P; as of magnitudes, the result says how large T can be.
double bound_of_squares(const Reduced& r);

/// √Σx²: ε/(1-ε)·(result + η) + η, ε = γ_(h/2+4). A square is rounded once, meets h additions and one more of
/// two kinds of squares (Blue 1978; Anderson 2017, algorithm 978); the root halves that, and it and the
/// result are rounded. What is left out, small squares beside big ones, takes less than the rest. No square
/// and no scaled one underflows but for what is as small beside the other kind.
double bound_of_norm(const Reduced& r);

/// Πx: ((1-u)^(1-n) - 1)·|result|, as each multiplication rounds once, whatever the tree (Higham, §3.1), and
/// one rounding more where the result is subnormal.
double bound_of_product(const Reduced& r);

/// log Σe^x: u|result| + 1.868u·(log n + E') + E', E' = E/(1-E). The sum is off by E, relative: 1 + E =
/// exp(2.784hu)·(1 + 1.0001u·log n) + 3nhη (after Blanchard, Higham, Higham 2021, Accurately computing the
/// log-sum-exp and softmax functions, for one pass over a tree).
double bound_of_logsumexp(const Reduced& r);

/// An element as it is.
constexpr double bound_of_extremum(const Reduced&) { return 0; }

struct MomentsBound {
  double mean, variance;
};

/// Mean and variance, from the two results, and from magnitudes >= max|x| where that is known. To first order
/// the mean is off by hu·Q + 5u√(m+2)·σ, Q² = Σx²/n, m of the h steps being merges, and the variance by
/// 2√(m + ln(a+1))·σ times that, a the other steps, and by some (h + 6m)u·σ²: relative to σ², a multiple of
/// the condition number Q/σ (Chan, Golub, LeVeque 1983, Algorithms for computing the sample variance). Where
/// hu is not small, some 4h·√n·σ and its square.
MomentsBound bound_of_moments(const Reduced& mean, double variance, double ddof);

}  // namespace samesum
