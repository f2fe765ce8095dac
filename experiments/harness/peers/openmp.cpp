#include <omp.h>

#include "harness/peers/sums.hpp"

namespace samesum::harness::peer {

template <class F> F openmp(const F* x, std::size_t n, int threads) {
  const int team = threads == 0 ? omp_get_max_threads() : threads;
  F sum = 0;
#pragma omp parallel for simd reduction(+ : sum) num_threads(team)
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template float openmp(const float*, std::size_t, int);
template double openmp(const double*, std::size_t, int);

}  // namespace samesum::harness::peer
