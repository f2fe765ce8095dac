/// The error bounds of softmax, and their proof. u and η are the unit roundoff and the smallest subnormal of
/// the format C, fp32 or fp64, that the row is computed in, a = 2·exp_ulps·u and b = 2·log_ulps·u bound the
/// relative errors of exp and log, and e^-L is less than η: L = 105 in fp32 and 746 in fp64. p and
/// S = Σe^(x_i - m) >= 1 are true values.
///
/// 1. d_i has a relative error of u, so e^d_i one of e^(|d_i|u) - 1. exp_of_nonpositive adds a, and η if the
///    result is subnormal. Below -L both the true and the computed e_i are at most η. So
///    |e_i' - e_i| <= ρ(|d_i|)·e_i + η, ρ(t) = (1 + a)e^(min(t, L)u) - 1.
/// 2. The denominator: |s - S| <= E·S. Plain: ρ + nη, then the rounding of each e_i to the accumulator's
///    format (u_F each, η_F/2), then Plain::bound over the height of the tree. Exact: one rounding. Online:
///    on its way an element passes as many roundings as the tree is high, and as many factors e^-t. Each
///    factor is within a of the power of a difference that is off by tu, and the t add up to |d_i|.
///    Underflow in a factor costs less than η times a sum of at most n, at each of n merges. An element that
///    is 2L below does not count.
/// 3. softmax: 1/s and a product, each with one rounding: p_i·((1 + ρ)(1 + u)²/(1 - E) - 1) + 2η, and RN_T.
///    log-softmax: log s is computed within b, relative, and is off from log S by E/(1 - E); d_i is off by
///    u|d_i|; then a subtraction, and RN_T. s is at least 1, since e^0 is exact and sums of non-negative
///    numbers do not decrease.
#include <algorithm>
#include <cmath>

#include "samesum/accumulator/plain.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/bound/bound.hpp"
#include "samesum/format/elementary.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/order/tree.hpp"

namespace samesum {
namespace {

/// Rounds x up by more than the errors of some twenty operations in double and of libm.
double slightly_more(double x) { return x * (1 + 0x1p-40); }

/// (1 + a)(1 + b) - 1, where a and b may be tiny.
double compound(double a, double b) { return a + b + a * b; }

/// What the proof needs to know of the format that a row is computed in.
struct Arithmetic {
  const FormatInfo& format;
  double exp_error, log_error, u, eta;
  double lowest;  ///< L

  double of_exp(double below) const {
    return slightly_more(compound(std::expm1(std::min(below, lowest) * u), exp_error));
  }
  /// Error of e_i/s relative to p_i, without η.
  double of_quotient(double below, double of_inverse) const {
    return compound(compound(of_exp(below), of_inverse), compound(u, u));
  }
};
const Arithmetic& arithmetic(const SoftmaxForm& form) {
  const auto of = []<class C>() -> const Arithmetic& {
    static constexpr double u = Format<C>::unit_roundoff;
    static const Arithmetic all{format_info<C>(),
                                2 * exp_ulps<C> * u,
                                2 * log_ulps<C> * u,
                                u,
                                Format<C>::smallest_subnormal,
                                sizeof(C) == 4 ? 105.0 : 746.0};
    return all;
  };
  return form.in_fp64 ? of.template operator()<fp64>() : of.template operator()<fp32>();
}

double plain_bound(const Arithmetic& in, const FormatInfo& accumulator, std::size_t columns, double rho) {
  const double n = static_cast<double>(columns), before = rho + n * in.eta;
  const double narrowing = narrowing_bound(in.format, accumulator, columns, 1 + before);
  const double added = 1 + before + narrowing;
  const double lost = Plain<Scalar<fp64>>::bound(
                          {accumulator.unit_roundoff, CoarsenedTree::height(columns), columns, added, 0})
                          .error;
  // S is at most n.
  if (!((added + lost) * n <= accumulator.max_finite)) return unbounded_error;
  return before + narrowing + lost;
}

double denominator_bound(std::size_t columns, double spread, const SoftmaxForm& form) {
  const Arithmetic& in = arithmetic(form);
  const double n = static_cast<double>(columns), rho = in.of_exp(spread);
  switch (form.sum) {
    case SoftmaxSum::fp16:
      return plain_bound(in, format_info<fp16>(), columns, rho);
    case SoftmaxSum::bf16:
      return plain_bound(in, format_info<bf16>(), columns, rho);
    case SoftmaxSum::fp32:
    case SoftmaxSum::fp64:
      return plain_bound(in, in.format, columns, rho);
    case SoftmaxSum::exact:
      return compound(rho + n * in.eta, in.u);
    case SoftmaxSum::online:
      break;
  }
  const double height = static_cast<double>(CoarsenedTree::height(columns).total());
  return std::expm1(height * (in.u + in.exp_error) + std::min(spread, 2 * in.lowest) * in.u) +
         3 * n * n * in.eta;
}

/// Returns the error of some numbers of the format `from` after they are rounded to another. Before, their
/// magnitudes add up to `value` and they are off by `error` together; `numbers` is how many they are.
double rounded(const FormatInfo& from, const FormatInfo& format, double value, double error, double numbers) {
  if (&format == &from) return slightly_more(error);
  return slightly_more(error + format.unit_roundoff * (value + error) +
                       numbers * format.smallest_subnormal / 2);
}

}  // namespace

SoftmaxBound softmax_bound(const FormatInfo& format, std::size_t columns, double spread,
                           const SoftmaxForm& form) {
  const FloatingPointEnvironment environment;
  const double denominator = slightly_more(denominator_bound(columns, spread, form));
  return {&format, columns, spread, form, denominator < 1 ? denominator : unbounded_error};
}

double SoftmaxBound::of_element(double value, double below) const {
  const FloatingPointEnvironment environment;
  if (!std::isfinite(of_denominator) || (!form.log && value < 0)) return unbounded_error;
  const Arithmetic& in = arithmetic(form);
  const double of_inverse = of_denominator / (1 - of_denominator);
  if (!form.log)
    return rounded(in.format, *format, value, value * in.of_quotient(below, of_inverse) + 3 * in.eta, 1);
  const double log_n = std::log(static_cast<double>(columns));
  const double of_log = of_inverse + in.log_error * (log_n + of_inverse);
  const double error = in.u * below + of_log + in.u * (below * (1 + in.u) + log_n + of_log);
  const double bound = rounded(in.format, *format, std::abs(value), error, 1);
  return std::abs(value) + bound <= format->max_finite ? bound : unbounded_error;
}

double SoftmaxBound::of_sum() const {
  const FloatingPointEnvironment environment;
  if (form.log || !std::isfinite(of_denominator)) return unbounded_error;
  const Arithmetic& in = arithmetic(form);
  const double of_inverse = of_denominator / (1 - of_denominator), n = static_cast<double>(columns);
  return rounded(in.format, *format, 1, in.of_quotient(spread, of_inverse) + 3 * n * in.eta, n);
}

}  // namespace samesum
