#include <cmath>

#include "harness/downstream/eigen.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {
namespace {

template <class T> using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor>;

template <class T> Matrix<T> matrix_of(const System& system) {
  std::vector<Eigen::Triplet<T>> entries;
  for (int i = 0; i < system.n; ++i)
    entries.emplace_back(i, i, static_cast<T>(system.diagonal[static_cast<std::size_t>(i)]));
  for (const auto& [row, column] : system.below)
    for (const auto& [i, j] : {std::pair{row, column}, {column, row}}) entries.emplace_back(i, j, T{-1});
  Matrix<T> a(system.n, system.n);
  a.setFromTriplets(entries.begin(), entries.end());
  return a;
}

template <class T> using Vector = Eigen::Array<T, Eigen::Dynamic, 1>;

template <class T> Values values(const Vector<T>& x) {
  return {format_info<T>(), x.data(), static_cast<std::size_t>(x.size())};
}

/// |b - Ax| / |b|, in double and exact sums.
template <class T> double residual(const Matrix<T>& a, const Vector<T>& b, const Vector<T>& x) {
  const Vector<double> wide = b.template cast<double>();
  const Vector<double> r = wide - (a.template cast<double>() * x.template cast<double>().matrix()).array();
  const Method& exact = find("exact/fp64");
  const auto norm = [&](const Vector<double>& v) {
    return std::sqrt(exact(values<double>(v * v)).to_double());
  };
  return norm(r) / norm(wide);
}

template <class T>
Solution solve(const Matrix<T>& a, const Vector<T>& b, double tolerance, const Summation& sum) {
  Vector<T> products;
  const auto dot = [&](const Vector<T>& u, const Vector<T>& v) {
    products = u * v;
    return sum(values(products)).template as<T>();
  };
  Vector<T> x = Vector<T>::Zero(b.size()), r = b, p = b, ap;
  T square = dot(r, r);
  const double enough = tolerance * tolerance * static_cast<double>(square);
  int iterations = 0;
  while (!(static_cast<double>(square) <= enough) && iterations < most_iterations) {
    ap = (a * p.matrix()).array();
    const T step = square / dot(p, ap);
    x += step * p;
    r -= step * ap;
    const T next = dot(r, r);
    p = r + (next / square) * p;
    square = next;
    ++iterations;
  }
  return {iterations, static_cast<double>(square) <= enough, residual(a, b, x),
          digest(std::as_bytes(std::span{x.data(), static_cast<std::size_t>(x.size())}))};
}

template <class T> Solver solver(const System& system, const Column& right_side, double tolerance) {
  const std::span<const T> elements = right_side.values().as<T>();
  const Vector<T> b =
      Eigen::Map<const Vector<T>>(elements.data(), static_cast<Eigen::Index>(elements.size()));
  return [a = matrix_of<T>(system), b, tolerance](const Summation& sum) {
    return solve<T>(a, b, tolerance, sum);
  };
}

}  // namespace

bool has_linear_algebra() { return true; }

Solver conjugate_gradients(const System& system, const Column& right_side, double tolerance) {
  return right_side.format->name == "fp32" ? solver<float>(system, right_side, tolerance)
                                           : solver<double>(system, right_side, tolerance);
}

}  // namespace samesum::harness
