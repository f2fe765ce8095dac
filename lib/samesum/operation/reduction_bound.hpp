/// Rigorous error bounds of reductions, one for each kind of state, rounded up. A bound is infinite if an
/// overflow cannot be excluded or too little is known. Each operation names its bound; reduction_bound.cpp
/// has the longer proofs.
///
/// u is the unit roundoff and η the smallest subnormal of the state's format, h the height of the tree. If a
/// sum, a product or a difference overflows, the result is not finite; so a finite result proves that none
/// did.
#pragma once

#include "samesum/bound/bound.hpp"

namespace samesum {

/// What is known about a reduction of n >= 1 elements with a finite result.
struct Reduced {
  const FormatInfo &input, &format;  ///< formats of the elements, and of the state, which holds each element
  std::size_t n;
  Height height;
  AccumulatorBound accumulator;  ///< null if the operation has a state of its own
  bool two_words;                ///< whether the sum includes the low words of products
  double magnitudes;             ///< known by the caller, see Method::bound; infinite if unknown
  double result;
};

/// Bounds a correctly rounded result: half a unit in the last place.
double bound_of_rounding(Number result);

/// Bounds Σx: the bound of the accumulator, from magnitudes >= Σ|x|.
double bound_of_sum(const Reduced& r);

/// Bounds Σx/n: the bound of the sum over n, and the rounding of the quotient, at most u|mean| or η/2. If a
/// sum of fp16 overflows, the bound is that of the sum with more exponents that replaces it.
double bound_of_mean(const Reduced& r);

/// Bounds Σ|x|: the bound of the accumulator with T = Σ|x|. The result limits T, since
/// T <= result + bound(T).
double bound_of_magnitudes(const Reduced& r);

/// Bounds Σxy, from magnitudes P >= Σ|xy|.
///
/// Plain: each product is rounded, by at most u|xy| + η/2, then added (Higham, Accuracy and Stability of
/// Numerical Algorithms, §3.1): uP + nη/2 + γ_h((1+u)P + nη/2).
///
/// Two words: high + low is xy except for underflow, less than η. The low words are at most uP + nη together.
/// Summing them loses γ_h of that, and their sum is one more element of the accumulator, one merge higher
/// (Ogita, Rump, Oishi 2005, Accurate sum and dot product, proposition 5.5, for any tree and accumulator).
/// Products that the format holds lose nothing.
double bound_of_products(const Reduced& r);

/// Bounds Σx² like Σxy, with T = Σx² in place of P. As for Σ|x|, the result limits T.
double bound_of_squares(const Reduced& r);

/// Bounds √Σx²: ε/(1-ε)·(result + η) + η, ε = γ_(h/2+4). A square is rounded once and passes h additions and
/// one more, of two kinds of squares (Blue 1978; Anderson 2017, algorithm 978). The root halves that; the
/// root and the result are rounded. Small squares that are left out beside big ones cost less than the rest
/// of ε. No square, scaled or not, underflows unless it is just as small beside the other kind.
double bound_of_norm(const Reduced& r);

/// Bounds Πx: ((1-u)^(1-n) - 1)·|result|, since each multiplication rounds once, whatever the tree (Higham,
/// §3.1), and one more rounding if the result is subnormal.
double bound_of_product(const Reduced& r);

/// Bounds log Σe^x: u|result| + b·(log n + E') + E', E' = E/(1-E). E is the relative error of the sum:
/// 1 + E = exp((a + u)h)·(1 + 1.0001u·log n) + 3nhη (after Blanchard, Higham, Higham 2021, Accurately
/// computing the log-sum-exp and softmax functions, for one pass over a tree). a = 2·exp_ulps·u and
/// b = 2·log_ulps·u bound the relative errors of exp and log.
double bound_of_logsumexp(const Reduced& r);

/// Bounds an extremum: the result is an element.
constexpr double bound_of_extremum(const Reduced&) { return 0; }

/// Bounds on the errors of the two results of moments.
struct MomentsBound {
  double mean, variance;
};

/// Bounds mean and variance, from the two results, and from magnitudes >= max|x| if that is known.
///
/// To first order the mean is off by hu·Q + 5u√(m+2)·σ, where Q² = Σx²/n and m of the h steps are merges. The
/// variance is off by 2√(m + ln(a+1))·σ times that, where a is the number of other steps, and by some
/// (h + 6m)u·σ²: relative to σ², a multiple of Q/σ, the condition number of σ (Chan and Lewis 1979,
/// Computing standard deviations: accuracy). If hu is not small, the bounds are some 4h·√n·σ and its
/// square.
MomentsBound bound_of_moments(const Reduced& mean, double variance, double ddof);

}  // namespace samesum
