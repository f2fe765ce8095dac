#include <algorithm>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {

template <class F>
void loop_by_key(const F* x, const std::uint32_t* keys, std::size_t n, std::size_t inner, std::size_t bins,
                 F* out) {
  std::fill(out, out + bins * inner, F{0});
  if (inner == 1) {
    for (std::size_t k = 0; k < n; ++k) out[keys[k]] += x[k];
    return;
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < inner; ++i) out[keys[k] * inner + i] += x[k * inner + i];
}

template void loop_by_key(const float*, const std::uint32_t*, std::size_t, std::size_t, std::size_t, float*);
template void loop_by_key(const double*, const std::uint32_t*, std::size_t, std::size_t, std::size_t,
                          double*);

}  // namespace samesum::harness::peer
