/// Sums on a GPU with given launch shapes: a hook for tests. Callers of the library cannot choose a shape.
#pragma once

#include "samesum/catalogue/method.hpp"

namespace samesum::harness {

struct LaunchShape {
  int blocks = 0, threads = 0;  ///< 0: the defaults of the library
};

/// The shapes whose results are compared: few and many blocks, small and large ones.
inline constexpr LaunchShape launch_shapes[] = {{0, 0}, {1, 32}, {7, 64}, {64, 128}, {3, 256}, {5000, 32}};

/// Sums elements that are in the memory of the GPU. Throws std::runtime_error if there is no GPU.
Number sum_in_shape(const Method& method, Values placed, LaunchShape shape);

}  // namespace samesum::harness
