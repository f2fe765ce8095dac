/// Calls on a GPU with given launch shapes and schedules: hooks for tests. Callers of the library cannot
/// choose them.
#pragma once

#include "samesum/call/call.hpp"

namespace samesum::harness {

struct LaunchShape {
  int blocks = 0, threads = 0;  ///< 0: the defaults of the library
};

/// The shapes whose results are compared: few and many blocks, small and large ones.
inline constexpr LaunchShape launch_shapes[] = {{0, 0}, {1, 32}, {7, 64}, {64, 128}, {3, 256}, {5000, 32}};

/// Sums elements that are in the memory of the GPU. Throws std::runtime_error if there is no GPU.
Number sum_in_shape(const Method& method, Values placed, LaunchShape shape);

/// Number of schedules of a method on a GPU. Schedule 0 is the one that the library chooses.
inline int schedules_of(const Method& m) { return m.takes_keys ? 5 : m.is_scan() ? 4 : 1; }

/// Runs a scan, or with keys an operation by key, with a schedule. Keys and results are in host memory, the
/// elements in that of the GPU. Throws std::runtime_error if there is no GPU.
void reduce_in_schedule(const Method& method, Values placed, const Keys* keys, Layout layout, Results out,
                        int schedule);

}  // namespace samesum::harness
