/// Means, variances, covariances, correlations and lines from exact sums: quotients of integers, each rounded
/// once.
///
/// The sums are those of elements, whose total is their number n, or of elements with weights w, whose total
/// is Σw: with x and y, also Σwx, Σwy, Σwx², Σwxy and Σwy². A variance is the covariance of x and x.
#pragma once

#include "samesum/operation/product_sum.hpp"

namespace samesum {

/// Whether no sum has a NaN or an infinity.
template <class... Sums> bool are_finite(const Sums&... sums) { return !(sums.is_special() || ...); }

/// Returns the number of elements as the sum of their weights of 1.
inline SumOfProducts total_of(std::uint64_t n) { return {Dyadic{n}}; }

/// Returns a / b as in IEEE arithmetic, rounded once: the mean Σwx / Σw.
Number quotient_of_sums(const FormatInfo& format, const SumOfProducts& a, const SumOfProducts& b);

/// Returns the moment Σw·Σwxy - Σwx·Σwy, which is Σw·Σw(x - mean of x)(y - mean of y). The sums are finite.
inline Dyadic moment_of(const SumOfProducts& total, const SumOfProducts& x, const SumOfProducts& y,
                        const SumOfProducts& xy) {
  return total.value * xy.value - x.value * y.value;
}

/// Returns Σw·(Σw - ddof·squares/Σw), the divisor of a moment in a covariance. `squares` is Σw for
/// frequencies, Σw² for reliabilities.
inline Dyadic divisor_of(const Dyadic& total, const Dyadic& ddof, const Dyadic& squares) {
  return total * total - ddof * squares;
}

/// Returns the covariance, a moment over its divisor; NaN if the divisor is not positive.
Number covariance_of(const FormatInfo& format, const Dyadic& moment, const Dyadic& divisor);
/// Returns the covariance of finite sums; NaN for others.
Number covariance_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
                     const SumOfProducts& y, const SumOfProducts& xy, const Dyadic& divisor);

/// Returns Pearson's correlation: the moment of x and y over the root of the product of those of x and x and
/// of y and y; NaN if one of these is 0.
Number correlation_of(const FormatInfo& format, const Dyadic& xy, const Dyadic& xx, const Dyadic& yy);
/// Returns the correlation of finite sums; NaN for others.
Number correlation_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
                      const SumOfProducts& y, const SumOfProducts& xy, const SumOfProducts& xx,
                      const SumOfProducts& yy);

/// Slope and intercept of the line y = slope·x + intercept.
struct Line {
  Number slope, intercept;
};
/// Returns the line of least squares, with the slope (Σw·Σwxy - Σwx·Σwy) / (Σw·Σwx² - (Σwx)²) and the
/// intercept (Σwy·Σwx² - Σwx·Σwxy) over the same divisor. Both are NaN if that is 0 or a sum is not finite.
Line line_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
             const SumOfProducts& y, const SumOfProducts& xy, const SumOfProducts& xx);

}  // namespace samesum
