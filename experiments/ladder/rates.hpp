/// How fast a CPU adds, compiled for the processor of the machine that builds: no inline function may be
/// shared with the rest of the program, so nothing is included.
#pragma once

namespace samesum::ladder::rates {

inline constexpr int outputs = 16;  ///< of a call

/// Chain c of each output counts from c by `one`, so many steps; an output is the sum of its 8 chains.
void add(float* out, int steps, float one);
void multiply_and_add(float* out, int steps, float one);

}  // namespace samesum::ladder::rates
