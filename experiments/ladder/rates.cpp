#include "ladder/rates.hpp"

namespace samesum::ladder::rates {
namespace {

#if defined(__AVX512F__)
constexpr int width = 16;
#elif defined(__AVX__)
constexpr int width = 8;
#else
constexpr int width = 4;
#endif
using Lane = float __attribute__((vector_size(width * sizeof(float))));

constexpr int chains = 8;  // twice the latency of an addition in cycles, so that no addition waits

template <class Step> void count_up(float* out, int steps, float one, Step step) {
  for (int at = 0; at < outputs; at += width) {
    Lane v[chains];
    for (int c = 0; c < chains; ++c) v[c] = Lane{} + static_cast<float>(c) * one;
    const Lane by = Lane{} + one;
    for (int k = 0; k < steps; ++k)
      for (Lane& chain : v) chain = step(chain, by);
    Lane sum{};
    for (const Lane& chain : v) sum += chain;
    for (int i = 0; i < width; ++i) out[at + i] = sum[i];
  }
}

}  // namespace

void add(float* out, int steps, float one) {
  count_up(out, steps, one, [](const Lane& v, const Lane& by) { return v + by; });
}

void multiply_and_add(float* out, int steps, float one) {
  count_up(out, steps, one, [](const Lane& v, const Lane& by) { return v * by + by; });
}

}  // namespace samesum::ladder::rates
