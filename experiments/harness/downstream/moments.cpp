#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstring>

#include "harness/downstream/downstream.hpp"

namespace samesum::harness {
namespace {

constexpr std::size_t axes = 3, degree = 12, row = axes * (degree + 1);

/// The sum of c_k T_k(t) by the recurrence of Clenshaw 1955.
double chebyshev(const double* c, double t) {
  double next = 0, after = 0;
  for (std::size_t k = degree; k > 0; --k) {
    const double now = 2 * t * next - after + c[k];
    after = next;
    next = now;
  }
  return t * next - after + c[0];
}

/// Applies f to each element and rounds the result once to the same format.
Column map(const Column& x, const std::function<double(double)>& f) {
  Column y = x;
  with_format(*x.format, [&]<class F>() {
    for (std::size_t at = 0; at < x.bytes.size(); at += sizeof(F)) {
      F element;
      std::memcpy(&element, &x.bytes[at], sizeof(F));
      element = convert<F>(f(convert<double>(element)));
      std::memcpy(&y.bytes[at], &element, sizeof(F));
    }
  });
  return y;
}

}  // namespace

std::vector<double> moon_distances(const std::string& path, int per_row) {
  const Column file = read_column(path, &format_info<fp64>());
  if (file.size() == 0 || file.size() % row != 0)
    throw InputError{path, "not the file of coefficients that experiments/datasets.py writes"};
  const std::span<const double> c = file.values().as<double>();
  std::vector<double> distances;
  for (std::size_t first = 0; first < c.size(); first += row)
    for (int i = 0; i < per_row; ++i) {
      const double t = (2.0 * i + 1) / per_row - 1;
      double square = 0;
      for (std::size_t axis = 0; axis < axes; ++axis) {
        const double x = chebyshev(&c[first + axis * (degree + 1)], t) / 1000;
        square += x * x;
      }
      distances.push_back(std::sqrt(square));
    }
  return distances;
}

Statistics moments(const Column& x, const Summation& sum) {
  const auto n = static_cast<double>(x.size());
  const auto total = [&](const Column& of) { return sum(of.values()).to_double(); };
  const double s = total(x), squares = total(map(x, [](double e) { return e * e; }));
  const Column deviations = map(x, [&](double e) { return e - s / n; });
  return {.mean = s / n,
          .naive_variance = (squares - s * s / n) / (n - 1),
          .two_pass_variance = total(map(deviations, [](double d) { return d * d; })) / (n - 1)};
}

/// Uses so many digits that sums of the elements and of their squares are not rounded.
Statistics true_moments(const Column& x) {
  using Wide =
      boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400>, boost::multiprecision::et_off>;
  Wide s = 0, squares = 0;
  map(x, [&](double e) {
    s += e;
    squares += Wide{e} * e;
    return e;
  });
  const auto n = static_cast<double>(x.size());
  const double variance = ((squares - s * s / n) / (n - 1)).convert_to<double>();
  return {(s / n).convert_to<double>(), variance, variance};
}

}  // namespace samesum::harness
