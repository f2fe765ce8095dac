/// The C interface of BLAS. It is declared here, since its headers have other names in other packages.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "harness/peers/reductions.hpp"

extern "C" {
float cblas_sdot(int n, const float* x, int x_stride, const float* y, int y_stride);
double cblas_ddot(int n, const double* x, int x_stride, const double* y, int y_stride);
float cblas_sasum(int n, const float* x, int stride);
double cblas_dasum(int n, const double* x, int stride);
float cblas_snrm2(int n, const float* x, int stride);
double cblas_dnrm2(int n, const double* x, int stride);
void cblas_sgemv(int order, int transposed, int rows, int columns, float alpha, const float* a, int apart,
                 const float* x, int x_stride, float beta, float* y, int y_stride);
void cblas_dgemv(int order, int transposed, int rows, int columns, double alpha, const double* a, int apart,
                 const double* x, int x_stride, double beta, double* y, int y_stride);
/// OpenBLAS only: else null.
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace samesum::harness::peer {
namespace {

constexpr int row_major = 101, as_it_is = 111, transposed = 112;

/// A length or a stride, after OpenBLAS was set to one thread.
int with_one_thread(std::size_t n) {
  [[maybe_unused]] static const bool done = [] {
    if (openblas_set_num_threads) openblas_set_num_threads(1);
    return true;
  }();
  return static_cast<int>(n);
}

template <class F> struct Ones {
  F* all = nullptr;
  std::size_t size = 0;
  ~Ones() { delete[] all; }
};

/// A vector of at least n ones, made in the first call.
template <class F> const F* ones(std::size_t n) {
  thread_local Ones<F> made;
  if (made.size < n) {
    delete[] std::exchange(made.all, nullptr);
    made.all = new F[n];
    made.size = n;
    std::fill_n(made.all, n, F{1});
  }
  return made.all;
}

/// The product of a matrix, transposed or not, and a vector of ones.
template <class F>
void gemv(int how, std::size_t rows, std::size_t columns, const F* a, std::size_t apart, F* sums) {
  const std::size_t n = how == as_it_is ? columns : rows, results = how == as_it_is ? rows : columns;
  if (n == 0) {  // BLAS returns at once, without writing
    std::fill_n(sums, results, F{});
    return;
  }
  const auto product = [] {
    if constexpr (std::is_same_v<F, float>)
      return cblas_sgemv;
    else
      return cblas_dgemv;
  }();
  product(row_major, how, with_one_thread(rows), static_cast<int>(columns), F{1}, a,
          static_cast<int>(std::max(apart, columns)), ones<F>(n), 1, F{}, sums, 1);
}

float dot(int n, const float* x, const float* y) { return cblas_sdot(n, x, 1, y, 1); }
double dot(int n, const double* x, const double* y) { return cblas_ddot(n, x, 1, y, 1); }
float asum(int n, const float* x) { return cblas_sasum(n, x, 1); }
double asum(int n, const double* x) { return cblas_dasum(n, x, 1); }
float norm(int n, const float* x) { return cblas_snrm2(n, x, 1); }
double norm(int n, const double* x) { return cblas_dnrm2(n, x, 1); }

}  // namespace

template <class F> F blas_dot(const F* x, const F* y, std::size_t n) { return dot(with_one_thread(n), x, y); }
template <class F> F blas_asum(const F* x, std::size_t n) { return asum(with_one_thread(n), x); }
template <class F> F blas_norm(const F* x, std::size_t n) { return norm(with_one_thread(n), x); }

template <class F>
void blas_row_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums) {
  gemv(as_it_is, rows, columns, x, apart, sums);
}
template <class F>
void blas_column_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums) {
  gemv(transposed, rows, columns, x, apart, sums);
}

template float blas_dot(const float*, const float*, std::size_t);
template double blas_dot(const double*, const double*, std::size_t);
template float blas_asum(const float*, std::size_t);
template double blas_asum(const double*, std::size_t);
template float blas_norm(const float*, std::size_t);
template double blas_norm(const double*, std::size_t);
template void blas_row_sums(const float*, std::size_t, std::size_t, std::size_t, float*);
template void blas_row_sums(const double*, std::size_t, std::size_t, std::size_t, double*);
template void blas_column_sums(const float*, std::size_t, std::size_t, std::size_t, float*);
template void blas_column_sums(const double*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace samesum::harness::peer
