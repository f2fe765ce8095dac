/// Definitions of statistics.hpp.
#include "samesum/operation/statistics.hpp"

namespace samesum {
namespace {

Number nan_in(const FormatInfo& format) { return {&format, format.canonical_nan}; }

}  // namespace

Number quotient_of_sums(const FormatInfo& format, const SumOfProducts& a, const SumOfProducts& b) {
  if (are_finite(a, b) && !a.is_zero() && !b.is_zero()) return a.value.rounded_quotient(format, b.value);
  return with_format(format, [&]<class F>() {
    const double x = a.representative() / b.representative();
    return std::isnan(x) ? nan_in(format) : Number::of(convert<F>(x));
  });
}

Number covariance_of(const FormatInfo& format, const Dyadic& moment, const Dyadic& divisor) {
  return divisor.is_positive() ? moment.rounded_quotient(format, divisor) : nan_in(format);
}
Number covariance_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
                     const SumOfProducts& y, const SumOfProducts& xy, const Dyadic& divisor) {
  return are_finite(total, x, y) ? covariance_of(format, moment_of(total, x, y, xy), divisor)
                                 : nan_in(format);
}

Number correlation_of(const FormatInfo& format, const Dyadic& xy, const Dyadic& xx, const Dyadic& yy) {
  const Dyadic square = xx * yy;
  return square.is_positive() ? xy.rounded_ratio_to_root(format, square) : nan_in(format);
}

Number correlation_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
                      const SumOfProducts& y, const SumOfProducts& xy, const SumOfProducts& xx,
                      const SumOfProducts& yy) {
  if (!are_finite(total, x, y)) return nan_in(format);
  return correlation_of(format, moment_of(total, x, y, xy), moment_of(total, x, x, xx),
                        moment_of(total, y, y, yy));
}

Line line_of(const FormatInfo& format, const SumOfProducts& total, const SumOfProducts& x,
             const SumOfProducts& y, const SumOfProducts& xy, const SumOfProducts& xx) {
  const Dyadic divisor = moment_of(total, x, x, xx);
  if (!are_finite(total, x, y) || !divisor.is_positive()) return {nan_in(format), nan_in(format)};
  return {moment_of(total, x, y, xy).rounded_quotient(format, divisor),
          (y.value * xx.value - x.value * xy.value).rounded_quotient(format, divisor)};
}

}  // namespace samesum
