#include <boost/math/statistics/univariate_statistics.hpp>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {

template <class F> F boost_mean(const F* x, std::size_t n) { return boost::math::statistics::mean(x, x + n); }

template <class F> F boost_variance(const F* x, std::size_t n) {
  return boost::math::statistics::variance(x, x + n);
}

template float boost_variance(const float*, std::size_t);
template double boost_variance(const double*, std::size_t);
template float boost_mean(const float*, std::size_t);
template double boost_mean(const double*, std::size_t);

}  // namespace samesum::harness::peer
