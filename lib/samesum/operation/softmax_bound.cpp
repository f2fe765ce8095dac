/// The error bounds of softmax, and their proof. u = 2^-24 and η = 2^-149 belong to fp32; p and
/// S = Σe^(x_i - m) >= 1 are true values.
///
/// 1. d_i has a relative error of u, so e^d_i one of e^(|d_i|u) - 1. exp_of_nonpositive adds 0.892 ulp, at
///    most 1.784u relative, and η if the result is subnormal. Below -105 both the true and the computed e_i
///    are at most η. So |e_i' - e_i| <= ρ(|d_i|)·e_i + η, ρ(t) = (1 + 1.784u)e^(min(t, 105)u) - 1.
/// 2. The denominator: |s - S| <= E·S. Plain: ρ + nη, then the rounding of each e_i to the accumulator's
///    format (u_F each, η_F/2), then Plain::bound over the height of the tree. Exact: one rounding. Online:
///    on its way an element passes as many roundings as the tree is high, and as many factors e^-t. Each
///    factor is within 1.784u of the power of a difference that is off by tu, and the t add up to |d_i|.
///    Underflow in a factor costs less than η times a sum of at most n, at each of n merges. An element that
///    is 200 below does not count.
/// 3. softmax: 1/s and a product, each with one rounding: p_i·((1 + ρ)(1 + u)²/(1 - E) - 1) + 2η, and RN_T.
///    log-softmax: log s is computed within 0.934 ulp, at most 1.868u relative, and is off from log S by
///    E/(1 - E); d_i is off by u|d_i|; then a subtraction, and RN_T. s is at least 1, since e^0 is exact and
///    sums of non-negative numbers do not decrease.
#include <algorithm>
#include <cmath>

#include "samesum/accumulator/plain.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/bound/bound.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {
namespace {

constexpr double u = Format<fp32>::unit_roundoff, eta = Format<fp32>::smallest_subnormal;
constexpr double exp_error = 1.784 * u, log_error = 1.868 * u;

/// Rounds x up by more than the errors of some twenty operations in double and of libm.
double slightly_more(double x) { return x * (1 + 0x1p-40); }

double exp_bound(double below) {
  const double t = std::min(below, 105.0) * u;
  return slightly_more(std::expm1(t) * (1 + exp_error) + exp_error);
}

double plain_bound(const FormatInfo& accumulator, std::size_t columns, double rho) {
  const double n = static_cast<double>(columns), before = rho + n * eta;
  const double narrowing = narrowing_bound(format_info<fp32>(), accumulator, columns, 1 + before);
  const double added = 1 + before + narrowing;
  const double lost = Plain<Scalar<fp64>>::bound(
                          {accumulator.unit_roundoff, CoarsenedTree::height(columns), columns, added, 0})
                          .error;
  // S is at most n.
  if (!((added + lost) * n <= accumulator.max_finite)) return unbounded_error;
  return before + narrowing + lost;
}

double denominator_bound(std::size_t columns, double spread, SoftmaxSum accumulator) {
  const double n = static_cast<double>(columns), rho = exp_bound(spread);
  switch (accumulator) {
    case SoftmaxSum::fp16:
      return plain_bound(format_info<fp16>(), columns, rho);
    case SoftmaxSum::bf16:
      return plain_bound(format_info<bf16>(), columns, rho);
    case SoftmaxSum::fp32:
      return plain_bound(format_info<fp32>(), columns, rho);
    case SoftmaxSum::exact:
      return (rho + n * eta) * (1 + u) + u;
    case SoftmaxSum::online:
      break;
  }
  const double height = static_cast<double>(CoarsenedTree::height(columns).total());
  return std::expm1(height * (u + exp_error) + std::min(spread, 200.0) * u) + 3 * n * n * eta;
}

/// Returns the error of some numbers after they are rounded to the format. Before, their magnitudes add up to
/// `value` and they are off by `error` together; `numbers` is how many they are.
double rounded(const FormatInfo& format, double value, double error, double numbers) {
  if (format.precision == Format<fp32>::precision) return slightly_more(error);
  return slightly_more(error + format.unit_roundoff * (value + error) +
                       numbers * format.smallest_subnormal / 2);
}

}  // namespace

SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread, SoftmaxSum sum,
                           bool log) {
  const FloatingPointEnvironment environment;
  const double denominator = slightly_more(denominator_bound(columns, spread, sum));
  return {&format, columns, spread, log, denominator < 1 ? denominator : unbounded_error};
}

double SoftmaxBound::of_element(double value, double below) const {
  const FloatingPointEnvironment environment;
  if (!std::isfinite(of_denominator) || (!log && value < 0)) return unbounded_error;
  const double of_inverse = of_denominator / (1 - of_denominator);
  if (!log)
    return rounded(*format, value,
                   value * ((1 + exp_bound(below)) * (1 + of_inverse) * (1 + u) * (1 + u) - 1) + 3 * eta, 1);
  const double log_n = std::log(static_cast<double>(columns));
  const double of_log = of_inverse + log_error * (log_n + of_inverse);
  const double error = u * below + of_log + u * (below * (1 + u) + log_n + of_log);
  const double bound = rounded(*format, std::abs(value), error, 1);
  return std::abs(value) + bound <= format->max_finite ? bound : unbounded_error;
}

double SoftmaxBound::of_sum() const {
  const FloatingPointEnvironment environment;
  if (log || !std::isfinite(of_denominator)) return unbounded_error;
  const double of_inverse = of_denominator / (1 - of_denominator), n = static_cast<double>(columns);
  return rounded(*format, 1, (1 + exp_bound(spread)) * (1 + of_inverse) * (1 + u) * (1 + u) - 1 + 3 * n * eta,
                 n);
}

}  // namespace samesum
