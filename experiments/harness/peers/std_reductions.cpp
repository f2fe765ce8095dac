#include <numeric>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {

template <class F> F std_dot(const F* x, const F* y, std::size_t n) {
  return std::inner_product(x, x + n, y, F{0});
}

template <class F> void std_inclusive_scan(const F* x, std::size_t n, F* out) {
  std::inclusive_scan(x, x + n, out);
}

template <class F> void std_partial_sum(const F* x, std::size_t n, F* out) {
  std::partial_sum(x, x + n, out);
}

template float std_dot(const float*, const float*, std::size_t);
template double std_dot(const double*, const double*, std::size_t);
template void std_inclusive_scan(const float*, std::size_t, float*);
template void std_inclusive_scan(const double*, std::size_t, double*);
template void std_partial_sum(const float*, std::size_t, float*);
template void std_partial_sum(const double*, std::size_t, double*);

}  // namespace samesum::harness::peer
