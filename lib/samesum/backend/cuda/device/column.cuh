/// Loads elements that are a stride apart.
#pragma once

#include <cstddef>
#include <type_traits>

namespace samesum::gpu {

/// A stride that is added to an address again and again. Otherwise the compiler computes each product of the
/// stride and a constant anew, in up to ten instructions for each load, unless it keeps them in registers.
struct Step {
  std::size_t elements;
  __device__ explicit Step(std::size_t stride) : elements{stride} { asm("" : "+l"(elements)); }
};

/// Loads the first `count` of `most` elements. `stride` is a number or a Step.
template <class T, class Stride, class Register, int most>
__device__ __forceinline__ void load_column(const T* from, Stride stride, int count, Register (&to)[most]) {
#pragma unroll
  for (int r = 0; r < most; ++r) {
    if constexpr (std::is_same_v<Stride, Step>) {
      if (r < count) to[r] = *from;
      from += stride.elements;
    } else {
      if (r < count) to[r] = from[r * stride];
    }
  }
}

}  // namespace samesum::gpu
