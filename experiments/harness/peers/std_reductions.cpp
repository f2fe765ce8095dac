#include <numeric>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {

template <class F> F std_dot(const F* x, const F* y, std::size_t n) {
  return std::inner_product(x, x + n, y, F{0});
}

template float std_dot(const float*, const float*, std::size_t);
template double std_dot(const double*, const double*, std::size_t);

}  // namespace samesum::harness::peer
