/// Peers on a CPU for reductions of fp32 and fp64, with one thread. sums.hpp explains how they are compiled.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samesum::harness::peer {

/// std::inner_product, which adds in turn.
template <class F> F std_dot(const F* x, const F* y, std::size_t n);

/// std::inclusive_scan and std::partial_sum, which add in turn.
template <class F> void std_inclusive_scan(const F* x, std::size_t n, F* out);
template <class F> void std_partial_sum(const F* x, std::size_t n, F* out);

/// The usual loop for sums by key: adds each row of `inner` elements to the row of `out` that its key names.
template <class F>
void loop_by_key(const F* x, const std::uint32_t* keys, std::size_t n, std::size_t inner, std::size_t bins,
                 F* out);

/// The mean of boost::math::statistics: a running mean, which divides once per element. n must not be 0.
template <class F> F boost_mean(const F* x, std::size_t n);
/// Its variance, divided by n: a running one, too. n must not be 0.
template <class F> F boost_variance(const F* x, std::size_t n);

template <class F> F eigen_prod(const F* x, std::size_t n);
template <class F> F eigen_dot(const F* x, const F* y, std::size_t n);
template <class F> F eigen_norm(const F* x, std::size_t n);
/// Sums of the rows, or of the columns, of an array whose rows begin `apart` elements apart.
template <class F>
void eigen_row_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums);
template <class F>
void eigen_column_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums);

/// cblas_?dot, cblas_?asum, cblas_?nrm2, and cblas_?gemv with a vector of ones, of OpenBLAS. Lengths
/// have 32 bits.
template <class F> F blas_dot(const F* x, const F* y, std::size_t n);
template <class F> F blas_asum(const F* x, std::size_t n);
template <class F> F blas_norm(const F* x, std::size_t n);
template <class F>
void blas_row_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums);
template <class F>
void blas_column_sums(const F* x, std::size_t rows, std::size_t columns, std::size_t apart, F* sums);

/// Softmax of rows in three passes: the maximum, the exponentials and their sum, the division by it. The
/// compiler vectorises each pass with -ffast-math.
void softmax_in_three_passes(const float* x, std::size_t rows, std::size_t columns, float* out);

}  // namespace samesum::harness::peer
