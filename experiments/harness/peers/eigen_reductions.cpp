#include <Eigen/Core>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {
namespace {

template <class F> Eigen::Map<const Eigen::Matrix<F, Eigen::Dynamic, 1>> vector(const F* x, std::size_t n) {
  return {x, static_cast<Eigen::Index>(n)};
}

template <class F> using Rows = Eigen::Matrix<F, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class F>
Eigen::Map<const Rows<F>, 0, Eigen::OuterStride<>> array(const F* x, std::size_t rows, std::size_t columns,
                                                         std::size_t apart) {
  return {x, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns),
          Eigen::OuterStride<>{static_cast<Eigen::Index>(apart)}};
}

}  // namespace

template <class F> F eigen_dot(const F* x, const F* y, std::size_t n) {
  return vector(x, n).dot(vector(y, n));
}

template <class F> F eigen_prod(const F* x, std::size_t n) { return vector(x, n).prod(); }

template <class F> F eigen_norm(const F* x, std::size_t n) { return vector(x, n).norm(); }

template <class F>
void eigen_row_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums) {
  Eigen::Map<Eigen::Matrix<F, Eigen::Dynamic, 1>>{sums, static_cast<Eigen::Index>(rows)} =
      array(x, rows, columns, apart).rowwise().sum();
}

template <class F>
void eigen_column_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums) {
  Eigen::Map<Eigen::Matrix<F, 1, Eigen::Dynamic>>{sums, static_cast<Eigen::Index>(columns)} =
      array(x, rows, columns, apart).colwise().sum();
}

template float eigen_dot(const float*, const float*, std::size_t);
template double eigen_dot(const double*, const double*, std::size_t);
template float eigen_prod(const float*, std::size_t);
template double eigen_prod(const double*, std::size_t);
template float eigen_norm(const float*, std::size_t);
template double eigen_norm(const double*, std::size_t);
template void eigen_row_sums(const float*, std::size_t, std::size_t, std::size_t, float*);
template void eigen_row_sums(const double*, std::size_t, std::size_t, std::size_t, double*);
template void eigen_column_sums(const float*, std::size_t, std::size_t, std::size_t, float*);
template void eigen_column_sums(const double*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace samesum::harness::peer
