/// Ceilings of arithmetic on a CPU, compiled for the processor of the build machine. The linker must not
/// share an inline function from here with the rest of the program, so this header includes nothing.
#pragma once

namespace samesum::ladder::rates {

inline constexpr int outputs = 16;  ///< numbers that a call writes

/// Writes `outputs` numbers. Chain c of each output starts at c and adds `one` in each of `steps` steps; the
/// output is the sum of its 8 chains.
void add(float* out, int steps, float one);
void multiply_and_add(float* out, int steps, float one);

}  // namespace samesum::ladder::rates
