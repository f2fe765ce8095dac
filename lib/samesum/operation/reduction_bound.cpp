/// Log-sum-exp. The largest element is exact. On its way x_i, which is t_i below it, meets at most h
/// additions and as many factors e^-d, each within 1.784u of the power of a difference that is off by du
/// (elementary.hpp, softmax_bound.cpp); the d add up to t_i. So it counts e^-t_i within
/// exp(2.784hu + t_i·u) - 1, relative. With p_i = e^-t_i/S, S = Σe^-t_i >= 1, these t_i average to
/// Σp_i·t_i = (entropy of p) - log S <= log n, and e^(tu) <= 1 + 1.0001tu for t <= 200; what is further
/// below, and what underflows in a factor, is less than 3nhη. So the sum is off by E·S, its logarithm by
/// E/(1-E), and the two functions' roundings are the rest.
///
/// Moments. Node s of the tree has N elements with mean μ, sum of squared deviations S and Q² = Σx²/N;
/// its parts have n1 >= n2, and an element that is added is the second part. Exactly, S = S1 + S2 + w·d²,
/// d = μ2 - μ1, w = n1·n2/N >= n2/2, so that nσ² = Σ_s w·d² =: |D|². Computed means are off by e; a
/// computed variance v stands for N·v. There are a adds and m merges on a path. A share n2/N carries
/// q = 3 + nη/2u roundings: those of two counts and of the quotient, which may be subnormal.
///
/// 1. Means. N|e|(1-u) <= (1+γ)(n1|e1| + n2|e2|) + γ_(q+2)·n2|d| + uN|μ| + Nη/2. By Cauchy and Schwarz
///    Σn2|d| <= √(Σn2)·√(2Σw·d²) <= Nσ√(m+2); N|μ| adds up to at most h·Σ|x| <= hN·Q. So
///    |e| <= ē = G(hu·Q + γ_(q+2)√(m+2)·σ + hη/2), G = 1 + γ_K with the K below.
/// 2. Differences. w(e2-e1)² <= n1e1² + n2e2²: over a level of merges that is at most n·ē² (Q² and σ² of
///    the parts, times n1 and n2, add up to no more than those of the root); over the adds of a lane,
///    where e2 = 0, Σ1/k of it, ln(a+1)·n·ē². So the computed differences, as a vector like D, are off by
///    √n·t, t = √(m + ln(a+1))·ē, and are at most √n·(σ + t).
/// 3. Roundings of the variance. An add computes d̂(d̂w - ε), ε what it loses of the mean,
///    |ε| <= γ_3|d̂|/k + u|μ + e| + η/2. Together Σ|d̂ε|/n <= z,
///    z = γ_3(σ+t)² + √(2 ln(a+1))·(σ+t)·(u(Q + ē) + η/2). Every term then meets at most
///    K = a + 4(1 + ln(a+1)) + (q+3)(m+1) roundings: what an add loses of v·(1 - 1/k) is 3/(k-1) of one,
///    and Σ1/(k-1) <= 1 + ln(a+1). What underflows is less than qη a step.
/// So |v - σ²| <= t(2σ + t) + z + γ_K((σ+t)² + z) + (1+γ_K)·hqη. The division by n - ddof rounds three
/// times.
///
/// σ and Q from the results: σ² <= v + what is lost, Q² <= (|mean| + ē)² + v + what is lost, and what is
/// lost is a polynomial of degree 2 in them whose coefficients are not negative.
#include "samesum/operation/reduction_bound.hpp"

#include <algorithm>

namespace samesum {
namespace {

/// Some sixty operations of double, and libm's, are off by much less.
double safely(double x) { return x * (1 + 0x1p-40) + 64 * std::numeric_limits<double>::denorm_min(); }

/// η/2, or η where that is no double.
double half_subnormal(const FormatInfo& format) {
  return std::max(format.smallest_subnormal / 2, std::numeric_limits<double>::denorm_min());
}

double elements_bound(const Reduced& r, double magnitudes) {
  return sum_bound(r.accumulator, r.input, r.format, r.n, r.height, magnitudes, Number::of(r.result));
}

/// What rounding the products loses.
double product_rounding(const Reduced& r, double magnitudes) {
  FormatInfo products = r.input;  // what holds each of them
  products.precision *= 2;
  products.max_exponent = 2 * products.max_exponent + 1;
  products.min_quantum *= 2;
  if (holds(r.format, products)) return 0;
  return rounded_up(r.format.unit_roundoff * magnitudes +
                    static_cast<double>(r.n) * half_subnormal(r.format));
}

double products_bound(const Reduced& r, double magnitudes) {
  const double rounding = product_rounding(r, magnitudes);
  if (!r.two_words || rounding == 0)
    return rounded_up(rounding + elements_bound(r, rounded_up(magnitudes + rounding)));
  const double underflow = static_cast<double>(r.n) * r.format.smallest_subnormal;
  const double low = rounded_up(rounding + underflow / 2);
  const double low_lost =
      rounded_up(gamma(static_cast<double>(r.height.total()), r.format.unit_roundoff) * low);
  Reduced words = r;
  ++words.height.merges;
  return rounded_up(elements_bound(words, rounded_up(magnitudes + rounding + low + low_lost)) + low_lost +
                    underflow);
}

/// Of terms that are not negative: bound(T) is α·T + β, so T <= result + bound(T) bounds T by any number that
/// is more than result + bound(that number).
double self_bounded(const Reduced& r, double (*bound)(const Reduced&, double magnitudes)) {
  const double underflow = 4 * static_cast<double>(r.n) * r.format.smallest_subnormal;
  for (const double slack : {0x1p-6, 0.25, 1.0}) {
    const double magnitudes = (1 + slack) * r.result + underflow, lost = bound(r, magnitudes);
    if (rounded_up(r.result + lost) < magnitudes) return lost;
  }
  return unbounded_error;
}

/// What a tree of moments loses, given σ and Q.
struct MomentsLoss {
  double u, eta, half, adds, merges, share;  ///< half: of η; share: roundings of n2/N
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
  double of_mean(double sigma, double q) const {
    return safely((1 + gamma_all) *
                  (height() * u * q + gamma(share + 2, u) * std::sqrt(merges + 2) * sigma + height() * half));
  }
  double of_variance(double sigma, double q) const {
    const double e = of_mean(sigma, q), t = std::sqrt(merges + logarithm) * e, most = sigma + t;
    const double z = gamma(3, u) * most * most + std::sqrt(2 * logarithm) * most * (u * (q + e) + half);
    return safely(t * (2 * sigma + t) + z + gamma_all * (most * most + z) + underflow());
  }
  double underflow() const { return (1 + gamma_all) * height() * share * eta; }
};

/// At least Q: where a number exceeds what it bounds Q by, so does each greater one.
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

/// At least σ.
double deviation(const MomentsLoss& loss, double variance, double q) {
  double sigma = q;
  for (int i = 0; i < 60; ++i)
    sigma = std::min(sigma, safely(std::sqrt(variance + loss.of_variance(sigma, q))));
  return sigma;
}

}  // namespace

double bound_of_rounding(Number result) {
  const double half = exact_bound(result);  // a sum of doubles loses nothing below; their products may
  return half < std::numeric_limits<double>::min() ? half + std::numeric_limits<double>::denorm_min() : half;
}

double bound_of_sum(const Reduced& r) { return elements_bound(r, r.magnitudes); }

double bound_of_mean(const Reduced& r) {
  const double n = static_cast<double>(r.n), u = r.format.unit_roundoff;
  // Narrower formats are rounded to from double.
  const double once = r.format.precision < Format<fp64>::precision ? u + Format<fp64>::unit_roundoff : u;
  const double rounding = rounded_up(once * (1 + u) * std::abs(r.result) + half_subnormal(r.format));
  Reduced sum = r;
  sum.result = rounded_up(std::min((std::abs(r.result) + rounding) * n, r.format.max_finite));
  return rounded_up(bound_of_sum(sum) / n + rounding);
}

double bound_of_magnitudes(const Reduced& r) { return self_bounded(r, elements_bound); }

double bound_of_products(const Reduced& r) { return products_bound(r, r.magnitudes); }

double bound_of_squares(const Reduced& r) { return self_bounded(r, products_bound); }

double bound_of_norm(const Reduced& r) {
  const double h = static_cast<double>(r.height.total()), eta = r.format.smallest_subnormal;
  const double relative = gamma(h / 2 + 4, r.format.unit_roundoff);
  if (!(relative <= 0.5)) return unbounded_error;
  return rounded_up(relative / (1 - relative) * (r.result + eta) + eta);
}

double bound_of_product(const Reduced& r) {
  const double value = std::abs(r.result), u = r.format.unit_roundoff, eta = r.format.smallest_subnormal;
  const double subnormal = value <= eta / (2 * u) ? half_subnormal(r.format) : 0;
  return rounded_up(gamma(static_cast<double>(r.n - 1), u) * (value + subnormal) + subnormal);
}

double bound_of_logsumexp(const Reduced& r) {
  if (r.n == 1) return 0;
  const double u = r.format.unit_roundoff, n = static_cast<double>(r.n), log_n = std::log(n);
  const double h = static_cast<double>(r.height.total());
  const double steps = std::expm1(2.784 * h * u), below = 1.0001 * u * log_n;
  const double of_sum = steps + below + steps * below + 3 * n * h * r.format.smallest_subnormal;
  if (!(of_sum <= 0.5)) return unbounded_error;
  const double of_log = of_sum / (1 - of_sum);
  return safely(u * std::abs(r.result) + 1.868 * u * (log_n + of_log) + of_log);
}

MomentsBound bound_of_moments(const Reduced& r, double variance, double ddof) {
  const double n = static_cast<double>(r.n), u = r.format.unit_roundoff;
  const bool both = std::isfinite(variance);
  if (r.height.total() == 0) return {0, both ? 0 : unbounded_error};
  const double by = both ? n / (n - ddof) : 1;
  const double rounding = ddof == 0 ? 0 : 4 * u * std::abs(variance) + r.format.smallest_subnormal;
  const double state = std::max(0.0, safely((variance + rounding) / by));
  const MomentsLoss loss{r};
  if (!std::isfinite(loss.gamma_all)) return {unbounded_error, unbounded_error};
  double q = r.magnitudes;
  if (both) q = std::min(q, root_mean_square(loss, std::abs(r.result), state));
  if (!std::isfinite(q)) return {unbounded_error, unbounded_error};
  const double sigma = both ? deviation(loss, state, q) : q;
  const double of_variance = safely(by * loss.of_variance(sigma, q) + rounding);
  return {loss.of_mean(sigma, q), both ? of_variance : unbounded_error};
}

}  // namespace samesum
