/// Formulas of the bounds in reduction_bound.hpp, and the proofs that are too long for the header.
///
/// Log-sum-exp. The largest element is exact. Let x_i be t_i below it. On its way x_i passes at most h
/// additions and as many factors e^-d. Each factor is within a of the power of a difference that is off
/// by du (elementary.hpp, softmax_bound.cpp), and the d add up to t_i. So x_i counts e^-t_i within
/// exp((a + u)h + t_i·u) - 1, relative. With p_i = e^-t_i/S, S = Σe^-t_i >= 1, the weighted mean of the t_i
/// is Σp_i·t_i = (entropy of p) - log S <= log n, and e^(tu) <= 1 + 1.0001tu for t <= 2L. Elements further
/// below, and underflow in a factor, add less than 3nhη. So the sum is off by E·S and its logarithm by
/// E/(1-E). The rest of the bound is the roundings of the logarithm and of the last addition.
///
/// Moments. Node s of the tree has N elements with mean μ, sum of squared deviations S and Q² = Σx²/N. Its
/// parts have n1 >= n2 elements; an element that is added is the second part. Without roundings,
/// S = S1 + S2 + w·d², d = μ2 - μ1, w = n1·n2/N >= n2/2, so nσ² = Σ_s w·d² =: |D|². Computed means are off by
/// e; a computed variance v stands for N·v. A path has a adds and m merges. A share n2/N carries
/// q = 3 + nη/2u roundings: those of two counts and of the quotient, which may be subnormal.
///
/// 1. Means. N|e|(1-u) <= (1+γ)(n1|e1| + n2|e2|) + γ_(q+2)·n2|d| + uN|μ| + Nη/2. By Cauchy and Schwarz
///    Σn2|d| <= √(Σn2)·√(2Σw·d²) <= Nσ√(m+2); N|μ| adds up to at most h·Σ|x| <= hN·Q. So
///    |e| <= ē = G(hu·Q + γ_(q+2)√(m+2)·σ + hη/2), G = 1 + γ_K with the K below.
/// 2. Differences. w(e2-e1)² <= n1e1² + n2e2². Over a level of merges that is at most n·ē² (Q² and σ² of the
///    parts, times n1 and n2, add up to no more than those of the root). Over the adds of a lane, where
///    e2 = 0, it is Σ1/k times that: ln(a+1)·n·ē². So the computed differences, as a vector like D, are off
///    by √n·t, t = √(m + ln(a+1))·ē, and are at most √n·(σ + t).
/// 3. Roundings of the variance. An add computes d̂(d̂w - ε), where ε is its error in the mean,
///    |ε| <= γ_3|d̂|/k + u|μ + e| + η/2. Together Σ|d̂ε|/n <= z,
///    z = γ_3(σ+t)² + √(2 ln(a+1))·(σ+t)·(u(Q + ē) + η/2). Every term then passes at most
///    K = a + 4(1 + ln(a+1)) + (q+3)(m+1) roundings: the error of an add in v·(1 - 1/k) is 3/(k-1) of a
///    rounding, and Σ1/(k-1) <= 1 + ln(a+1). Underflow adds less than qη per step.
/// So |v - σ²| <= t(2σ + t) + z + γ_K((σ+t)² + z) + (1+γ_K)·hqη. The division by n - ddof rounds three times.
///
/// σ and Q follow from the results: σ² <= v + loss, Q² <= (|mean| + ē)² + v + loss, and the loss is a
/// polynomial of degree 2 in them without negative coefficients.
///
/// If that gives nothing, because the roundings of few bits add up to more than σ, a second bound holds. Let
/// no element be further than R from the computed mean. Then the mean is off by at most R. The true variance
/// is at most R², so the computed variance v is off by at most the larger of v and R². R follows from v, in
/// which all terms are positive. Let W = N·v at a node, and ε <= 1/8 the relative error of a share.
/// 1. Merge. Since v >= (1-u)²·(v1·n1/N)(1-ε)(1-u) - η and so on, W of either part is at most (1+g)(W + Nη),
///    1 + g = (1+5u)(1+1.2ε), and the computed difference of the means is at most 1.7√W + 1.2Nη with that W.
/// 2. Add (k >= 2). W of the first part is at most (1+7u)(W + kη), and the new mean lies between the old one
///    and x. So |x - mean'|² <= (1+11u)(W + kη), and the old mean was at most 1.13 times that far away, plus
///    2.2u|mean'|.
/// So along a path of h steps no W exceeds Ω = e^(g(h+1))·n(v + (h+3)η); each step moves the mean by at most
/// 3.5√Ω + 3nη + 2.2u|mean|; and |mean| stays below e^(2.2uh)·(|mean of all| + h(3.5√Ω + 3nη)).
#include "samesum/operation/reduction_bound.hpp"

#include <algorithm>

#include "samesum/format/elementary.hpp"
#include "samesum/format/fp16_wide.hpp"

namespace samesum {
namespace {

/// Rounds x up by more than the errors of some sixty operations in double and of libm.
double safely(double x) { return x * (1 + 0x1p-40) + 64 * std::numeric_limits<double>::denorm_min(); }

/// Returns η/2, or η if η/2 is not a double.
double half_subnormal(const FormatInfo& format) {
  return std::max(format.smallest_subnormal / 2, std::numeric_limits<double>::denorm_min());
}

double elements_bound(const Reduced& r, double magnitudes) {
  return sum_bound(r.accumulator, r.input, r.format, r.n, r.height, magnitudes, Number::of(r.result)).bound;
}

/// Bounds the loss from rounding the products.
double product_rounding(const Reduced& r, double magnitudes) {
  FormatInfo products = r.input;  // a format that holds each product
  products.precision *= 2;
  products.max_exponent = 2 * products.max_exponent + 1;
  products.min_quantum *= 2;
  if (holds(r.format, products)) return 0;
  return rounded_up(r.format.unit_roundoff * magnitudes +
                    static_cast<double>(r.n) * half_subnormal(r.format));
}

double products_bound(const Reduced& r, double magnitudes) {
  const double rounding = product_rounding(r, magnitudes);
  if (std::isinf(rounding)) return unbounded_error;
  if (!r.two_words || rounding == 0)
    return rounded_up(rounding + elements_bound(r, rounded_up(magnitudes + rounding)));
  const double underflow = static_cast<double>(r.n) * r.format.smallest_subnormal;
  const double low = rounded_up(rounding + underflow / 2);
  // As in sum_bound, an error that underflows to 0 is 0.
  const double low_lost =
      rounded_up(gamma(static_cast<double>(r.height.total()), r.format.unit_roundoff) * low);
  Reduced words = r;
  ++words.height.merges;
  ++words.n;  // the sum of the low words is one more element
  return rounded_up(elements_bound(words, rounded_up(magnitudes + rounding + low + low_lost)) + low_lost +
                    underflow);
}

/// Bounds the error of a sum T of non-negative terms from its result alone. bound(T) has the form α·T + β.
/// Since T <= result + bound(T), every number that exceeds result + bound(that number) exceeds T.
double self_bounded(const Reduced& r, double (*bound)(const Reduced&, double magnitudes)) {
  if (!(r.result >= 0)) return unbounded_error;  // no sum of non-negative terms is negative
  const double underflow = 4 * static_cast<double>(r.n) * r.format.smallest_subnormal;
  for (const double slack : {0x1p-6, 0.25, 1.0}) {
    const double magnitudes = (1 + slack) * r.result + underflow, lost = bound(r, magnitudes);
    if (rounded_up(r.result + lost) < magnitudes) return lost;
  }
  return unbounded_error;
}

/// Loss of a tree of moments, given σ and Q.
struct MomentsLoss {
  double u, eta, half, adds, merges, share;  ///< half: η/2; share: roundings of n2/N
  double logarithm, gamma_all;

  explicit MomentsLoss(const Reduced& r)
      : u{r.format.unit_roundoff},
        eta{r.format.smallest_subnormal},
        half{half_subnormal(r.format)},
        adds{static_cast<double>(r.height.adds)},
        merges{static_cast<double>(r.height.merges)},
        share{3 + static_cast<double>(r.n) * eta / (2 * u)},
        logarithm{std::log1p(adds)} {
    const double all = adds + 4 * (1 + logarithm) + (share + 3) * (merges + 1);
    gamma_all = all * u < 0.9 ? gamma(all, u) : unbounded_error;
  }

  double height() const { return adds + merges; }
  /// Bounds the error of the mean.
  double of_mean(double sigma, double q) const {
    return safely((1 + gamma_all) *
                  (height() * u * q + gamma(share + 2, u) * std::sqrt(merges + 2) * sigma + height() * half));
  }
  /// Bounds the error of the variance over n.
  double of_variance(double sigma, double q) const {
    const double e = of_mean(sigma, q), t = std::sqrt(merges + logarithm) * e, most = sigma + t;
    const double z = gamma(3, u) * most * most + std::sqrt(2 * logarithm) * most * (u * (q + e) + half);
    return safely(t * (2 * sigma + t) + z + gamma_all * (most * most + z) + underflow());
  }
  double underflow() const { return (1 + gamma_all) * height() * share * eta; }
  /// Returns R: no element is further from the computed mean, however much else was lost.
  double furthest(double n, double mean, double variance) const {
    const double of_share = share * u / (1 - share * u), h = height();
    if (!(of_share <= 0.125)) return unbounded_error;
    const double growth = std::exp((5 * u + 1.2 * of_share) * (h + 1));
    const double step = 3.5 * std::sqrt(growth * n * (variance + (h + 3) * eta)) + 3 * n * eta;
    const double largest_mean = std::exp(2.2 * u * h) * (mean + h * step);
    return safely(h * (step + 2.2 * u * largest_mean));
  }
};

/// Returns a number that is at least Q: Q <= bound(Q), and if a number exceeds bound(that number), so does
/// each greater one.
double root_mean_square(const MomentsLoss& loss, double mean, double variance) {
  const auto bound = [&](double q) {
    return safely(std::hypot(mean + loss.of_mean(q, q), std::sqrt(variance + loss.of_variance(q, q))));
  };
  double q =
      2 * (std::hypot(mean, std::sqrt(variance)) + std::sqrt(loss.underflow()) + loss.height() * loss.eta);
  if (!(bound(q) < q)) return unbounded_error;
  for (int i = 0; i < 60; ++i) q = std::min(q, bound(q));
  return q;
}

/// Returns a number that is at least σ.
double deviation(const MomentsLoss& loss, double variance, double q) {
  double sigma = q;
  for (int i = 0; i < 60; ++i)
    sigma = std::min(sigma, safely(std::sqrt(variance + loss.of_variance(sigma, q))));
  return sigma;
}

}  // namespace

double bound_of_rounding(Number result) {
  const double half = exact_bound(result);  // sums of doubles lose nothing below, but their products may
  return half < std::numeric_limits<double>::min() ? half + std::numeric_limits<double>::denorm_min() : half;
}

double bound_of_sum(const Reduced& r) { return elements_bound(r, r.magnitudes); }

double bound_of_mean(const Reduced& r) {
  const double n = static_cast<double>(r.n), u = r.format.unit_roundoff;
  // Formats narrower than double are rounded from a quotient in double.
  const double once = r.format.precision < Format<fp64>::precision ? u + Format<fp64>::unit_roundoff : u;
  const double rounding = rounded_up(once * (1 + u) * std::abs(r.result) + half_subnormal(r.format));
  // The largest number of fp16 may stand for a larger quotient. The error of a sum is less than its
  // magnitudes.
  const double largest_sum = std::abs(r.result) < r.format.max_finite
                                 ? rounded_up((std::abs(r.result) + rounding) * n)
                                 : rounded_up(2 * r.magnitudes);
  const auto from_sum = [&](double bound) { return rounded_up(bound / n + rounding); };
  Reduced sum = r;
  sum.result = std::min(largest_sum, r.format.max_finite);
  const double bound = from_sum(bound_of_sum(sum));
  if (std::isfinite(bound) || r.format.index != Formats::index_of<fp16>()) return bound;
  // A mean of fp16 whose sum overflowed was computed again with more exponents. If a compensated sum did not
  // overflow, its compensation may have; then only the magnitudes bound the error.
  const double least_sum = (std::abs(r.result) - rounding) * n;
  if (r.two_words && !(least_sum > r.format.max_finite))
    return from_sum(rounded_up(largest_sum + r.magnitudes));
  FormatInfo wide = r.format;
  wide.max_finite = Format<fp16_wide>::max_finite;
  const Reduced again{r.input, wide, r.n, r.height, r.accumulator, r.two_words, r.magnitudes, largest_sum};
  return from_sum(bound_of_sum(again));
}

double bound_of_magnitudes(const Reduced& r) { return self_bounded(r, elements_bound); }

double bound_of_products(const Reduced& r) { return products_bound(r, r.magnitudes); }

double bound_of_squares(const Reduced& r) { return self_bounded(r, products_bound); }

double bound_of_norm(const Reduced& r) {
  const double h = static_cast<double>(r.height.total()), eta = r.format.smallest_subnormal;
  const double relative = gamma(h / 2 + 4, r.format.unit_roundoff);
  if (!(relative <= 0.5 && r.result >= 0)) return unbounded_error;
  return rounded_up(relative / (1 - relative) * (r.result + eta) + eta);
}

double bound_of_product(const Reduced& r) {
  const double value = std::abs(r.result), u = r.format.unit_roundoff, eta = r.format.smallest_subnormal;
  const double subnormal = value <= eta / (2 * u) ? half_subnormal(r.format) : 0;
  const double relative = safely(std::expm1(static_cast<double>(r.n - 1) * -std::log1p(-u)));
  return rounded_up(relative * (value + subnormal) + subnormal);
}

double bound_of_logsumexp(const Reduced& r) {
  if (r.n == 1) return 0;
  const double u = r.format.unit_roundoff, n = static_cast<double>(r.n), log_n = std::log(n);
  const double h = static_cast<double>(r.height.total());
  const bool in_fp64 = r.format.precision == Format<fp64>::precision;
  const double of_exp = 2 * (in_fp64 ? exp_ulps<fp64> : exp_ulps<fp32>),
               of_last = 2 * (in_fp64 ? log_ulps<fp64> : log_ulps<fp32>);
  const double steps = std::expm1((1 + of_exp) * h * u), below = 1.0001 * u * log_n;
  const double of_sum = steps + below + steps * below + 3 * n * h * r.format.smallest_subnormal;
  if (!(of_sum <= 0.5)) return unbounded_error;
  const double of_log = of_sum / (1 - of_sum);
  return safely(u * std::abs(r.result) + of_last * u * (log_n + of_log) + of_log);
}

MomentsBound bound_of_moments(const Reduced& r, double variance, double ddof) {
  const double n = static_cast<double>(r.n), u = r.format.unit_roundoff;
  const bool both = std::isfinite(variance) && ddof < n;
  if (r.height.total() == 0) return {0, both ? 0 : unbounded_error};
  const double by = both ? n / (n - ddof) : 1;
  const double rounding = ddof == 0 ? 0 : 4 * u * std::abs(variance) + r.format.smallest_subnormal;
  const double state = std::max(0.0, safely((variance + rounding) / by));
  const MomentsLoss loss{r};
  const double mean = std::abs(r.result);
  double furthest = mean + std::min(r.magnitudes, r.input.max_finite);  // since the mean is finite
  if (both) furthest = std::min(furthest, loss.furthest(n, mean, state));
  double of_mean = furthest, of_state = std::max(state, furthest * furthest);
  if (std::isfinite(loss.gamma_all)) {
    double q = std::min(r.magnitudes, mean + furthest);
    if (both) q = std::min(q, root_mean_square(loss, mean, state));
    const double sigma = both ? deviation(loss, state, q) : q;
    of_mean = std::min(of_mean, loss.of_mean(sigma, q));
    of_state = std::min(of_state, loss.of_variance(sigma, q));
  }
  return {safely(of_mean), both ? safely(by * of_state + rounding) : unbounded_error};
}

}  // namespace samesum
