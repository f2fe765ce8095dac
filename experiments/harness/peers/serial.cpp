#include <boost/accumulators/accumulators.hpp>
#include <boost/accumulators/statistics/stats.hpp>
#include <boost/accumulators/statistics/sum_kahan.hpp>
#include <numeric>

#include "harness/peers/sums.hpp"

namespace samesum::harness::peer {

/// The usual loop.
template <class F> F loop(const F* x, std::size_t n, int) {
  F sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class F> F std_reduce(const F* x, std::size_t n, int) { return std::reduce(x, x + n); }

template <class F> F boost_kahan(const F* x, std::size_t n, int) {
  namespace acc = boost::accumulators;
  acc::accumulator_set<F, acc::stats<acc::tag::sum_kahan>> sum;
  for (std::size_t i = 0; i < n; ++i) sum(x[i]);
  return acc::sum_kahan(sum);
}

template float loop(const float*, std::size_t, int);
template double loop(const double*, std::size_t, int);
template float std_reduce(const float*, std::size_t, int);
template double std_reduce(const double*, std::size_t, int);
template float boost_kahan(const float*, std::size_t, int);
template double boost_kahan(const double*, std::size_t, int);

}  // namespace samesum::harness::peer
