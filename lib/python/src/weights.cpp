/// Weighted means and variances: quotients of exact sums of products, each rounded once.
#include <nanobind/stl/pair.h>

#include "quotients.hpp"
#include "samesum/base/environment.hpp"

namespace samesum::python {
namespace {

/// Computes Σwx / Σw of each row, and Σw if there is a second address. Returns the rows with Σw = 0.
std::vector<std::size_t> weighted_means(std::string_view format, std::size_t rows, std::size_t n, int threads,
                                        Rows w, Rows x, std::string_view result_format,
                                        const std::vector<std::uintptr_t>& results) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  RowSums of_w{summation, {w}}, of_x{summation, {w, x}};
  const bool returns_totals = results.size() > 1;
  Numbers means{result_format, results.at(0)}, totals{result_format, returns_totals ? results[1] : 0};
  const SumOfProducts one{Dyadic{std::uint64_t{1}}};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const SumOfProducts& sum = of_w.of(row);
    if (sum.is_zero()) zeros.push_back(row);
    means.write(row, quotient(of_x.of(row), sum, means));
    if (returns_totals) totals.write(row, quotient(sum, one, totals));
  }
  return zeros;
}

/// Computes the variance of each row. Returns the rows with Σw = 0.
std::vector<std::size_t> weighted_variances(std::string_view format, std::size_t rows, std::size_t n,
                                            int threads, Rows w, Rows x, double correction,
                                            bool are_reliabilities, std::string_view result_format,
                                            const std::vector<std::uintptr_t>& results) {
  const nb::gil_scoped_release released;
  const FloatingPointEnvironment environment;
  Summation summation{format, n, threads};
  RowSums of_w{summation, {w}}, of_ww{summation, {w, w}}, of_x{summation, {w, x}},
      of_xx{summation, {w, x, x}};
  Numbers out{result_format, results.at(0)};
  const Dyadic subtracted{correction};
  std::vector<std::size_t> zeros;
  for (std::size_t row = 0; row < rows; ++row) {
    const SumOfProducts &total = of_w.of(row), &squares = are_reliabilities ? of_ww.of(row) : total,
                        &sum = of_x.of(row), &sum_of_squares = of_xx.of(row);
    if (total.is_zero()) zeros.push_back(row);
    const Dyadic moment = total.value * sum_of_squares.value - sum.value * sum.value;
    out.write(row, are_finite(total, sum)
                       ? divided(moment, divisor_of(total.value, subtracted, squares.value), out)
                       : out.nan());
  }
  return zeros;
}

}  // namespace

void bind_weights(nb::module_& m) {
  m.def("weighted_means", &weighted_means);
  m.def("weighted_variances", &weighted_variances);
}

}  // namespace samesum::python
