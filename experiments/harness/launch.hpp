/// Sums on a GPU in other launch shapes than the fast ones. A hook of the library's own tests: callers cannot
/// choose a shape, and need not.
#pragma once

#include "samesum/catalogue/method.hpp"

namespace samesum::harness {

struct LaunchShape {
  int blocks = 0, threads = 0;  ///< 0: as measured to be fast
};

/// Few and many blocks, small and large ones: those among which differences are looked for.
inline constexpr LaunchShape launch_shapes[] = {{0, 0}, {1, 32}, {7, 64}, {64, 128}, {3, 256}, {5000, 32}};

/// The sum of elements that are on the GPU already. Throws std::runtime_error where there is none.
Number sum_in_shape(const Method& method, Values placed, LaunchShape shape);

}  // namespace samesum::harness
