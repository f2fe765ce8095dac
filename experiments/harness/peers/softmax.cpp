/// Compiled with -ffast-math, as fast_math.cpp is, so that the compiler uses glibc's vectorised exponentials.
#include <cmath>

#include "harness/peers/reductions.hpp"

namespace samesum::harness::peer {

void softmax_in_three_passes(const float* x, std::size_t rows, std::size_t columns, float* out) {
  for (std::size_t r = 0; r < rows; ++r, x += columns, out += columns) {
    float largest = -3e38f;
    for (std::size_t i = 0; i < columns; ++i) largest = x[i] > largest ? x[i] : largest;
    float sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      out[i] = std::exp(x[i] - largest);
      sum += out[i];
    }
    const float scale = 1 / sum;
    for (std::size_t i = 0; i < columns; ++i) out[i] *= scale;
  }
}

}  // namespace samesum::harness::peer
